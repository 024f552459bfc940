//! Keeps what is taken back out of a workspace in the store, as change sets that wait for a person.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

use shieling_changes::{ChangeSet, ChangesError, Limits, Put, State, Store};
use shieling_watch::{Content, Taken};

/// How many bytes, and how many files, one sandbox keeps of what it takes back. What is beyond is taken back, and told.
const BYTES: usize = 256 << 20;
const FILES: usize = 10_000;

/// Where it is kept.
#[derive(Debug)]
pub struct Quarantine {
    directory: PathBuf,
    command: String,
    hasher: RandomState,
    /// What was kept before, by its content, so that what is made again and again is kept once.
    known: HashMap<(PathBuf, u64), String>,
    bytes: usize,
}

/// What was taken back out of one tree.
#[derive(Debug)]
pub struct Kept {
    /// What was taken back.
    pub taken: Vec<Taken>,
    /// The sets in which it is kept, by its path.
    pub ids: HashMap<PathBuf, String>,
    /// The set that was made for it, if one was.
    pub set: Option<String>,
}

impl Quarantine {
    /// Keeps in a store, which is made with the first set.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            command: String::new(),
            hasher: RandomState::new(),
            known: HashMap::new(),
            bytes: 0,
        }
    }

    /// The directory of the store.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The command that sets are named after from now on.
    pub fn name(&mut self, command: &str) {
        command.clone_into(&mut self.command);
    }

    /// What sets are named after.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Keeps what is taken back out of a tree.
    pub fn settle(
        &mut self,
        root: &Path,
        take_back: impl FnOnce(&mut dyn FnMut(&Path, &Content) -> bool) -> Vec<Taken>,
    ) -> Kept {
        let mut made = None;
        let mut ids = HashMap::new();
        let taken = take_back(&mut |path, content| {
            let Some(id) = self.keep(&mut made, root, path, content) else {
                return false;
            };
            ids.insert(path.to_path_buf(), id);
            true
        });
        let set = made.and_then(|(mut set, count)| set.wait(count).is_ok().then(|| set.id().to_owned()));
        Kept { taken, ids, set }
    }

    /// Keeps something in a set, which is made for the first.
    fn keep(
        &mut self,
        set: &mut Option<(ChangeSet, u64)>,
        root: &Path,
        path: &Path,
        content: &Content,
    ) -> Option<String> {
        let hash = self.hasher.hash_one(match content {
            Content::File(content, mode) => (content.as_slice(), *mode),
            Content::Link(target) => (target.as_os_str().as_encoded_bytes(), u32::MAX),
        });
        let key = (root.join(path), hash);
        if let Some(id) = self.known.get(&key) {
            if self.is_kept_in(set.as_ref().map(|(set, _)| set), id, path) {
                return Some(id.clone());
            }
            // A person has applied it or thrown it away since.
            self.known.remove(&key);
        }
        let length = match content {
            Content::File(content, _) => content.len(),
            Content::Link(target) => target.as_os_str().len(),
        };
        if self.known.len() >= FILES || self.bytes + length > BYTES {
            return None;
        }
        let id = self.put(set, root, path, content).ok()?;
        self.bytes += length;
        self.known.insert(key, id.clone());
        Some(id)
    }

    /// Whether a set still has something at a path that waits.
    fn is_kept_in(&self, being_made: Option<&ChangeSet>, id: &str, path: &Path) -> bool {
        if being_made.is_some_and(|set| set.id() == id) {
            return true;
        }
        let set = Store::open(&self.directory, Limits::default()).and_then(|store| store.get(id));
        set.is_ok_and(|set| set.state() != State::Committed && set.holds(path))
    }

    fn put(
        &self,
        set: &mut Option<(ChangeSet, u64)>,
        root: &Path,
        path: &Path,
        content: &Content,
    ) -> Result<String, ChangesError> {
        let (set, count) = match set {
            Some(set) => set,
            None => {
                let store = Store::open(&self.directory, Limits::default())?;
                set.insert((store.hold(root, &self.command)?, 0))
            }
        };
        set.put(
            path,
            match content {
                Content::File(content, mode) => Put::File { content, mode: *mode },
                Content::Link(target) => Put::Link(target),
            },
        )?;
        *count += 1;
        Ok(set.id().to_owned())
    }
}
