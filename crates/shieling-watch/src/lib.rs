//! Finds what commands changed in a directory tree, asks the gate about it, and puts back what it holds back.
//!
//! ```text
//! start ─► first look: what is there, in the background ─► settle: what changed since ─► judged ─► passes, and is remembered
//!                                                            ▲                             └─► kept by the caller, put back
//!                                                            └─ only if something was reported
//! ```
//!
//! What changed is found by the kernel's own stamps: a directory whose `ctime` is another is listed again, a file that matters
//! is looked at by inode and `ctime`, and read if that is too young to tell. No process can set a `ctime`. inotify only says
//! that something changed: without events there is no scan. Where a directory cannot be watched, every scan is a full one.
//!
//! Who changed something cannot be known. The owner says when nothing of the sandbox runs ([`Watch::accept`]): what changed
//! by then is the user's. What was there before the first look is told from what a command made by its `ctime`, and by whether a
//! directory above it was moved, so commands need not wait for that look.
//!
//! Everything is reached by descriptors beneath the root, and no link is followed. The crate starts nothing but threads, and
//! stores nothing.

#![forbid(unsafe_code)]

mod plan;
mod closed;
mod tree;
mod notifier;
mod look;
mod moved;
mod handover;
mod replace;
mod watch;

pub use plan::Plan;
pub use replace::Content;
pub use tree::KEPT;
pub use watch::{Taken, Watch, WatchError, When};
