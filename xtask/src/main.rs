//! Tasks of this repository: `cargo xtask check | tidy | bless | bench | fuzz | realwork | python`.
//!
//! Everything that a contributor or CI runs is one of these, so that both run the same thing.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a task talks to the person who started it"
)]
#![expect(clippy::disallowed_methods, reason = "a task runs cargo and reads this repository")]

mod bench;
mod check;
mod fuzz;
mod python;
mod realwork;
mod subject;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use workspace::cargo;

const USAGE: &str = "\
cargo xtask check     formatting, lints, directions, tests, documentation: what CI runs
                      (`--full`: all of the long tests, and fuzz; `--except STEP...` leaves some out)
cargo xtask tidy      the directions between modules and crates, and what clippy cannot see
cargo xtask bless     accept the snapshots that the tests produce now; review them as code
cargo xtask bench     measure, and write BENCHMARKS.md
                      (`bench SECTION` measures one and only prints it: sandbox, say)
cargo xtask fuzz      judge made-up lines: `--lines N` (1,000,000), `--seed N`, `--threads N`
cargo xtask realwork  real work outside and inside the sandbox, compared: all, or `realwork PROJECT...`
                      (`--table` writes the differences into PLATFORM.md)
cargo xtask python    build the Python package's wheel, install it in clean environments, run its tests
                      (`--release` for a wheel to give away, `--no-tests` for the wheel alone; the rest is pytest's)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let (task, rest) = match arguments.split_first() {
        Some((task, rest)) => (task.as_str(), rest),
        None => ("help", arguments),
    };
    if let (Some(unwanted), "tidy" | "bless") = (rest.first(), task) {
        bail!("`{task}` takes no argument, not `{unwanted}`");
    }
    match task {
        "check" => check::run(rest),
        "tidy" => tidy::run(),
        "bless" => bless(),
        "bench" => bench::run(rest),
        // What the bench starts anew, as another user or as a fresh process.
        "bench-worker" => bench::work(rest),
        "fuzz" => fuzz::run(rest),
        "realwork" => realwork::run(rest),
        "python" => python::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        unknown => bail!("there is no task `{unknown}`\n\n{USAGE}"),
    }
}

/// Accepts every snapshot file. Inline snapshots are not rewritten; there are none by custom.
fn bless() -> anyhow::Result<ExitCode> {
    let status = cargo()
        .args(["test", "--workspace"])
        .env("INSTA_UPDATE", "always")
        .status()
        .context("cannot start cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
