//! What is looked at before each command of a text, and when it ends its shell: where bashkit would go
//! on otherwise than bash does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bashkit::hooks::{ExitEvent, HookAction, Interceptor, ToolEvent};

use super::{ahead, programs};

/// The status of a bash that was given its text, when an expansion in it failed.
const EXPANSION: i32 = 127;

/// What is known of the end of a text.
#[derive(Default)]
pub(super) struct Leaving {
    /// Whether it has ended its shell.
    pub(super) left: AtomicBool,
    /// Whether that was by an expansion that failed.
    expansion: AtomicBool,
    /// Whether the last command was one that ends a shell, or one has replaced the shell.
    asked: AtomicBool,
    replaced: AtomicBool,
    /// Why programs were not run, as far as it is told.
    refused: Mutex<Vec<String>>,
}

/// How many refusals of one text are told.
const TOLD: usize = 8;

impl Leaving {
    /// Forgets the text before.
    pub(super) fn reset(&self) {
        for known in [&self.left, &self.expansion, &self.asked, &self.replaced] {
            known.store(false, Ordering::Relaxed);
        }
        self.take_refused();
    }

    /// Why programs of the text were not run.
    pub(super) fn take_refused(&self) -> Vec<String> {
        std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn refuse(&self, why: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < TOLD && !refused.contains(&why) {
            refused.push(why);
        }
    }

    /// Whether an expansion that failed has ended the text.
    pub(super) fn by_expansion(&self) -> bool {
        self.expansion.load(Ordering::Relaxed)
    }

    /// The status of a text that has ended with this one. An expansion that failed gives 127, and 1 where
    /// failures end a shell.
    pub(super) fn status(&self, code: i32, errexit: impl FnOnce() -> bool) -> i32 {
        if self.by_expansion() && code == EXPANSION && errexit() {
            1
        } else {
            code
        }
    }

    /// What bashkit is to call when the shell ends.
    pub(super) fn on_exit(self: &Arc<Self>) -> Interceptor<ExitEvent> {
        let leaving = Arc::clone(self);
        Box::new(move |mut event| {
            let known = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
            leaving.left.store(true, Ordering::Relaxed);
            // With 1 and asked by no command: an expansion (`set -u`, `${x:?}`). What is trapped at the end
            // of the shell is to see bash's status.
            if event.code == 1 && !known(&leaving.asked) && !known(&leaving.replaced) {
                leaving.expansion.store(true, Ordering::Relaxed);
                event.code = EXPANSION;
            }
            HookAction::Continue(event)
        })
    }

    /// What bashkit is to call before each command.
    pub(super) fn before_command(self: &Arc<Self>) -> Interceptor<ToolEvent> {
        let leaving = Arc::clone(self);
        Box::new(move |event| {
            leaving
                .asked
                .store(matches!(event.name.as_str(), "exit" | "exec"), Ordering::Relaxed);
            if event.name == "exec" && !event.args.is_empty() {
                leaving.replaced.store(true, Ordering::Relaxed);
            }
            let why = programs::refusal(&event.name, &event.args);
            if let Some(why) = why.or_else(|| ahead::of_call(&event.name, &event.args)) {
                leaving.refuse(why.clone());
                return HookAction::Cancel(why);
            }
            HookAction::Continue(event)
        })
    }
}
