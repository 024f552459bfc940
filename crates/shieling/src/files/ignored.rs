//! Ignore files: which parts of a tree `.gitignore` and similar files exclude.
//!
//! In each directory `.gitignore`, `.ignore` and, at the root of a repository, `.git/info/exclude` are honoured,
//! whether git is used or not. So are those of the parent directories, up to the workspace. As in git, deeper files
//! take precedence, a nested repository starts afresh, and a link is not an ignore file. As in other search tools,
//! `.ignore` takes precedence over `.gitignore`. The user's own ignore files are not read.

use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{Context, FilesError};
use crate::environment::{Entry, FileError, Kind, Links, Node};

/// The largest ignore file that is honoured, in bytes.
const LARGEST: u64 = 256 << 10;

/// The longest line of an ignore file, in bytes: longer than any path that it could match.
const LONGEST: usize = 4 << 10;

/// The largest number of nested directories with ignore files.
const DEEPEST: usize = 128;

/// The ignore files that apply in a directory.
#[derive(Clone, Default)]
pub(super) struct Ignored {
    /// One level for each directory with ignore files, outermost first. It is not a linked list, whose drop would
    /// need a stack as deep as the tree.
    levels: Arc<[Arc<Level>]>,
}

/// The ignore files of one directory.
struct Level {
    git: Gitignore,
    exclude: Gitignore,
    other: Gitignore,
    /// Whether a repository begins here, so that the `.gitignore` files above do not apply.
    repository: bool,
}

/// Ignore files, and the number of those that could not be read.
pub(super) type Counted = (Ignored, u64);

impl Ignored {
    /// Reads the ignore files of the parent directories, up to the workspace.
    pub(super) fn above(context: Context<'_>, searched: &dyn Node) -> Counted {
        let mut found = (Self::default(), 0);
        let Ok(mut node) = context.files.node(context.workspace, Links::Follow) else {
            return found;
        };
        let Ok(below) = searched.path().strip_prefix(node.path()).map(Path::to_path_buf) else {
            return found;
        };
        for name in below.components() {
            let (above, unread) = found.0.with(context, &*node, None);
            found = (above, found.1 + unread);
            // Opened one component at a time by handle, so that no link leads elsewhere.
            match node.child(name.as_os_str()) {
                Ok(child) => node = child,
                Err(_) => break,
            }
        }
        found
    }

    /// Adds the ignore files of a directory below, whose entries may be known.
    pub(super) fn with(&self, context: Context<'_>, directory: &dyn Node, entries: Option<&[Entry]>) -> Counted {
        let has = |name: &str| entries.is_none_or(|entries| entries.iter().any(|entry| entry.name == name));
        let mut unread = 0;
        let mut read = |names: &[&str]| {
            if !has(names[0]) {
                return Gitignore::empty();
            }
            rules(context, directory, names).unwrap_or_else(|why| {
                unread += u64::from(matches!(why, Unread::Unreadable));
                Gitignore::empty()
            })
        };
        let level = Level {
            git: read(&[".gitignore"]),
            exclude: read(&[".git", "info", "exclude"]),
            other: read(&[".ignore"]),
            repository: has(".git") && directory.child(".git".as_ref()).is_ok(),
        };
        let silent = level.git.is_empty() && level.exclude.is_empty() && level.other.is_empty();
        if silent && (!level.repository || self.levels.is_empty()) {
            return (self.clone(), unread);
        }
        if self.levels.len() >= DEEPEST {
            return (self.clone(), unread + 1);
        }
        let levels = self.levels.iter().cloned().chain([Arc::new(level)]).collect();
        (Self { levels }, unread)
    }

    /// Returns whether a path is excluded.
    pub(super) fn leaves_out(&self, path: &Path, is_directory: bool) -> bool {
        let others = self.levels.iter().rev().map(|level| &level.other);
        verdict(others, path, is_directory)
            .or_else(|| verdict(self.of_git().map(|level| &level.git), path, is_directory))
            .or_else(|| verdict(self.of_git().map(|level| &level.exclude), path, is_directory))
            .unwrap_or(false)
    }

    /// Iterates over the levels from the innermost to the root of the repository.
    fn of_git(&self) -> impl Iterator<Item = &Level> {
        let mut within = true;
        self.levels.iter().rev().map_while(move |level| {
            let here = within;
            within &= !level.repository;
            here.then_some(&**level)
        })
    }
}

/// Returns the decision of the first ignore file that has one.
fn verdict<'a>(files: impl Iterator<Item = &'a Gitignore>, path: &Path, is_directory: bool) -> Option<bool> {
    files
        .filter_map(|file| match file.matched(path, is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        })
        .next()
}

/// Why an ignore file has no rules.
enum Unread {
    /// It does not exist, or is not a regular file.
    Missing,
    /// It exists but cannot be honoured.
    Unreadable,
}

impl From<FileError> for Unread {
    fn from(error: FileError) -> Self {
        match error {
            FileError::NotFound(_) | FileError::NotADirectory(_) => Self::Missing,
            _other => Self::Unreadable,
        }
    }
}

/// Reads the rules of one ignore file.
fn rules(context: Context<'_>, directory: &dyn Node, names: &[&str]) -> Result<Gitignore, Unread> {
    let content = content(context, directory, names)?;
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&content);
    let mut builder = GitignoreBuilder::new(directory.path());
    for line in content.split(|byte| *byte == b'\n') {
        // An invalid line excludes nothing; the other lines still apply.
        if line.len() <= LONGEST
            && let Ok(line) = std::str::from_utf8(line)
        {
            drop(builder.add_line(None, &as_git_reads(line)));
        }
    }
    builder.build().map_err(|_| Unread::Unreadable)
}

/// Escapes braces, which git takes literally.
fn as_git_reads(line: &str) -> String {
    let mut escaped = false;
    let mut read = String::with_capacity(line.len());
    for character in line.chars() {
        if matches!(character, '{' | '}') && !escaped {
            read.push('\\');
        }
        escaped = character == '\\' && !escaped;
        read.push(character);
    }
    read
}

fn content(context: Context<'_>, directory: &dyn Node, names: &[&str]) -> Result<Vec<u8>, Unread> {
    let mut node: Option<Box<dyn Node>> = None;
    for name in names {
        let next = node.as_deref().unwrap_or(directory).child(name.as_ref())?;
        if context.hides(&*next)? {
            return Err(Unread::Missing);
        }
        node = Some(next);
    }
    let node = node.ok_or(Unread::Missing)?;
    if node.meta()?.kind != Kind::File {
        return Err(Unread::Missing);
    }
    if let Err(error) = context.access.reads(node.path(), &|| node.meta()) {
        return Err(match unreadable(&error) {
            0 => Unread::Missing,
            _counted => Unread::Unreadable,
        });
    }
    let mut file = node.open()?;
    let size = file.meta()?.size;
    if size > LARGEST {
        return Err(Unread::Unreadable);
    }
    let mut content = vec![0; size as usize];
    let read = file.read_at(0, &mut content)?;
    content.truncate(read);
    Ok(content)
}

/// Returns 1 if this error means that something could not be read. Files that vanished or are hidden do not count.
pub(super) fn unreadable(error: &FilesError) -> u64 {
    u64::from(!matches!(error, FilesError::File(FileError::NotFound(_))))
}
