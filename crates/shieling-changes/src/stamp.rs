//! Tells by times alone whether a part of a set is what it was when it was last shown, so that it need not be copied again.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::directory::{Directory, LEVELS};
use crate::node::Node;
use crate::set::ChangeSet;

/// How many names are looked at. A larger part is shown anew each time.
const MOST: usize = 2_000;
/// Times are as fine as a tick of the kernel, 10 ms at most, and some file systems round: what changed so shortly before may
/// change again without another time.
const TICK_NS: i128 = 50_000_000;

/// The state of one path of a set and of all below it, in the layer and in the workspace: which files stand there, their kinds,
/// modes, sizes and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(u64);

impl ChangeSet {
    /// Returns the state of a path, relative to the workspace. `None` if something of it cannot be looked at, has changed within
    /// the last 50 ms, or is more than is looked at: two such states cannot be told apart.
    pub fn stamp(&self, path: &Path) -> Option<Stamp> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let mut look = Look {
            hash: DefaultHasher::new(),
            left: MOST,
            settled: i128::try_from(now.as_nanos()).ok()? - TICK_NS,
        };
        for top in [self.layer().ok()?, self.tree().ok()?] {
            look.at(top, path)?;
        }
        Some(Stamp(look.hash.finish()))
    }
}

struct Look {
    hash: DefaultHasher,
    left: usize,
    /// What changed later may change again without a trace.
    settled: i128,
}

impl Look {
    /// Adds which directories lead to a path, and what stands there.
    fn at(&mut self, mut directory: Directory, path: &Path) -> Option<()> {
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            let is_opaque = directory.is_opaque();
            let node = Node::of(&directory).ok()?;
            (node.device, node.inode, node.mode, is_opaque).hash(&mut self.hash);
            if names.peek().is_none() {
                return self.node(&directory, Path::new(name), LEVELS);
            }
            directory = match directory.look(name).ok()? {
                Some(node) if node.is_directory() => directory.child(name).ok()?,
                Some(node) => return self.add(&node),
                None => break,
            };
        }
        0_u8.hash(&mut self.hash);
        Some(())
    }

    fn node(&mut self, directory: &Directory, name: &Path, levels: usize) -> Option<()> {
        name.hash(&mut self.hash);
        let Some(node) = directory.look(name).ok()? else {
            0_u8.hash(&mut self.hash);
            return Some(());
        };
        self.add(&node)?;
        if node.is_directory() {
            let levels = levels.checked_sub(1)?;
            let below = directory.child(name).ok()?;
            let names = below.names().ok()?;
            names.len().hash(&mut self.hash);
            for name in names {
                self.node(&below, Path::new(&name), levels)?;
            }
        }
        Some(())
    }

    fn add(&mut self, node: &Node) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if node.changed.max(node.modified) >= self.settled {
            return None;
        }
        (node.kind, node.mode, node.size, node.links, node.device, node.inode).hash(&mut self.hash);
        (node.user, node.modified, node.changed, node.is_zero_device).hash(&mut self.hash);
        Some(())
    }
}
