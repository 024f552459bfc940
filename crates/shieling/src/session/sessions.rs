//! The sessions of one façade, by name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::shell::Session;
use super::{SessionInfo, SessionName};

/// The most sessions at once. An idle one costs a few KiB here, and a bash of 3 MB.
pub(crate) const MOST: usize = 2_048;

/// The sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<SessionName, Arc<Session>>>);

/// There are [`MOST`] sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Sessions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionName, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of that name, which is there from now on.
    pub(crate) fn named(&self, name: &SessionName) -> Result<Arc<Session>, TooMany> {
        let mut all = self.all();
        if let Some(session) = all.get(name) {
            return Ok(Arc::clone(session));
        }
        if all.len() >= MOST {
            return Err(TooMany);
        }
        let session = Arc::new(Session::new(name.clone()));
        all.insert(name.clone(), Arc::clone(&session));
        Ok(session)
    }

    /// Their lines in a list; one that has not begun stands in `default`.
    pub(crate) fn list(&self, default: &Path) -> Vec<SessionInfo> {
        self.all().values().map(|session| session.info(default)).collect()
    }

    /// Ends the shells that have been idle longest, so that there is room for one more of `most`.
    pub(crate) fn make_room(&self, most: usize) {
        let mut idle: Vec<_> = self
            .all()
            .values()
            .filter_map(|session| Some((session.idle()?, Arc::clone(session))))
            .collect();
        idle.sort_by_key(|(since, _)| *since);
        let surplus = (idle.len() + 1).saturating_sub(most);
        for (_, session) in idle.into_iter().take(surplus) {
            session.rest();
        }
    }

    /// Forgets a session, whose shell ends with its last command. Whether there was one.
    pub(crate) fn forget(&self, name: &SessionName) -> bool {
        self.all().remove(name).is_some()
    }

    /// Forgets all. Their shells end with their last commands.
    pub(crate) fn clear(&self) {
        self.all().clear();
    }
}
