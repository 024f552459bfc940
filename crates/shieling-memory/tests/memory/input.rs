//! Standard input: taken whole before a text begins, and only if the text may read it.

use std::time::Duration;

use shieling::environment::{Ability, Environment as _};
use shieling::process::{End, SpawnError, Streams};
use shieling::units::ByteCount;
use shieling_memory::Memory;
use shieling_testkit::approved;

use super::support::{WORKSPACE, command, finished, memory, printed};

/// What a text does with this input, whose end comes at once or never.
async fn given(memory: &Memory, text: &str, input: &str, ends: bool) -> (End, String, String) {
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    let content = input.as_bytes().to_vec();
    // It may read no more.
    let writing = std::thread::spawn(move || {
        let _ = std::io::Write::write_all(&mut std::fs::File::from(write.try_clone().expect("a pipe")), &content);
        (!ends).then_some(write)
    });
    let process = memory.spawn(approved(command(text)), Streams::Given(read)).await;
    let deadline = Duration::from_secs(if ends { 60 } else { 20 });
    let ran = finished(process.expect("it starts"), deadline).await;
    drop(writing.join().expect("a thread"));
    (ran.end, ran.stdout.text(), ran.stderr.text())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_finds_all_of_what_it_is_given() {
    let cases = [
        ("cat", "a\nb", "a\nb"),
        ("tr a-z A-Z | sed 's/^/> /'", "x\ny\n", "> X\n> Y\n"),
        ("read x; echo \"<$x>\"; tac", "1\n2\n3\n", "<1>\n3\n2\n"),
        ("while read l; do echo \"$l.\"; done", "1\n2\n", "1.\n2.\n"),
        ("f() { sort -r; }; f", "1\n2\n", "2\n1\n"),
        ("x=$(cat); echo \"[$x]\"", "1\n2\n", "[1\n2]\n"),
        ("p=cat; $p", "a\n", "a\n"),
        ("bash", "echo from input\n", "from input\n"),
        ("bash -c 'head -n 1'", "1\n2\n", "1\n"),
        ("awk '{ n += $1 } END { print n }'", "1\n2\n", "3\n"),
        ("xargs -n 1 echo got", "a b\n", "got a\ngot b\n"),
    ];
    for (text, input, expected) in cases {
        let (end, out, err) = given(&memory(), text, input, true).await;
        assert_eq!((end, out.as_str()), (End::Exited(0), expected), "{text}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_reads_nothing_waits_for_no_input() {
    for text in [
        "echo done",
        "ls; pwd; echo done",
        "echo x > f; cat f > /dev/null; sort -k 1 f | tail -n 0; echo done",
        "cat <<< done",
        "while read l; do echo $l; done <<< done",
        "grep -r x . > g; head -n 1 -- g > /dev/null; echo done",
        "awk 'BEGIN { print \"done\" }'",
        "f() { cat < /dev/null; }; f; echo done",
    ] {
        let (end, out, err) = given(&memory(), text, "", false).await;
        assert_eq!(end, End::Exited(0), "{text}: {err}");
        assert!(out.ends_with("done\n"), "{text}: {out}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_share_an_input_wrongly_is_refused_and_so_is_more_than_memory_holds() {
    for text in [
        "cat; cat",
        "head -n 1; sort",
        "for i in 1 2; do cat; done",
        "cat & wait; read x",
    ] {
        let (end, out, err) = given(&memory(), text, "1\n2\n", true).await;
        assert_eq!((end, out.as_str()), (End::Exited(125), ""), "{text}: {err}");
        assert!(err.contains("< FILE"), "{text}: {err}");
    }
    let little = Memory::builder(WORKSPACE)
        .memory(ByteCount::kib(256))
        .build()
        .expect("a memory");
    let (end, _, err) = given(&little, "wc -c", &"x".repeat(1 << 20), true).await;
    assert_eq!(end, End::OutOfMemory, "{err}");
}

#[tokio::test]
async fn nobody_writes_to_a_command_that_runs() {
    assert!(!memory().capabilities().abilities.contains(&Ability::Input));
    let refused = memory().spawn(approved(command("cat")), Streams::Input).await;
    assert!(matches!(refused, Err(SpawnError::NoInput { .. })));
}

#[tokio::test]
async fn ripgrep_searches_files_where_it_has_no_input() {
    let memory = memory();
    let made = printed(&memory, "mkdir d; echo zebra > a.txt; echo zoo > d/b.txt").await;
    assert_eq!(made, "");
    for (text, expected) in [
        ("rg z", "a.txt:zebra\nd/b.txt:zoo\n"),
        ("rg -l z | sort -r", "d/b.txt\na.txt\n"),
        ("x=$(rg zoo); echo \"$x\"", "d/b.txt:zoo\n"),
        ("echo zed | rg z", "zed\n"),
        ("rg z < a.txt", "zebra\n"),
        ("wc -l; rg z d", "0\nd/b.txt:zoo\n"),
    ] {
        assert_eq!(printed(&memory, text).await, expected, "{text}");
    }
}
