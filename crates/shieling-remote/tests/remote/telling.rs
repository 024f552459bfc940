//! What a policy enforces, and what is told of a command besides its end, is behind a stream what it is without one.

use std::path::Path;
use std::sync::Arc;

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Environment, Network, Restrictions, Sandbox, Shell};
use shieling::outcome::Outcome;
use shieling::policy::Policy;
use shieling_remote::Timing;
use shieling_testkit::prerequisite;

use super::support::{behind, command};

fn sandbox(workspace: &Path, memory: Option<u64>) -> Arc<dyn Environment> {
    let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
    let mut restrictions = Restrictions::new(workspace, shell.program());
    restrictions.network = Network::None;
    restrictions.path = "/usr/bin:/bin".to_owned();
    restrictions.limits.memory = memory;
    Arc::new(Sandbox::new(restrictions, shell))
}

/// The outcomes of these texts, one after another, here and behind a stream, each in a workspace of its own; without
/// what differs from run to run.
async fn both(policy: &Policy, memory: Option<u64>, texts: &[&str]) -> [Vec<Outcome>; 2] {
    let mut all = [Vec::new(), Vec::new()];
    for (remote, outcomes) in [false, true].into_iter().zip(&mut all) {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path().canonicalize().expect("ours");
        std::fs::create_dir_all(root.join(".git")).expect("room");
        std::fs::write(root.join("note"), "hello\n").expect("room");
        let mut environment = sandbox(&root, memory);
        let mut far = None;
        if remote {
            let (near, other) = behind(environment, Timing::default()).await;
            environment = Arc::new(near.named("sandbox"));
            far = Some(other);
        }
        let shieling = Shieling::builder(environment, policy.clone(), &root)
            .approval(Mode::OnAsk)
            .build()
            .expect("it serves this policy");
        for text in texts {
            let mut outcome = shieling.run(command(text, &root), None).await;
            outcome.duration_ms = 0.0;
            let place = root.display().to_string();
            outcome.cwd = outcome
                .cwd
                .strip_prefix(&root)
                .map(Path::to_path_buf)
                .unwrap_or_default();
            let hints = outcome.hints.iter_mut().map(|hint| &mut hint.instead);
            for part in [&mut outcome.stdout, &mut outcome.stderr].into_iter().chain(hints) {
                *part = part.replace(&place, "W");
            }
            for path in outcome.hints.iter_mut().filter_map(|hint| hint.path.as_mut()) {
                if let Ok(inside) = path.strip_prefix(&root) {
                    *path = Path::new("W").join(inside);
                }
            }
            for hit in &mut outcome.limits_hit {
                hit.peak = None;
                hit.killed.iter_mut().for_each(|one| (one.pid, one.bytes) = (0, 0));
            }
            for held in outcome.changes.iter_mut().flat_map(|changes| &mut changes.held_back) {
                // Where it was moved to has a name of its own.
                held.instead = held.instead.split('`').next().unwrap_or_default().to_owned();
            }
            outcomes.push(outcome);
        }
        shieling.environment().close().await;
        drop((shieling, far));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_explains_a_command_crosses_the_link() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let texts = [
        "true",
        "touch /etc/x",
        "echo x >.git/hooks; mkdir .vscode; echo '{}' >.vscode/tasks.json; true",
        "getent hosts example.org || echo 'Could not resolve host: example.org' >&2; exit 6",
        "python3 -c 'x = \"a\" * 200000000'",
        "echo done",
    ];
    let [here, there] = both(&Policy::open(), Some(64 << 20), &texts).await;
    assert_eq!(here, there);
    assert!(!there[1].hints.is_empty(), "{:?}", there[1]);
    assert!(there[2].changes.is_some(), "{:?}", there[2]);
    assert!(!there[3].hints.is_empty(), "{:?}", there[3]);
    assert!(!there[4].limits_hit.is_empty(), "{:?}", there[4]);
    assert!(
        there[5].limits_hit.is_empty() && there[5].changes.is_none(),
        "{:?}",
        there[5]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_policy_means_is_enforced_at_the_far_side() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let policy = Policy::open()
        .with_readonly()
        .with_ignore(&["secret*", "!secret-not"])
        .and_then(|policy| policy.with_ignore(&["*.key"]))
        .expect("patterns");
    let texts = [
        "cat secret-not no*",
        "python3 -c 'open(\"note\", \"w\")'",
        "python3 -c 'print(open(\"a.key\").read())'",
    ];
    let [here, there] = both(&policy, None, &texts).await;
    assert_eq!(here, there);
    assert!(there[1].stderr.contains("Read-only file system"), "{:?}", there[1]);
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("ours");
    let (near, far) = behind(sandbox(&root, None), Timing::default()).await;
    let near: Arc<dyn Environment> = Arc::new(near);
    let first = Shieling::builder(Arc::clone(&near), policy, &root)
        .build()
        .expect("it is the first");
    let enforced = first.enforced();
    assert!(enforced.readonly && enforced.hidden, "{enforced:?}");
    let other = Policy::open().with_ignore(&["other"]).expect("patterns");
    let refused = Shieling::builder(near, other, &root)
        .build()
        .map(drop)
        .expect_err("it serves another policy");
    assert!(
        refused.to_string().contains("serves another policy already"),
        "{refused}"
    );
    drop((first, far));
}
