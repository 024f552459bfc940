//! Each command is alone with its files: it finds the same bash, whatever ran before and runs beside it.

use std::time::Duration;

use shieling::process::{End, Finished, Streams};
use shieling::units::ByteCount;
use shieling_memory::Memory;
use shieling_testkit::extent;

use super::same::{Left, left_in};
use super::support::{WORKSPACE, command, memory, programs, run, run_command};

/// Commands that leave something behind, or would if they could, and such that look for it.
const TEXTS: &[&str] = &[
    "echo hi | tr a-z A-Z",
    "cat < f; ls missing; false",
    "! grep -q x f && sort -r f > g 2>&1",
    "cat <<'E' | head -n 1\none\ntwo\nE\n",
    "echo a b | wc -w <<< word >&2",
    "head -c 3 /dev/zero | od -c",
    "seq 3 | tail -n 1; rev f; [ -e f ]",
    "no-such-program",
    "ls ~+ ~- *.none {a,b}",
    "tee g < f | nl; touch -d @0 g",
    "sed 's/o/0/w h' f; sed -n '$=' f",
    "test -v x && echo set; test -o errexit; [ -v PIPESTATUS ]",
    "cat 'unclosed",
    "cd /; x=1; export y=2; f() { :; }; alias ls='echo no'; set -efu; shopt -s nullglob extglob",
    "exec > g; umask 077; trap 'echo late' EXIT; exit 7",
    "readonly HOME; unset PATH; IFS=:; SECONDS=100; RANDOM=1; OPTIND=3; PS4=x; cat() { echo no; }",
    "sleep 0.01 & printf -v x 1; pushd / > g; hash -p /nowhere/cat cat; ulimit -f 1; wait",
    "hash; jobs; dirs; alias; trap; umask; ulimit -f; shopt -p nullglob extglob; declare -F; declare -p x y",
    "echo \"[$_] $? $! $- $# $0 $OPTIND $PS4 $PWD $OLDPWD ${PIPESTATUS[*]} $BASH_SUBSHELL\"",
    "type ls cat; command -v tr; env | sort",
];

type Told = (End, String, String, Left);

fn told(ran: &Finished, memory: &Memory) -> Told {
    (ran.end, ran.stdout.text(), ran.stderr.text(), left_in(memory))
}

#[tokio::test]
async fn a_command_finds_the_same_whatever_ran_before() {
    let fresh = memory();
    fresh.write("f", b"one\ntwo\n").expect("it is written");
    let shared = fresh.fork();
    let files = shared.snapshot();
    for before in TEXTS {
        for text in extent::share(TEXTS.to_vec(), 5, |_| ()) {
            // Twice, so that a bash that was kept is used.
            for _ in 0..2 {
                let _ = run(&shared, before).await;
                shared.restore(&files);
            }
            let found = told(&run(&shared, text).await, &shared);
            shared.restore(&files);
            let new = fresh.fork();
            let expected = told(&run(&new, text).await, &new);
            assert_eq!(found, expected, "`{text}` after `{before}`");
        }
    }
}

#[tokio::test]
async fn what_is_found_on_the_path_is_looked_for_anew() {
    let allowed = ["bash", "chmod", "mkdir", "mv"].map(str::to_owned).to_vec();
    let memory = Memory::builder(WORKSPACE).enforcing(programs(allowed)).build();
    let memory = memory.expect("an empty memory");
    let printed = async |text: &str| {
        let command = command(text).with_variables([("PATH".to_owned(), "/usr/bin:/work/bin".to_owned())].into());
        let ran = run_command(&memory, command, Streams::Output).await;
        assert_eq!(ran.end, End::Exited(0), "{text}: {}", ran.stderr.text());
        ran.stdout.text()
    };
    memory
        .write("/usr/bin/sort", b"#!/bin/bash\necho sorted\n")
        .expect("it is written");
    printed("chmod 755 /usr/bin/sort && mkdir bin").await;
    assert_eq!(printed("sort a").await, "sorted\n");
    printed("mv /usr/bin/sort bin/sort").await;
    assert_eq!(printed("sort a").await, "sorted\n");
}

#[tokio::test]
async fn a_limit_of_files_is_of_its_command() {
    let memory = memory();
    for (most, end) in [(None, 0), (Some(2), 1), (None, 0), (Some(100), 0), (Some(2), 1)] {
        let limited = command("seq 9 > f").with_file_size(most.map(ByteCount::bytes));
        let ran = run_command(&memory, limited, Streams::Output).await;
        assert_eq!(ran.end, End::Exited(end), "{most:?}");
        let size = memory.read("f").expect("it is written").len();
        assert_eq!(size, if end == 0 { 18 } else { 0 }, "{most:?}: {}", ran.stderr.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_beside_each_other_are_alone_too() {
    let memory = memory();
    let mut running = Vec::new();
    for number in 0..64 {
        let memory = memory.clone();
        running.push(tokio::spawn(async move {
            let text = match number % 3 {
                0 => format!("echo a{number} | tr a-z A-Z"),
                1 => format!("x=A{number}; echo $x; cd /; set -e; trap 'echo late' ERR"),
                _ => format!("echo A{number} > f{number}; cat f{number}"),
            };
            let ran = run(&memory, &text).await;
            assert_eq!(
                ran.stdout.text(),
                format!("A{number}\n"),
                "{text}: {}",
                ran.stderr.text()
            );
        }));
    }
    for one in running {
        one.await.expect("it printed its own");
    }
}

#[tokio::test]
async fn a_command_that_was_broken_off_leaves_nothing_to_the_next() {
    let memory = memory();
    for milliseconds in [1, 2, 3, 5, 8, 20, 50] {
        let endless = command("cat /dev/zero | tr a b | sort | wc -c; seq 100000000 | sort -n | tail -n 1 > g")
            .with_deadline(Duration::from_millis(milliseconds))
            .expect("more than zero");
        let _ = run_command(&memory, endless, Streams::Output).await;
        for _ in 0..3 {
            let ran = run(&memory, "echo hi | tr a-z A-Z").await;
            assert_eq!((ran.end, ran.stdout.text()), (End::Exited(0), "HI\n".to_owned()));
        }
    }
}
