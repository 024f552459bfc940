//! `cargo xtask check`: everything that must hold before a change is shared, and what CI runs.
//!
//! Every step runs, also after one has failed, so that one run shows all that is wrong.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::{cargo, fuzz, tidy};

/// A step that is one call of cargo: its name, the arguments, and variables to set.
type CargoStep = (
    &'static str,
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
);

const BEFORE_TIDY: &[CargoStep] = &[
    ("format", &["fmt", "--all", "--check"], &[]),
    (
        "clippy",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    ),
    (
        "clippy of the builtin",
        // What the library's build script builds, which has no standard library and no tests.
        &[
            "clippy",
            "--package",
            "shieling-bash",
            "--lib",
            "--features",
            "builtin",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
        &[],
    ),
];

const AFTER_TIDY: &[CargoStep] = &[
    ("tests", &["test", "--workspace", "--quiet"], &[]),
    (
        "docs",
        &["doc", "--workspace", "--no-deps", "--quiet"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    ),
];

/// What has the long tests run whole (`shieling_testkit::extent`).
const FULL: (&str, &str) = ("SHIELING_TESTS", "full");

/// How many lines the full check judges.
const FUZZED: &str = "300000";

/// Runs all steps but those named after `--except`, and says which failed. With `--full`, all of the long
/// tests runs, and not the share that `cargo test` runs, and lines are fuzzed.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let (full, arguments) = match arguments {
        [flag, rest @ ..] if flag == "--full" => (true, rest),
        all => (false, all),
    };
    let except: &[String] = match arguments {
        [] => &[],
        [flag, steps @ ..] if flag == "--except" && !steps.is_empty() => steps,
        [unwanted, ..] => bail!("`check` takes `[--full] [--except STEP...]`, not `{unwanted}`"),
    };
    let names = || {
        BEFORE_TIDY
            .iter()
            .chain(AFTER_TIDY)
            .map(|(name, ..)| *name)
            .chain(["tidy", "fuzz"])
    };
    if let Some(unknown) = except.iter().find(|step| !names().any(|name| name == **step)) {
        bail!(
            "`check` has no step `{unknown}`, only {}",
            names().collect::<Vec<_>>().join(", ")
        );
    }
    let wanted = |name: &str| !except.iter().any(|step| step == name);

    let mut report: Vec<(&str, bool, Duration)> = Vec::new();
    for step in BEFORE_TIDY.iter().filter(|(name, ..)| wanted(name)) {
        report.push(cargo_step(step, full)?);
    }
    if wanted("tidy") {
        println!("── tidy");
        let start = Instant::now();
        report.push(("tidy", tidy::run()? == ExitCode::SUCCESS, start.elapsed()));
    }
    for step in AFTER_TIDY.iter().filter(|(name, ..)| wanted(name)) {
        report.push(cargo_step(step, full)?);
    }

    if full && wanted("fuzz") {
        println!("── fuzz");
        let start = Instant::now();
        let judged = fuzz::run(&["--lines".to_owned(), FUZZED.to_owned()])?;
        report.push(("fuzz", judged == ExitCode::SUCCESS, start.elapsed()));
    }

    println!("──");
    for (name, passed, took) in &report {
        println!(
            "{:<8} {:<6} {:>6.1} s",
            name,
            if *passed { "ok" } else { "FAILED" },
            took.as_secs_f64()
        );
    }
    let passed = report.iter().all(|(_, passed, _)| *passed);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cargo_step((name, arguments, variables): &CargoStep, full: bool) -> anyhow::Result<(&'static str, bool, Duration)> {
    println!("── {name}: cargo {}", arguments.join(" "));
    let start = Instant::now();
    let status = cargo()
        .args(*arguments)
        .envs(variables.iter().copied())
        .envs(full.then_some(FULL))
        .status()
        .with_context(|| format!("cannot start cargo for the step `{name}`"))?;
    Ok((name, status.success(), start.elapsed()))
}
