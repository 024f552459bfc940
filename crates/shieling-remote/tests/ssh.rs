//! The SSH transport against an OpenSSH server on loopback, with keys, settings and a port of its own.
//!
//! The server stands in a mount namespace of its own, in which an ordinary user is added; nothing of the host is
//! changed. `SHIELING_CONFORMANCE=text` runs only the cases whose group or name holds that text.
#![allow(
    clippy::disallowed_methods,
    reason = "servers are started, and places looked at from outside"
)]
#![allow(clippy::print_stderr, reason = "the report is told")]

#[path = "remote/support.rs"]
#[allow(dead_code, reason = "the other tests use more of it")]
mod support;

mod ssh {
    mod conformance;
    mod cuts;
    mod ends;
    mod refusals;
    mod server;
}
