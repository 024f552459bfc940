//! Staged workspaces: reads what a private layer (the upper directory of an overlay) changes in a workspace, judges it,
//! and moves it into the workspace, all of it or nothing.
//!
//! ```text
//! Store ─► ChangeSet: upper/ ─► scan ─► Change, one by one ─► judge (shieling-gate) ─► held back
//!                                 │                                                    └► stays in the set
//!                                 └─► plan ─► journal ─► apply by rename ─► committed ─► undo
//! ```
//!
//! A set is a directory: the layer, a header, and while it is applied a plan and a journal. Its changes are always
//! worked out from the layer and the workspace as they are, so that a set which is killed at any point describes
//! itself. Everything is reached by descriptors, and no link is followed.
//!
//! The crate mounts nothing and starts nothing. Overlays are read as Linux writes them with `userxattr`: whiteouts are
//! devices 0/0 or empty files with an attribute, opaque directories have `user.overlay.opaque`, and there are no
//! redirects.
//!
//! # Bounds
//! Contents are compared and copied through a buffer. A set has at most [`Limits::entries`] changes and
//! [`Limits::bytes`] bytes, and directories nest [`LEVELS`] levels at most; more is an error that names the bound.
//!
//! # What is lost
//! A file with several names that is modified keeps its old content under its other names. The times of directories are
//! not carried over. Nothing is synchronised to the disk: a set survives killed processes, and not a crash of the
//! machine in the middle of a commit.

#![forbid(unsafe_code)]

mod error;
mod node;
mod directory;
mod lock;
mod scan;
mod tree;
mod renames;
mod diff;
mod plan;
mod header;
mod base;
mod fingerprint;
mod shown;
mod stamp;
mod set;
mod apply;
mod copied;
mod held;
mod owners;
mod refresh;
mod removal;
mod discarded;
mod rules;
mod snapshot;
mod stop;
mod store;
mod undo;
mod usage;

pub use base::CopyRecorder;
pub use diff::{Diff, DiffLimits};
pub use directory::LEVELS;
pub use error::ChangesError;
pub use fingerprint::Fingerprint;
pub use header::{Mode, State, Summary};
pub use held::{HIDDEN, Held, OWNER};
pub use node::{Kind, Node};
pub use refresh::Shadows;
pub use renames::Rename;
pub use rules::{Matcher, RULE, Rule};
pub use scan::{Action, Change, Counts};
pub use set::{ChangeSet, Choice, Committed, Conflict, Judged, Limits, Put, Stored, Surroundings};
pub use shown::Shown;
pub use snapshot::UNCOPIED;
pub use stamp::Stamp;
pub use stop::Stop;
pub use store::{Frozen, Store};
pub use usage::Usage;
