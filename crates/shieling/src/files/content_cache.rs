//! A cache of file contents, from which the diff in a report about a stale write is made.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::FileHash;

/// The largest total size, in bytes.
const CAPACITY: usize = 16 << 20;

/// The largest single content, in bytes.
const LARGEST: usize = 1 << 20;

/// States with their contents, oldest first.
type Kept = VecDeque<(FileHash, Arc<[u8]>)>;

/// The most recent contents by state, at most 16 MiB together and 1 MiB each. Clones share the cache, since a planned
/// change outlives the [`Context`](super::Context) that it was prepared in.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContentCache {
    kept: Arc<Mutex<Kept>>,
}

impl ContentCache {
    /// Adds a content.
    pub(crate) fn insert(&self, hash: &FileHash, content: &[u8]) {
        if content.len() > LARGEST {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != hash);
        kept.push_back((hash.clone(), content.into()));
        let mut size: usize = kept.iter().map(|(_, content)| content.len()).sum();
        while size > CAPACITY
            && let Some((_, oldest)) = kept.pop_front()
        {
            size -= oldest.len();
        }
    }

    /// Returns the content of this state, if it is cached.
    pub(crate) fn get(&self, hash: &FileHash) -> Option<Arc<[u8]>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().rev().find(|(known, _)| known == hash);
        found.map(|(_, content)| Arc::clone(content))
    }
}
