//! The tools of `shieling mcp` as a model that gets things wrong calls them: the real binary, real files.

use serde_json::{Value, json};

use crate::mcp::Server;
use crate::support::Shieling;

/// Where files can be tried without anything of the host but a directory, nobody being asked.
const PLACES: [&[&str]; 2] = [
    &["mcp", "--env", "local", "--approval", "policy", "--ignore", ".env"],
    &["mcp", "--env", "memory", "--ignore", ".env"],
];

fn serving(place: &[&str], more: &[&str]) -> Server {
    let shieling = Shieling::in_workspace().args(place).args(more);
    let mut server = Server::start(shieling, json!({}));
    let made = "printf 'one\ntwo\nthree\n' > a.txt; mkdir -p src/deep; printf 'a\\0b' > bin; \
                printf 'caf\\xe9\n' > latin; ln -s nowhere dangling; ln -s /etc/passwd out; seq 100000 > many";
    let (text, outcome) = server.shell(json!({"command": made, "session": ""}));
    assert_eq!(outcome["exit_code"], json!(0), "{text}");
    server
}

#[test]
fn whatever_is_asked_wrongly_is_answered_with_what_would_be_right() {
    let cases: &[(&str, Value, &str)] = &[
        (
            "read_file",
            json!({"path": "A.TXT"}),
            "there is no `A.TXT`\ninstead  look for it with `glob` or `ls`",
        ),
        ("read_file", json!({"path": "src\\a.txt"}), "there is no `src\\a.txt`"),
        (
            "read_file",
            json!({"path": "~/a.txt"}),
            "`~` stands for no directory here",
        ),
        ("read_file", json!({"path": "file:///a.txt"}), "is a URL: give a path"),
        ("read_file", json!({"path": "dangling"}), "there is no `dangling`"),
        (
            "read_file",
            json!({"path": "src"}),
            "`src` is a directory, not a file\ninstead  list it with `ls`",
        ),
        ("read_file", json!({"path": "a.txt/x"}), "is not a directory"),
        ("read_file", json!({"path": "a\0b"}), "a\\x00b"),
        (
            "read_file",
            json!({"path": "many", "offset": 100_000}),
            "the last line is at `offset` 99999",
        ),
        (
            "read_file",
            json!({"path": "many", "offset": -1}),
            "`offset` must be a whole number from 0",
        ),
        (
            "read_file",
            json!({"path": "many", "limit": 0}),
            "`limit` must be a whole number from 1",
        ),
        ("read_file", json!({"path": ".env"}), "there is no `.env`"),
        (
            "write_file",
            json!({"path": "~/.bashrc", "content": "x"}),
            "`~` stands for no directory here",
        ),
        (
            "write_file",
            json!({"path": "new/", "content": "x"}),
            "it ends as a directory's does",
        ),
        (
            "write_file",
            json!({"path": "src", "content": "x"}),
            "`src` is a directory",
        ),
        (
            "write_file",
            json!({"path": ".env", "content": "x"}),
            "this path is hidden",
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old": "ONE", "new": "1"}),
            "only upper and lower case differ",
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old": "t", "new": "1"}),
            "it begins at lines 2, 3",
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old": "two", "new": "two"}),
            "nothing would change",
        ),
        (
            "edit_file",
            json!({"path": "bin", "old": "a", "new": "b"}),
            "`bin` is not text",
        ),
        (
            "apply_patch",
            json!({"patch": "hello"}),
            "the patch cannot be read: line 1",
        ),
        (
            "ls",
            json!({"path": "a.txt"}),
            "is not a directory\ninstead  give a directory, or read it with `read_file`",
        ),
        (
            "ls",
            json!({"limit": "all"}),
            "`limit` must be a whole number from 1 to 10000, not \"all\"",
        ),
        ("glob", json!({"pattern": "../*"}), "give the directory as `path`"),
        ("glob", json!({"pattern": "["}), "unclosed character class"),
        (
            "grep",
            json!({"pattern": "("}),
            "`pattern`: unclosed group; set `literal`",
        ),
        ("grep", json!({"pattern": "(?<=a)b"}), "look-around is not supported"),
        ("grep", json!({"pattern": "x", "cursor": "abc"}), "`cursor`"),
        (
            "grep",
            json!({"pattern": "x", "extra": 1}),
            "`grep` has no `extra`; it takes",
        ),
        (
            "delete_file",
            json!({"path": "src"}),
            "`recursive` removes it with all that is in it",
        ),
        (
            "move_file",
            json!({"from": "src", "to": "src/deep/x"}),
            "is in the directory itself",
        ),
        ("move_file", json!({"from": "a.txt"}), "`to` is missing"),
        ("shell_view", json!({"job": "j99"}), "there is no job `j99`"),
    ];
    for place in PLACES {
        let mut server = serving(place, &[]);
        for (tool, arguments, says) in cases {
            let (text, facts) = server.tool(tool, arguments.clone());
            assert!(text.contains(says), "{place:?} {tool} {arguments}: {text}");
            assert!(facts["error"].is_string(), "{place:?} {tool} {arguments}: {facts}");
            assert!(!text.contains("SECRET") && !text.contains("\\x0a"), "{text}");
        }
        // None of it has made or changed anything.
        let (text, _) = server.tool("glob", json!({"pattern": "*", "hidden": true, "ignored": true}));
        assert_eq!(text, "a.txt\nbin\ndangling\nlatin\nmany\nout", "{place:?}");
        assert_eq!(
            server.tool("read_file", json!({"path": "latin", "limit": 1.0})).1["text"],
            json!("café\n")
        );
        assert_eq!(server.end().1, Some(0));
    }
}

#[test]
fn no_dialect_is_told_to_use_an_argument_that_it_does_not_have() {
    for (dialect, tool, wrong, says) in [
        (
            "default",
            "grep",
            json!({"pattern": "("}),
            "`pattern`: unclosed group; set `literal` to search",
        ),
        (
            "claude",
            "Grep",
            json!({"pattern": "("}),
            "`pattern`: unclosed group; a backslash takes",
        ),
        (
            "codex",
            "grep_files",
            json!({"pattern": "("}),
            "`pattern`: unclosed group; a backslash takes",
        ),
        (
            "pydantic",
            "grep",
            json!({"pattern": "("}),
            "Error: `pattern`: unclosed group; a backslash takes",
        ),
        (
            "default",
            "grep",
            json!({"pattern": "a\nb"}),
            "stays within a line; set `multiline`",
        ),
        (
            "claude",
            "Grep",
            json!({"pattern": "a\nb"}),
            "stays within a line; set `multiline`",
        ),
        (
            "codex",
            "grep_files",
            json!({"pattern": "a\nb"}),
            "and a match stays within a line",
        ),
        (
            "default",
            "grep",
            json!({"pattern": "a", "glob": "["}),
            "`glob`: unclosed character class",
        ),
        (
            "codex",
            "grep_files",
            json!({"pattern": "a", "include": "["}),
            "`include`: unclosed character class",
        ),
        (
            "pydantic",
            "grep",
            json!({"pattern": "a", "glob": "["}),
            "Error: `glob`: unclosed character class",
        ),
    ] {
        let mut server = Server::start(
            Shieling::in_workspace().args(PLACES[1]).args(["--dialect", dialect]),
            json!({}),
        );
        let (text, _) = server.tool(tool, wrong);
        assert!(text.contains(says), "{dialect}: {text}");
        assert!(dialect == "default" || !text.contains("literal"), "{dialect}: {text}");
        assert!(dialect != "codex" || !text.contains("multiline"), "{dialect}: {text}");
        server.end();
    }
}

#[test]
fn a_link_that_leads_out_is_told_from_a_path_outside() {
    let mut server = serving(PLACES[0], &[]);
    let (text, _) = server.tool("read_file", json!({"path": "out"}));
    assert!(
        text.contains("instead  a link leads out of it: name a path in the workspace, /"),
        "{text}"
    );
    for path in ["/etc/passwd", "..", "src/../../x"] {
        let (text, _) = server.tool("read_file", json!({"path": path}));
        assert!(text.contains("instead  name a path in the workspace, /"), "{text}");
    }
    let (text, _) = server.tool("ls", json!({}));
    assert!(text.contains("out -> /etc/passwd (leads nowhere here)"), "{text}");
    server.end();
}

#[test]
fn the_first_outcome_already_says_what_is_enforced() {
    let mut server = Server::start(Shieling::in_workspace().args(["mcp"]), json!({}));
    let (text, first) = server.shell(json!({"command": "true"}));
    let (_, second) = server.shell(json!({"command": "true"}));
    assert!(
        first["confinement"]["enforced"]
            .as_array()
            .is_some_and(|layers| !layers.is_empty()),
        "{text}"
    );
    assert_eq!(first["confinement"], second["confinement"]);
}

#[test]
fn the_root_of_a_sandbox_can_be_listed_with_what_is_no_file_in_it() {
    let mut server = Server::start(Shieling::in_workspace().args(["mcp"]), json!({}));
    let (text, facts) = server.tool("ls", json!({"path": "/"}));
    for name in ["proc/", "dev/", "usr/"] {
        assert!(text.lines().any(|line| line == name), "{name}: {text}");
    }
    assert_eq!(facts["next"], json!(null));
    let (text, _) = server.tool("ls", json!({"path": "/proc"}));
    assert!(text.contains("use a command"), "{text}");
    server.end();
}

#[test]
fn calls_at_the_same_time_each_get_their_own_answer() {
    for place in PLACES {
        let mut server = serving(place, &[]);
        let write = |number: u64| json!({"path": format!("new/{number}"), "content": format!("{number}\n")});
        let begun: Vec<u64> = (0..40)
            .map(|number| server.begin("write_file", &write(number)))
            .collect();
        for _ in &begun {
            let (id, facts) = server.answer();
            assert!(
                begun.contains(&id) && facts["created"] == json!(true),
                "{place:?}: {facts}"
            );
        }
        let begun: Vec<u64> = (0..40)
            .map(|number| server.begin("read_file", &json!({"path": format!("new/{number}")})))
            .collect();
        for _ in &begun {
            let (id, facts) = server.answer();
            let number = begun.iter().position(|one| *one == id).expect("it was asked");
            assert_eq!(facts["text"], json!(format!("{number}\n")), "{place:?}");
        }
        server.end();
    }
}

#[test]
fn a_call_that_fails_again_and_again_is_refused_as_often_as_the_option_says() {
    for (more, tried) in [(&["--max-repeats", "2"][..], 2), (&["--max-repeats", "0"], 9), (&[], 5)] {
        let mut server = serving(PLACES[0], more);
        let edit = json!({"path": "a.txt", "old": "four", "new": "4"});
        for time in 1..=7 {
            let (text, facts) = server.tool("edit_file", edit.clone());
            let code = if time > tried { "repeated" } else { "no_match" };
            assert_eq!(facts["code"], json!(code), "{more:?} {time}: {text}");
        }
        // The same look shows nothing new, another does.
        if tried == 5 {
            server.tool("read_file", json!({"path": "a.txt"}));
            assert_eq!(server.tool("edit_file", edit.clone()).1["code"], json!("no_match"));
        }
        // A test that fails is run as often as one likes.
        for _ in 0..7 {
            let (_, outcome) = server.shell(json!({"command": "echo ran; grep four a.txt"}));
            assert_eq!(
                (&outcome["stdout"], &outcome["exit_code"]),
                (&json!("ran\n"), &json!(1))
            );
        }
        server.shell(json!({"command": "echo four >> a.txt"}));
        let (text, facts) = server.tool("edit_file", edit);
        assert_eq!(facts["replacements"], json!(1), "{text}");
        server.end();
    }
}

#[test]
fn a_person_is_shown_all_of_a_patch_or_is_not_asked() {
    let patch = |files: usize| {
        let one = |number: usize| format!("*** Add File: f{number}\n{}", "+a line of this file\n".repeat(450));
        format!(
            "*** Begin Patch\n{}*** End Patch\n",
            (0..files).map(one).collect::<String>()
        )
    };
    for place in PLACES {
        let shieling = Shieling::in_workspace().args(place).args(["--require-write-approval"]);
        let mut server = Server::start(shieling, json!({"elicitation": {}}));
        let (text, facts) = server.tool("apply_patch", json!({"patch": patch(7)}));
        assert!(server.asked.is_empty(), "{place:?}: somebody was asked");
        assert!(
            text.starts_with("not asked about: `apply the patch` is too long for that, and was not done")
                && text.contains("more than 64 KiB")
                && !text.contains("MCP elicitation")
                && text.contains("instead  make the change in several steps"),
            "{place:?}: {text}"
        );
        assert_eq!(
            (&facts["status"], &facts["denial"]["reasons"][1]["rule"]),
            (&json!("needs_approval"), &json!("approval length")),
            "{facts}"
        );
        let (text, _) = server.tool("apply_patch", json!({"patch": patch(6)}));
        let [question] = server.asked.as_slice() else {
            panic!("{place:?}: {text}")
        };
        assert_eq!(
            question.matches("    | +a line of this file\n").count(),
            6 * 450,
            "{place:?}"
        );
        let (text, _) = server.tool("ls", json!({}));
        assert_eq!(text.lines().count(), 6, "{place:?}: {text}");
        server.end();
    }
}
