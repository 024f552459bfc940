//! The very same call, again and again: when it is tried, and when not any more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use shieling_server::{Dialect, Server, Toolset};

use crate::client::{Client, text, with_forms};
use crate::fake::Fake;

/// How each dialect says a command.
fn spoken(dialect: &str, command: &str) -> (&'static str, Value) {
    match dialect {
        "codex" => ("exec_command", json!({"cmd": command})),
        "claude" => ("Bash", json!({"command": command})),
        "camel" => ("shell_exec", json!({"id": "a", "command": command})),
        _ => ("shell", json!({"command": command})),
    }
}

/// Whether a call was refused since it has failed too often.
fn is_repeated(result: &Value) -> bool {
    let facts = &result["structuredContent"];
    let says = text(result).starts_with("not done: the same call has failed too often, and was not tried again\n");
    assert_eq!(says, facts["code"] == "repeated", "{result}");
    if says {
        assert_eq!(
            (
                &facts["status"],
                &facts["denial"]["layer"],
                &facts["denial"]["reasons"][0]["rule"]
            ),
            (&json!("denied"), &json!("rate"), &json!("repeats")),
        );
        assert_eq!(result["isError"], json!(true));
    }
    says
}

async fn repeated(client: &mut Client, (tool, arguments): (&str, Value)) -> bool {
    is_repeated(&client.call(tool, arguments).await)
}

#[tokio::test]
async fn in_each_dialect_a_call_that_was_refused_five_times_is_not_tried_until_something_changes() {
    for dialect in Dialect::names() {
        let fake = Arc::new(Fake::new());
        let mut client = Client::stateful(&fake, dialect, json!({})).await;
        for time in 1..=5 {
            assert!(
                !repeated(&mut client, spoken(dialect, "deny")).await,
                "{dialect} {time}"
            );
        }
        fake.asked();
        let (tool, arguments) = spoken(dialect, "deny");
        let result = client.call(tool, arguments).await;
        assert!(
            is_repeated(&result) && fake.asked().is_empty(),
            "{dialect}: it was tried"
        );
        // What it was refused for is still there to be read.
        assert!(
            text(&result).contains("at last it said:\ndenied: `deny`"),
            "{dialect}: {result}"
        );
        // Other words are another call, whether or not they are refused as well.
        assert!(!repeated(&mut client, spoken(dialect, "deny that")).await, "{dialect}");
        assert!(repeated(&mut client, spoken(dialect, "deny")).await, "{dialect}");
        assert!(!repeated(&mut client, spoken(dialect, "make changes")).await);
        assert!(
            !repeated(&mut client, spoken(dialect, "deny")).await,
            "{dialect}: something has changed"
        );
    }
}

#[tokio::test]
async fn an_edit_that_does_not_fit_is_tried_again_after_a_write_and_not_after_the_same_read() {
    let fake = Arc::new(Fake::new());
    let edits = [
        (
            "default",
            "edit_file",
            json!({"path": "unlike", "old": "a", "new": "b"}),
        ),
        (
            "claude",
            "Edit",
            json!({"file_path": "unlike", "old_string": "a", "new_string": "b"}),
        ),
        (
            "pydantic",
            "edit_file",
            json!({"path": "unlike", "old": "a", "new": "b"}),
        ),
        (
            "camel",
            "shell_write_content_to_file",
            json!({"file_path": "directory", "content": "b"}),
        ),
    ];
    for (dialect, tool, arguments) in edits {
        let mut client = Client::stateful(&fake, dialect, json!({})).await;
        let looks: &[(&str, Value)] = match dialect {
            "claude" => &[("Read", json!({"file_path": "x"})), ("Glob", json!({"pattern": "x"}))],
            "camel" => &[],
            _ => &[("read_file", json!({"path": "x"})), ("ls", json!({}))],
        };
        let change = match dialect {
            "claude" => ("Write", json!({"file_path": "x", "content": ""})),
            "camel" => (tool, json!({"file_path": "x", "content": ""})),
            _ => ("write_file", json!({"path": "x", "content": ""})),
        };
        for look in looks {
            assert!(!repeated(&mut client, look.clone()).await, "{dialect}");
        }
        for _ in 0..5 {
            assert!(!repeated(&mut client, (tool, arguments.clone())).await, "{dialect}");
            for look in looks {
                assert!(!repeated(&mut client, look.clone()).await, "{dialect}");
            }
        }
        assert!(repeated(&mut client, (tool, arguments.clone())).await, "{dialect}");
        assert!(!repeated(&mut client, change).await, "{dialect}");
        assert!(!repeated(&mut client, (tool, arguments)).await, "{dialect}");
    }
}

#[tokio::test]
async fn nobody_who_polls_waits_or_tests_again_is_ever_refused() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    for (tool, arguments) in [
        ("read_file", json!({"path": "missing"})),
        ("stat", json!({"path": "missing"})),
        ("ls", json!({"path": "missing"})),
        ("grep", json!({"pattern": "x", "path": "missing"})),
        ("shell_view", json!({"job": "j1"})),
        ("shell_view", json!({"job": "j7"})),
        ("shell_wait", json!({"job": "j7"})),
        ("shell_wait", json!({"job": "j1", "timeout_ms": 1})),
        ("shell_write", json!({"job": "j1", "text": ""})),
        ("shell", json!({"command": "fail"})),
        ("shell", json!({"command": "broken"})),
        ("write_file", json!({"path": "fault", "content": "x"})),
        ("write_file", json!({"path": "soon", "content": "x"})),
    ] {
        for time in 1..=20 {
            assert!(
                !repeated(&mut client, (tool, arguments.clone())).await,
                "{tool} {arguments}: {time}"
            );
        }
    }
}

#[tokio::test]
async fn arguments_that_are_wrong_in_themselves_are_not_looked_at_for_ever() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let wrong = ("read_file", json!({"path": 1}));
    for time in 1..=8 {
        assert_eq!(repeated(&mut client, wrong.clone()).await, time > 5, "{time}");
    }
    client.call("shell", json!({"command": "make"})).await;
    let result = client.call(wrong.0, wrong.1).await;
    assert!(is_repeated(&result), "{result}");
    assert!(
        text(&result).contains("`path` must be a text"),
        "it is told once more what is wrong: {result}"
    );
    assert_eq!(result["structuredContent"]["denial"]["retry_after_ms"], json!(null));
}

#[tokio::test]
async fn a_person_who_has_said_no_five_times_is_left_alone_and_a_yes_counts_at_once() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    client.person = Box::new(|_| Some(json!({"action": "decline"})));
    let ask = || ("shell", json!({"command": "ask"}));
    for _ in 0..8 {
        repeated(&mut client, ask()).await;
    }
    assert_eq!((client.heard.len(), fake.began.load(Ordering::SeqCst)), (5, 0));

    // Without a session, the answer comes with the same call once more.
    let mut client = Client::stateless(&fake, "default", &with_forms());
    let arguments = json!({"command": "ask"});
    let answered = async |client: &mut Client, answer: Value| {
        let asked = client.call("shell", arguments.clone()).await;
        let state = asked["requestState"].as_str().map(str::to_owned)?;
        let params = json!({
            "name": "shell", "arguments": arguments, "requestState": state, "inputResponses": {"person": answer},
        });
        Some(client.request("tools/call", params).await["result"].clone())
    };
    for _ in 0..4 {
        let no = answered(&mut client, json!({"action": "decline"}))
            .await
            .expect("it asks");
        assert!(!is_repeated(&no));
    }
    let yes = json!({"action": "accept", "content": {"decision": "yes"}});
    let result = answered(&mut client, yes).await.expect("it asks");
    assert_eq!(
        (&result["isError"], fake.began.load(Ordering::SeqCst)),
        (&json!(false), 1),
        "{result}"
    );
    for _ in 0..5 {
        let no = answered(&mut client, json!({"action": "decline"}))
            .await
            .expect("it asks");
        assert!(!is_repeated(&no));
    }
    assert!(
        answered(&mut client, json!({"action": "decline"})).await.is_none(),
        "it asks no more"
    );
}

#[tokio::test]
async fn the_bound_can_be_another_or_none() {
    let fake = Arc::new(Fake::new());
    for (most, tried) in [(1, 1), (2, 2), (0, 9)] {
        let toolset = Toolset::new(Dialect::default()).with_repeats(most);
        let mut client = Client::of(Server::new(fake.workplace(), toolset, ""))
            .welcome(json!({}))
            .await;
        for time in 1..=9 {
            let refused = repeated(&mut client, ("shell", json!({"command": "deny"}))).await;
            assert_eq!(refused, time > tried, "{most}: {time}");
        }
    }
}
