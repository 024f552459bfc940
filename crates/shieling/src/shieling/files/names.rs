//! Which files are hidden by one of their names and not by another.
//!
//! Looked for only where a file is read that has several names, in an environment that hides nothing by
//! itself, and once for each operation. No link is followed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::environment::{Files, Kind, Links, Node, Stamp};

/// How many entries are looked at before it cannot be told.
const ENTRIES: usize = 200_000;

/// How deep directories are looked into.
const DEEPEST: usize = 200;

/// The hidden files that have more than one name, by their identity, which all names of a file
/// share and which no change of its content touches.
pub(super) struct HiddenNames {
    found: HashSet<[u64; 2]>,
    complete: bool,
}

impl HiddenNames {
    /// Those below `root`, and those of `own`.
    pub(super) fn find(files: &dyn Files, root: &Path, own: &[PathBuf], hides: impl Fn(&Path, bool) -> bool) -> Self {
        let mut search = Search {
            found: HashSet::new(),
            left: ENTRIES,
            hides,
        };
        let mut complete = true;
        for start in std::iter::once(root).chain(own.iter().map(PathBuf::as_path)) {
            if let Ok(node) = files.node(start, Links::Keep) {
                complete &= search.walk(node.as_ref(), 0);
            }
        }
        Self {
            found: search.found,
            complete,
        }
    }

    /// Whether the file of this state is one; nothing if that cannot be told.
    pub(super) fn is_one(&self, stamp: Stamp) -> Option<bool> {
        let found = self.found.contains(&stamp.identity());
        (found || self.complete).then_some(found)
    }
}

struct Search<H> {
    found: HashSet<[u64; 2]>,
    left: usize,
    hides: H,
}

impl<H: Fn(&Path, bool) -> bool> Search<H> {
    /// Looks at something and all that is in it. Says whether it could look at all of it.
    fn walk(&mut self, node: &dyn Node, depth: usize) -> bool {
        let Ok(meta) = node.meta() else { return true };
        match meta.kind {
            Kind::File => {
                if meta.names > 1 && (self.hides)(node.path(), false) {
                    self.found.insert(meta.stamp.identity());
                }
                return true;
            }
            Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device => return true,
            Kind::Directory => {}
        }
        // One that cannot be listed may hold anything.
        let Ok(entries) = node.entries() else { return false };
        if depth == DEEPEST || entries.len() > self.left {
            return false;
        }
        self.left -= entries.len();
        let mut complete = true;
        for entry in entries {
            let wanted = match entry.kind {
                Kind::Directory => true,
                // Most files are not hidden, and need not be looked at.
                Kind::File => (self.hides)(&node.path().join(&entry.name), false),
                Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device => false,
            };
            if wanted && let Ok(child) = node.child(&entry.name) {
                complete &= self.walk(child.as_ref(), depth + 1);
            }
        }
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_file_that_has_grown_since_is_still_known() {
        let names = HiddenNames {
            found: HashSet::from([Stamp([1, 2, 3, 4, 5, 6]).identity()]),
            complete: true,
        };
        assert_eq!(names.is_one(Stamp([1, 2, 30, 40, 50, 6])), Some(true));
        assert_eq!(names.is_one(Stamp([1, 7, 3, 4, 5, 6])), Some(false));
    }
}
