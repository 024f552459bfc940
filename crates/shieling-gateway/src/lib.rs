//! The gateway: a sandbox's only way to the network, by host name and port.
//!
//! Inside of the sandbox each allowed name has an address of its own (of 198.18.0.0/15), at which sockets listen that
//! were handed to this process. By the address of a connection the gateway knows which name was meant. It resolves the
//! name outside, refuses private and metadata addresses unless a rule names them, checks the name that TLS or HTTP
//! carries, connects, and passes the bytes on. All other names do not exist inside. Programs need no proxy variables,
//! and TLS is left alone, but for hosts that have a secret.
//!
//! This crate works on sockets that are given to it. It makes no namespace and no route, starts no process, reads no
//! file but the host's trusted certificates, and no variable.
//!
//! # What the sandbox's side does
//!
//! 1. [`Gateway::start`] with a [`GatewayConfig`].
//! 2. Make [`Gateway::routes`] local in the sandbox's namespace, and bind there: a UDP socket and a TCP listener for
//!    DNS ([`DNS_ADDRESS`], port 53), handed to [`Gateway::serve_dns`]; and sockets for connections, in one of the two
//!    ways that [`Listeners`] describes, handed to [`Gateway::serve`] and [`Gateway::serve_udp`].
//! 3. Write [`Gateway::names`] into `/etc/hosts`, the files of [`Gateway::trust`], and set [`Gateway::variables`] and
//!    [`Trust::variables`] for each command.
//! 4. Take [`Gateway::cursor`] before a command and [`Gateway::report`] after it; pass what commands print through
//!    [`Gateway::redactor`].
//! 5. Drop the [`Gateway`] with the sandbox.
//!
//! # Example
//!
//! ```
//! use shieling_gateway::{Gateway, GatewayConfig, HostRule, Rule};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # let _within = runtime.enter();
//! let rules = HostRule::expand("@python")?.into_iter().map(Rule::allow).collect();
//! let gateway = Gateway::start(GatewayConfig { rules, ..GatewayConfig::default() })?;
//! let names = gateway.names();
//! assert_eq!(names[0].name.as_str(), "pypi.org");
//! assert_eq!(names[0].v4.to_string(), "198.18.0.16");
//! // Ports 443 and 80 of each name are to be bound in the sandbox's namespace.
//! assert_eq!(gateway.endpoints().len(), 2 * names.len());
//! # Ok(())
//! # }
//! ```
//!
//! # What this does not stop
//!
//! - Data sent to an allowed host. A wildcard allows each name under it, and such a name is resolved outside when it is
//!   connected to, so that the servers of that domain see it.
//! - A request within untouched TLS whose `Host` is another one than its SNI, where a content network serves both on
//!   one connection. Most refuse it. An encrypted ClientHello, whose real name cannot be seen, is refused.
//! - A name that leads to a public address of this machine itself, or, where the user has a proxy, to whatever the proxy
//!   resolves it to.
//! - A host of a secret that gives the secret back in another form than plain, base64 or URL-encoded.

mod name;
mod address;
mod sets;
mod rule;
mod ask;
mod limits;
mod record;
mod resolve;
mod listeners;
mod permit;
mod names;
mod dns;
mod hello;
mod questions;
mod proxy;
mod secret;
mod redact;
mod vault;
mod trust;
mod scope;
mod outside;
mod relay;
mod counted;
mod framing;
mod shared;
mod http;
mod connection;
mod serve;
mod gateway;

pub use address::AddressClass;
pub use ask::{Answer, Asker, Attempt, BoxFuture};
pub use gateway::{DNS_ADDRESS, Gateway, GatewayConfig, NamedAddress, StartError};
pub use limits::Limits;
pub use listeners::{Endpoint, Listener, Listeners};
pub use name::{HOST_INTERNAL, HostName, NameError};
pub use proxy::{NoProxy, Proxy, ProxyError};
pub use record::{Connection, Cursor, Denied, End, Observer, Report, Request};
pub use redact::{RedactStream, Redactor};
pub use resolve::{Resolver, SystemResolver};
pub use rule::{DEFAULT_PORTS, Decision, Host, HostRule, Protocol, Rule, RuleError};
pub use secret::{Secret, SecretError, SecretSource, SecretSpec};
pub use sets::names as set_names;
pub use trust::{Roots, Trust, TrustPaths};
