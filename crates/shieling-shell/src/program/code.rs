//! Program text in other languages than the shell's, as far as it concerns the shell.
//!
//! Nothing is judged here about what such code does: it is code, and readonly asks about it. Only
//! one thing is looked for: whether it starts programs, since then a list of denied programs could
//! be got round through it.

use crate::descriptor::{Descriptor, descriptor};
use crate::reader::{Reader, Run};
use crate::reading::{Action, Doubt, PIPE, Via};
use crate::screen::Unreadable;
use crate::word::Word;

/// Words with which the common scripting languages start programs, or hide that they do.
const LAUNCHERS: &[&str] = &[
    "os.system",
    "popen",
    "subprocess",
    "os.exec",
    "os.spawn",
    "posix_spawn",
    "pty.",
    "commands.get",
    "child_process",
    "execSync",
    "spawnSync",
    "execFile",
    "Deno.Command",
    "Deno.run",
    "Bun.spawn",
    "system(",
    "system \"",
    "system '",
    "system(\"",
    "exec(",
    "exec \"",
    "exec '",
    "qx",
    "`",
    "shell_exec",
    "passthru",
    "proc_open",
    "pcntl_exec",
    "Open3",
    "Kernel.",
    "IO.popen",
    "%x",
    "spawn(",
    "spawn \"",
    "spawn '",
    "os.execute",
    "io.popen",
    "ProcessBuilder",
    "clojure.java.shell",
    "getRuntime",
    "__import__",
    "eval(",
    "b64decode",
    "fromCharCode",
    "getattr(os",
    "from os import",
    "from posix",
    "import posix",
    "__dict__",
    "vars(",
    "globals(",
    "import pty",
    "webbrowser",
    "readpipe",
    "process.binding",
    "child_",
    "mainModule",
    "importlib",
    "exec(",
    "breakpoint(",
    "code.interact",
    "ctypes",
    "syscall",
];

/// Whether a word names what a program is fed, where it takes the name of a file with code.
pub(super) fn is_standard_input(word: &Word) -> bool {
    word.known()
        .is_some_and(|path| path == "-" || descriptor(&path) == Some(Descriptor::Number(0)))
}

/// Whether a word names what something else writes while it is read.
fn is_opened(word: &Word) -> bool {
    word.known()
        .is_some_and(|path| path == PIPE || descriptor(&path).is_some())
}

/// Code that is given in the text, or a file of it.
pub(crate) fn code(word: &Word, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    if is_standard_input(word) {
        return match run.name.as_str() {
            "sed" | "gsed" => reader.input_read_by(super::sed::sed, run),
            name if name.ends_with("awk") => reader.input_read_by(super::awk::awk, run),
            _ => reader.code_from_input(run),
        };
    }
    if is_opened(word) {
        reader.unknown_launch(word, run);
    }
    let (object, span) = (word.shown(), word.span);
    reader.doubt(
        Doubt::Program,
        object.clone(),
        format!("`{}` runs code, and what that does is not read here", run.name),
        span,
        Some(run.index),
    );
    let Some(text) = word.known() else {
        reader.unknown_launch(word, run);
        return Ok(());
    };
    super::language::language(word, false, run, reader);
    let terse = run.name.starts_with("perl")
        || run.name.starts_with("ruby")
        || run.name.starts_with("tclsh")
        || matches!(run.name.as_str(), "m4" | "wish" | "expect");
    let terse = terse
        .then(|| {
            [
                "exec", "system", "|\"", "\"|", "'|", "|'", "fork", "syscmd", "esyscmd", "spawn",
            ]
            .iter()
            .find(|word| text.contains(**word))
        })
        .flatten();
    if let Some(found) = LAUNCHERS.iter().find(|launcher| text.contains(**launcher)).or(terse) {
        let because = format!("the code holds `{}`, which can start programs", found.trim());
        reader.doubt(Doubt::Launch, object, because, span, Some(run.index));
    } else {
        reader.effect(Action::Code(word.clone()), object, span, Some(run.index), Via::Operand);
    }
    Ok(())
}

/// A file of code that a program runs.
pub(super) fn file(word: &Word, run: &Run, reader: &mut Reader<'_>) {
    if is_opened(word) {
        reader.unknown_launch(word, run);
    }
    reader.effect_on(Action::RunsFile, word, Some(run.index), Via::Operand);
}
