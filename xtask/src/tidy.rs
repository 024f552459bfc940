//! `cargo xtask tidy`: checks the directions between modules, and rules that clippy does not have.
//!
//! The rules are tables in [`rules`] and [`crates`]. This file reads the workspace and prints the findings.

mod crates;
mod cycles;
mod finding;
mod modules;
mod rules;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::workspace::{cargo, root};
use finding::Finding;
use modules::{Arrow, Modules};
use source::Source;

/// Checks the workspace, prints the findings, and fails if there are any.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let mut findings = crates::check(&metadata()?)?;
    let sources = sources(&root())?;
    for source in &sources {
        rules::check(source, &mut findings);
    }
    for arrows in arrows(&sources)?.values() {
        cycles::check(arrows, &mut findings);
        rules::directions(arrows, &sources, &mut findings);
    }
    findings.sort();
    for Finding {
        path,
        line,
        what,
        instead,
    } in &findings
    {
        println!("{path}:{line}: {what}\n    instead  {instead}");
    }
    match findings.len() {
        0 => println!("tidy: {} files, nothing to say", sources.len()),
        count => println!("tidy: {count} findings in {} files", sources.len()),
    }
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the arrows between the files of each crate, by the folder of its sources. A library and a program in one
/// folder count as one crate, since they may share files.
fn arrows(sources: &[Source]) -> anyhow::Result<BTreeMap<String, BTreeSet<Arrow>>> {
    let mut crates: BTreeMap<String, BTreeSet<Arrow>> = BTreeMap::new();
    for main in sources {
        for name in ["lib.rs", "main.rs"] {
            let is_root = |folder: &&str| folder.ends_with("/src/") || folder.contains("/src/bin/");
            if let Some(folder) = main.path.strip_suffix(name).filter(is_root) {
                let modules = Modules::read(main, folder, sources)?;
                crates.entry(folder.to_owned()).or_default().extend(modules.arrows());
            }
        }
    }
    Ok(crates)
}

fn metadata() -> anyhow::Result<serde_json::Value> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cannot start cargo metadata")?;
    anyhow::ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).context("cannot read the answer of cargo metadata")
}

/// Reads every Rust file of the workspace's own crates, sorted by path.
fn sources(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut paths = Vec::new();
    for folder in ["crates", "xtask"] {
        collect(&root.join(folder), &mut paths)?;
    }
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let shown = path
            .strip_prefix(root)
            .unwrap_or(path)
            .to_string_lossy()
            .replace('\\', "/");
        Ok(Source::new(&shown, &text))
    };
    paths.iter().map(read).collect()
}

fn collect(folder: &Path, paths: &mut Vec<std::path::PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && entry.file_name() != "target" {
            collect(&path, paths)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}
