//! A policy is handed to the environment by the builder alone, and only what comes back relaxes its reading.
#![expect(clippy::disallowed_methods, reason = "tests make their own workspace")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use shieling::approval::Mode;
use shieling::changes::{Choice, Limits, State, Store, Surroundings};
use shieling::environment::{
    CopiedWorkspace, EnforceError, Enforced, Environment, Isolation, Local, Restrictions, Sandbox, Shell, WriteBack,
};
use shieling::outcome::{Outcome, Status};
use shieling::policy::{Decision, Policy};
use shieling::request::Command;
use shieling::{Shieling, enforcement_of, hidden_of};
use tempfile::TempDir;

fn workspace() -> TempDir {
    let workspace = tempfile::tempdir().expect("a temporary directory");
    fs::write(workspace.path().join(".env"), "TOKEN=hidden\n").expect("written");
    fs::write(workspace.path().join("x.sh"), "echo ran; cat .env\n").expect("written");
    fs::write(workspace.path().join("write.sh"), "echo ran; echo > made\n").expect("written");
    fs::write(workspace.path().join("list.sh"), "echo ran; ls\n").expect("written");
    workspace
}

fn shell() -> Shell {
    Shell::find(None).expect("there is a shell on every host that runs tests")
}

/// A sandbox on which nobody has set what a policy means.
fn sandbox(workspace: &TempDir, change: impl FnOnce(&mut Restrictions)) -> Arc<Sandbox> {
    let shell = shell();
    let mut restrictions = Restrictions::new(workspace.path(), shell.program());
    change(&mut restrictions);
    Arc::new(Sandbox::new(restrictions, shell))
}

fn over(environment: Arc<dyn Environment>, policy: Policy, workspace: &TempDir) -> Result<Shieling, EnforceError> {
    Shieling::builder(environment, policy, workspace.path())
        .approval(Mode::OnAsk)
        .build()
}

async fn run(shieling: &Shieling, workspace: &TempDir, text: &str) -> Outcome {
    let command = Command::new(text, workspace.path()).expect("a text");
    let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    shieling.run(command.with_variables([path].into()), None).await
}

fn hiding() -> Policy {
    Policy::open().with_ignore(&[".env"]).expect("a pattern")
}

#[tokio::test]
async fn a_sandbox_that_nobody_prepared_enforces_the_policy_of_its_builder() {
    let workspace = workspace();
    let shieling = over(sandbox(&workspace, |_| ()), hiding(), &workspace).expect("it serves no other policy");
    assert!(shieling.enforced().hidden);
    let outcome = run(&shieling, &workspace, "sh x.sh").await;
    assert_eq!(outcome.stdout, "ran\n", "{outcome:?}");
    assert!(
        outcome.denial.is_none(),
        "what is contained is not asked about: {outcome:?}"
    );

    let shieling = over(sandbox(&workspace, |_| ()), Policy::open().with_readonly(), &workspace);
    let outcome = run(&shieling.expect("another sandbox"), &workspace, "sh write.sh").await;
    assert_eq!(
        (outcome.denial.as_ref(), outcome.stdout.as_str()),
        (None, "ran\n"),
        "{outcome:?}"
    );
    assert!(!workspace.path().join("made").exists(), "{outcome:?}");

    let policy = Policy::open().with_allow(&["cat", "sh"]).expect("names");
    let shieling = over(sandbox(&workspace, |_| ()), policy, &workspace).expect("another sandbox");
    assert!(shieling.enforced().programs);
    let outcome = run(&shieling, &workspace, "sh list.sh").await;
    assert_eq!(
        (outcome.exit_code, outcome.stdout.as_str()),
        (Some(127), "ran\n"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn what_does_not_come_back_is_asked_about() {
    let workspace = workspace();
    let local = Arc::new(Local::new(shell()).with_workspace(workspace.path()));
    let shieling = over(local, hiding(), &workspace).expect("it enforces nothing, and says so");
    assert_eq!(shieling.enforced(), Enforced::default());
    let command = Command::new("sh x.sh", workspace.path()).expect("a text");
    assert_eq!(shieling.judge(&command).decision, Decision::Ask);
    assert_eq!(
        run(&shieling, &workspace, "sh x.sh").await.status,
        Status::NeedsApproval
    );
}

#[tokio::test]
async fn a_sandbox_serves_one_policy_and_says_so_to_another() {
    let workspace = workspace();
    let shared = sandbox(&workspace, |_| ());
    let first = over(shared.clone(), hiding(), &workspace).expect("it serves no other policy");
    let same = over(shared.clone(), hiding(), &workspace).expect("the same patterns are the same policy");
    let less = over(shared.clone(), Policy::open(), &workspace).expect("what asks for nothing more");
    for shieling in [&first, &same, &less] {
        assert_eq!(run(shieling, &workspace, "sh x.sh").await.stdout, "ran\n");
    }
    let of_lists = |lists: [&[&str]; 2]| {
        lists
            .into_iter()
            .try_fold(Policy::open(), |policy, list| policy.with_ignore(list))
    };
    let other = of_lists([&["*.pem"], &[]]).expect("a pattern");
    // What one list hides, no other shows again.
    let apart = of_lists([&[".env"], &["!.env"]]).expect("patterns");
    for policy in [other, apart, hiding().with_readonly()] {
        let error = over(shared.clone(), policy, &workspace).expect_err("it is bound");
        assert!(matches!(error, EnforceError::Bound { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_sandbox_that_runs_is_bound_to_no_policy_any_more() {
    let workspace = workspace();
    let running = sandbox(&workspace, |_| ());
    running.start().await.expect("it starts");
    let error = over(running, hiding(), &workspace).expect_err("its view is made");
    assert!(
        error
            .to_string()
            .contains("has started without what the policy asks for"),
        "{error}"
    );
}

#[tokio::test]
async fn what_cannot_be_enforced_at_all_is_an_error_and_not_left_out() {
    let workspace = workspace();
    let lesser = sandbox(&workspace, |asked| asked.isolation = Isolation::Landlock);
    let error = over(lesser, hiding(), &workspace).expect_err("without a view nothing can be hidden");
    assert!(matches!(error, EnforceError::Unsupported { .. }), "{error}");

    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let other = sandbox(&elsewhere, |_| ());
    let error = over(other, hiding(), &workspace).expect_err("hidden paths would be others");
    assert!(matches!(error, EnforceError::Workspace { .. }), "{error}");
}

#[test]
fn what_was_hidden_from_a_copy_of_the_workspace_is_held_back_later_as_at_once() {
    let policy = hiding().with_ignore(&["/keys/", "!/keys/open"]).expect("patterns");
    let hidden = || enforcement_of(&policy, "/".as_ref()).hidden;
    for conflict in [false, true] {
        let place = tempfile::tempdir().expect("a temporary directory");
        let root = place.path().canonicalize().expect("it is there");
        let (work, sets) = (root.join("work"), root.join("sets"));
        fs::create_dir(&work).expect("made");
        let mut back = WriteBack::begin(&CopiedWorkspace {
            workspace: work.clone(),
            sets: sets.clone(),
            home: None,
            fixed: Vec::new(),
        })
        .expect("it can be stored");
        back.copied().expect("nothing was");
        let layer = back.layer();
        for directory in ["keys", "d/keys"] {
            fs::create_dir_all(layer.join(directory)).expect("made");
        }
        for name in [".env", "d/.ENV", "keys/k", "d/keys/k", "new"] {
            fs::write(layer.join(name), "theirs\n").expect("written");
        }
        if conflict {
            fs::write(work.join("new"), "mine\n").expect("written");
        }
        let changes = back.commit(Vec::new(), hidden()).expect("stored").expect("changes");
        let at_once: Vec<PathBuf> = changes.held_back.iter().map(|held| held.path.clone()).collect();
        assert!(
            changes
                .held_back
                .iter()
                .all(|held| held.because.contains("it is hidden"))
                && at_once.len() >= 3,
            "{changes:?}"
        );
        let store = Store::open(&sets, Limits::default()).expect("opened");
        let waiting = store.list().expect("listed");
        let waiting = waiting
            .iter()
            .find(|set| set.state != State::Committed)
            .expect("a rest");
        let set = store.get(&waiting.id).expect("it is there");
        let around = Surroundings {
            hidden: hidden_of(&set).expect("patterns"),
            ..Surroundings::default()
        };
        let choice = Choice {
            overwrite: conflict,
            ..Choice::default()
        };
        let later = store.apply(set, &choice, &around).expect("judged").judged.held;
        let later: Vec<PathBuf> = later.into_iter().map(|held| held.path).collect();
        assert_eq!(later, at_once, "a conflict: {conflict}");
        for name in [".env", "d/.ENV", "keys"] {
            assert!(!work.join(name).exists(), "a conflict: {conflict}: {name}");
        }
        assert_eq!(fs::read(work.join("new")).expect("written"), b"theirs\n");
        assert!(work.join("d/keys/k").exists());
    }
}
