//! Each operation by its own name and with its own answer, for Rust users.

use super::super::Shieling;
use crate::files::{
    DeleteRequest, EditRequest, EditResponse, FileInfo, FileRequest, FileResponse, FilesError, GlobRequest,
    GlobResponse, GrepRequest, GrepResponse, ListRequest, ListResponse, MoveRequest, PatchRequest, PatchResponse,
    ReadRequest, ReadResponse, StatRequest, WriteRequest, WriteResponse,
};

/// A method that asks one thing and gives its answer.
macro_rules! operation {
    ($(#[$doc:meta])* $name:ident, $question:ident($ask:ty) -> $kind:ident($answer:ty)) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// As those of [`Shieling::file`].
        /// # Cancel safety
        /// As [`Shieling::file`].
        ///
        /// # Panics
        /// As [`Shieling::file`].
        pub async fn $name(&self, ask: $ask) -> Result<$answer, FilesError> {
            match self.file(FileRequest::$question(ask)).await? {
                FileResponse::$kind(answer) => Ok(answer),
                other => Err(FilesError::Fault(format!("an answer to another question: {other:?}"))),
            }
        }
    };
}

/// The operations on files, one by one.
///
/// ```no_run
/// use shieling::Shieling;
/// use shieling::files::{EditRequest, FilesError, ReadRequest, FileContent};
///
/// # async fn example(shieling: &Shieling) -> Result<(), FilesError> {
/// let read = shieling.read_file(ReadRequest::new("src/main.rs")).await?;
/// if let FileContent::Text { .. } = &read.content {
///     let edited = shieling
///         .edit_file(EditRequest {
///             path: "src/main.rs".into(),
///             old: "fn main() {}".to_owned(),
///             new: "fn main() { println!(\"hello\"); }".to_owned(),
///             replace_all: false,
///             // Refused if somebody has changed it since.
///             expect: Some(read.hash),
///         })
///         .await?;
///     println!("{}", edited.diff);
/// }
/// # Ok(())
/// # }
/// ```
impl Shieling {
    operation! {
        /// Reads lines of a text, or an image.
        read_file, Read(ReadRequest) -> Read(ReadResponse)
    }
    operation! {
        /// Writes a whole file.
        write_file, Write(WriteRequest) -> Write(WriteResponse)
    }
    operation! {
        /// Replaces text in a file.
        edit_file, Edit(EditRequest) -> Edit(EditResponse)
    }
    operation! {
        /// Changes several files at once, or none.
        apply_patch, Patch(PatchRequest) -> Patch(PatchResponse)
    }
    operation! {
        /// Lists a directory.
        list_files, List(ListRequest) -> List(ListResponse)
    }
    operation! {
        /// Finds files by their names.
        glob, Glob(GlobRequest) -> Glob(GlobResponse)
    }
    operation! {
        /// Searches files.
        grep, Grep(GrepRequest) -> Grep(GrepResponse)
    }
    operation! {
        /// Looks at what something is.
        stat, Stat(StatRequest) -> Info(FileInfo)
    }
    operation! {
        /// Removes something, and tells what it was.
        delete_file, Delete(DeleteRequest) -> Info(FileInfo)
    }
    operation! {
        /// Moves something, and tells where it is now.
        move_file, Move(MoveRequest) -> Info(FileInfo)
    }
}
