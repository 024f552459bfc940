//! An in-memory environment: files and a bash in memory, without processes, files or network of the host.
//!
//! A policy is enforced here by construction: a hidden file is missing from the tree for every command
//! ([`Builder::enforcing`]), a read-only tree refuses every change, and a program that is not allowed does not exist.
//!
//! The bash is bashkit, a reimplementation of bash. Memory supports a documented subset ([`Memory`]); unsupported
//! features fail with the status 127 or 125 and a message.

mod bash;
mod builder;
mod export;
mod memory;
mod program;
mod running;
mod shell;
mod tree;
mod tree_files;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::bash::{BashConfig, Ran, Stdin, Stdio, ThreadPool, answer};
use self::memory::{Inner, pipe};
use self::running::{Progress, Running};
use self::shell::Shell;
use self::tree_files::TreeFiles;
use shieling::approval::Approved;
use shieling::environment::{
    Ability, Capabilities, EnforceError, Enforced, Enforcement, Environment, Files, Later, Limit, Network, Platform,
};
use shieling::outcome::Confinement;
use shieling::process::{Process, SessionShell, SpawnError, Streams};
use shieling::request::Command;
use shieling::units::ByteCount;

pub use builder::{Builder, SeedError};
pub use export::ExportError;
pub use memory::Memory;
pub use program::{Handler, Program, ProgramCall, ProgramOutput};
pub use tree::Snapshot;

impl Memory {
    /// Builds a memory with this workspace, a path that has no relation to the host.
    pub fn builder(workspace: impl Into<PathBuf>) -> Builder {
        Builder::new(workspace.into())
    }

    /// Returns the workspace.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        &self.inner.workspace
    }

    /// Returns the largest size of its files, and of the variables and buffers of each command.
    #[must_use]
    pub fn limit(&self) -> ByteCount {
        ByteCount::bytes(self.inner.config.memory)
    }

    /// Returns the names of the available programs, sorted.
    #[must_use]
    pub fn programs(&self) -> Vec<&str> {
        self.inner.config.names()
    }

    /// Takes a snapshot of all files. It takes constant time, and later changes use memory as long as the snapshot is
    /// kept.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.inner.tree.snapshot()
    }

    /// Restores all files from a snapshot, which may come from another memory. Shells and running commands continue.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.inner.tree.restore(snapshot);
    }

    /// Creates another memory with the same files and rules, without shells and commands.
    #[must_use]
    pub fn fork(&self) -> Self {
        let tree = Arc::new(self.inner.tree.fork());
        Self::new(Arc::new(Inner {
            workspace: self.inner.workspace.clone(),
            tree: Arc::clone(&tree),
            config: self.inner.config.with_tree(tree),
        }))
    }

    /// Describes the features of the bash, for authors of commands.
    fn subset(&self) -> Vec<String> {
        let programs = self.programs().join(" ");
        let programs = match &self.inner.config.handler {
            Some(Handler::Unknown(_)) => format!("These programs are there, and others may be: {programs}."),
            Some(Handler::Whole(_)) | None => {
                format!("Beside bash itself there are these programs and no others (127): {programs}.")
            }
        };
        vec![
            programs,
            "No program of a host can be started: no compiler, interpreter, package manager or git, and no processes."
                .to_owned(),
            "What a program or bash cannot do here is refused with a status other than 0 and a message: look at both."
                .to_owned(),
        ]
    }

    fn start(&self, command: &Command, streams: Streams) -> Result<Process, SpawnError> {
        let failed = |what| move |source: io::Error| SpawnError::Supervisor { what, source };
        let environment = || self.name().to_owned();
        let input = match streams {
            Streams::Terminal(_) => {
                return Err(SpawnError::NoTerminal {
                    environment: environment(),
                });
            }
            Streams::Input => {
                return Err(SpawnError::NoInput {
                    environment: environment(),
                });
            }
            Streams::Output => Stdin::Empty,
            Streams::Given(given) => Stdin::From(given),
        };
        if !self.inner.is_directory(command.cwd()) {
            return Err(SpawnError::Directory {
                path: command.cwd().to_path_buf(),
                source: io::Error::new(io::ErrorKind::NotFound, "it is not a directory of this memory"),
            });
        }
        let (stdout_read, stdout) = pipe().map_err(failed("making a pipe"))?;
        let (stderr_read, stderr) = pipe().map_err(failed("making a pipe"))?;
        let stdio = Stdio { input, stdout, stderr };
        let progress = Arc::new(Progress::default());
        let running = Running::new(Arc::clone(&progress));
        let process = Process::from_parts(stdout_read, stderr_read, Box::new(running));
        let process = process.map_err(failed("watching a pipe"))?;
        self.texts.add(&progress);
        let (inner, command) = (Arc::clone(&self.inner), command.clone());
        let work = move |runtime: &tokio::runtime::Runtime| {
            progress.follow(|| runtime.block_on(inner.run(&command, stdio, &progress)).end);
        };
        ThreadPool::get()
            .take(Box::new(work))
            .map_err(failed("starting a thread"))?;
        Ok(process)
    }
}

impl Inner {
    async fn run(&self, command: &Command, stdio: Stdio, progress: &Progress) -> Ran {
        if let Some(Handler::Whole(program)) = &self.config.handler {
            let token = Arc::default();
            if !progress.begin(Arc::clone(&token)) {
                return Ran::broken_off();
            }
            let call = ProgramCall {
                argv: vec![command.text().to_owned()],
                cwd: command.cwd().to_path_buf(),
                variables: command.variables().clone(),
                input: Vec::new(),
            };
            let most = usize::try_from(self.config.memory).unwrap_or(usize::MAX);
            return answer(&**program, call, stdio, &token, most).await;
        }
        let (cwd, variables) = (command.cwd(), command.variables());
        let mut bash = match stdio.input {
            Stdin::Empty => self.config.bash_for(command.text(), cwd, variables),
            Stdin::From(_) => self.config.bash(cwd, variables),
        };
        if !progress.begin(bash.token()) {
            return Ran::broken_off();
        }
        let largest = command.file_size().map(ByteCount::get);
        let ran = bash.run(command.text(), stdio, largest, &self.config).await;
        // First, since the token that interrupts this command would also interrupt the next one in the same bash.
        progress.let_go();
        self.config.keep(bash, ran);
        ran
    }
}

impl Environment for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        let mut abilities = BTreeSet::from([
            Ability::Commands,
            Ability::Jobs,
            Ability::ReadFiles,
            Ability::WriteFiles,
        ]);
        // A handler of whole texts keeps no state between them.
        if !matches!(self.inner.config.handler, Some(Handler::Whole(_))) {
            abilities.insert(Ability::Sessions);
        }
        Capabilities {
            networks: BTreeSet::from([Network::None]),
            limits: BTreeSet::from([Limit::Memory, Limit::FileSize]),
            abilities,
        }
    }

    fn enforce(&self, asked: &Enforcement) -> Result<Enforced, EnforceError> {
        let rules = self.inner.tree.rules();
        let made = Enforcement {
            workspace: self.inner.workspace.clone(),
            readonly: rules.readonly,
            hidden: rules.hidden.clone(),
            programs: self.inner.config.allowed.clone(),
        };
        if !made.covers(asked) {
            return Err(EnforceError::Bound {
                environment: self.name().to_owned(),
                why: "was built without what the policy asks for",
                cure: "build it with `.enforcing(shieling::enforcement_of(&policy, workspace))`",
            });
        }
        Ok(Enforced {
            readonly: made.readonly,
            hidden: true,
            programs: made.programs.is_some(),
        })
    }

    fn confinement(&self) -> Confinement {
        let rules = self.inner.tree.rules();
        let layers = [
            ("memory.files", true),
            ("memory.bash", true),
            ("memory.readonly", rules.readonly),
            ("memory.hidden", rules.hidden.is_some()),
            ("memory.programs", self.inner.config.allowed.is_some()),
        ];
        let in_force = layers.iter().filter(|(_, in_force)| *in_force);
        Confinement {
            enforced: in_force.map(|(name, _)| (*name).to_owned()).collect(),
            missing: Vec::new(),
        }
    }

    fn platform(&self) -> Option<Platform> {
        let advice = match &self.inner.config.handler {
            Some(Handler::Whole(_)) => vec!["One program answers for all commands.".to_owned()],
            Some(Handler::Unknown(_)) | None => self.subset(),
        };
        Some(Platform {
            kernel: "no kernel".to_owned(),
            advice,
        })
    }

    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>> {
        Box::pin(async move { self.start(command.request(), streams) })
    }

    fn open_shell<'a>(&'a self, first: &'a Approved<Command>) -> Later<'a, Result<Box<dyn SessionShell>, SpawnError>> {
        Box::pin(async move {
            if matches!(self.inner.config.handler, Some(Handler::Whole(_))) {
                let why = "whoever answers for its commands keeps nothing between them".to_owned();
                return Err(SpawnError::Session { why });
            }
            let command = first.request();
            if !self.inner.is_directory(command.cwd()) {
                return Err(SpawnError::Directory {
                    path: command.cwd().to_path_buf(),
                    source: io::Error::new(io::ErrorKind::NotFound, "it is not a directory of this memory"),
                });
            }
            Ok(Box::new(Shell::new(Arc::clone(&self.inner), command)) as Box<dyn SessionShell>)
        })
    }

    fn syntax_check<'a>(&'a self, command: &'a Command) -> Later<'a, Option<(i32, String)>> {
        Box::pin(async move {
            match &self.inner.config.handler {
                Some(Handler::Whole(_)) => None,
                Some(Handler::Unknown(_)) | None => {
                    // On a thread of the pool, since the parser needs more stack than a thread of the caller has.
                    let (said, hears) = tokio::sync::oneshot::channel();
                    let text = command.text().to_owned();
                    let work = move |_: &tokio::runtime::Runtime| {
                        let _ = said.send(BashConfig::syntax_check(&text));
                    };
                    ThreadPool::get().take(Box::new(work)).ok()?;
                    hears.await.ok()?.map(|said| (2, said))
                }
            }
        })
    }

    fn files(&self) -> Later<'_, Result<Arc<dyn Files>, SpawnError>> {
        Box::pin(async { Ok(Arc::new(TreeFiles::new(Arc::clone(&self.inner.tree))) as Arc<dyn Files>) })
    }

    fn close(&self) -> Later<'_, ()> {
        // Only files are left.
        self.inner.config.spare.clear();
        self.texts.break_off();
        Box::pin(async {})
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("workspace", &self.inner.workspace)
            .finish_non_exhaustive()
    }
}
