//! When a sandbox ends, and all of these tests as an ordinary user.
#![allow(clippy::disallowed_methods, reason = "tests make what is looked at")]

use std::fs;

use super::*;

#[test]
fn the_tests_of_the_sandbox_hold_once_more_as_an_ordinary_user() {
    shieling_testkit::again_as_user(&["environment::sandbox::", "--skip", "as_an_ordinary_user"]);
}

fn place() -> (tempfile::TempDir, PathBuf, Sandbox) {
    let directory = tempfile::tempdir().expect("a directory");
    let work = directory.path().canonicalize().expect("just made").join("work");
    fs::create_dir(&work).expect("made");
    let shell = Shell::find(Some(Path::new("/bin/bash"))).expect("bash");
    let sandbox = Sandbox::new(Restrictions::new(&work, "/bin/bash"), shell);
    (directory, work, sandbox)
}

/// A command that makes a watched name again and again, and has begun to.
async fn makes_names(sandbox: &Sandbox, work: &Path) -> Process {
    let running = sandbox.jail().await.expect("it starts");
    let text = "while :; do mkdir -p .vscode; echo > begun; done 2>/dev/null";
    let command = Command::new(text, work)
        .expect("a text")
        .with_variables([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into());
    let plan = sandbox.plan(&command);
    let process = running.jail.spawn(&plan, Streams::Output).await.expect("it starts");
    while !work.join("begun").exists() {
        tokio::task::yield_now().await;
    }
    process
}

#[tokio::test]
async fn closing_ends_a_jail_that_somebody_else_holds_before_the_last_look() {
    let (_directory, work, sandbox) = place();
    let _process = makes_names(&sandbox, &work).await;
    let held = sandbox.jail().await.expect("it runs");
    sandbox.close().await;
    assert!(!held.jail.is_alive());
    assert!(!work.join(".vscode").exists());
    fs::create_dir(work.join(".vscode")).expect("the user's");
    drop((held, sandbox));
    assert!(work.join(".vscode").exists(), "nothing of the user's is moved");
}

#[tokio::test]
async fn a_sandbox_that_nobody_closes_ends_before_the_last_look() {
    let (_directory, work, sandbox) = place();
    let _process = makes_names(&sandbox, &work).await;
    let held = sandbox.guarding();
    drop(sandbox);
    assert!(!work.join(".vscode").exists());
    fs::create_dir(work.join(".vscode")).expect("the user's");
    drop(held);
    assert!(work.join(".vscode").exists(), "nothing of the user's is moved");
}

#[tokio::test]
async fn an_entry_of_a_home_that_vanishes_while_it_is_shown_is_passed_over_and_a_link_in_its_place_is_not_followed() {
    let (_directory, work, _) = place();
    let outside = work.with_file_name("outside");
    for path in [
        work.join("gone"),
        work.join("replaced"),
        work.join("kept"),
        outside.clone(),
    ] {
        fs::create_dir(&path).expect("made");
    }
    fs::write(outside.join("x"), "x").expect("written");
    let mut restrictions = Restrictions::new(&work, "/bin/bash");
    restrictions.home = Some(work.clone());
    restrictions.allow_home = true;
    let Prepared { plan, guard, .. } = prepare(&restrictions, None).expect("it is small");
    for name in ["gone", "replaced"] {
        fs::remove_dir(work.join(name)).expect("ours");
    }
    std::os::unix::fs::symlink(&outside, work.join("replaced")).expect("linked");
    let jail = Jail::start(&plan).await.expect("it starts all the same");
    let root = jail.root().expect("it has one");
    let seen = |name: &str| {
        let path = work.join(name);
        let inside = path.strip_prefix("/").expect("absolute");
        rustix::fs::statat(root, inside, rustix::fs::AtFlags::empty()).is_ok()
    };
    assert!(seen("kept") && !seen("gone") && !seen("replaced") && !seen("replaced/x"));
    jail.close().await;
    drop(guard);
}
