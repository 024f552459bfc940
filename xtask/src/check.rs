//! `cargo xtask check`: everything that must hold before a change is shared, and what CI runs.
//!
//! Every step runs, also after one has failed, so that one run shows all that is wrong.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::{cargo, tidy};

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

/// Runs all steps but those named after `--except`, and says which failed.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let except: &[String] = match arguments {
        [] => &[],
        [flag, steps @ ..] if flag == "--except" && !steps.is_empty() => steps,
        [unwanted, ..] => bail!("`check` takes `--except STEP...` or nothing, not `{unwanted}`"),
    };
    let names = || {
        BEFORE_TIDY
            .iter()
            .chain(AFTER_TIDY)
            .map(|(name, ..)| *name)
            .chain(["tidy"])
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
        report.push(cargo_step(step)?);
    }
    if wanted("tidy") {
        println!("── tidy");
        let start = Instant::now();
        report.push(("tidy", tidy::run()? == ExitCode::SUCCESS, start.elapsed()));
    }
    for step in AFTER_TIDY.iter().filter(|(name, ..)| wanted(name)) {
        report.push(cargo_step(step)?);
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

fn cargo_step((name, arguments, variables): &CargoStep) -> anyhow::Result<(&'static str, bool, Duration)> {
    println!("── {name}: cargo {}", arguments.join(" "));
    let start = Instant::now();
    let status = cargo()
        .args(*arguments)
        .envs(variables.iter().copied())
        .status()
        .with_context(|| format!("cannot start cargo for the step `{name}`"))?;
    Ok((name, status.success(), start.elapsed()))
}
