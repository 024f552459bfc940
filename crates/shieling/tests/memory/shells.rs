//! Sessions in memory.

use std::path::Path;
use std::time::Duration;

use shieling::process::{End, SessionShell, ShellError};

use super::support::{finished, memory, shell};

async fn run(shell: &mut Box<dyn SessionShell>, text: &str) -> (End, String) {
    let process = shell.run(text).await.expect("it runs");
    let ran = finished(process, Duration::from_secs(60)).await;
    (ran.end, ran.stdout.text())
}

#[tokio::test]
async fn variables_functions_directory_options_and_the_status_stay() {
    let memory = memory();
    let mut shell = shell(&memory).await;
    let first = "x=1; a=(1 2); export E=5; f() { echo f $1; }; mkdir -p d; cd d; set -u; trap 'echo err' ERR; (exit 4)";
    assert_eq!(run(&mut shell, first).await.0, End::Exited(4));
    let state = shell.state();
    assert_eq!((state.cwd.as_path(), state.deleted), (Path::new("/work/d"), false));
    assert_eq!(state.variables.get("E").map(String::as_str), Some("5"));
    assert_eq!(
        run(
            &mut shell,
            "echo $x ${a[1]} $E $PWD; f y; [[ $- == *u* ]] && echo strict; false; true"
        )
        .await,
        (End::Exited(0), "1 2 5 /work/d\nf y\nstrict\nerr\n".to_owned())
    );
    assert_eq!(run(&mut shell, "trap - ERR; set +u; (exit 7)").await.0, End::Exited(7));
    assert_eq!(
        run(&mut shell, "echo $? ${nothing}").await,
        (End::Exited(0), "7\n".to_owned())
    );
    assert!(!shell.has_ended());
}

#[tokio::test]
async fn an_exit_ends_it_and_a_failure_under_errexit_ends_its_text() {
    let memory = memory();
    let mut shell = shell(&memory).await;
    run(&mut shell, "cd /tmp; x=kept; (exit 3)").await;
    assert!(!shell.has_ended());
    for text in ["set -e; false; echo no", "false; echo no"] {
        assert_eq!(run(&mut shell, text).await, (End::Exited(1), String::new()), "{text}");
        assert!(!shell.has_ended(), "{text}");
    }
    assert_eq!(
        run(&mut shell, "set +e; false; echo $x").await,
        (End::Exited(0), "kept\n".to_owned())
    );
    assert_eq!(run(&mut shell, "exit 3").await, (End::Exited(3), String::new()));
    assert!(shell.has_ended());
    assert_eq!(shell.state().cwd, Path::new("/tmp"));
    assert!(matches!(shell.run("true").await, Err(ShellError::Ended)));
}

#[tokio::test]
async fn what_is_broken_off_leaves_the_shell_as_it_was_before() {
    let memory = memory();
    let mut shell = shell(&memory).await;
    run(&mut shell, "x=1; cd /tmp").await;
    for text in [
        "(x=2; cd /; sleep 100)",
        "f() { local x=3; sleep 100; }; f; echo never",
        "echo $(x=4; sleep 100)",
        "while :; do :; done",
    ] {
        let process = shell.run(text).await.expect("it runs");
        let ran = finished(process, Duration::from_millis(300)).await;
        assert_eq!((ran.end, ran.stdout.text().as_str()), (End::TimedOut, ""), "{text}");
        assert_eq!(
            run(&mut shell, "echo $x $PWD $BASH_SUBSHELL").await.1,
            "1 /tmp 0\n",
            "{text}"
        );
    }
    // Nobody waits for this one.
    drop(shell.run("y=1; sleep 100").await.expect("it runs"));
    assert_eq!(run(&mut shell, "echo $x").await.1, "1\n");
}

#[tokio::test]
async fn two_shells_share_files_and_nothing_else() {
    let memory = memory();
    let (mut one, mut two) = (shell(&memory).await, shell(&memory).await);
    run(&mut one, "x=1; cd /tmp; echo shared > /work/f").await;
    assert_eq!(
        run(&mut two, "echo ${x:-none} $PWD; cat f").await.1,
        "none /work\nshared\n"
    );
    run(&mut two, "mkdir gone; cd gone; rmdir ../gone").await;
    assert!(two.state().deleted);
}
