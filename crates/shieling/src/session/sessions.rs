//! The registry of sessions.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::shell::{RunningCommand, Session};
use super::{SessionInfo, SessionName};

/// The largest number of sessions. An idle one takes a few KiB here, and 3 MB in its bash.
pub(crate) const MOST: usize = 2_048;

/// The sessions by name.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<SessionName, Arc<Session>>>);

/// The number of sessions has reached [`MOST`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Sessions {
    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionName, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session of this name. Creates it if there is none.
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

    /// Returns the entries for a listing. A session that has not run a command is listed in the directory `default`.
    pub(crate) fn list(&self, default: &Path) -> Vec<SessionInfo> {
        self.all().values().map(|session| session.info(default)).collect()
    }

    /// Ends the shells that have been idle longest, so that at most `most` run after one more is started.
    pub(crate) fn make_room(&self, most: usize) {
        let mut idle: Vec<_> = self
            .all()
            .values()
            .filter_map(|session| Some((session.idle()?, Arc::clone(session))))
            .collect();
        idle.sort_by_key(|(since, _)| *since);
        let surplus = (idle.len() + 1).saturating_sub(most);
        for (_, session) in idle.into_iter().take(surplus) {
            session.close_idle_shell();
        }
    }

    /// Returns the command that a session runs.
    pub(crate) fn busy(&self, name: &SessionName) -> Option<RunningCommand> {
        self.all().get(name)?.busy()
    }

    /// Removes a session and returns whether it existed. Its shell ends with the running command.
    pub(crate) fn forget(&self, name: &SessionName) -> bool {
        self.all().remove(name).is_some()
    }

    /// Removes all sessions. Their shells end with the running commands.
    pub(crate) fn clear(&self) {
        self.all().clear();
    }
}
