//! Saves and restores the state of a session's shell.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use bashkit::ShellState;

use super::engine::Engine;
use super::resume::{KEEP, LAST_WORD, OPTION};
use super::run::Ran;

/// The attribute of readonly variables in bashkit.
const READONLY: u8 = 1;

/// The state of a shell between two texts.
pub(crate) struct SessionState {
    pub(crate) cwd: PathBuf,
    pub(crate) variables: BTreeMap<String, String>,
}

impl Engine {
    /// Returns the text with the restoring commands before it.
    pub(super) fn resumed(&self, text: &str) -> String {
        self.resume.before(text)
    }

    /// Creates what a session needs: its standard error, and a frame for positional parameters, which bashkit otherwise
    /// drops at the end of each text.
    pub(crate) async fn stay(&mut self) {
        if !std::mem::replace(&mut self.stays, true) {
            // It prints nothing and cannot fail.
            let _ = self.bash.execute(KEEP).await;
        }
    }

    /// Records the state after a text, to restore it before the next.
    pub(crate) fn settle(&mut self, ran: Ran) -> SessionState {
        let view = self.bash.shell_state_view();
        let mut kept = self.resume.kept();
        kept.redirected |= self.shell_exit.redirected.load(Ordering::Relaxed);
        if ran.syntax_check {
            // The state has not been restored yet.
            kept.status = view.last_exit_code.max(2);
            return SessionState {
                cwd: view.cwd,
                variables: view.env.into_iter().collect(),
            };
        }
        kept.options = view
            .variables
            .iter()
            .filter(|(name, _)| name.starts_with(OPTION))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        kept.options.sort();
        // An EXIT trap has run at the end of its text.
        kept.traps = view.traps.into_iter().filter(|(signal, _)| signal != "EXIT").collect();
        kept.traps
            .sort_by_key(|(signal, _)| (signal == "DEBUG", signal.clone()));
        kept.status = view.last_exit_code;
        kept.last_word = view.variables.get(LAST_WORD).cloned();
        SessionState {
            cwd: view.cwd,
            variables: view.env.into_iter().collect(),
        }
    }

    /// Returns the readonly names, if earlier texts have set any and this one may assign to them.
    pub(super) fn readonly(&self, text: &str) -> Vec<String> {
        let assigns = ["((", "for", "let", "mapfile", "readarray", "getopts", "select", "["];
        // Asking copies the whole state of the shell.
        if !self.stays || !assigns.iter().any(|sign| text.contains(sign)) {
            return Vec::new();
        }
        let attributes = self.bash.shell_state().var_attrs;
        let readonly = attributes
            .into_iter()
            .filter(|(_, attributes)| attributes & READONLY != 0);
        readonly.map(|(name, _)| name).collect()
    }

    /// Returns whether a failure ends the shell.
    pub(super) fn errexit(&self) -> bool {
        let view = self.bash.shell_state_view();
        view.variables.get("SHOPT_e").is_some_and(|value| value == "1")
    }

    /// Saves the whole state.
    pub(crate) fn remember(&self) -> Memo {
        Memo(Box::new(self.bash.shell_state()))
    }

    /// Restores a saved state.
    pub(crate) fn come_back(&mut self, memo: &Memo) {
        self.bash.restore_shell_state(&memo.0);
    }
}

/// A saved state of a bash.
pub(crate) struct Memo(Box<ShellState>);
