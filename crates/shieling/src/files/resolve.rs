//! Resolves requested paths to handles that may be used, and reads whole files.
//!
//! The only place that decides whether a path exists for the caller: hidden and missing paths give the same error.

use std::path::{Path, PathBuf};

use super::{Context, FilesError};
use crate::environment::{FileError, Kind, Links, Meta, Node, Stamp, WriteTarget};

/// The size of one read, in bytes.
pub(super) const CHUNK: usize = 1 << 20;

/// The longest path, in bytes (`PATH_MAX`), and the number of bytes of a longer one that an error contains.
const LONGEST: usize = 4_096;
const SHOWN: usize = 100;

/// The number of attempts to read a file that changes while it is read.
const TRIES: usize = 3;

impl Context<'_> {
    /// Opens a path for reading. Checks the access to the path itself and to the target of a link.
    ///
    /// # Errors
    /// [`FileError::NotFound`] with the requested path if the path or the target is hidden or missing, and others.
    pub(crate) fn reach(&self, asked: &Path, links: Links) -> Result<Box<dyn Node>, FilesError> {
        let path = bounded(self.absolute(asked))?;
        let node = |links| {
            self.files
                .node(&path, links)
                .map_err(|error| conceal_hidden(*self, asked, error))
        };
        let named = self.visible(node(Links::Keep)?, asked)?;
        if links == Links::Keep || named.meta()?.kind != Kind::Link {
            return self.readable(named);
        }
        let led = self.visible(node(Links::Follow)?, asked)?;
        self.readable(led)
    }

    /// Returns whether the file of a handle is hidden.
    pub(crate) fn hides(&self, node: &dyn Node) -> Result<bool, FileError> {
        Ok(self.access.hides(node.path(), node.meta()?.kind == Kind::Directory))
    }

    fn visible(&self, node: Box<dyn Node>, asked: &Path) -> Result<Box<dyn Node>, FilesError> {
        if self.hides(&*node)? {
            Err(missing(asked))
        } else {
            Ok(node)
        }
    }

    fn readable(&self, node: Box<dyn Node>) -> Result<Box<dyn Node>, FilesError> {
        self.access.reads(node.path(), &|| node.meta())?;
        Ok(node)
    }
}

/// Opens a path for writing: the name in its directory, and the file that is there now. A link to a file is followed,
/// unless it is to be kept.
///
/// # Errors
/// Those of [`Context::reach`].
pub(super) fn write_target(context: Context<'_>, asked: &Path, links: Links) -> Result<ResolvedTarget, FilesError> {
    let path = bounded(context.absolute(asked))?;
    if let Ok(named) = context.files.node(&path, Links::Keep) {
        let kind = named.meta()?.kind;
        context.visible(named, asked)?;
        // Also the root of all files, which has no directory that contains it.
        if kind == Kind::Directory && links == Links::Follow {
            return Err(FileError::IsDirectory(asked.to_path_buf()).into());
        }
    }
    let write_target = context
        .files
        .write_target(&path, links)
        .map_err(|error| conceal_hidden(context, asked, error))?;
    let current = write_target.current()?;
    let kind = current
        .as_ref()
        .map(|node| node.meta())
        .transpose()?
        .map(|meta| meta.kind);
    if context.access.hides(write_target.path(), kind == Some(Kind::Directory)) {
        return Err(missing(asked));
    }
    Ok(ResolvedTarget {
        write_target,
        current,
        kind,
    })
}

/// A path to write to, and the file that is there now.
pub(super) struct ResolvedTarget {
    /// The name in its directory.
    pub(super) write_target: Box<dyn WriteTarget>,
    /// The file of this name, if it exists.
    pub(super) current: Option<Box<dyn Node>>,
    /// The type of that file.
    pub(super) kind: Option<Kind>,
}

impl ResolvedTarget {
    /// Returns the regular file, or `None` if nothing exists.
    ///
    /// # Errors
    /// If it is not a regular file. A link is a dangling one, since others were followed.
    pub(super) fn file(&self) -> Result<Option<&dyn Node>, FilesError> {
        let path = self.write_target.path().to_path_buf();
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

/// Returns the state of the file with this name.
///
/// # Errors
/// [`FileError::Changed`] if it no longer exists.
pub(super) fn stamp(write_target: &dyn WriteTarget) -> Result<Stamp, FileError> {
    match write_target.current()? {
        Some(node) => Ok(node.meta()?.stamp),
        None => Err(FileError::Changed(write_target.path().to_path_buf())),
    }
}

/// Checks that the file with this name is still in the expected state.
///
/// # Errors
/// [`FileError::Changed`] if it is not.
pub(super) fn check(write_target: &dyn WriteTarget, expected: Stamp) -> Result<(), FileError> {
    if stamp(write_target)? == expected {
        Ok(())
    } else {
        Err(FileError::Changed(write_target.path().to_path_buf()))
    }
}

/// Checks that a path is not too long, before the work of looking at each of its components.
pub(super) fn bounded(path: PathBuf) -> Result<PathBuf, FileError> {
    match cut(&path) {
        None => Ok(path),
        Some(path) => Err(FileError::BadPath {
            path,
            why: "it is longer than 4,096 bytes, and no path can be",
        }),
    }
}

/// Shortens a path that is too long, for display. Returns `None` if it is not.
pub(crate) fn cut(path: &Path) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let shown = || format!("{}…", String::from_utf8_lossy(&bytes[..SHOWN])).into();
    (bytes.len() > LONGEST).then(shown)
}

/// Returns the error for a hidden or missing path.
pub(super) fn missing(asked: &Path) -> FilesError {
    FileError::NotFound(asked.to_path_buf()).into()
}

/// Replaces an error that would reveal that a hidden path exists, such as that a component is not a directory.
fn conceal_hidden(context: Context<'_>, asked: &Path, error: FileError) -> FilesError {
    if matches!(error, FileError::NotFound(_)) {
        return missing(asked);
    }
    let path = context.absolute(asked);
    let hidden = path.ancestors().any(|part| {
        context.access.hides(part, false)
            || context.files.node(part, Links::Follow).is_ok_and(|node| {
                let is_directory = node.meta().is_ok_and(|meta| meta.kind == Kind::Directory);
                context.access.hides(node.path(), is_directory)
            })
    });
    if hidden { missing(asked) } else { error.into() }
}

/// The content of a file, and its metadata at the time of the read.
pub(super) struct LoadedFile {
    /// The content.
    pub(super) content: Vec<u8>,
    /// The metadata.
    pub(super) meta: Meta,
}

/// Reads a whole file of at most `limit` bytes. `done` names the operation in the error for a larger file.
///
/// # Errors
/// A refusal by the access check, [`FilesError::TooLarge`], and [`FileError::Changed`] if the file keeps changing.
pub(super) fn load(
    context: Context<'_>,
    node: &dyn Node,
    limit: u64,
    done: &'static str,
) -> Result<LoadedFile, FilesError> {
    context.access.reads(node.path(), &|| node.meta())?;
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
        // One byte more than the size, to notice that the file has grown.
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
            return Ok(LoadedFile { content, meta: before });
        }
    }
    Err(FileError::Changed(node.path().to_path_buf()).into())
}
