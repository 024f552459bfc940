//! `cargo xtask check`: everything that must hold before a change is shared, and what CI runs.
//!
//! Every step runs, also after one has failed, so that one run shows all that is wrong.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::workspace::cargo;
use crate::{fuzz, tidy};

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

/// How many lines the full check judges, in this build: a release build would take longer than all of them.
const FUZZED: &str = "20000";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    full: bool,
    except: Vec<String>,
}

impl Asked {
    /// `--full` may stand anywhere; what follows `--except` are names of steps.
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let (flags, rest): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|argument| *argument == "--full");
        let full = !flags.is_empty();
        let except = match rest.as_slice() {
            [] => Vec::new(),
            [flag, steps @ ..] if *flag == "--except" && !steps.is_empty() => steps.iter().copied().cloned().collect(),
            [unwanted, ..] => bail!("`check` takes `[--full] [--except STEP...]`, not `{unwanted}`"),
        };
        let names: Vec<&str> = BEFORE_TIDY
            .iter()
            .chain(AFTER_TIDY)
            .map(|(name, ..)| *name)
            .chain(["tidy", "fuzz"])
            .collect();
        if let Some(unknown) = except.iter().find(|step| !names.contains(&step.as_str())) {
            bail!("`check` has no step `{unknown}`, only {}", names.join(", "));
        }
        Ok(Self { full, except })
    }
}

/// Runs all steps but those named after `--except`, and says which failed. With `--full`, all of the long
/// tests runs, and not the share that `cargo test` runs, and lines are fuzzed.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let Asked { full, except } = Asked::parse(arguments)?;
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
        let judged = fuzz::run_here(&["--lines".to_owned(), FUZZED.to_owned()])?;
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

#[cfg(test)]
mod tests {
    use super::Asked;

    fn parse(arguments: &str) -> Result<Asked, String> {
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        Asked::parse(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn full_may_stand_anywhere() {
        let asked = |full, except: &[&str]| {
            Ok(Asked {
                full,
                except: except.iter().map(|&step| step.to_owned()).collect(),
            })
        };
        assert_eq!(parse(""), asked(false, &[]));
        assert_eq!(parse("--full"), asked(true, &[]));
        for arguments in [
            "--full --except tests tidy",
            "--except --full tests tidy",
            "--except tests --full tidy",
            "--except tests tidy --full",
        ] {
            assert_eq!(parse(arguments), asked(true, &["tests", "tidy"]), "{arguments}");
        }
        assert_eq!(parse("--except tests"), asked(false, &["tests"]));
    }

    #[test]
    fn what_is_no_step_and_no_option_is_refused() {
        for (arguments, said) in [
            ("--all", "not `--all`"),
            ("tests", "not `tests`"),
            ("--except", "not `--except`"),
            ("--full --except", "not `--except`"),
            ("--except nothing", "no step `nothing`"),
            ("--except tests --ful", "no step `--ful`"),
        ] {
            let error = parse(arguments).expect_err(arguments);
            assert!(error.contains(said), "{arguments}: {error}");
        }
    }
}
