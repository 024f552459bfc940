//! `--record`, and the list of what it has made.

use crate::support::Shieling;

#[test]
fn what_was_recorded_is_listed_newest_first_and_played_by_its_id() {
    let local = ["exec", "--env", "local", "--approval", "policy"];
    let shieling = Shieling::in_workspace()
        .user_config("record = true")
        .args(local)
        .args(["echo first; sleep 0.1; echo second >&2; exit 4"]);
    let none = shieling.again(["log", "replay"]);
    assert_eq!(
        (none.exit, none.stdout.as_str(), none.stderr.as_str()),
        (Some(0), "", "there are no recordings; `--record` makes them\n")
    );
    let ran = shieling.run();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Some(4), "first\n"));
    let (_, id) = ran
        .stderr
        .split_once("recorded: shieling log replay ")
        .expect("its id is told");
    // Names begin with the second: the next one is to be another.
    let second = || std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    let first = second();
    while second() == first {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let json = shieling.again(
        local
            .iter()
            .copied()
            .chain(["--json", "printf '\\e[31mhostile\\e[m\\n'; true"]),
    );
    assert_eq!(json.stderr, "");
    let second = json.outcome()["recording"].as_str().expect("an id").to_owned();

    let listed = shieling.again(["log", "replay"]);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!((listed.exit, lines.len()), (Some(0), 2), "{listed}");
    assert!(
        lines[0].starts_with(&second) && lines[1].starts_with(id.trim()),
        "{listed}"
    );
    assert!(
        lines[0].ends_with("  printf '\\\\e[31mhostile\\\\e[m\\\\n'; true") || lines[0].contains("hostile"),
        "{listed}"
    );
    assert!(
        lines[1].contains(" B  echo first; sleep 0.1; echo second >&2; exit 4"),
        "{listed}"
    );

    let played = shieling.again(["log", "replay", "--marks", id.trim()]);
    let told: Vec<&str> = played
        .stdout
        .lines()
        .map(|line| line.split("] ").last().expect("one"))
        .collect();
    assert_eq!(
        told,
        [
            "command: echo first; sleep 0.1; echo second >&2; exit 4",
            "approved: policy",
            "first",
            "second",
            "ended: exited 4",
        ]
    );
    let wrong = shieling.again(["log", "replay", "--marks"]);
    assert_eq!(wrong.exit, Some(125), "{wrong}");
}

#[test]
fn a_workspace_cannot_have_commands_recorded_and_a_persons_shell_is_not() {
    let ran = Shieling::in_workspace()
        .file("shieling.toml", "record = true")
        .args(["exec", "true"])
        .run();
    assert_eq!(ran.exit, Some(125));
    assert!(ran.stderr.contains("record"), "{ran}");
    let ran = Shieling::in_workspace().args(["shell", "--record"]).run();
    assert_eq!(ran.exit, Some(125));
    assert!(ran.stderr.contains("`--record` cannot hold"), "{ran}");
}
