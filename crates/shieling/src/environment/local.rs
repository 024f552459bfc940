//! This host, unconfined, and it says so: a command can do whatever the user can.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError};

use tokio::sync::Mutex;

use super::files::host::{Confined, HostFiles, View};
use super::{Ability, Capabilities, Environment, Files, Later, Limit, Network, Shell, argv, sandbox};
use crate::approval::Approved;
use crate::outcome::Confinement;
use crate::process::{Jail, JailError, Next, Ordered, Plan, Process, SessionShell, SpawnError, Streams};
use crate::request::Command;

/// Commands run directly on this host. Nothing is confined; only the size of files can be limited.
///
/// What starts them is `shieling-jail` all the same, without anything of a jail: a small process that
/// is made once, so that a start costs the same in a host of any size.
#[derive(Debug)]
pub struct Local {
    /// None if there is none: a text is then the words of one program.
    shell: Option<Shell>,
    workspace: Option<PathBuf>,
    once: bool,
    killed_first: bool,
    files: OnceLock<Arc<HostFiles>>,
    starter: Mutex<Option<Arc<Jail>>>,
    /// What [`Self::start_ahead`] has ordered.
    ahead: std::sync::Mutex<Option<Ordered>>,
}

impl Local {
    /// With this shell, and without files: [`Environment::files`] is an error until
    /// [`Self::with_workspace`] says which they are.
    pub fn new(shell: Shell) -> Self {
        Self::with(Some(shell))
    }

    /// Where there is no shell. A command's text is then the words of one program, with their quotation marks;
    /// what takes a shell is refused. Without files, as [`Self::new`].
    pub fn without_shell() -> Self {
        Self::with(None)
    }

    fn with(shell: Option<Shell>) -> Self {
        Self {
            shell,
            workspace: None,
            once: false,
            killed_first: false,
            files: OnceLock::new(),
            starter: Mutex::new(None),
            ahead: std::sync::Mutex::default(),
        }
    }

    /// With the files of this directory, an absolute path without links: what is asked of files reaches
    /// nothing else, although commands do.
    #[must_use]
    pub fn with_workspace(self, workspace: impl Into<PathBuf>) -> Self {
        Self {
            workspace: Some(workspace.into()),
            files: OnceLock::new(),
            ..self
        }
    }

    /// Expects one command: nothing is kept ready for another, which would take longer to start, and what starts
    /// commands ends with the first.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Has the kernel kill commands before this process and what looks after them when memory runs out: where all of
    /// them share a limit, as in a container. A command can undo it for itself.
    #[must_use]
    pub fn killed_first(self) -> Self {
        Self {
            killed_first: true,
            ..self
        }
    }

    /// Begins to start what starts commands, for a caller that has other things to do before the first. Needs no runtime,
    /// and nothing is waited for. If it fails, the first command tells why.
    pub fn start_ahead(&self) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if ahead.is_none() {
            *ahead = Jail::order_on_this_host(self.once, self.killed_first).ok();
        }
    }

    /// What starts commands, ordered.
    fn order(&self) -> Result<Ordered, JailError> {
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take();
        ahead.map_or_else(|| Jail::order_on_this_host(self.once, self.killed_first), Ok)
    }

    fn confined_files(&self) -> Result<Arc<HostFiles>, SpawnError> {
        if let Some(files) = self.files.get() {
            return Ok(Arc::clone(files));
        }
        let directory = self.workspace.clone().ok_or_else(|| {
            SpawnError::Environment("`local` was given no workspace to which files would be confined".into())
        })?;
        let called = "the workspace";
        let view = View::of_this_host(Confined { directory, called })
            .map_err(|errno| SpawnError::Environment(format!("this host's root cannot be opened: {errno}").into()))?;
        Ok(Arc::clone(self.files.get_or_init(|| Arc::new(HostFiles::new(view)))))
    }

    fn plan(&self, command: &Command) -> Result<Plan, SpawnError> {
        match &self.shell {
            Some(shell) => Ok(shell.plan(command)),
            None => argv::plan(command),
        }
    }

    fn can(&self, ability: Ability) -> bool {
        match ability {
            Ability::ReadFiles | Ability::WriteFiles => self.workspace.is_some(),
            Ability::Sessions => self.shell.as_ref().is_some_and(Shell::is_bash),
            Ability::Commands | Ability::Jobs | Ability::Input | Ability::Terminals | Ability::Processes => true,
        }
    }

    /// What starts commands: made at the first, and made anew if somebody has ended it.
    async fn starter(&self) -> Result<Arc<Jail>, JailError> {
        let mut starter = self.starter.lock().await;
        if let Some(starter) = starter.as_ref().filter(|starter| starter.is_alive()) {
            return Ok(Arc::clone(starter));
        }
        let made = self.order()?.ready().await?;
        Ok(Arc::clone(starter.insert(Arc::new(made))))
    }

    /// Starts a command, whose order goes with that of what starts it if there is none yet.
    async fn begin(&self, plan: &Plan, streams: Streams) -> Result<Process, SpawnError> {
        let next = if self.once { Next::Nothing } else { Next::Others };
        let mut starter = self.starter.lock().await;
        if let Some(made) = starter.as_ref().filter(|starter| starter.is_alive()).cloned() {
            drop(starter);
            return made.spawn_before(next, plan, streams).await;
        }
        let ordered = self.order().map_err(SpawnError::Jail)?;
        let sent = ordered.send(next, plan, streams)?;
        let made = Arc::new(ordered.ready().await.map_err(SpawnError::Jail)?);
        *starter = Some(Arc::clone(&made));
        drop(starter);
        made.join(plan, sent).await
    }
}

impl Environment for Local {
    fn name(&self) -> &str {
        "local"
    }

    fn shares_network(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            networks: BTreeSet::from([Network::Host]),
            limits: BTreeSet::from([Limit::FileSize]),
            abilities: Ability::ALL.into_iter().filter(|ability| self.can(*ability)).collect(),
        }
    }

    fn confinement(&self) -> Confinement {
        Confinement::default()
    }

    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>> {
        Box::pin(async move { self.begin(&self.plan(command.request())?, streams).await })
    }

    fn open_shell<'a>(&'a self, first: &'a Approved<Command>) -> Later<'a, Result<Box<dyn SessionShell>, SpawnError>> {
        Box::pin(async move {
            let shell = self.shell.as_ref().ok_or_else(|| SpawnError::Session {
                why: "there is no shell here: commands run one by one, as programs with their arguments".to_owned(),
            })?;
            shell.can_stay()?;
            let starter = self.starter().await.map_err(SpawnError::Jail)?;
            let shell = starter.spawn_shell(shell.plan(first.request())).await?;
            Ok(Box::new(shell) as Box<dyn SessionShell>)
        })
    }

    fn syntax_check<'a>(&'a self, command: &'a Command) -> Later<'a, Option<(i32, String)>> {
        Box::pin(async move {
            let shell = self.shell.as_ref()?;
            let starter = self.starter().await.ok()?;
            shell.syntax_check(&starter, command).await
        })
    }

    fn unprotected_paths(&self, paths: &[&Path], workspace: &Path) -> Vec<usize> {
        sandbox::protected(paths, workspace)
    }

    fn tells(&self) -> bool {
        false
    }

    fn files(&self) -> Later<'_, Result<Arc<dyn Files>, SpawnError>> {
        let files = self.confined_files().map(|files| files as Arc<dyn Files>);
        Box::pin(async move { files })
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(async {
            // It has started nothing, and goes by itself.
            drop(self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take());
            if let Some(starter) = self.starter.lock().await.take() {
                starter.close().await;
            }
        })
    }
}

/// Returns the name of this host's system, its release and the processor: `Linux 6.12.1 x86_64`.
pub fn kernel() -> String {
    let name = rustix::system::uname();
    [name.sysname(), name.release(), name.machine()]
        .map(std::ffi::CStr::to_string_lossy)
        .join(" ")
}
