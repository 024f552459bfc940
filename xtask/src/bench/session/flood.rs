//! A flood of output through a session, against reading it from a pipe and dropping it.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::super::measure::shown;
use super::crowd::worker;
use crate::subject::Library;

const BYTES: u64 = 200_000_000;
const MOST_KIB: u64 = 32 * 1024;
const LEAST_MB_A_SECOND: f64 = 500.0;

pub(super) fn run(workspace: &Path) -> anyhow::Result<String> {
    worker("flood", workspace)
}

pub(super) fn here(library: &Library) -> anyhow::Result<String> {
    let text = format!("head -c {BYTES} /dev/zero");
    let place = library.local();
    place.session("main", ":")?;
    let before = peak()?;
    let (mut floor, mut ours) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        floor = floor.min(drain(&text)?);
        let start = Instant::now();
        let outcome = place.session("main", &text)?;
        ours = ours.min(start.elapsed());
        ensure!(outcome.stdout_bytes == BYTES, "{} bytes came", outcome.stdout_bytes);
    }
    let growth = peak()?.saturating_sub(before);
    let speed = BYTES as f64 / 1e6 / ours.as_secs_f64();
    let says = |held: bool| if held { "held" } else { "**missed**" };
    let told = format!(
        "Least of 5: drained and dropped {}, through a session {} ({:.2} times), {speed:.0} MB/s (target ≥ 500, {}). \
         Peak memory grew by {growth} KiB (target ≤ 32 MB, {}).\n",
        shown(floor),
        shown(ours),
        ours.as_secs_f64() / floor.as_secs_f64(),
        says(speed >= LEAST_MB_A_SECOND || ours <= floor.mul_f64(1.1)),
        says(growth <= MOST_KIB),
    );
    place.end();
    Ok(told)
}

fn drain(text: &str) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let mut child = Command::new("/bin/bash")
        .args(["--noprofile", "--norc", "-c", text])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut pipe = child.stdout.take().context("it was asked for")?;
    let mut buffer = vec![0; 256 * 1024];
    while pipe.read(&mut buffer)? > 0 {}
    child.wait()?;
    Ok(start.elapsed())
}

/// The most memory that this process has had, in KiB.
fn peak() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let line = line.context("the kernel tells it")?.trim();
    Ok(line.strip_suffix("kB").context("in kB")?.trim().parse()?)
}
