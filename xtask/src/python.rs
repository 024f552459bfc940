//! The Python package: builds its wheel, installs that in environments of its own, and runs its tests there.
//!
//! Everything is below `target/python`. The network is used for the packages that the tests need, and for nothing else;
//! what is downloaded stays in pip's cache.

mod installed;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail, ensure};

use crate::workspace::root;

/// What builds the package and tests it.
const TOOLS: [&str; 7] = [
    "maturin",
    "mypy",
    "pyright",
    "pytest",
    "pytest-timeout",
    "typing_extensions",
    "uvloop",
];

/// A framework whose adapter is tested with the framework installed.
struct Framework {
    /// The name of the suite and of its virtual environment.
    name: &'static str,
    packages: &'static [&'static str],
    /// Whether `tests/constraints.txt` pins the packages. One file cannot pin two versions of one package.
    pinned: bool,
    /// The files of its tests begin with this.
    tests: &'static str,
}

const FRAMEWORKS: [Framework; 6] = [
    Framework {
        name: "pydantic-ai",
        packages: &["pydantic-ai-slim"],
        pinned: true,
        tests: "test_pydantic_ai",
    },
    Framework {
        name: "agent-framework",
        packages: &["agent-framework-core", "agent-framework-tools"],
        pinned: true,
        tests: "test_agent_framework",
    },
    Framework {
        name: "camel",
        packages: &["camel-ai", "mcp", "docker"],
        pinned: true,
        tests: "test_camel",
    },
    Framework {
        name: "ag2",
        packages: &["ag2"],
        pinned: true,
        tests: "test_ag2",
    },
    Framework {
        name: "ag2-0.12",
        packages: &["ag2==0.12.3"],
        pinned: false,
        tests: "test_ag2",
    },
    Framework {
        name: "gaia",
        packages: &["amd-gaia"],
        pinned: true,
        tests: "test_gaia",
    },
];

/// The suites beside those of the frameworks: a clean installation, and the package and the adapters on their own.
const INSTALLATION: &str = "installation";
const PACKAGE: &str = "package";

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    release: bool,
    no_tests: bool,
    sdist: bool,
    only: Vec<String>,
    rest: Vec<String>,
}

impl Asked {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut asked = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--release" => asked.release = true,
                "--no-tests" => asked.no_tests = true,
                "--sdist" => asked.sdist = true,
                "--only" => {
                    let name = words.next().context("`--only` needs the name of a suite")?;
                    ensure!(
                        suites().any(|suite| suite == name),
                        "there is no suite `{name}`, only {}",
                        suites().collect::<Vec<_>>().join(", ")
                    );
                    asked.only.push(name.clone());
                }
                "--" => {
                    asked.rest = words.cloned().collect();
                    break;
                }
                other => bail!(
                    "`python` takes `[--release] [--no-tests] [--sdist] [--only SUITE]... [-- PYTEST...]`, not `{other}`"
                ),
            }
        }
        Ok(asked)
    }

    fn wants(&self, suite: &str) -> bool {
        !self.no_tests && (self.only.is_empty() || self.only.iter().any(|one| one == suite))
    }
}

fn suites() -> impl Iterator<Item = &'static str> {
    [INSTALLATION, PACKAGE]
        .into_iter()
        .chain(FRAMEWORKS.iter().map(|framework| framework.name))
}

/// Does it: `--release` for a wheel that is given away, `--no-tests` for the wheel alone, `--sdist` for a source
/// distribution and a wheel built from that, `--only SUITE` for some of the tests; what follows `--` is pytest's.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let asked = Asked::parse(arguments)?;
    let project = root().join("crates/shieling-py");
    let place = root().join("target/python");
    let tools = environment(&place.join("tools"), &default_python())?;
    let mut install = pip(&tools);
    install.args(["install", "--quiet", "--constraint"]);
    install.arg(project.join("constraints.txt")).args(TOOLS);
    done(&mut install, "installing the tools")?;

    let frameworks: Vec<&Framework> = FRAMEWORKS.iter().filter(|one| asked.wants(one.name)).collect();
    let start = Instant::now();
    // Downloads wait for the network, the build for the processor.
    let wheel = std::thread::scope(|scope| {
        let installing = scope.spawn(|| {
            let install = |framework: &Framework| install_framework(framework, &project, &place);
            two_at_a_time(frameworks.iter().copied(), install).into_iter().collect()
        });
        let wheel = wheel(&tools, &project, &place.join("wheels"), &asked, &place);
        let installed: anyhow::Result<()> = installing.join().map_err(|_| anyhow!("an installation panicked"))?;
        installed.and(wheel)
    })?;
    println!("{} after {:.0} s", wheel.display(), start.elapsed().as_secs_f64());
    if asked.no_tests {
        return Ok(ExitCode::SUCCESS);
    }

    let mut report = Vec::new();
    if asked.wants(INSTALLATION) {
        let start = Instant::now();
        let all = installed::check(&place, &wheel, &default_python());
        if let Err(error) = &all {
            eprintln!("error: {error:#}");
        }
        report.push((INSTALLATION, all.is_ok(), start.elapsed()));
    }
    let mut suites: Vec<(&str, PathBuf, Vec<String>)> = Vec::new();
    if asked.wants(PACKAGE) {
        suites.push((PACKAGE, tools.clone(), vec!["tests".to_owned()]));
    }
    for framework in frameworks {
        let files = files(&project, framework.tests)?;
        suites.push((framework.name, place.join(framework.name), files));
    }
    // Tests wait more than they compute. What they say is shown when they end.
    report.extend(two_at_a_time(suites, |(name, environment, tests)| {
        let start = Instant::now();
        let log = place.join(format!("{name}.log"));
        println!("── {name} begins; its output so far: {}", log.display());
        let passed = suite(&environment, &project, &wheel, &tests, &asked.rest, &log).unwrap_or_else(|error| {
            eprintln!("error: {name}: {error:#}");
            false
        });
        let said = std::fs::read(&log).unwrap_or_default();
        println!("── {name}\n{}", String::from_utf8_lossy(&said));
        (name, passed, start.elapsed())
    }));
    println!("──");
    for (name, passed, took) in &report {
        let word = if *passed { "ok" } else { "FAILED" };
        println!("{name:<16} {word:<6} {:>6.1} s", took.as_secs_f64());
    }
    let passed = report.iter().all(|(_, passed, _)| *passed);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Does all of this, two at a time, and gives the results in the order of what was done.
fn two_at_a_time<T: Send, R: Send>(all: impl IntoIterator<Item = T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let waiting = Mutex::new(all.into_iter().enumerate().collect::<VecDeque<_>>());
    let done = Mutex::new(BTreeMap::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work_on = || {
        while let Some((number, one)) = next() {
            let result = work(one);
            done.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(number, result);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work_on);
        work_on();
    });
    done.into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .into_values()
        .collect()
}

/// Installs a framework in a virtual environment of its own.
fn install_framework(framework: &Framework, project: &Path, place: &Path) -> anyhow::Result<()> {
    let environment = environment(&place.join(framework.name), &default_python())?;
    let mut install = pip(&environment);
    install.args(["install", "--quiet", "--constraint"]);
    install.arg(project.join("constraints.txt"));
    if framework.pinned {
        install.arg("--constraint").arg(project.join("tests/constraints.txt"));
    }
    install.args(framework.packages).args(["pytest", "pytest-timeout"]);
    done(&mut install, &format!("installing {}", framework.name))
}

/// Installs the wheel in an environment and runs tests there, without the sources, in which there is no native module.
/// Whether they passed; what pytest says goes to `log`.
fn suite(
    environment: &Path,
    project: &Path,
    wheel: &Path,
    tests: &[String],
    rest: &[String],
    log: &Path,
) -> anyhow::Result<bool> {
    let mut install = pip(environment);
    install
        .args(["install", "--quiet", "--no-deps", "--force-reinstall"])
        .arg(wheel);
    done(&mut install, "installing the wheel for the tests")?;
    let writer = File::create(log).with_context(|| log.display().to_string())?;
    let mut pytest = python_of(environment);
    pytest
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .args(tests)
        .args(rest)
        .current_dir(project)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    Ok(pytest.status().context("cannot start pytest")?.success())
}

/// The files of an adapter's tests.
fn files(project: &Path, prefix: &str) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(project.join("tests/adapters"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(prefix) && name.ends_with(".py") {
            found.push(format!("tests/adapters/{name}"));
        }
    }
    ensure!(!found.is_empty(), "there are no tests `{prefix}*.py`");
    found.sort();
    Ok(found)
}

/// Builds the wheel, and gives its path.
fn wheel(python: &Path, project: &Path, to: &Path, asked: &Asked, place: &Path) -> anyhow::Result<PathBuf> {
    if to.exists() {
        std::fs::remove_dir_all(to).context("removing the last wheel")?;
    }
    let project = if asked.sdist {
        unpacked_sdist(python, project, place)?
    } else {
        project.to_owned()
    };
    let mut build = python_of(python);
    build
        .args(["-m", "maturin", "build", "--quiet", "--out"])
        .arg(to)
        .current_dir(&project)
        .env("CARGO_TARGET_DIR", root().join("target"));
    if asked.release {
        build.args(["--profile", "packaging"]);
    } else {
        // It runs on this host only, whatever its C library is.
        build.args(["--compatibility", "linux"]);
    }
    done(&mut build, "building the wheel")?;
    only_one(to)
}

/// Makes a source distribution, and gives the directory in which it is unpacked.
fn unpacked_sdist(python: &Path, project: &Path, place: &Path) -> anyhow::Result<PathBuf> {
    let to = place.join("sdist");
    if to.exists() {
        std::fs::remove_dir_all(&to).context("removing the last source distribution")?;
    }
    let mut make = python_of(python);
    make.args(["-m", "maturin", "sdist", "--out"])
        .arg(&to)
        .current_dir(project);
    done(&mut make, "making the source distribution")?;
    let archive = only_one(&to)?;
    println!("{}", archive.display());
    let sources = to.join("sources");
    std::fs::create_dir(&sources)?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(&archive).arg("-C").arg(&sources);
    done(&mut unpack, "unpacking the source distribution")?;
    only_one(&sources)
}

/// The only entry of a directory.
fn only_one(directory: &Path) -> anyhow::Result<PathBuf> {
    let mut found = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    ensure!(
        found.len() == 1,
        "{} has {} entries, not one",
        directory.display(),
        found.len()
    );
    Ok(found.remove(0).path())
}

/// The Python that the variable `PYTHON` names, or the one on the `PATH`.
fn default_python() -> PathBuf {
    std::env::var_os("PYTHON").map_or_else(|| "python3".into(), PathBuf::from)
}

/// A virtual environment, made if it is not there. Gives its directory.
fn environment(at: &Path, python: &Path) -> anyhow::Result<PathBuf> {
    if !at.join("bin/python").exists() {
        let mut make = Command::new(python);
        make.args(["-m", "venv"]).arg(at);
        done(&mut make, "making a virtual environment (Debian: python3-venv)")?;
    }
    Ok(at.to_owned())
}

fn python_of(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("bin/python"));
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
    command
}

fn pip(environment: &Path) -> Command {
    let mut command = python_of(environment);
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}

fn done(command: &mut Command, what: &str) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start: {what}"))?;
    if !status.success() {
        bail!("{what}: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Asked, suites};

    fn parse(arguments: &str) -> Result<Asked, String> {
        let words: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        Asked::parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn options_and_the_words_of_pytest_are_told_apart() {
        let asked = parse("--release --only camel --only package -- -k logs --release").expect("it is taken");
        assert!(asked.release && !asked.no_tests && !asked.sdist);
        assert_eq!(asked.rest, ["-k", "logs", "--release"]);
        let wanted: Vec<&str> = suites().filter(|suite| asked.wants(suite)).collect();
        assert_eq!(wanted, ["package", "camel"]);
        let none = parse("--no-tests").expect("it is taken");
        assert!(suites().all(|suite| !none.wants(suite)));
    }

    #[test]
    fn what_is_no_option_and_no_suite_is_refused() {
        for (arguments, said) in [
            ("tests/test_run.py", "not `tests/test_run.py`"),
            ("--only", "needs the name"),
            ("--only nothing", "no suite `nothing`, only installation, package"),
        ] {
            let error = parse(arguments).expect_err(arguments);
            assert!(error.contains(said), "{arguments}: {error}");
        }
    }
}
