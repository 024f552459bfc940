//! How long a command takes, how much memory a flood of output takes, and what a timeout leaves behind.
//!
//! The floor is the same bash, started bare: `std::process` uses `posix_spawn` here.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::measure::{Plan, Row, interleaved, shown, table, time};
use crate::subject::OneShot;

/// Options that let the command run without a terminal to ask at.
const UNATTENDED: &[&str] = &["exec", "--env", "local", "--approval", "never", "--acknowledge-unsafe"];

/// Bytes of the flood, in lines of 64.
const FLOOD_BYTES: usize = 200_000_000;

/// The built `shieling`, once it has proved to be one.
pub(crate) struct Program(PathBuf);

impl Program {
    /// Takes the program at `path`, if it runs commands.
    ///
    /// # Errors
    /// What it did instead: a program that does nothing is fast and must not be measured.
    pub(crate) fn new(path: PathBuf) -> anyhow::Result<Self> {
        let program = Self(path);
        let output = program
            .exec(&["--", "printf proof; exit 7"])
            .output()
            .context("cannot start it")?;
        ensure!(
            output.stdout == b"proof" && output.status.code() == Some(7),
            "`shieling exec` did not run a command as it should: {}, {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(program)
    }

    fn exec(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        command.args(UNATTENDED).args(arguments).stdin(Stdio::null());
        command
    }
}

fn bash(script: &str) -> Command {
    let mut command = Command::new("/bin/bash");
    command
        .args(["--noprofile", "--norc", "-c", script])
        .stdin(Stdio::null());
    command
}

/// One command: bare bash, through the library, and as a process of our own.
pub(crate) fn one_shot(library: Option<OneShot>, program: Option<&Program>) -> anyhow::Result<String> {
    let mut rows = vec![Row::new("bare `bash --noprofile --norc -c true`", || {
        time(bash("true"))
    })];
    if let Some(mut library) = library {
        rows.push(Row::new("library, `true` in `local`", move || {
            let start = Instant::now();
            library()?;
            Ok(start.elapsed())
        }));
    }
    if let Some(program) = program {
        rows.push(Row::new("`shieling exec`, start to exit", || {
            time(program.exec(&["--", "true"]))
        }));
    }
    Ok(table(&interleaved(
        rows,
        Plan {
            rounds: 12,
            calls_a_round: 40,
        },
    )?))
}

/// A flood of output: the time to read and drop it, and ours with 64 KiB kept.
pub(crate) fn flood(program: &Program, folder: &Path) -> anyhow::Result<String> {
    let file = folder.join("flood");
    write_flood(&file)?;
    let file = file.to_str().context("the temporary folder's name is not UTF-8")?;
    let script = format!("cat {file}");

    let mut peaks = Vec::new();
    let rows = vec![
        Row::new("drain and drop", || drain(file)),
        Row::new("`shieling exec --max-output 64KiB`", || {
            let (took, peak) = watched(program.exec(&["--max-output", "64KiB", "--", &script]))?;
            peaks.push(peak);
            Ok(took)
        }),
    ];
    let mut text = table(&interleaved(
        rows,
        Plan {
            rounds: 4,
            calls_a_round: 1,
        },
    )?);
    let (_, idle) = watched(program.exec(&["--max-output", "64KiB", "--", "sleep 0.2"]))?;
    let peak = peaks.iter().copied().max().unwrap_or_default();
    let growth = peak.saturating_sub(idle);
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\nPeak memory (VmHWM): idle {idle} KiB, in the flood {peak} KiB, growth {growth} KiB."
    );
    Ok(text)
}

fn write_flood(path: &Path) -> anyhow::Result<()> {
    let line = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
    let chunk = line.repeat(1_000);
    let mut file = fs::File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    for _ in 0..FLOOD_BYTES / chunk.len() {
        file.write_all(&chunk)?;
    }
    Ok(())
}

fn drain(file: &str) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut child = Command::new("cat").arg(file).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().context("the pipe was asked for")?;
    let mut buffer = vec![0; 64 * 1024];
    while pipe.read(&mut buffer)? > 0 {}
    child.wait()?;
    Ok(start.elapsed())
}

/// Runs it to its end and reads its peak memory in KiB meanwhile.
fn watched(mut command: Command) -> anyhow::Result<(Duration, u64)> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        // The peak only rises, so the last look before the end is the one that counts.
        if let Ok(text) = fs::read_to_string(&status) {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
            peak = peak.max(kib.unwrap_or(0));
        }
        if let Some(ended) = child.try_wait()? {
            ensure!(ended.success(), "{command:?} ended with {ended}");
            return Ok((start.elapsed(), peak));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A timeout of 2 s with a child in the group and one that left it.
pub(crate) fn deadline(program: &Program) -> anyhow::Result<String> {
    // A length that nobody else sleeps, to find the sleepers again.
    let sleep = format!("300.{}", std::process::id());
    let script = format!("echo partial; setsid sleep {sleep} & sleep {sleep}");
    let mut text = String::from("| row | took | partial output kept | survivors after 0.5 s |\n|-|-|-|-|\n");

    let mut timeout = Command::new("timeout");
    timeout
        .args(["2", "/bin/bash", "--noprofile", "--norc", "-c", &script])
        .stdin(Stdio::null());
    // Bare `timeout` leaves a sleeper that holds the pipe, so its output goes to a file.
    let folder = super::scratch::Scratch::new("deadline")?;
    let kept = folder.path().join("kept");
    timeout.stdout(fs::File::create(&kept)?).stderr(Stdio::null());
    let start = Instant::now();
    timeout.status()?;
    let took = start.elapsed();
    let partial = fs::read_to_string(&kept)?.contains("partial");
    line(&mut text, "**`timeout 2 bash`**", took, partial, &sleep)?;

    let start = Instant::now();
    let output = program.exec(&["--timeout", "2s", "--", &script]).output()?;
    let took = start.elapsed();
    let partial = String::from_utf8_lossy(&output.stdout).contains("partial");
    line(&mut text, "`shieling exec --timeout 2s`", took, partial, &sleep)?;
    Ok(text)
}

fn line(text: &mut String, name: &str, took: Duration, partial: bool, sleep: &str) -> anyhow::Result<()> {
    std::thread::sleep(Duration::from_millis(500));
    let left = sleepers(sleep)?;
    for process in &left {
        // The floor's leftovers, ended by number.
        Command::new("kill").arg(process.to_string()).status()?;
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {} |",
        shown(took),
        if partial { "yes" } else { "no" },
        left.len()
    );
    Ok(())
}

/// The processes that sleep this long.
fn sleepers(sleep: &str) -> anyhow::Result<Vec<u32>> {
    let wanted = format!("sleep\0{sleep}\0");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes()) {
            found.push(process);
        }
    }
    Ok(found)
}
