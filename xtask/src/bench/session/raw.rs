//! The floor: bash, a pipe to write to and a pipe to read from.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

pub(super) struct Bash {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Bash {
    pub(super) fn start() -> anyhow::Result<Self> {
        let mut child = Command::new("/bin/bash")
            .args(["--noprofile", "--norc"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self {
            stdin: child.stdin.take().context("it was asked for")?,
            stdout: BufReader::new(child.stdout.take().context("it was asked for")?),
            child,
        })
    }

    /// `:`, and its status.
    pub(super) fn round_trip(&mut self) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.stdin.write_all(b":\necho $?\n")?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let took = start.elapsed();
        ensure!(line == "0\n", "bash says {line:?}");
        Ok(took)
    }
}

impl Drop for Bash {
    fn drop(&mut self) {
        // It ends at the end of its input; it is not worth an error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
