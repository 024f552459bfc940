//! What can go wrong, as facts.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a staged workspace. Unless it says otherwise, workspace and set are as they were.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangesError {
    /// A file or directory could not be read or changed.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Directories nest deeper than a set can have.
    #[error("`{}` is nested deeper than {levels} directories", beginning(path))]
    TooDeep {
        /// The first path beyond the bound, relative to the workspace.
        path: PathBuf,
        /// The bound.
        levels: usize,
    },
    /// The set has more changes than allowed.
    #[error(
        "more than {limit} paths changed, which is as many as one change set may hold; remove some in the sandbox, make what is \
         not for the workspace in `/tmp`, or use `--changes direct`"
    )]
    TooMany {
        /// The bound.
        limit: u64,
    },
    /// The files of the set hold more than allowed.
    #[error(
        "the changed files hold more than the {} that one change set may hold, the largest that was found `{}` with {}; remove \
         or shorten it in the sandbox, write what is not for the workspace into `/tmp`, or use `--changes direct`",
        readable(*.limit), path.display(), readable(*.bytes)
    )]
    TooLarge {
        /// The bound, in bytes of blocks.
        limit: u64,
        /// The largest file of those that were counted until then, relative to the workspace.
        path: PathBuf,
        /// The bytes of blocks that it holds.
        bytes: u64,
    },
    /// The workspace changed while the set was applied. What had been applied was taken back.
    #[error("`{}` changed while the set was applied", path.display())]
    Moving {
        /// The path, relative to the workspace.
        path: PathBuf,
    },
    /// Paths changed since the set was committed, so that undoing it would lose that.
    #[error("{} path(s) changed since the set was committed", paths.len())]
    ChangedSince {
        /// The first of them, relative to the workspace.
        paths: Vec<PathBuf>,
    },
    /// Undoing the set would make something run that was written since.
    #[error("`{}` cannot be put back", path.display())]
    Completes {
        /// What would be put back, relative to the workspace.
        path: PathBuf,
        /// What git would do.
        because: String,
    },
    /// No set has this id.
    #[error("no change set `{id}`")]
    Unknown {
        /// The id.
        id: String,
    },
    /// The set is in a state in which this cannot be done.
    #[error("the change set `{id}` is in the state `{state}`")]
    WrongState {
        /// The id.
        id: String,
        /// The state, as a word.
        state: &'static str,
    },
    /// The set is being filled, or that was broken off.
    #[error("the change set `{id}` is incomplete: {}", incomplete(*.is_live))]
    Incomplete {
        /// The id.
        id: String,
        /// Whether it is still being filled.
        is_live: bool,
    },
    /// The set was made by commands for which a part of the workspace did not exist, and whoever judges it does not say
    /// which.
    #[error("the change set `{id}` cannot be judged: paths were hidden from its commands, and it is not known which")]
    HiddenUnknown {
        /// The id.
        id: String,
    },
    /// A sandbox works in the set.
    #[error("a sandbox is working in the change set `{id}`")]
    Busy {
        /// The id.
        id: String,
    },
    /// Another commit in the same workspace did not end in time.
    #[error("another commit in `{}` has been running for {seconds} s", workspace.display())]
    Locked {
        /// The workspace.
        workspace: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The set and the workspace are on different file systems or mounts, so that nothing can be moved.
    #[error("`{}` and `{}` are not in the same mount, so that files cannot be moved between them", store.display(), workspace.display())]
    ApartMounts {
        /// The directory of the sets.
        store: PathBuf,
        /// The workspace.
        workspace: PathBuf,
    },
    /// The file system keeps no attributes of users, in which an overlay says what a directory hides.
    #[error("the file system of `{}` keeps no user attributes (user.*), which a staged workspace needs", store.display())]
    NoAttributes {
        /// The directory of the sets.
        store: PathBuf,
    },
    /// What is stored of a set cannot be read.
    #[error("the change set `{id}` is damaged: {what}")]
    Damaged {
        /// The id.
        id: String,
        /// What is wrong.
        what: String,
    },
    /// What was to be committed is not what a person was shown: the set or the workspace changed meanwhile.
    #[error("it is no longer what was shown")]
    NotAsShown,
    /// A look at the set was ended, since the sandbox ends.
    #[error(
        "the sandbox ends, and the changes were not looked at within the time for that; they are kept in the change set, and \
         `shieling changes list` names it"
    )]
    Stopped,
    /// Nothing in the set is at the given path.
    #[error("the change set has nothing at `{}`", path.display())]
    NothingThere {
        /// The path, relative to the workspace.
        path: PathBuf,
    },
}

/// A number of bytes as the largest unit of which it has one has it, rounded down to tenths.
fn readable(bytes: u64) -> String {
    let units = [
        (1_u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => match (bytes % unit).saturating_mul(10) / unit {
            0 => format!("{} {name}", bytes / unit),
            tenths => format!("{}.{tenths} {name}", bytes / unit),
        },
        None => format!("{bytes} bytes"),
    }
}

/// The beginning of a path that is too long to be told.
fn beginning(path: &Path) -> String {
    const TOLD: usize = 200;
    let whole = path.display().to_string();
    match whole.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}

fn incomplete(is_live: bool) -> &'static str {
    match is_live {
        true => "commands still work on a copy of its workspace, and their changes are stored when that ends",
        false => "copying the changes into it was interrupted, and some of them are missing",
    }
}

/// Names what was being done when an operation failed.
pub(crate) trait While<T> {
    /// Adds it.
    fn doing(self, doing: &'static str, path: impl AsRef<Path>) -> Result<T, ChangesError>;
}

impl<T, E: Into<io::Error>> While<T> for Result<T, E> {
    fn doing(self, doing: &'static str, path: impl AsRef<Path>) -> Result<T, ChangesError> {
        self.map_err(|error| ChangesError::Io {
            doing,
            path: path.as_ref().to_path_buf(),
            source: error.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_deep_is_not_told_whole() {
        let path = PathBuf::from("d/".repeat(300));
        let told = ChangesError::TooDeep { path, levels: 256 }.to_string();
        assert!(
            told.len() < 260 && told.contains("…` is nested deeper than 256"),
            "{told}"
        );
    }
}
