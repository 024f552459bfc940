//! Commands run on this host: what they get, how they end, and that nothing of them is left.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at processes and files from outside"
)]

mod local {
    mod concurrency;
    mod endings;
    mod inheritance;
    mod leftovers;
    mod output;
    mod starts;
    pub(crate) mod support;
}
