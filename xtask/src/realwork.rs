//! `cargo xtask realwork`: real work, each step outside and inside the sandbox, as root and as an ordinary user.
//!
//! What is done stands in `realwork/steps.toml`, and nothing of it here. A step must end in the same way in both
//! places, and print the same; where it does not, the file says why, and PLATFORM.md has the row. Sources come from
//! package registries and are kept in the target directory, or where `SHIELING_REALWORK_SOURCES` says: a second run
//! needs no network. Each project is prepared once; the workspaces of both users in both places are copies.
//!
//! Started by root, it works in a mount namespace of its own, in which an ordinary user reaches the workspaces and
//! the Rust toolchain by short paths, whatever stands above them.

mod account;
mod data;
mod places;
mod table;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::bail;
use shieling_testkit::prerequisite;

use crate::workspace::{cargo, root};
use account::Account;
use data::{Project, Step, Steps};
use places::{AT_ONCE, Ended, Place, Prepared};

/// What one step came to, for one user.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Same,
    /// As the row of the step says.
    AsSaid,
    /// This is wrong.
    Wrong(String),
}

/// Runs all projects, or those named. `--fetch` fetches the sources alone, `--table` writes the rows into PLATFORM.md
/// instead, and `--inside` is how it starts itself in a namespace.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let steps = Steps::read()?;
    let base = root().canonicalize()?.join("target/realwork");
    match arguments {
        [flag] if flag == "--fetch" => {
            places::fetch(&steps, &[], &places::sources(&base)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        [flag] if flag == "--table" => return table::write(&steps),
        [flag, names @ ..] if flag == "--inside" => {
            let base = Path::new(places::SHORT);
            return all(&steps, names, base, &base.join("sources"));
        }
        _ => {}
    }
    if let Some(unknown) = arguments
        .iter()
        .find(|name| !steps.projects.iter().any(|project| project.name == **name))
    {
        bail!("no project is called `{unknown}`");
    }
    table::check(&steps)?;
    let built = cargo()
        .args(["build", "--quiet", "--package", "shieling-cli"])
        .status()?;
    if !built.success() {
        bail!("shieling-cli cannot be built");
    }
    let sources = places::sources(&base)?;
    places::fetch(&steps, arguments, &sources)?;
    places::begin(&base, &root().join("target/debug/shieling"))?;
    let code = match account::is_root() {
        false => all(&steps, arguments, &base, &sources)?,
        true => places::in_namespace(&base, &sources, arguments)?,
    };
    places::end(&base)?;
    Ok(code)
}

/// Works through the projects, and reports.
fn all(steps: &Steps, names: &[String], base: &Path, sources: &Path) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let mut queue = Vec::new();
    for project in steps.chosen(names) {
        let missing = project.missing(sources);
        match missing.is_empty() {
            true => queue.push(project),
            false => prerequisite::skip(format!("{}: {}", project.name, missing.join(", "))),
        }
    }
    let queue = Mutex::new(queue.into_iter());
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("nobody panics with it").next();
                    let Some(project) = next else { break };
                    work(project, base, sources, &report);
                }
            });
        }
    });
    let report = report.into_inner().expect("nobody panics with it");
    report.tell(start.elapsed());
    Ok(if report.wrong == 0 && report.passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prepares a project, and runs its steps as each of its users.
fn work(project: &Project, base: &Path, sources: &Path, report: &Mutex<Report>) {
    let report = || report.lock().expect("nobody panics with it");
    let start = Instant::now();
    let prepared = match Prepared::make(project, base, sources) {
        Ok(prepared) => prepared,
        Err(error) => return report().fail(&project.name, &error),
    };
    report()
        .slowest
        .push((start.elapsed(), format!("preparing {}", project.name)));
    for account in Account::all() {
        if project.users.has(account) {
            match as_user(project, &prepared, account) {
                Ok(found) => report().add(account, found),
                Err(error) => report().fail(&project.name, &error),
            }
        }
    }
}

/// What one step came to, and how long it took outside and inside.
struct Finding {
    name: String,
    found: Found,
    outside: Duration,
    inside: Duration,
}

/// Runs a project's steps in both places, as this user. What differs is run outside once more: a step whose two runs outside
/// differ as well says nothing about the inside.
fn as_user(project: &Project, prepared: &Prepared<'_>, account: Account) -> anyhow::Result<Vec<Finding>> {
    let steps: Vec<&Step> = project.steps.iter().filter(|step| step.users.has(account)).collect();
    let all = |place: Place| -> anyhow::Result<Vec<Ended>> {
        let workspace = prepared.workspace(account)?;
        let run = |step: &&Step| workspace.run(place, &project.options, &step.run);
        steps.iter().map(run).collect()
    };
    let outside = all(Place::Outside)?;
    let mut places = vec![(Place::Inside, all(Place::Inside)?)];
    if project.staged {
        places.push((Place::Staged, all(Place::Staged)?));
    }
    let found = |outside: &[Ended]| -> anyhow::Result<Vec<Finding>> {
        let mut found = Vec::new();
        for (place, inside) in &places {
            for (step, (outside, inside)) in steps.iter().zip(outside.iter().zip(inside)) {
                found.push(Finding {
                    name: format!("{}{}", step.name, place.suffix()),
                    found: compared(step, *place, account, outside, inside)?,
                    outside: outside.took,
                    inside: inside.took,
                });
            }
        }
        Ok(found)
    };
    let mut findings = found(&outside)?;
    if findings.iter().any(|finding| matches!(finding.found, Found::Wrong(_))) {
        let again = found(&all(Place::Outside)?)?;
        for (finding, again) in findings.iter_mut().zip(again) {
            if matches!(finding.found, Found::Wrong(_)) && !matches!(again.found, Found::Wrong(_)) {
                println!(
                    "unsteady: {} differed from one run outside, and not from a second one",
                    finding.name
                );
                *finding = again;
            }
        }
    }
    Ok(findings)
}

/// Whether a step ended as it is to.
fn compared(step: &Step, place: Place, account: Account, outside: &Ended, inside: &Ended) -> anyhow::Result<Found> {
    let told = || format!("outside {}\ninside  {}", outside.told(), inside.told());
    if outside.status != step.exit {
        return Ok(Found::Wrong(format!(
            "outside it did not exit with {}\n{}",
            step.exit,
            told()
        )));
    }
    if step.compare == data::Compare::Output && outside.stdout.trim().is_empty() {
        return Ok(Found::Wrong(format!(
            "it prints nothing that could be compared\n{}",
            told()
        )));
    }
    let printed = (step.masked(&outside.stdout)?, step.masked(&inside.stdout)?);
    let same = inside.status == outside.status && (step.compare == data::Compare::Exit || printed.0 == printed.1);
    // Which of a long output's lines it is cannot be seen at its end.
    let told = || match printed
        .0
        .lines()
        .zip(printed.1.lines())
        .find(|(out, inside)| out != inside)
    {
        Some((out, inside)) => format!("first `{out}`\nthen  `{inside}`\n{}", told()),
        None => told(),
    };
    let differs = match place {
        Place::Outside | Place::Inside => &step.differs,
        Place::Staged => &step.staged,
    };
    let row = differs.as_ref().filter(|differs| differs.users.has(account));
    Ok(match (same, row) {
        (true, None) => Found::Same,
        (true, Some(_)) => Found::Wrong("it differs no more: remove the row".to_owned()),
        (false, None) => Found::Wrong(format!("it differs, and has no row\n{}", told())),
        (false, Some(row)) if row.exit == inside.status => Found::AsSaid,
        (false, Some(row)) => Found::Wrong(format!("inside it did not exit with {}\n{}", row.exit, told())),
    })
}

/// What came of all steps.
#[derive(Debug, Default)]
struct Report {
    passed: usize,
    wrong: usize,
    slowest: Vec<(Duration, String)>,
}

impl Report {
    fn fail(&mut self, what: &str, error: &anyhow::Error) {
        println!("FAILED {what}: {error:#}");
        self.wrong += 1;
    }

    fn add(&mut self, account: Account, findings: Vec<Finding>) {
        let who = account.name();
        for finding in findings {
            let name = finding.name;
            let times = format!(
                "{:.1} s, inside {:.1} s",
                finding.outside.as_secs_f64(),
                finding.inside.as_secs_f64()
            );
            match finding.found {
                Found::Same => println!("same   {who:<5} {name} ({times})"),
                Found::AsSaid => println!("said   {who:<5} {name} ({times})"),
                Found::Wrong(why) => {
                    println!("FAILED {who:<5} {name} ({times}): {}", why.replace('\n', "\n       "));
                    self.wrong += 1;
                    continue;
                }
            }
            self.passed += 1;
            self.slowest
                .push((finding.outside + finding.inside, format!("{who:<5} {name}")));
        }
    }

    fn tell(&self, took: Duration) {
        let mut slowest = self.slowest.clone();
        slowest.sort();
        for (took, name) in slowest.iter().rev().take(12) {
            println!("slow   {name}: {:.1} s", took.as_secs_f64());
        }
        println!("in {:.0} s", took.as_secs_f64());
        println!("{} passed, {} failed", self.passed, self.wrong);
    }
}
