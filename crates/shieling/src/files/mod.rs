//! What agents do with files: read, write, edit, patch, list, find, search. Written once, above
//! [`Files`](crate::environment::Files), and the same in every environment.
//!
//! Works on handles that its caller has let it have, and asks a gate about each path that it
//! reaches before it uses it. Knows no policy; starts nothing.

mod answer;
mod ask;
mod error;
mod gate;
mod remembered;
mod reach;
mod hash;
mod encoding;
mod image;
mod lines;
mod read;
mod numbered;
mod diff;
mod write;
mod edit;
mod nearest;
mod patch;
mod inside;
mod delete;
mod relocate;
mod info;
mod cursor;
mod list;
mod pattern;
mod ignored;
mod walk;
mod glob;
mod grep;

#[cfg(test)]
mod double;
#[cfg(test)]
mod trial;

pub use answer::{
    Edited, FileAnswer, FileInfo, FileRead, Found, Grepped, Hit, Listed, Patched, PatchedFile, Seen, Written,
};
pub use ask::{
    DeleteAsk, EditAsk, FileAsk, FileHash, Glob, GlobAsk, GrepAsk, GrepMode, ListAsk, MoveAsk, PatchAsk, ReadAsk,
    StatAsk, WriteAsk,
};
pub use error::{Candidate, FilesError};
pub(crate) use gate::{Access, Context, Gate, Look, Planned};
pub(crate) use reach::cut;
pub(crate) use remembered::Remembered;
pub(crate) use {delete::plan_delete, patch::plan_patch, relocate::plan_move};
pub(crate) use {edit::plan_edit, glob::find, grep::grep, info::stat, list::list, read::read, write::plan_write};
