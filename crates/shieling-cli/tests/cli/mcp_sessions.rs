//! Texts that attack their session, over the whole way that a client has: lines of JSON, the real binary,
//! nobody to ask. Each has a session of its own, which is afterwards what it was before, or new and says so.

use serde_json::json;

use crate::mcp::Server;
use crate::support::Shieling;

const LOCAL: &[&str] = &["mcp", "--env", "local", "--approval", "never", "--acknowledge-unsafe"];
const SANDBOX: &[&str] = &["mcp"];

/// What a session is made to be. It stands in a directory of its own.
const PREPARE: &str = "mkdir -p \"$DIR\" && cd \"$DIR\" && kept=variable && export TOLD=exported";
/// What it says of itself, whatever the names mean by now.
const PROBE: &str = "\\builtin echo \"$kept $TOLD ${PWD##*/}\"";

/// What is expected of a text: status, exit code, standard output, whether the shell is new.
struct Case(&'static str, &'static str, i64, Out, bool);

enum Out {
    Is(&'static str),
    Bytes(u64),
}

use Out::{Bytes, Is};

const CASES: &[Case] = &[
    Case("echo before; exit 3; echo after", "exited", 3, Is("before\n"), true),
    Case("touch f; exec ls", "exited", 0, Is("f\n"), true),
    Case(
        "echo before; kill -9 $$; echo after",
        "signalled",
        137,
        Is("before\n"),
        true,
    ),
    Case("kill $$; sleep 5", "signalled", 143, Is(""), true),
    Case(
        "set -euo pipefail; echo before; false; echo after",
        "exited",
        1,
        Is("before\n"),
        false,
    ),
    Case(
        "set -euo pipefail; f() { false | true; echo after; }; f",
        "exited",
        1,
        Is(""),
        false,
    ),
    Case("set -u; echo $NOPE; echo after", "exited", 1, Is(""), false),
    Case(
        "echo() { :; }; printf() { :; }; read() { :; }; eval() { :; }; cd() { :; }; echo x",
        "exited",
        0,
        Is(""),
        false,
    ),
    Case(
        "enable -n printf test; printf() { exit 9; }",
        "exited",
        0,
        Is(""),
        false,
    ),
    Case("exec >file; echo hidden", "exited", 0, Is(""), false),
    Case("exec 1>&-", "exited", 0, Is(""), false),
    Case("exec 1>&- 2>&- 0<&-", "exited", 0, Is(""), false),
    Case("ulimit -f 0; echo x >f", "signalled", 153, Is(""), true),
    Case("cat; echo read", "exited", 0, Is("read\n"), false),
    Case("read -r x", "exited", 1, Is(""), false),
    Case(
        "head -c 200000000 /dev/zero | tr '\\0' a",
        "exited",
        0,
        Bytes(200_000_000),
        false,
    ),
    Case("printf abc", "exited", 0, Is("abc"), false),
    Case("printf '\\xff\\n'", "exited", 0, Is("\u{fffd}\n"), false),
    Case(
        "printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\\n'",
        "exited",
        0,
        Is("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"),
        false,
    ),
    Case("trap 'true' DEBUG; false", "exited", 1, Is(""), false),
    Case("trap 'echo bye' EXIT; exit 4", "exited", 4, Is("bye\n"), true),
    Case("set -x; echo traced", "exited", 0, Is("traced\n"), false),
    Case(
        "shopt -s expand_aliases; alias cd=false echo=false printf=false read=false eval=false",
        "exited",
        0,
        Is(""),
        false,
    ),
    Case("# nothing but this", "exited", 0, Is(""), false),
    Case(
        "PROMPT_COMMAND='exit 8'; PS0='x'; PS1='$(exit 7)'; IFS=x; POSIXLY_CORRECT=1",
        "exited",
        0,
        Is(""),
        false,
    ),
];

fn both(test: impl Fn(&mut Server, &str)) {
    for args in [LOCAL, SANDBOX] {
        let mut server = Server::start(Shieling::in_workspace().args(args), json!({}));
        test(&mut server, if args == LOCAL { "local" } else { "sandbox" });
        let (_, exit, rest, _) = server.end();
        assert_eq!((exit, rest.as_str()), (Some(0), ""));
    }
}

fn prepare(server: &mut Server, session: &str) {
    let text = PREPARE.replace("$DIR", session);
    let (told, outcome) = server.shell(json!({"command": text, "session": session}));
    assert_eq!(outcome["exit_code"], 0, "{told}");
}

/// What is wrong with how a session stands.
fn probed(server: &mut Server, session: &str, variable: &str) -> Option<String> {
    let (told, outcome) = server.shell(json!({"command": PROBE, "session": session}));
    let good = outcome["stdout"] == format!("{variable} exported {session}\n") && outcome["session_restarted"] == false;
    (!good).then(|| format!("afterwards: {told} {outcome}"))
}

fn attempt(server: &mut Server, session: &str, Case(text, status, code, out, restarted): &Case) -> Option<String> {
    prepare(server, session);
    let (told, outcome) = server.shell(json!({"command": text, "session": session, "timeout_ms": 30_000}));
    let stdout = outcome["stdout"].as_str().unwrap_or_default();
    let printed = match out {
        Is(out) => stdout == *out && outcome["stdout_bytes"] == out.replace('\u{fffd}', "?").len(),
        Bytes(bytes) => outcome["stdout_bytes"] == *bytes && outcome["truncated"] == true && stdout.len() < 100_000,
    };
    if !printed
        || (&outcome["status"], &outcome["exit_code"]) != (&json!(status), &json!(code))
        || outcome["session_restarted"] != *restarted
    {
        return Some(format!("{} {outcome}", told.chars().take(500).collect::<String>()));
    }
    // A new shell has the directory and what was exported, and nothing else.
    probed(server, session, if *restarted { "" } else { "variable" })
}

#[test]
fn hostile_texts_get_the_contracts_answer_and_their_session_goes_on() {
    both(|server, place| {
        let mut wrong = Vec::new();
        for (number, case) in CASES.iter().enumerate() {
            if let Some(why) = attempt(server, &format!("s{number}"), case) {
                wrong.push(format!("{}: {why}", case.0));
            }
        }
        assert!(wrong.is_empty(), "{place}\n{}", wrong.join("\n"));
    });
}

#[test]
fn a_deleted_directory_and_a_nul_are_told() {
    both(|server, place| {
        prepare(server, "gone");
        server.shell(json!({"command": "rmdir ../gone", "session": "gone"}));
        let (told, outcome) = server.shell(json!({"command": "echo $kept; exit 3", "session": "gone"}));
        assert_eq!(
            (&outcome["stdout"], &outcome["exit_code"]),
            (&json!("variable\n"), &json!(3)),
            "{place}: {told}"
        );
        let (told, outcome) = server.shell(json!({"command": "echo $TOLD", "session": "gone"}));
        assert_eq!(outcome["stdout"], "exported\n", "{place}: {told}");
        // M21: never dropped.
        let (told, outcome) = server.shell(json!({"command": "echo a\0b", "session": "gone"}));
        assert!(
            outcome["stdout"].as_str().is_none_or(str::is_empty) && told.contains("NUL"),
            "{place}: {told} {outcome}"
        );
    });
}

#[test]
fn what_is_out_of_time_is_ended_or_goes_on_as_a_job_that_keeps_its_session_busy() {
    both(|server, place| {
        for text in [
            "echo begun; sleep 50",
            "echo begun; trap '' TERM INT; while :; do sleep 1; done",
            "echo begun; exec sleep 50",
        ] {
            let session = format!("t{}", text.len());
            prepare(server, &session);
            let (told, outcome) =
                server.shell(json!({"command": text, "session": session, "timeout_ms": 300, "on_timeout": "kill"}));
            let seen = (
                &outcome["status"],
                &outcome["exit_code"],
                &outcome["stdout"],
                &outcome["survivors"],
            );
            assert_eq!(
                seen,
                (&json!("timed_out"), &json!(124), &json!("begun\n"), &json!(0)),
                "{place}: {told}"
            );
            let new = outcome["session_restarted"] == true;
            assert_eq!(new, text.contains("exec"), "{place}: {text}: {outcome}");
            assert_eq!(
                probed(server, &session, if new { "" } else { "variable" }),
                None,
                "{place}: {text}"
            );
        }
        prepare(server, "b");
        let (told, outcome) = server.shell(
            json!({"command": "echo begun; sleep 50; echo no", "session": "b", "timeout_ms": 300,
                   "on_timeout": "background"}),
        );
        assert_eq!(
            (&outcome["status"], &outcome["stdout"]),
            (&json!("running"), &json!("begun\n")),
            "{place}: {told}"
        );
        let job = outcome["job"].clone();
        let (told, busy) = server.shell(json!({"command": "echo mine", "session": "b"}));
        let named = told.contains(job.as_str().expect("a job"));
        assert!(busy["status"] == "denied" && named, "{place}: {told} {busy}");
        let (told, ended) = server.tool("shell_kill", json!({"job": job}));
        assert_eq!(
            (&ended["survivors"], &ended["job"]),
            (&json!(0), &job),
            "{place}: {told}"
        );
        assert_eq!(probed(server, "b", "variable"), None, "{place}");
    });
}

#[test]
fn what_prints_later_prints_into_its_own_job() {
    both(|server, place| {
        prepare(server, "late");
        let (told, first) = server.shell(json!({"command": "(sleep 0.3; echo late) & echo now", "session": "late"}));
        assert_eq!(first["stdout"], "now\n", "{place}: {told}");
        let (told, next) = server.shell(json!({"command": "wait; echo mine", "session": "late"}));
        assert_eq!(next["stdout"], "mine\n", "{place}: {told}");
        let (told, view) = server.tool(
            "shell_view",
            json!({"job": first["job"], "wait_ms": 5000, "until": "exit"}),
        );
        assert_eq!(view["stdout"], "late\n", "{place}: {told} {view}");
        assert_eq!(probed(server, "late", "variable"), None, "{place}");
    });
}

#[test]
fn two_calls_at_once_take_turns_and_a_cancelled_one_leaves_nothing_to_the_next() {
    both(|server, place| {
        prepare(server, "m13");
        let call = |text: &str| json!({"command": text, "session": "m13"});
        let first = server.begin("shell", &call("order=first; sleep 0.3; echo one"));
        let second = server.begin("shell", &call("echo two after $order"));
        let mut answers = [server.answer(), server.answer()];
        answers.sort_by_key(|(id, _)| *id);
        let [(one, said), (two, other)] = answers;
        assert_eq!((one, two, &said["stdout"]), (first, second, &json!("one\n")), "{place}");
        // Which of them comes first is not said, as both are on their way.
        let turns = [json!("two after first\n"), json!("two after\n")];
        assert!(turns.contains(&other["stdout"]), "{place}: {other}");
        let begun = std::time::Instant::now();
        let cancelled = server.begin("shell", &call("echo > begun; echo old; sleep 40; echo older"));
        server.has_file("m13/begun");
        server.cancel(cancelled);
        let next = server.begin("shell", &call("echo after-cancel $kept"));
        let answer = loop {
            let (id, outcome) = server.answer();
            if id == next {
                break outcome;
            }
        };
        assert_eq!(answer["stdout"], "after-cancel variable\n", "{place}: {answer}");
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(25),
            "{place}: {:?}",
            begun.elapsed()
        );
        assert_eq!(probed(server, "m13", "variable"), None, "{place}");
    });
}

/// M20: each command of a text is looked at, as it is written.
#[test]
fn an_allow_list_holds_in_a_session() {
    let shieling = Shieling::in_workspace()
        .args(LOCAL.iter().copied())
        .args(["--allow", "echo", "--allow", "ls"]);
    let mut server = Server::start(shieling, json!({}));
    for (text, status) in [
        ("echo hi", "exited"),
        ("ls; echo hi", "exited"),
        ("ls; id", "denied"),
        ("echo $(id)", "denied"),
        ("ECHO hi", "denied"),
        ("alias ls=id", "denied"),
        ("echo hi", "exited"),
    ] {
        let (told, outcome) = server.shell(json!({"command": text}));
        assert_eq!(outcome["status"], status, "{text}: {told}");
        let denied = status == "denied";
        assert!(denied || outcome["stdout"] == "hi\n", "{text}: {told}");
    }
    server.end();
}

#[test]
fn a_silent_program_on_a_terminal_goes_on_as_a_job_before_the_time_of_a_call_is_over() {
    let mut server = Server::start(Shieling::in_workspace().args(SANDBOX), json!({}));
    let began = std::time::Instant::now();
    let prompt = "printf 'name: '; read -r name; echo hello $name";
    let (told, outcome) = server.shell(json!({"command": prompt, "tty": true, "job": "asks"}));
    assert_eq!(outcome["status"], "running", "{told}");
    assert!(told.contains("name: ") && told.contains("job asks"), "{told}");
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    let (_, seen) = server.tool("shell_write", json!({"job": "asks", "text": "you", "wait_ms": 20_000}));
    assert!(
        seen["stdout"].as_str().is_some_and(|out| out.contains("hello you")),
        "{seen}"
    );
    server.end();
}

#[test]
fn a_directory_whose_name_is_no_utf_8_costs_no_outcome() {
    for arguments in [LOCAL, SANDBOX] {
        let mut server = Server::start(Shieling::in_workspace().args(arguments), json!({}));
        let (_, there) = server.shell(json!({"command": "mkdir $'b\\xff' && cd $'b\\xff'"}));
        assert_eq!(
            (&there["exit_code"], &there["status"]),
            (&json!(0), &json!("exited")),
            "{there}"
        );
        assert!(
            there["cwd"].as_str().is_some_and(|cwd| cwd.ends_with("b\u{fffd}")),
            "{there}"
        );
        let (_, next) = server.shell(json!({"command": "pwd | od -An -tx1 | grep -c 'ff 0a$'"}));
        assert_eq!(next["stdout"], json!("1\n"), "{next}");
        server.end();
    }
}

#[test]
fn a_session_that_cannot_enter_its_directory_says_where_it_goes_on() {
    let mut server = Server::start(Shieling::in_workspace().args(SANDBOX), json!({}));
    let (_, ended) = server.shell(json!({"command": "mkdir -p shut/x; cd shut/x; chmod 000 ..; exit 3"}));
    assert_eq!(
        (&ended["exit_code"], &ended["session_restarted"]),
        (&json!(3), &json!(true)),
        "{ended}"
    );
    let (told, next) = server.shell(json!({"command": "touch ran"}));
    assert_eq!(next["status"], json!("failed"), "{next}");
    assert!(
        told.contains("cannot be entered") && told.contains("the next command starts in"),
        "{told}"
    );
    let (_, home) = server.shell(json!({"command": "chmod 755 shut; ls"}));
    assert_eq!(home["stdout"], json!("shut\n"), "{home}");
    server.end();
}

#[test]
fn calls_that_are_sent_together_run_in_the_order_in_which_they_were_sent() {
    for environment in ["sandbox", "local"] {
        let shieling = Shieling::in_workspace().args(["mcp", "--env", environment, "--approval", "policy"]);
        let mut server = Server::start(shieling, json!({}));
        for round in 0..5 {
            server.shell(json!({"command": format!("mkdir -p d{round}; cd \"$PWD\"; n=0")}));
            let texts = [format!("cd d{round}"), "pwd > here".to_owned()];
            let counts = (0..12).map(|_| "n=$((n + 1)); echo $n".to_owned());
            let texts: Vec<String> = texts.into_iter().chain(counts).chain(["cd ..".to_owned()]).collect();
            let ids: Vec<u64> = texts
                .iter()
                .map(|text| server.begin("shell", &json!({"command": text})))
                .collect();
            let mut said = std::collections::BTreeMap::new();
            while said.len() < ids.len() {
                let (id, outcome) = server.answer();
                said.insert(id, outcome["stdout"].as_str().unwrap_or_default().to_owned());
            }
            let said: Vec<String> = ids[2..14].iter().map(|id| said[id].clone()).collect();
            let expected: Vec<String> = (1..=12).map(|n| format!("{n}\n")).collect();
            assert_eq!(said, expected, "{environment}");
            assert!(
                server.workspace().join(format!("d{round}/here")).exists(),
                "{environment}"
            );
        }
        server.end();
    }
}
