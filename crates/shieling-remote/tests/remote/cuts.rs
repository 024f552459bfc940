//! A link that is cut at any moment: no hang, no wrong status, nothing left, no file half-written.

use std::time::Duration;

use shieling::environment::{Environment as _, Expect, Links};
use shieling::outcome::{Outcome, Status};
use shieling_remote::Timing;
use shieling_testkit::Marker;
use shieling_testkit::random::Random;

use super::support::{behind, command, facade, local, marked, nothing_left, soon};

/// How many moments.
const MOMENTS: u64 = 200;
/// How many are tried at once.
const AT_ONCE: u64 = 4;

/// An end that is true, if the link may have been cut.
fn is_true(outcome: &Outcome, code: i32, printed: &str) {
    match outcome.status {
        Status::Exited => assert_eq!((outcome.exit_code, outcome.stdout.as_str()), (Some(code), printed)),
        Status::Lost => assert!(printed.starts_with(&outcome.stdout), "{outcome:?}"),
        // It was not started any more, and says why.
        Status::Failed => assert!(outcome.error.is_some(), "{outcome:?}"),
        _ => panic!("{outcome:?}"),
    }
}

async fn cut_at(seed: u64) {
    let mut random = Random::new(seed);
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("ours");
    let (before, after) = (vec![b'a'; 600_000], vec![b'b'; 700_000]);
    std::fs::write(root.join("f"), &before).expect("room");
    let (remote, far) = behind(local(&root), Timing::default()).await;
    let files = remote.files().await.expect("it has files");
    let marker = Marker::new();
    let shieling = facade(remote, &root);
    let make = |text: &str| marked(command(text, &root), &marker);
    let session = shieling.session("one".parse().expect("a name"));
    let moment = Duration::from_micros(random.below(60_000) as u64);
    let path = root.join("f");
    let writing = tokio::task::spawn_blocking(move || {
        while let Ok(write_target) = files.write_target(&path, Links::Follow) {
            if write_target.replace(&after, false, Expect::Any).is_err() {
                return;
            }
        }
    });
    let plain = async {
        loop {
            let outcome = shieling
                .run(make("echo one; sleep 0.005 & echo two; exit 7"), None)
                .await;
            is_true(&outcome, 7, "one\ntwo\n");
            if outcome.status != Status::Exited {
                return;
            }
        }
    };
    let session = async {
        loop {
            let outcome = session.run(make("echo three; (exit 5)")).await;
            is_true(&outcome, 5, "three\n");
            if outcome.status != Status::Exited {
                return;
            }
        }
    };
    let flood = async {
        let outcome = shieling.run(make("exec cat /dev/zero"), None).await;
        assert!(matches!(outcome.status, Status::Lost | Status::Failed), "{outcome:?}");
    };
    let cutting = async {
        tokio::time::sleep(moment).await;
        far.cut();
    };
    soon(&format!("seed {seed}"), async {
        tokio::join!(plain, session, flood, cutting)
    })
    .await;
    soon(&format!("files, seed {seed}"), writing).await.expect("no panic");
    drop(shieling);
    drop(far);
    nothing_left(&marker);
    let now = std::fs::read(root.join("f")).expect("it is there");
    assert!(
        now == before || now == vec![b'b'; 700_000],
        "half-written, seed {seed}: {} bytes",
        now.len()
    );
    let names: Vec<_> = std::fs::read_dir(&root)
        .expect("ours")
        .map(|entry| entry.expect("ours").file_name())
        .collect();
    assert_eq!(names, ["f"], "seed {seed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_cut_at_any_moment_hangs_nobody_lies_to_nobody_and_leaves_nothing() {
    let mut trying = tokio::task::JoinSet::new();
    for seed in 0..MOMENTS {
        if trying.len() as u64 >= AT_ONCE {
            trying.join_next().await.expect("there are some").expect("it held");
        }
        trying.spawn(cut_at(seed));
    }
    while let Some(tried) = trying.join_next().await {
        tried.expect("it held");
    }
}
