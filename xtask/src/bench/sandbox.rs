//! What a sandbox costs: to start, to work in, to end, and to keep.
//!
//! The floor is the same text in the same shell with the same variables, started bare. What cannot be
//! measured here says so, and why.

mod bubblewrap;
mod end;
mod exec;
mod files;
mod size;
mod start;

pub(super) use bubblewrap::Same;
pub(super) use exec::Exec;
pub(super) use start::bare;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::measure::not_measured;
use super::scratch::Scratch;
use crate::subject::{Caller, Library};

/// A user with no rights of its own, as many systems have it.
const NOBODY: u32 = 65_534;

/// The whole section. `program` is where the built `shieling` stands.
pub(crate) fn run(program: &Path) -> anyhow::Result<String> {
    let scratch = Scratch::new("sandbox")?;
    let caller = Caller::here(scratch.path())?;
    let library = Library::new(&caller)?;
    let place = library.sandbox();
    let confinement = match place.run("true") {
        Ok(outcome) => outcome.confinement,
        Err(error) => return Ok(format!("Not measured: no sandbox starts here. {error:#}\n")),
    };
    place.close();

    let mut text = format!("Enforced: {}.", list(&confinement.enforced));
    if !confinement.missing.is_empty() {
        text.push_str(&format!(" Missing on this machine: {}.", list(&confinement.missing)));
    }
    let root = is_root();
    let as_user = if root {
        unprivileged(scratch.path()).unwrap_or_else(not_measured)
    } else {
        String::new()
    };
    let who = if root { "root" } else { "an ordinary user" };
    for (title, section) in [
        (format!("A start, as {who}"), start::run(&library, &caller, program)?),
        ("A start, as an ordinary user".to_owned(), as_user),
        ("Work with many files".to_owned(), files::run(&scratch)?),
        ("An end".to_owned(), end::run(&library).unwrap_or_else(not_measured)),
        ("Sizes".to_owned(), size::run(&library).unwrap_or_else(not_measured)),
    ] {
        if !section.is_empty() {
            text.push_str(&format!("\n\n### {title}\n\n{}", section.trim_end()));
        }
    }
    text.push('\n');
    Ok(text)
}

/// What this program does where the bench starts it anew.
pub(crate) fn work(what: &str, workspace: &Path) -> anyhow::Result<String> {
    let caller = Caller::here(workspace)?;
    let library = Library::new(&caller)?;
    match what {
        "first" => start::first(&library),
        "user" => start::few(&library, &caller),
        unknown => anyhow::bail!("there is no work `{unknown}`"),
    }
}

/// The smaller table, made by this program as another user: root pays for cgroups, others for counting.
fn unprivileged(scratch: &Path) -> anyhow::Result<String> {
    // Where it stands now, that user may not be able to reach it.
    let folder = scratch.join("user");
    let (program, workspace) = (folder.join("xtask"), folder.join("work"));
    fs::create_dir_all(&workspace)?;
    fs::copy(std::env::current_exe()?, &program)?;
    for path in [scratch, &folder, &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    chown(&workspace, Some(NOBODY), Some(NOBODY))?;
    let output = Command::new("setpriv")
        .args([
            "--reuid",
            &NOBODY.to_string(),
            "--regid",
            &NOBODY.to_string(),
            "--clear-groups",
            "--",
        ])
        .arg(&program)
        .args(["bench-worker", "user"])
        .arg(&workspace)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", &workspace)
        .current_dir(&workspace)
        .output()
        .context("`setpriv` is needed to become another user")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "as user {NOBODY}: {}", error.trim());
    Ok(String::from_utf8(output.stdout)?)
}

fn list(names: &[String]) -> String {
    names.join(", ")
}

/// Whether this process is root's.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0)
}
