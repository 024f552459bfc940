//! A bash and its configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bashkit::{Bash, FileSystem, MemoryLimits, SessionLimits, ShellFeatures};

use super::bytes::Bytes;
use super::custom::{CustomProgram, Sleep, Unknown};
use super::disk::Disk;
use super::hooks::ShellExit;
use super::parsing::{is_deep, limits, parsed};
use super::resume::Resume;
use super::user::USER;
use super::{files, programs, seq};
use crate::program::{Handler, Program};
use crate::tree::Tree;

/// The configuration of every bash of one memory.
pub(crate) struct BashConfig {
    pub(crate) tree: Arc<Tree>,
    /// The only programs that exist; `None` means all.
    pub(crate) allowed: Option<Vec<String>>,
    pub(crate) programs: BTreeMap<String, Arc<dyn Program>>,
    pub(crate) handler: Option<Handler>,
    /// The largest size of the variables of one bash, and of the data between its commands.
    pub(crate) memory: u64,
    /// The fixed time, in seconds since 1970, if there is one.
    pub(crate) epoch: Option<i64>,
    /// A bash that is kept for the next plain text.
    pub(crate) spare: SpareBash,
}

/// One bash.
pub(crate) struct Engine {
    pub(super) bash: Bash,
    pub(super) disk: Arc<Disk>,
    pub(super) unknown: Arc<Mutex<Option<String>>>,
    pub(super) shell_exit: Arc<ShellExit>,
    /// State that bashkit loses between two texts, to be restored for the next.
    pub(super) resume: Resume,
    /// Whether it runs more than one text.
    pub(super) stays: bool,
    /// Set if it runs plain texts only.
    pub(super) plain: Option<PlainUse>,
}

impl BashConfig {
    /// Creates a bash in this directory with these variables.
    pub(crate) fn bash(&self, cwd: &Path, variables: &BTreeMap<String, String>) -> Engine {
        let may = |name: &str| programs::may(name, self.allowed.as_deref());
        let bytes = Bytes::new(|name| may(name) && !self.programs.contains_key(name));
        let registry = bytes.registry();
        let disk = Arc::new(Disk::new(Arc::clone(&self.tree), bytes));
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
            .builtin_registry(registry)
            .on_exit(shell_exit.on_exit())
            .before_tool(shell_exit.before_command(&disk))
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
        shell_exit.ends_with(bash.cancellation_token());
        let mut state = bash.shell_state();
        // As in every bash, whatever its environment says. Bashkit leaves it unset, and a text that saves and restores
        // it would switch word splitting off.
        state.variables.insert("IFS".to_owned(), " \t\n".to_owned());
        if !variables.contains_key("USER") {
            // Commands of bashkit that are not part of memory.
            state.env.remove("USER");
            state.variables.remove("USER");
        }
        bash.restore_shell_state(&state);
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
    pub(super) fn has_scripts(&self) -> bool {
        let allowed = self.allowed.as_deref();
        programs::may("bash", allowed) || programs::may("sh", allowed)
    }

    /// Returns the same configuration for other files.
    pub(crate) fn with_tree(&self, tree: Arc<Tree>) -> Self {
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
    pub(crate) fn names(&self) -> Vec<&str> {
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
    pub(crate) fn syntax_check(text: &str) -> Option<String> {
        // It is refused when it is run.
        if is_deep(text) {
            return None;
        }
        parsed(text).err()?.syntax_report("bash: -c", text)
    }
}

impl Engine {
    /// Returns the token that interrupts it.
    pub(crate) fn token(&self) -> Arc<AtomicBool> {
        self.bash.cancellation_token()
    }

    /// Takes the last unknown command since the previous call.
    pub(super) fn take_unknown(&self) -> Option<String> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
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

/// A bash that is kept for the next plain text.
#[derive(Default)]
pub(crate) struct SpareBash {
    engine: Mutex<Option<Engine>>,
}

impl SpareBash {
    /// Drops the bash.
    pub(crate) fn clear(&self) {
        // Dropped outside of the lock, since it takes long.
        let _ = self.lock().take();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Engine>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a bash for plain texts was created, and how many it has run.
pub(super) struct PlainUse {
    pub(super) cwd: PathBuf,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) texts: u32,
}
