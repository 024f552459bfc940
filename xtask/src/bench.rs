//! `cargo xtask bench`: the figures in BENCHMARKS.md, all as ratios to a floor of the same run.
//!
//! A row whose subject is not built yet says so and is not imitated. Takes less than six minutes on
//! two cores.

mod containers;
mod files;
mod measure;
mod memory;
mod process;
mod remote;
mod sandbox;
mod scratch;
mod session;
mod start;
mod target;
mod verdict;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use scratch::Scratch;

use crate::subject;
use crate::workspace::{cargo, root};

/// Measures everything and writes BENCHMARKS.md, or measures one section and prints it.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let only = match arguments {
        [] => None,
        [section] if SECTIONS.contains(&&**section) => Some(&**section),
        _ => bail!("`bench` takes one section, or none for all: {}", SECTIONS.join(", ")),
    };
    if cfg!(debug_assertions) {
        let mut again = vec!["bench".to_owned()];
        again.extend_from_slice(arguments);
        return crate::workspace::again_in_release(&again);
    }
    let start = Instant::now();
    if only.is_none_or(|only| !IN_PROCESS.contains(&only)) {
        let built = cargo()
            .args(["build", "--release", "--quiet", "--package", "shieling-cli"])
            .status()?;
        ensure!(built.success(), "the command line does not build");
    }
    let mut text = format!(
        "# Benchmarks\n\nMade by `cargo xtask bench`. Compare ratios, not times: the bold row is the floor of the same run, \
         rows take turns, figures are medians on the monotonic clock.\n\n{}\n",
        machine()
    );
    for (title, section) in sections(only)? {
        text.push_str(&format!("\n## {title}\n\n{section}"));
    }
    let written = if only.is_none() {
        fs::write(root().join("BENCHMARKS.md"), &text).context("cannot write BENCHMARKS.md")?;
        "BENCHMARKS.md written"
    } else {
        "measured"
    };
    println!("{text}\n{written} after {:.0} s", start.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

/// Does a part of the bench that needs a process of its own, and prints what came of it.
pub(crate) fn work(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let [what, workspace] = arguments else {
        bail!("a worker needs its work and a workspace");
    };
    let workspace = Path::new(workspace);
    let text = match session::work(what, workspace)? {
        Some(text) => text,
        None => sandbox::work(what, workspace)?,
    };
    println!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// What is measured, by the name that a section goes by on the command line.
const SECTIONS: [&str; 11] = [
    "verdicts",
    "command",
    "start",
    "output",
    "timeout",
    "session",
    "files",
    "sandbox",
    "memory",
    "remote",
    "containers",
];

/// Those that measure the library alone.
const IN_PROCESS: [&str; 4] = ["verdicts", "files", "memory", "remote"];

/// The sections, each with its title: all, or only one.
fn sections(only: Option<&str>) -> anyhow::Result<Vec<(&'static str, String)>> {
    let directory = std::env::current_exe()?
        .parent()
        .context("a program stands in a directory")?
        .to_path_buf();
    let path = directory.join("shieling");
    let program = process::Program::new(path.clone());
    let missing = program
        .as_ref()
        .err()
        .map(|error| format!("Not measured: {error:#}.\n"));
    let program = program.ok();
    let with_program = |measure: &dyn Fn(&process::Program) -> anyhow::Result<String>| match &program {
        Some(program) => measure(program),
        None => Ok(missing.clone().unwrap_or_default()),
    };

    let mut sections = Vec::new();
    for name in SECTIONS {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        sections.push(match name {
            "verdicts" => ("Verdicts", verdict::run(&subject::judges())),
            "command" => ("One command", one_command(program.as_ref(), missing.as_deref())?),
            "start" => ("Start to exit", start::run(&path)?),
            "output" => {
                let scratch = Scratch::new("flood")?;
                (
                    "200 MB of output",
                    with_program(&|program| process::flood(program, scratch.path()))?,
                )
            }
            "timeout" => (
                "A timeout of 2 s, with a child that left the group",
                with_program(&process::deadline)?,
            ),
            "session" => ("Sessions", session::run(&path)?),
            "containers" => ("Containers", containers::run(&path)?),
            "memory" => ("Memory", memory::run()?),
            "files" => ("Files", files::run()?),
            "remote" => ("Elsewhere", remote::run()?),
            _ => ("Sandbox", sandbox::run(&path)?),
        });
    }
    Ok(sections)
}

fn one_command(program: Option<&process::Program>, missing: Option<&str>) -> anyhow::Result<String> {
    let library = subject::one_shot();
    let mut text = String::new();
    if library.is_none() {
        text.push_str("The library's row could not be measured.\n\n");
    }
    if let Some(missing) = missing {
        text.push_str(missing);
        text.push('\n');
    }
    text.push_str(&process::one_shot(library, program)?);
    Ok(text)
}

/// The machine, as far as it matters for the figures.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_once(':'))
            .map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let bash = Command::new("/bin/bash")
        .arg("--version")
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    format!(
        "**Machine.** {cores} cores ({}), {} of memory, Linux {}, load {}. {}. Shieling {}, release build.",
        field(&read("/proc/cpuinfo"), "model name"),
        field(&read("/proc/meminfo"), "MemTotal"),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg")
            .split_whitespace()
            .take(3)
            .collect::<Vec<_>>()
            .join(" "),
        String::from_utf8_lossy(&bash).lines().next().unwrap_or("no bash"),
        env!("CARGO_PKG_VERSION"),
    )
}
