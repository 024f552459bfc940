//! `shieling mcp` as MCP's official clients meet it: the Python one and the Rust one, each in both ways of
//! the protocol. What they get is kept as a transcript, which is the same in both.

use std::process::Stdio;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ProtocolVersion, ReadResourceRequestParams};
use rmcp::service::{RunningService, serve_client_with_lifecycle};
use rmcp::{ClientLifecycleMode, RoleClient};
use serde_json::{Value, json};
use tokio::net::unix::pipe;

use crate::support::{Ran, Shieling};
use crate::yes::Yes;

/// Names a Python that has the package `mcp` from PyPI; `.ci/run` makes one.
const PYTHON: &str = "SHIELING_TEST_MCP_PYTHON";

const RULES: &str = r#"
[[rule]]
id = "touching"
decision = "ask"
command = "touch"
because = "it makes a file"

[[rule]]
id = "wiping"
decision = "deny"
command = "rm -rf"
because = "it wipes"
instead = "name single files"
"#;

/// In `local`, so that it needs nothing of the host.
fn shieling() -> Shieling {
    Shieling::in_workspace().file("rules.toml", RULES).args([
        "mcp",
        "--env",
        "local",
        "--approval",
        "policy",
        "--policy",
        "rules.toml",
    ])
}

/// What the Python client has seen; nothing where there is none.
fn python(mode: &str) -> Option<Ran> {
    let Some(python) = std::env::var_os(PYTHON) else {
        shieling_testkit::prerequisite::skip(format_args!(
            "{PYTHON} names no Python with the package `mcp` (see .ci/run)"
        ));
        return None;
    };
    let shieling = shieling();
    let output = shieling
        .command_by(&python, "official.py", &[mode])
        .stdin(Stdio::null())
        .output()
        .expect("it is there");
    Some(shieling.ran(&output))
}

#[test]
fn the_python_client_lists_calls_approves_cancels_views_kills_and_reads_in_both_versions() {
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let Some(ran) = python(mode) else { return };
        assert_eq!(ran.exit, Some(0), "{ran}");
        // In `local` commands can change the policy in the workspace, which is said at the start; and nothing else.
        let open = "note: `[PLACE]/work/rules.toml` can be changed by commands here";
        assert!(ran.stderr.starts_with(open) && ran.stderr.lines().count() == 1, "{ran}");
        let (first, rest) = ran.stdout.split_once('\n').expect("it has lines");
        assert_eq!(first, format!("served by shieling in version {version}"));
        // One transcript for both: the version changes nothing of what a model is told.
        insta::assert_snapshot!("official-python", rest);
    }
}

type Client = RunningService<RoleClient, Yes>;

async fn call(client: &Client, tool: &'static str, arguments: Value) -> Value {
    let arguments = arguments.as_object().expect("an object").clone();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = client.call_tool(params).await.expect("it is answered");
    result.structured_content.expect("it tells an outcome")
}

/// Views the job until its output has the mark.
async fn wait(client: &Client, job: &str, mark: &str) {
    let mut seen = String::new();
    while !seen.contains(mark) {
        let view = call(client, "shell_view", json!({"job": job, "wait_ms": 5_000})).await;
        assert_ne!(view["stdout"], "", "nothing came within 5 s: {view}");
        seen.push_str(view["stdout"].as_str().expect("a text"));
    }
}

#[tokio::test]
async fn the_rust_client_does_the_same_over_the_pipes_of_a_child_in_both_lifecycles() {
    let modern = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    for lifecycle in [ClientLifecycleMode::Initialize, modern] {
        let shieling = shieling();
        let mut child = shieling
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let theirs = pipe::Receiver::from_owned_fd(child.stdout.take().expect("piped").into());
        let ours = pipe::Sender::from_owned_fd(child.stdin.take().expect("piped").into());
        let pipes = (theirs.expect("a pipe"), ours.expect("a pipe"));
        let person = Yes::default();
        let mut client = serve_client_with_lifecycle(person.clone(), pipes, lifecycle)
            .await
            .expect("it is served");

        let tools = client.list_all_tools().await.expect("they are listed");
        assert!(tools.iter().any(|tool| tool.name == "shell"), "{tools:?}");
        call(&client, "shell", json!({"command": "x=3"})).await;
        let outcome = call(&client, "shell", json!({"command": "touch new; echo $x"})).await;
        assert_eq!(
            (&outcome["status"], &outcome["stdout"]),
            (&json!("exited"), &json!("3\n"))
        );
        let asked = person.asked();
        assert!(asked.len() == 1 && asked[0].contains("touch new"), "{asked:?}");

        let hanging = call(&client, "shell", json!({"command": "x=4; sleep 1000"}));
        assert!(tokio::time::timeout(Duration::from_millis(300), hanging).await.is_err());
        let outcome = call(&client, "shell", json!({"command": "echo $x"})).await;
        assert_eq!(
            (&outcome["stdout"], &outcome["session_restarted"]),
            (&json!("4\n"), &json!(false))
        );

        let job = json!({"command": "echo ready; cat", "background": true, "job": "echo"});
        call(&client, "shell", job).await;
        wait(&client, "echo", "ready\n").await;
        call(&client, "shell_write", json!({"job": "echo", "text": "typed"})).await;
        let log = ReadResourceRequestParams::new("shieling://job/echo");
        let log = client.read_resource(log).await.expect("it is read");
        assert!(format!("{log:?}").contains("ready"), "{log:?}");
        let killed = call(&client, "shell_kill", json!({"job": "echo"})).await;
        assert_eq!(
            (&killed["status"], &killed["survivors"]),
            (&json!("signalled"), &json!(0))
        );

        client.close().await.expect("it closes");
        let status = tokio::task::spawn_blocking(move || child.wait())
            .await
            .expect("no panic");
        assert_eq!(status.expect("it ends").code(), Some(0));
    }
}
