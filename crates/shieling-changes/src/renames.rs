//! Which of the paths that a set deletes and adds are the same thing under another name.
//!
//! An overlay copies what is renamed, so that no inode tells. A rename is said of two paths if kind, mode, attributes and
//! content are equal, of a directory with all that is in it: never of what is merely alike. Each path takes part in one at
//! most; the largest directories come first, then equal names, then the order of the paths, so that two looks at the same
//! state say the same. It changes nothing of what is committed, counted or undone.
//!
//! # Bounds
//! 20,000 deleted and 20,000 added paths, and 64 MiB that are read to compare contents. Beyond that no rename is said, or none
//! of what is left; the paths are deleted and added in any case. Empty files are only renamed with their directory.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::node::{Kind, Node};
use crate::scan::{Action, Change};

/// How many paths are compared, on each side.
const PATHS: usize = 20_000;
/// How many bytes of files are read.
const READ: u64 = 64 << 20;
/// How much of a file is read at a time.
const PIECE: usize = 64 << 10;

type Sum = [u8; 32];

/// Something that has another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// Its name before, relative to the workspace.
    pub from: PathBuf,
    /// Its name now, relative to the workspace.
    pub to: PathBuf,
}

/// What may have been renamed.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    gone: Side,
    new: Side,
}

/// The deleted paths, or the added ones.
#[derive(Debug, Default)]
struct Side {
    nodes: BTreeMap<PathBuf, Node>,
    is_cut: bool,
}

impl Side {
    fn note(&mut self, path: &Path, node: &Node) {
        match !self.is_cut && self.nodes.len() < PATHS {
            true => drop(self.nodes.insert(path.to_path_buf(), node.clone())),
            false => {
                self.is_cut = true;
                self.nodes.clear();
            }
        }
    }
}

/// What a path is, if that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    sum: Sum,
    /// How many files and links, and how many paths, there are at and below it.
    leaves: usize,
    paths: usize,
}

impl Candidates {
    pub(crate) fn note(&mut self, change: &Change) {
        match (change.action, &change.old, &change.new) {
            (Action::Deleted, Some(old), _) => self.gone.note(&change.path, old),
            (Action::Added, _, Some(new)) => self.new.note(&change.path, new),
            _ => {}
        }
    }

    /// The renames, by their new names.
    pub(crate) fn find(self, upper: &Directory, workspace: &Directory) -> Result<Vec<Rename>, ChangesError> {
        let Self { gone, new } = self;
        if gone.is_cut || new.is_cut || gone.nodes.is_empty() || new.nodes.is_empty() {
            return Ok(Vec::new());
        }
        let shape = |node: &Node| (node.kind, node.mode, node.size);
        let leaves = |side: &Side| -> BTreeSet<(u8, u32, u64)> {
            let leaves = side.nodes.values().filter(|node| !node.is_directory()).map(shape);
            leaves.map(|(kind, mode, size)| (kind as u8, mode, size)).collect()
        };
        let both: BTreeSet<_> = leaves(&gone).intersection(&leaves(&new)).copied().collect();
        if both.is_empty() {
            return Ok(Vec::new());
        }
        let is_on_both = |node: &Node| both.contains(&(node.kind as u8, node.mode, node.size));
        let mut room = READ;
        let gone = sums(&gone.nodes, workspace, &is_on_both, &mut room)?;
        let new = sums(&new.nodes, upper, &is_on_both, &mut room)?;
        let mut renames = Renames::default();
        // Of two directories of which one lies in the other, that one has fewer paths.
        renames.pair(&gone, &new, |known| known.paths > known.leaves);
        renames.pair(&gone, &new, |known| known.paths == known.leaves);
        renames.found.sort_by(|one, other| one.to.cmp(&other.to));
        Ok(renames.found)
    }
}

#[derive(Debug, Default)]
struct Renames {
    found: Vec<Rename>,
    from: BTreeSet<PathBuf>,
    to: BTreeSet<PathBuf>,
}

impl Renames {
    /// Pairs what is equal and chosen, and in none of those that were paired before.
    fn pair(
        &mut self,
        gone: &BTreeMap<&Path, Known>,
        new: &BTreeMap<&Path, Known>,
        is_chosen: impl Fn(&Known) -> bool,
    ) {
        let mut by_sum: HashMap<Sum, Vec<&Path>> = HashMap::new();
        for (path, known) in new.iter().filter(|(_, known)| is_chosen(known)) {
            by_sum.entry(known.sum).or_default().push(path);
        }
        let mut groups: HashMap<Sum, (Known, Vec<&Path>)> = HashMap::new();
        for (path, known) in gone.iter().filter(|(_, known)| is_chosen(known)) {
            if by_sum.contains_key(&known.sum) {
                groups.entry(known.sum).or_insert((*known, Vec::new())).1.push(path);
            }
        }
        let mut groups: Vec<(Known, Vec<&Path>)> = groups.into_values().collect();
        groups.sort_by(|(one, of_one), (other, of_other)| {
            let size = |known: &Known| std::cmp::Reverse((known.leaves, known.paths));
            (size(one), of_one.first()).cmp(&(size(other), of_other.first()))
        });
        for (known, paths) in groups {
            let candidates = by_sum.remove(&known.sum).unwrap_or_default();
            // A name that stays the same is the likelier one, also for those that come later.
            self.pair_equal(&paths, &candidates, true);
            self.pair_equal(&paths, &candidates, false);
        }
    }

    /// Pairs those of both lists that are in no pair, in their order.
    fn pair_equal(&mut self, gone: &[&Path], new: &[&Path], is_same_name: bool) {
        let key = |path: &'_ Path| is_same_name.then(|| path.file_name().map(OsStr::to_os_string));
        let mut by_key: HashMap<_, VecDeque<&Path>> = HashMap::new();
        for path in new {
            by_key.entry(key(path)).or_default().push_back(path);
        }
        for path in gone {
            let Some(candidates) = by_key.get_mut(&key(path)).filter(|_| !is_in(&self.from, path)) else {
                continue;
            };
            while candidates.front().is_some_and(|to| is_in(&self.to, to)) {
                candidates.pop_front();
            }
            let Some(to) = candidates.pop_front() else {
                continue;
            };
            self.from.insert(path.to_path_buf());
            self.to.insert(to.to_path_buf());
            self.found.push(Rename {
                from: path.to_path_buf(),
                to: to.to_path_buf(),
            });
        }
    }
}

fn is_in(all: &BTreeSet<PathBuf>, path: &Path) -> bool {
    path.ancestors().any(|above| all.contains(above))
}

/// What each path is. Nothing of what is no file, link or directory of those, or has no counterpart.
fn sums<'n>(
    nodes: &'n BTreeMap<PathBuf, Node>,
    tree: &Directory,
    is_on_both: &dyn Fn(&Node) -> bool,
    room: &mut u64,
) -> Result<BTreeMap<&'n Path, Known>, ChangesError> {
    let mut known: BTreeMap<&Path, Known> = BTreeMap::new();
    let mut children: HashMap<&Path, Vec<(&OsStr, Option<Known>)>> = HashMap::new();
    // What lies in a directory comes after it, and so is known before.
    for (path, node) in nodes.iter().rev() {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        let one = match node.kind {
            Kind::Directory => directory(node, children.remove(path.as_path()).unwrap_or_default()),
            Kind::File | Kind::Symlink if is_on_both(node) => {
                // What cannot be read is told as added and deleted: a rename changes nothing of what is committed.
                leaf(path, node, tree, room).unwrap_or_default()
            }
            Kind::File | Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::Device => None,
        };
        children.entry(above).or_default().push((name, one));
        if let Some(one) = one {
            known.insert(path, one);
        }
    }
    known.retain(|path, _| {
        let node = nodes.get(*path);
        // Two empty files have nothing in common, nor have two directories without files.
        node.is_some_and(|node| node.kind != Kind::File || node.size > 0)
    });
    known.retain(|_, known| known.leaves > 0);
    Ok(known)
}

fn directory(node: &Node, children: Vec<(&OsStr, Option<Known>)>) -> Option<Known> {
    let mut hash = Sha256::new();
    hash.update([node.kind as u8]);
    hash.update(node.mode.to_le_bytes());
    let (mut leaves, mut paths) = (0, 1);
    // In the reverse order of their names.
    for (name, child) in children {
        let child = child?;
        let name = name.as_encoded_bytes();
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update(child.sum);
        leaves += child.leaves;
        paths += child.paths;
    }
    Some(Known {
        sum: hash.finalize().into(),
        leaves,
        paths,
    })
}

fn leaf(path: &Path, node: &Node, tree: &Directory, room: &mut u64) -> Result<Option<Known>, ChangesError> {
    use std::io::Read as _;
    if node.size > *room {
        return Ok(None);
    }
    *room -= node.size;
    let Some((above, name)) = tree.parent_of(path).doing("open", path)? else {
        return Ok(None);
    };
    let mut hash = Sha256::new();
    hash.update([node.kind as u8]);
    hash.update(node.mode.to_le_bytes());
    match node.kind {
        Kind::Symlink => hash.update(
            above
                .read_link(name)
                .doing("read", path)?
                .as_os_str()
                .as_encoded_bytes(),
        ),
        _ => {
            let attributes = above.attributes_of(name).doing("read the attributes of", path)?;
            hash.update((attributes.len() as u64).to_le_bytes());
            for part in attributes
                .iter()
                .flat_map(|(name, value)| [name.as_encoded_bytes(), value])
            {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
            let mut file = above.read(name).doing("read", path)?.take(node.size);
            let mut piece = vec![0; PIECE];
            loop {
                let read = file.read(&mut piece).doing("read", path)?;
                let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
                    break;
                };
                hash.update(bytes);
            }
        }
    }
    Ok(Some(Known {
        sum: hash.finalize().into(),
        leaves: 1,
        paths: 1,
    }))
}
