//! Texts that are talked to while they run.

use std::time::Duration;

use shieling::environment::{Ability, Answer, Call, Environment as _, Handler, Memory};
use shieling::process::{End, Process, SpawnError, Streams};
use shieling_testkit::approved;
use tokio::io::AsyncWriteExt as _;

use super::support::{WORKSPACE, command, finished, memory};

const LONG: Duration = Duration::from_secs(60);

/// Something that waits for input, unless it does not.
const SHORT: Duration = Duration::from_secs(20);

async fn started(text: &str) -> Process {
    let process = memory().spawn(approved(command(text)), Streams::Input).await;
    process.expect("it starts")
}

/// What a text prints with this input, whose end comes at once.
async fn fed(text: &str, input: &str) -> (End, String, String) {
    let mut process = started(text).await;
    let mut sender = process.take_input().expect("it has an input");
    let send = async {
        // It may read no more.
        let _ = sender.write_all(input.as_bytes()).await;
        drop(sender);
    };
    let (ran, ()) = tokio::join!(finished(process, LONG), send);
    (ran.end, ran.stdout.text(), ran.stderr.text())
}

/// How a text ends whose input has no end.
async fn unended(text: &str, input: &str) -> (End, String) {
    let mut process = started(text).await;
    let mut sender = process.take_input().expect("it has an input");
    let _ = sender.write_all(input.as_bytes()).await;
    let ran = finished(process, SHORT).await;
    (ran.end, ran.stdout.text())
}

#[tokio::test]
async fn each_command_takes_what_is_its_of_the_input_and_leaves_the_rest() {
    let cases = [
        ("cat", "a\nb", "a\nb"),
        ("cat; cat; echo end", "a\n", "a\nend\n"),
        ("read x; echo \"<$x>\"; tac", "1\n2\n3\n", "<1>\n3\n2\n"),
        (
            "f() { read x; echo \"f $x\"; }; f; f; cat",
            "1\n2\n3\n",
            "f 1\nf 2\n3\n",
        ),
        ("while read -r l; do echo \"[$l]\"; done", "a\nb\n", "[a]\n[b]\n"),
        (
            "while read -r l; do echo \"[$l]\"; done; echo \"$l\"",
            "a\nrest",
            "[a]\nrest\n",
        ),
        ("(read x; echo $x); read y; echo $y", "1\n2\n", "1\n2\n"),
        ("x=$(cat); echo \"[$x]\"", "1\n2\n", "[1\n2]\n"),
        (
            "mapfile -t -n 2 a; echo ${a[@]}; mapfile -t b; echo ${b[@]}",
            "1\n2\n3\n4\n",
            "1 2\n3 4\n",
        ),
        (
            "read -n 1 x; read -rd : y; echo \"$x|$y\"; cat",
            "abc:def\n",
            "a|bc\ndef\n",
        ),
        ("read -N 3 x; echo \"$x\"; read y; echo $y", "a\nbc\n", "a\nb\nc\n"),
        ("cat | tr a-z A-Z | grep -v X", "a\nx\nb\n", "A\nB\n"),
        ("sort | head -n 1", "b\na\n", "a\n"),
        ("xargs echo got", "a\nb\n", "got a b\n"),
        ("tee log | wc -c; cat log", "ab\n", "3\nab\n"),
        ("timeout 50 cat; env cat; command cat", "a\n", "a\n"),
        ("awk '{ print $1 * 2 }'; sed p", "1\n", "2\n"),
        ("if read -r x; then cat; fi", "1\n2\n", "2\n"),
        ("{ read x; grep b; } | cat", "b\nb1\nc\n", "b1\n"),
        ("sed 1q; echo $?", "1\n2\n", "1\n0\n"),
        ("read x; eval 'read y'; . /dev/null; echo $x$y", "1\n2\n", "12\n"),
        (
            "diff - <(echo a); sort - <(echo b); cat <(echo c); grep d <(echo d)",
            "a\n",
            "b\nc\nd\n",
        ),
        ("cat /dev/stdin; cat < /dev/stdin; paste - -", "1\n2\n", "1\n2\n"),
        ("bash -c 'read x; echo $x'; cat", "1\n2\n", "1\n2\n"),
    ];
    for (text, input, expected) in cases {
        let (end, out, err) = fed(text, input).await;
        assert_eq!((end, out.as_str()), (End::Exited(0), expected), "{text}: {err}");
    }
}

#[tokio::test]
async fn what_has_an_input_of_its_own_takes_nothing_of_the_texts() {
    let cases = [
        ("wc -l < /dev/null; cat < /dev/null; grep x < /dev/null", "0\n"),
        ("echo a | cat; true | cat; { :; } | cat; : | sort", "a\n"),
        ("f() { echo p; }; f | { cat; sort < /dev/null; }", "p\n"),
        ("cat <<E\nhere\nE\ncat <<< string", "here\nstring\n"),
        ("read x < <(echo proc); echo $x; read y <<< z; echo $y", "proc\nz\n"),
        (
            "echo f > f; cat f; sort f; grep f f; wc -l f; head -n 1 f",
            "f\nf\nf\n1 f\nf\n",
        ),
        ("while read l; do echo $l; done < <(echo in)", "in\n"),
        ("awk 'BEGIN { print 1 }'; seq 2; echo x | xargs echo", "1\n1\n2\nx\n"),
        ("grep x /dev/null; cat /dev/null; cp /dev/null n; wc -c n", "0 n\n"),
    ];
    for (text, expected) in cases {
        let (end, out, err) = fed(&format!("{text}; read last; echo $last"), "live\n").await;
        let expected = format!("{expected}live\n");
        assert_eq!(
            (end, out.as_str()),
            (End::Exited(0), expected.as_str()),
            "{text}: {err}"
        );
    }
}

#[tokio::test]
async fn nobody_waits_for_input_that_is_not_wanted() {
    let cases = [
        (
            "echo never reads; ls; mkdir d; touch d/f; f() { date > /dev/null; }; f",
            "never reads\n",
        ),
        ("grep -q b; echo $?", "0\n"),
        ("grep -m 1 b", "b\n"),
        ("head -n 1", "b\n"),
        ("read x; echo $x", "b\n"),
        ("cat f 2> /dev/null; grep x /dev/null; sort /dev/null; echo on", "on\n"),
        ("echo 'echo piped' | bash; bash -c 'echo in'", "piped\nin\n"),
        ("sleep 0.05 & wait; echo over", "over\n"),
        ("read x; read y; read -t 0.1 z; echo $?", "142\n"),
        ("timeout 0.2 cat > /dev/null; echo $?", "124\n"),
    ];
    for (text, expected) in cases {
        let (end, out) = unended(text, "b\nc\n").await;
        assert_eq!((end, out.as_str()), (End::Exited(0), expected), "{text}");
    }
}

#[tokio::test]
async fn the_end_of_the_input_fails_one_read_once() {
    let (_, out, _) = fed("trap 'echo ERR' ERR; read x; read y; echo $? \"$y\"", "1\n").await;
    assert_eq!(out, "ERR\n1 \n");
    let (end, out, _) = fed(
        "set -e; while read l; do echo $l; done; echo on; read x; echo no",
        "1\n",
    )
    .await;
    assert_eq!((end, out.as_str()), (End::Exited(1), "1\non\n"));
}

#[tokio::test]
async fn whoever_sends_faster_than_is_read_waits() {
    let mut process = started("read x; echo $x; sleep 50").await;
    let mut sender = process.take_input().expect("it has an input");
    let sent = tokio::time::timeout(Duration::from_secs(2), async {
        sender.write_all(b"first\n").await.expect("room");
        for _ in 0..1_000 {
            sender.write_all(&[b'x'; 16 * 1024]).await.expect("somebody reads");
        }
    });
    assert!(sent.await.is_err(), "16 MB went into a pipe that nobody reads");
    drop(process);
}

#[tokio::test]
async fn a_shell_that_is_talked_to_runs_each_command_as_it_comes() {
    let cases = [
        ("bash", "echo a\nx=1\necho $x\n", "a\n1\n", 0),
        ("sh -s", "read x\nline\necho \"<$x>\"\ncat\nrest\n", "<line>\nrest\n", 0),
        (
            "exec bash",
            "for i in 1 2; do\n  echo $i\ndone\nexit 3\necho no\n",
            "1\n2\n",
            3,
        ),
        ("bash", "cat <<E\na\nE\nf() {\n  echo f \\\n  g\n}\nf", "a\nf g\n", 0),
        ("bash", "set -e\ncd /tmp; pwd\nfalse\necho no\n", "/tmp\n", 1),
        ("bash", "set -- a b\necho $2 $LINENO\nfalse\necho $?", "b 2\n1\n", 0),
        ("bash", "", "", 0),
        ("bash", "false\nfi\necho never\n", "", 2),
        ("bash", "echo a &&\necho b |\ncat\n", "a\nb\n", 0),
    ];
    for (text, input, expected, code) in cases {
        let (end, out, err) = fed(text, input).await;
        assert_eq!((end, out.as_str()), (End::Exited(code), expected), "{input:?}: {err}");
    }
    let mut process = started("bash").await;
    let mut sender = process.take_input().expect("it has an input");
    sender.write_all(b"echo now\nexit 4\n").await.expect("room");
    let ran = finished(process, SHORT).await;
    assert_eq!((ran.end, ran.stdout.text()), (End::Exited(4), "now\n".to_owned()));
}

#[tokio::test]
async fn input_that_cannot_be_read_is_told_by_whoever_reads_it() {
    let folder = || std::fs::File::open("/").expect("a directory");
    for (text, code) in [("echo fine", 0), ("cat", 1), ("read x", 1)] {
        let process = memory()
            .spawn(approved(command(text)), Streams::Given(folder().into()))
            .await;
        let ran = finished(process.expect("it starts"), LONG).await;
        assert_eq!(ran.end, End::Exited(code), "{text}: {}", ran.stderr.text());
        assert_eq!(
            ran.stderr.text().contains("directory"),
            code != 0,
            "{text}: {}",
            ran.stderr.text()
        );
    }
}

#[tokio::test]
async fn a_memory_whose_texts_cannot_read_what_arrives_says_so() {
    let whole = |_: Call| async { Answer::ok("") };
    let whole = Memory::builder(WORKSPACE)
        .handler(Handler::Whole(std::sync::Arc::new(whole)))
        .build();
    let without_scripts = Memory::builder(WORKSPACE).allowed(Some(vec!["cat".to_owned()])).build();
    for memory in [whole, without_scripts] {
        let memory = memory.expect("a memory");
        assert!(!memory.capabilities().abilities.contains(&Ability::Input));
        let refused = memory.spawn(approved(command("cat")), Streams::Input).await;
        assert!(matches!(refused, Err(SpawnError::NoInput { .. })));
    }
    assert!(memory().capabilities().abilities.contains(&Ability::Input));
}

#[tokio::test]
async fn what_would_get_another_input_is_refused_in_words() {
    for text in [
        "select x in a b; do echo $x; done",
        "echo no; bash",
        "cat & wait; read x",
    ] {
        let (end, out, err) = fed(text, "1\n").await;
        assert_eq!((end, out.as_str()), (End::Exited(125), ""), "{text}");
        assert!(err.contains("what arrives at the text"), "{text}: {err}");
    }
    let (end, out, _) = fed("cat < /dev/null & wait; read x; echo $x", "1\n").await;
    assert_eq!((end, out.as_str()), (End::Exited(0), "1\n"));
}
