//! The way to a path, as the kernel takes it: name by name, through every link, each at its real place.
//!
//! Whoever judges who can change what a path leads to, or holds what is on the way, walks it by this, so that
//! all have the kernel's bound on links. Does not decide what a place means, and opens nothing.
#![expect(
    clippy::disallowed_methods,
    reason = "what stands on the way to a path is looked up here"
)]

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

/// How many links the kernel follows on the way to one file.
pub(super) const LINKS: usize = 40;

/// One name on the way.
#[derive(Debug)]
pub(super) struct Step {
    /// The directory in which it is looked for, without links.
    pub(super) directory: PathBuf,
    /// Its place in there.
    pub(super) path: PathBuf,
    /// What stands there, links as such; nothing where nothing does.
    pub(super) found: Option<Metadata>,
}

impl Step {
    /// Whether a link stands there, so that the way goes on elsewhere.
    pub(super) fn is_link(&self) -> bool {
        self.found.as_ref().is_some_and(Metadata::is_symlink)
    }
}

/// Why the rest of a way is not known.
#[derive(Debug)]
pub(super) enum Unknown {
    /// It leads through more links than the kernel follows.
    TooManyLinks,
    /// This directory does not let us see what is in it.
    Closed(PathBuf, io::Error),
}

/// The names on the way to an absolute path. What follows a name that is absent is absent too.
#[derive(Debug)]
pub(super) struct Steps {
    here: PathBuf,
    ahead: Vec<OsString>,
    links: usize,
}

impl Steps {
    /// The way to an absolute path, through at most `links` links: [`LINKS`], but in tests.
    pub(super) fn to(path: &Path, links: usize) -> Self {
        Self {
            here: PathBuf::from("/"),
            ahead: parts(path),
            links,
        }
    }

    fn fail(&mut self, unknown: Unknown) -> Option<Result<Step, Unknown>> {
        self.ahead.clear();
        Some(Err(unknown))
    }
}

impl Iterator for Steps {
    type Item = Result<Step, Unknown>;

    fn next(&mut self) -> Option<Self::Item> {
        let part = loop {
            let part = self.ahead.pop()?;
            if part != ".." {
                break Some(part);
            }
            self.here.pop();
            // It ends where it has been, or above.
            if self.ahead.is_empty() {
                break None;
            }
        };
        let (directory, path) = match part {
            Some(part) => (self.here.clone(), self.here.join(part)),
            None => (
                self.here.parent().unwrap_or(&self.here).to_path_buf(),
                self.here.clone(),
            ),
        };
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => Some(found),
            Err(error) if is_absence(&error) => None,
            Err(error) => return self.fail(Unknown::Closed(directory, error)),
        };
        if found.as_ref().is_some_and(Metadata::is_symlink) {
            if self.links == 0 {
                return self.fail(Unknown::TooManyLinks);
            }
            self.links -= 1;
            match fs::read_link(&path) {
                Ok(target) => {
                    if target.is_absolute() {
                        self.here = PathBuf::from("/");
                    }
                    self.ahead.extend(parts(&target));
                }
                // Replaced since: where it leads now was not seen.
                Err(error) => return self.fail(Unknown::Closed(directory, error)),
            }
        } else {
            self.here.clone_from(&path);
        }
        Some(Ok(Step { directory, path, found }))
    }
}

/// Whether an error says that nothing stands at a place. Every other one says that it is not known.
pub(super) fn is_absence(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    // A loop of links leads nowhere, for whoever takes that way.
    matches!(errno, Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// The parts of a path without its root, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let named = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("it is there");
        (directory, root)
    }

    /// The names below a place that the way leads through.
    fn way(root: &Path, name: &str) -> Vec<String> {
        Steps::to(&root.join(name), LINKS)
            .map(|step| step.expect("all of it can be seen"))
            .filter_map(|step| Some(step.path.strip_prefix(root).ok()?.display().to_string()))
            .filter(|name| !name.is_empty())
            .collect()
    }

    #[test]
    fn a_way_leads_through_each_link_at_its_real_place() {
        let (_directory, root) = place();
        fs::create_dir_all(root.join("a/b")).expect("made");
        symlink("a/b", root.join("l")).expect("linked");
        symlink("../../l/x", root.join("a/b/m")).expect("linked");
        assert_eq!(way(&root, "a/b"), ["a", "a/b"]);
        assert_eq!(way(&root, "l/m"), ["l", "a", "a/b", "a/b/m", "l", "a", "a/b", "a/b/x"]);
        assert_eq!(way(&root, "no/thing"), ["no", "no/thing"]);
        assert_eq!(way(&root, "l/.."), ["l", "a", "a/b", "a"]);
    }

    #[test]
    fn a_way_through_as_many_links_as_the_kernel_follows_is_known_and_one_more_is_not() {
        let (_directory, root) = place();
        fs::write(root.join("0"), "").expect("written");
        for number in 1..=LINKS + 1 {
            symlink((number - 1).to_string(), root.join(number.to_string())).expect("linked");
        }
        let last = |number: usize| Steps::to(&root.join(number.to_string()), LINKS).last();
        assert!(fs::metadata(root.join(LINKS.to_string())).is_ok(), "as the kernel does");
        assert!(matches!(last(LINKS), Some(Ok(step)) if step.path == root.join("0")));
        assert!(fs::metadata(root.join((LINKS + 1).to_string())).is_err());
        assert!(matches!(last(LINKS + 1), Some(Err(Unknown::TooManyLinks))));
    }

    #[test]
    fn a_directory_that_is_closed_is_no_absence() {
        if rustix::process::geteuid().is_root() {
            // Nothing is closed to it; this test runs again as an ordinary user.
            return;
        }
        use std::os::unix::fs::PermissionsExt as _;
        let (_directory, root) = place();
        fs::create_dir(root.join("a")).expect("made");
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o000)).expect("ours");
        let last = Steps::to(&root.join("a/b/c"), LINKS).last();
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o700)).expect("ours");
        assert!(matches!(last, Some(Err(Unknown::Closed(closed, _))) if closed == root.join("a")));
    }
}
