//! Bounds of a gateway. Everything that a program in the sandbox can make grow has one.

use std::time::Duration;

/// Bounds of a [`Gateway`](crate::Gateway).
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once, with those that wait for an answer. Default: 1024. At most an eighth of the descriptors that
    /// this process may have when the gateway starts (`RLIMIT_NOFILE`): an idle connection takes two of them, one under
    /// load up to six. The caller may have to raise that limit.
    pub connections: usize,
    /// New connections that may arrive at once. Default: 1024.
    pub burst: u32,
    /// New connections a second, once the burst is used up. Default: 100.
    pub rate: u32,
    /// Bytes of all connections in both directions. Default: no bound.
    pub bytes: Option<u64>,
    /// How long a connection lives without a byte. Default: one hour, which outlives the keep-alive of databases.
    pub idle: Duration,
    /// How long a client may take to send its TLS ClientHello. Default: 10 s.
    pub greeting: Duration,
    /// How long the resolution of a name may take. Default: 5 s.
    pub resolve: Duration,
    /// How long connecting may take, over all addresses of a name, with a handshake of TLS or of a proxy.
    /// Default: 10 s.
    pub connect: Duration,
    /// How long an answer is waited for. Default: 5 minutes.
    pub answer_wait: Duration,
    /// How long a refusal stands before the same attempt is asked about again. Default: one minute.
    pub refusal_remembered: Duration,
    /// Questions that are open at once; a further attempt is refused. Default: 16.
    pub questions: usize,
    /// Names with an address, allowed and unknown ones together. Default: 8192.
    pub names: usize,
    /// Names among these that no rule names, which get an address so that they can be asked about. Default: 1024.
    pub unknown_names: usize,
    /// Sockets of names that no rule names one by one: those under a wildcard, and those that are asked about. A lookup
    /// has one bound for each port of the name, and it stays. Default: 2048, and at most an eighth of the descriptors
    /// of this process. A further name is not resolved.
    pub name_sockets: usize,
    /// Queries over TCP at once. Default: 64, and at most a 32nd of the descriptors of this process.
    pub dns_connections: usize,
    /// UDP flows at once. Default: 256, and at most a 32nd of the descriptors of this process. Each takes one.
    pub flows: usize,
    /// Connections and refusals, each, that are kept for reports. Default: 1024.
    pub records: usize,
    /// Requests that the record of one connection lists. Default: 64.
    pub requests: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            burst: 1024,
            rate: 100,
            bytes: None,
            idle: Duration::from_secs(3600),
            greeting: Duration::from_secs(10),
            resolve: Duration::from_secs(5),
            connect: Duration::from_secs(10),
            answer_wait: Duration::from_secs(300),
            refusal_remembered: Duration::from_secs(60),
            questions: 16,
            names: 8192,
            unknown_names: 1024,
            name_sockets: 2048,
            dns_connections: 64,
            flows: 256,
            records: 1024,
            requests: 64,
        }
    }
}
