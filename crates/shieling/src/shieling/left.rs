//! What the commands of each session can have left in its shell, by which its next one is judged.
//!
//! Goes by the texts alone, and remembers a text from before it runs, since nobody knows how far it comes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::policy::{CarriedState, DefinedNames};
use crate::session::SessionName;

/// By the session's name.
#[derive(Debug, Default)]
pub(super) struct LeftBehind(Mutex<BTreeMap<SessionName, CarriedState>>);

impl LeftBehind {
    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionName, CarriedState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What there is in this session.
    pub(super) fn in_session(&self, session: Option<&SessionName>) -> CarriedState {
        session
            .and_then(|session| self.all().get(session).cloned())
            .unwrap_or_default()
    }

    /// This text is about to run in this session, whose turn the caller has. Returns what it defines for certain once it
    /// has run to its end.
    pub(super) fn add(&self, session: &SessionName, text: &str) -> DefinedNames {
        let before = self.in_session(Some(session));
        self.all().insert(session.clone(), before.after(text));
        before.defined_by(text)
    }
}
