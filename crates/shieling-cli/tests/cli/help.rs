//! The help texts, reviewed like code.

use crate::support::Shieling;

#[test]
fn the_help_of_every_command_is_as_reviewed() {
    for command in [
        "",
        "exec",
        "shell",
        "mcp",
        "attach",
        "why",
        "describe",
        "doctor",
        "policy",
        "policy check",
        "log",
        "log show",
        "log output",
        "log replay",
    ] {
        let ran = Shieling::in_workspace()
            .args(command.split_whitespace())
            .args(["--help"])
            .run();
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{command}");
        let name = format!(
            "help-{}",
            if command.is_empty() { "shieling" } else { command }.replace(' ', "-")
        );
        insta::assert_snapshot!(name, ran.stdout);
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = Shieling::in_workspace().args(["completions", shell]).run();
        assert_eq!(ran.exit, Some(0), "{shell}");
        assert!(ran.stdout.contains("acknowledge-unsafe"), "{shell}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    use std::io::Read as _;
    for args in [&["completions", "bash"][..], &["exec", "--help"], &["doctor"]] {
        let shieling = Shieling::in_workspace().args(args.iter().copied());
        let mut child = shieling
            .command()
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(
            (child.wait().unwrap().code().is_some(), told.as_str()),
            (true, ""),
            "{args:?}"
        );
    }
}
