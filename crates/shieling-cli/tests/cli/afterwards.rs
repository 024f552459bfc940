//! Staged workspaces: whatever a command leaves in one, nothing of it runs in the hands of the user, and ordinary work
//! reaches the workspace without an option.

use std::process::{Command, Output};

use crate::attacks::{Attack, CONTROLS, Place, Shown, attacks, each, share};

/// Runs a script of an agent's in the workspace of a place.
fn agent(place: &Place, mode: &str, script: &str) -> Output {
    let path = place.path();
    std::fs::create_dir_all(path.join("state")).expect("made");
    let variable = |name: &str, value: &str| format!("{name}={value}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_shieling"));
    command
        .args(["exec", "--changes", mode, "--workspace"])
        .arg(path.join("work"));
    for seen in ["payload", "origin.git", "of-lib"] {
        command.arg("--read").arg(path.join(seen));
    }
    for (name, value) in [
        ("T", path.clone()),
        ("W", path.join("work")),
        ("P", path.join("payload")),
    ] {
        command.arg("--set-env").arg(variable(name, &value.to_string_lossy()));
    }
    command
        .arg("--set-env")
        .arg(variable("C", crate::attacks::CRATE))
        .args(["--set-env", "EDITOR=true", "--", script])
        .current_dir(path.join("work"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", path.join("home"))
        .env("XDG_STATE_HOME", path.join("state"))
        .output()
        .expect("the binary was built by cargo")
}

fn said(output: &Output) -> String {
    format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))
}

fn is_of_a_home(attack: &Attack) -> bool {
    // A home as workspace is refused without an option of its own.
    matches!(attack.shown, Shown::By(command) if command.starts_with("HOME=$W"))
}

#[test]
fn nothing_that_leaves_a_staged_workspace_runs_in_the_hands_of_the_user() {
    let attacks: Vec<Attack> = attacks().into_iter().filter(|attack| !is_of_a_home(attack)).collect();
    let attacks = share(attacks, 29);
    for mode in ["commit", "review", "discard"] {
        let wrong = each(&attacks, |attack| {
            let place = Place::new();
            let output = agent(&place, mode, &attack.script);
            place.forget();
            if place.use_tools(attack) {
                return Some(format!("it ran ({})", said(&output)));
            }
            // The bits are refused to the command itself.
            let is_refused = attack.name.starts_with("set-");
            let is_told = said(&output).contains("held     ") || mode == "discard" || is_refused;
            (!is_told).then(|| format!("nothing was held back ({})", said(&output)))
        });
        assert!(
            wrong.is_empty(),
            "{mode}: {} of {}\n{}",
            wrong.len(),
            attacks.len(),
            wrong.join("\n")
        );
    }
}

#[test]
fn ordinary_work_leaves_a_staged_workspace_without_an_option() {
    let controls = share(CONTROLS.to_vec(), 7);
    let wrong: Vec<String> = controls.iter().filter_map(|control| wrong_of(control)).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        controls.len(),
        wrong.join("\n")
    );
}

/// What an overlay cannot do without privileges, and what git says of it: a directory of the workspace is not renamed in
/// one step (`mv` copies it), and a hard link to a file of the workspace has a number of its own.
const UNABLE: &[(&str, &str)] = &[
    ("git clone -q nested copy", "hardlink different from source"),
    ("submodule --quiet add", "hardlink different from source"),
    ("git mv src source", "Invalid cross-device link"),
];

fn wrong_of(control: &str) -> Option<String> {
    let place = Place::new();
    let output = agent(&place, "commit", &format!("set -e; {control}"));
    if let Some((_, why)) = UNABLE.iter().find(|(part, _)| control.contains(part)) {
        let is_known = !output.status.success() && said(&output).contains(why);
        return (!is_known).then(|| format!("{control}: it is listed as what fails with `{why}`: {}", said(&output)));
    }
    if !output.status.success() || said(&output).contains("held     ") {
        return Some(format!("{control}: {}", said(&output)));
    }
    let look = "test ! -e .git || git fsck --no-progress; test ! -e .git || git status";
    let (is_fine, why) = place.run("work", "", look);
    (!is_fine).then(|| format!("{control}: afterwards {why}"))
}
