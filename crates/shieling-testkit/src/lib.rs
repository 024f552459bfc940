//! Utilities for Shieling's tests: a fake clock, scripted approvers, recording sinks, a temporary workspace, a count
//! of leftover processes, normalised transcripts, and random shell scripts.
//!
//! [`conformance`] is the test suite for authors of environments.
//!
//! For integration tests only: unit tests inside of `shieling` are compiled against another copy of that crate, whose
//! types differ.

mod approver;
mod clock;
pub mod conformance;
pub mod extent;
mod first;
mod leftover;
pub mod prerequisite;
pub mod random;
pub mod scripts;
pub mod subset;
mod sink;
pub mod ssh;
mod transcript;
mod user;
mod workspace;

pub use approver::{ScriptedApprover, approved, block_on};
pub use clock::FakeClock;
pub use first::First;
pub use leftover::{Marker, leftovers};
pub use sink::{FailingSink, RecordingSink};
pub use transcript::normalised;
pub use user::{again_as_user, again_as_user_with, is_alone, is_user};
pub use workspace::Workspace;
