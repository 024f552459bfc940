//! What a bash that stays has between two texts. Bashkit keeps variables, functions and its directory,
//! and forgets the rest: options, traps and the last status are put back before the next text, by a
//! builtin of ours in front of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bashkit::{Builtin, BuiltinContext, ExecResult, ShellState, async_trait};

use super::Engine;

/// The builtin.
pub(super) const RESUME: &str = "__shieling_resume";
/// How the variables begin that bashkit keeps `set` options in.
const OPTION: &str = "SHOPT_";

/// What is to be put back.
#[derive(Default)]
pub(super) struct Kept {
    options: Vec<(String, String)>,
    traps: Vec<(String, String)>,
    status: i32,
}

/// How a bash stands between two texts.
pub(in crate::environment::memory) struct Standing {
    pub(in crate::environment::memory) cwd: PathBuf,
    pub(in crate::environment::memory) variables: BTreeMap<String, String>,
}

/// Puts back what can be from within.
pub(super) struct Resume(pub(super) Arc<Mutex<Kept>>);

#[async_trait]
impl Builtin for Resume {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, value) in &kept.options {
            ctx.variables.insert(name.clone(), value.clone());
        }
        Ok(ExecResult {
            exit_code: kept.status,
            ..ExecResult::default()
        })
    }
}

impl Engine {
    /// The text, with what is to be put back before it. Its lines keep their numbers. A function of the
    /// user that is called `trap` is called instead: this bash has no way around it.
    pub(super) fn resumed(&mut self, text: &str) -> String {
        let user = if std::mem::take(&mut self.foreign_user) {
            "unset USER; "
        } else {
            ""
        };
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.options.is_empty() && kept.traps.is_empty() && kept.status == 0 {
            return format!("{user}{text}");
        }
        let traps = kept
            .traps
            .iter()
            .map(|(signal, action)| format!("trap -- '{}' {signal}; ", action.replace('\'', "'\\''")));
        format!("{user}{}{RESUME}; {text}", traps.collect::<String>())
    }

    /// How it stands after a text, which is put back before the next.
    pub(in crate::environment::memory) fn settle(&mut self) -> Standing {
        let view = self.bash.shell_state_view();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.options = view
            .variables
            .iter()
            .filter(|(name, _)| name.starts_with(OPTION))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        kept.options.sort();
        // One for the end of the shell has been run at the end of its text.
        kept.traps = view.traps.into_iter().filter(|(signal, _)| signal != "EXIT").collect();
        kept.traps.sort();
        // Where a failure ends the shell or is acted on, this one was acted on before.
        let acts = |(name, value): &(String, String)| name == "SHOPT_e" && value == "1";
        let acted = kept.options.iter().any(acts) || kept.traps.iter().any(|(signal, _)| signal == "ERR");
        kept.status = if acted { 0 } else { view.last_exit_code };
        Standing {
            cwd: view.cwd,
            variables: view.env.into_iter().collect(),
        }
    }

    /// Whether a failure ends it.
    pub(super) fn errexit(&self) -> bool {
        let view = self.bash.shell_state_view();
        view.variables.get("SHOPT_e").is_some_and(|value| value == "1")
    }

    /// All that it knows, to come back to.
    pub(in crate::environment::memory) fn remember(&self) -> Memo {
        Memo(Box::new(self.bash.shell_state()))
    }

    /// As it was then.
    pub(in crate::environment::memory) fn come_back(&mut self, memo: &Memo) {
        self.bash.restore_shell_state(&memo.0);
        self.foreign_user = false;
    }
}

/// What a bash knew at one time.
pub(in crate::environment::memory) struct Memo(Box<ShellState>);
