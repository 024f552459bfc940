//! Each tool does what it says, under each of its names.

use std::sync::Arc;

use serde_json::json;
use shieling::environment::Ability;

use crate::client::{Client, text, with_forms};
use crate::fake::Fake;

async fn both() -> (Arc<Fake>, Client) {
    let fake = Arc::new(Fake::new());
    let client = Client::stateful(&fake, "default", json!({})).await;
    (fake, client)
}

#[tokio::test]
async fn a_command_runs_with_what_the_call_says_and_the_rest_from_the_server() {
    let (fake, mut client) = both().await;
    let result = client.call("shell", json!({"command": "ls"})).await;
    assert_eq!((text(&result), &result["isError"]), ("ls\n", &json!(false)));
    let given = &result["structuredContent"];
    assert_eq!((&given["status"], &given["exit_code"]), (&json!("exited"), &json!(0)));
    client
        .call("shell", json!({
            "command": "top", "session": "", "cwd": "sub", "timeout_ms": 5, "on_timeout": "kill", "background": true,
            "tty": true, "rows": 5, "job": "mine", "max_output_bytes": 100, "description": null,
        }))
        .await;
    let expected = [
        "shell ls in Some(\"main\") at /work for 60000 ms, then Background, background false, terminal None, \
         id None, kept 64 KiB",
        "shell top in None at /work/sub for 5 ms, then Kill, background true, \
         terminal Some(TerminalSize { rows: 5, columns: 80 }), id Some(\"mine\"), kept 100 B",
    ];
    assert_eq!(fake.asked(), expected);
}

#[tokio::test]
async fn where_there_are_no_sessions_a_call_that_names_none_has_none() {
    let mut fake = Fake::new();
    fake.abilities.remove(&Ability::Sessions);
    let fake = Arc::new(fake);
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let tools = client.request("tools/list", json!({})).await["result"]["tools"].to_string();
    assert!(tools.contains("There are no sessions here"), "{tools}");
    assert!(
        !tools.contains("persistent") && !tools.contains("List sessions"),
        "{tools}"
    );
    let result = client.call("shell", json!({"command": "ls", "cwd": "sub"})).await;
    assert_eq!(text(&result), "ls\n", "{result}");
    assert!(fake.asked()[0].starts_with("shell ls in None at /work/sub"));
    client.call("shell", json!({"command": "ls", "session": ""})).await;
    assert!(fake.asked()[0].starts_with("shell ls in None"));
    for name in ["main", "other"] {
        let named = client.call("shell", json!({"command": "ls", "session": name})).await;
        for part in ["there are no sessions here", "leave `session` out"] {
            assert!(text(&named).contains(part), "{named}");
        }
        assert_eq!(fake.asked(), [""; 0], "{name}");
    }
}

#[tokio::test]
async fn jobs_are_viewed_written_to_waited_for_and_killed() {
    let (fake, mut client) = both().await;
    let running = client.call("shell", json!({"command": "job"})).await;
    assert_eq!(
        (&running["structuredContent"]["job"], &running["isError"]),
        (&json!("j1"), &json!(false))
    );
    assert!(text(&running).contains("job j1: `shell_view`"), "{running}");
    fake.asked();
    let viewed = client
        .call(
            "shell_view",
            json!({"job": "j1", "cursor": 4, "wait_ms": 10, "until": "quiet", "filter": "^sec"}),
        )
        .await;
    assert_eq!(text(&viewed), "second line\n[job j1 runs]\n[more: cursor 9]");
    let resized = client
        .call("shell_view", json!({"job": "j1", "rows": 5, "columns": 40}))
        .await;
    assert!(!text(&resized).contains("more"), "{resized}");
    let half = client.call("shell_view", json!({"job": "j1", "rows": 5})).await;
    assert!(text(&half).contains("`rows` and `columns`"), "{half}");
    client.call("shell_write", json!({"job": "j1", "text": "y"})).await;
    client
        .call("shell_write", json!({"job": "j1", "keys": ["C-c"], "wait_ms": 0}))
        .await;
    client.call("shell_write", json!({"job": "j1"})).await;
    let met = client
        .call("shell_wait", json!({"job": "j1", "pattern": "read."}))
        .await;
    assert_eq!(
        (text(&met), &met["structuredContent"]["met"]),
        ("[the pattern came]\nready\n[job j1 runs]", &json!(true))
    );
    client
        .call("shell_wait", json!({"job": "j1", "port": 8080, "timeout_ms": 10}))
        .await;
    let met = client.call("shell_wait", json!({"job": "j1"})).await;
    assert_eq!(met["structuredContent"]["met"], json!(false));
    let killed = client.call("shell_kill", json!({"job": "j1"})).await;
    assert!(text(&killed).contains("no process of it is left"), "{killed}");
    let expected = [
        "view j1 from Some(4) within 10ms until Quiet, screen false",
        "resize j1 to TerminalSize { rows: 5, columns: 40 }",
        "view j1 from None within 0ns until Output, screen false",
        "write \"y\" [] enter true to j1 within 500ms",
        "write \"\" [\"C-c\"] enter false to j1 within 0ns",
        "view j1 from None within 500ms until Output, screen false",
        "wait for Pattern(\"read.\") of j1 within 30s",
        "wait for Port(8080) of j1 within 10ms",
        "wait for Exit of j1 within 30s",
        "kill j1",
    ];
    assert_eq!(fake.asked(), expected);
}

#[tokio::test]
async fn what_cannot_be_done_is_a_result_that_says_why() {
    let (fake, mut client) = both().await;
    for (tool, arguments, says) in [
        (
            "shell_view",
            json!({"job": "j9"}),
            "there is no job `j9`; there are `j1`",
        ),
        ("shell_view", json!({"job": "../x"}), "cannot name a job"),
        (
            "shell_view",
            json!({"job": "j1", "filter": "("}),
            "`filter` cannot be used",
        ),
        (
            "shell_wait",
            json!({"job": "j1", "pattern": "x", "port": 1}),
            "not both",
        ),
        (
            "shell_write",
            json!({"job": "j1", "text": "rm -rf /"}),
            "nobody answered",
        ),
        (
            "shell_write",
            json!({"job": "j1", "text": "too late"}),
            "job `j1` has ended (timed out, exit code 4); its output can still be viewed",
        ),
        ("shell", json!({"command": "ls", "cwd": "/tmp"}), "use `cd`"),
        ("shell", json!({"command": "a\0b"}), "NUL"),
        (
            "shell",
            json!({"command": "ls", "session": "a b"}),
            "cannot name a session",
        ),
        (
            "shell",
            json!({"command": "ls", "timeout_ms": 0}),
            "`timeout_ms` must be a whole number from 1 to 3600000, not 0",
        ),
        (
            "shell",
            json!({"command": "ls", "timeout": 3}),
            "`shell` has no `timeout`; it takes",
        ),
        (
            "shell_output",
            json!({"output_id": "x"}),
            "that is not the id of an output",
        ),
    ] {
        let result = client.call(tool, arguments.clone()).await;
        assert!(text(&result).contains(says), "{tool} {arguments}: {result}");
        assert_eq!(result["isError"], json!(true), "{tool} {arguments}");
        let given = &result["structuredContent"];
        if arguments["text"] == "rm -rf /" {
            assert_eq!(given["denial"]["layer"], json!("approval"), "{result}");
            assert!(given["denial"]["reasons"][0]["because"].is_string(), "{result}");
        } else {
            assert_eq!(given["error"], json!(text(&result)), "{tool} {arguments}");
        }
    }
    assert!(
        fake.asked().iter().all(|asked| !asked.starts_with("shell")),
        "nothing was started"
    );
}

#[tokio::test]
async fn a_refusal_is_an_error_that_carries_its_denial() {
    let (_, mut client) = both().await;
    let result = client.call("shell", json!({"command": "deny it"})).await;
    assert_eq!(result["isError"], json!(true));
    assert_eq!(result["structuredContent"]["denial"]["layer"], json!("policy"));
    assert!(
        text(&result).starts_with("denied: `deny it` was not started"),
        "{result}"
    );
}

#[tokio::test]
async fn a_sandbox_that_cannot_start_is_a_failed_result_with_its_cause_and_fix() {
    let fake = Arc::new(Fake {
        broken: true,
        ..Fake::new()
    });
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let result = client.call("shell", json!({"command": "broken"})).await;
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["status"]),
        (&json!(true), &json!("failed"))
    );
    assert_eq!(
        text(&result),
        "[failed: nothing was started]\nerror: the sandbox cannot be started here\nfix      do this"
    );
    let result = client.call("environment", json!({})).await;
    assert!(text(&result).contains("fix      do this"), "{result}");
}

#[tokio::test]
async fn the_environment_is_described_with_what_is_left_of_the_rate() {
    let (_, mut client) = both().await;
    let result = client.call("environment", json!({})).await;
    assert!(text(&result).contains("7 more commands may start now"), "{result}");
    assert_eq!(result["structuredContent"]["commands_left"], json!(7));
}

#[tokio::test]
async fn a_person_is_asked_through_the_client_if_the_library_finds_nobody() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    client.person = Box::new(|asked| {
        let message = asked["params"]["message"].as_str().expect("a text");
        assert!(message.ends_with("\n    | Which port?"), "{message}");
        Some(json!({"action": "accept", "content": {"answer": "81"}}))
    });
    let result = client.call("ask_human", json!({"prompt": "Which port?"})).await;
    assert_eq!(
        (text(&result), &result["structuredContent"]),
        ("81", &json!({"kind": "answer", "text": "81"}))
    );
    client.person = Box::new(|_| Some(json!({"action": "decline"})));
    let result = client.call("ask_human", json!({"prompt": "Which port?"})).await;
    assert_eq!(result["structuredContent"], json!({"kind": "declined"}));
    for answer in [
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {"answer": 7}}),
    ] {
        client.person = Box::new(move |_| Some(answer.clone()));
        let result = client.call("ask_human", json!({"prompt": "Which port?"})).await;
        assert_eq!(result["structuredContent"], json!({"kind": "dismissed"}), "{result}");
        assert!(!text(&result).contains("nobody"), "{result}");
    }

    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let result = client.call("ask_human", json!({"prompt": "Which port?"})).await;
    assert_eq!(result["structuredContent"], json!({"kind": "nobody"}));
}

#[tokio::test]
async fn codex_finds_its_own_tools() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "codex", json!({})).await;
    let result = client
        .call(
            "exec_command",
            json!({"cmd": "job", "workdir": "sub", "yield_time_ms": 300}),
        )
        .await;
    assert!(
        text(&result).contains("Process running with session ID 1\nOutput:\nso far\n"),
        "{result}"
    );
    let result = client
        .call("write_stdin", json!({"session_id": 1, "chars": "y\n"}))
        .await;
    assert!(text(&result).ends_with("Output:\nechoed\n"), "{result}");
    client.call("write_stdin", json!({"session_id": 1})).await;
    let expected = [
        "shell job in None at /work/sub for 300 ms, then Background, background false, terminal None, \
         id None, kept 64 KiB",
        "write \"y\\n\" [] enter false to j1 within 250ms",
        "view j1 from None within 250ms until Output, screen false",
    ];
    assert_eq!(fake.asked(), expected);
}

#[tokio::test]
async fn claude_finds_its_own_tools() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "claude", json!({})).await;
    let result = client
        .call("Bash", json!({"command": "fail", "description": "x"}))
        .await;
    assert_eq!(text(&result), "Exit code 3\noops\n");
    let result = client
        .call("Bash", json!({"command": "job", "run_in_background": true}))
        .await;
    assert!(
        text(&result).ends_with("Command running in background with ID: j1"),
        "{result}"
    );
    let result = client
        .call("BashOutput", json!({"bash_id": "j1", "filter": "first"}))
        .await;
    assert_eq!(
        text(&result),
        "<status>running</status>\n\n<stdout>\nfirst line\n</stdout>"
    );
    let result = client.call("KillShell", json!({"shell_id": "j1"})).await;
    assert_eq!(text(&result), "Successfully killed shell: j1 (serve)");
}

#[tokio::test]
async fn camel_names_its_sessions_itself() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "camel", json!({})).await;
    let result = client
        .call(
            "shell_exec",
            json!({"id": "my server", "command": "job", "block": false}),
        )
        .await;
    assert!(text(&result).starts_with("Session 'my server' started."), "{result}");
    let result = client
        .call("shell_exec", json!({"id": "my server", "command": "job"}))
        .await;
    assert!(
        text(&result).starts_with("Error: Session 'my server' already exists and is running."),
        "{result}"
    );
    let result = client.call("shell_view", json!({"id": "my server"})).await;
    assert_eq!(text(&result), "first line\nsecond line\n");
    let result = client
        .call("shell_write_to_process", json!({"id": "my server", "command": "y"}))
        .await;
    assert_eq!(text(&result), "echoed\n");
    let result = client.call("shell_view", json!({"id": "other"})).await;
    assert_eq!(
        (text(&result), &result["isError"]),
        ("Error: No session found with ID 'other'.", &json!(true))
    );
    let result = client
        .call("shell_ask_user_for_help", json!({"id": "other", "prompt": "help"}))
        .await;
    assert!(text(&result).contains("nobody is there"), "{result}");
    let result = client.call("shell_kill_process", json!({"id": "my server"})).await;
    assert_eq!(text(&result), "Process in session 'my server' has been terminated.");
    let result = client.call("shell_exec", json!({"id": "x", "command": "quiet"})).await;
    assert_eq!(text(&result), "quiet\n");
}

#[tokio::test]
async fn pydantic_finds_its_own_tool() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "pydantic", json!({})).await;
    let result = client.call("shell", json!({"command": "fail", "timeout": 1.5})).await;
    assert_eq!(text(&result), "oops\nExit code: 3");
    let expected =
        "shell fail in None at /work for 1500 ms, then Kill, background false, terminal None, id None, kept 64 KiB";
    assert_eq!(fake.asked(), [expected]);
}

#[tokio::test]
async fn a_command_of_nothing_does_nothing_and_succeeds() {
    let (fake, mut client) = both().await;
    for empty in ["", " \t\n"] {
        let result = client.call("shell", json!({"command": empty})).await;
        assert_eq!(result["isError"], json!(false), "{result}");
        let asked = fake.asked();
        assert!(asked.len() == 1 && asked[0].starts_with("shell : in Some"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_cut_output_names_its_address_where_no_tool_reads_it() {
    let fake = Arc::new(Fake::new());
    for (dialect, tool, arguments) in [
        ("codex", "exec_command", json!({"cmd": "cut"})),
        ("claude", "Bash", json!({"command": "cut"})),
        ("camel", "shell_exec", json!({"id": "x", "command": "cut"})),
        ("pydantic", "shell", json!({"command": "cut"})),
    ] {
        let mut client = Client::stateful(&fake, dialect, json!({})).await;
        let result = client.call(tool, arguments).await;
        assert!(
            text(&result).contains("shieling://output/0123456789abcdef0123"),
            "{dialect}: {result}"
        );
    }
}
