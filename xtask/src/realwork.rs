//! `cargo xtask realwork`: real work, each step outside and inside the sandbox, as root and as an ordinary user.
//!
//! What is done stands in `realwork/steps.toml`, and nothing of it here. A step must end in the same way in both
//! places, and print the same; where it does not, the file says why, and PLATFORM.md has the row. Sources come from
//! package registries and are kept in the target directory: a second run needs no network.
//!
//! Started by root, it works in a mount namespace of its own, in which an ordinary user reaches the workspaces and
//! the Rust toolchain by short paths, whatever stands above them.

mod data;
mod places;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use shieling_testkit::prerequisite;

use crate::workspace::{cargo, root};
use data::{Project, Step, Steps};
use places::{Account, Ended, Place, Workspace};

/// How many projects are worked on at once.
const AT_ONCE: usize = 2;

/// What one step came to, for one user.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Same,
    /// As the row of the step says.
    AsSaid,
    /// This is wrong.
    Wrong(String),
}

/// Runs all projects, or those named. `--table` writes the rows into PLATFORM.md instead, and `--inside` is how it
/// starts itself in a namespace.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let steps = Steps::read()?;
    match arguments {
        [flag] if flag == "--table" => return table::write(&steps),
        [flag, names @ ..] if flag == "--inside" => return all(&steps, names, Path::new(places::SHORT)),
        _ => {}
    }
    if let Some(unknown) = arguments
        .iter()
        .find(|name| !steps.projects.iter().any(|project| project.name == **name))
    {
        bail!("no project is called `{unknown}`");
    }
    table::check(&steps)?;
    let base = root().canonicalize()?.join("target/realwork");
    let built = cargo()
        .args(["build", "--quiet", "--package", "shieling-cli"])
        .status()?;
    if !built.success() {
        bail!("shieling-cli cannot be built");
    }
    places::fetch(&steps, &base)?;
    places::begin(&base, &root().join("target/debug/shieling"))?;
    let code = match places::is_root() {
        false => all(&steps, arguments, &base)?,
        true => places::in_namespace(&base, arguments)?,
    };
    places::end(&base)?;
    Ok(code)
}

/// Works through the projects, and reports.
fn all(steps: &Steps, names: &[String], base: &Path) -> anyhow::Result<ExitCode> {
    let accounts = Account::all();
    let mut queue = Vec::new();
    for project in &steps.projects {
        if !names.is_empty() && !names.contains(&project.name) {
            continue;
        }
        let missing = project.missing(base);
        if !missing.is_empty() {
            prerequisite::skip(format!("{}: {}", project.name, missing.join(", ")));
            continue;
        }
        queue.extend(
            accounts
                .iter()
                .filter(|account| project.users.has(**account))
                .map(|account| (project, *account)),
        );
    }
    let queue = Mutex::new(queue.into_iter());
    let report = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("nobody panics with it").next();
                    let Some((project, account)) = next else { break };
                    let found = work(project, account, base);
                    report
                        .lock()
                        .expect("nobody panics with it")
                        .add(project, account, found);
                }
            });
        }
    });
    let report = report.into_inner().expect("nobody panics with it");
    report.tell();
    Ok(if report.wrong == 0 && report.passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs a project's steps in both places, as this user.
fn work(project: &Project, account: Account, base: &Path) -> anyhow::Result<Vec<(String, Found, Duration)>> {
    let steps: Vec<&Step> = project.steps.iter().filter(|step| step.users.has(account)).collect();
    let mut ends: BTreeMap<&str, Vec<Ended>> = BTreeMap::new();
    for place in [Place::Outside, Place::Inside] {
        let workspace = Workspace::make(project, account, base)?;
        for step in &steps {
            let ended = workspace.run(place, &project.options, &step.run)?;
            ends.entry(&step.name).or_default().push(ended);
        }
    }
    let mut found = Vec::new();
    for step in steps {
        let [outside, inside] = ends.get(step.name.as_str()).map(Vec::as_slice).unwrap_or_default() else {
            bail!("`{}` did not run in both places", step.name);
        };
        found.push((
            step.name.clone(),
            compared(step, account, outside, inside)?,
            outside.took + inside.took,
        ));
    }
    Ok(found)
}

/// Whether a step ended as it is to.
fn compared(step: &Step, account: Account, outside: &Ended, inside: &Ended) -> anyhow::Result<Found> {
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
    let row = step.differs.as_ref().filter(|differs| differs.users.has(account));
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
    fn add(&mut self, project: &Project, account: Account, found: anyhow::Result<Vec<(String, Found, Duration)>>) {
        let who = account.name();
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                println!("FAILED {who:<5} {}: {error:#}", project.name);
                self.wrong += 1;
                return;
            }
        };
        for (name, found, took) in found {
            self.slowest.push((took, format!("{who:<5} {name}")));
            match found {
                Found::Same | Found::AsSaid => {
                    self.passed += 1;
                    let word = if found == Found::Same { "same" } else { "said" };
                    println!("{word:<6} {who:<5} {name} ({:.1} s)", took.as_secs_f64());
                }
                Found::Wrong(why) => {
                    self.wrong += 1;
                    println!("FAILED {who:<5} {name}: {}", why.replace('\n', "\n       "));
                }
            }
        }
    }

    fn tell(&self) {
        let mut slowest = self.slowest.clone();
        slowest.sort();
        for (took, name) in slowest.iter().rev().take(5) {
            println!("slow   {name}: {:.1} s", took.as_secs_f64());
        }
        println!("{} passed, {} failed", self.passed, self.wrong);
    }
}

/// Runs a command to its end, within a time, and ends it after that.
fn within(command: &mut Command, limit: Duration) -> anyhow::Result<Option<std::process::ExitStatus>> {
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A directory that is new, whatever stood there.
fn fresh(path: PathBuf) -> anyhow::Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}
