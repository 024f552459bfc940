//! Which tools a client finds, and what becomes of the others.

use std::sync::Arc;

use serde_json::{Value, json};
use shieling::environment::Ability;
use shieling_server::{Dialect, Server, Toolset, instructions};

use crate::client::{Client, text};
use crate::fake::{self, Fake};

async fn serving(fake: &Arc<Fake>, toolset: Toolset) -> Client {
    let server = Server::new(fake.workplace(), toolset, "Work well.");
    Client::of(server).welcome(json!({})).await
}

async fn listed(client: &mut Client) -> Vec<String> {
    let tools = client.request("tools/list", json!({})).await["result"]["tools"].clone();
    let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
    tools.as_array().expect("a list").iter().map(name).collect()
}

#[tokio::test]
async fn what_is_left_out_is_not_listed_not_called_and_not_spoken_of() {
    let fake = Arc::new(Fake::new());
    let toolset = Toolset::new(Dialect::default()).excluding(&["shell_view", "write_file"]);
    let mut client = serving(&fake, toolset.expect("they are known")).await;
    let names = listed(&mut client).await;
    assert_eq!(names.len(), 17);
    assert!(
        !names.iter().any(|name| name == "shell_view" || name == "write_file"),
        "{names:?}"
    );
    let params = json!({"name": "write_file", "arguments": {"path": "x", "content": ""}});
    let error = client.request("tools/call", params).await["error"].clone();
    let says = error["message"].as_str().expect("a text");
    assert!(
        says.starts_with("there is no tool `write_file`; there are shell, shell_write"),
        "{says}"
    );
    let result = client.call("shell", json!({"command": "job"})).await;
    assert!(
        !text(&result).contains("shell_view") && text(&result).contains("shell_kill"),
        "{result}"
    );
    assert!(fake.asked().iter().all(|asked| !asked.starts_with("write")));
}

#[tokio::test]
async fn an_environment_without_terminals_and_jobs_offers_no_tools_for_them() {
    let fake = Arc::new(Fake {
        abilities: [Ability::Commands, Ability::ReadFiles].into(),
        ..Fake::new()
    });
    let mut client = serving(&fake, Toolset::new(Dialect::default())).await;
    let expected = [
        "shell",
        "shell_list",
        "shell_output",
        "ask_human",
        "environment",
        "read_file",
        "ls",
        "glob",
        "grep",
        "stat",
    ];
    assert_eq!(listed(&mut client).await, expected);
}

#[tokio::test]
async fn where_no_whole_outputs_are_kept_no_tool_offers_to_read_them() {
    let fake = Arc::new(Fake {
        spill: None,
        ..Fake::new()
    });
    let mut client = serving(&fake, Toolset::new(Dialect::default())).await;
    let names = listed(&mut client).await;
    assert!(
        names.len() == 18 && !names.iter().any(|name| name == "shell_output"),
        "{names:?}"
    );
}

#[tokio::test]
async fn images_can_be_limited_and_switched_off() {
    let fake = Arc::new(Fake::new());
    for (most, expected) in [
        (None, "images None"),
        (Some(shieling::units::ByteCount::kib(1)), "images Some(ByteCount(1024))"),
    ] {
        let mut client = serving(&fake, Toolset::new(Dialect::default()).with_images(most)).await;
        client.call("read_file", json!({"path": "x"})).await;
        let asked = fake.asked();
        assert!(asked[0].ends_with(expected), "{asked:?}");
    }
}

#[test]
fn instructions_name_the_tools_for_files_that_are_there() {
    let told = |toolset: &Toolset, abilities: &[Ability]| {
        instructions(fake::basis(), toolset, &abilities.iter().copied().collect())
    };
    let claude = Toolset::new(Dialect::named("claude").expect("there is one"));
    let text = told(&claude, &Ability::ALL);
    assert!(text.contains("looked at with `Read`, `Glob`, `Grep`"), "{text}");
    assert!(text.contains("changed with `Edit`, `Write`, whole"), "{text}");
    let text = told(&claude, &[Ability::ReadFiles]);
    assert!(text.contains("`Read`") && !text.contains("`Edit`"), "{text}");
    let text = told(&claude, &[Ability::Commands]);
    assert!(!text.contains("`Read`"), "{text}");
    let without = claude.excluding(&["Read", "Glob", "Grep"]).expect("they are known");
    let text = told(&without, &Ability::ALL);
    assert!(
        text.contains("Files are changed with `Edit`, `Write`") && !text.contains("`Read`"),
        "{text}"
    );
}
