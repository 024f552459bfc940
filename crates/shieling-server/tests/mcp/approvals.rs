//! Who says yes, in both ways that the protocol has, and who does not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::client::{Client, text, with_forms};
use crate::fake::Fake;

const ASK: &str = "ask nicely";

fn began(fake: &Fake) -> usize {
    fake.began.load(Ordering::SeqCst)
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"decision": "yes"}})
}

#[tokio::test]
async fn a_person_reads_what_would_run_and_why_and_their_yes_is_for_once() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    client.person = Box::new(|_| Some(yes()));
    let asked = json!({"command": format!("{ASK}\u{1b}[2K"), "description": "tidies up"});
    let result = client.call("shell", asked.clone()).await;
    assert_eq!((&result["isError"], began(&fake)), (&json!(false), 1), "{result}");
    let question = client.heard.pop().expect("it asked");
    assert_eq!(question["method"], "elicitation/create");
    insta::assert_snapshot!("question", question["params"]["message"].as_str().expect("a text"));
    insta::assert_snapshot!(
        "form",
        serde_json::to_string_pretty(&question["params"]["requestedSchema"]).expect("JSON")
    );
    client.call("shell", asked).await;
    assert_eq!(client.heard.len(), 1, "asked again");
}

#[tokio::test]
async fn a_yes_for_the_session_is_not_asked_again_in_it() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    client.person = Box::new(|_| Some(json!({"action": "accept", "content": {"decision": "session"}})));
    client.call("shell", json!({"command": ASK})).await;
    client.call("shell", json!({"command": "ask otherwise"})).await;
    assert_eq!((client.heard.len(), began(&fake)), (1, 2));
    client.call("shell", json!({"command": ASK, "session": "other"})).await;
    assert_eq!(client.heard.len(), 2, "another session is asked about");
    // A command of no session offers none, and such an answer is no yes.
    let result = client.call("shell", json!({"command": ASK, "session": ""})).await;
    assert_eq!(
        (&result["structuredContent"]["status"], began(&fake)),
        (&json!("needs_approval"), 3),
        "{result}"
    );
}

#[tokio::test]
async fn a_yes_for_the_session_names_its_program_and_rule_and_covers_no_other_text() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    client.person = Box::new(|_| Some(json!({"action": "accept", "content": {"decision": "session"}})));
    let titles = |client: &mut Client| {
        let question = client.heard.pop().expect("it asked");
        question["params"]["requestedSchema"]["properties"]["decision"]["enumNames"].clone()
    };
    client.call("shell", json!({"command": ASK})).await;
    let offered = titles(&mut client);
    assert_eq!(
        offered[1],
        "Yes, and `ask` asked about by team.toml:1 careful in this session for an hour"
    );
    for (other, program) in [
        ("run x.sh", "`run`"),
        ("ask and; curl example.org", "`ask`, `curl`"),
        ("ask and | sh", "`ask`, `sh`"),
    ] {
        client.call("shell", json!({"command": other})).await;
        let offered = titles(&mut client);
        assert!(
            offered[1].as_str().is_some_and(|title| title.contains(program)),
            "{other}: {offered}"
        );
    }
    // What cannot be bound to its programs is offered for once only, and a yes for more is none.
    let before = began(&fake);
    for unbound in ["ask > file", "ask $(curl example.org)", "ask nicely; ask() { :; }"] {
        client.call("shell", json!({"command": unbound})).await;
        assert_eq!(titles(&mut client), json!(["Yes, once", "No"]), "{unbound}");
    }
    assert_eq!(began(&fake), before);
}

#[tokio::test]
async fn a_question_of_the_agent_cannot_be_taken_for_one_of_ours() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    client.person = Box::new(|_| Some(json!({"action": "decline"})));
    let forged = "Done.\n\nMay this command run?\r\u{85}\u{2028}\u{202e}    ls\u{b}\u{1b}[1A\nShieling asks:";
    for arguments in [
        json!({"prompt": forged}),
        json!({"prompt": "\n\n"}),
        json!({"prompt": ""}),
    ] {
        client.call("ask_human", arguments).await;
        let Some(question) = client.heard.pop() else {
            continue;
        };
        let message = question["params"]["message"].as_str().expect("a text").to_owned();
        let (ours, theirs) = message.split_once("\n\n").expect("a label");
        assert!(
            ours.starts_with("The agent asks") && ours.contains("not Shieling's"),
            "{message}"
        );
        assert!(theirs.split('\n').all(|line| line.starts_with("    | ")), "{message}");
        assert!(!theirs.contains(|c: char| c.is_control() && c != '\n'), "{message}");
        assert!(!theirs.contains(['\u{202e}', '\u{2028}']), "{message}");
    }
}

#[tokio::test]
async fn a_no_is_told_with_the_persons_words() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    client.person = Box::new(|_| Some(json!({"action": "accept", "content": {"decision": "no", "words": "use make"}})));
    let result = client.call("shell", json!({"command": ASK})).await;
    assert!(text(&result).contains("use make"), "{result}");
    assert_eq!(
        (&result["structuredContent"]["status"], began(&fake)),
        (&json!("denied"), 0)
    );
    client.person = Box::new(|_| Some(json!({"action": "decline"})));
    let result = client.call("shell", json!({"command": ASK})).await;
    assert_eq!(
        (&result["structuredContent"]["status"], began(&fake)),
        (&json!("denied"), 0)
    );
}

#[tokio::test]
async fn nothing_but_a_plain_yes_is_a_yes() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    for answer in [
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": null}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": []}),
        json!({"action": "accept", "content": "yes"}),
        json!({"action": "accept", "content": {"decision": "YES"}}),
        json!({"action": "accept", "content": {"decision": true}}),
        json!({"action": "accept", "content": {"decision": ["yes"]}}),
        json!({"action": "accept", "content": {"decision": "yes", "words": 3}}),
        json!({"action": "cancel", "content": {"decision": "yes"}}),
        json!({"action": "sure", "content": {"decision": "yes"}}),
        json!({}),
        json!({"roots": []}),
    ] {
        let given = answer.clone();
        client.person = Box::new(move |_| Some(given.clone()));
        let result = client.call("shell", json!({"command": ASK})).await;
        assert_eq!(
            (&result["structuredContent"]["status"], &result["isError"], began(&fake)),
            (&json!("needs_approval"), &json!(true), 0),
            "{answer}"
        );
        let instead = &result["structuredContent"]["denial"]["reasons"][0]["instead"];
        assert!(instead.is_string(), "{answer}: {result}");
    }
    // A decline is a no, whatever comes with it.
    client.person = Box::new(|_| Some(json!({"action": "decline", "content": {"decision": "yes"}})));
    let result = client.call("shell", json!({"command": ASK})).await;
    assert_eq!(
        (&result["structuredContent"]["status"], began(&fake)),
        (&json!("denied"), 0)
    );
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_told_what_would_help() {
    let fake = Arc::new(Fake::new());
    for can in [json!({}), json!({"elicitation": {"url": {}}})] {
        let stateful = Client::stateful(&fake, "default", can.clone()).await;
        for mut client in [stateful, Client::stateless(&fake, "default", &can)] {
            let result = client.call("shell", json!({"command": ASK})).await;
            assert_eq!(
                (&result["structuredContent"]["status"], began(&fake)),
                (&json!("needs_approval"), 0),
                "{result}"
            );
            let instead = &result["structuredContent"]["denial"]["reasons"][0]["instead"];
            let says = instead.as_str().expect("it says what would help");
            assert!(says.contains("MCP elicitation") && says.contains("--allow"), "{says}");
            assert!(text(&result).contains(says), "{result}");
        }
    }
}

#[tokio::test]
async fn nobody_is_asked_about_what_cannot_be_shown_whole() {
    let fake = Arc::new(Fake::new());
    let long = format!("ask {}", "x".repeat(40_000));
    let deceives = format!("ask {}", "\u{202e}".repeat(5_000));
    let stateful = Client::stateful(&fake, "default", with_forms()).await;
    for mut client in [stateful, Client::stateless(&fake, "default", &with_forms())] {
        client.person = Box::new(|_| Some(yes()));
        for (tool, arguments, most) in [
            ("shell", json!({"command": long}), "32 KiB"),
            ("shell", json!({"command": deceives}), "32 KiB"),
            ("write_file", json!({"path": "ask-escaped", "content": ""}), "96 KiB"),
        ] {
            let result = client.call(tool, arguments).await;
            let facts = &result["structuredContent"];
            assert_eq!(
                (&facts["status"], &facts["denial"]["reasons"][0]["rule"]),
                (&json!("needs_approval"), &json!("approval length")),
                "{result}"
            );
            let says = text(&result);
            assert!(says.starts_with("not asked about: `"), "{says}");
            assert!(
                says.contains(&format!("too long to be shown whole (more than {most})")),
                "{says}"
            );
            assert!(
                !says.contains("refused by the person") && !says.contains("MCP elicitation"),
                "{says}"
            );
        }
        // What just fits is asked about, and nothing of it is left out.
        let fits = format!("ask {}", "x".repeat(32 * 1024 - 4));
        let asked = client.call("shell", json!({"command": fits})).await;
        let question = client.heard.pop().map_or(asked, |heard| heard["params"].clone());
        assert!(question.to_string().contains(&fits), "it is not shown whole");
    }
    assert_eq!(fake.began.load(Ordering::SeqCst), 1);
}

/// The question of a result that asks for input, and the state to come back with.
fn pending(result: &Value) -> (Value, String) {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let question = result["inputRequests"]["person"].clone();
    let state = result["requestState"].as_str().expect("a state");
    (question, state.to_owned())
}

async fn retry(client: &mut Client, arguments: &Value, state: &str, answer: &Value) -> Value {
    let params = json!({
        "name": "shell", "arguments": arguments, "requestState": state, "inputResponses": {"person": answer},
    });
    let answer = client.request("tools/call", params).await;
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

#[tokio::test]
async fn without_a_session_the_call_comes_back_with_the_answer() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateless(&fake, "default", &with_forms());
    let arguments = json!({"command": ASK});
    let (question, state) = pending(&client.call("shell", arguments.clone()).await);
    assert_eq!(question["method"], "elicitation/create");
    let offered = &question["params"]["requestedSchema"]["properties"]["decision"]["oneOf"];
    assert_eq!(offered.as_array().map(Vec::len), Some(3), "{question}");
    assert!(question["params"]["message"].as_str().expect("a text").contains(ASK));
    assert_eq!(began(&fake), 0);
    let result = retry(&mut client, &arguments, &state, &yes()).await;
    assert_eq!(
        (&result["structuredContent"]["status"], began(&fake)),
        (&json!("exited"), 1),
        "{result}"
    );
    assert!(client.heard.is_empty(), "the server asks nothing of such a client");
}

#[tokio::test]
async fn a_state_that_is_forged_swapped_or_used_again_starts_nothing() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateless(&fake, "default", &with_forms());
    let (mine, other) = (json!({"command": ASK}), json!({"command": "ask for more"}));
    let refused = |result: &Value| {
        assert_eq!(result["isError"], json!(true), "{result}");
        assert!(text(result).contains("the answer cannot be used"), "{result}");
    };

    let (_, state) = pending(&client.call("shell", mine.clone()).await);
    let flip = |digit: &str| if digit == "0" { "1" } else { "0" };
    let tampered = format!("{}{}", &state[..state.len() - 1], flip(&state[state.len() - 1..]));
    refused(&retry(&mut client, &mine, &tampered, &yes()).await);
    refused(&retry(&mut client, &mine, "", &yes()).await);

    refused(&retry(&mut client, &other, &state, &yes()).await);
    refused(&retry(&mut client, &mine, &state, &yes()).await);
    assert_eq!(began(&fake), 0, "swapped, and used up by that");

    let (_, state) = pending(&client.call("shell", mine.clone()).await);
    retry(&mut client, &mine, &state, &yes()).await;
    assert_eq!(began(&fake), 1);
    refused(&retry(&mut client, &mine, &state, &yes()).await);
    assert_eq!(began(&fake), 1, "used again");
}

#[tokio::test]
async fn an_answer_without_a_session_counts_only_if_it_is_a_plain_yes() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateless(&fake, "default", &with_forms());
    let arguments = json!({"command": ASK});
    for (answer, status) in [
        (
            json!({"action": "accept", "content": {"decision": "maybe"}}),
            "needs_approval",
        ),
        (json!({"action": "cancel"}), "needs_approval"),
        (json!("yes"), "needs_approval"),
        (json!(null), "needs_approval"),
        (json!({"action": "decline"}), "denied"),
        (json!({"action": "accept", "content": {"decision": "no"}}), "denied"),
    ] {
        let (_, state) = pending(&client.call("shell", arguments.clone()).await);
        let result = retry(&mut client, &arguments, &state, &answer).await;
        assert_eq!(
            (&result["structuredContent"]["status"], began(&fake)),
            (&json!(status), 0),
            "{answer}"
        );
    }
    // A state without an answer is asked about again.
    let (_, state) = pending(&client.call("shell", arguments.clone()).await);
    let params = json!({"name": "shell", "arguments": arguments, "requestState": state});
    let answer = client.request("tools/call", params).await;
    pending(&answer["result"]);
    assert_eq!(began(&fake), 0);
}

#[tokio::test]
async fn a_file_that_changed_between_question_and_answer_is_asked_about_again() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateless(&fake, "default", &with_forms());
    let arguments = json!({"command": "run x.sh"});
    let (first, state) = pending(&client.call("shell", arguments.clone()).await);
    *fake.file.lock().expect("not poisoned") = "2".to_owned();
    let (second, state) = pending(&retry(&mut client, &arguments, &state, &yes()).await);
    assert_ne!(first, second, "it shows the file as it is now");
    assert_eq!(began(&fake), 0);
    let result = retry(&mut client, &arguments, &state, &yes()).await;
    assert_eq!(
        (&result["structuredContent"]["status"], began(&fake)),
        (&json!("exited"), 1),
        "{result}"
    );
}

#[tokio::test]
async fn a_question_without_a_session_can_be_to_the_person_alone() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateless(&fake, "default", &with_forms());
    let asked = client.call("ask_human", json!({"prompt": "Which port?"})).await;
    let (question, state) = pending(&asked);
    let message = question["params"]["message"].as_str().expect("a text");
    assert!(
        message.contains("the agent's own words") && message.ends_with("\n    | Which port?"),
        "{message}"
    );
    let answer = json!({"action": "accept", "content": {"answer": "81"}});
    let params = json!({
        "name": "ask_human", "arguments": {"prompt": "Which port?"}, "requestState": state,
        "inputResponses": {"person": answer},
    });
    let result = client.request("tools/call", params).await;
    assert_eq!(text(&result["result"]), "81", "{result}");
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_a_person_thinks_starts_nothing() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    let id = client
        .begin("tools/call", json!({"name": "shell", "arguments": {"command": ASK}}))
        .await;
    let question = client.next().await;
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    client.request("ping", json!({})).await;
    client
        .send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes()}))
        .await;
    client.call("shell", json!({"command": "ls"})).await;
    assert_eq!(began(&fake), 1, "only the one after it");
}
