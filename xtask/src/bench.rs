//! `cargo xtask bench`: the figures in BENCHMARKS.md, all as ratios to a floor of the same run.
//!
//! A row whose subject is not built yet says so and is not imitated. Takes less than four minutes on
//! two cores.

mod measure;
mod process;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, ensure};

use crate::{cargo, root, subject};

/// Measures everything and writes BENCHMARKS.md.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    if cfg!(debug_assertions) {
        return crate::again_in_release(&["bench".to_owned()]);
    }
    let start = Instant::now();
    let built = cargo()
        .args(["build", "--release", "--quiet", "--package", "shieling-cli"])
        .status()?;
    ensure!(built.success(), "the command line does not build");
    let directory = std::env::current_exe()?
        .parent()
        .context("a program stands in a directory")?
        .to_path_buf();
    let program = process::Program::new(directory.join("shieling"));
    let missing = program
        .as_ref()
        .err()
        .map(|error| format!("Not measured: {error:#}.\n"));
    let program = program.ok();

    let scratch = Scratch::new("flood")?;
    let with_program = |measure: &dyn Fn(&process::Program) -> anyhow::Result<String>| match &program {
        Some(program) => measure(program),
        None => Ok(missing.clone().unwrap_or_default()),
    };
    let mut sections = vec![("Verdicts", verdict::run(&subject::judges()))];
    let library = subject::one_shot();
    let mut one_shot = String::new();
    if library.is_none() {
        one_shot.push_str("The library's row could not be measured.\n\n");
    }
    if let Some(missing) = &missing {
        one_shot.push_str(missing);
        one_shot.push('\n');
    }
    one_shot.push_str(&process::one_shot(library, program.as_ref())?);
    sections.push(("One command", one_shot));
    sections.push((
        "200 MB of output",
        with_program(&|program| process::flood(program, scratch.path()))?,
    ));
    sections.push((
        "A timeout of 2 s, with a child that left the group",
        with_program(&process::deadline)?,
    ));

    let mut text = format!(
        "# Benchmarks\n\nMade by `cargo xtask bench`. Compare ratios, not times: the bold row is the floor of the same run, \
         rows take turns, figures are medians on the monotonic clock.\n\n{}\n",
        machine()
    );
    for (title, section) in &sections {
        text.push_str(&format!("\n## {title}\n\n{section}"));
    }
    fs::write(root().join("BENCHMARKS.md"), &text).context("cannot write BENCHMARKS.md")?;
    println!(
        "{text}\nBENCHMARKS.md written after {:.0} s",
        start.elapsed().as_secs_f64()
    );
    Ok(ExitCode::SUCCESS)
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

/// A folder that is gone when this is.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("shieling-bench-{}-{name}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing to be done about it here; the folder is in the temporary directory.
        drop(fs::remove_dir_all(&self.0));
    }
}
