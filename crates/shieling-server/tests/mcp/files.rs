//! The tools for files: what each asks of the library under each of its names, and what a model reads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::client::{Client, text, with_forms};
use crate::fake::Fake;
use crate::fake::files::IMAGE;

async fn both(dialect: &str) -> (Arc<Fake>, Client) {
    let fake = Arc::new(Fake::new());
    let client = Client::stateful(&fake, dialect, json!({})).await;
    (fake, client)
}

/// What was called, what the library was asked, and what the model reads.
async fn transcript(dialect: &str, calls: Vec<(&str, Value)>) -> String {
    let (fake, mut client) = both(dialect).await;
    let mut transcript = String::new();
    for (tool, arguments) in calls {
        let result = client.call(tool, arguments.clone()).await;
        let asked = fake.asked().join("\n   ");
        let error = if result["isError"] == json!(true) {
            " (an error)"
        } else {
            ""
        };
        transcript.push_str(&format!(
            "── {tool} {arguments}\n   {asked}\n   {}{error}\n",
            text(&result).replace('\n', "\n   ")
        ));
    }
    transcript
}

#[tokio::test]
async fn each_tool_for_files_reads_so() {
    let patch = "*** Begin Patch\n*** Delete File: gone.rs\n*** End Patch\n";
    let calls = vec![
        ("read_file", json!({"path": "a.txt"})),
        ("read_file", json!({"path": "/work/long", "offset": 10, "limit": 2})),
        ("read_file", json!({"path": "empty"})),
        ("read_file", json!({"path": "binary"})),
        ("write_file", json!({"path": "new", "content": "hi\n"})),
        (
            "write_file",
            json!({"path": "old", "content": "aGkK", "encoding": "base64", "hash": "h0", "create_only": true}),
        ),
        ("edit_file", json!({"path": "x", "old": "a", "new": "b"})),
        (
            "edit_file",
            json!({"path": "x", "old": "a", "new": "b", "replace_all": true, "hash": "h0"}),
        ),
        ("apply_patch", json!({"patch": patch})),
        ("apply_patch", json!({"patch": "--- a\n+++ b\n", "reverse": true})),
        ("ls", json!({})),
        ("ls", json!({"path": "none"})),
        ("ls", json!({"path": "src", "limit": 3, "after": "a"})),
        ("ls", json!({"path": "src", "after": "zzz"})),
        ("glob", json!({"pattern": "*.rs"})),
        (
            "glob",
            json!({"pattern": "*.rs", "path": "many", "hidden": true, "ignored": true, "limit": 2, "after": "a"}),
        ),
        ("glob", json!({"pattern": "*.rs", "path": "none"})),
        ("grep", json!({"pattern": "fn"})),
        (
            "grep",
            json!({
                "pattern": "a.b", "path": "many", "type": "rust", "mode": "files", "context": 2, "after": 5,
                "ignore_case": true, "literal": true, "multiline": true, "hidden": true, "ignored": true, "limit": 9,
                "cursor": "c0",
            }),
        ),
        ("grep", json!({"pattern": "fn", "mode": "count", "glob": "!*.md"})),
        ("grep", json!({"pattern": "fn", "path": "none", "line_numbers": false})),
        ("grep", json!({"pattern": "fn", "line_numbers": false})),
        ("stat", json!({"path": "x"})),
        ("stat", json!({"path": "link"})),
        ("delete_file", json!({"path": "x", "recursive": true})),
        ("move_file", json!({"from": "x", "to": "sub/y", "replace": true})),
    ];
    insta::assert_snapshot!("files-default", transcript("default", calls).await);
}

#[tokio::test]
async fn claude_finds_its_own_tools_for_files() {
    let calls = vec![
        ("Read", json!({"file_path": "/work/a.txt"})),
        ("Read", json!({"file_path": "long", "offset": 11, "limit": 2})),
        ("Read", json!({"file_path": "a.txt", "offset": 0})),
        ("Read", json!({"file_path": "short", "offset": 10})),
        ("Write", json!({"file_path": "new", "content": "hi\n"})),
        ("Write", json!({"file_path": "old", "content": "hi\n"})),
        ("Edit", json!({"file_path": "x", "old_string": "a", "new_string": "b"})),
        (
            "Edit",
            json!({"file_path": "x", "old_string": "a", "new_string": "b", "replace_all": true}),
        ),
        (
            "Edit",
            json!({"file_path": "twice", "old_string": "a", "new_string": "b"}),
        ),
        (
            "Edit",
            json!({"file_path": "empty-old", "old_string": "", "new_string": "b"}),
        ),
        (
            "Edit",
            json!({"file_path": "stale", "old_string": "a", "new_string": "b"}),
        ),
        ("Glob", json!({"pattern": "**/*.rs"})),
        ("Glob", json!({"pattern": "**/*.rs", "path": "many"})),
        ("Grep", json!({"pattern": "fn"})),
        ("Grep", json!({"pattern": "fn", "path": "none"})),
        (
            "Grep",
            json!({
                "pattern": "fn", "output_mode": "content", "-A": 1, "-B": 2, "-i": true, "type": "py", "head_limit": 5,
                "multiline": true,
            }),
        ),
        (
            "Grep",
            json!({"pattern": "fn", "output_mode": "content", "-C": 3, "-n": false, "glob": "*.rs"}),
        ),
        ("Grep", json!({"pattern": "fn", "output_mode": "count"})),
    ];
    insta::assert_snapshot!("files-claude", transcript("claude", calls).await);
}

#[tokio::test]
async fn the_other_dialects_find_theirs() {
    let codex = vec![
        ("apply_patch", json!({"input": "*** Begin Patch\n*** End Patch"})),
        ("read_file", json!({"file_path": "long", "offset": 3, "limit": 2})),
        ("list_dir", json!({"dir_path": "."})),
        ("list_dir", json!({"dir_path": ".", "limit": 2})),
        ("grep_files", json!({"pattern": "fn", "include": "*.rs", "path": "src"})),
    ];
    insta::assert_snapshot!("files-codex", transcript("codex", codex).await);
    let pydantic = vec![
        ("read_file", json!({"path": "a.txt"})),
        ("read_file", json!({"path": "binary"})),
        ("read_file", json!({"path": "missing"})),
        ("read_file", json!({"path": "directory"})),
        ("read_file", json!({"path": "short", "offset": 9})),
        ("write_file", json!({"path": "old", "content": "x"})),
        (
            "edit_file",
            json!({"path": "./x", "old": "a", "new": "b", "replace_all": true}),
        ),
        ("edit_file", json!({"path": "x", "old": "a", "new": "b"})),
        ("edit_file", json!({"path": "unlike", "old": "a", "new": "b"})),
        ("edit_file", json!({"path": "twice", "old": "a", "new": "b"})),
        ("ls", json!({})),
        ("ls", json!({"path": "none"})),
        ("glob", json!({"pattern": "*.rs", "path": "none"})),
        ("grep", json!({"pattern": "fn", "output_mode": "files_with_matches"})),
        ("grep", json!({"pattern": "fn", "path": "none"})),
    ];
    insta::assert_snapshot!("files-pydantic", transcript("pydantic", pydantic).await);
    let camel = vec![
        (
            "shell_write_content_to_file",
            json!({"content": "x", "file_path": "new"}),
        ),
        (
            "shell_write_content_to_file",
            json!({"content": "x", "file_path": "outside"}),
        ),
    ];
    insta::assert_snapshot!("files-camel", transcript("camel", camel).await);
}

#[tokio::test]
async fn what_cannot_be_done_says_what_why_and_what_now() {
    let edit = |path: &str| ("edit_file", json!({"path": path, "old": "a", "new": "b"}));
    let calls = vec![
        ("read_file", json!({"path": "missing"})),
        ("read_file", json!({"path": "outside"})),
        ("write_file", json!({"path": "system", "content": "x"})),
        ("read_file", json!({"path": "directory"})),
        ("read_file", json!({"path": "short", "offset": 9})),
        ("delete_file", json!({"path": "directory"})),
        ("write_file", json!({"path": "full", "content": ""})),
        ("write_file", json!({"path": "hidden", "content": ""})),
        ("write_file", json!({"path": "soon", "content": ""})),
        edit("unlike"),
        edit("twice"),
        edit("stale"),
        edit("fault"),
    ];
    insta::assert_snapshot!("files-errors", transcript("default", calls).await);
}

#[tokio::test]
async fn an_error_is_facts_for_a_program() {
    let (_, mut client) = both("default").await;
    for (path, facts) in [
        ("missing", json!({"code": "not_found", "correctable": true})),
        ("full", json!({"code": "full", "correctable": false})),
        ("fault", json!({"code": "fault", "correctable": false})),
        ("twice", json!({"code": "ambiguous", "count": 2, "lines": [3, 9]})),
        ("stale", json!({"code": "stale", "hash": "new"})),
        ("unlike", json!({"code": "no_match"})),
        ("hidden", json!({"code": "denied", "status": "denied"})),
    ] {
        let result = client
            .call("edit_file", json!({"path": path, "old": "a", "new": "b"}))
            .await;
        assert_eq!(result["isError"], json!(true), "{result}");
        let given = &result["structuredContent"];
        assert!(given["error"].is_string(), "{path}: {given}");
        for (name, value) in facts.as_object().expect("an object") {
            assert_eq!(&given[name], value, "{path}: {given}");
        }
    }
    let result = client
        .call("edit_file", json!({"path": "unlike", "old": "a", "new": "b"}))
        .await;
    assert_eq!(result["structuredContent"]["nearest"][0]["line"], json!(12));
    let result = client
        .call("edit_file", json!({"path": "hidden", "old": "a", "new": "b"}))
        .await;
    assert_eq!(result["structuredContent"]["denial"]["layer"], json!("policy"));
}

#[tokio::test]
async fn an_image_is_content_of_its_own_and_its_bytes_stand_nowhere_else() {
    let (fake, mut client) = both("default").await;
    let result = client.call("read_file", json!({"path": "image"})).await;
    assert_eq!(result["content"][1]["type"], json!("image"), "{result}");
    assert_eq!(result["content"][1]["mimeType"], json!("image/png"));
    let data = result["content"][1]["data"].as_str().expect("a text");
    assert_eq!(data, "iVBORw0KGgoA/w==");
    assert_eq!(IMAGE.len(), 10);
    assert!(text(&result).starts_with("[image image: image/png"), "{result}");
    let given = &result["structuredContent"];
    assert_eq!((&given["kind"], given.get("bytes")), (&json!("image"), None));
    assert!(fake.asked()[0].ends_with("images Some(ByteCount(10485760))"));
}

#[tokio::test]
async fn nasty_arguments_get_an_answer_that_helps_and_nothing_is_done() {
    let (fake, mut client) = both("default").await;
    let long = "x".repeat(9_000_000);
    for (tool, arguments, says) in [
        (
            "read_file",
            json!({"path": "x", "offset": -1}),
            "`offset` must be a whole number from 0 to 1000000000000, not -1",
        ),
        (
            "read_file",
            json!({"path": "x", "offset": 1e18}),
            "`offset` must be a whole number from 0 to",
        ),
        (
            "read_file",
            json!({"path": "x", "offset": 1.5}),
            "`offset` must be a whole number",
        ),
        (
            "read_file",
            json!({"path": "x", "offset": "3"}),
            "`offset` must be a whole number",
        ),
        (
            "read_file",
            json!({"path": "x", "limit": 0}),
            "`limit` must be a whole number from 1 to 1000000, not 0",
        ),
        (
            "read_file",
            json!({"path": "x", "limit": -5}),
            "`limit` must be a whole number from 1 to",
        ),
        (
            "read_file",
            json!({"path": ""}),
            "`path` must be a text of 1 to 4096 characters, not \"\"",
        ),
        ("read_file", json!({"path": ["x"]}), "`path` must be a text"),
        ("read_file", json!({"path": null}), "`path` must be a text"),
        ("read_file", json!({}), "`path` is missing"),
        (
            "read_file",
            json!({"file_path": "x"}),
            "`read_file` has no `file_path`; it takes `limit`, `offset`, `path`",
        ),
        (
            "write_file",
            json!({"path": "x", "content": long}),
            "`content` must be a text of at most 8388608 characters",
        ),
        (
            "write_file",
            json!({"path": "x", "content": "a!b", "encoding": "base64"}),
            "`content` is no base64",
        ),
        (
            "write_file",
            json!({"path": "x", "content": "", "encoding": "utf-8"}),
            "`encoding` must be \"text\" or \"base64\"",
        ),
        ("write_file", json!({"path": "x"}), "`content` is missing"),
        (
            "write_file",
            json!({"path": "x", "content": "", "hash": ""}),
            "`hash` must be a text of 1 to 200",
        ),
        (
            "edit_file",
            json!({"path": "x", "old": 1, "new": "b"}),
            "`old` must be a text",
        ),
        (
            "edit_file",
            json!({"path": "x", "old": "a", "new": "b", "replace_all": "yes"}),
            "`replace_all` must be true or false",
        ),
        ("apply_patch", json!({"patch": ""}), "`patch` must be a text of 1 to"),
        (
            "ls",
            json!({"limit": 0}),
            "`limit` must be a whole number from 1 to 10000, not 0",
        ),
        ("glob", json!({"pattern": ""}), "`pattern` must be a text of 1 to"),
        (
            "glob",
            json!({"pattern": "*", "limit": 1e9}),
            "`limit` must be a whole number from 1 to 10000",
        ),
        (
            "grep",
            json!({"pattern": "x", "type": "klingon"}),
            "`type` must be \"c\" or \"cpp\"",
        ),
        (
            "grep",
            json!({"pattern": "x", "type": "py", "glob": "*.py"}),
            "give `glob` or `type`, not both",
        ),
        (
            "grep",
            json!({"pattern": "x", "mode": "lines"}),
            "`mode` must be \"content\" or \"files\" or \"count\"",
        ),
        (
            "grep",
            json!({"pattern": "x", "context": 101}),
            "`context` must be a whole number from 0 to 100",
        ),
        ("move_file", json!({"from": "x"}), "`to` is missing"),
        (
            "write_file",
            json!({"path": "~/.bashrc", "content": ""}),
            "`~` stands for no directory here: give a path from the workspace, or a whole one; what is really named \
             so is `./~/.bashrc`; nothing was done",
        ),
        ("ls", json!({"path": "~"}), "`~` stands for no directory here"),
        (
            "move_file",
            json!({"from": "x", "to": "~/y"}),
            "`~` stands for no directory here",
        ),
        (
            "read_file",
            json!({"path": "file:///work/x"}),
            "`file:///work/x` is a URL: give a path; nothing was done",
        ),
        (
            "write_file",
            json!({"path": "https://example.com/\u{1b}", "content": ""}),
            "`https://example.com/\\x1b` is a URL: give a path",
        ),
    ] {
        let result = client.call(tool, arguments).await;
        assert!(text(&result).contains(says), "{tool}: {}", text(&result));
        assert_eq!(result["isError"], json!(true), "{tool}");
        assert!(text(&result).len() < 1_000, "{tool}");
    }
    assert!(fake.asked().is_empty(), "nothing was asked of the library");
}

#[tokio::test]
async fn what_only_looks_nasty_is_handed_on_as_it_is() {
    let (fake, mut client) = both("default").await;
    for path in [
        "a\0b",
        "a\nb",
        "\u{202e}x",
        "./~/x",
        "~x",
        "x:/y",
        "..",
        "a//b/./c",
        " ",
    ] {
        client.call("stat", json!({"path": path})).await;
        assert_eq!(fake.asked(), [format!("stat {path:?}")]);
    }
    let content = "y".repeat(5_000_000);
    let result = client
        .call("write_file", json!({"path": "big", "content": content}))
        .await;
    assert_eq!(
        result["structuredContent"]["size"],
        json!(5_000_000),
        "{}",
        text(&result)
    );
    // A name that would move the cursor, or more, is shown with its escapes.
    let result = client.call("read_file", json!({"path": "\u{1b}[2Kimage"})).await;
    assert!(!text(&result).contains('\u{1b}'), "{result}");
    let result = client
        .call("read_file", json!({"path": "x", "offset": 3.0, "limit": 1e3}))
        .await;
    assert_eq!(result["isError"], json!(false), "{result}");
}

#[tokio::test]
async fn a_person_is_asked_about_a_write_through_the_client() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateful(&fake, "default", with_forms()).await;
    client.person = Box::new(|_| Some(json!({"action": "accept", "content": {"decision": "yes"}})));
    let result = client.call("write_file", json!({"path": "ask", "content": "x"})).await;
    assert_eq!(result["isError"], json!(false), "{result}");
    assert_eq!(client.heard.len(), 1);
    let question = client.heard[0]["params"]["message"].as_str().expect("a text");
    let begins = "May this be done with files?\n\n    write_file ask\n\n    | -old\n    | +new \\x1b[2K\n    | +more\n";
    assert!(question.starts_with(begins), "{question}");
    assert!(!question.contains("not shown"), "a yes is to all of it");
    client.person =
        Box::new(|_| Some(json!({"action": "accept", "content": {"decision": "no", "words": "not there"}})));
    let result = client.call("write_file", json!({"path": "ask", "content": "x"})).await;
    let given = &result["structuredContent"];
    assert_eq!((&result["isError"], &given["code"]), (&json!(true), &json!("denied")));
    assert!(
        text(&result).starts_with("denied: `write ask` was refused by the person asked"),
        "{result}"
    );
    assert!(text(&result).contains("not there"), "{result}");
    assert_eq!(fake.began.load(Ordering::SeqCst), 0, "no command");
}

#[tokio::test]
async fn without_a_person_a_write_says_what_would_help() {
    let (_, mut client) = both("default").await;
    let result = client.call("write_file", json!({"path": "ask", "content": "x"})).await;
    let given = &result["structuredContent"];
    assert_eq!(
        (&given["status"], &given["code"]),
        (&json!("needs_approval"), &json!("needs_approval"))
    );
    let instead = given["denial"]["reasons"][0]["instead"]
        .as_str()
        .expect("it says what would help");
    assert!(instead.contains("MCP elicitation"), "{instead}");
    assert!(
        text(&result).starts_with("not approved: `write ask` was not done, since nobody said yes"),
        "{result}"
    );
    assert!(text(&result).contains(instead), "{result}");
}

#[tokio::test]
async fn a_write_is_asked_about_between_two_calls_as_well() {
    let fake = Arc::new(Fake::new());
    let mut client = Client::stateless(&fake, "default", &with_forms());
    let arguments = json!({"path": "ask", "content": "x"});
    let asked = client.call("write_file", arguments.clone()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let params = json!({
        "name": "write_file", "arguments": arguments, "requestState": asked["requestState"],
        "inputResponses": {"person": {"action": "accept", "content": {"decision": "yes"}}},
    });
    let result = client.request("tools/call", params).await["result"].clone();
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["created"]),
        (&json!(false), &json!(true)),
        "{result}"
    );
}

#[tokio::test]
async fn the_same_failing_call_is_told_from_the_third_time_on() {
    let (_, mut client) = both("default").await;
    let call = json!({"path": "unlike", "old": "a", "new": "b"});
    for time in 1..=4 {
        let result = client.call("edit_file", call.clone()).await;
        let told = text(&result).contains(&format!("failed {time} times in a row"));
        assert_eq!(told, time >= 3, "{time}: {result}");
        // Other tools in between change nothing.
        client.call("read_file", json!({"path": "x"})).await;
    }
    let result = client
        .call("edit_file", json!({"path": "unlike", "old": "b", "new": "c"}))
        .await;
    assert!(!text(&result).contains("in a row"), "{result}");
    // What is wrong in the arguments counts as well.
    for _ in 0..2 {
        client.call("read_file", json!({"path": 1})).await;
    }
    let result = client.call("read_file", json!({"path": 1})).await;
    assert_eq!(result["structuredContent"]["failed_in_a_row"], json!(3), "{result}");
}
