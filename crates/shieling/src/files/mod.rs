//! File operations of agents: read, write, edit, patch, list, find, search. Implemented once on top of
//! [`Files`](crate::environment::Files), and the same in every environment.
//!
//! Works on handles that the environment opens, and checks the access to each path by its handle before using it.
//! Knows no policy; starts nothing.

mod response;
mod request;
mod error;
mod access;
mod content_cache;
mod resolve;
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
mod subtree;
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
mod fake_files;
#[cfg(test)]
mod test_workspace;

pub(crate) use access::{Access, AccessFilter, Context, PlannedChange, QueryMeta};
pub(crate) use content_cache::ContentCache;
pub use error::{Candidate, FilesError};
pub use request::{
    DeleteRequest, EditRequest, FileHash, FileRequest, GlobRequest, GrepMode, GrepRequest, Include, ListRequest,
    MoveRequest, PatchRequest, ReadRequest, StatRequest, WriteRequest,
};
pub(crate) use resolve::cut;
pub use response::{
    EditResponse, FileContent, FileInfo, FileResponse, GlobResponse, GrepResponse, Hit, ListResponse, PatchResponse,
    PatchedFile, ReadResponse, WriteResponse,
};
pub(crate) use {delete::plan_delete, patch::plan_patch, relocate::plan_move};
pub(crate) use {edit::plan_edit, glob::find, grep::grep, info::stat, list::list, read::read, write::plan_write};
