//! Restores the state of a shell between two texts. Bashkit keeps variables, functions, positional parameters and the
//! directory, but forgets options, traps, the last status and the last argument at the beginning of a text. Commands
//! of ours, inserted before the text, restore them. Their names are secret and not listed, and they bypass functions
//! and aliases.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand, async_trait};

use super::disk::stub;

/// The prefix of the variables in which bashkit keeps `set` options.
pub(super) const OPTION: &str = "SHOPT_";
/// The variable with the last argument of the last command.
pub(super) const LAST_WORD: &str = "_";

/// Keeps the streams of the session, since `exec` may redirect them, and creates a frame for positional parameters.
pub(super) const KEEP: &str = "set --; exec 254>&1 253>&2";
/// Restores the streams.
const STREAMS: &str = "exec 1>&254 2>&253; ";

/// The state to restore.
#[derive(Default)]
pub(super) struct SavedState {
    pub(super) options: Vec<(String, String)>,
    pub(super) traps: Vec<(String, String)>,
    pub(super) status: i32,
    pub(super) last_word: Option<String>,
    /// Whether `exec` may have redirected streams, which lasts for a text only.
    pub(super) redirected: bool,
}

/// The commands that restore it.
#[derive(Clone)]
pub(super) struct Resume {
    kept: Arc<Mutex<SavedState>>,
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
    pub(super) fn before(&self, text: &str) -> String {
        let word = &self.word;
        let kept = self.kept();
        let state = kept.redirected
            || !kept.options.is_empty()
            || kept.status != 0
            || kept.last_word.is_some()
            || !kept.traps.is_empty();
        // Before the others, which reset what is known of the last command.
        let streams = if kept.redirected { STREAMS } else { "" };
        match (state, kept.traps.last()) {
            (false, _) => text.to_owned(),
            (true, None) => format!("{streams}{word}; {text}"),
            // A DEBUG trap must not run before these commands.
            (true, Some((signal, _))) if signal == "DEBUG" => format!("{streams}{word}; {word}:traps; {text}"),
            (true, Some(_)) => format!("{streams}{word}:traps; {word}; {text}"),
        }
    }

    pub(super) fn kept(&self) -> std::sync::MutexGuard<'_, SavedState> {
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
