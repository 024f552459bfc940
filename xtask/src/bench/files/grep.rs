//! A search of a generated tree, against ripgrep with the same pattern. Ours is sorted, ripgrep's is not.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use shieling::files::{FileRequest, FileResponse, GrepRequest, GrepResponse};

use crate::bench::measure::{Plan, Row, interleaved};
use crate::bench::target::{Target, table};
use crate::subject::{Library, Place};

const FILES: usize = 100_000;
const A_DIRECTORY: usize = 100;
/// One file in so many has the word that is looked for.
const ONE_IN: usize = 500;
const TARGET: Target = Target::Ratio(1.3);

pub(super) fn run(library: &Library, scratch: &Path) -> anyhow::Result<String> {
    let tree = scratch.join("tree");
    make(&tree)?;
    let version = Command::new("rg").arg("--version").output();
    let version = version
        .context("`rg` is missing, and there is no floor without it")?
        .stdout;
    let place = library.local();
    let found = search(&place, "needle")?;
    ensure!(
        found.hits.len() == FILES / ONE_IN,
        "{} lines were found",
        found.hits.len()
    );
    ensure!(ripgrep(&tree, "needle")?.1 == found.hits.len(), "ripgrep found others");

    let mut text = format!(
        "{FILES} files of 1 to 5 KB in {} directories, warm; the floor is `rg -n`: {}.\n",
        FILES / A_DIRECTORY,
        String::from_utf8_lossy(&version).lines().next().unwrap_or_default()
    );
    for (name, pattern) in [("a word", "needle"), ("a class and a word", r"[a-z]+ needle \w+")] {
        let rows = vec![
            Row::new(format!("`rg -n`, {name}"), || Ok(ripgrep(&tree, pattern)?.0)),
            Row::new(format!("library, {name}"), || {
                let start = Instant::now();
                let found = search(&place, pattern)?;
                let took = start.elapsed();
                ensure!(found.searched == FILES as u64, "{} files were searched", found.searched);
                Ok(took)
            }),
        ];
        let plan = Plan {
            rounds: 6,
            calls_a_round: 3,
        };
        let rows = interleaved(rows, plan)?;
        let rows: Vec<_> = rows.into_iter().zip([Target::None, TARGET]).collect();
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{}", table(&rows));
    }
    place.end();
    Ok(text)
}

/// Ripgrep's time, and how many lines it found.
fn ripgrep(tree: &Path, pattern: &str) -> anyhow::Result<(Duration, usize)> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "-n", pattern]).arg(tree);
    let start = Instant::now();
    let output = command.output()?;
    let took = start.elapsed();
    ensure!(
        output.status.success(),
        "it failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok((took, output.stdout.iter().filter(|byte| **byte == b'\n').count()))
}

fn search(place: &Place<'_>, pattern: &str) -> anyhow::Result<GrepResponse> {
    let ask = FileRequest::Grep(GrepRequest {
        path: "tree".into(),
        limit: 1_000,
        ..GrepRequest::new(pattern)
    });
    match place.file(ask)? {
        FileResponse::Grep(found) => Ok(found),
        other => anyhow::bail!("a search gave {other:?}"),
    }
}

/// A tree of texts of few words, the same each time.
fn make(tree: &Path) -> anyhow::Result<()> {
    for number in 0..FILES {
        let directory = number / A_DIRECTORY;
        let parent = tree.join(format!("d{}/e{directory}", directory % 40));
        if number % A_DIRECTORY == 0 {
            fs::create_dir_all(&parent)?;
        }
        let mut text = String::new();
        let lines = 20 + number * 7_919 % 80;
        for line in 0..lines {
            let word = (number * 31 + line * 17) % 997;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "let value{word} = compute(value{line}, \"text of line {word}\");");
        }
        if number % ONE_IN == 0 {
            text.push_str("here the needle lies\n");
        }
        fs::write(parent.join(format!("file{number}.rs")), text)?;
    }
    Ok(())
}
