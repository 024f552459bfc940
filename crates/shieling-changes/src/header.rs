//! What is stored of a set beside its layer.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::node::{Node, Time};
use crate::scan::Counts;

/// The name of the header in a set.
pub(crate) const HEADER: &str = "set";

/// The longest header, in bytes.
const LARGEST: usize = 4 << 20;

/// The version of what is stored.
const VERSION: u16 = 2;

/// When changes go into the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// After each command.
    Commit,
    /// Once a person has agreed.
    Review,
    /// Never.
    Discard,
    /// At once: the set holds what was taken back out of the workspace.
    Direct,
}

impl Mode {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Review => "review",
            Self::Discard => "discard",
            Self::Direct => "direct",
        }
    }
}

/// The state of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Its changes wait, or are still being made.
    Waiting,
    /// Its changes wait, and the workspace changed in the same places when they were to be committed.
    Conflict,
    /// Its changes are in the workspace, and can be undone.
    Committed,
    /// Its changes were in the workspace and were taken back. They wait again.
    Undone,
    /// It is being filled from a copy of the workspace, or that was broken off: some of its changes are missing, so
    /// that it cannot be applied.
    Incomplete,
}

impl State {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Conflict => "conflict",
            Self::Committed => "committed",
            Self::Undone => "undone",
            Self::Incomplete => "incomplete",
        }
    }
}

/// What a list shows of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// The workspace that it changes.
    pub workspace: PathBuf,
    /// The mode in which it was made.
    pub mode: Mode,
    /// Its state.
    pub state: State,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// How much changed when it was last looked at.
    pub counts: Counts,
    /// How many of the deleted and added paths were the same thing under another name.
    pub renames: u64,
    /// How many of its paths were held back when it was last looked at.
    pub held_back: u64,
    /// The first line of the command that made it, cut.
    pub command: Option<String>,
    /// Whether a sandbox is working in it.
    pub is_live: bool,
}

/// A set's header.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Header {
    version: u16,
    #[serde(with = "path_bytes")]
    pub(crate) workspace: PathBuf,
    pub(crate) mode: Mode,
    pub(crate) state: State,
    pub(crate) created: Time,
    /// When the last command began: what changed in the workspace later was not seen by it.
    pub(crate) since: Time,
    /// When it was committed.
    pub(crate) committed: Option<Time>,
    /// When a part of it was committed last, while the rest stayed, or what was committed was taken back.
    pub(crate) parted: Option<Time>,
    pub(crate) counts: Counts,
    pub(crate) held_back: u64,
    pub(crate) command: Option<String>,
    /// Stored after the rest, where sets of before have nothing.
    #[serde(skip)]
    pub(crate) renames: u64,
    /// Whether it is filled from a copy of the workspace, whose files have lost their owners. Stored after the rest too.
    #[serde(skip)]
    pub(crate) is_copy: bool,
    /// The patterns of what did not exist for the commands, in the form that the caller gave; `None` if all of the
    /// workspace did. Stored after the rest too.
    #[serde(skip)]
    pub(crate) hidden: Option<Vec<String>>,
}

impl Header {
    pub(crate) fn new(workspace: &Path, mode: Mode, now: Time) -> Self {
        Self {
            version: VERSION,
            workspace: workspace.to_path_buf(),
            mode,
            state: State::Waiting,
            created: now,
            since: now,
            committed: None,
            parted: None,
            counts: Counts::default(),
            held_back: 0,
            command: None,
            renames: 0,
            is_copy: false,
            hidden: None,
        }
    }

    pub(crate) fn read(directory: &Directory, id: &str) -> Result<Self, ChangesError> {
        let bytes = directory.read_some(HEADER, LARGEST as u64).doing("read", HEADER)?;
        let damaged = |what: &str| ChangesError::Damaged {
            id: id.to_owned(),
            what: what.to_owned(),
        };
        let (mut header, rest): (Self, _) =
            postcard::take_from_bytes(&bytes).map_err(|_| damaged("its header cannot be read"))?;
        // Each is missing in headers that were written before it was known, with all after it.
        let mut rest = Rest(rest);
        header.renames = rest.take().map_err(|()| damaged("its header cannot be read"))?;
        header.is_copy = rest.take().map_err(|()| damaged("its header cannot be read"))?;
        header.hidden = rest.take().map_err(|()| damaged("its header cannot be read"))?;
        if header.version != VERSION {
            return Err(damaged("it was made by another version of Shieling"));
        }
        Ok(header)
    }

    pub(crate) fn write(&self, directory: &Directory) -> Result<(), ChangesError> {
        let bytes = postcard::to_allocvec(&(self, self.renames, self.is_copy, &self.hidden))
            .expect("plain data can always be encoded");
        if bytes.len() > LARGEST {
            let error = std::io::Error::new(
                std::io::ErrorKind::FileTooLarge,
                format!("the patterns of hidden paths make it longer than {LARGEST} bytes"),
            );
            return Err(error).doing("write", HEADER);
        }
        directory.replace(HEADER, &bytes).doing("write", HEADER)
    }
}

/// What stands behind a header.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// Takes the next value; the default at the end.
    fn take<T: serde::de::DeserializeOwned + Default>(&mut self) -> Result<T, ()> {
        if self.0.is_empty() {
            return Ok(T::default());
        }
        let (value, rest) = postcard::take_from_bytes(self.0).map_err(drop)?;
        self.0 = rest;
        Ok(value)
    }
}

/// Returns the time by the clock of the file system that a directory is in. Files that change from now on have this
/// time or a later one.
pub(crate) fn now(directory: &Directory) -> Result<Time, ChangesError> {
    directory.unlink_if_there("clock").doing("remove", "clock")?;
    let file = directory.create("clock").doing("create", "clock")?;
    let node = Node::of(&file).doing("look at", "clock")?;
    Ok(node.changed)
}

/// Paths as bytes.
pub(crate) mod path_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().as_bytes().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Ok(PathBuf::from(OsString::from_vec(Vec::<u8>::deserialize(deserializer)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_before_are_read_and_hidden_patterns_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open(place.path()).unwrap();
        let time = now(&directory).unwrap();
        let mut header = Header::new(Path::new("/w"), Mode::Commit, time);
        (header.renames, header.is_copy) = (3, true);
        let olds = [
            (postcard::to_allocvec(&header).unwrap(), 0, false),
            (postcard::to_allocvec(&(&header, 3_u64)).unwrap(), 3, false),
            (postcard::to_allocvec(&(&header, 3_u64, true)).unwrap(), 3, true),
        ];
        for (bytes, renames, is_copy) in olds {
            directory.replace(HEADER, &bytes).unwrap();
            let read = Header::read(&directory, "x").unwrap();
            assert_eq!((read.renames, read.is_copy, read.hidden), (renames, is_copy, None));
        }
        header.hidden = Some(vec![".env".to_owned(), "\0".to_owned()]);
        header.write(&directory).unwrap();
        let read = Header::read(&directory, "x").unwrap();
        assert_eq!(
            (read.renames, read.is_copy, read.hidden),
            (3, true, header.hidden.clone())
        );
        // Cut off in the middle of the patterns.
        let mut bytes = postcard::to_allocvec(&(&header, 3_u64, true, &header.hidden)).unwrap();
        bytes.pop();
        directory.replace(HEADER, &bytes).unwrap();
        let error = Header::read(&directory, "x").unwrap_err();
        assert!(matches!(error, ChangesError::Damaged { .. }), "{error}");
        header.hidden = Some(vec!["x".repeat(LARGEST)]);
        assert!(header.write(&directory).is_err());
    }
}
