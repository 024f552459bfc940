//! Staged workspaces, as their user has them: what is committed, what waits, and what becomes of that.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use shieling_testkit::prerequisite;

use crate::mcp::Server;
use crate::support::{Ran, Shieling};

/// Runs a command in a workspace whose changes are staged, and gives the outcome.
fn staged(shieling: &Shieling, mode: &str, command: &str) -> (Ran, Value) {
    let ran = shieling.again(["exec", "--json", "--changes", mode, "--", command]);
    let outcome = ran.outcome();
    assert_eq!(outcome["exit_code"], 0, "{ran}");
    assert_eq!(outcome["error"], Value::Null, "{ran}");
    assert_eq!(outcome["changes"]["mode"], mode, "{ran}");
    (ran, outcome["changes"].clone())
}

fn read(shieling: &Shieling, path: &str) -> String {
    fs::read_to_string(shieling.workspace().join(path)).unwrap_or_else(|error| format!("{path}: {error}"))
}

fn ok(ran: &Ran) -> &str {
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{ran}");
    &ran.stdout
}

fn sets(shieling: &Shieling) -> Vec<Value> {
    let listed = shieling.again(["changes", "list", "--json"]);
    ok(&listed)
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object on each line"))
        .collect()
}

/// Later by the clock of the file system.
fn tick() {
    std::thread::sleep(Duration::from_millis(12));
}

#[test]
fn commit_moves_what_a_command_made_into_the_workspace_and_undo_takes_it_back() {
    let shieling = Shieling::in_workspace().file("a", "1\n").file("gone", "1\n");
    let (ran, changes) = staged(
        &shieling,
        "commit",
        "echo 2 > a; rm gone; mkdir -p new/deep; echo x > new/deep/file; ls",
    );
    assert_eq!(ran.outcome()["stdout"], "a\nnew\n");
    assert_eq!(changes["state"], "committed", "{ran}");
    assert_eq!(changes["added"], json!(["new", "new/deep", "new/deep/file"]));
    assert_eq!(
        (&changes["modified"], &changes["deleted"]),
        (&json!(["a"]), &json!(["gone"]))
    );
    assert_eq!(changes["totals"]["added"], 3);
    assert_eq!(
        (read(&shieling, "a"), read(&shieling, "new/deep/file")),
        ("2\n".into(), "x\n".into())
    );
    assert!(!shieling.workspace().join("gone").exists());
    let id = changes["id"].as_str().expect("a set that can be undone");
    assert!(ok(&shieling.again(["undo", id])).starts_with("undone"));
    assert_eq!(
        (read(&shieling, "a"), read(&shieling, "gone")),
        ("1\n".into(), "1\n".into())
    );
    assert!(!shieling.workspace().join("new").exists());
    let again = shieling.again(["changes", "apply", id]);
    assert!(
        ok(&again).contains("applied  3 added, 1 modified, 1 deleted"),
        "{again}"
    );
    assert_eq!(read(&shieling, "a"), "2\n");
    let (_, nothing) = staged(&shieling, "commit", "true");
    assert_eq!((&nothing["id"], &nothing["state"]), (&Value::Null, &json!("committed")));
}

#[test]
fn discard_leaves_everything_as_it_was() {
    let shieling = Shieling::in_workspace().file("a", "1\n");
    let (ran, changes) = staged(&shieling, "discard", "echo 2 > a; touch b; rm -rf .git; cat a");
    assert_eq!(ran.outcome()["stdout"], "2\n");
    assert_eq!((&changes["state"], &changes["id"]), (&json!("discarded"), &Value::Null));
    assert_eq!(
        (&changes["added"], &changes["modified"]),
        (&json!(["b"]), &json!(["a"]))
    );
    assert_eq!(read(&shieling, "a"), "1\n");
    assert!(!shieling.workspace().join("b").exists());
    assert_eq!(sets(&shieling), Vec::<Value>::new());
    let plain = shieling.again(["exec", "--changes", "discard", "--", "touch b"]);
    assert_eq!(
        plain.stderr, "changes  1 added, 0 modified, 0 deleted: discarded\n",
        "{plain}"
    );
}

#[test]
fn a_review_that_nobody_answers_waits_across_processes_and_is_applied_in_parts() {
    let shieling = Shieling::in_workspace().file("a", "1\n").file("b", "1\n");
    let (ran, changes) = staged(
        &shieling,
        "review",
        "echo 2 > a; echo 2 > b; mkdir n; echo x > n/x; echo y > n/y",
    );
    assert_eq!(changes["state"], "waiting", "{ran}");
    let id = changes["id"].as_str().expect("a set that waits");
    assert_eq!(
        (read(&shieling, "a"), read(&shieling, "b")),
        ("1\n".into(), "1\n".into())
    );
    let listed = sets(&shieling);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&json!(id), &json!("waiting")));
    let shown = shieling.again(["changes", "show", id]);
    assert!(
        ok(&shown).contains("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"),
        "{shown}"
    );
    let part = shieling.again(["changes", "apply", id, "--only", "a", "--only", "n/x"]);
    assert!(
        ok(&part).contains("applied  2 added, 1 modified") || ok(&part).contains("applied  1 added, 1 modified"),
        "{part}"
    );
    assert_eq!(
        (read(&shieling, "a"), read(&shieling, "b")),
        ("2\n".into(), "1\n".into())
    );
    assert!(shieling.workspace().join("n/x").exists() && !shieling.workspace().join("n/y").exists());
    let rest = shieling.again(["changes", "apply", id]);
    ok(&rest);
    assert_eq!(
        (read(&shieling, "b"), read(&shieling, "n/y")),
        ("2\n".into(), "y\n".into())
    );
    let wrong = shieling.again(["changes", "show", "00000000"]);
    assert_eq!(wrong.exit, Some(125), "{wrong}");
    assert_eq!(
        wrong.stderr,
        "error: no change set `00000000`\ninstead  see `shieling changes list`\n"
    );
}

#[test]
fn a_conflict_keeps_both_versions_and_texts_merge_where_they_can() {
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let shieling = Shieling::in_workspace().file("both", "1\n").file("merges", lines);
    tick();
    let (_, changes) = staged(&shieling, "review", "echo agent > both; sed -i s/1/agent/ merges");
    let id = changes["id"].as_str().expect("a set that waits");
    tick();
    fs::write(shieling.workspace().join("both"), "user\n").expect("written");
    fs::write(shieling.workspace().join("merges"), lines.replace('9', "user")).expect("written");
    let refused = shieling.again(["changes", "apply", id]);
    assert_eq!(refused.exit, Some(1), "{refused}");
    assert!(
        refused
            .stdout
            .contains("conflict `both`: a command wrote it, and it changed in the workspace meanwhile"),
        "{refused}"
    );
    assert_eq!(
        (read(&shieling, "both"), read(&shieling, "merges")),
        ("user\n".into(), lines.replace('9', "user"))
    );
    ok(&shieling.again(["changes", "apply", id, "--only", "merges"]));
    assert_eq!(read(&shieling, "merges"), "agent\n2\n3\n4\n5\n6\n7\n8\nuser\n");
    let forced = shieling.again(["changes", "apply", id, "--overwrite"]);
    assert_eq!(forced.exit, Some(0), "{forced}");
    assert_eq!(read(&shieling, "both"), "agent\n");
    ok(&shieling.again(["undo", id]));
    assert_eq!(read(&shieling, "both"), "user\n");
    ok(&shieling.again(["changes", "discard", id]));
    let left = sets(&shieling);
    assert!(left.iter().all(|set| set["state"] == "committed"), "{left:?}");
}

#[test]
fn what_is_hidden_stays_hidden_and_is_not_lost() {
    let probe = "for path in .env d/.env; do cat $path 2>/dev/null || echo no; done\n";
    let shieling = Shieling::in_workspace()
        .file(".env", "secret\n")
        .file("a", "1\n")
        .file("probe", probe);
    fs::create_dir(shieling.workspace().join("d")).expect("made");
    fs::write(shieling.workspace().join("d/.env"), "secret\n").expect("written");
    let ran = shieling.again([
        "exec",
        "--json",
        "--changes",
        "commit",
        "--ignore",
        ".env",
        "--",
        "bash probe; rm -rf d a; true",
    ]);
    assert_eq!(ran.outcome()["stdout"], "no\nno\n", "{ran}");
    assert_eq!(
        (read(&shieling, ".env"), read(&shieling, "d/.env")),
        ("secret\n".into(), "secret\n".into())
    );
    assert!(!shieling.workspace().join("a").exists(), "{ran}");
}

#[test]
fn a_command_whose_changes_cannot_be_committed_has_not_succeeded() {
    let shieling = Shieling::in_workspace();
    // Deeper than a set can be.
    let command = "echo 1 > a; for n in $(seq 300); do mkdir d; cd d; done";
    let ran = shieling.again(["exec", "--changes", "commit", "--", command]);
    assert_eq!(ran.exit, Some(125), "{ran}");
    assert!(
        ran.stderr.contains("were not committed") && ran.stderr.contains("not counted: waiting as"),
        "{ran}"
    );
    assert!(!shieling.workspace().join("a").exists(), "{ran}");
    let json = shieling.again(["exec", "--json", "--changes", "commit", "--", command]);
    assert_eq!(json.exit, Some(125), "{json}");
    assert_eq!(json.outcome()["exit_code"], 0, "it is the command's own: {json}");
    assert_eq!(json.outcome()["changes"]["totals"], Value::Null, "{json}");
    let own = shieling.again(["exec", "--changes", "commit", "--", &format!("{command}; exit 3")]);
    assert_eq!(own.exit, Some(3), "{own}");
}

#[test]
fn a_socket_is_held_back_and_the_rest_is_committed() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let shieling = Shieling::in_workspace();
    let command = "echo important > result; python3 -c 'import socket; socket.socket(1).bind(\"so\")'";
    for mode in ["commit", "review"] {
        let (ran, changes) = staged(&shieling, mode, command);
        assert_eq!(changes["held_back"][0]["path"], "so", "{ran}");
        if mode == "review" {
            let id = changes["id"].as_str().expect("a set that waits");
            let applied = shieling.again(["changes", "apply", id]);
            assert_eq!(applied.exit, Some(0), "{applied}");
        }
        assert_eq!(read(&shieling, "result"), "important\n", "{ran}");
        fs::remove_file(shieling.workspace().join("result")).expect("it is there");
    }
}

#[test]
fn staging_where_nothing_can_change_is_told_to_have_no_effect() {
    let shieling = Shieling::in_workspace();
    for mode in ["commit", "review"] {
        let ran = shieling.again(["exec", "--readonly", "--changes", mode, "--", "true"]);
        let told = format!(
            "note: `--changes {mode}` has no effect with `--readonly`, under which nothing in the workspace changes\n"
        );
        assert_eq!((ran.exit, &ran.stderr), (Some(0), &told), "{ran}");
    }
    let ran = shieling.again(["exec", "--readonly", "--changes", "discard", "--", "true"]);
    assert_eq!(ran.stderr, "", "{ran}");
}

#[test]
fn staging_is_refused_by_name_where_it_cannot_hold() {
    let shieling = Shieling::in_workspace();
    for (options, expected) in [
        (&["--env", "memory"][..], "`--changes` cannot be enforced in `memory`"),
        (
            &["--env", "local", "--approval", "policy"],
            "`--changes` cannot be enforced in `local`",
        ),
        (
            &["--isolation", "landlock", "--network", "none"],
            "`--changes commit` cannot hold here",
        ),
        (&["--write", "/var/tmp"], "`--changes commit` cannot hold here"),
    ] {
        let mut words = vec!["exec", "--changes", "commit"];
        words.extend(options);
        words.extend(["--", "true"]);
        let ran = shieling.again(words);
        assert!(
            ran.exit == Some(125) && ran.stderr.contains(expected),
            "{options:?}: {ran}"
        );
        assert!(
            ran.stderr.contains("instead") || ran.stderr.contains("--changes direct"),
            "{ran}"
        );
    }
}

#[test]
fn a_policy_file_in_the_workspace_is_held_back_and_can_be_accepted() {
    let rules = "[[rule]]\nid = \"x\"\ndecision = \"deny\"\ncommand = \"git push\"\n";
    let shieling = Shieling::in_workspace().file("rules.toml", rules).file("a", "1\n");
    let ran = shieling.again([
        "exec",
        "--json",
        "--changes",
        "commit",
        "--policy",
        "rules.toml",
        "--",
        "echo > rules.toml; echo 2 > a",
    ]);
    let changes = ran.outcome()["changes"].clone();
    assert_eq!(changes["held_back"][0]["path"], "rules.toml", "{ran}");
    assert_eq!(
        (read(&shieling, "rules.toml"), read(&shieling, "a")),
        (rules.into(), "2\n".into())
    );
    let held = sets(&shieling)
        .into_iter()
        .find(|set| set["state"] == "waiting")
        .expect("it waits");
    let id = held["id"].as_str().expect("an id");
    let accepted = shieling.again(["changes", "apply", id, "--accept-held-back", "--only", "rules.toml"]);
    ok(&accepted);
    assert_eq!(read(&shieling, "rules.toml"), "\n");
    assert!(
        sets(&shieling).iter().all(|set| set["state"] == "committed"),
        "nothing waits any more"
    );
}

/// A policy file beside the workspace, and the options that choose it.
fn ruled(text: &str) -> Shieling {
    let shieling = Shieling::in_workspace().file("policy.toml", text);
    for (directory, file) in [("src", "src/a"), ("migrations", "migrations/1")] {
        fs::create_dir(shieling.workspace().join(directory)).expect("made");
        fs::write(shieling.workspace().join(file), "1\n").expect("written");
    }
    shieling
}

fn held(changes: &Value) -> Vec<&str> {
    let held = changes["held_back"].as_array().expect("a list");
    held.iter().filter_map(|held| held["path"].as_str()).collect()
}

fn under(shieling: &Shieling, mode: &str, command: &str) -> Ran {
    shieling.again([
        "exec",
        "--json",
        "--changes",
        mode,
        "--policy",
        "./policy.toml",
        "--",
        command,
    ])
}

#[test]
fn what_a_rule_says_of_changes_is_held_back_whatever_program_made_them() {
    let shieling = ruled(
        "[[rule]]\nid = \"ci\"\ndecision = \"deny\"\nchanges = \".github/**\"\ndeletes = \"migrations/**\"\n\
         because = \"CI is reviewed by people\"\nmatch = [\"adds .github/a\", \"deletes migrations/1\"]\n",
    );
    let ran = under(
        &shieling,
        "commit",
        "mkdir -p .github/w stage; echo x > stage/y; cp stage/y .github/w/y; mv stage .github/moved; rm -r migrations; \
         ln src/a src/b; printf 2 > src/a; exec perl -e 'mkdir \"m2\"; open F, \">.github/p\"; print F 1' ",
    );
    let outcome = ran.outcome();
    let changes = &outcome["changes"];
    assert_eq!(changes["state"], "committed", "{ran}");
    let found = held(changes);
    for path in [".github/w/y", ".github/moved/y", ".github/p", "migrations/1"] {
        assert!(found.contains(&path), "{path}: {ran}");
    }
    let why = changes["held_back"][0]["because"].as_str().unwrap_or_default();
    assert!(why.ends_with("(ci): CI is reviewed by people"), "{why}");
    assert_eq!(
        (read(&shieling, "src/b"), read(&shieling, "migrations/1")),
        ("2".into(), "1\n".into())
    );
    assert!(!shieling.workspace().join(".github/p").exists(), "{ran}");
    assert!(shieling.workspace().join("m2").exists(), "{ran}");
    let sets = sets(&shieling);
    let waiting = sets
        .iter()
        .find(|set| set["state"] == "waiting")
        .expect("what was held back");
    let id = waiting["id"].as_str().expect("an id");
    ok(&shieling.again(["changes", "apply", id, "--accept-held-back", "--only", ".github/p"]));
    assert_eq!(read(&shieling, ".github/p"), "1");
}

#[test]
fn more_files_or_bytes_than_a_rule_takes_are_held_back_and_the_rest_is_not() {
    let shieling = ruled(
        "[[rule]]\ndecision = \"ask\"\nmax_files = 3\nchanges = \"src/**\"\n\
         [[rule]]\ndecision = \"deny\"\nmax_bytes = \"1MB\"\n",
    );
    let few = under(&shieling, "commit", "touch src/{x,y,z} other").outcome();
    assert_eq!(
        (held(&few["changes"]), &few["changes"]["state"]),
        (vec![], &json!("committed"))
    );
    let many = under(
        &shieling,
        "commit",
        "for n in 1 2 3 4; do echo $n > src/n$n; done; touch more",
    )
    .outcome();
    assert_eq!(
        held(&many["changes"]),
        ["src/n1", "src/n2", "src/n3", "src/n4"],
        "{many}"
    );
    let because = many["changes"]["held_back"][0]["because"].as_str().unwrap_or_default();
    assert!(
        because.ends_with("(it changes 4 files, and `max_files` is 3)"),
        "{because}"
    );
    assert!(shieling.workspace().join("more").exists() && !shieling.workspace().join("src/n1").exists());
    let large = under(&shieling, "commit", "head -c 1000001 /dev/zero > large; touch small").outcome();
    assert_eq!(held(&large["changes"]), ["large", "small"], "{large}");
    // A person who sees the whole set needs no bound that asks.
    let review = under(&shieling, "review", "for n in 1 2 3 4; do echo $n > src/n$n; done").outcome();
    assert_eq!(
        (held(&review["changes"]), &review["changes"]["state"]),
        (vec![], &json!("waiting"))
    );
}

#[test]
fn only_what_a_rule_allows_is_committed_where_the_default_denies() {
    let shieling = ruled(
        "default = \"deny\"\n[[rule]]\ndecision = \"allow\"\nchanges = \"src/**\"\n\
         [[rule]]\ndecision = \"allow\"\ncommand = [\"mkdir\", \"cp\"]\n",
    );
    let ran = under(
        &shieling,
        "commit",
        "mkdir -p src/deep out && cp src/a src/deep/a && cp src/a out/a",
    )
    .outcome();
    assert_eq!(held(&ran["changes"]), ["out/a"], "{ran}");
    assert_eq!(read(&shieling, "src/deep/a"), "1\n");
    assert!(!shieling.workspace().join("out/a").exists());
}

#[test]
fn rules_about_changes_are_refused_where_nothing_holds_changes_back() {
    let shieling = ruled("[[rule]]\ndecision = \"deny\"\nchanges = \"*.lock\"\n");
    for options in [
        &["--changes", "direct"][..],
        &["--env", "local", "--approval", "policy"],
    ] {
        let mut arguments = vec!["exec", "--policy", "./policy.toml"];
        arguments.extend(options);
        arguments.extend(["--", "touch ran"]);
        let ran = shieling.again(arguments);
        assert_eq!(ran.exit, Some(125), "{ran}");
        assert!(
            ran.stderr.contains("`--changes commit`, `review` or `discard`"),
            "{ran}"
        );
        assert!(!shieling.workspace().join("ran").exists());
    }
    let readonly = shieling.again(["exec", "--readonly", "--policy", "./policy.toml", "--", "true"]);
    assert_eq!(readonly.exit, Some(0), "nothing changes: {readonly}");
}

#[test]
fn links_to_toolchains_pass_and_links_to_other_files_stay_behind() {
    let shieling = Shieling::in_workspace();
    let (ran, changes) = staged(
        &shieling,
        "commit",
        "ln -s $(command -v bash) shell; ln -s /etc/shadow out; touch -d @1 .",
    );
    let held: Vec<&str> = changes["held_back"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|held| held["path"].as_str())
        .collect();
    assert_eq!(held, ["out"], "{ran}");
    assert!(shieling.workspace().join("shell").is_symlink() && !shieling.workspace().join("out").is_symlink());
    let waiting = sets(&shieling)
        .into_iter()
        .find(|set| set["state"] == "waiting")
        .expect("it waits");
    assert_eq!(
        (&waiting["added"], &waiting["held_back"]),
        (&json!(1), &json!(1)),
        "{waiting}"
    );
}

#[test]
fn what_a_command_had_made_when_shieling_was_killed_waits() {
    let shieling = Shieling::in_workspace().file("a", "1\n");
    let script = "echo 2 > a; touch made; sleep 1000";
    let mut command = shieling.command_of(["exec", "--changes", "commit", "--", script].map(str::to_owned));
    let mut child = command.stdin(std::process::Stdio::null()).spawn().expect("it starts");
    let state = shieling.workspace().with_file_name("state").join("shieling/changes");
    let is_made = || {
        let sets = fs::read_dir(&state).into_iter().flatten().flatten();
        sets.into_iter().any(|set| set.path().join("upper/made").exists())
    };
    let began = std::time::Instant::now();
    while !is_made() {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing is made");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killed");
    child.wait().expect("it has ended");
    // Its lock goes with its last process.
    let waiting = loop {
        let listed = sets(&shieling);
        if listed.len() == 1 && listed[0]["in_use"] == false {
            break listed[0].clone();
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{listed:?}");
    };
    assert_eq!(
        (&waiting["state"], &waiting["command"]),
        (&json!("waiting"), &json!(script))
    );
    assert_eq!(read(&shieling, "a"), "1\n");
    ok(&shieling.again(["changes", "apply", waiting["id"].as_str().expect("an id")]));
    assert!(read(&shieling, "a") == "2\n" && shieling.workspace().join("made").exists());
}

/// A server whose writes are staged.
fn server(mode: &str, can: Value) -> Server {
    let shieling = Shieling::in_workspace().file("a", "1\n").file("config", "1\n");
    Server::start(shieling.args(["mcp", "--changes", mode]), can)
}

fn workspace(server: &Server) -> std::path::PathBuf {
    server.workspace()
}

fn text(place: &Path, path: &str) -> String {
    fs::read_to_string(place.join(path)).unwrap_or_else(|error| format!("{path}: {error}"))
}

#[test]
fn sessions_files_and_jobs_see_one_view_and_each_command_is_committed() {
    let mut server = server("commit", json!({}));
    let place = workspace(&server);
    let (_, outcome) = server.shell(json!({"command": "mkdir -p src/deep; cd src/deep; echo 1 > file; keep=variable"}));
    assert_eq!(outcome["changes"]["state"], "committed", "{outcome}");
    assert_eq!(text(&place, "src/deep/file"), "1\n");
    // A tool for files sees it, and its own change is committed too.
    let (told, _) = server.tool("read_file", json!({"path": "src/deep/file"}));
    assert!(told.contains('1'), "{told}");
    server.tool("edit_file", json!({"path": "src/deep/file", "old": "1", "new": "2"}));
    assert_eq!(text(&place, "src/deep/file"), "2\n");
    // The user changes what was committed, and something that no command touched; both are seen.
    tick();
    fs::write(place.join("src/deep/file"), "user\n").expect("written");
    fs::write(place.join("src/deep/new"), "user\n").expect("written");
    fs::write(place.join("a"), "user\n").expect("written");
    let (_, outcome) = server.shell(json!({"command": "cat file new ../../a; pwd; echo $keep"}));
    let expected = format!("user\nuser\nuser\n{}\nvariable\n", place.join("src/deep").display());
    assert_eq!(outcome["stdout"], expected, "{outcome}");
    // A job that runs: its changes go with later commands', and it sees what they edit.
    let (_, job) = server.shell(json!({
        "command": "cd $OLDPWD 2>/dev/null; while :; do cat config >> served; sleep 0.05; done", "background": true,
    }));
    assert_eq!(job["status"], "running", "{job}");
    let wait = "cd ../..; echo 2 > config; until grep -q 2 served; do sleep 0.05; done";
    let (_, outcome) = server.shell(json!({"command": wait}));
    assert_eq!(
        (&outcome["exit_code"], &outcome["changes"]["state"]),
        (&json!(0), &json!("committed")),
        "{outcome}"
    );
    assert!(
        text(&place, "served").contains('2'),
        "what the job wrote was committed with the command"
    );
    tick();
    fs::write(place.join("config"), "user\n").expect("written");
    let (_, outcome) = server.shell(json!({"command": "until grep -q user served; do sleep 0.05; done"}));
    assert_eq!(outcome["exit_code"], 0, "{outcome}");
    server.tool("shell_kill", json!({"job": job["job"]}));
    let (_place, exit, _, _) = server.end();
    assert_eq!(exit, Some(0));
    assert_eq!(text(&place, "config"), "user\n");
}

#[test]
fn a_client_s_person_reviews_the_diff() {
    let mut server = server("review", json!({"elicitation": {}}));
    let place = workspace(&server);
    let (_, outcome) = server.shell(json!({"command": "echo 2 > a; cat a"}));
    // The test's client says yes.
    assert_eq!(outcome["stdout"], "2\n");
    assert_eq!(outcome["changes"]["state"], "committed", "{outcome}");
    assert_eq!(text(&place, "a"), "2\n");
    let asked = server.asked();
    assert!(
        asked
            .iter()
            .any(|question| question.contains("-1") && question.contains("+2")),
        "{asked:?}"
    );
    server.end();
}

#[test]
fn a_rename_is_told_as_one_in_the_outcome_the_list_and_the_diff() {
    let shieling = Shieling::in_workspace().file("a", "1\n").file("b", "2\n");
    let (_, changes) = staged(&shieling, "review", "mkdir d; mv a d/a; echo 3 > b");
    let renamed = json!([{"old_path": "a", "new_path": "d/a"}]);
    assert_eq!(
        (&changes["renamed"], &changes["totals"]["renamed"]),
        (&renamed, &json!(1)),
        "{changes}"
    );
    // They are added and deleted still, for whoever reads only that.
    assert_eq!(
        (&changes["added"], &changes["deleted"]),
        (&json!(["d", "d/a"]), &json!(["a"]))
    );
    let id = changes["id"].as_str().expect("an id");
    let listed = shieling.again(["changes", "list"]);
    assert!(listed.stdout.contains("1 deleted, 1 of them renamed"), "{listed}");
    assert_eq!(sets(&shieling)[0]["renamed"], 1);
    let shown = shieling.again(["changes", "show", id]);
    assert!(
        shown.stdout.contains("renamed file a to d/a\n")
            && shown.stdout.contains("+3")
            && !shown.stdout.contains("\n-1\n"),
        "{shown}"
    );
    let shown = shieling.again(["changes", "show", id, "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(shown["paths"]["renamed"], renamed, "{shown}");
    ok(&shieling.again(["changes", "apply", id]));
    assert!(read(&shieling, "d/a") == "1\n" && !shieling.workspace().join("a").exists());
}

#[test]
fn a_held_back_hook_is_accepted_by_a_client_s_person_and_stays() {
    for mode in ["direct", "commit"] {
        let mut server = server(mode, json!({"elicitation": {}}));
        let place = workspace(&server);
        let hook = "git init -q .; printf '#!/bin/sh\\necho hooked\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit";
        let (told, outcome) = server.shell(json!({"command": hook}));
        let changes = &outcome["changes"];
        assert_eq!(changes["held_back"], json!([]), "{mode}: {outcome}");
        assert_eq!(
            changes["accepted"][0]["path"], ".git/hooks/post-commit",
            "{mode}: {outcome}"
        );
        assert!(told.contains("the user has let it into the workspace"), "{told}");
        let asked = server.asked().join("\n");
        assert!(
            asked.contains("+echo hooked") && asked.contains("it was held back"),
            "{asked}"
        );
        assert!(text(&place, ".git/hooks/post-commit").contains("hooked"));
        // It takes no part in what the next command has to answer for.
        let (_, outcome) = server.shell(json!({"command": "ls .git/hooks/post-commit"}));
        assert_eq!(outcome["exit_code"], 0, "{mode}: {outcome}");
        let id = changes["accepted"][0]["id"].as_str().expect("an id").to_owned();
        let (shieling, ..) = server.end();
        assert!(
            text(&place, ".git/hooks/post-commit").contains("hooked"),
            "{mode}: after its end"
        );
        ok(&shieling.again(["undo", &id]));
        assert!(!place.join(".git/hooks/post-commit").exists(), "{mode}");
    }
}

#[test]
fn a_client_that_cannot_ask_is_told_what_waits() {
    let mut server = server("review", json!({}));
    let place = workspace(&server);
    let (told, outcome) = server.shell(json!({"command": "echo 2 > a"}));
    assert_eq!(outcome["changes"]["state"], "waiting", "{outcome}");
    let id = outcome["changes"]["id"].as_str().expect("an id").to_owned();
    assert!(told.contains(&format!("shieling changes apply {id}")), "{told}");
    let (_, outcome) = server.shell(json!({"command": "cat a; echo 3 > b"}));
    assert_eq!(
        (&outcome["stdout"], &outcome["changes"]["id"]),
        (&json!("2\n"), &json!(id)),
        "{outcome}"
    );
    assert_eq!(text(&place, "a"), "1\n");
    let (told, _) = server.tool("environment", json!({}));
    assert!(told.contains("staged"), "{told}");
    let (shieling, ..) = server.end();
    let applied = shieling.again(["changes", "apply", &id]);
    ok(&applied);
    assert_eq!((text(&place, "a"), text(&place, "b")), ("2\n".into(), "3\n".into()));
}

#[test]
fn what_waits_when_a_server_ends_is_listed_told_to_the_next_server_s_client_and_applied() {
    let mut first = server("review", json!({}));
    let place = workspace(&first);
    let (_, outcome) = first.shell(json!({"command": "echo 2 > a; echo new > new"}));
    assert_eq!(outcome["changes"]["state"], "waiting", "{outcome}");
    let id = outcome["changes"]["id"].as_str().expect("an id").to_owned();
    // One is ended in good order, the next is killed.
    let (shieling, exit, ..) = first.end();
    assert_eq!(exit, Some(0));
    let listed = |shieling: &Shieling| {
        let waiting = sets(shieling).into_iter().filter(|set| set["state"] == "waiting");
        waiting
            .map(|set| set["id"].as_str().expect("an id").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(&shieling), std::slice::from_ref(&id));
    let command = shieling.command();
    let mut second = Server::start_by(shieling, command, json!({}));
    let (told, _) = second.tool("environment", json!({}));
    assert!(
        told.contains(&format!("wait for a person and are not seen here: {id}"))
            && told.contains("shieling changes list"),
        "{told}"
    );
    // Its commands see the workspace, and the set waits on beside theirs.
    let (_, outcome) = second.shell(json!({"command": "cat a; ls new; echo 3 > b"}));
    assert_eq!(outcome["stdout"], "1\n", "{outcome}");
    let other = outcome["changes"]["id"].as_str().expect("an id").to_owned();
    assert_ne!(other, id);
    let pid = i32::try_from(second.pid())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.expect("a number"), rustix::process::Signal::KILL).expect("it runs");
    let (shieling, ..) = second.end();
    let command = shieling.command();
    let mut third = Server::start_by(shieling, command, json!({"elicitation": {}}));
    let (told, _) = third.tool("environment", json!({}));
    assert!(
        told.contains("wait for a person") && told.contains(" and 1 more"),
        "{told}"
    );
    let (shieling, ..) = third.end();
    let mut waiting = listed(&shieling);
    waiting.sort();
    let mut expected = vec![id.clone(), other.clone()];
    expected.sort();
    assert_eq!(waiting, expected);
    for id in [&id, &other] {
        ok(&shieling.again(["changes", "apply", id]));
    }
    assert_eq!(
        ["a", "new", "b"].map(|name| text(&place, name)),
        ["2\n", "new\n", "3\n"]
    );
    // What is done is not told any more.
    let command = shieling.command();
    let mut last = Server::start_by(shieling, command, json!({}));
    let (told, _) = last.tool("environment", json!({}));
    assert!(!told.contains("wait for a person"), "{told}");
    last.end();
}
