//! Measures what a layer takes of its disk, also while commands write to it. It changes nothing and opens nothing that is
//! closed to its owner, so what lies in closed directories is not counted.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use crate::directory::LEVELS;
use crate::error::{ChangesError, While as _};
use crate::set::Limits;

/// What a directory and all below it take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// The names below it.
    pub entries: u64,
    /// The bytes of blocks that its files hold, each file counted once however many names it has. Holes take none.
    pub bytes: u64,
}

impl Usage {
    /// Returns whether this is more than a set may have.
    pub fn exceeds(&self, limits: Limits) -> bool {
        self.entries > limits.entries || self.bytes > limits.bytes
    }

    /// Measures a directory, given by its absolute path. Stops once it is more than the limits.
    ///
    /// # Errors
    /// [`ChangesError::Io`] if the directory cannot be opened. What is removed meanwhile is not counted.
    pub fn of(directory: &Path, limits: Limits) -> Result<Self, ChangesError> {
        let top = rustix::fs::openat2(CWD, directory, FLAGS, Mode::empty(), ResolveFlags::NO_SYMLINKS)
            .doing("open", directory)?;
        let mut usage = Self::default();
        usage.add(top, limits, LEVELS);
        Ok(usage)
    }

    fn add(&mut self, directory: OwnedFd, limits: Limits, levels: usize) {
        let mut below = Vec::new();
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.entries += 1;
            if let Ok(found) = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
                let held = u64::try_from(found.st_blocks).unwrap_or_default().saturating_mul(512);
                // A directory's links come from below it.
                let names = if is_directory { 1 } else { found.st_nlink.max(1) };
                self.bytes = self.bytes.saturating_add(held / names);
                if is_directory {
                    below.push(name.to_owned());
                }
            }
            if self.exceeds(limits) {
                return;
            }
        }
        drop(buffer);
        let Some(levels) = levels.checked_sub(1) else { return };
        for name in below {
            let opened: Result<_, Errno> = rustix::fs::openat(&directory, name, FLAGS, Mode::empty());
            if let Ok(opened) = opened {
                self.add(opened, limits, levels);
            }
            if self.exceeds(limits) {
                return;
            }
        }
    }
}

const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files")]

    use std::fs::{self, File};

    use super::*;

    const NONE: Limits = Limits {
        entries: u64::MAX,
        bytes: u64::MAX,
    };

    #[test]
    fn files_are_counted_once_by_the_blocks_that_they_hold_at_any_depth() {
        let place = tempfile::tempdir().expect("a directory");
        let at = place.path().canonicalize().expect("it is there");
        fs::create_dir_all(at.join("a/b/c")).expect("made");
        let empty = Usage::of(&at, NONE).expect("measured");
        assert_eq!(empty.entries, 3);
        fs::write(at.join("a/b/c/file"), vec![1; 1 << 20]).expect("written");
        fs::hard_link(at.join("a/b/c/file"), at.join("a/again")).expect("linked");
        File::create(at.join("holes"))
            .and_then(|file| file.set_len(1 << 40))
            .expect("made");
        std::os::unix::fs::symlink("/", at.join("link")).expect("linked");
        let usage = Usage::of(&at, NONE).expect("measured");
        assert_eq!(usage.entries, 7);
        let grown = usage.bytes - empty.bytes;
        assert!((1 << 20..(1 << 20) + (64 << 10)).contains(&grown), "{grown}");
    }

    #[test]
    fn what_is_more_than_the_limits_is_seen_and_what_is_as_much_is_not() {
        let place = tempfile::tempdir().expect("a directory");
        let at = place.path().canonicalize().expect("it is there");
        for name in 0..10 {
            fs::write(at.join(name.to_string()), "").expect("written");
        }
        let limits = |entries| Limits { entries, ..NONE };
        let exceeds = |limits| Usage::of(&at, limits).expect("measured").exceeds(limits);
        assert!(exceeds(limits(9)) && !exceeds(limits(10)));
        fs::write(at.join("large"), vec![1; 1 << 20]).expect("written");
        assert!(
            exceeds(Limits {
                bytes: (1 << 20) - 1,
                ..NONE
            }) && !exceeds(Limits { bytes: 2 << 20, ..NONE })
        );
    }
}
