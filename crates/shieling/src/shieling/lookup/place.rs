//! Where facts are looked up: on this host, or in the files of an environment whose commands are no
//! processes of this host, so that nothing of the host would say anything about them.
#![expect(
    clippy::disallowed_methods,
    reason = "facts are looked up here, so that policy and approval need not"
)]

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use sha2::{Digest as _, Sha256};

use crate::environment::{Ability, Environment, FileError, Files, Kind, Links, Node};
use crate::request::Digest;

/// How much of a file is read at once.
const PIECE: usize = 64 * 1024;

/// Where facts are looked up.
pub(in crate::shieling) enum Place {
    /// On this host.
    Host,
    /// In these files.
    Files(Arc<dyn Files>),
    /// Nowhere: what would have to be looked up is not known.
    Nowhere,
}

impl Place {
    /// Where the commands of an environment see files, as far as that can be had without waiting.
    pub(in crate::shieling) fn of(environment: &dyn Environment) -> Self {
        if environment.capabilities().abilities.contains(&Ability::Processes) {
            return Self::Host;
        }
        let mut files = environment.files();
        match files.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(files)) => Self::Files(files),
            Poll::Ready(Err(_)) | Poll::Pending => Self::Nowhere,
        }
    }

    /// Whether a file is there.
    pub(super) fn is_file(&self, path: &Path) -> bool {
        match self {
            Self::Host => path.is_file(),
            Self::Files(_) | Self::Nowhere => self.kind(path) == Some(Kind::File),
        }
    }

    /// Whether a directory is there.
    pub(super) fn is_directory(&self, path: &Path) -> bool {
        match self {
            Self::Host => path.is_dir(),
            Self::Files(_) | Self::Nowhere => self.kind(path) == Some(Kind::Directory),
        }
    }

    /// A path without links, if something is there.
    pub(super) fn real(&self, path: &Path) -> Option<PathBuf> {
        match self {
            Self::Host => path.canonicalize().ok(),
            Self::Files(_) | Self::Nowhere => Some(self.node(path)?.path().to_path_buf()),
        }
    }

    /// The first names in a directory; nothing if it cannot be read.
    pub(super) fn names(&self, directory: &Path, most: usize) -> Option<Vec<OsString>> {
        match self {
            Self::Host => {
                let entries = fs::read_dir(directory).ok()?.take(most);
                entries.map(|entry| Some(entry.ok()?.file_name())).collect()
            }
            Self::Files(_) | Self::Nowhere => {
                let entries = self.node(directory)?.entries().ok()?.into_iter().take(most);
                Some(entries.map(|entry| entry.name).collect())
            }
        }
    }

    /// The first names in a directory, each with whether it is a directory; nothing if it cannot be read.
    pub(super) fn entries(&self, directory: &Path, most: usize) -> Option<Vec<(OsString, bool)>> {
        match self {
            Self::Host => {
                let entries = fs::read_dir(directory).ok()?.take(most);
                let entry = |entry: io::Result<fs::DirEntry>| {
                    let entry = entry.ok()?;
                    let kind = entry.file_type().ok()?;
                    let is_directory = kind.is_dir() || kind.is_symlink() && entry.path().is_dir();
                    Some((entry.file_name(), is_directory))
                };
                entries.map(entry).collect()
            }
            Self::Files(_) | Self::Nowhere => {
                let names = self.names(directory, most)?.into_iter();
                Some(
                    names
                        .map(|name| (name.clone(), self.is_directory(&directory.join(name))))
                        .collect(),
                )
            }
        }
    }

    /// What is in a file of this host, if it is no larger than this.
    pub(super) fn bytes(&self, path: &Path, most: u64) -> Option<Vec<u8>> {
        match self {
            Self::Host => {
                let found = fs::metadata(path).ok()?;
                let fits = found.is_file() && found.len() <= most;
                fits.then(|| fs::read(path).ok()).flatten()
            }
            Self::Files(_) | Self::Nowhere => None,
        }
    }

    /// What is in a file, or that there is none.
    pub(super) fn digest(&self, path: &Path, budget: &mut u64) -> Digest {
        match self {
            Self::Host => on_host(path, budget),
            Self::Files(_) | Self::Nowhere => match self.node(path) {
                None => Digest::of(b"shieling: no file"),
                Some(node) => of_node(&*node, budget),
            },
        }
    }

    fn kind(&self, path: &Path) -> Option<Kind> {
        Some(self.node(path)?.meta().ok()?.kind)
    }

    fn node(&self, path: &Path) -> Option<Box<dyn Node>> {
        match self {
            Self::Files(files) => files.node(path, Links::Follow).ok(),
            Self::Host | Self::Nowhere => None,
        }
    }
}

/// What is in a file of an environment, known by its stamp where that is too much.
fn of_node(node: &dyn Node, budget: &mut u64) -> Digest {
    let known_by = |stamp: [u64; 6]| Digest::of(format!("shieling: {stamp:?}").as_bytes());
    let meta = match node.meta() {
        Ok(meta) if meta.kind == Kind::File => meta,
        Ok(_) | Err(_) => return Digest::of(b"shieling: no regular file"),
    };
    if meta.size > *budget {
        return known_by(meta.stamp.0);
    }
    match read(node, *budget) {
        Ok((digest, length)) => {
            *budget -= length;
            digest
        }
        Err(_) => known_by(meta.stamp.0),
    }
}

fn read(node: &dyn Node, bound: u64) -> Result<(Digest, u64), FileError> {
    let mut content = node.open()?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; PIECE];
    let mut length = 0;
    loop {
        let room = usize::try_from(bound - length).unwrap_or(PIECE).min(PIECE);
        match content.read_at(length, &mut buffer[..room])? {
            0 => return Ok((Digest(hasher.finalize().into()), length)),
            read => {
                hasher.update(&buffer[..read]);
                length += read as u64;
            }
        }
    }
}

/// What is in a file, or that there is none. Does not wait for pipes and opens no device.
fn on_host(path: &Path, budget: &mut u64) -> Digest {
    let Ok(found) = fs::metadata(path) else {
        return Digest::of(b"shieling: no file");
    };
    if !found.is_file() {
        return Digest::of(b"shieling: no regular file");
    }
    let known_by = format!(
        "shieling: {} {} {} {}.{} {}.{}",
        found.dev(),
        found.ino(),
        found.len(),
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec()
    );
    if found.len() > *budget {
        return Digest::of(known_by.as_bytes());
    }
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    match opened.and_then(|file| content(file, *budget)) {
        Ok((digest, length)) => {
            *budget -= length.min(*budget);
            digest
        }
        // It may be executable and not readable.
        Err(_) => Digest::of(known_by.as_bytes()),
    }
}

fn content(file: File, bound: u64) -> std::io::Result<(Digest, u64)> {
    let mut file = file.take(bound);
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; PIECE];
    let mut length = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((Digest(hasher.finalize().into()), length)),
            read => {
                hasher.update(&buffer[..read]);
                length += read as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_tells_contents_apart_and_waits_for_no_pipe() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("file");
        let now = |budget: u64| on_host(&path, &mut budget.clone());
        let absent = now(100);
        fs::write(&path, "one").expect("writable");
        let one = now(100);
        assert_eq!(one, Digest::of(b"one"));
        fs::write(&path, "two").expect("writable");
        assert!(now(100) != one && now(100) != absent);
        assert!(now(1) != now(100), "beyond the budget it is known by other things");
        assert_eq!(now(1), now(1));
        fs::remove_file(&path).expect("ours");
        assert_eq!(now(100), absent);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).expect("a pipe");
        assert!(now(100) != absent);
    }
}
