//! Each operation by its own name and with its own answer, for Rust users.

use super::super::Shieling;
use crate::files::{
    DeleteAsk, EditAsk, Edited, FileAnswer, FileAsk, FileInfo, FileRead, FilesError, Found, GlobAsk, GrepAsk, Grepped,
    ListAsk, Listed, MoveAsk, PatchAsk, Patched, ReadAsk, StatAsk, WriteAsk, Written,
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
            match self.file(FileAsk::$question(ask)).await? {
                FileAnswer::$kind(answer) => Ok(answer),
                other => Err(FilesError::Fault(format!("an answer to another question: {other:?}"))),
            }
        }
    };
}

/// The operations on files, one by one.
///
/// ```no_run
/// use shieling::Shieling;
/// use shieling::files::{EditAsk, FilesError, ReadAsk, Seen};
///
/// # async fn example(shieling: &Shieling) -> Result<(), FilesError> {
/// let read = shieling.read_file(ReadAsk::new("src/main.rs")).await?;
/// if let Seen::Text { .. } = &read.seen {
///     let edited = shieling
///         .edit_file(EditAsk {
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
        read_file, Read(ReadAsk) -> Read(FileRead)
    }
    operation! {
        /// Writes a whole file.
        write_file, Write(WriteAsk) -> Written(Written)
    }
    operation! {
        /// Replaces text in a file.
        edit_file, Edit(EditAsk) -> Edited(Edited)
    }
    operation! {
        /// Changes several files at once, or none.
        apply_patch, Patch(PatchAsk) -> Patched(Patched)
    }
    operation! {
        /// Lists a directory.
        list_files, List(ListAsk) -> Listed(Listed)
    }
    operation! {
        /// Finds files by their names.
        glob, Glob(GlobAsk) -> Found(Found)
    }
    operation! {
        /// Searches files.
        grep, Grep(GrepAsk) -> Grepped(Grepped)
    }
    operation! {
        /// Looks at what something is.
        stat, Stat(StatAsk) -> Info(FileInfo)
    }
    operation! {
        /// Removes something, and tells what it was.
        delete_file, Delete(DeleteAsk) -> Info(FileInfo)
    }
    operation! {
        /// Moves something, and tells where it is now.
        move_file, Move(MoveAsk) -> Info(FileInfo)
    }
}
