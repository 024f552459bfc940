//! The suite over a sandbox on the far side of `ssh`, as root and as an ordinary user.

use std::path::Path;
use std::sync::Arc;

use shieling::environment::{Later, Network};
use shieling_remote::agent::{Setup, Wanted};
use shieling_remote::{Remote, Timing};
use shieling_testkit::conformance::{EnvironmentFactory, HostDirectory, Requirements, Suite, TestEnvironment, Unmet};
use shieling_testkit::extent;

use shieling_testkit::ssh::{Login, Server};

use super::server::{is_there, over_ssh};

/// How many cases run at once.
const AT_ONCE: usize = 8;

/// The groups of cases that an ordinary run has: those about processes and what confines them. All others run over a
/// stream without `ssh` (`tests/conformance.rs`), through the same code.
const SHARE: [&str; 11] = [
    "exit codes",
    "processes that are talked to",
    "deadlines",
    "cancellation",
    "trees",
    "sessions",
    "confinement",
    "limits",
    "capabilities",
    "concurrency",
    "closed",
];

/// Of those, what differs for root.
const SHARE_OF_ROOT: [&str; 4] = ["trees", "confinement", "limits", "capabilities"];

struct Far {
    server: Server,
    login: Login,
}

impl EnvironmentFactory for Far {
    fn name(&self) -> String {
        format!("sandbox over ssh, {:?}", self.login)
    }

    fn make<'a>(&'a self, wishes: &'a Requirements) -> Later<'a, Result<TestEnvironment, Unmet>> {
        Box::pin(async move {
            let folder = tempfile::tempdir_in(self.server.at("")).map_err(Unmet::fault)?;
            let root = folder.path().canonicalize().map_err(Unmet::fault)?;
            let (workspace, outside) = (root.join("w"), root.join("outside"));
            std::fs::create_dir(&workspace).map_err(Unmet::fault)?;
            std::fs::create_dir(&outside).map_err(Unmet::fault)?;
            for (path, content) in &wishes.files {
                let path = workspace.join(path);
                std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).map_err(Unmet::fault)?;
                std::fs::write(path, content).map_err(Unmet::fault)?;
            }
            Server::give(self.login, &root);
            let mut limits = wishes.limits;
            limits.memory = limits.memory.or(Some(2 << 30));
            limits.pids = limits.pids.or(Some(256));
            let setup = Setup {
                environment: Wanted::Sandbox,
                workspace: Some(workspace.clone()),
                network: wishes.network.unwrap_or(Network::None),
                limits,
                ..Setup::default()
            };
            let shared = self.server.shared();
            let shared: Vec<&str> = shared.iter().map(String::as_str).collect();
            let ssh = over_ssh(&self.server, self.login, setup, &shared);
            let remote = Remote::over(Arc::new(ssh), Timing::default())
                .await
                .map_err(Unmet::fault)?;
            // The far side is this host in truth: once its processes are looked for here, and once it is elsewhere.
            let remote = match self.login {
                Login::Root => remote.of_this_host(),
                Login::User => remote,
            };
            Ok(TestEnvironment {
                environment: Arc::new(remote),
                workspace,
                variables: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
                outside: Some(Box::new(HostDirectory::new(&outside))),
                keep: Box::new(folder),
            })
        })
    }
}

async fn conforms(login: Login) {
    if !is_there() {
        return;
    }
    let suite = match std::env::var("SHIELING_CONFORMANCE") {
        Ok(text) => Suite::new().only(text),
        Err(_) if extent::is_full() => Suite::new(),
        Err(_) => {
            let share: &[&str] = match login {
                Login::Root => &SHARE_OF_ROOT,
                Login::User => &SHARE,
            };
            share.iter().fold(Suite::new(), |suite, group| suite.only(*group))
        }
    };
    let suite = suite.at_once(AT_ONCE);
    let server = Server::start();
    let report = suite.run(Arc::new(Far { server, login })).await;
    eprintln!("{report}");
    assert_eq!(report.failed().count(), 0, "{report}");
    assert!(report.passed() > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_over_ssh_as_root_conforms() {
    conforms(Login::Root).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_over_ssh_as_an_ordinary_user_conforms() {
    conforms(Login::User).await;
}
