//! Whole outputs and job logs, read in pieces.

use std::sync::Arc;

use serde_json::json;
use shieling::output::SpillTo;

use crate::client::{Client, text};
use crate::fake::Fake;

const ID: &str = "0123456789abcdef0123";

fn kept() -> (tempfile::TempDir, Arc<Fake>, String) {
    let place = tempfile::tempdir().expect("a directory can be made");
    // Each character takes three bytes, so that a piece of 64 KiB would end within one.
    let whole = "€".repeat(40_000);
    std::fs::write(place.path().join(format!("{ID}.stdout")), &whole).expect("a file can be written");
    std::fs::write(place.path().join(format!("{ID}.stderr")), "warned\n").expect("a file can be written");
    let fake = Fake {
        spill: Some(SpillTo::new(place.path())),
        ..Fake::new()
    };
    (place, Arc::new(fake), whole)
}

#[tokio::test]
async fn a_whole_output_is_read_from_piece_to_piece() {
    let (_place, fake, whole) = kept();
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let (mut read, mut next) = (String::new(), Some(format!("shieling://output/{ID}")));
    let mut pieces = 0;
    while let Some(uri) = next {
        let answer = client.request("resources/read", json!({"uri": uri})).await;
        let content = &answer["result"]["contents"][0];
        let piece = content["text"].as_str().expect("a text");
        assert!(piece.len() <= 65_536);
        read.push_str(piece);
        next = content["_meta"]["shieling/next"].as_str().map(str::to_owned);
        pieces += 1;
    }
    assert_eq!((pieces, read == whole), (2, true));
    let answer = client
        .request(
            "resources/read",
            json!({"uri": format!("shieling://output/{ID}?stream=stderr")}),
        )
        .await;
    assert_eq!(answer["result"]["contents"][0]["text"], "warned\n");
}

#[tokio::test]
async fn a_model_reads_the_same_with_a_tool() {
    let (_place, fake, _) = kept();
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let result = client
        .call("shell_output", json!({"output_id": ID, "cursor": 3, "limit": 4}))
        .await;
    assert_eq!(text(&result), "€\n[more: `shell_output` with `cursor` 6]");
    assert_eq!(result["structuredContent"]["next_cursor"], json!(6));
    let result = client
        .call("shell_output", json!({"output_id": ID, "stream": "stderr"}))
        .await;
    assert_eq!(text(&result), "warned\n[the end]");
    for wrong in ["../../etc/passwd", "0123456789abcdef0124"] {
        let result = client.call("shell_output", json!({"output_id": wrong})).await;
        assert_eq!(result["isError"], json!(true), "{result}");
    }
}

#[tokio::test]
async fn jobs_are_listed_and_their_logs_read() {
    let (_place, fake, _) = kept();
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let listed = client.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"][0]["uri"], "shieling://job/j1");
    let templates = client.request("resources/templates/list", json!({})).await;
    let templates = templates["result"]["resourceTemplates"]
        .as_array()
        .expect("a list")
        .len();
    assert_eq!(templates, 2);
    let log = client
        .request("resources/read", json!({"uri": "shieling://job/j1"}))
        .await;
    let content = &log["result"]["contents"][0];
    assert_eq!(content["text"], "first line\nsecond line\n");
    assert_eq!(content["_meta"]["shieling/next"], "shieling://job/j1?cursor=9");
}

#[tokio::test]
async fn what_is_not_there_is_an_error_that_says_so() {
    let (_place, fake, _) = kept();
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    for (uri, says) in [
        ("file:///etc/passwd", "resources are shieling://output/ID"),
        ("shieling://output/0123456789abcdef0124", "there is no output"),
        ("shieling://output/../../x", "not the id of an output"),
        ("shieling://job/j9", "there is no job `j9`"),
    ] {
        let answer = client.request("resources/read", json!({"uri": uri})).await;
        let message = answer["error"]["message"].as_str().expect("an error");
        assert!(message.contains(says), "{uri}: {message}");
    }
}

#[tokio::test]
async fn the_whole_outputs_that_were_told_of_are_listed() {
    let (_place, fake, _) = kept();
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    for _ in 0..2 {
        client.call("shell", json!({"command": "cut short"})).await;
    }
    client.call("shell", json!({"command": "ls"})).await;
    let listed = client.request("resources/list", json!({})).await;
    let listed = listed["result"]["resources"].as_array().expect("a list");
    let outputs: Vec<_> = listed
        .iter()
        .filter(|one| one["uri"] == format!("shieling://output/{ID}"))
        .collect();
    assert_eq!((outputs.len(), listed.len()), (1, 2), "{listed:?}");
    assert_eq!(outputs[0]["description"], "cut short");
}

#[tokio::test]
async fn a_log_says_first_what_is_no_longer_kept() {
    let (_place, fake, _) = kept();
    let mut client = Client::stateful(&fake, "default", json!({})).await;
    let log = client
        .request("resources/read", json!({"uri": "shieling://job/j1?cursor=1"}))
        .await;
    let log = log["result"]["contents"][0]["text"].as_str().expect("a text");
    assert!(
        log.starts_with("[5 bytes before these are no longer kept]\nfirst line\n"),
        "{log}"
    );
}
