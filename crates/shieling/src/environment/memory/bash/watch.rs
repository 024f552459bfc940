//! What is looked at before each command of a text, and when it ends its shell: where bashkit would go
//! on otherwise than bash does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bashkit::hooks::{ExitEvent, HookAction, Interceptor, ToolEvent};
use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};

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
}

impl Leaving {
    /// Forgets the text before.
    pub(super) fn reset(&self) {
        for known in [&self.left, &self.expansion, &self.asked, &self.replaced] {
            known.store(false, Ordering::Relaxed);
        }
    }

    /// Whether an expansion that failed has ended the text.
    pub(super) fn by_expansion(&self) -> bool {
        self.expansion.load(Ordering::Relaxed)
    }

    /// The status of a text that has ended with this one. An expansion that failed gives 127, and 1 where
    /// failures end a shell.
    pub(super) fn status(&self, code: i32, errexit: bool) -> i32 {
        if self.by_expansion() && errexit && code == EXPANSION {
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
        Box::new(move |mut event| {
            leaving
                .asked
                .store(matches!(event.name.as_str(), "exit" | "exec"), Ordering::Relaxed);
            if event.name == "exec" && !event.args.is_empty() {
                leaving.replaced.store(true, Ordering::Relaxed);
            }
            if event.name == "ls" {
                sort_operands(&mut event.args);
            }
            HookAction::Continue(event)
        })
    }
}

/// `ls` sorts what it is given by name, and bashkit's does not.
fn sort_operands(args: &mut [String]) {
    let mut options = true;
    let mut reverse = false;
    let mut places = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        match arg.strip_prefix('-') {
            Some("-") if options => options = false,
            // An order of its own, or none.
            Some(letters) if options && letters.starts_with("-sort") => return,
            Some(letters) if options && letters.starts_with('-') => reverse |= letters == "-reverse",
            Some(letters) if options && !letters.is_empty() => {
                if letters.contains(['U', 'f', 't', 'S', 'X', 'v', 'c', 'u']) {
                    return;
                }
                reverse |= letters.contains('r');
            }
            Some(_) | None => places.push(at),
        }
    }
    let mut operands: Vec<String> = places.iter().map(|&at| args[at].clone()).collect();
    operands.sort_unstable();
    if reverse {
        operands.reverse();
    }
    for (at, operand) in places.into_iter().zip(operands) {
        args[at] = operand;
    }
}

/// `umask`: files are made with 644 and directories with 755 in memory, whatever is asked for.
pub(super) struct Umask;

#[async_trait]
impl Builtin for Umask {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let args: Vec<&str> = ctx.args.iter().map(String::as_str).collect();
        Ok(match args[..] {
            [] => ExecResult::ok("0022\n"),
            ["-S"] => ExecResult::ok("u=rwx,g=rx,o=rx\n"),
            ["-p"] => ExecResult::ok("umask 0022\n"),
            ["22" | "022" | "0022" | "u=rwx,g=rx,o=rx"] => ExecResult::ok(""),
            _ => {
                let why = "umask: memory has no other mask than 0022; use chmod";
                ExecResult::err(format!("{why}\n"), super::run::UNABLE)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::sort_operands;

    #[test]
    fn operands_of_ls_are_sorted_unless_another_order_is_asked_for() {
        let cases = [
            ("b a", "a b"),
            ("-l b -a a", "-l a -a b"),
            ("-r a b", "-r b a"),
            ("-t b a", "-t b a"),
            ("--sort=size b a", "--sort=size b a"),
            ("b -- -t a", "-t -- a b"),
        ];
        for (given, expected) in cases {
            let mut args: Vec<String> = given.split(' ').map(str::to_owned).collect();
            sort_operands(&mut args);
            assert_eq!(args.join(" "), expected, "{given}");
        }
    }
}
