//! What agents do with files: read, write, edit, patch, list, find, search. Written once, above
//! [`Files`](crate::environment::Files), and the same in every environment.
//!
//! Works on handles that its caller has let it have, and asks a [`Gate`] about each path that it
//! reaches before it uses it. Knows no policy; starts nothing.

mod ask;
mod cursor;
mod error;
mod gate;
mod glob;
mod grep;
mod ignored;
mod info;
mod list;
mod pattern;
mod asked;
mod remembered;
#[cfg(test)]
mod trial;
mod walk;

pub use ask::{
    DeleteAsk, EditAsk, Edited, FileAnswer, FileAsk, FileHash, FileInfo, FileRead, Found, Glob, GlobAsk, GrepAsk,
    GrepMode, Grepped, Hit, ListAsk, Listed, MoveAsk, PatchAsk, Patched, PatchedFile, ReadAsk, Seen, StatAsk, WriteAsk,
    Written,
};
pub use error::{Candidate, FilesError};
#[expect(unused_imports, reason = "each operation uses its part")]
pub(crate) use gate::{Access, Context, Gate, Planned};
pub(crate) use remembered::Remembered;
#[expect(unused_imports, reason = "the facade calls them")]
pub(crate) use {glob::find, grep::grep, info::stat, list::list};
