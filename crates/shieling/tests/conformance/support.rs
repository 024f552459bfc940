//! Makers of our environments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling::environment::{Environment, JailLimits, Later, Local, Network, Restrictions, Sandbox, Shell};
use shieling_testkit::conformance::{EnvironmentFactory, HostDirectory, Requirements, TestEnvironment, Unmet};

const PATH: &str = "/usr/bin:/bin";

/// A workspace, and a directory beside it.
pub(crate) struct Ground {
    _folder: tempfile::TempDir,
    pub(crate) workspace: PathBuf,
    pub(crate) outside: PathBuf,
}

impl Ground {
    pub(crate) fn with(files: &BTreeMap<PathBuf, Vec<u8>>) -> std::io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?;
        let (workspace, outside) = (root.join("w"), root.join("outside"));
        std::fs::create_dir(&workspace)?;
        std::fs::create_dir(&outside)?;
        for (path, content) in files {
            let path = workspace.join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            std::fs::write(path, content)?;
        }
        Ok(Self {
            _folder: folder,
            workspace,
            outside,
        })
    }

    /// The place that an environment makes of it.
    pub(crate) fn place(self, environment: Arc<dyn Environment>) -> TestEnvironment {
        TestEnvironment {
            environment,
            workspace: self.workspace.clone(),
            variables: [("PATH".to_owned(), PATH.to_owned())].into(),
            outside: Some(Box::new(HostDirectory::new(&self.outside))),
            keep: Box::new(self),
        }
    }
}

/// Makes an environment of `local` and its workspace.
type Wrap = Box<dyn Fn(Local, &Path) -> Arc<dyn Environment> + Send + Sync>;

/// `local`, or a wrapper around it.
pub(crate) struct Locals {
    name: &'static str,
    wrap: Wrap,
}

impl Locals {
    pub(crate) fn new(
        name: &'static str,
        wrap: impl Fn(Local, &Path) -> Arc<dyn Environment> + Send + Sync + 'static,
    ) -> Self {
        let wrap = Box::new(wrap);
        Self { name, wrap }
    }
}

/// What `local` cannot do, it refuses.
fn local(wishes: &Requirements) -> Result<(Ground, Local), Unmet> {
    if wishes.limits != JailLimits::default() {
        return Err(Unmet::Refused("local limits nothing but the size of files".to_owned()));
    }
    if wishes.network.is_some_and(|network| network != Network::Host) {
        return Err(Unmet::Refused("local has the network of its host".to_owned()));
    }
    let shell = Shell::find(None).map_err(Unmet::fault)?;
    let ground = Ground::with(&wishes.files).map_err(Unmet::fault)?;
    let local = Local::new(shell).with_workspace(&ground.workspace);
    Ok((ground, local))
}

impl EnvironmentFactory for Locals {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn make<'a>(&'a self, wishes: &'a Requirements) -> Later<'a, Result<TestEnvironment, Unmet>> {
        Box::pin(async move {
            let (ground, local) = local(wishes)?;
            let environment = (self.wrap)(local, &ground.workspace);
            Ok(ground.place(environment))
        })
    }
}

/// `local` as it is.
pub(crate) fn locals() -> Arc<dyn EnvironmentFactory> {
    Arc::new(Locals::new("local", |local, _| Arc::new(local)))
}

/// `sandbox`.
pub(crate) struct Sandboxes;

impl EnvironmentFactory for Sandboxes {
    fn name(&self) -> String {
        "sandbox".to_owned()
    }

    fn make<'a>(&'a self, wishes: &'a Requirements) -> Later<'a, Result<TestEnvironment, Unmet>> {
        Box::pin(async move {
            let ground = Ground::with(&wishes.files).map_err(Unmet::fault)?;
            let shell = Shell::find(None).map_err(Unmet::fault)?;
            let mut restrictions = Restrictions::new(&ground.workspace, shell.program());
            restrictions.path = PATH.to_owned();
            restrictions.limits = wishes.limits;
            restrictions.limits.memory = restrictions.limits.memory.or(Some(2 << 30));
            restrictions.limits.pids = restrictions.limits.pids.or(Some(256));
            restrictions.network = wishes.network.unwrap_or(Network::None);
            let sandbox = Sandbox::new(restrictions, shell);
            Ok(ground.place(Arc::new(sandbox)))
        })
    }
}

/// The environment of the example, which is made outside of the library.
pub(crate) fn pipes() -> Arc<dyn EnvironmentFactory> {
    Arc::new(Locals::new("pipes", |_, _| Arc::new(crate::example::Pipes)))
}
