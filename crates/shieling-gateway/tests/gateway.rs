//! A gateway on real sockets: what programs reach through it, what they do not, and what is recorded of both.
//!
//! Each test runs in a network of its own (user, network and mount namespaces), where the pool of synthetic addresses,
//! some public addresses (93.184.0.0/16) and some private ones (10.9.0.0/16) are local. Programs in it resolve names
//! by the gateway; the gateway resolves them by a table of the test.
#![allow(
    clippy::disallowed_methods,
    reason = "clients are started, and certificates written for them"
)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what helps tests fails and reports as tests do"
)]

mod gateway {
    #[macro_use]
    pub(crate) mod space;
    pub(crate) mod fixture;
    pub(crate) mod servers;
    mod ask;
    mod bench;
    mod clients;
    mod limits;
    mod names;
    mod plain;
    mod proxy;
    mod secrets;
    mod tls;
}
