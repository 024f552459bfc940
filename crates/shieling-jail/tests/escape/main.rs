//! Attempts to escape: each is a sentence and a process in a sandbox of this library, on the kernel
//! that runs, with neighbours that must work. No text is judged here: what holds, the kernel holds.
//!
//! ```text
//! root ─► a mount namespace of its own ─► every case ─► the same program as an ordinary user ─► every case
//! ```
//!
//! A case that cannot run here says what is missing; where `CI` is `true`, that is a failure.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the report of this program")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at processes and files from outside"
)]

mod support;

mod calls;
mod controls;
mod limits;
mod network;
mod endings;
mod outside;
mod processes;
mod places;
mod reads;
mod writes;
mod readonly;
mod hidden;
mod races;
mod protected;
mod allowed;
mod machine;
mod reduced;
mod reports;

use support::{Case, suite};

/// Every class, in the order of the report.
const CLASSES: &[(&str, &[Case])] = &[
    ("reads", reads::CASES),
    ("writes", writes::CASES),
    ("places", places::CASES),
    ("readonly", readonly::CASES),
    ("hidden", hidden::CASES),
    ("protected", protected::CASES),
    ("allowed", allowed::CASES),
    ("machine", machine::CASES),
    ("reduced", reduced::CASES),
    ("races", races::CASES),
    ("calls", calls::CASES),
    ("processes", processes::CASES),
    ("endings", endings::CASES),
    ("network", network::CASES),
    ("limits", limits::CASES),
    ("reports", reports::CASES),
    ("controls", controls::CASES),
];

fn main() -> std::process::ExitCode {
    suite::main(CLASSES)
}
