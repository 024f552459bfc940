//! From a path that was asked for to a handle that may be used, and to the whole content behind it.
//!
//! The one place in which it is decided that something is not there: what is hidden and what is
//! missing are answered in the same words.

use std::path::{Path, PathBuf};

use super::{Context, FilesError};
use crate::environment::{FileError, Kind, Links, Meta, Node, Spot, Stamp};

/// How much is read at once, in bytes.
pub(super) const CHUNK: usize = 1 << 20;

/// The longest path, in bytes (`PATH_MAX`), and how much of a longer one is told.
const LONGEST: usize = 4_096;
const SHOWN: usize = 100;

/// How often a content is read again that changed while it was read.
const TRIES: usize = 3;

impl Context<'_> {
    /// What stands at a path, if it may be read: the gate is asked about the name itself and about where
    /// it leads.
    ///
    /// # Errors
    /// [`FileError::NotFound`] with the path as it was asked for if one of the two is hidden or missing,
    /// and others.
    pub(crate) fn reach(&self, asked: &Path, links: Links) -> Result<Box<dyn Node>, FilesError> {
        let path = bounded(self.absolute(asked))?;
        let node = |links| {
            self.files
                .node(&path, links)
                .map_err(|error| discreet(*self, asked, error))
        };
        let named = self.visible(node(Links::Keep)?, asked)?;
        if links == Links::Keep || named.meta()?.kind != Kind::Link {
            return self.readable(named);
        }
        let led = self.visible(node(Links::Follow)?, asked)?;
        self.readable(led)
    }

    /// Whether what a handle stands for is hidden.
    pub(crate) fn hides(&self, node: &dyn Node) -> Result<bool, FileError> {
        Ok(self.gate.hides(node.path(), node.meta()?.kind == Kind::Directory))
    }

    fn visible(&self, node: Box<dyn Node>, asked: &Path) -> Result<Box<dyn Node>, FilesError> {
        if self.hides(&*node)? {
            Err(missing(asked))
        } else {
            Ok(node)
        }
    }

    fn readable(&self, node: Box<dyn Node>) -> Result<Box<dyn Node>, FilesError> {
        self.gate.reads(node.path(), &|| node.meta())?;
        Ok(node)
    }
}

/// A place that is not hidden, and what stands there. A link that leads to a file is followed, unless it
/// is to be kept.
///
/// # Errors
/// As [`Context::reach`].
pub(super) fn spot(context: Context<'_>, asked: &Path, links: Links) -> Result<Reached, FilesError> {
    let path = bounded(context.absolute(asked))?;
    if let Ok(named) = context.files.node(&path, Links::Keep) {
        let kind = named.meta()?.kind;
        context.visible(named, asked)?;
        // Also the top of all that can be reached, which no spot stands for.
        if kind == Kind::Directory && links == Links::Follow {
            return Err(FileError::IsDirectory(asked.to_path_buf()).into());
        }
    }
    let spot = context
        .files
        .spot(&path, links)
        .map_err(|error| discreet(context, asked, error))?;
    let current = spot.current()?;
    let kind = current
        .as_ref()
        .map(|node| node.meta())
        .transpose()?
        .map(|meta| meta.kind);
    if context.gate.hides(spot.path(), kind == Some(Kind::Directory)) {
        return Err(missing(asked));
    }
    Ok(Reached { spot, current, kind })
}

/// A place, and what stands there.
pub(super) struct Reached {
    /// The place.
    pub(super) spot: Box<dyn Spot>,
    /// What stands there.
    pub(super) current: Option<Box<dyn Node>>,
    /// What that is.
    pub(super) kind: Option<Kind>,
}

impl Reached {
    /// The file that stands there, if anything does.
    ///
    /// # Errors
    /// If it is no file: a link is one that leads nowhere, since others were followed.
    pub(super) fn file(&self) -> Result<Option<&dyn Node>, FilesError> {
        let path = self.spot.path().to_path_buf();
        match self.kind {
            None => Ok(None),
            Some(Kind::File) => Ok(self.current.as_deref()),
            Some(Kind::Directory) => Err(FileError::IsDirectory(path).into()),
            Some(kind @ (Kind::Fifo | Kind::Socket | Kind::Device)) => Err(FileError::Special { path, kind }.into()),
            Some(Kind::Link) => Err(FilesError::Argument {
                argument: "path",
                why: format!("`{}` is a link that leads nowhere: remove it first", path.display()),
            }),
        }
    }
}

/// The state of what stands at a place.
///
/// # Errors
/// [`FileError::Changed`] if nothing does any more.
pub(super) fn stamp(spot: &dyn Spot) -> Result<Stamp, FileError> {
    match spot.current()? {
        Some(node) => Ok(node.meta()?.stamp),
        None => Err(FileError::Changed(spot.path().to_path_buf())),
    }
}

/// Sees to it that what stands at a place is still what it was.
///
/// # Errors
/// [`FileError::Changed`].
pub(super) fn check(spot: &dyn Spot, expected: Stamp) -> Result<(), FileError> {
    if stamp(spot)? == expected {
        Ok(())
    } else {
        Err(FileError::Changed(spot.path().to_path_buf()))
    }
}

/// The path, if it is no longer than one can be. What follows looks at each part of it.
pub(super) fn bounded(path: PathBuf) -> Result<PathBuf, FileError> {
    match cut(&path) {
        None => Ok(path),
        Some(path) => Err(FileError::BadPath {
            path,
            why: "it is longer than 4,096 bytes, and no path can be",
        }),
    }
}

/// How a path is told that is longer than one can be: by how it begins.
pub(crate) fn cut(path: &Path) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let shown = || format!("{}…", String::from_utf8_lossy(&bytes[..SHOWN])).into();
    (bytes.len() > LONGEST).then(shown)
}

/// That it is not there.
pub(super) fn missing(asked: &Path) -> FilesError {
    FileError::NotFound(asked.to_path_buf()).into()
}

/// The same error, unless it would tell of something hidden that it exists: that something beneath it
/// is no directory, say.
fn discreet(context: Context<'_>, asked: &Path, error: FileError) -> FilesError {
    if matches!(error, FileError::NotFound(_)) {
        return missing(asked);
    }
    let path = context.absolute(asked);
    let hidden = path.ancestors().any(|part| {
        context.gate.hides(part, false)
            || context.files.node(part, Links::Follow).is_ok_and(|node| {
                let is_directory = node.meta().is_ok_and(|meta| meta.kind == Kind::Directory);
                context.gate.hides(node.path(), is_directory)
            })
    });
    if hidden { missing(asked) } else { error.into() }
}

/// A whole content, and the state of the file that it was read from.
pub(super) struct Held {
    /// The bytes.
    pub(super) content: Vec<u8>,
    /// What was known of the file when it was read.
    pub(super) meta: Meta,
}

/// Reads a whole file, if it may be read and has at most `limit` bytes. `done` says what cannot be done
/// with a larger one.
///
/// # Errors
/// What the gate says, [`FilesError::TooLarge`], and [`FileError::Changed`] if the file never stood
/// still.
pub(super) fn load(context: Context<'_>, node: &dyn Node, limit: u64, done: &'static str) -> Result<Held, FilesError> {
    context.gate.reads(node.path(), &|| node.meta())?;
    let mut file = node.open()?;
    for _ in 0..TRIES {
        let before = file.meta()?;
        if before.size > limit {
            return Err(FilesError::TooLarge {
                path: node.path().to_path_buf(),
                size: before.size,
                limit,
                done,
            });
        }
        let size = usize::try_from(before.size).unwrap_or(usize::MAX);
        // One byte more than it should have: a file that has grown is noticed.
        let mut content = vec![0; size.saturating_add(1)];
        let mut filled = 0;
        while filled < content.len() {
            let end = content.len().min(filled + CHUNK);
            match file.read_at(filled as u64, &mut content[filled..end])? {
                0 => break,
                more => filled += more,
            }
        }
        content.truncate(filled);
        if filled == size && file.meta()?.stamp == before.stamp {
            return Ok(Held { content, meta: before });
        }
    }
    Err(FileError::Changed(node.path().to_path_buf()).into())
}
