//! Bytes that are not UTF-8. Bashkit keeps them in streams and files, but many of its programs work on text, in which
//! it replaces them silently. Such a program is refused where it would meet them.
//!
//! A file is checked when one of these programs reads it. A standard input is checked by stand-ins for these programs,
//! which only exist while there may be such bytes: a stand-in runs its program by `command`, which a trap or `set -x`
//! can see.

use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bashkit::{Builtin, BuiltinContext, BuiltinRegistry, ExecResult, ExecutionPlan, SubCommand, async_trait};

use super::programs;

/// The programs that work on text.
const TEXT: [&str; 24] = [
    "awk", "column", "comm", "cut", "diff", "envsubst", "expand", "fold", "gawk", "join", "nl", "paste", "rev", "rg",
    "sed", "shuf", "sort", "split", "tac", "tee", "tsort", "unexpand", "uniq", "xargs",
];

/// What may create such bytes from text.
const SOURCES: [&str; 14] = [
    "base32", "base64", "bunzip2", "bzcat", "bzip2", "dd", "echo", "gunzip", "gzip", "head", "printf", "tail", "tar",
    "tr",
];

/// The bytes of one bash.
#[derive(Default)]
pub(super) struct Bytes {
    registry: BuiltinRegistry,
    /// The programs that exist.
    names: Vec<&'static str>,
    /// Whether there may be such bytes.
    met: AtomicBool,
    /// The arguments of the last command, if it works on text.
    operands: Mutex<Vec<String>>,
}

/// A stand-in for a program that works on text.
struct StandIn {
    name: &'static str,
    registry: BuiltinRegistry,
}

impl Bytes {
    pub(super) fn new(exists: impl Fn(&str) -> bool) -> Self {
        Self {
            names: TEXT.into_iter().filter(|name| exists(name)).collect(),
            ..Self::default()
        }
    }

    pub(super) fn registry(&self) -> BuiltinRegistry {
        self.registry.clone()
    }

    /// Resets the state for the next text, with this input.
    pub(super) fn reset(&self, input: &[u8]) {
        self.met.store(false, Ordering::Relaxed);
        self.operands.lock().unwrap_or_else(PoisonError::into_inner).clear();
        for name in &self.names {
            self.registry.remove(name);
        }
        if std::str::from_utf8(input).is_err() {
            self.meet();
        }
    }

    fn meet(&self) {
        if !self.met.swap(true, Ordering::Relaxed) {
            self.stand_in();
        }
    }

    fn stand_in(&self) {
        for name in &self.names {
            let registry = self.registry.clone();
            self.registry
                .insert(*name, std::sync::Arc::new(StandIn { name, registry }));
        }
    }

    /// Records a command. Returns why it is refused, if it is.
    pub(super) fn before(&self, name: &str, args: &[String]) -> Option<String> {
        let mut operands = self.operands.lock().unwrap_or_else(PoisonError::into_inner);
        operands.clear();
        // `tee` replaces its files, and what `xargs` reads from one arrives in arguments.
        if TEXT.contains(&name) && !matches!(name, "tee" | "xargs") {
            operands.extend_from_slice(args);
        }
        let plain = matches!(name, "echo" | "printf") && !args.iter().any(|arg| arg.contains('\\'));
        let by_bytes = |arg: &String| arg.contains('c') || arg.starts_with("--b");
        let lines = matches!(name, "head" | "tail") && !args.iter().any(by_bytes);
        if SOURCES.contains(&name) && !plain && !lines {
            self.meet();
        }
        if !self.met.load(Ordering::Relaxed) {
            return None;
        }
        // A stand-in steps aside for `command` alone.
        if name != "command" {
            self.stand_in();
        }
        let lost = args.iter().any(|arg| arg.contains(char::REPLACEMENT_CHARACTER));
        lost.then(|| {
            format!("`{name}` would get bytes that are not UTF-8, which `memory` keeps in files and pipes only")
        })
    }

    /// Looks at a file that is read. Returns whether that is refused.
    pub(super) fn refuses(&self, path: &Path, content: &[u8]) -> bool {
        if std::str::from_utf8(content).is_ok() {
            return false;
        }
        self.meet();
        let operands = self.operands.lock().unwrap_or_else(PoisonError::into_inner);
        // Where the shell is at that moment is not known here.
        let below = |operand: &String| {
            let parts = Path::new(operand).components().rev();
            let parts: Vec<_> = parts.take_while(|part| matches!(part, Component::Normal(_))).collect();
            parts.into_iter().rev().collect::<PathBuf>()
        };
        operands
            .iter()
            .map(below)
            .any(|operand| operand.iter().next().is_some() && path.ends_with(operand))
    }
}

#[async_trait]
impl Builtin for StandIn {
    async fn execute(&self, _ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let name = self.name;
        let why = "its input is not UTF-8, and memory would change it; use `sandbox`";
        Ok(ExecResult::err(format!("{name}: {why}\n"), 1))
    }

    async fn execution_plan(&self, ctx: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        // The table counts `rg` as one that reads files only.
        let reads = self.name == "rg" || programs::reads(self.name, ctx.args) != Some(false);
        if reads && ctx.stdin.is_some_and(|input| input.text().is_err()) {
            return Ok(None);
        }
        self.registry.remove(self.name);
        let args = std::iter::once(self.name.to_owned()).chain(ctx.args.iter().cloned());
        let command = SubCommand {
            name: "command".to_owned(),
            args: args.collect(),
            stdin: ctx.stdin.cloned(),
            assignments: Vec::new(),
        };
        Ok(Some(ExecutionPlan::Batch {
            commands: vec![command],
        }))
    }
}
