//! Places to run commands in through the library: sandboxes and `local`, for one caller. The only code in
//! xtask that starts either.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Environment, Local, Restrictions, Sandbox, Shell};
use shieling::files::{FileRequest, FileResponse};
use shieling::outcome::Outcome;
use shieling::policy::Policy;
use shieling::process::Jail;
use shieling::request::Command;
use tokio::runtime::Runtime;

/// The limits of a sandbox where nobody sets one, as the command line has them.
const MEMORY: u64 = 4 << 30;
const PIDS: u64 = 512;

/// Variables that say where toolchains stand.
const ROOTS: &[&str] = &["CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT"];

/// Whose commands run, and where: everything that both a bare command and one of ours are given.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) workspace: PathBuf,
    pub(crate) home: PathBuf,
    variables: BTreeMap<String, String>,
}

impl Caller {
    /// This process's user, with its `PATH` and `HOME`, working in this directory.
    pub(crate) fn here(workspace: &Path) -> anyhow::Result<Self> {
        let workspace = workspace.canonicalize().context("the workspace is not there")?;
        let of_ours = |name: &str| std::env::var(name).ok().map(|value| (name.to_owned(), value));
        let mut variables: BTreeMap<_, _> = ["PATH", "HOME"]
            .iter()
            .chain(ROOTS)
            .filter_map(|name| of_ours(name))
            .collect();
        let home = variables.get("HOME").context("`HOME` is not set")?.into();
        ensure!(variables.contains_key("PATH"), "`PATH` is not set");
        let target = workspace.join("target");
        variables.insert("CARGO_TARGET_DIR".to_owned(), target.to_string_lossy().into_owned());
        Ok(Self {
            workspace,
            home,
            variables,
        })
    }

    /// The whole environment of each command.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

/// The library, ready to make places for a caller.
pub(crate) struct Library {
    runtime: Runtime,
    shell: Shell,
    caller: Caller,
}

impl Library {
    pub(crate) fn new(caller: &Caller) -> anyhow::Result<Self> {
        Ok(Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            shell: Shell::find(None)?,
            caller: caller.clone(),
        })
    }

    /// Whose commands run in its places.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// A sandbox of its own, with the default limits. It starts with its first command.
    pub(crate) fn sandbox(&self) -> Place<'_> {
        let caller = &self.caller;
        let mut restrictions = Restrictions::new(&caller.workspace, self.shell.program());
        restrictions.path = caller.variables.get("PATH").cloned().unwrap_or_default();
        restrictions.home = Some(caller.home.clone());
        restrictions.roots = ROOTS
            .iter()
            .filter_map(|&name| Some((name.to_owned(), caller.variables.get(name)?.into())))
            .collect();
        restrictions.limits.memory = Some(MEMORY);
        restrictions.limits.pids = Some(PIDS);
        self.place(Arc::new(Sandbox::new(restrictions, self.shell.clone())))
    }

    /// This host, unconfined; files are those of the workspace.
    pub(crate) fn local(&self) -> Place<'_> {
        let local = Local::new(self.shell.clone()).with_workspace(&self.caller.workspace);
        self.place(Arc::new(local))
    }

    /// An environment that was made elsewhere.
    pub(crate) fn over(&self, environment: Arc<dyn Environment>) -> Place<'_> {
        self.place(environment)
    }

    /// Waits for what is no command.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn place(&self, environment: Arc<dyn Environment>) -> Place<'_> {
        let builder = Shieling::builder(environment, Policy::open(), &self.caller.workspace);
        Place {
            library: self,
            shieling: Arc::new(
                builder
                    .approval(Mode::OnAsk)
                    .build()
                    .expect("it serves no other policy"),
            ),
        }
    }

    /// The process from which the sandboxes of this process come, by its number.
    pub(crate) fn zygote(&self) -> anyhow::Result<u32> {
        // Where nothing is confined, the monitor serves itself, and its number is one of this host.
        let jail = self.runtime.block_on(Jail::unconfined())?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", jail.ready().monitor))?;
        self.runtime.block_on(jail.close());
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent
            .context("a process has a parent")?
            .trim()
            .parse()
            .context("a number")
    }
}

/// Where commands run.
pub(crate) struct Place<'a> {
    library: &'a Library,
    shieling: Arc<Shieling>,
}

impl Place<'_> {
    /// Runs a command to its end, which must be a good one.
    pub(crate) fn run(&self, text: &str) -> anyhow::Result<Outcome> {
        let outcome = self
            .library
            .runtime
            .block_on(self.shieling.run(self.command(text)?, None));
        ensure!(outcome.exit_code == Some(0), "`{text}` did not run: {outcome:?}");
        Ok(outcome)
    }

    /// Does what is asked of files.
    pub(crate) fn file(&self, ask: FileRequest) -> anyhow::Result<FileResponse> {
        Ok(self.library.runtime.block_on(self.shieling.file(ask))?)
    }

    /// Runs a command in a session, which must be a good one.
    pub(crate) fn session(&self, session: &str, text: &str) -> anyhow::Result<Outcome> {
        let session = self.shieling.session(session.parse()?);
        let outcome = self.library.runtime.block_on(session.run(self.command(text)?));
        ensure!(outcome.exit_code == Some(0), "`{text}` did not run: {outcome:?}");
        Ok(outcome)
    }

    /// Has this many sessions run a text again and again for this long, all at once. How often each has.
    pub(crate) fn busy(&self, sessions: usize, text: &str, how_long: Duration) -> anyhow::Result<Vec<usize>> {
        let end = Instant::now() + how_long;
        self.library.runtime.block_on(async {
            let mut all = tokio::task::JoinSet::new();
            for number in 0..sessions {
                let shieling = Arc::clone(&self.shieling);
                let name = format!("busy{number}").parse()?;
                let command = self.command(text)?;
                all.spawn(async move {
                    let session = shieling.session(name);
                    let mut count = 0;
                    while Instant::now() < end {
                        let outcome = session.run(command.clone()).await;
                        ensure!(outcome.exit_code == Some(0), "it did not run: {outcome:?}");
                        count += 1;
                    }
                    Ok(count)
                });
            }
            all.join_all().await.into_iter().collect()
        })
    }

    /// Ends its sessions, and gives back what it holds.
    pub(crate) fn end(self) {
        self.library.runtime.block_on(self.shieling.close());
    }

    /// Gives back what it holds, and how long that took.
    pub(crate) fn close(self) -> Duration {
        let start = Instant::now();
        self.library.runtime.block_on(self.shieling.environment().close());
        start.elapsed()
    }

    /// As [`Self::close`], while this command runs and once `ready` says so.
    pub(crate) fn close_under(self, text: &str, ready: impl Fn() -> bool) -> anyhow::Result<Duration> {
        let command = self.command(text)?;
        self.library.runtime.block_on(async {
            let mut running = pin!(self.shieling.run(command, None));
            let until_ready = async {
                while !ready() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                // The last of them may not be all they are to be yet.
                tokio::time::sleep(Duration::from_millis(100)).await;
            };
            tokio::select! {
                outcome = &mut running => anyhow::bail!("it ended before it was to be ended: {outcome:?}"),
                () = until_ready => {}
            }
            let start = Instant::now();
            self.shieling.environment().close().await;
            Ok(start.elapsed())
        })
    }

    fn command(&self, text: &str) -> anyhow::Result<Command> {
        let caller = &self.library.caller;
        Ok(Command::new(text, &caller.workspace)?.with_variables(caller.variables.clone()))
    }
}
