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

#[tokio::test]
async fn what_a_session_puts_back_goes_past_whatever_has_its_names_and_is_seen_by_nobody() {
    let memory = memory();
    let mut shell = shell(&memory).await;
    let nasty = [
        // What it was set up with, and functions and aliases in the place of all that could put it back.
        (
            "trap 'echo usr' USR1; trap 'echo err' ERR; set -u; set -- p 'q r'",
            0,
            "",
        ),
        (
            "trap() { echo trap; }; unset() { echo unset; }; set() { echo set; }; exec() { echo exec; }",
            0,
            "",
        ),
        (
            "command() { echo command; }; builtin() { echo builtin; }; eval() { echo eval; }",
            0,
            "",
        ),
        (
            "shopt -s expand_aliases; alias trap='echo alias' :='echo colon' set='echo alias'; (exit 6)",
            6,
            "err\n",
        ),
        ("echo $?", 0, "6\n"),
        (
            "echo \"$2 $#\"; kill -USR1 $$; [[ $- == *u* ]] && echo strict",
            0,
            "q r 2\nusr\nstrict\n",
        ),
        ("echo one two", 0, "one two\n"),
        ("echo $_ $LINENO $?", 0, "two 1 0\n"),
        (
            "declare -F | wc -l; type trap | head -n 1",
            0,
            "7\ntrap is aliased to `echo alias'\n",
        ),
        (
            "set | grep -i -e shieling -e SHOPT_; compgen -b | grep shieling; declare -p | grep shieling",
            1,
            "err\nerr\nerr\n",
        ),
        ("if then", 2, ""),
        ("echo still $2", 0, "still q r\n"),
        (
            "\\unalias -a; \\unset -f trap unset set exec command builtin eval",
            0,
            "",
        ),
    ];
    for (text, code, expected) in nasty {
        let (end, out) = run(&mut shell, text).await;
        let expected = if text.contains("unset -f") { "unset\n" } else { expected };
        assert_eq!((end, out.as_str()), (End::Exited(code), expected), "{text}");
    }
    assert!(!shell.has_ended());
}

#[tokio::test]
async fn a_trace_and_a_syntax_error_show_the_text_and_nothing_before_it() {
    let memory = memory();
    let mut shell = shell(&memory).await;
    run(&mut shell, "trap 'echo usr' USR1; set -x; (exit 3)").await;
    for (text, expected) in [
        ("echo $?", "+ echo 3\n"),
        (
            "echo a; fi",
            "bash: -c: line 1: syntax error near unexpected token `fi'\nbash: -c: line 1: `echo a; fi'\n",
        ),
        ("echo b", "+ echo b\n"),
    ] {
        let process = shell.run(text).await.expect("it runs");
        let ran = finished(process, Duration::from_secs(60)).await;
        assert_eq!(ran.stderr.text(), expected, "{text}");
    }
}

#[tokio::test]
async fn the_status_is_kept_where_a_failure_is_acted_on() {
    let memory = memory();
    let mut shell = shell(&memory).await;
    assert_eq!(
        run(&mut shell, "trap 'echo err' ERR; (exit 3)").await,
        (End::Exited(3), "err\n".to_owned())
    );
    assert_eq!(run(&mut shell, "echo $?").await.1, "3\n");
    assert_eq!(run(&mut shell, "trap - ERR; set -e; (exit 4)").await.0, End::Exited(4));
    assert_eq!(run(&mut shell, "echo $?").await, (End::Exited(0), "4\n".to_owned()));
}

#[tokio::test]
async fn streams_that_exec_redirects_last_for_their_text() {
    let memory = memory();
    let mut shell = shell(&memory).await;
    for (text, out) in [
        ("x=1; echo first", "first\n"),
        ("exec > log; echo hidden", ""),
        ("echo visible $x", "visible 1\n"),
        ("exec 2>&1; echo both >&2", "both\n"),
        ("echo error >&2; cat log", "hidden\n"),
        ("exec 3> kept; exec > log 2>&1; echo more; nosuch", ""),
        ("echo three >&3; cat kept", "three\n"),
        ("set -u; trap 'echo err' ERR; false; exec 1>&-; echo no", "err\n"),
        ("false; echo $?", "err\n1\n"),
        ("trap - ERR; set +u; echo end", "end\n"),
    ] {
        assert_eq!(run(&mut shell, text).await.1, out, "{text}");
    }
    assert_eq!(run(&mut shell, "set -u; echo ${y:?no}").await.0, End::Exited(127));
}
