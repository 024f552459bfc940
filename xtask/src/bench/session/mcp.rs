//! `shieling mcp`, spoken to by hand: one line there, one line back.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

pub(super) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    number: u64,
    /// From its start to its first answer.
    pub(super) ready: Duration,
}

impl Server {
    pub(super) fn start(program: &Path, workspace: &Path) -> anyhow::Result<Self> {
        let start = Instant::now();
        let mut child = Command::new(program)
            .args(["mcp", "--env", "local", "--approval", "never", "--acknowledge-unsafe"])
            .arg("--workspace")
            .arg(workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("`shieling mcp` does not start")?;
        let mut server = Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().context("it was asked for")?),
            child,
            number: 0,
            ready: Duration::ZERO,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        });
        server.ask("initialize", &hello)?;
        server.ready = start.elapsed();
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    /// Runs a command in its session.
    pub(super) fn call(&mut self, command: &str) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let arguments = json!({"name": "shell", "arguments": {"command": command}});
        let result = self.ask("tools/call", &arguments)?;
        let took = start.elapsed();
        ensure!(
            result["structuredContent"]["exit_code"] == 0,
            "`{command}` gave {result}"
        );
        Ok(took)
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let stdin = self.stdin.as_mut().context("it is open")?;
        stdin.write_all(format!("{message}\n").as_bytes())?;
        Ok(())
    }

    fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.number += 1;
        let id = self.number;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            ensure!(self.stdout.read_line(&mut line)? > 0, "it has ended");
            let mut answer: Value = serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?;
            if answer["id"] == id {
                if !answer["error"].is_null() {
                    bail!("`{method}` gave {answer}");
                }
                return Ok(answer["result"].take());
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It ends at the end of its input.
        let _ = self.child.wait();
    }
}
