//! Sockets inside of the sandbox, which its side binds and the gateway serves.
//!
//! The gateway knows a connection's name by the local address of the accepted socket, so that either way of listening
//! works:
//!
//! - One socket for each [`Endpoint`]: those that are known from the beginning are in
//!   [`Gateway::endpoints`](crate::Gateway::endpoints), the others (names under a wildcard, names that will be asked
//!   about) are asked for through [`Listeners`], before the DNS answer that tells the address.
//! - One socket for each port on the unspecified address of a namespace in which all synthetic addresses are local
//!   (`ip route add local 198.18.0.0/15 dev lo`). Then no [`Listeners`] is needed.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use crate::ask::BoxFuture;
use crate::rule::Protocol;

/// An address and port inside of the sandbox, at which programs expect a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// The protocol.
    pub protocol: Protocol,
    /// The address inside of the sandbox: a synthetic one, or an address that a rule names.
    pub address: SocketAddr,
}

/// A bound socket of the sandbox's namespace.
#[derive(Debug)]
pub enum Listener {
    /// Listens for connections.
    Tcp(TcpListener),
    /// Receives datagrams.
    Udp(UdpSocket),
}

/// Binds sockets in the sandbox's namespace.
pub trait Listeners: Send + Sync {
    /// Binds a socket for each endpoint. Endpoints that a socket on the unspecified address serves already need none.
    ///
    /// # Errors
    /// If a socket cannot be bound. The name is then not resolved, and its lookup fails with `SERVFAIL`.
    fn listen<'a>(&'a self, endpoints: &'a [Endpoint]) -> BoxFuture<'a, io::Result<Vec<Listener>>>;
}
