//! From the start of a process to its exit, as people and their tools call programs: one call right after
//! another, and with pauses between them, when the machine has gone idle.
//!
//! Bubblewrap is measured twice: with the view that a sandbox of ours has, and with a smaller one of some 15
//! mounts. Both show less than ours does of what a command needs and hold none of its limits.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::measure::time;
use super::measure::{Measured, Plan, Row, interleaved, shown};
use super::sandbox::{Exec, Same, bare};
use super::scratch::Scratch;
use super::target::{Target, over};
use crate::subject::{Caller, Library};

/// The pause between two calls of the second table.
const PAUSE: Duration = Duration::from_millis(250);

/// What the rows are called, which the comparisons refer to.
const BARE: &str = "bare `bash --noprofile --norc -c true`";
const WHY: &str = "`shieling why`";
const LOCAL: &str = "`shieling exec --env local`";
const EXEC: &str = "`shieling exec`";
const SAME: &str = "`bwrap` with the same view";
const SMALL: &str = "`bwrap` with 15 mounts";

/// What is aimed at: a row, what it is compared with, and how many times that it may take.
const TARGETS: [(&str, &str, f64); 4] = [
    (WHY, BARE, 2.0),
    (LOCAL, BARE, 3.5),
    (EXEC, SAME, 0.85),
    (EXEC, SMALL, 1.0),
];

/// The whole section. `program` is where the built `shieling` stands.
pub(super) fn run(program: &Path) -> anyhow::Result<String> {
    let scratch = Scratch::new("start")?;
    let caller = Caller::here(scratch.path())?;
    let mut text = String::new();
    for (title, pause, plan) in [
        (
            "One right after another",
            None,
            Plan {
                rounds: 20,
                calls_a_round: 10,
            },
        ),
        (
            "With 0.25 s between calls",
            Some(PAUSE),
            Plan {
                rounds: 12,
                calls_a_round: 4,
            },
        ),
    ] {
        let measured = interleaved(rows(program, &caller, pause)?, plan)?;
        // Writing to a String cannot fail.
        let _ = write!(text, "### {title}\n\n{}\n", told(&measured));
    }
    Ok(text)
}

fn rows<'a>(program: &'a Path, caller: &'a Caller, pause: Option<Duration>) -> anyhow::Result<Vec<Row<'a>>> {
    let row = move |name: &str, command: Box<dyn Fn() -> Command + 'a>| {
        Row::new(name, move || {
            pause.into_iter().for_each(std::thread::sleep);
            time(command())
        })
    };
    let mut rows = vec![
        row(BARE, Box::new(|| bare("true", caller))),
        row(WHY, Box::new(|| why(program, caller))),
    ];
    for (name, environment) in [(LOCAL, "local"), (EXEC, "sandbox")] {
        let exec = Exec::new(program, environment, caller)?;
        rows.push(row(name, Box::new(move || exec.command("true"))));
    }
    let library = Library::new(caller)?;
    let place = library.sandbox();
    let same = Same::new(&place, caller);
    place.close();
    let same = same.context("`bwrap`")?;
    rows.push(row(SAME, Box::new(move || same.command("true"))));
    let output = small(caller).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`bwrap` with fewer mounts: {}", error.trim());
    rows.push(row(SMALL, Box::new(|| small(caller))));
    Ok(rows)
}

fn why(program: &Path, caller: &Caller) -> Command {
    let mut command = Command::new(program);
    command
        .args(["why", "--", "true"])
        .env_clear()
        .envs(caller.variables())
        .current_dir(&caller.workspace)
        .stdin(Stdio::null());
    command
}

/// What people write who show a system read-only, with a workspace and private directories.
fn small(caller: &Caller) -> Command {
    let mut command = Command::new("bwrap");
    command.args([
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]);
    for path in ["/usr", "/etc", "/opt", "/srv", "/var", "/sys", "/media", "/mnt"] {
        command.args(["--ro-bind-try", path, path]);
    }
    for (to, link) in [("usr/bin", "/bin"), ("usr/lib", "/lib"), ("usr/lib64", "/lib64")] {
        command.args(["--symlink", to, link]);
    }
    command
        .args(["--proc", "/proc", "--dev", "/dev"])
        .args(["--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/root"])
        .arg("--bind")
        .args([&caller.workspace, &caller.workspace])
        .args(["--", "/bin/bash", "--noprofile", "--norc", "-c", "true"])
        .env_clear()
        .envs(caller.variables())
        .current_dir(&caller.workspace)
        .stdin(Stdio::null());
    command
}

/// A table, and what is aimed at below it. The first tenth says what a quiet moment gives, where other work
/// disturbs the rest.
fn told(measured: &[Measured]) -> String {
    let mut text = String::from("| row | n | min | first tenth | median | over bare | ratio |\n|-|-|-|-|-|-|-|\n");
    let floor = measured.first().map(Measured::median).unwrap_or_default();
    for (index, row) in measured.iter().enumerate() {
        let name = if index == 0 {
            format!("**{}**", row.name)
        } else {
            row.name.clone()
        };
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {:.2} |",
            row.len(),
            shown(row.quantile(0.0)),
            shown(row.quantile(0.1)),
            shown(row.median()),
            over(row.median(), floor),
            row.median().as_secs_f64() / floor.as_secs_f64(),
        );
    }
    text.push('\n');
    let find = |name: &str| measured.iter().find(|row| row.name == name);
    for (name, beside, most) in TARGETS {
        let (Some(row), Some(beside)) = (find(name), find(beside)) else {
            continue;
        };
        let ratio = |share| row.quantile(share).as_secs_f64() / beside.quantile(share).as_secs_f64();
        let _ = writeln!(
            text,
            "- {name}: {:.2} times {} ({}); {:.2} times in the first tenth.",
            ratio(0.5),
            beside.name,
            Target::Ratio(most).told(row.median(), beside.median()),
            ratio(0.1),
        );
    }
    text
}
