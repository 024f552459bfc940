//! The protocol itself: beginnings, errors, progress, cancelling, and the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;

use crate::client::{Client, text};
use crate::fake::Fake;

#[tokio::test]
async fn a_client_learns_who_serves_it_and_how_to_work() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::silent(&fake, "default");
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let welcome = client.request("initialize", hello).await;
    let welcome = &welcome["result"];
    assert_eq!(
        (&welcome["protocolVersion"], &welcome["serverInfo"]["name"]),
        (&json!("2025-11-25"), &json!("shieling"))
    );
    assert_eq!(welcome["instructions"], "Work well.");
    let mut client = Client::stateless(&fake, "default", &json!({}));
    let found = client.request("server/discover", json!({})).await;
    let versions = found["result"]["supportedVersions"].as_array().expect("a list");
    assert!(
        versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2024-11-05")),
        "{found}"
    );
    let tools = client.request("tools/list", json!({})).await;
    assert_eq!(tools["result"]["tools"][0]["name"], "shell");
}

#[tokio::test]
async fn what_is_no_request_is_answered_or_passed_over_and_the_next_one_works() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    for line in [
        "",
        "{",
        "nonsense",
        "\u{feff}",
        "[]",
        "[1,2",
        "{\"jsonrpc\":\"2.0\"}",
        "null",
        "\"\\ud800\"",
    ] {
        client.line(line).await;
    }
    let error = client.request("no/such/method", json!({})).await;
    assert_eq!(error["error"]["code"], json!(-32601), "{error}");
    assert_eq!(error["error"]["message"], "there is no method `no/such/method`");
    let error = client.request("tools/call", json!({"arguments": {}})).await;
    assert_eq!(error["error"]["code"], json!(-32602), "{error}");
    let says = error["error"]["message"].as_str().expect("a text");
    assert!(says.starts_with("`tools/call` takes `name`"), "{error}");
    let error = client
        .request("tools/call", json!({"name": "rm", "arguments": {}}))
        .await;
    let says = error["error"]["message"].as_str().expect("a text");
    assert!(
        says.starts_with("there is no tool `rm`; there are shell, shell_view"),
        "{error}"
    );
    assert_eq!(text(&client.call("shell", json!({"command": "ls"})).await), "ls\n");
}

#[tokio::test]
async fn a_line_that_is_no_json_is_answered_with_a_parse_error_and_no_id() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    for line in ["{", "nonsense", "[1,2", "\"\\ud800\""] {
        client.line(line).await;
        let answer = client.next().await;
        assert_eq!(answer["error"]["code"], json!(-32700), "{line}: {answer}");
        // The protocol leaves out an id that nobody could read.
        assert_eq!(answer.get("id"), None, "{line}: {answer}");
    }
    assert_eq!(text(&client.call("shell", json!({"command": "ls"})).await), "ls\n");
}

#[tokio::test]
async fn huge_arguments_are_bounded() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let result = client.call("shell", json!({"command": "x".repeat(2_000_000)})).await;
    assert!(
        text(&result).contains("`command` must be a text of at most 262144 characters"),
        "{}",
        result["isError"]
    );
    // What is too long is not kept, and answered by its id.
    let long = "x".repeat(20_000_000);
    client
        .line(&format!("{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"{long}\"}}"))
        .await;
    let error = client.end(77).await;
    let says = error["error"]["message"].as_str().expect("a text");
    assert!(says.contains("longer than 16777216 bytes"), "{says}");
    assert_eq!(text(&client.call("shell", json!({"command": "ls"})).await), "ls\n");
    assert_eq!(fake.began.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn two_calls_at_once_do_not_wait_for_each_other() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let hanging = client
        .begin("tools/call", json!({"name": "shell", "arguments": {"command": "hang"}}))
        .await;
    assert_eq!(text(&client.call("shell", json!({"command": "ls"})).await), "ls\n");
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": hanging}}))
        .await;
    // The next call finds that the first is gone, and nothing more is heard of it.
    assert_eq!(text(&client.call("shell", json!({"command": "ls"})).await), "ls\n");
    for _ in 0..100 {
        if fake.dropped.load(Ordering::SeqCst) == 1 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(fake.dropped.load(Ordering::SeqCst), 1);
    assert!(client.heard.is_empty());
}

#[tokio::test]
async fn too_many_calls_at_once_are_refused() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    for _ in 0..256 {
        client
            .begin("tools/call", json!({"name": "shell", "arguments": {"command": "hang"}}))
            .await;
    }
    let result = client.call("shell", json!({"command": "ls"})).await;
    assert!(text(&result).contains("256 calls are under way"), "{result}");
}

#[tokio::test]
async fn a_client_that_wants_to_know_hears_each_second_how_far_it_is() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let params = |command: &str| {
        json!({
            "name": "shell", "arguments": {"command": command}, "_meta": {"progressToken": "mine"},
        })
    };
    let id = client.begin("tools/call", params("slow")).await;
    let heard = [client.next().await, client.next().await];
    fake.goes_on.notify_one();
    let result = client.end(id).await;
    assert_eq!(text(&result["result"]), "slowly\n");
    let told = heard.each_ref().map(|heard| &heard["params"]);
    assert_eq!(
        (&told[0]["progressToken"], &told[0]["message"]),
        (&json!("mine"), &json!("1 s"))
    );
    assert!(told[1]["progress"].as_f64() > told[0]["progress"].as_f64());

    client.heard.clear();
    client.begin("tools/call", params("hang")).await;
    let heard = client.next().await;
    assert_eq!(heard["params"]["message"], "1 s: step \\x1b[1m4");
}

#[tokio::test]
async fn the_end_of_the_client_is_the_end_of_all() {
    let fake = Arc::new(Fake::new());
    let client = Client::stateful(&fake, "default", json!({})).await;
    client.leave().await.expect("it ends well");
    assert_eq!(fake.closed.load(Ordering::SeqCst), 1);

    let client = Client::silent(&fake, "default");
    client
        .leave()
        .await
        .expect("one that never began has had what it wanted");
    assert_eq!(fake.closed.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_of_a_command_ends_it() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    client
        .begin("tools/call", json!({"name": "shell", "arguments": {"command": "hang"}}))
        .await;
    client.request("ping", json!({})).await;
    client.leave().await.expect("it ends well");
    tokio::task::yield_now().await;
    let counts = (fake.dropped.load(Ordering::SeqCst), fake.closed.load(Ordering::SeqCst));
    assert_eq!(counts, (1, 1));
}
