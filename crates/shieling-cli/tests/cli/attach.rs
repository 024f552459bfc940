//! `shieling attach`: a person at a terminal, beside an agent that works with a server.

use std::time::{Duration, Instant};

use serde_json::json;
use shieling_testkit::prerequisite;

use crate::mcp::{Server, UNASKED};
use crate::support::{Shieling, told};

fn server() -> Server {
    Server::start(Shieling::in_workspace().args(UNASKED), json!({}))
}

/// Tries until it is so.
fn until<T>(what: &str, mut so: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = so() {
            return value;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_person_takes_a_jobs_keyboard_and_the_agent_waits_until_it_is_given_back() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let mut server = server();
    let script =
        "echo ready; read -r line; echo \"got $line\"; until [ -e go ]; do sleep 0.05; done; echo release; sleep 1000";
    server.shell(json!({"command": script, "tty": true, "background": true, "job": "dialog"}));
    let steps = json!([
        ["ready", "typed\n"],
        ["release", "\u{1d}"],
        ["is the agent's again", ""],
    ]);
    let person = server.shieling.beside(&["attach", "dialog"], &steps);
    until("the person", || {
        let (_, listed) = server.tool("shell_list", json!({}));
        (listed["jobs"][0]["person"] == json!(true)).then_some(())
    });
    let (text, _) = server.tool("shell_write", json!({"job": "dialog", "text": "mine"}));
    assert!(text.contains("a person has control of job `dialog`"), "{text}");
    std::fs::write(server.shieling.workspace().join("go"), "").expect("a file can be written");
    let person = told(person);
    assert_eq!(
        (&person["status"], &person["was_raw"]),
        (&json!(0), &json!(true)),
        "{person}"
    );
    let (_, listed) = server.tool("shell_list", json!({}));
    assert_eq!(listed["jobs"][0]["person"], json!(false));
    let (text, _) = server.tool("shell_view", json!({"job": "dialog"}));
    assert!(
        text.contains("got typed"),
        "what the person saw is still new to the agent: {text}"
    );
    server.end();
}

#[test]
fn a_question_is_answered_by_whoever_waits_for_it_and_without_anybody_at_once() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let mut server = server();
    let (text, _) = server.tool("ask_human", json!({"prompt": "anybody?"}));
    assert!(text.contains("nobody is there"), "{text}");
    let steps = json!([
        ["waiting for questions", ""],
        ["which\\x1b[2J colour?", "blue\n"],
        ["answered", {"signal": "SIGTERM"}],
    ]);
    let person = server.shieling.beside(&["attach"], &steps);
    let mut tried = 0;
    let answer = until("an answer", || {
        tried += 1;
        // Another question each time: one that has failed five times is not tried again for a while.
        let (text, _) = server.tool(
            "ask_human",
            json!({"prompt": format!("which\u{1b}[2J colour? {tried}")}),
        );
        (!text.contains("nobody is there")).then_some(text)
    });
    assert!(answer.contains("blue"), "{answer}");
    assert_eq!(told(person)["status"], 143);
    let (text, _) = server.tool("ask_human", json!({"prompt": "still there?"}));
    assert!(text.contains("nobody is there"), "{text}");
    server.end();
}

#[test]
fn an_asked_person_takes_the_keyboard_and_the_agent_is_told_what_changed() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let mut server = server();
    server.shell(json!({"command": "bash --norc -i", "tty": true, "background": true, "job": "sh"}));
    let steps = json!([
        ["waiting for questions", ""],
        ["help", "/take\n"],
        ["you have the keyboard", "mkdir sub && cd sub && touch ../new && echo do\"\"ne\n"],
        ["done", "\u{1d}"],
        ["answered", {"signal": "SIGTERM"}],
    ]);
    let person = server.shieling.beside(&["attach"], &steps);
    // Another question each time: the same one is refused for a while after it failed five times.
    let mut asked = 0;
    let answer = until("an answer", || {
        asked += 1;
        let (text, _) = server.tool("ask_human", json!({"prompt": format!("help {asked}"), "job": "sh"}));
        (!text.contains("nobody is there")).then_some(text)
    });
    assert!(answer.contains("the person took the keyboard"), "{answer}");
    assert!(answer.contains("/work/sub now, and not in"), "{answer}");
    assert!(answer.contains("changed in the workspace: new, sub"), "{answer}");
    assert_eq!(told(person)["status"], 143);
    server.end();
}

#[test]
fn what_there_is_is_listed_a_job_is_looked_at_and_what_the_agent_runs_is_not_let_in() {
    let mut server = server();
    server.shell(json!({"command": "printf 'line\\e[2J\\n'", "background": true, "job": "short"}));
    let listed = server.shieling.again(["attach"]);
    assert_eq!((listed.exit, listed.stderr.as_str()), (Some(0), ""), "{listed}");
    assert!(
        listed.stdout.contains("job     short") && listed.stdout.contains("printf"),
        "{listed}"
    );
    let looked = server.shieling.again(["attach", "short"]);
    assert_eq!((looked.exit, looked.stdout.as_str()), (Some(0), "line\n"), "{looked}");
    let unknown = server.shieling.again(["attach", "nothing"]);
    assert!(
        unknown.exit == Some(125) && unknown.stderr.contains("there is no job `nothing`"),
        "{unknown}"
    );

    let state = server
        .shieling
        .workspace()
        .join("../state")
        .canonicalize()
        .expect("it is there");
    let program = env!("CARGO_BIN_EXE_shieling");
    for background in ["", "setsid "] {
        let text = format!("XDG_STATE_HOME={} {background}{program} attach", state.display());
        let (text, outcome) = server.shell(json!({"command": text}));
        assert_eq!(outcome["exit_code"], json!(125), "{text}");
        assert!(text.contains("no server of yours is running"), "{text}");
    }

    let doors = state.join("shieling/attach");
    let sockets = || std::fs::read_dir(&doors).expect("it is there").count();
    assert_eq!(sockets(), 1);
    drop(std::os::unix::net::UnixListener::bind(doors.join("999999-0123456789abcdef.sock")).expect("it is made"));
    let (shieling, ..) = server.end();
    let none = shieling.again(["attach"]);
    assert!(
        none.exit == Some(125) && none.stderr.contains("no server of yours is running"),
        "{none}"
    );
    let server = Server::start(shieling, json!({}));
    assert_eq!(sockets(), 1, "the one that nobody listens at was taken away");
    let (_shieling, ..) = server.end();
    assert_eq!(sockets(), 0);
}

#[test]
fn a_command_that_needs_a_yes_gets_it_at_attach_where_the_client_cannot_ask() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let asks = ["mcp", "--env", "local", "--approval", "always"];
    let mut server = Server::start(Shieling::in_workspace().args(asks), json!({}));
    let (text, outcome) = server.shell(json!({"command": "touch alone"}));
    assert_eq!(outcome["status"], "needs_approval", "{text}");
    assert!(text.contains("`shieling attach`"), "{text}");
    let steps = json!([
        ["waiting for questions", ""],
        ["touch made", "y\n"],
        ["answered", ""],
        ["touch refused", "\n"],
        ["answered", {"signal": "SIGTERM"}],
    ]);
    let person = server.shieling.beside(&["attach"], &steps);
    // Whoever is not there yet cannot be asked.
    let mut tried = 0;
    until("a yes", || {
        // Another command each time: one that has failed five times is not tried again for a while.
        tried += 1;
        let (_, outcome) = server.shell(json!({"command": format!("touch made; : {tried}")}));
        (outcome["status"] == "exited").then_some(())
    });
    let (text, outcome) = server.shell(json!({"command": "touch refused"}));
    assert_eq!(outcome["status"], "denied", "{text}");
    let person = told(person);
    assert!(
        person["output"].to_string().contains("may this run in `local`"),
        "{person}"
    );
    for (name, there) in [("alone", false), ("made", true), ("refused", false)] {
        assert_eq!(server.shieling.workspace().join(name).exists(), there, "{name}");
    }
    server.end();
}
