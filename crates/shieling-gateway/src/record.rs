//! What happened: connections and refusals, bounded, with a cursor so that each command's outcome takes its own.
//!
//! Keeps no secret: paths of requests are recorded as the sandbox sent them, without query.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use crate::rule::Protocol;

/// A position in the record. The one from before a command gives, in [`Gateway::report`](crate::Gateway::report),
/// what happened during the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(pub(crate) u64);

/// A request that was seen, on port 80 or on the way to a host that has a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path without query, at most 256 bytes.
    pub path: String,
    /// The status of the response, once there is one.
    pub status: Option<u16>,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It is open.
    Open,
    /// Both sides closed it.
    Closed,
    /// One side reset it, or it failed.
    Failed(String),
    /// The name has no address outside.
    Unresolved(String),
    /// Nothing answered at the addresses of the name, or at the proxy.
    Unreachable(String),
    /// The connection was refused; there is a [`Denied`] for it.
    Refused,
    /// No byte within [`Limits::idle`](crate::Limits::idle).
    Idle,
    /// [`Limits::bytes`](crate::Limits::bytes) are used up.
    ByteLimit,
}

/// A connection that was made or tried.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// The name, or the address where a rule names one.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The protocol.
    pub protocol: Protocol,
    /// The address outside; `None` if there was none, or a proxy resolved the name.
    pub address: Option<SocketAddr>,
    /// Bytes from the host to the sandbox.
    pub bytes_in: u64,
    /// Bytes from the sandbox to the host.
    pub bytes_out: u64,
    /// When the sandbox opened it.
    pub began: SystemTime,
    /// How long it lasted, or has lasted so far.
    pub duration: Duration,
    /// How it ended.
    pub end: End,
    /// The first requests, where HTTP was seen.
    pub requests: Vec<Request>,
    /// How many requests there were.
    pub requests_total: u64,
}

/// An attempt that was refused. The same one again counts up instead of adding an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// The name or address.
    pub host: String,
    /// The port; `None` if the name was only looked up.
    pub port: Option<u16>,
    /// The reason.
    pub because: String,
    /// What to do instead, where that is known: the option that would allow it.
    pub instead: Option<String>,
    /// How often it was tried.
    pub count: u64,
}

/// What happened since a [`Cursor`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Connections that began or ended since, in the order in which they began.
    pub connections: Vec<Connection>,
    /// Attempts that were refused since.
    pub denied: Vec<Denied>,
    /// Connections and refusals that the bound of the record left out.
    pub left_out: u64,
    /// The position after this report.
    pub cursor: Cursor,
}

/// Is told of each connection and refusal as it ends, for an audit log. Called on the gateway's tasks: must not block.
pub trait Observer: Send + Sync {
    /// A connection ended.
    fn connection(&self, connection: &Connection);
    /// An attempt was refused. Called for the first of several equal ones in a row.
    fn denied(&self, denied: &Denied);
}
