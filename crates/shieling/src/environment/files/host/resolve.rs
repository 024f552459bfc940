//! From a path to what stands there, or to where it would stand.
//!
//! The kernel resolves a path in one call. Only where it says no is the path walked here, to learn how
//! far it goes: whether it leads outside is told before anything else of it is, so that a path tells
//! nothing of what may not be reached.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{OFlags, ResolveFlags};
use rustix::io::Errno;

use super::super::{FileError, Kind, Links};
use super::error::refused;
use super::stat::hold;
use super::temporary::Temporary;
use super::view::{Handle, TRIES, View};

/// How many links are followed on one path, as the kernel does.
const MOST_LINKS: usize = 40;
/// The longest path, in bytes, as the kernel has it.
const LONGEST: usize = 4095;

/// Where a path leads.
#[derive(Debug)]
pub(super) enum Located {
    /// To this.
    There(Handle),
    /// To something that is not there.
    Missing {
        /// The deepest directory on the way that is.
        directory: Handle,
        /// What is missing beneath it: at least one name.
        names: Vec<OsString>,
    },
}

impl View {
    /// Where a path leads.
    ///
    /// # Errors
    /// [`FileError`], with the path that was asked for and no other.
    pub(super) fn locate(&self, path: &Path, links: Links) -> Result<Located, FileError> {
        check(path)?;
        for tried in 1..=TRIES {
            match self.resolve(path, last(links), ResolveFlags::empty()) {
                Ok(file) => {
                    // One that was replaced in this moment is gone, or about to go by the name of
                    // what replaced it: what stands there now is meant.
                    match self.admit(file, path)? {
                        // Nobody replaces that often: it is a file that was left behind, and a link to it.
                        Some(handle) if tried == TRIES || !is_replaced(&handle.path, path) => {
                            return Ok(Located::There(handle));
                        }
                        Some(_) | None => {}
                    }
                }
                Err(errno) => match self.walk(path, links, errno) {
                    // Somebody has made or removed something on the way in this moment.
                    Err(FileError::Changed(_)) if tried < TRIES => {}
                    walked => return walked,
                },
            }
        }
        Err(FileError::Changed(path.to_path_buf()))
    }

    /// How far a path goes that does not lead to anything.
    fn walk(&self, asked: &Path, links: Links, why: Errno) -> Result<Located, FileError> {
        let mut path = asked.to_path_buf();
        for _ in 0..=MOST_LINKS {
            let (directory, names) = self.deepest(&path, asked)?;
            let Some((first, rest)) = names.split_first() else {
                if why == Errno::NOTDIR {
                    return Err(FileError::NotADirectory(asked.to_path_buf()));
                }
                // It is there by now.
                let file = self.resolve(&path, last(links), ResolveFlags::empty());
                return self.there(file.map_err(|errno| refused(errno, "reach", asked))?, asked);
            };
            if directory.stat.kind() != Kind::Directory {
                return Err(FileError::NotADirectory(asked.to_path_buf()));
            }
            let found = hold(&directory.file, first).map_err(|errno| refused(errno, "look at", asked))?;
            let Some((file, stat)) = found else {
                // The kernel goes nowhere from what is not there, not even back.
                if names.iter().any(|name| name == "..") {
                    return Err(FileError::NotFound(asked.to_path_buf()));
                }
                return Ok(Located::Missing { directory, names });
            };
            let last = rest.is_empty();
            if stat.kind() != Kind::Link || (last && links == Links::Keep) {
                return if last {
                    self.there(file, asked)
                } else if why == Errno::NOENT {
                    // A directory that was not there a moment ago.
                    Err(FileError::Changed(asked.to_path_buf()))
                } else {
                    Err(refused(why, "reach", asked))
                };
            }
            self.check_kept(&file, &stat, asked)?;
            let target =
                rustix::fs::readlinkat(&file, c"", Vec::new()).map_err(|errno| refused(errno, "read", asked))?;
            path = directory.path.join(OsStr::from_bytes(target.as_bytes()));
            path.extend(rest);
        }
        Err(FileError::LinkLoop(asked.to_path_buf()))
    }

    fn there(&self, file: OwnedFd, asked: &Path) -> Result<Located, FileError> {
        let handle = self.admit(file, asked)?;
        handle
            .map(Located::There)
            .ok_or_else(|| FileError::Changed(asked.to_path_buf()))
    }

    /// The deepest place on a path that is there, and what is missing beneath it.
    fn deepest(&self, path: &Path, asked: &Path) -> Result<(Handle, Vec<OsString>), FileError> {
        let names: Vec<&OsStr> = path
            .components()
            .filter(|part| !matches!(part, Component::RootDir | Component::CurDir))
            .map(Component::as_os_str)
            .collect();
        for there in (0..=names.len()).rev() {
            let (before, missing) = names.split_at(there);
            let prefix: PathBuf = std::iter::once(OsStr::new("/")).chain(before.iter().copied()).collect();
            match self.resolve(&prefix, OFlags::empty(), ResolveFlags::empty()) {
                Ok(file) => {
                    if let Some(handle) = self.admit(file, asked)? {
                        return Ok((handle, missing.iter().map(|&name| name.to_owned()).collect()));
                    }
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NAMETOOLONG) => {}
                Err(errno) => return Err(refused(errno, "reach", asked)),
            }
        }
        Err(FileError::NotFound(asked.to_path_buf()))
    }
}

/// Whether what was asked for by a path has the name of a [`Temporary`] by now.
fn is_replaced(path: &Path, asked: &Path) -> bool {
    path.file_name() != asked.file_name() && path.file_name().is_some_and(Temporary::is_name)
}

/// How the last name of a path is opened.
fn last(links: Links) -> OFlags {
    match links {
        Links::Follow => OFlags::empty(),
        Links::Keep => OFlags::NOFOLLOW,
    }
}

/// Whether this can be a path at all.
fn check(path: &Path) -> Result<(), FileError> {
    let bytes = path.as_os_str().as_bytes();
    let why = if !path.is_absolute() {
        "it is not absolute"
    } else if bytes.contains(&0) {
        "it holds a NUL byte"
    } else if bytes.len() > LONGEST {
        "it is longer than the system allows"
    } else {
        return Ok(());
    };
    Err(FileError::BadPath {
        path: path.to_path_buf(),
        why,
    })
}

/// Whether this can be one name in a directory.
pub(super) fn check_name(name: &OsStr, directory: &Path) -> Result<(), FileError> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') || bytes.contains(&0) {
        return Err(FileError::BadPath {
            path: directory.join(name),
            why: "it is not one name in a directory",
        });
    }
    Ok(())
}
