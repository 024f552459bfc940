//! The conformance suite, for each engine and for containers that are attached to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use shieling::environment::{Environment as _, JailLimits, Later, Network};
use shieling_container::{Options, Reach};
use shieling_testkit::conformance::{EnvironmentFactory, Requirements, Suite, TestEnvironment, Unmet};
use shieling_testkit::extent;

use super::support::{Engine, Kind, TOOLS, engine, turn, variables, workspace};

/// Containers of one engine.
struct Containers {
    engine: &'static Engine,
    /// The container to attach to, if none is made.
    attached: Option<Attached>,
}

struct Attached {
    id: String,
    /// A directory that is in it by the same path as outside.
    shared: PathBuf,
}

impl EnvironmentFactory for Containers {
    fn name(&self) -> String {
        format!("containers of {:?}", self.engine.kind)
    }

    fn make<'a>(&'a self, wishes: &'a Requirements) -> Later<'a, Result<TestEnvironment, Unmet>> {
        Box::pin(async move {
            let place = match &self.attached {
                None => workspace(),
                Some(attached) => tempfile::tempdir_in(&attached.shared).map_err(Unmet::fault)?,
            };
            for (path, content) in &wishes.files {
                let path = place.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).map_err(Unmet::fault)?;
                std::fs::write(path, content).map_err(Unmet::fault)?;
            }
            if self.attached.is_none() {
                self.engine.give(place.path());
            }
            let options = match &self.attached {
                None => self.own(place.path(), wishes)?,
                Some(attached) => {
                    if wishes.limits != JailLimits::default() || wishes.network == Some(Network::Host) {
                        return Err(Unmet::Refused("the container is as it was made".to_owned()));
                    }
                    let mut options = Options::attached(&attached.id);
                    options.workdir = place.path().to_owned();
                    options
                }
            };
            let container = self.engine.open(options).await.map_err(Unmet::fault)?;
            let workspace = container.workspace().to_owned();
            // How a policy is to be enforced is known before it starts.
            let asked = shieling::enforcement_of(&wishes.policy, &workspace);
            container.enforce(&asked).map_err(Unmet::fault)?;
            container.start().await.map_err(Unmet::fault)?;
            Ok(TestEnvironment {
                environment: Arc::new(container),
                workspace,
                variables: variables(),
                outside: None,
                keep: Box::new(place),
            })
        })
    }
}

impl Containers {
    fn own(&self, workspace: &Path, wishes: &Requirements) -> Result<Options, Unmet> {
        let mut options = self.engine.options(TOOLS);
        if wishes.network.is_some_and(|network| network == Network::Host) {
            return Err(Unmet::Refused(
                "the network is closed unless it is opened by name".to_owned(),
            ));
        }
        if wishes.limits.open_files.is_some() {
            return Err(Unmet::Refused("open files are not limited".to_owned()));
        }
        if self.engine.kind == Kind::Rootless && wishes.limits != JailLimits::default() {
            return Err(Unmet::Refused(
                "without root Podman applies no limits where control groups are of version 1".to_owned(),
            ));
        }
        options.network = Reach::None;
        options.memory = wishes.limits.memory;
        options.pids = wishes.limits.pids;
        options.cpu_thousandths = wishes
            .limits
            .cpu_thousandths
            .map(|cpus| u32::try_from(cpus).unwrap_or(u32::MAX));
        options.workspace = Some(workspace.to_owned());
        options.writable = true;
        Ok(options)
    }
}

/// The groups of cases that an ordinary run has. The same code serves the others wherever commands run; what an engine
/// can break are starts, ends and limits. A session of each engine is in `ends`.
const SHARE: [&str; 4] = ["exit codes", "deadlines", "trees", "limits"];
/// What another engine does differently: how it ends and limits.
const SHARE_OF_PODMAN: [&str; 2] = ["trees", "limits"];
/// What attaching does differently: the agent is no first process, and nothing is limited.
const SHARE_OF_ATTACHED: [&str; 2] = ["exit codes", "trees"];

async fn conforms(containers: Containers, share: &[&str], differs: &[&str]) {
    let only = std::env::var("SHIELING_CONFORMANCE").ok();
    let share = share.iter().map(|group| (*group).to_owned());
    let selected: Vec<String> = match only {
        Some(text) => vec![text],
        None if extent::is_full() => Vec::new(),
        None => share.collect(),
    };
    let suite = selected.iter().fold(Suite::new(), |suite, text| suite.only(text));
    let begun = std::time::Instant::now();
    let report = suite.run(Arc::new(containers)).await;
    eprintln!("{report}\n{:?}", begun.elapsed());
    let failed: Vec<_> = report.failed().map(|(line, _)| line.name).collect();
    let new: Vec<_> = failed.iter().filter(|name| !differs.contains(name)).collect();
    assert_eq!(new, Vec::<&&str>::new(), "{report}");
    assert!(report.passed() > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_of_docker_conform() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    conforms(Containers { engine, attached: None }, &SHARE, &[]).await;
    assert_eq!(engine.containers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_of_podman_conform() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Podman) else { return };
    conforms(Containers { engine, attached: None }, &SHARE_OF_PODMAN, &[]).await;
    assert_eq!(engine.containers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_of_a_rootless_podman_conform() {
    if !extent::is_full() {
        return;
    }
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Rootless) else { return };
    conforms(Containers { engine, attached: None }, &SHARE, &[]).await;
    assert_eq!(engine.containers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_is_attached_to_conforms() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let shared = workspace();
    let at = shared.path().to_owned();
    let id = engine.waiting(TOOLS, |body| {
        let bind = |path: &Path, readonly: bool| json!({ "Type": "bind", "Source": path, "Target": path, "ReadOnly": readonly });
        body["HostConfig"]["Mounts"] = json!([bind(Path::new("/usr"), true), bind(&at, false)]);
    });
    let attached = Some(Attached {
        id: id.clone(),
        shared: at,
    });
    conforms(Containers { engine, attached }, &SHARE_OF_ATTACHED, &[]).await;
    engine.remove(&id);
}
