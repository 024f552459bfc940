//! Judges what commands left in a workspace after the process that watched it was killed, once nothing of the sandbox runs:
//! takes back what is held back, and keeps it in the store, as that process would have.
//!
//! ```text
//! host ──► starts it with the sandbox, tells what is known (`Log`) ──► all is settled: it ends
//!                                                                  └─► killed: waits for the sandbox's end, judges, ends
//! ```
//!
//! The library of this crate is what the two tell each other, and the part of judging that both do: keeping. The program
//! starts nothing, reads nothing but what it was given, and ends after one look.

#![forbid(unsafe_code)]

mod quarantine;
mod log;
#[cfg(feature = "program")]
pub mod program;

pub use log::{Beginning, Entry, Log, OVER, read};
pub use quarantine::Quarantine;
