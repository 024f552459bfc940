//! Exports the files of a memory as a tar archive, or into a folder of the host.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::memory::Memory;
use super::tree::{Follow, Id, LockedTree, TreeError};
use shieling::environment::Kind;

/// The workspace could not be exported.
#[derive(Debug, thiserror::Error)]
#[error("cannot take `{}` out of memory", path.display())]
pub struct ExportError {
    /// The path that failed, relative to the workspace.
    pub path: PathBuf,
    /// The error.
    pub source: io::Error,
}

/// An entry to export.
struct Item {
    /// Its path, relative to the workspace.
    path: PathBuf,
    kind: Kind,
    mode: u32,
    modified: SystemTime,
    content: Arc<Vec<u8>>,
    target: String,
}

impl Memory {
    /// Exports the workspace as a tar archive, sorted by path: directories, files and links, with their modes and
    /// times. Hidden files are left out.
    ///
    /// # Errors
    /// [`ExportError`] if it cannot be exported.
    pub fn export_tar(&self) -> Result<Vec<u8>, ExportError> {
        let mut archive = tar::Builder::new(Vec::new());
        self.each(|item| {
            let mut header = tar::Header::new_gnu();
            header.set_mode(item.mode);
            let modified = item.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            header.set_mtime(modified.as_secs());
            match item.kind {
                Kind::Directory => {
                    header.set_entry_type(tar::EntryType::Directory);
                    header.set_size(0);
                    archive.append_data(&mut header, &item.path, io::empty())
                }
                Kind::Link => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    header.set_size(0);
                    archive.append_link(&mut header, &item.path, &item.target)
                }
                Kind::File | Kind::Fifo | Kind::Socket | Kind::Device => {
                    header.set_entry_type(tar::EntryType::Regular);
                    header.set_size(item.content.len() as u64);
                    archive.append_data(&mut header, &item.path, &item.content[..])
                }
            }
        })?;
        archive.into_inner().map_err(|source| ExportError {
            path: PathBuf::from("."),
            source,
        })
    }

    /// Exports the workspace into an existing folder of the host. Existing files are replaced, other contents of the
    /// folder are kept. No link of the folder is followed, and nothing outside of it is written.
    ///
    /// # Errors
    /// [`ExportError`]. Files that were written before the error stay.
    pub fn export_to(&self, folder: &Path) -> Result<(), ExportError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty()).map_err(|errno| ExportError {
            path: PathBuf::from("."),
            source: errno.into(),
        })?;
        self.each(|item| write(folder.as_fd(), &item))
    }

    fn each(&self, mut act: impl FnMut(Item) -> io::Result<()>) -> Result<(), ExportError> {
        // A snapshot, so that no other access waits for the export.
        let tree = self.inner.tree.fork();
        let mut inside = tree.enter();
        let workspace = self.inner.workspace.as_path();
        let failed = |path: &Path, source| ExportError {
            path: path.to_path_buf(),
            source,
        };
        let root = inside
            .find(workspace, Follow::All)
            .map_err(|fault| failed(Path::new("."), fault.to_io()))?;
        let mut pending = vec![(PathBuf::new(), root)];
        while let Some((path, id)) = pending.pop() {
            let item = item(&mut inside, &path, id).map_err(|fault| failed(&path, fault.to_io()))?;
            if item.kind == Kind::Directory {
                let at = workspace.join(&path);
                let listed = inside.list(id, at.to_str().unwrap_or_default());
                let listed = listed.map_err(|fault| failed(&path, fault.to_io()))?;
                let below = listed.into_iter().rev();
                pending.extend(below.map(|(name, id)| (path.join(&*name), id)));
            }
            if !path.as_os_str().is_empty() {
                act(item).map_err(|source| failed(&path, source))?;
            }
        }
        Ok(())
    }
}

fn item(inside: &mut LockedTree<'_>, path: &Path, id: Id) -> Result<Item, TreeError> {
    let about = inside.about(id)?;
    let (content, target) = match about.kind {
        Kind::Directory => (Arc::default(), String::new()),
        Kind::Link => (Arc::default(), inside.target(id)?.to_string()),
        Kind::File | Kind::Fifo | Kind::Socket | Kind::Device => (inside.content(id)?, String::new()),
    };
    Ok(Item {
        path: path.to_path_buf(),
        kind: about.kind,
        mode: about.mode,
        modified: about.modified,
        content,
        target,
    })
}

fn write(folder: BorrowedFd<'_>, item: &Item) -> io::Result<()> {
    let parent = item.path.parent().unwrap_or_else(|| Path::new(""));
    let name = item.path.file_name().unwrap_or_default();
    let parent = beneath(folder, parent, OFlags::PATH | OFlags::DIRECTORY)?;
    let mode = Mode::from_raw_mode(item.mode & 0o777);
    match item.kind {
        Kind::Directory => match rustix::fs::mkdirat(&parent, name, mode | Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        },
        Kind::Link => {
            remove(&parent, name)?;
            Ok(rustix::fs::symlinkat(item.target.as_str(), &parent, name)?)
        }
        Kind::File | Kind::Fifo | Kind::Socket | Kind::Device => {
            // A new file, so that nothing is written through a link or to another name of the old one.
            remove(&parent, name)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&parent, name, flags, mode | Mode::RUSR | Mode::WUSR)?;
            std::fs::File::from(file).write_all(&item.content)
        }
    }
}

fn remove(parent: &OwnedFd, name: &std::ffi::OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn beneath(folder: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?)
}
