//! Environments behind a stream: what they run, what cuts do to them, and what hostile peers cannot.
#![allow(clippy::disallowed_methods, reason = "places are built and looked at from outside")]

mod remote {
    mod commands;
    mod copies;
    mod cuts;
    mod files;
    mod peers;
    pub(crate) mod support;
    mod telling;
}
