//! What stands in a directory, down to what nobody can set back: the time of the last change of each
//! file, which content, mode, owner, names, links and extended attributes all move.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file, directory or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) content: Vec<u8>,
    /// Device, number, names, owner, group, size, and the times of change.
    pub(crate) identity: [i64; 10],
}

impl Entry {
    /// How many names it has; of a directory that says how many are in it.
    pub(crate) fn names(&self) -> i64 {
        self.identity[2]
    }

    pub(crate) fn modified(&self) -> [i64; 2] {
        [self.identity[6], self.identity[7]]
    }

    pub(crate) fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// What stands in a directory, by relative paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Snapshot(pub(crate) BTreeMap<PathBuf, Entry>);

impl Snapshot {
    /// Of a directory, which need not be there. Follows no link and reads no device.
    pub(crate) fn of(directory: &Path) -> Self {
        let mut snapshot = Self::default();
        snapshot.add(directory, Path::new(""));
        snapshot
    }

    fn add(&mut self, root: &Path, relative: &Path) {
        // Joined with nothing, a path ends in `/`, and a file is not found by that.
        let path = if relative.as_os_str().is_empty() {
            root.to_path_buf()
        } else {
            root.join(relative)
        };
        let Ok(found) = fs::symlink_metadata(&path) else { return };
        let kind = found.file_type();
        let content = if kind.is_file() {
            fs::read(&path).unwrap_or_else(|error| error.to_string().into_bytes())
        } else if kind.is_symlink() {
            fs::read_link(&path).map_or_else(|_| Vec::new(), |to| to.as_os_str().as_bytes().to_vec())
        } else {
            Vec::new()
        };
        let number = |number: u64| number.cast_signed();
        let identity = [
            number(found.dev()),
            number(found.ino()),
            number(found.nlink()),
            i64::from(found.uid()),
            i64::from(found.gid()),
            number(found.size()),
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        ];
        let entry = Entry {
            mode: found.mode(),
            content,
            identity,
        };
        self.0.insert(relative.to_path_buf(), entry);
        if kind.is_dir() {
            for child in fs::read_dir(&path).into_iter().flatten().flatten() {
                self.add(root, &relative.join(child.file_name()));
            }
        }
    }

    /// What differs in another, in a line for each.
    pub(crate) fn difference(&self, later: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, entry) in &self.0 {
            match later.0.get(path) {
                None => lines.push(format!("{}: gone", path.display())),
                Some(now) if now.content != entry.content => lines.push(format!("{}: other content", path.display())),
                Some(now) if now != entry => lines.push(format!(
                    "{}: mode {:o} {:?}, was mode {:o} {:?}",
                    path.display(),
                    now.mode,
                    now.identity,
                    entry.mode,
                    entry.identity
                )),
                Some(_) => {}
            }
        }
        let new = later.0.keys().filter(|path| !self.0.contains_key(*path));
        lines.extend(new.map(|path| format!("{}: new", path.display())));
        lines
    }
}
