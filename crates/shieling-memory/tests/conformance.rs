//! The conformance suite over memory, which is made outside of the library like any other environment.
//!
//! `SHIELING_CONFORMANCE=text` runs only the cases whose group or name holds that text.
#![allow(clippy::disallowed_methods, reason = "places are built and looked at from outside")]
#![allow(clippy::print_stderr, reason = "the report is told")]

use std::sync::Arc;

use shieling::environment::{JailLimits, Later, Network};
use shieling::units::ByteCount;
use shieling_memory::Memory;
use shieling_testkit::conformance::{EnvironmentFactory, HostDirectory, Requirements, Suite, TestEnvironment, Unmet};

/// What `memory` does not hold to, with the reason. Each line is to go.
const DIFFERS: &[(&str, &str)] = &[
    (
        "streams can be swapped",
        "it refuses two streams that change places, with 125",
    ),
    (
        "names of files can be any text",
        "it refuses line breaks and control characters in names that commands use",
    ),
    ("the mask of new files stays", "it refuses another mask than 0022"),
];

/// `memory`, with a directory of the host beside it that no command in it can know.
struct Memories;

impl EnvironmentFactory for Memories {
    fn name(&self) -> String {
        "memory".to_owned()
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
            Ok(TestEnvironment {
                environment: Arc::new(memory),
                workspace: workspace.into(),
                variables: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
                outside: Some(Box::new(HostDirectory::new(beside.path()))),
                keep: Box::new(beside),
            })
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_conforms() {
    let only = std::env::var("SHIELING_CONFORMANCE").ok();
    let suite = only.iter().fold(Suite::new(), |suite, text| suite.only(text));
    let report = suite.run(Arc::new(Memories)).await;
    eprintln!("{report}");
    let failed: Vec<_> = report.failed().map(|(line, _)| line.name).collect();
    let new = failed
        .iter()
        .filter(|name| DIFFERS.iter().all(|(known, _)| known != *name));
    assert_eq!(new.count(), 0, "{report}");
    let holds = DIFFERS.iter().find(|(known, _)| !failed.contains(known));
    assert!(
        only.is_some() || holds.is_none(),
        "{holds:?} holds now: its line is to go"
    );
    assert!(report.passed() > 0, "{report}");
}
