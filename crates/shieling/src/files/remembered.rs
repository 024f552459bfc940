//! What files held when they were read or written, so that a stale write can be told what has changed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::FileHash;

/// The most that is remembered, in bytes.
const ROOM: usize = 16 << 20;

/// The largest single content that is remembered, in bytes.
const LARGEST: usize = 1 << 20;

/// States, with what they held, the oldest first.
type Kept = VecDeque<(FileHash, Arc<[u8]>)>;

/// The latest contents, by their state; the oldest go once there are more than 16 MiB of them. A content
/// of more than 1 MiB is not remembered. A clone remembers the same: what a plan makes outlives the
/// [`Context`](super::Context) that it was worked out in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remembered {
    kept: Arc<Mutex<Kept>>,
}

impl Remembered {
    /// Remembers a content.
    pub(crate) fn keep(&self, hash: &FileHash, content: &[u8]) {
        if content.len() > LARGEST {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| known != hash);
        kept.push_back((hash.clone(), content.into()));
        let mut size: usize = kept.iter().map(|(_, content)| content.len()).sum();
        while size > ROOM
            && let Some((_, oldest)) = kept.pop_front()
        {
            size -= oldest.len();
        }
    }

    /// The content of this state, if it is remembered.
    pub(crate) fn recall(&self, hash: &FileHash) -> Option<Arc<[u8]>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().rev().find(|(known, _)| known == hash);
        found.map(|(_, content)| Arc::clone(content))
    }
}
