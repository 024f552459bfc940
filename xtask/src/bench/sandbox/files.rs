//! What work with many files costs inside of a running sandbox, against the same work outside.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};

use super::start::bare;
use crate::bench::measure::{Plan, Row, cell, interleaved, shown};
use crate::bench::measure::{one_line, time};
use crate::bench::scratch::Scratch;
use crate::bench::target::{Target, over};
use crate::subject::{Caller, Library};

const FILES: usize = 50_000;
const A_DIRECTORY: usize = 100;
const TARGET: Target = Target::Ratio(1.05);

pub(super) fn run(scratch: &Scratch) -> anyhow::Result<String> {
    let (repository, package) = (scratch.path().join("repository"), scratch.path().join("package"));
    make_repository(&repository)?;
    make_package(&package)?;
    let mut text = String::from(
        "In turns, with warm caches; outside is a bare bash, so a start is part of the difference.\n\n\
         | work | n | outside | inside | difference | ratio | target |\n|-|-|-|-|-|-|-|\n",
    );
    let check = "touch src/lib.rs && cargo check --quiet --offline";
    let python = format!("{} -c 'import json'", python());
    for (name, directory, script, calls_a_round) in [
        ("`git status`, 50,000 files", &repository, "git status --short", 4),
        ("`find . -type f | wc -l`", &repository, "find . -type f | wc -l", 4),
        ("`cargo check`, a small crate, one file touched", &package, check, 4),
        ("`python3 -c 'import json'`", &package, &python, 10),
    ] {
        let line = compare(directory, script, calls_a_round)
            .unwrap_or_else(|error| format!("not measured: {} | | | | |", one_line(&error)));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {line} |", cell(name));
    }
    Ok(text)
}

/// One line of the table, but for its name.
fn compare(workspace: &Path, script: &str, calls_a_round: usize) -> anyhow::Result<String> {
    let caller = Caller::here(workspace)?;
    let library = Library::new(&caller)?;
    let place = library.sandbox();
    // Both must do the same, and the caches must know all of it.
    let outside = bare(script, &caller).output()?;
    let error = String::from_utf8_lossy(&outside.stderr);
    ensure!(outside.status.success(), "outside: {}", error.trim());
    let inside = place.run(script)?;
    ensure!(
        inside.stdout.as_bytes() == outside.stdout,
        "inside it said `{}`, outside `{}`",
        inside.stdout.trim(),
        String::from_utf8_lossy(&outside.stdout).trim()
    );
    let rows = vec![
        Row::new("outside", || time(bare(script, &caller))),
        Row::new("inside", || {
            let start = Instant::now();
            place.run(script)?;
            Ok(start.elapsed())
        }),
    ];
    let plan = Plan {
        rounds: 8,
        calls_a_round,
    };
    let n = plan.rounds * calls_a_round;
    let measured = interleaved(rows, plan)?;
    place.close();
    let [outside, inside] = &measured[..] else {
        anyhow::bail!("two rows make two");
    };
    let (outside, inside) = (outside.median(), inside.median());
    Ok(format!(
        "{n} | {} | {} | {} | {:.3} | {}",
        shown(outside),
        shown(inside),
        over(inside, outside),
        inside.as_secs_f64() / outside.as_secs_f64(),
        TARGET.told(inside, outside)
    ))
}

/// The Python that `python3` ends up as: what stands on `PATH` may be a script that looks for it.
fn python() -> String {
    let asked = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    let told = asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    told.ok()
        .filter(|path| !path.is_empty())
        .unwrap_or_else(|| "python3".to_owned())
}

/// A repository of so many files, all of them committed.
fn make_repository(root: &Path) -> anyhow::Result<()> {
    for directory in 0..FILES / A_DIRECTORY {
        let path = root.join(format!("part{}/directory{directory}", directory / 25));
        fs::create_dir_all(&path)?;
        for file in 0..A_DIRECTORY {
            // A hundred contents: what is measured later reads names and times.
            fs::write(path.join(format!("file{file}.txt")), format!("content {file}\n"))?;
        }
    }
    for arguments in [
        &["init", "--quiet"][..],
        &["config", "core.fsync", "none"],
        &["config", "gc.auto", "0"],
        &["add", "--all"],
        &[
            "-c",
            "user.name=bench",
            "-c",
            "user.email=bench@localhost",
            "commit",
            "--quiet",
            "--message",
            "all",
        ],
    ] {
        let done = Command::new("git").args(arguments).current_dir(root).output();
        let done = done.context("git is not installed")?;
        let error = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "git {}: {}", arguments.join(" "), error.trim());
    }
    Ok(())
}

/// A crate without dependencies.
fn make_package(root: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(root.join("src"))?;
    fs::write(
        root.join("Cargo.toml"),
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    )?;
    let mut source = String::from("pub mod shapes {\n");
    for number in 0..200 {
        let _ = writeln!(
            source,
            "    #[derive(Debug, Clone, PartialEq)]\n    pub struct Shape{number} {{ pub sides: Vec<u{}>, pub name: String }}",
            [8, 16, 32, 64][number % 4]
        );
    }
    source.push_str("}\n");
    fs::write(root.join("src/lib.rs"), source)?;
    Ok(())
}
