//! The table of differences in PLATFORM.md, which is made from `steps.toml`.

use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::data::Steps;
use super::places::Place;
use crate::workspace::root;

const FILE: &str = "PLATFORM.md";
const BEGIN: &str = "<!-- made by `cargo xtask realwork --table` -->\n";
const END: &str = "<!-- end -->\n";

/// Puts the table into the file.
pub(super) fn write(steps: &Steps) -> anyhow::Result<ExitCode> {
    let path = root().join(FILE);
    let text = fs::read_to_string(&path)?;
    let (before, _, after) = parts(&text)?;
    fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", rows(steps)))?;
    Ok(ExitCode::SUCCESS)
}

/// Fails if the file has another table.
pub(super) fn check(steps: &Steps) -> anyhow::Result<()> {
    let text = fs::read_to_string(root().join(FILE))?;
    if parts(&text)?.1 != rows(steps) {
        bail!("{FILE} does not have the differences of steps.toml: `cargo xtask realwork --table` writes them");
    }
    Ok(())
}

fn parts(text: &str) -> anyhow::Result<(&str, &str, &str)> {
    let found = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (table, after) = rest.split_once(END)?;
        Some((before, table, after))
    });
    found.with_context(|| format!("{FILE} has no place for the table of differences"))
}

fn rows(steps: &Steps) -> String {
    let all: usize = steps.projects.iter().map(|project| project.steps.len()).sum();
    let staged = steps.projects.iter().filter(|project| project.staged);
    let staged: usize = staged.map(|project| project.steps.len()).sum();
    let mut text = format!(
        "Of {all} steps, and {staged} of them once more with `--changes commit`, these differ:\n\n| step | for | inside | why |\n|---|---|---|---|\n"
    );
    for step in steps.projects.iter().flat_map(|project| &project.steps) {
        let places = [(Place::Inside, &step.differs), (Place::Staged, &step.staged)];
        for (place, differs) in places {
            let Some(differs) = differs else { continue };
            let exit = match differs.exit == step.exit {
                true => "other output".to_owned(),
                false => format!("exit {}", differs.exit),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {}{} | {} | {exit} | {} |",
                step.name,
                place.suffix(),
                differs.users.name(),
                differs.because
            );
        }
    }
    text
}
