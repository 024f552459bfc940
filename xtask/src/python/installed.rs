//! The wheel as its users have it: alone in a clean environment, of each Python that there is, and of an ordinary user.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::workspace::root;

/// The user and group that are nobody's, for an installation of an ordinary user.
const ORDINARY: &str = "65534";

/// Debian's own Python, which every user can start.
const SYSTEM: &str = "/usr/bin/python3";

/// Installs the wheel for each user and Python, and runs the examples of the README with it.
pub(super) fn check(place: &Path, wheel: &Path, default: &Path) -> anyhow::Result<()> {
    let examples = examples(&std::fs::read_to_string(root().join("README.md"))?);
    ensure!(examples.len() >= 2, "the README has no examples for Python any more");
    let default = version(default).context("there is no Python")?;
    let mut pythons = vec![default.clone()];
    let system = version(Path::new(SYSTEM));
    pythons.extend(system.clone().filter(|one| one.path != default.path));
    match newest() {
        Some(newest) if newest.number > default.number => pythons.push(newest),
        _ => println!("no Python newer than {} is here", default.shown()),
    }
    for python in &pythons {
        install(&place.join("clean"), wheel, python, &examples, None)?;
    }
    let is_root = std::fs::metadata("/proc/self")?.uid() == 0;
    match system {
        Some(system) if is_root => {
            // Where that user reaches it, whoever owns the directories above this repository.
            let beside = std::env::temp_dir().join(format!("shieling-installed-{}", std::process::id()));
            std::fs::create_dir(&beside)?;
            let done = ordinary(&beside, wheel, &system, &examples);
            std::fs::remove_dir_all(&beside)?;
            done?;
        }
        Some(_) => println!("the user is an ordinary one already"),
        None => println!("not tried as an ordinary user: there is no {SYSTEM}"),
    }
    Ok(())
}

fn ordinary(beside: &Path, wheel: &Path, python: &Python, examples: &[String]) -> anyhow::Result<()> {
    let name = wheel.file_name().context("a wheel has a name")?;
    let copy = beside.join(name);
    std::fs::copy(wheel, &copy)?;
    let home = beside.join("home");
    std::fs::create_dir(&home)?;
    let id = ORDINARY.parse()?;
    std::os::unix::fs::chown(&home, Some(id), Some(id))?;
    install(&home.join("clean"), &copy, python, examples, Some(&home))
}

/// One clean installation. `home`: that of the ordinary user.
fn install(
    clean: &Path,
    wheel: &Path,
    python: &Python,
    examples: &[String],
    home: Option<&Path>,
) -> anyhow::Result<()> {
    let user = if home.is_some() {
        "an ordinary user"
    } else {
        "this user"
    };
    println!("── installing for {user}, Python {}", python.shown());
    if clean.exists() {
        std::fs::remove_dir_all(clean).context("removing the last clean environment")?;
    }
    let said = |command: &mut Command, what: &str| -> anyhow::Result<String> {
        let output = command.output().with_context(|| format!("cannot start: {what}"))?;
        ensure!(
            output.status.success(),
            "{what} ({user}, Python {}): {}\n{}",
            python.shown(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let directory = clean.parent().context("it stands in a directory")?;
    let start = |program: &Path| {
        let mut command = match home {
            Some(home) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups", "--"]);
                command.arg(program).env("HOME", home);
                command
            }
            None => Command::new(program),
        };
        command
            .env_remove("PYTHONPATH")
            .env_remove("PYTHONHOME")
            .current_dir(directory);
        command
    };
    said(
        start(&python.path).args(["-m", "venv"]).arg(clean),
        "making a virtual environment (Debian: python3-venv)",
    )?;
    let fresh = clean.join("bin/python");
    said(
        start(&fresh)
            .args([
                "-m",
                "pip",
                "--disable-pip-version-check",
                "install",
                "--quiet",
                "--no-index",
            ])
            .arg(wheel),
        "installing the wheel alone",
    )?;
    for example in examples {
        let printed = said(start(&fresh).arg("-c").arg(example), "an example of the README")?;
        ensure!(
            !printed.trim().is_empty(),
            "an example of the README prints nothing:\n{example}"
        );
    }
    let mut command = start(&clean.join("bin/shieling"));
    let number = said(command.arg("--version").env_remove("PATH"), "the command `shieling`")?;
    ensure!(
        number.contains(env!("CARGO_PKG_VERSION")),
        "`shieling --version` says {number}"
    );
    said(
        start(&fresh).args(["-m", "shieling", "doctor"]),
        "`python -m shieling doctor`",
    )?;
    Ok(())
}

/// The examples for Python in a text of Markdown.
fn examples(text: &str) -> Vec<String> {
    let blocks = text.split("```python\n").skip(1);
    blocks
        .filter_map(|block| block.split_once("\n```").map(|(code, _)| code.to_owned()))
        .collect()
}

/// A Python interpreter.
#[derive(Clone, Debug)]
struct Python {
    path: PathBuf,
    number: (u32, u32),
}

impl Python {
    fn shown(&self) -> String {
        format!("{}.{} ({})", self.number.0, self.number.1, self.path.display())
    }
}

/// The interpreter with this name, if it starts and can make virtual environments.
fn version(name: &Path) -> Option<Python> {
    let tell = "import ensurepip, os, sys, venv; print(*sys.version_info[:2], os.path.realpath(sys.executable))";
    let output = Command::new(name).args(["-I", "-c", tell]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut words = text.trim().splitn(3, ' ');
    Some(Python {
        number: (words.next()?.parse().ok()?, words.next()?.parse().ok()?),
        path: words.next()?.into(),
    })
}

/// The newest interpreter on the `PATH` or among pyenv's.
fn newest() -> Option<Python> {
    let mut found: Vec<PathBuf> = (11..30).map(|minor| format!("python3.{minor}").into()).collect();
    let home = std::env::var_os("HOME").unwrap_or_default();
    if let Ok(versions) = std::fs::read_dir(Path::new(&home).join(".pyenv/versions")) {
        found.extend(
            versions
                .filter_map(Result::ok)
                .map(|entry| entry.path().join("bin/python3")),
        );
    }
    found
        .iter()
        .filter_map(|name| version(name))
        .filter(|python| python.number.0 == 3)
        .max_by_key(|python| python.number)
}

#[cfg(test)]
mod tests {
    #[test]
    fn examples_are_the_blocks_of_python() {
        let text = "a\n```python\nx = 1\nprint(x)\n```\nb\n```sh\nls\n```\n```python\ny\n```\n";
        assert_eq!(super::examples(text), ["x = 1\nprint(x)", "y"]);
    }
}
