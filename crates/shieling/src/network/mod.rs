//! The network by name: a gateway of [`shieling_gateway`] bound to a sandbox.
//!
//! [`NetworkAccess`] says what is opened. For each jail an `Outlet` starts one gateway, tells the jail which addresses
//! and sockets it needs in its network, serves the sockets that come back, and reports. It decides nothing and asks
//! nobody by itself; the gateway has the rules, and whoever answers is handed in.

mod access;
mod outlet;
mod redacted;
mod report;
mod sockets;

pub use access::NetworkAccess;
pub(crate) use outlet::{Look, Outlet};
pub(crate) use redacted::{RedactedShell, on_terminal, process as redacted};
pub(crate) use report::{failure, summary};
pub use shieling_gateway::{
    Answer, Asker, Attempt, BoxFuture, Connection, DEFAULT_PORTS, Decision, Denied, End, Host, HostName, HostRule,
    NoProxy, Observer, Proxy, ProxyError, Redactor, Resolver, Roots, Rule, RuleError, Secret, SecretError,
    SecretSource, SecretSpec, set_names,
};
