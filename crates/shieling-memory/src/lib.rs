//! Files in memory and a bash in memory: no process of the host, no file of the host, no network.
//!
//! What a policy says of an environment holds here because there is nothing else: a hidden file is not
//! in the tree for any command ([`Builder::enforcing`]), under readonly the tree refuses every
//! change, and a program that is not allowed does not exist.
//!
//! The bash is bashkit's, a bash that was written anew. It is a subset, which is documented
//! ([`Memory`]); what it does not have ends with 127 or 125 and says so.

mod bash;
mod builder;
mod export;
mod program;
mod running;
mod shell;
mod tree;
mod view;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::pipe::PipeFlags;

use self::bash::{Crew, Kit, Ran, Stdin, Stdio, answer};
use self::running::{Progress, Running};
use self::shell::Shell;
use self::tree::Tree;
use self::view::View;
use shieling::approval::Approved;
use shieling::environment::{
    Ability, Capabilities, EnforceError, Enforced, Enforcement, Environment, Files, Ground, Later, Limit, Network,
};
use shieling::outcome::Confinement;
use shieling::process::{Process, SessionShell, SpawnError, Streams};
use shieling::request::Command;
use shieling::units::ByteCount;

pub use builder::{Builder, SeedError};
pub use export::ExportError;
pub use program::{Answer, Call, Handler, Program};
pub use tree::Snapshot;

/// Files and a bash in memory.
///
/// Clones are the same memory; [`Self::fork`] makes another one.
///
/// # What its bash is
/// Bash 5 as far as scripts go: variables, arrays, arithmetic, expansions, functions, loops, `case`,
/// `[[ ]]`, pipes, redirections, here-documents, substitutions, subshells, `set -euo pipefail`, traps,
/// background jobs; and the usual programs for text and files (`grep`, `sed`, `awk`, `find`, `sort`,
/// `tar` and so on: a text that wants another one ends with 127 and the list). What it would do otherwise than
/// bash is refused in words, as far as that can be seen, and `sandbox` can do it:
///
/// - No program of a host, no network, no terminal, no processes: `ps`, `curl`, `git`, `python3` are
///   not there.
/// - Standard input is taken whole before a text begins, if the text may read it. Nobody writes to a command that
///   runs ([`SpawnError::NoInput`]).
/// - Of an input that several commands share, `read` takes lines, and one program the rest, outside of loops:
///   `{ read first; sort; } < f`. Other texts are refused before they run (125): `{ head -n 1; sort; } < f`.
///   Not seen is what scripts in files do.
/// - A text that makes a name readonly and has arithmetic or a loop that may assign to it is refused (125), and so
///   are two streams that change places (`3>&1 1>&2 2>&3`), and braces that make more than 10,000 words.
/// - The mask of new files is 0022 (`umask 077` is refused).
/// - Options that would be passed over are refused: `sha256sum --tag`, `cut -f0`, `stat` without `-c` and the like.
///   `chmod`, `cp`, `ls`, `mkdir`, `mv`, `realpath` and `rm` have their usual options, ask nobody, and refuse the others.
/// - `seq` counts whole numbers. `yes` prints 10,000 lines, `awk` 10 MB, `find` 1 MiB, `dd` moves 64 MiB, and `printf` and
///   `awk` write fields of 10,000 characters at most: beyond, they say so and fail. `printf %f` rounds halves up.
/// - `$BASH_COMMAND` is empty. `set -u` lets an array's missing element pass.
/// - A trap for the end of a shell runs at the end of its text, also in a session. With a trap for `DEBUG` a
///   session's next text begins with the status 0.
/// - A text is over when its background jobs are.
/// - `xargs` ends as what it ran has ended, and not with 123. `awk` and `cut -c` count characters.
/// - Functions, sourced files and shells in shells call each other 16 deep at most, subshells and
///   substitutions 32: beyond, the text ends with 125 and says why.
/// - Names of files are UTF-8. Those with line breaks, control characters or letters that nobody sees are for the
///   file tools, and for commands they cannot be opened by.
/// - There are no hard links, pipes or devices but `/dev/null` and its like.
/// - `cd x/..` and `cat x/../y` take `x/..` for nothing, also where `x` is a link.
///
/// # Examples
/// ```
/// use shieling::environment::Environment as _;
/// use shieling_memory::Memory;
///
/// let memory = Memory::builder("/workspace")
///     .seed([("notes.txt", "remember the milk\n")])
///     .build()?;
/// assert_eq!(memory.name(), "memory");
/// assert_eq!(memory.read("notes.txt")?, b"remember the milk\n");
///
/// let before = memory.snapshot();
/// memory.write("notes.txt", b"")?;
/// memory.restore(&before);
/// assert_eq!(memory.read("notes.txt")?, b"remember the milk\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    workspace: PathBuf,
    tree: Arc<Tree>,
    kit: Kit,
}

impl Memory {
    /// A memory that is worked in at this path, which is a name and nothing of the host's.
    pub fn builder(workspace: impl Into<PathBuf>) -> Builder {
        Builder::new(workspace.into())
    }

    /// The directory that is worked in.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        &self.inner.workspace
    }

    /// How much its files hold at most, and the variables and buffers of each command.
    #[must_use]
    pub fn limit(&self) -> ByteCount {
        ByteCount::bytes(self.inner.kit.memory)
    }

    /// The names of the programs that there are, sorted.
    #[must_use]
    pub fn programs(&self) -> Vec<&str> {
        self.inner.kit.names()
    }

    /// All files as they are now. Costs the same for any number of them, and holds what is changed
    /// later for as long as it is kept.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.inner.tree.snapshot()
    }

    /// Has all files be as they were then, also those of another memory. Shells that stay, and commands
    /// that run, go on.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.inner.tree.restore(snapshot);
    }

    /// Another memory, with the same files and rules, and neither shells nor commands.
    #[must_use]
    pub fn fork(&self) -> Self {
        let tree = Arc::new(self.inner.tree.fork());
        Self {
            inner: Arc::new(Inner {
                workspace: self.inner.workspace.clone(),
                tree: Arc::clone(&tree),
                kit: self.inner.kit.with_tree(tree),
            }),
        }
    }

    /// What its bash has and has not, for whoever writes for it.
    fn subset(&self) -> Vec<String> {
        let programs = self.programs().join(" ");
        let programs = match &self.inner.kit.handler {
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
        let (inner, command) = (Arc::clone(&self.inner), command.clone());
        let work = move |runtime: &tokio::runtime::Runtime| {
            progress.follow(|| runtime.block_on(inner.run(&command, stdio, &progress)).end);
        };
        Crew::get().take(Box::new(work)).map_err(failed("starting a thread"))?;
        Ok(process)
    }
}

impl Inner {
    async fn run(&self, command: &Command, stdio: Stdio, progress: &Progress) -> Ran {
        if let Some(Handler::Whole(program)) = &self.kit.handler {
            let token = Arc::default();
            if !progress.begin(Arc::clone(&token)) {
                return Ran::broken_off();
            }
            let call = Call {
                argv: vec![command.text().to_owned()],
                cwd: command.cwd().to_path_buf(),
                variables: command.variables().clone(),
                input: Vec::new(),
            };
            let most = usize::try_from(self.kit.memory).unwrap_or(usize::MAX);
            return answer(&**program, call, stdio, &token, most).await;
        }
        let (cwd, variables) = (command.cwd(), command.variables());
        let mut bash = match stdio.input {
            Stdin::Empty => self.kit.bash_for(command.text(), cwd, variables),
            Stdin::From(_) => self.kit.bash(cwd, variables),
        };
        if !progress.begin(bash.token()) {
            return Ran::broken_off();
        }
        let largest = command.file_size().map(ByteCount::get);
        let ran = bash.run(command.text(), stdio, largest, &self.kit).await;
        // First, since what breaks this command off would break off the next one in the same bash.
        progress.let_go();
        self.kit.keep(bash, ran);
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
        // Whoever answers for whole texts keeps nothing between them.
        if !matches!(self.inner.kit.handler, Some(Handler::Whole(_))) {
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
            programs: self.inner.kit.allowed.clone(),
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
            ("memory.programs", self.inner.kit.allowed.is_some()),
        ];
        let in_force = layers.iter().filter(|(_, in_force)| *in_force);
        Confinement {
            enforced: in_force.map(|(name, _)| (*name).to_owned()).collect(),
            missing: Vec::new(),
        }
    }

    fn ground(&self) -> Option<Ground> {
        let advice = match &self.inner.kit.handler {
            Some(Handler::Whole(_)) => vec!["One program answers for all commands.".to_owned()],
            Some(Handler::Unknown(_)) | None => self.subset(),
        };
        Some(Ground {
            kernel: "no kernel".to_owned(),
            advice,
        })
    }

    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>> {
        Box::pin(async move { self.start(command.request(), streams) })
    }

    fn open_shell<'a>(&'a self, first: &'a Approved<Command>) -> Later<'a, Result<Box<dyn SessionShell>, SpawnError>> {
        Box::pin(async move {
            if matches!(self.inner.kit.handler, Some(Handler::Whole(_))) {
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

    fn misread<'a>(&'a self, command: &'a Command) -> Later<'a, Option<(i32, String)>> {
        Box::pin(async move {
            match &self.inner.kit.handler {
                Some(Handler::Whole(_)) => None,
                Some(Handler::Unknown(_)) | None => Kit::misread(command.text()).map(|said| (2, said)),
            }
        })
    }

    fn files(&self) -> Later<'_, Result<Arc<dyn Files>, SpawnError>> {
        Box::pin(async { Ok(Arc::new(View::new(Arc::clone(&self.inner.tree))) as Arc<dyn Files>) })
    }

    fn close(&self) -> Later<'_, ()> {
        // Nothing else is held but files; commands that still run end with their processes.
        self.inner.kit.spare.clear();
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

/// A pipe: what is read from, and what is written to.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}
