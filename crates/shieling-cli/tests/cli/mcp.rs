//! `shieling mcp` as a client starts it: the real binary, real commands, nothing but lines of JSON between.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shieling_testkit::{Marker, leftovers};

use crate::support::Shieling;

/// In `local`, so that it needs nothing of the host; nobody is asked unless the test says otherwise.
pub(crate) const UNASKED: [&str; 5] = ["mcp", "--env", "local", "--approval", "policy"];

pub(crate) struct Server {
    pub(crate) shieling: Shieling,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
    /// What a person was asked, and said yes to.
    pub(crate) asked: Vec<String>,
    /// The decision that the person gives. Default: `yes`.
    pub(crate) decision: &'static str,
}

impl Server {
    pub(crate) fn start(shieling: Shieling, can: Value) -> Self {
        let command = shieling.command();
        Self::start_by(shieling, command, can)
    }

    /// The same, where it is this command that starts it.
    pub(crate) fn start_by(shieling: Shieling, mut command: Command, can: Value) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut server = Self {
            shieling,
            child,
            stdin,
            stdout: BufReader::new(stdout),
            next: 1,
            asked: Vec::new(),
            decision: "yes",
        };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": can, "clientInfo": {"name": "test", "version": "1"},
        });
        server.request("initialize", hello);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").expect("the server reads");
    }

    /// The next line, which has to be a message.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("the server writes");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Calls a tool and does not wait for the answer.
    pub(crate) fn begin(&mut self, name: &str, arguments: &Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let params = json!({"name": name, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        id
    }

    /// The workspace.
    pub(crate) fn workspace(&self) -> std::path::PathBuf {
        let workspace = self.shieling.workspace();
        workspace.canonicalize().expect("it is there")
    }

    /// What the client's person was asked.
    pub(crate) fn asked(&self) -> &[String] {
        &self.asked
    }

    /// Waits until something has made this file of the workspace.
    pub(crate) fn has_file(&self, name: &str) {
        let path = self.shieling.workspace().join(name);
        let began = std::time::Instant::now();
        while !path.exists() {
            assert!(began.elapsed().as_secs() < 30, "{name} is not made");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Takes back what was called.
    pub(crate) fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id});
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }

    /// The next answer, and to which call.
    pub(crate) fn answer(&mut self) -> (u64, Value) {
        loop {
            let message = self.next();
            if let Some(id) = message["id"].as_u64().filter(|_| message.get("method").is_none()) {
                return (id, message["result"]["structuredContent"].clone());
            }
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.next();
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
            if message["method"] == "elicitation/create" {
                let yes = json!({"action": "accept", "content": {"decision": self.decision}});
                let asked = message["id"].clone();
                let says = message["params"]["message"].as_str().expect("a text");
                self.asked.push(says.to_owned());
                self.send(&json!({"jsonrpc": "2.0", "id": asked, "result": yes}));
            }
        }
    }

    /// What a model reads, and the outcome.
    pub(crate) fn shell(&mut self, arguments: Value) -> (String, Value) {
        self.tool("shell", arguments)
    }

    /// The same of any tool.
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> (String, Value) {
        let result = self.request("tools/call", json!({"name": name, "arguments": arguments}));
        let result = &result["result"];
        let text = result["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{result}"));
        (text.to_owned(), result["structuredContent"].clone())
    }

    /// Goes away. The exit status, and all that is still on both streams.
    pub(crate) fn end(self) -> (Shieling, Option<i32>, String, String) {
        let Self {
            shieling,
            mut child,
            stdin,
            mut stdout,
            ..
        } = self;
        drop(stdin);
        let (mut rest, mut told) = (String::new(), String::new());
        stdout.read_to_string(&mut rest).expect("text");
        child
            .stderr
            .take()
            .expect("piped")
            .read_to_string(&mut told)
            .expect("text");
        let exit = child.wait().expect("it ends").code();
        (shieling, exit, rest, told)
    }
}

#[test]
fn a_session_over_the_real_binary_keeps_its_state_and_stdout_carries_protocol_only() {
    let shieling = Shieling::in_workspace().args(UNASKED).variable("RUST_LOG", "trace");
    let mut server = Server::start(shieling, json!({}));
    let (text, _) = server.shell(json!({"command": "cd /; x=3; printf 'not json\\n{\\n'; echo loud >&2"}));
    assert_eq!(text, "not json\n{\n[stderr]\nloud\n");
    let (text, outcome) = server.shell(json!({"command": "pwd; echo $x; exit 5"}));
    assert!(text.starts_with("/\n3\n[exit code 5]"), "{text}");
    assert_eq!(
        (&outcome["status"], &outcome["session_restarted"]),
        (&json!("exited"), &json!(true))
    );
    let (text, outcome) = server.shell(json!({"command": "echo fresh", "session": ""}));
    assert_eq!((text.as_str(), &outcome["session"]), ("fresh\n", &Value::Null));
    let (text, outcome) = server.shell(json!({"command": "kill -9 $$", "session": ""}));
    assert_eq!(
        (&outcome["status"], &outcome["exit_code"]),
        (&json!("signalled"), &json!(137)),
        "{text}"
    );
    let (_, exit, rest, told) = server.end();
    assert_eq!((exit, rest.as_str(), told.as_str()), (Some(0), "", ""));
}

#[test]
fn every_command_is_recorded_unless_told_otherwise() {
    let mut server = Server::start(Shieling::in_workspace().args(UNASKED), json!({}));
    server.shell(json!({"command": "echo recorded"}));
    let (shieling, ..) = server.end();
    let logs = std::fs::read_dir(shieling.workspace().join("../state/shieling/audit")).expect("it is there");
    let logs: Vec<_> = logs.map(|log| log.expect("it can be listed").path()).collect();
    let [log] = logs.as_slice() else {
        panic!("one log for one workspace: {logs:?}")
    };
    let name = log.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("mcp-work-"), "{name}");
    let log = log.canonicalize().expect("it is there").to_string_lossy().into_owned();
    let text = std::fs::read_to_string(&log).expect("it can be read");
    assert!(text.contains("echo recorded"), "{text}");
    let ran = Shieling::in_workspace().args(["log", "verify", &log]).run();
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
}

#[test]
fn in_local_a_person_is_asked_and_without_one_the_remedy_is_told() {
    let local = || Shieling::in_workspace().args(["mcp", "--env", "local"]);
    let mut server = Server::start(local(), json!({"elicitation": {}}));
    let (text, _) = server.shell(json!({"command": "echo approved"}));
    assert_eq!(text, "approved\n");
    let (text, _) = server.shell(json!({"command": "echo fresh", "session": ""}));
    assert_eq!(text, "fresh\n");
    server.end();

    let mut server = Server::start(local(), json!({}));
    let (text, outcome) = server.shell(json!({"command": "echo approved"}));
    assert_eq!(outcome["status"], "needs_approval");
    assert!(
        text.contains("this client cannot ask a person") && text.contains("--env sandbox"),
        "{text}"
    );
    server.end();
}

#[test]
fn nothing_is_left_once_the_client_is_gone() {
    let marker = Marker::new();
    let mut server = Server::start(Shieling::in_workspace().args(UNASKED), json!({}));
    let text = marker.text();
    server.shell(json!({"command": format!("exec -a {text}a sleep 1000"), "background": true}));
    server.shell(json!({"command": format!("(exec -a {text}b sleep 1000)"), "timeout_ms": 50}));
    assert!(!leftovers(&marker).is_empty());
    assert_eq!(server.end().1, Some(0));
    let begun = Instant::now();
    while !leftovers(&marker).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", leftovers(&marker));
        std::thread::yield_now();
    }
}

#[test]
fn what_is_wrong_in_the_options_is_told_before_a_client_is_served() {
    let bad = "[[rule]]\nid = \"x\"\ndecision = \"perhaps\"\n";
    for (args, says) in [
        (
            vec!["--dialect", "klingon"],
            "possible values: default, codex, claude, camel, pydantic",
        ),
        (vec!["--policy", "rules.toml"], "perhaps"),
        (vec!["--env", "local", "--approval", "never"], "--acknowledge-unsafe"),
        (vec!["--print-config", "emacs"], "possible values: claude-code"),
    ] {
        let ran = Shieling::in_workspace()
            .file("rules.toml", bad)
            .args(["mcp"])
            .args(args.clone())
            .run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{args:?}");
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn clients_are_told_of_the_server_in_their_own_words_which_are_valid() {
    let clients = ["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"];
    let pages = clients.map(|client| {
        let ran = Shieling::in_workspace().args(["mcp", "--print-config", client]).run();
        assert_eq!(ran.exit, Some(0), "{client}");
        let written = match client {
            "claude-code" => {
                let (_, words) = ran.stdout.split_once(" -- ").expect("what it starts");
                let words: Vec<&str> = words.split_whitespace().collect();
                json!({"command": words[0], "args": words[1..]})
            }
            "codex" => {
                let all: toml::Table = ran.stdout.parse().expect("TOML");
                json!(all["mcp_servers"]["shieling"])
            }
            _ => {
                let all: Value = serde_json::from_str(&ran.stdout).expect("JSON");
                let servers = if client == "vscode" { "servers" } else { "mcpServers" };
                all[servers]["shieling"].clone()
            }
        };
        assert_eq!(
            (&written["command"], &written["args"][0]),
            (&json!("shieling"), &json!("mcp")),
            "{client}: {written}"
        );
        // What it would start is what the options take.
        let args: Vec<String> = serde_json::from_value(written["args"].clone()).expect("words");
        let told = Shieling::in_workspace()
            .args(args)
            .args(["--print-config", client])
            .run();
        assert_eq!(told, ran, "{client}");
        format!("── {client}: {}{}", ran.stderr, ran.stdout)
    });
    insta::assert_snapshot!("mcp-clients", pages.join("\n"));
}

#[test]
fn a_clients_configuration_keeps_every_option_that_was_given() {
    let given = [
        "--readonly",
        "--workspace",
        ".",
        "--deny=git push",
        "--ignore",
        "it's \"\\",
    ];
    for client in ["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini"] {
        let ran = Shieling::in_workspace()
            .args(["mcp", "--readonly", "--workspace", ".", "--print-config", client])
            .args(&given[3..])
            .run();
        assert_eq!(ran.exit, Some(0), "{client}: {}", ran.stderr);
        let all: Value = match client {
            "claude-code" => {
                let said =
                    r#"shieling mcp --dialect claude --readonly --workspace . '--deny=git push' --ignore 'it'\''s "\'"#;
                assert!(ran.stdout.trim_end().ends_with(said), "{}", ran.stdout);
                continue;
            }
            "codex" => json!(ran.stdout.parse::<toml::Table>().expect("TOML")),
            _ => serde_json::from_str(&ran.stdout).expect("JSON"),
        };
        let servers = all.as_object().and_then(|all| all.values().next()).expect("servers");
        let args: Vec<String> = serde_json::from_value(servers["shieling"]["args"].clone()).expect("words");
        let mut expected = vec!["mcp"];
        if client == "codex" {
            expected.extend(["--dialect", "codex"]);
        }
        expected.extend(given);
        assert_eq!(args, expected, "{client}");
    }
}

#[test]
fn tools_are_offered_and_asked_about_as_the_options_and_the_users_file_say() {
    let shieling = Shieling::in_workspace()
        .user_config("exclude-tool = ['shell_list']")
        .args(UNASKED)
        .args(["--require-write-approval"]);
    let mut server = Server::start(shieling, json!({}));
    let refused = server.request("tools/call", json!({"name": "shell_list", "arguments": {}}));
    let says = refused["error"]["message"].as_str().expect("it is refused");
    assert!(
        says.starts_with("there is no tool `shell_list`; there are shell,"),
        "{says}"
    );
    let (text, given) = server.tool("write_file", json!({"path": "new", "content": "x"}));
    assert_eq!(given["status"], json!("needs_approval"), "{text}");
    assert!(text.contains("MCP elicitation"), "{text}");
    let (text, given) = server.shell(json!({"command": "ls; true"}));
    assert_eq!(
        (text.as_str(), &given["exit_code"]),
        ("[no output]", &json!(0)),
        "no file was made"
    );
    let (shieling, ..) = server.end();
    drop(shieling);

    // The client can ask, and its person says yes.
    let shieling = Shieling::in_workspace()
        .args(UNASKED)
        .args(["--require-write-approval"]);
    let mut server = Server::start(shieling, json!({"elicitation": {}}));
    let (text, given) = server.tool("write_file", json!({"path": "new", "content": "x"}));
    assert_eq!(given["created"], json!(true), "{text}");
    server.end();
}

#[test]
fn an_unknown_tool_in_the_options_is_named_with_those_that_there_are() {
    let ran = Shieling::in_workspace()
        .args([
            "mcp",
            "--env",
            "local",
            "--approval",
            "policy",
            "--dialect",
            "claude",
            "--include-tool",
            "shell",
        ])
        .run();
    assert_eq!(ran.exit, Some(125), "{ran}");
    assert!(
        ran.stderr
            .contains("the dialect `claude` has no tool `shell`; it has Bash, BashOutput"),
        "{ran}"
    );
    let ran = Shieling::in_workspace()
        .args([
            "mcp",
            "--env",
            "local",
            "--approval",
            "policy",
            "--include-tool",
            "ls",
            "--exclude-tool",
            "ls",
        ])
        .run();
    assert_eq!(ran.exit, Some(125), "{ran}");
    assert!(ran.stderr.contains("no tool is left to be offered"), "{ran}");
}
