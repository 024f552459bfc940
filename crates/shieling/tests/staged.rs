//! The bounds of a staged workspace while commands write to it: what writes more than a set may hold is ended, its outcome
//! names the limit, and what it has made can be removed in the sandbox. As root, all of it is done again as an ordinary user.
#![expect(clippy::disallowed_methods, reason = "places are built and looked at from outside")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::Shieling;
use shieling::changes::{Limits, Mode, Usage};
use shieling::environment::{Restrictions, Sandbox, Shell, Staging};
use shieling::outcome::{ChangeState, Outcome, Status};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling::session::SessionName;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const LONG: Duration = Duration::from_secs(60);
const LIMITS: Limits = Limits {
    entries: 2_000,
    bytes: 32 << 20,
};
/// How much more there may be than the limit once what writes it is ended: what is written between two looks, on a machine
/// that does other things.
const BEYOND: u64 = 16;

/// Adds a mebibyte about every 5 ms.
const FILLS: &str = "while :; do head -c 1048576 /dev/zero >>big; sleep 0.005; done";

struct Place {
    root: tempfile::TempDir,
    shieling: Shieling,
}

impl Place {
    fn new(mode: Mode) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let work = root.path().canonicalize().expect("it is there").join("work");
        fs::create_dir(&work).expect("made");
        fs::write(work.join("old"), "old\n").expect("written");
        let mut restrictions = Restrictions::new(&work, "/bin/bash");
        restrictions.path = PATH.to_owned();
        let mut staging = Staging::new(mode, work.with_file_name("sets"));
        staging.limits = LIMITS;
        restrictions.staging = Some(staging);
        let sandbox = Arc::new(Sandbox::new(restrictions, Shell::find(None).expect("there is a shell")));
        let shieling = Shieling::builder(sandbox, Policy::open(), work).build().expect("bound");
        Self { root, shieling }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().expect("it is there").join(name)
    }

    fn command(&self, text: &str) -> Command {
        let variables = [("PATH", PATH), ("LC_ALL", "C.UTF-8"), ("HOME", "/tmp")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Command::new(text, self.at("work"))
            .expect("a command")
            .with_variables(BTreeMap::from(variables))
            .with_deadline(LONG)
            .expect("some time")
    }

    async fn run(&self, text: &str) -> Outcome {
        self.shieling.run(self.command(text), None).await
    }

    async fn run_in(&self, session: &SessionName, text: &str) -> Outcome {
        self.shieling.session(session.clone()).run(self.command(text)).await
    }

    /// What the sets take on the disk.
    fn used(&self) -> Usage {
        let all = Limits {
            entries: u64::MAX,
            bytes: u64::MAX,
        };
        Usage::of(&self.at("sets"), all).expect("measured")
    }

    fn has(&self, name: &str) -> bool {
        Path::exists(&self.at("work").join(name))
    }
}

fn is_ended_for(outcome: &Outcome, limit: &str) {
    assert_ne!(outcome.status, Status::TimedOut, "{outcome:#?}");
    assert!(
        outcome.exit_code != Some(0) || outcome.signal.is_some(),
        "it went on to its end: {outcome:#?}"
    );
    let error = outcome.error.as_deref().unwrap_or_default();
    assert!(
        error.contains("the command was ended") && error.contains(limit),
        "{outcome:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_writes_more_bytes_than_a_set_may_hold_is_ended_while_it_runs() {
    for mode in [Mode::Commit, Mode::Review, Mode::Discard] {
        let place = Place::new(mode);
        let began = Instant::now();
        let outcome = place.run(FILLS).await;
        assert!(began.elapsed() < LONG, "{mode:?}");
        is_ended_for(&outcome, "32 MiB");
        let used = place.used();
        assert!(used.bytes < BEYOND * LIMITS.bytes, "{mode:?}: {used:?}");
        assert!(!place.has("big") && place.has("old"), "{mode:?}");
        // What is too much can be removed, which takes a command, and then all is as ever.
        let outcome = place.run("sleep 0.3; rm big; echo new >new").await;
        assert_eq!(
            (outcome.exit_code, &outcome.error),
            (Some(0), &None),
            "{mode:?}: {outcome:#?}"
        );
        assert_eq!(place.has("new"), mode == Mode::Commit, "{mode:?}");
        assert!(place.used().bytes < LIMITS.bytes, "{mode:?}");
        // As much as is allowed is allowed.
        let outcome = place.run("head -c 20000000 /dev/zero >fine; sleep 0.3").await;
        assert_eq!(
            (outcome.exit_code, &outcome.error),
            (Some(0), &None),
            "{mode:?}: {outcome:#?}"
        );
        place.shieling.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_committed_of_a_command_that_was_ended_for_the_room_that_its_files_take() {
    let place = Place::new(Mode::Commit);
    // All that a set may hold in one file; its directories take room as well.
    let outcome = place
        .run("mkdir d; fallocate --length $((32 << 20)) big; sleep 1000")
        .await;
    is_ended_for(&outcome, "32 MiB");
    let state = outcome.changes.map(|changes| changes.state);
    assert_eq!(state, Some(ChangeState::Waiting));
    assert!(!place.has("big") && !place.has("d"));
    let outcome = place.run("rm big").await;
    assert_eq!((outcome.exit_code, &outcome.error), (Some(0), &None), "{outcome:#?}");
    assert!(place.has("d") && !place.has("big"));
    place.shieling.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_makes_more_names_than_a_set_may_hold_is_ended_while_it_runs() {
    let place = Place::new(Mode::Commit);
    let outcome = place
        .run("n=0; while :; do n=$((n+1)); mkdir -p d$((n%7)); : >d$((n%7))/$n; done")
        .await;
    is_ended_for(&outcome, "2000 names");
    assert!(
        place.used().entries < BEYOND * 50 * LIMITS.entries,
        "{:?}",
        place.used()
    );
    place.shieling.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_run_are_ended_and_told_why_and_what_a_session_left_is_ended_too() {
    let place = Place::new(Mode::Commit);
    let (one, other) = tokio::join!(place.run(FILLS), place.run("sleep 1000"));
    is_ended_for(&one, "32 MiB");
    is_ended_for(&other, "32 MiB");
    let outcome = place.run("rm big").await;
    assert_eq!((outcome.exit_code, &outcome.error), (Some(0), &None), "{outcome:#?}");
    // Of this no call waits for the end.
    let session = "s".parse::<SessionName>().expect("a name");
    let outcome = place
        .run_in(&session, &format!("({FILLS}) </dev/null >/dev/null 2>&1 &"))
        .await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:#?}");
    let began = Instant::now();
    let mut before = place.used().bytes;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = place.used().bytes;
        if now == before && now > LIMITS.bytes {
            break;
        }
        assert!(began.elapsed() < LONG, "it writes on: {now}");
        before = now;
    }
    assert!(before < BEYOND * LIMITS.bytes, "{before}");
    place.shieling.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn holes_take_no_room_while_a_command_runs() {
    let place = Place::new(Mode::Commit);
    let outcome = place
        .run("truncate -s 1T holes; sleep 1.2; rm holes; echo new >new")
        .await;
    assert_eq!((outcome.exit_code, &outcome.error), (Some(0), &None), "{outcome:#?}");
    assert!(place.has("new"));
    place.shieling.close().await;
}

#[test]
fn and_as_an_ordinary_user_too() {
    shieling_testkit::again_as_user(&["--skip", "and_as_an_ordinary_user_too"]);
}
