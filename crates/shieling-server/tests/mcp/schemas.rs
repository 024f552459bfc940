//! The tools as clients are told of them, in files that are reviewed: `api/mcp-DIALECT.json`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};
use shieling::outcome::Status;
use shieling_server::{Core as _, Dialect, schemas};

use crate::fake::{self, Fake};

fn committed(dialect: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("api").join(format!("mcp-{dialect}.json"))
}

#[test]
fn the_committed_schemas_are_those_that_are_served() {
    for name in Dialect::names() {
        let dialect = Dialect::named(name).expect("there is such a dialect");
        let mut served = serde_json::to_string_pretty(&schemas(dialect)).expect("JSON");
        served.push('\n');
        let path = committed(name);
        // `cargo xtask bless` sets it for all snapshots.
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            std::fs::write(&path, &served).expect("the file can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == served,
            "api/mcp-{name}.json is not what is served: look at the change with `cargo xtask bless`, then \
             `git diff api`"
        );
    }
}

/// Returns the names of all arguments of the tools, and the descriptions of all tools and arguments.
fn descriptions(dialect: Dialect) -> (BTreeSet<String>, Vec<String>) {
    let (mut names, mut texts) = (BTreeSet::new(), Vec::new());
    let all = schemas(dialect);
    for tool in all["tools"].as_array().expect("a list") {
        texts.push(tool["description"].as_str().expect("a text").to_owned());
        for (name, argument) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
            names.insert(name.clone());
            texts.extend(argument["description"].as_str().map(str::to_owned));
        }
    }
    (names, texts)
}

#[test]
fn no_dialect_names_an_argument_that_it_does_not_have() {
    let (ours, _) = descriptions(Dialect::default());
    for name in Dialect::names() {
        let (known, texts) = descriptions(Dialect::named(name).expect("there is such a dialect"));
        for text in texts {
            let quoted = text.split('`').skip(1).step_by(2);
            for word in quoted.filter(|word| ours.contains(*word)) {
                assert!(known.contains(word), "{name}: `{word}` in {text:?}");
            }
        }
    }
}

/// The schema of a tool's result.
fn gives(tool: &str) -> Value {
    let all = schemas(Dialect::default());
    let tools = all["tools"].as_array().expect("a list");
    let tool = tools
        .iter()
        .find(|one| one["name"] == tool)
        .expect("there is such a tool");
    tool["outputSchema"].clone()
}

#[test]
fn an_outcome_has_the_fields_that_its_schema_says() {
    let value = serde_json::to_value(fake::outcome(Status::Exited, "")).expect("JSON");
    let fields: Vec<&String> = value.as_object().expect("an object").keys().collect();
    let schema = gives("shell");
    let said: Vec<&String> = schema["properties"].as_object().expect("an object").keys().collect();
    assert_eq!(fields, said);
    assert_eq!(
        schema["anyOf"][0]["required"].as_array().map(Vec::len),
        Some(said.len())
    );
    assert_eq!(
        schema["properties"]["status"]["enum"].as_array().map(Vec::len),
        Some(11)
    );
    assert!(
        schema["properties"]["status"]["enum"]
            .as_array()
            .is_some_and(|all| all.contains(&value["status"]))
    );
    assert_eq!(gives("shell_wait")["properties"]["met"]["type"], json!("boolean"));
}

#[test]
fn a_listing_has_the_fields_that_its_schema_describes() {
    let value = serde_json::to_value(Fake::new().list()).expect("JSON");
    let schema = gives("shell_list");
    for of in ["sessions", "jobs"] {
        let fields = value[of][0].as_object().expect("an object");
        let said = schema["properties"][of]["description"].as_str().expect("words");
        let mut said: Vec<&str> = said
            .split(", ")
            .filter_map(|words| words.split_whitespace().next())
            .collect();
        said.sort_unstable();
        let mut served: Vec<&str> = fields.keys().map(String::as_str).collect();
        served.sort_unstable();
        assert_eq!(served, said, "{of}");
    }
}

#[test]
fn only_what_changes_nothing_is_said_to_and_only_what_can_be_repeated() {
    let all = schemas(Dialect::default());
    let hint = |tool: &str, hint: &str| {
        let tools = all["tools"].as_array().expect("a list");
        let found = tools
            .iter()
            .find(|one| one["name"] == tool)
            .expect("there is such a tool");
        found["annotations"][hint].clone()
    };
    for tool in ["shell_view", "shell_wait"] {
        assert_eq!(hint(tool, "idempotentHint"), json!(false), "{tool}");
    }
    assert_eq!(hint("ask_human", "readOnlyHint"), json!(false));
    assert_eq!(hint("shell_list", "idempotentHint"), json!(true));
}
