//! The conformance suite over environments behind a stream.
//!
//! `SHIELING_CONFORMANCE=text` runs only the cases whose group or name holds that text.
#![allow(clippy::disallowed_methods, reason = "places are built and looked at from outside")]
#![allow(clippy::print_stderr, reason = "the report is told")]

#[path = "remote/support.rs"]
#[allow(dead_code, reason = "the other tests use more of it")]
mod support;

use std::path::Path;
use std::sync::Arc;

use shieling::environment::{JailLimits, Later, Local, Network, Shell};
use shieling::units::ByteCount;
use shieling_memory::Memory;
use shieling_remote::Timing;
use shieling_testkit::conformance::{EnvironmentFactory, HostDirectory, Requirements, Suite, TestEnvironment, Unmet};
use shieling_testkit::extent;

use self::support::behind;

/// What `memory` does not hold to, as in its own tests.
const MEMORY_DIFFERS: &[&str] = &[
    "streams can be swapped",
    "names of files can be any text",
    "the mask of new files stays",
];

struct Memories;

impl EnvironmentFactory for Memories {
    fn name(&self) -> String {
        "memory behind a stream".to_owned()
    }

    fn make<'a>(&'a self, wishes: &'a Requirements) -> Later<'a, Result<TestEnvironment, Unmet>> {
        Box::pin(async move {
            let other = JailLimits {
                memory: None,
                ..wishes.limits
            };
            if other != JailLimits::default() {
                return Err(Unmet::Refused("memory has no processes to limit".to_owned()));
            }
            if wishes.network.is_some_and(|network| network != Network::None) {
                return Err(Unmet::Refused("memory has no network".to_owned()));
            }
            let workspace = "/workspace";
            let asked = shieling::enforcement_of(&wishes.policy, workspace.as_ref());
            let files = wishes.files.iter();
            let mut builder = Memory::builder(workspace)
                .enforcing(asked)
                .seed(files.map(|(path, content)| (path.clone(), content.clone())));
            if let Some(memory) = wishes.limits.memory {
                builder = builder.memory(ByteCount::bytes(memory));
            }
            let memory = builder.build().map_err(Unmet::fault)?;
            let beside = tempfile::tempdir().map_err(Unmet::fault)?;
            let (remote, far) = behind(Arc::new(memory), Timing::default()).await;
            Ok(TestEnvironment {
                environment: Arc::new(remote),
                workspace: workspace.into(),
                variables: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
                outside: Some(Box::new(HostDirectory::new(beside.path()))),
                keep: Box::new((beside, far)),
            })
        })
    }
}

/// `local`, on this host as far as is told, or elsewhere.
struct Locals {
    here: bool,
}

impl EnvironmentFactory for Locals {
    fn name(&self) -> String {
        "local behind a stream".to_owned()
    }

    fn make<'a>(&'a self, wishes: &'a Requirements) -> Later<'a, Result<TestEnvironment, Unmet>> {
        Box::pin(async move {
            if wishes.limits != JailLimits::default() {
                return Err(Unmet::Refused("local limits nothing but the size of files".to_owned()));
            }
            if wishes.network.is_some_and(|network| network != Network::Host) {
                return Err(Unmet::Refused("local has the network of its host".to_owned()));
            }
            let shell = Shell::find(None).map_err(Unmet::fault)?;
            let folder = tempfile::tempdir().map_err(Unmet::fault)?;
            let root = folder.path().canonicalize().map_err(Unmet::fault)?;
            let (workspace, outside) = (root.join("w"), root.join("outside"));
            std::fs::create_dir(&workspace).map_err(Unmet::fault)?;
            std::fs::create_dir(&outside).map_err(Unmet::fault)?;
            for (path, content) in &wishes.files {
                let path = workspace.join(path);
                std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).map_err(Unmet::fault)?;
                std::fs::write(path, content).map_err(Unmet::fault)?;
            }
            let local = Local::new(shell).with_workspace(&workspace);
            let (remote, far) = behind(Arc::new(local), Timing::default()).await;
            let remote = if self.here { remote.of_this_host() } else { remote };
            Ok(TestEnvironment {
                environment: Arc::new(remote),
                workspace,
                variables: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
                outside: Some(Box::new(HostDirectory::new(&outside))),
                keep: Box::new((folder, far)),
            })
        })
    }
}

/// The groups of cases that an ordinary run has of `local` elsewhere: those that judge commands and files. The others run
/// through the same code here.
const ELSEWHERE: [&str; 7] = [
    "execution",
    "sessions",
    "places",
    "hidden",
    "readonly",
    "capabilities",
    "closed",
];

async fn conforms(maker: impl EnvironmentFactory + 'static, groups: &[&str], differs: &[&str]) {
    let only = std::env::var("SHIELING_CONFORMANCE").ok();
    let suite = match &only {
        Some(text) => Suite::new().only(text),
        None => groups.iter().fold(Suite::new(), |suite, group| suite.only(*group)),
    };
    let report = suite.run(Arc::new(maker)).await;
    eprintln!("{report}");
    let failed: Vec<_> = report.failed().map(|(line, _)| line.name).collect();
    let new: Vec<_> = failed.iter().filter(|name| !differs.contains(name)).collect();
    assert_eq!(new, Vec::<&&str>::new(), "{report}");
    let holds = differs.iter().find(|known| !failed.contains(known));
    assert!(
        only.is_some() || holds.is_none(),
        "{holds:?} holds now: its line is to go"
    );
    assert!(report.passed() > 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_behind_a_stream_conforms() {
    conforms(Memories, &[], MEMORY_DIFFERS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_behind_a_stream_conforms() {
    conforms(Locals { here: true }, &[], &[]).await;
}

/// What the policy needs to know is looked up over the stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_that_is_said_to_be_elsewhere_conforms() {
    let groups: &[&str] = if extent::is_full() { &[] } else { &ELSEWHERE };
    conforms(Locals { here: false }, groups, &[]).await;
}
