//! Cargo, and the root of the workspace.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Context as _;

/// Runs this task again in a release build, since measurements of a debug build mean nothing.
pub(crate) fn again_in_release(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let status = cargo()
        .args(["run", "--release", "--quiet", "--package", "xtask", "--"])
        .args(arguments)
        .status()
        .context("cannot start cargo")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the cargo that started this program, with the root of the workspace as its directory.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Returns the root of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}
