//! The Python package: builds its wheel, installs that in environments of its own, and runs its tests there.
//!
//! Everything is below `target/python`. The network is used for what `constraints.txt` pins, and for nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail, ensure};

use crate::workspace::root;

/// What the tests need besides the package.
const TOOLS: [&str; 7] = [
    "maturin",
    "mypy",
    "pyright",
    "pytest",
    "pytest-timeout",
    "typing_extensions",
    "uvloop",
];

/// Does it: `--release` for a wheel that is given away, `--no-tests` for the wheel alone; the rest is pytest's.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let mut release = false;
    let mut tests = true;
    let mut rest = arguments;
    while let Some((first, others)) = rest.split_first() {
        match first.as_str() {
            "--release" => release = true,
            "--no-tests" => tests = false,
            "--" => {
                rest = others;
                break;
            }
            _ => break,
        }
        rest = others;
    }
    let project = root().join("crates/shieling-py");
    let place = root().join("target/python");
    let python = environment(&place.join("tools"))?;
    let mut install = pip(&python);
    install.args(["install", "--quiet", "--constraint"]);
    install.arg(project.join("constraints.txt")).args(TOOLS);
    done(&mut install, "installing the tools")?;

    let wheel = wheel(&python, &project, &place.join("wheels"), release)?;
    println!("{}", wheel.display());
    if !tests {
        return Ok(ExitCode::SUCCESS);
    }

    // As a user has it: nothing else is installed, and no variable helps.
    let clean = place.join("clean");
    if clean.exists() {
        std::fs::remove_dir_all(&clean).context("removing the last clean environment")?;
    }
    let fresh = environment(&clean)?;
    done(
        pip(&fresh).args(["install", "--quiet", "--no-index"]).arg(&wheel),
        "installing the wheel alone",
    )?;
    let first = "from shieling import Shieling; assert Shieling('memory').run('echo works').stdout == 'works\\n'";
    done(
        python_of(&fresh).args(["-c", first]),
        "the first command of a clean installation",
    )?;
    done(
        Command::new(clean.join("bin/shieling")).arg("--version").env_clear(),
        "the command `shieling`",
    )?;

    let mut again = pip(&python);
    again
        .args(["install", "--quiet", "--no-deps", "--force-reinstall"])
        .arg(&wheel);
    done(&mut again, "installing the wheel for the tests")?;
    let mut pytest = python_of(&python);
    // Not the sources, in which there is no native module.
    pytest
        .args(["-m", "pytest", "-p", "no:cacheprovider"])
        .args(rest)
        .current_dir(&project);
    let status = pytest.status().context("cannot start pytest")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Builds the wheel, and gives its path.
fn wheel(python: &Path, project: &Path, to: &Path, release: bool) -> anyhow::Result<PathBuf> {
    if to.exists() {
        std::fs::remove_dir_all(to).context("removing the last wheel")?;
    }
    let mut build = python_of(python);
    build
        .args(["-m", "maturin", "build", "--quiet", "--out"])
        .arg(to)
        .current_dir(project);
    if release {
        build.args(["--release", "--strip"]);
    } else {
        // It runs on this host only, whatever its C library is.
        build.args(["--compatibility", "linux"]);
    }
    done(&mut build, "building the wheel")?;
    let mut wheels = std::fs::read_dir(to)?.collect::<Result<Vec<_>, _>>()?;
    ensure!(wheels.len() == 1, "{} wheels were built, and not one", wheels.len());
    Ok(wheels.remove(0).path())
}

/// A virtual environment, made if it is not there. Gives its directory.
fn environment(at: &Path) -> anyhow::Result<PathBuf> {
    if !at.join("bin/python").exists() {
        let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
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
