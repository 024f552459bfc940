//! Makes the agent program for builds without optimisation, which do not carry it, and for the tests: static, as a
//! release carries it, but without optimisation.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use crate::workspace::{cargo, root};

/// The platform that it is made for.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds it where `shieling-remote` looks for it: `target/agent`.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let mut command = cargo();
    command
        .args([
            "build",
            "--locked",
            "--package",
            "shieling-remote",
            "--bin",
            "shieling-agent",
        ])
        // With a target of its own, these flags are for that alone: what runs during builds is shared with other builds.
        .args(["--target", TARGET])
        .arg("--target-dir")
        .arg(&target)
        .env(
            "RUSTFLAGS",
            "-Ctarget-feature=+crt-static -Cpanic=abort -Cstrip=symbols",
        );
    for name in [
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_TARGET",
    ] {
        command.env_remove(name);
    }
    if !command.status().context("cannot start cargo")?.success() {
        bail!("the agent program could not be built");
    }
    let built = target.join(TARGET).join("debug/shieling-agent");
    let bytes = std::fs::read(&built).with_context(|| built.display().to_string())?;
    let mut digest = String::new();
    for byte in Sha256::digest(&bytes) {
        write!(digest, "{byte:02x}")?;
    }
    let place = target.join("agent").join(TARGET);
    std::fs::create_dir_all(&place)?;
    let program = place.join("shieling-agent");
    // Not over one that runs.
    let new = place.join("shieling-agent.new");
    std::fs::copy(&built, &new)?;
    std::fs::rename(&new, &program)?;
    std::fs::write(program.with_extension("sha256"), digest)?;
    println!("{}: {:.1} MB", program.display(), bytes.len() as f64 / 1e6);
    Ok(ExitCode::SUCCESS)
}
