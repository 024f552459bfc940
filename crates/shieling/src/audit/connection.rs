//! The recorded part of a connection to a host.

use serde::Serialize;

/// A connection that ended or was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConnectionRecord {
    /// The name, or the address if a rule names one.
    pub host: String,
    /// The port; `None` if the name was only looked up.
    pub port: Option<u16>,
    /// The address outside that was connected to, if there was one.
    pub address: Option<String>,
    /// The number of bytes that came from the host.
    pub bytes_in: u64,
    /// The number of bytes that went to the host.
    pub bytes_out: u64,
    /// How long it lasted, in milliseconds.
    pub duration_ms: u64,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// Why it was refused, if it was.
    pub refused: Option<String>,
    /// The first requests, if HTTP was seen.
    pub requests: Vec<RequestRecord>,
    /// The number of requests.
    pub requests_total: u64,
}

/// A request over HTTP that was seen on a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RequestRecord {
    /// The method.
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// The status of the response, if there was one.
    pub status: Option<u16>,
}
