//! The built `shieling`, as a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::subject::Caller;

/// A command that tells where it runs, and by its status that it was it.
const PROOF: &str = "readlink /proc/self/ns/mnt; exit 7";

/// `shieling exec` in one environment, once it has proved to run commands there.
pub(in crate::bench) struct Exec<'a> {
    program: PathBuf,
    environment: &'static str,
    caller: &'a Caller,
}

impl<'a> Exec<'a> {
    /// # Errors
    /// What it did instead: a program that does nothing is fast and must not be measured.
    pub(in crate::bench) fn new(program: &Path, environment: &'static str, caller: &'a Caller) -> anyhow::Result<Self> {
        let exec = Self {
            program: program.to_path_buf(),
            environment,
            caller,
        };
        let output = exec.command(PROOF).output().context("it cannot be started")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(7),
            "it did not run a command: {}",
            error.trim()
        );
        let there = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let outside = Path::new(&there) == fs::read_link("/proc/self/ns/mnt")?;
        ensure!(
            there.starts_with("mnt:") && outside == (environment == "local"),
            "it ran a command elsewhere than in `{environment}`"
        );
        Ok(exec)
    }

    pub(in crate::bench) fn command(&self, text: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["exec", "--env", self.environment]);
        match self.environment {
            "local" => command.args(["--approval", "never", "--acknowledge-unsafe"]),
            _ => command.args(["--approval", "policy"]),
        };
        command
            .args(["--", text])
            .env_clear()
            .envs(self.caller.variables())
            .current_dir(&self.caller.workspace)
            .stdin(Stdio::null());
        command
    }
}
