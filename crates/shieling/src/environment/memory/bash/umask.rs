//! `umask`: the bits that new files do not get. They are kept in a variable, so that a subshell has its
//! own, and by the files, which are not told who makes one.
//!
//! Bashkit tells nobody that a subshell has ended. One that has set a mask of its own therefore puts
//! the other one back itself, by a trap on its end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand, async_trait};

use super::disk::Disk;
use super::files::Mode;
use super::run::UNABLE;

/// The builtin that sets a mask, in words that a shell has expanded.
pub(super) const SET: &str = "__shieling_umask";
/// The builtin that puts a mask back.
pub(super) const BACK: &str = "__shieling_umask_back";
/// Where bashkit would keep it, which it shows nobody.
const VARIABLE: &str = "_UMASK";
/// What it is at first.
pub(super) const USUAL: u32 = 0o022;

/// The mask of a shell with these variables, none of which is a shell's within it.
pub(super) fn of(variables: &HashMap<String, String>) -> u32 {
    own(variables).unwrap_or(USUAL)
}

fn own(variables: &HashMap<String, String>) -> Option<u32> {
    u32::from_str_radix(variables.get(VARIABLE)?, 8).ok()
}

/// Whether a shell with these variables was started by another one (`bash -c`): it has the mask of that
/// one, and could not put it back.
fn is_within(variables: &HashMap<String, String>) -> bool {
    let level = variables.get("SHLVL").and_then(|level| level.parse().ok());
    level.is_some_and(|level: u32| level > 1)
}

/// The mask that holds for whoever makes a file, and what puts back the ones around it.
pub(super) struct Masks {
    now: AtomicU32,
    /// The innermost subshell that has a mask of its own comes last.
    back: Mutex<Vec<String>>,
}

impl Masks {
    pub(super) fn new() -> Self {
        Self {
            now: AtomicU32::new(USUAL),
            back: Mutex::default(),
        }
    }

    /// The bits that a new file does not get now.
    pub(super) fn now(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }

    /// What holds at the beginning of a text.
    pub(super) fn begin(&self, mask: u32) {
        self.now.store(mask, Ordering::Relaxed);
        self.back().clear();
    }

    fn back(&self) -> MutexGuard<'_, Vec<String>> {
        self.back.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a trap that a subshell sets on its end put the mask back, too.
    pub(super) fn keep_in_trap(&self, args: &mut [String]) {
        let Some(back) = self.back().last().cloned() else {
            return;
        };
        let at = usize::from(args.first().is_some_and(|arg| arg == "--"));
        let on_end = args
            .iter()
            .skip(at + 1)
            .any(|signal| matches!(signal.as_str(), "EXIT" | "0"));
        if !on_end || args[at] == back || args[at].starts_with("-p") {
            return;
        }
        args[at] = match args[at].as_str() {
            "-" | "" => back,
            action => format!("{action}\n{back}"),
        };
    }
}

/// `umask` itself, which shows the mask, and has a shell expand the rest.
pub(super) struct Umask(pub(super) Arc<Disk>);

/// How it was called.
struct Asked {
    symbolic: bool,
    reusable: bool,
    mode: Option<String>,
}

fn asked(args: &[String]) -> Result<Asked, String> {
    let mut asked = Asked {
        symbolic: false,
        reusable: false,
        mode: None,
    };
    let mut rest = args.iter();
    for arg in rest.by_ref() {
        match arg.strip_prefix('-') {
            Some("-") => break,
            Some(letters) if !letters.is_empty() && letters.chars().all(|letter| "Sp".contains(letter)) => {
                asked.symbolic |= letters.contains('S');
                asked.reusable |= letters.contains('p');
            }
            Some(letters) if !letters.is_empty() => {
                let letter = letters.chars().find(|letter| !"Sp".contains(*letter)).unwrap_or('-');
                return Err(format!(
                    "umask: -{letter}: invalid option\numask: usage: umask [-p] [-S] [mode]"
                ));
            }
            // The first one counts, as in bash.
            Some(_) | None => {
                asked.mode = Some(arg.clone());
                return Ok(asked);
            }
        }
    }
    asked.mode = rest.next().cloned();
    Ok(asked)
}

fn symbolic(mask: u32) -> String {
    let letters = |shift: u32| {
        let allowed = !mask >> shift;
        let bits = [(4, 'r'), (2, 'w'), (1, 'x')];
        let letters = bits.iter().filter(|(bit, _)| allowed & bit != 0);
        letters.map(|(_, letter)| letter).collect::<String>()
    };
    format!("u={},g={},o={}", letters(6), letters(3), letters(0))
}

/// The mask that a text makes of another one.
fn changed(text: &str, mask: u32) -> Result<u32, String> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        let bits = u32::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o7777);
        return bits
            .map(|bits| bits & 0o777)
            .ok_or_else(|| format!("umask: {text}: octal number out of range"));
    }
    let mode = Mode::read(text).ok_or_else(|| format!("umask: `{text}': invalid symbolic mode operator"))?;
    // What is allowed is changed, as `chmod` would with nothing masked.
    Ok(!mode.of(!mask & 0o777, false, 0) & 0o777)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[async_trait]
impl Builtin for Umask {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let mask = own(ctx.variables).unwrap_or_else(|| self.0.masks().now());
        Ok(match asked(ctx.args) {
            Err(why) => ExecResult::err(format!("bash: {why}\n"), 2),
            Ok(Asked { mode: Some(_), .. }) => {
                let why = "umask: memory cannot set a mask in a shell that another one has started";
                ExecResult::err(format!("{why}: set it before, or in a subshell\n"), UNABLE)
            }
            Ok(asked) => {
                let shown = if asked.symbolic {
                    symbolic(mask)
                } else {
                    format!("{mask:04o}")
                };
                let flag = if asked.symbolic { "-S " } else { "" };
                ExecResult::ok(if asked.reusable {
                    format!("umask {flag}{shown}\n")
                } else {
                    format!("{shown}\n")
                })
            }
        })
    }

    async fn execution_plan(&self, ctx: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        let Ok(Asked {
            mode: Some(mode),
            symbolic,
            ..
        }) = asked(ctx.args)
        else {
            return Ok(None);
        };
        if is_within(ctx.variables) {
            return Ok(None);
        }
        let show = if symbolic { "S" } else { "-" };
        // A subshell that has set one before keeps what puts the one around it back.
        let text = format!(
            "{SET} {} {show} \"$BASH_SUBSHELL\" \"$(trap -p EXIT)\" {:o} && \
             case \"$BASH_SUBSHELL $(trap -p EXIT)\" in 0\\ *) ;; *\"{BACK} \"*\" $BASH_SUBSHELL\"*) ;; \
             *) trap \"{BACK} {:o} $BASH_SUBSHELL\" EXIT ;; esac",
            quoted(&mode),
            of(ctx.variables),
            of(ctx.variables)
        );
        let command = SubCommand {
            name: "eval".to_owned(),
            args: vec![text],
            stdin: None,
            assignments: Vec::new(),
        };
        Ok(Some(ExecutionPlan::Batch {
            commands: vec![command],
        }))
    }
}

/// Sets the mask: what was asked for, how deep the shell is in others, and its trap on its end.
pub(super) struct Set(pub(super) Arc<Disk>);

#[async_trait]
impl Builtin for Set {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let [mode, show, depth, trap, before] = ctx.args else {
            return Ok(ExecResult::err(format!("{SET}: it is not for texts\n"), 2));
        };
        if depth != "0" && !trap.is_empty() && !trap.contains(BACK) {
            let why = "umask: memory cannot set a mask in a subshell that has, or whose shell has, a trap on EXIT";
            return Ok(ExecResult::err(format!("{why}: set it before\n"), UNABLE));
        }
        Ok(match changed(mode, of(ctx.variables)) {
            Err(why) => ExecResult::err(format!("bash: {why}\n"), 1),
            Ok(mask) => {
                ctx.variables.insert(VARIABLE.to_owned(), format!("{mask:04o}"));
                let masks = self.0.masks();
                masks.now.store(mask, Ordering::Relaxed);
                let mut back = masks.back();
                if depth != "0" && !back.last().is_some_and(|last| last.ends_with(&format!(" {depth}"))) {
                    back.push(format!("{BACK} {before} {depth}"));
                }
                ExecResult::ok(if show == "S" {
                    format!("{}\n", symbolic(mask))
                } else {
                    String::new()
                })
            }
        })
    }
}

/// Puts the mask of the shell around back for the files. The variable goes with the subshell.
pub(super) struct Back(pub(super) Arc<Disk>);

#[async_trait]
impl Builtin for Back {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let mask = ctx.args.first().and_then(|text| u32::from_str_radix(text, 8).ok());
        match mask {
            Some(mask) => {
                self.0.masks().now.store(mask, Ordering::Relaxed);
                self.0.masks().back().pop();
            }
            None => return Ok(ExecResult::err(format!("{BACK}: it is not for texts\n"), 2)),
        }
        Ok(ExecResult::ok(""))
    }
}

#[cfg(test)]
mod tests {
    use super::{changed, symbolic};

    #[test]
    fn masks_are_read_as_bash_reads_them() {
        let cases = [
            ("077", Ok(0o077)),
            ("0", Ok(0)),
            ("u=rwx,g=rx,o=", Ok(0o027)),
            ("g-w", Ok(0o022)),
            ("o+w", Ok(0o020)),
            ("a=rX", Ok(0o222)),
            ("=", Ok(0o777)),
            ("8", Err(())),
            ("1777", Ok(0o777)),
            ("10000", Err(())),
            ("q=r", Err(())),
        ];
        for (text, expected) in cases {
            assert_eq!(changed(text, 0o022).map_err(|_| ()), expected, "{text}");
        }
        assert_eq!(symbolic(0o027), "u=rwx,g=rx,o=");
    }
}
