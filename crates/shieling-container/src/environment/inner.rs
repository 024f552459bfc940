//! What an environment of this kind has: its engine, its image and, once one runs, its container.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shieling::changes::Rule;
use shieling::environment::{Enforcement, Hidden, WriteBack};
use shieling::outcome::{Changes, Confinement};
use shieling::process::SpawnError;
use shieling_remote::{Base, Remote};

use super::image::Progress;
use crate::agent::Agent;
use crate::check;
use crate::client::Engine;
use crate::error::{ContainerError, EngineError};
use crate::isolation::{Mount, real_or_will_be};
use crate::options::Options;
use crate::owner::{Stuck, short};
use crate::spec::Image;

/// How many things of a kind are told of one by one.
pub(super) const TOLD: usize = 5;

pub(super) struct Inner {
    pub(super) engine: Engine,
    pub(super) options: Options,
    pub(super) image: Image,
    pub(super) mounts: Vec<Mount>,
    /// Who commands run as, where that is said.
    pub(super) user: Option<String>,
    pub(super) agent: Agent,
    /// Takes lines about what takes long, and about what was left out.
    pub(super) progress: Option<Progress>,
    pub(super) policy: Mutex<Option<Enforcement>>,
    pub(super) running: Mutex<Option<Arc<Running>>>,
    pub(super) starting: tokio::sync::Mutex<()>,
    /// What the policy holds back of changes that come back.
    pub(super) rules: Mutex<Option<Vec<Rule>>>,
    /// Whether a container has ended that had a copy of which nothing came back.
    pub(super) has_lost_copy: AtomicBool,
    /// Whether a container has ended with a copy of the workspace, and no call has said so yet.
    pub(super) has_untold_loss: AtomicBool,
    /// What became of changes when it was closed.
    pub(super) settled: Mutex<Option<(Changes, Option<String>)>>,
    /// Told when a start that is under way is to be given up.
    pub(super) given_up: tokio::sync::Notify,
    /// What may be left after it was closed, and what to do about it.
    pub(super) left: Mutex<Option<String>>,
    /// The containers of single commands.
    pub(super) alone: Alone,
    /// The containers of earlier processes that were told of as not removed.
    pub(super) told_stuck: Mutex<BTreeSet<String>>,
    /// Why the last start failed.
    pub(super) failure: Mutex<Option<ContainerError>>,
}

/// A container in which the agent has answered.
pub(super) struct Running {
    pub(super) remote: Remote,
    pub(super) confinement: Confinement,
    /// What of the network is reached, in words.
    pub(super) network: String,
    /// The container's id, of one of our own.
    pub(super) id: Option<String>,
    /// The container's id.
    pub(super) container: String,
    /// Whether what the policy hides was left out of its copy of the workspace.
    pub(super) is_hiding: bool,
    /// Whether an outcome has said that it has ended.
    pub(super) is_end_told: AtomicBool,
    /// Its copy of the workspace, if what changes in it comes back.
    pub(super) copy: Option<WorkspaceBase>,
}

/// A copy of the workspace in a container, of which what differs comes back.
pub(super) struct WorkspaceBase {
    /// What the far side has made.
    pub(super) base: Base,
    /// The change set that takes what differs. `None` once it was taken.
    pub(super) back: Mutex<Option<WriteBack>>,
}

/// The containers of single commands.
#[derive(Default)]
pub(super) struct Alone {
    containers: Mutex<BTreeMap<u64, Arc<Running>>>,
    pub(super) last: AtomicU64,
    /// How many start.
    pub(super) starting: AtomicUsize,
    latest: Mutex<Option<Arc<Running>>>,
}

impl Alone {
    /// Those that are not known to be removed.
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Running>>> {
        lock(&self.containers)
    }

    /// The latest one, for what it has told of itself; its link may be over.
    pub(super) fn latest(&self) -> Option<Arc<Running>> {
        lock(&self.latest).clone()
    }

    pub(super) fn set_latest(&self, running: &Arc<Running>) {
        *lock(&self.latest) = Some(Arc::clone(running));
    }
}

impl Inner {
    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Arc<Running>>> {
        lock(&self.running)
    }

    /// The container, if it runs.
    pub(super) fn now(&self) -> Option<Arc<Running>> {
        self.lock().clone().filter(|running| running.remote.end().is_none())
    }

    /// Whether the policy is that nothing may change.
    pub(super) fn readonly(&self) -> bool {
        let policy = lock(&self.policy);
        policy.as_ref().is_some_and(|policy| policy.readonly)
    }

    /// What the policy hides of a workspace that is copied.
    pub(super) fn hidden(&self) -> Option<Arc<dyn Hidden>> {
        self.options.workspace_copy.as_ref()?;
        let policy = lock(&self.policy);
        policy.as_ref()?.hidden.clone()
    }

    /// Whether nothing that is hidden is in the container: the workspace is copied without it, and no volume shows a
    /// part of the workspace, or shows other files as parts of it.
    pub(super) fn hides(&self, asked: &Enforcement) -> bool {
        let options = &self.options;
        let (Some(_), Some(workspace)) = (&options.workspace_copy, &options.workspace) else {
            return false;
        };
        let workspace = real_or_will_be(workspace);
        let shows = |mount: &Mount| {
            mount.target.starts_with(&options.workdir)
                || mount.source.starts_with(&workspace)
                || workspace.starts_with(&mount.source)
        };
        asked.workspace == options.workdir && !self.mounts.iter().any(shows)
    }

    /// Tells of containers of earlier processes that could not be removed, of each once.
    pub(super) fn tell_stuck(&self, swept: Result<Vec<Stuck>, EngineError>) {
        let Some(progress) = &self.progress else { return };
        let stuck = match swept {
            Ok(stuck) => stuck,
            Err(error) => {
                progress(&format!(
                    "containers of earlier processes were not looked for: {error}; the next start looks again"
                ));
                return;
            }
        };
        let mut told = lock(&self.told_stuck);
        let new: Vec<_> = stuck.iter().filter(|one| told.insert(one.id.clone())).collect();
        for Stuck { id, why } in new.iter().take(TOLD) {
            let (name, id) = (self.engine.name(), short(id));
            progress(&format!(
                "the container `{id}` of an earlier process is left: {why}; the next start tries again, or `{name} rm -f \
                 {id}` removes it"
            ));
        }
        let more = new.len().saturating_sub(TOLD);
        if more > 0 {
            progress(&format!("{more} more containers of earlier processes are left"));
        }
    }

    /// Whether commands run as the first user of the container.
    pub(super) fn is_root(&self) -> bool {
        let user = self.user.as_deref().unwrap_or(&self.image.user);
        matches!(user.split(':').next(), Some("" | "0" | "root"))
    }

    /// Whether the engine maps its own user onto the one inside: a rootless Podman, asked for the owner.
    pub(super) fn keep_id(&self) -> bool {
        self.engine.is_podman()
            && self.options.user == Some(crate::options::User::Keep)
            && !rustix::process::geteuid().is_root()
    }

    pub(super) fn can_write(&self, unwritable: &[PathBuf]) -> Result<(), ContainerError> {
        match (self.options.mounted_workspace(), unwritable) {
            (Some(workspace), [_, ..]) => Err(ContainerError::NotWritable {
                user: self.user.clone().unwrap_or_else(|| "of the image".to_owned()),
                workspace: workspace.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// What the agent is told to look at for [`check`] and [`Self::can_write`].
    pub(super) fn setup(&self) -> shieling_remote::agent::Setup {
        let options = &self.options;
        shieling_remote::agent::Setup {
            environment: shieling_remote::agent::Wanted::Local,
            workspace: Some(options.workdir.clone()),
            show: check::FILES.iter().map(PathBuf::from).collect(),
            try_write: (options.is_own()
                && options.writable
                && options.mounted_workspace().is_some()
                && !self.readonly())
            .then(|| options.workdir.clone())
            .into_iter()
            .collect(),
            watch_memory: true,
            copies: true,
            ..shieling_remote::agent::Setup::default()
        }
    }
}

/// Locks what stays usable where a thread panicked with it.
pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why no command starts where the container does not.
pub(super) fn spawn_error(error: ContainerError) -> SpawnError {
    SpawnError::Environment(Box::new(error))
}

/// Does something on a thread of its own and waits for it: the caller may be in an event loop. Nothing if there is no
/// thread for it.
pub(super) fn apart<T: Send>(work: impl Future<Output = T> + Send) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("shieling-container".to_owned());
        thread
            .spawn_scoped(scope, move || runtime.block_on(work))
            .ok()?
            .join()
            .ok()
    })
}

/// Does something on a thread of its own: whoever drops it may be at the end of a runtime.
pub(super) fn in_background(work: impl Future<Output = ()> + Send + 'static) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    if let Ok(runtime) = runtime {
        let thread = std::thread::Builder::new().name("shieling-container".to_owned());
        // Without a thread it is left to the next start.
        drop(thread.spawn(move || runtime.block_on(work)));
    }
}
