//! Resolution of names outside of the sandbox.
//!
//! Asked only for a name that is allowed, at the moment of a connection. No result is kept, so that what was judged
//! is what is connected to.

use std::io;
use std::net::IpAddr;

use crate::ask::BoxFuture;
use crate::name::HostName;

/// Resolves names on the host's side.
pub trait Resolver: Send + Sync {
    /// Returns the addresses of a name, in the order in which they are to be tried.
    fn resolve<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The host's own resolver (`getaddrinfo`): its hosts file, its search domains, its servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let mut addresses: Vec<IpAddr> = Vec::new();
            for found in tokio::net::lookup_host((name.as_str(), 0)).await? {
                if !addresses.contains(&found.ip()) {
                    addresses.push(found.ip());
                }
            }
            Ok(addresses)
        })
    }
}
