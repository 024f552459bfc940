//! The conformance suite over every environment of ours, and over environments that are broken on
//! purpose: a suite that passes those finds nothing.
//!
//! `SHIELING_CONFORMANCE=text` runs only the cases whose group or name holds that text.
#![allow(clippy::disallowed_methods, reason = "places are built and looked at from outside")]
#![allow(clippy::print_stderr, reason = "the report is told")]

#[path = "../examples/environment.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "an example of its own")]
mod example;

mod conformance {
    mod broken;
    mod document;
    mod naive;
    mod ours;
    mod support;
}
