//! What Shieling's tests share: a clock that only moves when told, approvers and sinks that
//! remember, a small workspace, the count of processes that were left behind, transcripts without
//! what differs from run to run, and random shell scripts.
//!
//! [`conformance`] is for authors of environments: what every environment has to hold to.
//!
//! For integration tests only: a unit test inside `shieling` is compiled against another copy of
//! that crate, whose types these helpers do not know.

mod approver;
mod clock;
pub mod conformance;
pub mod extent;
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

pub use approver::{Scripted, approved, block_on};
pub use clock::FakeClock;
pub use leftover::{Marker, leftovers};
pub use sink::{Broken, Recording};
pub use transcript::normalised;
pub use user::{again_as_user, is_alone, is_user};
pub use workspace::Workspace;
