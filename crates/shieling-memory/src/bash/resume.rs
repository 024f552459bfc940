//! Restores the state of a shell between two texts. Bashkit keeps variables, functions, positional parameters and the
//! directory, but forgets options, traps, the last status and the last argument at the beginning of a text. Commands
//! of ours, inserted before the text, restore them. Their names are secret and not listed, and they bypass functions
//! and aliases.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, ShellState, SubCommand, async_trait};

use super::Engine;
use super::disk::stub;
use super::run::Ran;

/// The prefix of the variables in which bashkit keeps `set` options.
const OPTION: &str = "SHOPT_";
/// The variable with the last argument of the last command.
const LAST_WORD: &str = "_";

/// The attribute of readonly variables in bashkit.
const READONLY: u8 = 1;

/// The state to restore.
#[derive(Default)]
pub(super) struct Kept {
    options: Vec<(String, String)>,
    traps: Vec<(String, String)>,
    status: i32,
    last_word: Option<String>,
}

/// The commands that restore it.
#[derive(Clone)]
pub(super) struct Resume {
    kept: Arc<Mutex<Kept>>,
    /// Whether bashkit's own `trap` can be called by its path.
    by_path: bool,
    word: String,
}

/// Restores options, the status and the last argument.
struct State(Resume);

/// Restores traps.
struct Traps(Resume);

impl Resume {
    pub(super) fn new(by_path: bool) -> Self {
        let number = RandomState::new().build_hasher().finish();
        Self {
            kept: Arc::default(),
            by_path,
            word: format!("shieling:{number:016x}"),
        }
    }

    /// Returns the command of this name, if it is one of these.
    pub(super) fn command(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        match name.strip_prefix(&self.word)? {
            "" => Some(Arc::new(State(self.clone()))),
            ":traps" => Some(Arc::new(Traps(self.clone()))),
            _ => None,
        }
    }

    /// Returns the text with the restoring commands before it. Line numbers do not change.
    fn before(&self, text: &str) -> String {
        let word = &self.word;
        let kept = self.kept();
        let state = !kept.options.is_empty() || kept.status != 0 || kept.last_word.is_some() || !kept.traps.is_empty();
        match (state, kept.traps.last()) {
            (false, _) => text.to_owned(),
            (true, None) => format!("{word}; {text}"),
            // A DEBUG trap must not run before these commands.
            (true, Some((signal, _))) if signal == "DEBUG" => format!("{word}; {word}:traps; {text}"),
            (true, Some(_)) => format!("{word}:traps; {word}; {text}"),
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Builtin for State {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let kept = self.0.kept();
        for (name, value) in &kept.options {
            ctx.variables.insert(name.clone(), value.clone());
        }
        let last_word = kept.last_word.clone().unwrap_or_default();
        ctx.variables.insert(LAST_WORD.to_owned(), last_word);
        Ok(ExecResult {
            exit_code: kept.status,
            // The failure was handled when it happened.
            errexit_suppressed: true,
            ..ExecResult::default()
        })
    }
}

#[async_trait]
impl Builtin for Traps {
    async fn execute(&self, _ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(ExecResult::default())
    }

    async fn execution_plan(&self, _ctx: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        let name = if self.0.by_path {
            stub("trap")
        } else {
            "trap".to_owned()
        };
        let trap = |(signal, action): &(String, String)| SubCommand {
            name: name.clone(),
            args: vec!["--".to_owned(), action.clone(), signal.clone()],
            stdin: None,
            assignments: Vec::new(),
        };
        let commands = self.0.kept().traps.iter().map(trap).collect();
        Ok(Some(ExecutionPlan::Batch { commands }))
    }
}

/// The state of a shell between two texts.
pub(crate) struct Standing {
    pub(crate) cwd: PathBuf,
    pub(crate) variables: BTreeMap<String, String>,
}

impl Engine {
    /// Returns the text with the restoring commands before it.
    pub(super) fn resumed(&self, text: &str) -> String {
        self.resume.before(text)
    }

    /// Creates what a session needs: a frame for positional parameters, which bashkit otherwise drops at the end of
    /// each text.
    pub(crate) async fn stay(&mut self) {
        if !std::mem::replace(&mut self.stays, true) {
            // It prints nothing and cannot fail.
            let _ = self.bash.execute("set --").await;
        }
    }

    /// Records the state after a text, to restore it before the next.
    pub(crate) fn settle(&mut self, ran: Ran) -> Standing {
        let view = self.bash.shell_state_view();
        let mut kept = self.resume.kept();
        if ran.misread {
            // The state has not been restored yet.
            kept.status = view.last_exit_code.max(2);
            return Standing {
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
        Standing {
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
