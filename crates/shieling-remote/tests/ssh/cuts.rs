//! A link over `ssh` that is cut at any moment: no hang, no wrong status, nothing left, no file half-written.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shieling::environment::{Environment as _, Expect, Links};
use shieling::outcome::{Outcome, Status};
use shieling_remote::agent::{Setup, Wanted};
use shieling_remote::{Remote, Timing};
use shieling_testkit::random::Random;
use shieling_testkit::ssh::{Login, Server};
use shieling_testkit::{Marker, extent};

use super::server::{is_there, over_ssh};
use crate::support::{command, facade, marked, nothing_left, soon};

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

async fn cut_at(server: Arc<Server>, seed: u64) {
    let mut random = Random::new(seed);
    let folder = tempfile::tempdir_in(server.at("")).expect("a directory");
    let root = folder.path().canonicalize().expect("ours");
    let (before, after) = (vec![b'a'; 600_000], vec![b'b'; 700_000]);
    let workspace = root.join("w");
    std::fs::create_dir(&workspace).expect("room");
    std::fs::write(workspace.join("f"), &before).expect("room");
    Server::give(Login::User, &root);
    let (client, number): (PathBuf, PathBuf) = (root.join("client"), root.join("number"));
    let text = format!("#!/bin/sh\necho $$ >{}\nexec ssh \"$@\"\n", number.display());
    std::fs::write(&client, text).expect("room");
    std::fs::set_permissions(&client, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    let setup = Setup {
        environment: Wanted::Local,
        workspace: Some(workspace.clone()),
        ..Setup::default()
    };
    let ssh = over_ssh(&server, Login::User, setup, &[]).with_client(client);
    let remote = Remote::over(Arc::new(ssh), Timing::default()).await.expect("a link");
    let client: i32 = std::fs::read_to_string(&number)
        .expect("it told")
        .trim()
        .parse()
        .expect("a number");
    let files = remote.files().await.expect("it has files");
    let marker = Marker::new();
    let shieling = facade(remote, &workspace);
    let make = |text: &str| marked(command(text, &workspace), &marker);
    let session = shieling.session("one".parse().expect("a name"));
    let moment = Duration::from_micros(random.below(80_000) as u64);
    let path = workspace.join("f");
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
    let cutting = async {
        tokio::time::sleep(moment).await;
        let client = Pid::from_raw(client).expect("a number");
        kill_process(client, Signal::KILL).expect("it runs");
    };
    soon(&format!("seed {seed}"), async { tokio::join!(plain, session, cutting) }).await;
    soon(&format!("files, seed {seed}"), writing).await.expect("no panic");
    drop(shieling);
    nothing_left(&marker);
    let now = std::fs::read(workspace.join("f")).expect("it is there");
    assert!(
        now == before || now == vec![b'b'; 700_000],
        "half-written, seed {seed}: {} bytes",
        now.len()
    );
    let names = || {
        let entries = std::fs::read_dir(&workspace).expect("ours");
        entries
            .map(|entry| entry.expect("ours").file_name())
            .collect::<Vec<_>>()
    };
    // What was being written is brought to its end, or taken back.
    let until = Instant::now() + Duration::from_secs(5);
    while names() != ["f"] && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(names(), ["f"], "seed {seed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_over_ssh_cut_at_any_moment_hangs_nobody_lies_to_nobody_and_leaves_nothing() {
    if !is_there() {
        return;
    }
    let server = Arc::new(Server::start());
    let mut trying = tokio::task::JoinSet::new();
    // Each takes a connection of its own.
    for seed in 0..extent::rounds(40, 200) {
        if trying.len() as u64 >= AT_ONCE {
            trying.join_next().await.expect("there are some").expect("it held");
        }
        trying.spawn(cut_at(Arc::clone(&server), seed));
    }
    while let Some(tried) = trying.join_next().await {
        tried.expect("it held");
    }
}
