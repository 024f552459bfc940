//! `--env memory` as it is started: commands, rules and tools, none of which touch the disk.

use std::process::Command;

use serde_json::{Value, json};
use shieling_testkit::prerequisite;

use crate::mcp::Server;
use crate::support::{Ran, Shieling};

fn exec(options: &[&str], command: &str) -> Ran {
    let shieling = Shieling::in_workspace().args(["exec", "--env", "memory"]);
    shieling.args(options).args(["--", command]).run()
}

fn judged(verb: &str, options: &[&str]) -> Ran {
    let shieling = Shieling::in_workspace().args([verb, "--env", "memory"]);
    shieling.args(options).run()
}

#[test]
fn streams_and_status_are_those_of_the_text_and_its_files_are_nowhere() {
    let shieling =
        Shieling::in_workspace().args(["exec", "--env", "memory", "--", "echo x > f; cat f; echo e >&2; exit 4"]);
    assert_eq!(shieling.run().to_string(), "exit: 4\n--- stdout\nx\n--- stderr\ne\n");
    let left = std::fs::read_dir(shieling.workspace()).expect("it is there").count();
    assert_eq!(left, 0, "it wrote to the workspace");
    let outcome = exec(&["--json"], "echo hi | tr a-z A-Z").outcome();
    assert_eq!(
        (&outcome["stdout"], &outcome["environment"]),
        (&json!("HI\n"), &json!("memory"))
    );
    assert_eq!(
        outcome["confinement"]["enforced"],
        json!(["memory.files", "memory.bash"])
    );
}

#[test]
fn an_unknown_program_is_127_and_a_text_that_cannot_be_run_as_bash_would_is_125() {
    let ran = exec(&[], "nosuch x");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(127), ""));
    assert!(
        ran.stderr.contains("memory has no program `nosuch`; it has: awk"),
        "{ran}"
    );
    let ran = exec(&[], "ls 3>&1 1>&2 2>&3");
    assert_eq!(ran.exit, Some(125), "{ran}");
    assert!(ran.stderr.contains("`3>&1 … 2>&3`"), "{ran}");
    let ran = exec(&[], "echo '3>&1 1>&2 2>&3'");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(0), "3>&1 1>&2 2>&3\n"), "{ran}");
}

#[test]
fn staging_is_refused_with_what_works_instead() {
    for mode in ["commit", "review", "discard"] {
        let ran = exec(&["--changes", mode], "true");
        assert_eq!(ran.exit, Some(125), "{ran}");
        assert!(
            ran.stderr.contains("nothing of them reaches one")
                && ran.stderr.contains("`Memory::snapshot`")
                && ran.stderr.contains("`--env sandbox` stages"),
            "{ran}"
        );
    }
}

#[test]
fn it_is_described_without_a_word_of_this_host_and_with_what_it_has() {
    let ran = judged("describe", &[]);
    let host = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel has a release");
    let said = &ran.stdout;
    assert!(!said.contains(host.trim()) && said.contains("no kernel"), "{ran}");
    assert!(said.contains("these programs and no others (127): awk b2sum"), "{ran}");
    let ran = judged("describe", &["--json"]);
    let described: Value = serde_json::from_str(&ran.stdout).expect("an object");
    assert_eq!(described["kernel"], json!("no kernel"), "{ran}");
    let advice = described["advice"].to_string();
    assert!(advice.contains("No program of a host can be started"), "{ran}");
}

#[test]
fn rules_refuse_and_say_which_they_are() {
    let cases: [(&[&str], &str, &str); 5] = [
        (&["--readonly"], "echo x > f", "rule     readonly (deny)"),
        (&["--readonly"], "rm -rf /tmp", "rule     readonly (deny)"),
        (&["--ignore", ".env"], "cat .env", "rule     ignore (deny)"),
        (&["--allow", "ls"], "cat f", "rule     allow (deny)"),
        (&["--deny", "rm"], "env rm f", "rule     deny (deny)"),
    ];
    for (options, command, rule) in cases {
        let ran = exec(options, command);
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(126), ""), "{command}: {ran}");
        assert!(ran.stderr.contains(rule), "{command}: {ran}");
    }
    assert_eq!(exec(&["--allow", "ls", "--readonly"], "ls /").exit, Some(0));
    // What the text hides from the policy, the memory itself refuses.
    let hidden = exec(&["--readonly"], "p=rm; $p -rf /tmp; echo $?");
    assert!(hidden.stdout != "0\n", "{hidden}");
}

#[test]
fn a_deadline_keeps_what_was_printed() {
    let ran = exec(&["--timeout", "400ms"], "echo a; sleep 60");
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(124), "a\n"), "{ran}");
    assert!(
        ran.stderr.contains("timed out: `echo a; sleep 60`") && ran.stderr.contains("no process was left behind"),
        "{ran}"
    );
}

#[test]
fn options_that_mean_nothing_in_memory_are_refused() {
    for options in [
        &["--pids", "5"][..],
        &["--network", "host"],
        &["--cpus", "1"],
        &["--read", "/etc"],
    ] {
        let ran = exec(options, "echo started");
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{options:?}: {ran}");
        let said = format!("`{}` cannot be enforced in `memory`; nothing was started", options[0]);
        assert!(ran.stderr.contains(&said), "{options:?}: {ran}");
    }
    assert_eq!(
        exec(&["--memory", "8MiB", "--file-size", "1KiB"], "echo fine").stdout,
        "fine\n"
    );
}

#[test]
fn it_is_described_and_judged_as_what_it_is() {
    let described = judged("describe", &[]);
    for line in [
        "Environment  memory: files and a bash in memory",
        "Network      none",
        "Confinement  memory.files, memory.bash",
    ] {
        assert!(described.stdout.contains(line), "{line}: {described}");
    }
    for (options, exit) in [
        (&["rm -rf x"][..], 0),
        (&["--readonly", "rm -rf x"], 4),
        (&["--readonly", "cat x"], 0),
    ] {
        let ran = judged("why", options);
        assert_eq!(ran.exit, Some(exit), "{options:?}: {ran}");
    }
}

/// Calls with which files, directories, programs and other machines are reached by name.
const REACHING: &str = "?open,?openat,?openat2,?creat,?unlink,?unlinkat,?rename,?renameat,?renameat2,?mkdir,?mkdirat,\
    ?rmdir,?link,?linkat,?symlink,?symlinkat,?truncate,?mknod,?mknodat,?chmod,?fchmodat,?execve,?execveat,\
    ?connect,?bind";

/// What may be reached all the same, all of it the kernel's and none of it on a disk: glibc's allocator asks
/// the first when it makes an arena for a thread, and a search asks the others how many processors it may use.
const REACHED: [&str; 4] = [
    "\"/proc/sys/vm/overcommit_memory\"",
    "\"/proc/self/cgroup\"",
    "\"/sys/fs/cgroup/",
    // The C library's, for as many heaps as there are processors.
    "\"/sys/devices/system/cpu/online\"",
];

#[test]
fn no_tool_touches_the_disk() {
    if !prerequisite::has(&["strace"]) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("trace");
    let shieling = Shieling::in_workspace().args(["mcp", "--env", "memory"]);
    let plain = shieling.command();
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-s", "4096", "-e"])
        .arg(format!("trace=read,{REACHING}"));
    traced
        .arg("-o")
        .arg(&file)
        .arg(plain.get_program())
        .args(plain.get_args())
        .env_clear();
    traced.current_dir(shieling.workspace());
    for (name, value) in plain.get_envs() {
        traced.env(name, value.unwrap_or_default());
    }
    let mut server = Server::start_by(shieling, traced, json!({}));
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n three\n";
    let calls = [
        (
            "shell",
            json!({"command": "mkdir -p d; echo hi > d/f; cat d/f | tr a-z A-Z", "session": ""}),
            "HI\n",
        ),
        ("shell", json!({"command": "x=1; cd d"}), ""),
        (
            "shell",
            json!({"command": "cat f; echo $x; exit 3"}),
            "hi\n1\n[exit code 3]",
        ),
        ("shell", json!({"command": "cat f; echo ${x:-gone}"}), "hi\ngone\n"),
        ("write_file", json!({"path": "a.txt", "content": "one\ntwo\n"}), ""),
        ("read_file", json!({"path": "a.txt"}), "two"),
        (
            "edit_file",
            json!({"path": "a.txt", "old": "two", "new": "three"}),
            "three",
        ),
        ("apply_patch", json!({"patch": patch}), "a.txt"),
        ("ls", json!({}), "a.txt"),
        ("glob", json!({"pattern": "*.txt"}), "a.txt"),
        ("grep", json!({"pattern": "ONE"}), "a.txt"),
        ("stat", json!({"path": "a.txt"}), "a.txt"),
        ("move_file", json!({"from": "a.txt", "to": "b.txt"}), "b.txt"),
        ("shell", json!({"command": "cat b.txt", "session": ""}), "ONE\nthree\n"),
        ("delete_file", json!({"path": "b.txt"}), "b.txt"),
        ("environment", json!({}), "memory"),
    ];
    for (tool, arguments, expected) in calls {
        let (text, outcome) = server.tool(tool, arguments.clone());
        assert!(text.contains(expected), "{tool} {arguments}: {text}");
        assert_eq!(outcome["denial"], Value::Null, "{tool} {arguments}: {text}");
        if expected.contains("[exit code 3]") {
            assert_eq!(outcome["session_restarted"], json!(true), "{outcome}");
        }
    }
    let (_shieling, exit, _, told) = server.end();
    assert_eq!(exit, Some(0), "{told}");
    let trace = std::fs::read_to_string(&file).expect("strace wrote it");
    let (before, after) = trace.split_at(trace.find("tools/call").expect("the first call is in the trace"));
    // What is looked for is seen where it happens.
    assert!(before.contains("openat(") && before.contains("execve("), "{before}");
    let reached: Vec<&str> = after
        .lines()
        .skip(1)
        .filter(|line| !line.contains("read(") && !line.contains("<... ") && line.contains('('))
        .filter(|line| !REACHED.iter().any(|known| line.contains(known)))
        .filter(|line| !line.contains("--- SIG"))
        .collect();
    assert_eq!(reached, [""; 0], "after the first call");
}
