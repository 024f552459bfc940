//! Hooks before each command of a text and at the end of its shell, where bashkit differs from bash.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bashkit::hooks::{ExitEvent, HookAction, Interceptor, ToolEvent};

use super::disk::Disk;
use super::{precheck, programs, thread_pool};

/// The status of a bash after a failed expansion in its text.
const EXPANSION: i32 = 127;

/// Why a text ends whose commands call each other without an end.
const DEEP: &str =
    "maximum depth of commands exceeded: commands that call each other, as by `eval`, are nested too deep";

/// What is known about the end of a text.
#[derive(Default)]
pub(super) struct ShellExit {
    /// Whether it has ended its shell.
    pub(super) left: AtomicBool,
    /// Whether a failed expansion has ended it.
    expansion: AtomicBool,
    /// Whether the last command ends or replaces the shell.
    asked: AtomicBool,
    replaced: AtomicBool,
    /// Whether `exec` may have redirected streams of the shell.
    pub(super) redirected: AtomicBool,
    /// Why programs were not run, up to the bound.
    refused: Mutex<Vec<String>>,
    /// Why the text was ended, and the token that ends it.
    ended: Mutex<Option<&'static str>>,
    token: OnceLock<Arc<AtomicBool>>,
}

/// The largest number of refusals that are reported for one text.
const TOLD: usize = 8;

impl ShellExit {
    /// Resets the state for the next text.
    pub(super) fn reset(&self) {
        for known in [
            &self.left,
            &self.expansion,
            &self.asked,
            &self.replaced,
            &self.redirected,
        ] {
            known.store(false, Ordering::Relaxed);
        }
        self.take_refused();
        self.take_ended();
    }

    /// Sets the token that ends a text.
    pub(super) fn ends_with(&self, token: Arc<AtomicBool>) {
        let _ = self.token.set(token);
    }

    /// Ends the text, even if it would handle the failure of a command.
    pub(super) fn end(&self, why: &'static str) {
        self.ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(why);
        if let Some(token) = self.token.get() {
            token.store(true, Ordering::Relaxed);
        }
    }

    /// Returns why the text was ended, if it was.
    pub(super) fn take_ended(&self) -> Option<&'static str> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns why programs of the text were not run.
    pub(super) fn take_refused(&self) -> Vec<String> {
        std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn refuse(&self, why: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < TOLD && !refused.contains(&why) {
            refused.push(why);
        }
    }

    /// Returns whether a failed expansion has ended the text.
    pub(super) fn by_expansion(&self) -> bool {
        self.expansion.load(Ordering::Relaxed)
    }

    /// Returns the status of a text. After a failed expansion it is 127, or 1 if failures end the shell.
    pub(super) fn status(&self, code: i32, errexit: impl FnOnce() -> bool) -> i32 {
        if self.by_expansion() && code == EXPANSION && errexit() {
            1
        } else {
            code
        }
    }

    /// Returns the hook for the end of the shell.
    pub(super) fn on_exit(self: &Arc<Self>) -> Interceptor<ExitEvent> {
        let shell_exit = Arc::clone(self);
        Box::new(move |mut event| {
            let known = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
            shell_exit.left.store(true, Ordering::Relaxed);
            // A status of 1 without a command that ends the shell: a failed expansion (`set -u`, `${x:?}`). An EXIT
            // trap must see the status of bash.
            if event.code == 1 && !known(&shell_exit.asked) && !known(&shell_exit.replaced) {
                shell_exit.expansion.store(true, Ordering::Relaxed);
                event.code = EXPANSION;
            }
            HookAction::Continue(event)
        })
    }

    /// Returns the hook before each command.
    pub(super) fn before_command(self: &Arc<Self>, disk: &Arc<Disk>) -> Interceptor<ToolEvent> {
        let (shell_exit, disk) = (Arc::clone(self), Arc::clone(disk));
        Box::new(move |event| {
            disk.expect_script(matches!(event.name.as_str(), "bash" | "sh" | "." | "source"));
            shell_exit
                .asked
                .store(matches!(event.name.as_str(), "exit" | "exec"), Ordering::Relaxed);
            if event.name == "exec" {
                let kind = if event.args.is_empty() {
                    &shell_exit.redirected
                } else {
                    &shell_exit.replaced
                };
                kind.store(true, Ordering::Relaxed);
            }
            if thread_pool::is_deep() {
                shell_exit.end(DEEP);
                return HookAction::Cancel(DEEP.to_owned());
            }
            let why = programs::refusal(&event.name, &event.args);
            let why = why.or(disk.bytes.before(&event.name, &event.args));
            if let Some(why) = why.or_else(|| precheck::of_call(&event.name, &event.args)) {
                shell_exit.refuse(why.clone());
                return HookAction::Cancel(why);
            }
            HookAction::Continue(event)
        })
    }
}
