//! Commands run on this host: what they get, how they end, and that nothing of them is left.
#![expect(clippy::disallowed_methods, reason = "tests place files and look at processes")]
#![allow(clippy::expect_used, reason = "a test says what it expects")]

mod local {
    mod concurrency;
    mod endings;
    mod inheritance;
    mod leftovers;
    mod output;
    mod starts;
    pub(crate) mod support;
}
