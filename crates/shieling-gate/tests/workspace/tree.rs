//! Directories as the gate reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use shieling_gate::{Change, Entry, Gate, HeldBack, Kind, Lead, Surroundings, Tree};

/// What a directory held at one time.
#[derive(Default)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, (Entry, Vec<u8>)>);

impl Snapshot {
    /// As it is now.
    pub(crate) fn of(root: &Path) -> Self {
        let mut found = Self::default();
        let mut ahead = vec![PathBuf::new()];
        while let Some(path) = ahead.pop() {
            let whole = root.join(&path);
            let is = fs::symlink_metadata(&whole).expect("it is there");
            let kind = match is.file_type() {
                kind if kind.is_dir() => Kind::Directory,
                kind if kind.is_symlink() => Kind::Link(fs::read_link(&whole).expect("a link")),
                kind if kind.is_fifo() => Kind::Fifo,
                kind if kind.is_socket() => Kind::Socket,
                kind if kind.is_file() => Kind::File,
                _ => Kind::Device,
            };
            let content = match kind {
                Kind::File => fs::read(&whole).expect("it can be read"),
                Kind::Directory => {
                    let names = fs::read_dir(&whole).expect("it can be read");
                    ahead.extend(names.map(|name| path.join(name.expect("a name").file_name())));
                    Vec::new()
                }
                _ => Vec::new(),
            };
            let entry = Entry {
                kind,
                mode: is.mode() & 0o7777,
                links: is.nlink(),
                size: is.len(),
            };
            found.0.insert(path, (entry, content));
        }
        found
    }
}

impl Tree for Snapshot {
    fn entry(&self, path: &Path) -> io::Result<Option<Entry>> {
        Ok(self.0.get(path).map(|(entry, _)| entry.clone()))
    }

    fn read(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        let (_, content) = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(content.iter().copied().take(limit).collect())
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let names = self.0.keys().filter(|path| path.parent() == Some(directory));
        Ok(names.filter_map(|path| path.file_name()).map(OsString::from).collect())
    }
}

/// What the gate holds back of the differences between a directory and what it was.
pub(crate) fn held(root: &Path, home: Option<&Path>, was: &Snapshot, leads: &[Lead]) -> Vec<(PathBuf, HeldBack)> {
    let is = Snapshot::of(root);
    let gate = Gate::new(Surroundings {
        root,
        home,
        before: was,
        after: &is,
        leads,
        toolchains: &[],
    });
    let paths: BTreeSet<&PathBuf> = was.0.keys().chain(is.0.keys()).collect();
    let changed = paths.into_iter().filter(|path| was.0.get(*path) != is.0.get(*path));
    let held = changed.filter_map(|path| {
        let change = Change {
            path,
            from: None,
            before: was.entry(path).expect("in memory"),
            after: is.entry(path).expect("in memory"),
        };
        Some((path.clone(), gate.judge(&change).held_back()?.clone()))
    });
    held.collect()
}

/// Puts back what is held back, until nothing is.
pub(crate) fn revert(root: &Path, home: Option<&Path>, was: &Snapshot, leads: &[Lead]) -> usize {
    let mut reverted = 0;
    for _ in 0..10 {
        let held = held(root, home, was, leads);
        if held.is_empty() {
            return reverted;
        }
        reverted += held.len();
        for (path, _) in held {
            let whole = root.join(&path);
            let is_directory = fs::symlink_metadata(&whole).is_ok_and(|is| is.is_dir());
            let removed = if is_directory {
                fs::remove_dir_all(&whole)
            } else {
                fs::remove_file(&whole)
            };
            if let Err(error) = removed {
                // It went with a directory above it.
                assert_eq!(error.kind(), io::ErrorKind::NotFound, "{}", path.display());
            }
            match was.0.get(&path) {
                Some((
                    Entry {
                        kind: Kind::File, mode, ..
                    },
                    content,
                )) => {
                    fs::write(&whole, content).expect("written");
                    fs::set_permissions(&whole, fs::Permissions::from_mode(*mode)).expect("set");
                }
                Some((
                    Entry {
                        kind: Kind::Link(target),
                        ..
                    },
                    _,
                )) => {
                    std::os::unix::fs::symlink(target, &whole).expect("made");
                }
                Some(_) | None => {}
            }
        }
    }
    panic!(
        "something is held back each time: {:?}",
        self::held(root, home, was, leads)
    );
}
