//! Containers of real engines, started here: what runs in them, what is closed in them, and what is left of them.
#![allow(
    clippy::disallowed_methods,
    reason = "engines are started, and their containers looked at from outside"
)]
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what helps tests fails and reports as tests do"
)]

mod container {
    mod attached;
    mod closed;
    mod copies;
    mod ends;
    pub(crate) mod engines;
    mod hung;
    mod images;
    mod per_command;
    mod policies;
    pub(crate) mod support;
    mod suite;
}
