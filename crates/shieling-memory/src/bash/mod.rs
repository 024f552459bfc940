//! The bash in memory. This module encapsulates bashkit.

mod precheck;
mod braces;
mod thread_pool;
mod disk;
mod files;
mod output_pipe;
mod custom;
mod plain;
mod programs;
mod resume;
mod run;
mod seq;
mod hooks;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bashkit::parser::{Parser, Script};
use bashkit::{Bash, ExecutionLimits, FileSystem, MemoryLimits, SessionLimits, ShellFeatures};

use self::custom::{CustomProgram, Sleep, Unknown};
use self::disk::Disk;
use self::hooks::ShellExit;
use self::plain::Made;
use self::resume::Resume;
use super::program::{Handler, Program};
use super::tree::Tree;

pub(super) use self::disk::ENDLESS;
pub(super) use self::plain::SpareBash;
pub(super) use self::resume::Standing;
pub(super) use self::run::{Ran, Stdin, Stdio, answer};
pub(super) use self::thread_pool::ThreadPool;

/// The user name.
pub(super) const USER: &str = "user";
/// The home directory.
pub(super) const HOME: &str = "/home/user";

/// A deadline that is never reached: callers apply their own.
const EVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The configuration of every bash of one memory.
pub(super) struct BashConfig {
    pub(super) tree: Arc<Tree>,
    /// The only programs that exist; `None` means all.
    pub(super) allowed: Option<Vec<String>>,
    pub(super) programs: BTreeMap<String, Arc<dyn Program>>,
    pub(super) handler: Option<Handler>,
    /// The largest size of the variables of one bash, and of the data between its commands.
    pub(super) memory: u64,
    /// The fixed time, in seconds since 1970, if there is one.
    pub(super) epoch: Option<i64>,
    /// A bash that is kept for the next plain text.
    pub(super) spare: SpareBash,
}

/// One bash.
pub(super) struct Engine {
    bash: Bash,
    disk: Arc<Disk>,
    unknown: Arc<Mutex<Option<String>>>,
    shell_exit: Arc<ShellExit>,
    /// State that bashkit loses between two texts, to be restored for the next.
    resume: Resume,
    /// Whether it runs more than one text.
    stays: bool,
    /// Set if it runs plain texts only.
    plain: Option<Made>,
}

impl BashConfig {
    /// Creates a bash in this directory with these variables.
    pub(super) fn bash(&self, cwd: &Path, variables: &BTreeMap<String, String>) -> Engine {
        let disk = Arc::new(Disk::new(Arc::clone(&self.tree)));
        let unknown = Arc::new(Mutex::new(None));
        let resume = Resume::new(self.has_scripts());
        let shell_exit = Arc::new(ShellExit::default());
        let allowed = self.allowed.clone();
        let handler = match &self.handler {
            Some(Handler::Unknown(program)) => Some(Arc::clone(program)),
            Some(Handler::Whole(_)) | None => None,
        };
        let mut builder = Bash::builder()
            .fs(Arc::clone(&disk) as Arc<dyn FileSystem>)
            .username(USER)
            .hostname("memory")
            .cwd(cwd)
            .limits(limits(self.memory))
            .session_limits(sessions())
            .memory_limits(memory(self.memory))
            .shell_features(ShellFeatures::all().script_execution(self.has_scripts()))
            .on_exit(shell_exit.on_exit())
            .before_tool(shell_exit.before_command())
            .builtin_filter(move |name| programs::there(name, allowed.as_deref()))
            .command_resolver(Arc::new(Unknown {
                handler,
                last: Arc::clone(&unknown),
                resume: resume.clone(),
            }));
        for (name, value) in variables {
            builder = builder.env(name, value);
        }
        if let Some(epoch) = self.epoch {
            builder = builder.fixed_epoch(epoch);
        }
        let may = |name: &str| programs::may(name, self.allowed.as_deref());
        if may("sleep") {
            builder = builder.builtin("sleep", Box::new(Sleep));
        }
        if may("seq") {
            builder = builder.command("seq", seq::Seq);
        }
        for (name, program) in files::all(&disk).filter(|(name, _)| may(name)) {
            builder = builder.builtin(name, program);
        }
        for (name, program) in &self.programs {
            let own = CustomProgram {
                name: name.clone(),
                program: Arc::clone(program),
            };
            builder = builder.builtin(name, Box::new(own));
        }
        let mut bash = builder.build();
        if !variables.contains_key("USER") {
            // Commands of bashkit that are not part of memory.
            let mut state = bash.shell_state();
            state.env.remove("USER");
            state.variables.remove("USER");
            bash.restore_shell_state(&state);
        }
        Engine {
            bash,
            disk,
            unknown,
            shell_exit,
            resume,
            stays: false,
            plain: None,
        }
    }

    /// Returns whether scripts exist. Nested shells and scripts count as programs.
    fn has_scripts(&self) -> bool {
        let allowed = self.allowed.as_deref();
        programs::may("bash", allowed) || programs::may("sh", allowed)
    }

    /// Returns the same configuration for other files.
    pub(super) fn with_tree(&self, tree: Arc<Tree>) -> Self {
        Self {
            tree,
            allowed: self.allowed.clone(),
            programs: self.programs.clone(),
            handler: self.handler.clone(),
            memory: self.memory,
            epoch: self.epoch,
            // It belongs to the old files.
            spare: SpareBash::default(),
        }
    }

    /// Returns the names of all programs.
    pub(super) fn names(&self) -> Vec<&str> {
        let allowed = self.allowed.as_deref();
        let mut names: Vec<&str> = programs::programs()
            .into_iter()
            .filter(|name| programs::may(name, allowed))
            .chain(self.programs.keys().map(String::as_str))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns bash's message about a text that cannot be parsed.
    pub(super) fn misread(text: &str) -> Option<String> {
        parsed(text).err()?.syntax_report("bash: -c", text)
    }
}

impl Engine {
    /// Returns the token that interrupts it.
    pub(super) fn token(&self) -> Arc<AtomicBool> {
        self.bash.cancellation_token()
    }

    /// Takes the last unknown command since the previous call.
    fn take_unknown(&self) -> Option<String> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Parses a text as bashkit does.
fn parsed(text: &str) -> bashkit::Result<Script> {
    let limits = limits(0);
    Parser::with_limits(text, limits.max_ast_depth, limits.max_parser_operations).parse()
}

/// Removes bashkit's bounds that the deadline replaces; those that protect its stack and its memory stay.
fn limits(memory: u64) -> ExecutionLimits {
    let mut limits = ExecutionLimits::new();
    limits.max_work_units = u64::MAX;
    limits.max_aggregate_input_bytes = u64::MAX;
    limits.max_live_intermediate_bytes = memory;
    limits.max_commands = usize::MAX;
    limits.max_loop_iterations = usize::MAX;
    limits.max_total_loop_iterations = usize::MAX;
    limits.timeout = EVER;
    limits.parser_timeout = EVER;
    limits.max_parser_operations = 100_000_000;
    limits.max_stdout_bytes = usize::try_from(memory).unwrap_or(usize::MAX);
    limits.max_stderr_bytes = limits.max_stdout_bytes;
    limits.max_word_split_fields = 10_000_000;
    limits.max_word_split_bytes = limits.max_stdout_bytes;
    limits
}

fn sessions() -> SessionLimits {
    let mut limits = SessionLimits::new();
    limits.max_total_commands = u64::MAX;
    limits.max_exec_calls = u64::MAX;
    limits
}

fn memory(bytes: u64) -> MemoryLimits {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    MemoryLimits::new()
        .max_variable_count(1_000_000)
        .max_total_variable_bytes(bytes)
        .max_array_entries(1_000_000)
        .max_function_count(10_000)
        .max_function_body_bytes(bytes)
}
