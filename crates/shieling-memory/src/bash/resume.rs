//! What a bash that stays has between two texts. Bashkit keeps variables, functions, positional
//! parameters and its directory, and forgets the rest when a text begins: options, traps, the last status
//! and its last word are put back by commands of ours in front of it. Nobody knows their names, nothing
//! lists them, and they go past whatever functions and aliases there are.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, ShellState, SubCommand, async_trait};

use super::Engine;
use super::disk::stub;
use super::run::Ran;

/// How the variables begin that bashkit keeps `set` options in.
const OPTION: &str = "SHOPT_";
/// The variable that is the last word of the last command.
const LAST_WORD: &str = "_";

/// The attribute of a variable that is readonly, as bashkit keeps it.
const READONLY: u8 = 1;

/// What is to be put back.
#[derive(Default)]
pub(super) struct Kept {
    options: Vec<(String, String)>,
    traps: Vec<(String, String)>,
    status: i32,
    last_word: Option<String>,
}

/// The commands that put it back.
#[derive(Clone)]
pub(super) struct Resume {
    kept: Arc<Mutex<Kept>>,
    /// Whether bashkit's own `trap` can be called by its path, which nothing has the name of.
    by_path: bool,
    word: String,
}

/// Puts options, the status and the last word back.
struct State(Resume);

/// Puts traps back.
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

    /// The command of this name, if it is one of these.
    pub(super) fn command(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        match name.strip_prefix(&self.word)? {
            "" => Some(Arc::new(State(self.clone()))),
            ":traps" => Some(Arc::new(Traps(self.clone()))),
            _ => None,
        }
    }

    /// The text, with what is to be put back before it. Its lines keep their numbers.
    fn before(&self, text: &str) -> String {
        let word = &self.word;
        let kept = self.kept();
        let state = !kept.options.is_empty() || kept.status != 0 || kept.last_word.is_some() || !kept.traps.is_empty();
        match (state, kept.traps.last()) {
            (false, _) => text.to_owned(),
            (true, None) => format!("{word}; {text}"),
            // What is called before each command is not to be called before these.
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
            // It was acted on when it happened.
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

/// How a bash stands between two texts.
pub(crate) struct Standing {
    pub(crate) cwd: PathBuf,
    pub(crate) variables: BTreeMap<String, String>,
}

impl Engine {
    /// The text, with what is to be put back before it.
    pub(super) fn resumed(&self, text: &str) -> String {
        self.resume.before(text)
    }

    /// Has what a shell that stays needs: a place for positional parameters, which bashkit else takes away
    /// at the end of each text.
    pub(crate) async fn stay(&mut self) {
        if !std::mem::replace(&mut self.stays, true) {
            // It says nothing and cannot fail.
            let _ = self.bash.execute("set --").await;
        }
    }

    /// How it stands after a text, which is put back before the next.
    pub(crate) fn settle(&mut self, ran: Ran) -> Standing {
        let view = self.bash.shell_state_view();
        let mut kept = self.resume.kept();
        if ran.misread {
            // What is to be put back has not been yet.
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
        // One for the end of the shell has been run at the end of its text.
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

    /// The names that are readonly in it, where texts have been before and this one may assign to them.
    pub(super) fn readonly(&self, text: &str) -> Vec<String> {
        let assigns = ["((", "for", "let", "mapfile", "readarray", "getopts", "select", "["];
        // To ask is to copy all that the shell has.
        if !self.stays || !assigns.iter().any(|sign| text.contains(sign)) {
            return Vec::new();
        }
        let attributes = self.bash.shell_state().var_attrs;
        let readonly = attributes
            .into_iter()
            .filter(|(_, attributes)| attributes & READONLY != 0);
        readonly.map(|(name, _)| name).collect()
    }

    /// Whether a failure ends it.
    pub(super) fn errexit(&self) -> bool {
        let view = self.bash.shell_state_view();
        view.variables.get("SHOPT_e").is_some_and(|value| value == "1")
    }

    /// All that it knows, to come back to.
    pub(crate) fn remember(&self) -> Memo {
        Memo(Box::new(self.bash.shell_state()))
    }

    /// As it was then.
    pub(crate) fn come_back(&mut self, memo: &Memo) {
        self.bash.restore_shell_state(&memo.0);
    }
}

/// What a bash knew at one time.
pub(crate) struct Memo(Box<ShellState>);
