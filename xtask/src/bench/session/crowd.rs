//! Many sessions at once: what an idle one holds, and whether busy ones all get their share.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::subject::Library;

const IDLE: usize = 1_000;
const LARGEST_IDLE_KIB: f64 = 20.0;
const BUSY: usize = 64;
const BUSY_FOR: Duration = Duration::from_secs(8);

/// This program, doing this in a process of its own, so that nothing else is in its memory.
pub(super) fn worker(what: &str, workspace: &Path) -> anyhow::Result<String> {
    // 1,000 sessions need some thousand descriptors.
    let output = Command::new("bash")
        .args([
            "-c",
            "ulimit -n 20000 2>/dev/null; exec \"$0\" bench-worker \"$1\" \"$2\"",
        ])
        .arg(std::env::current_exe()?)
        .arg(what)
        .arg(workspace)
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", error.trim());
    Ok(String::from_utf8(output.stdout)?)
}

pub(super) fn idle(workspace: &Path) -> anyhow::Result<String> {
    worker("idle", workspace)
}

pub(super) fn busy(workspace: &Path) -> anyhow::Result<String> {
    worker("busy", workspace)
}

/// Opens the sessions one after another and compares this process's own memory.
pub(super) fn idle_here(library: &Library) -> anyhow::Result<String> {
    let place = library.local();
    for number in 0..20 {
        place.session(&format!("warm{number}"), ":")?;
    }
    let (before, begun) = (resident()?, Instant::now());
    for number in 0..IDLE {
        place.session(&format!("s{number}"), ":")?;
    }
    let (took, after) = (begun.elapsed(), resident()?);
    let each = (after.saturating_sub(before)) as f64 / IDLE as f64;
    let shells = shells()?;
    let held = if each <= LARGEST_IDLE_KIB { "held" } else { "**missed**" };
    let text = format!(
        "{each:.1} KiB each in this process (VmRSS {before} → {after} KiB; target ≤ 20 KB, {held}). Each also has a bash \
         and a supervisor of its own: {shells:.0} KiB each (Pss of {IDLE} of both). Opened one after another in {:.1} s, \
         {:.2} ms each, with a first command.\n",
        took.as_secs_f64(),
        took.as_secs_f64() * 1_000.0 / IDLE as f64,
    );
    place.end();
    Ok(text)
}

/// Has all of them do the same small thing again and again for some seconds.
pub(super) fn busy_here(library: &Library) -> anyhow::Result<String> {
    let place = library.local();
    let mut counts = place.busy(BUSY, "for ((i = 0; i < 2000; i++)); do :; done", BUSY_FOR)?;
    counts.sort_unstable();
    let (least, most) = (*counts.first().context("some")?, *counts.last().context("some")?);
    let median = counts[counts.len() / 2];
    let text = format!(
        "{} commands in {:.0} s, on 2 cores; per session least {least}, median {median}, most {most}: the least got {:.2} \
         of the most.\n",
        counts.iter().sum::<usize>(),
        BUSY_FOR.as_secs_f64(),
        least as f64 / most.max(1) as f64
    );
    place.end();
    Ok(text)
}

fn resident() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let line = line.context("the kernel tells it")?.trim();
    Ok(line.strip_suffix("kB").context("in kB")?.trim().parse()?)
}

/// What the processes below the zygote hold, in KiB of Pss for each session.
fn shells() -> anyhow::Result<f64> {
    let mut sum = 0_u64;
    let mut count = 0;
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
        if name.trim() != "bash" && !name.starts_with("shieling") {
            continue;
        }
        let Ok(rollup) = fs::read_to_string(path.join("smaps_rollup")) else {
            continue;
        };
        let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        sum += kib.unwrap_or(0);
        count += usize::from(name.trim() == "bash");
    }
    Ok(sum as f64 / count.max(1) as f64)
}
