//! How large the jail's program is, and how much memory its processes hold while nothing runs.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use crate::subject::Library;

/// By depth below the process from which all come.
const ROLES: [&str; 4] = ["zygote", "monitor", "server, pid 1 inside", "supervisor, waiting"];
const LARGEST_PROGRAM_BYTES: u64 = 2_000_000;
const LARGEST_RESIDENT_KIB: u64 = 3 * 1024;

pub(super) fn run(library: &Library) -> anyhow::Result<String> {
    let mut text = String::new();
    // Writing to a String cannot fail.
    match program().and_then(|path| Ok(fs::metadata(path)?.len())) {
        Ok(bytes) => {
            let held = verdict(bytes <= LARGEST_PROGRAM_BYTES);
            let _ = writeln!(text, "The jail's program: {bytes} bytes (target ≤ 2 MB, {held}).\n");
        }
        Err(error) => text.push_str(&crate::bench::measure::not_measured(error)),
    }
    let zygote = library.zygote()?;
    let place = library.sandbox();
    place.run("true")?;
    // The next supervisor and the next monitor are made after a command has gone.
    std::thread::sleep(Duration::from_millis(300));
    let _ = writeln!(
        text,
        "Processes of one idle sandbox, with the monitor and the server that wait for the next one:\n"
    );
    let _ = writeln!(text, "| process | VmRSS | Pss |\n|-|-|-|");
    let (mut resident, mut shares) = (0, Some(0));
    for (process, role) in family(zygote) {
        let rss = field(process, "status", "VmRSS:").context("it has gone")?;
        let pss = field(process, "smaps_rollup", "Pss:");
        resident = resident.max(rss);
        shares = shares.zip(pss).map(|(sum, pss)| sum + pss);
        let _ = writeln!(text, "| {role} | {rss} KiB | {} |", kib(pss));
    }
    let held = verdict(resident <= LARGEST_RESIDENT_KIB);
    let _ = writeln!(
        text,
        "\nLargest VmRSS {resident} KiB (target ≤ 3 MiB, {held}); all Pss together {}.",
        kib(shares)
    );
    place.close();
    Ok(text)
}

fn verdict(held: bool) -> &'static str {
    if held { "held" } else { "**missed**" }
}

fn kib(count: Option<u64>) -> String {
    count.map_or_else(|| "not readable".to_owned(), |count| format!("{count} KiB"))
}

/// Where the library's build has put the program: beside all profiles (`crates/shieling/build.rs`).
fn program() -> anyhow::Result<PathBuf> {
    let here = std::env::current_exe()?;
    let targets = here.ancestors().nth(2).context("a build has a directory")?.join("jail");
    let found = fs::read_dir(&targets)
        .with_context(|| format!("{} cannot be listed", targets.display()))?
        .filter_map(|entry| Some(entry.ok()?.path().join("jail/shieling-jail")));
    found
        .into_iter()
        .find(|path| path.exists())
        .context("the jail's program is not where it is built")
}

/// A process and its descendants, each with its role, from the top.
fn family(first: u32) -> Vec<(u32, &'static str)> {
    let mut all = vec![(first, 0)];
    let mut next = 0;
    while let Some(&(parent, depth)) = all.get(next) {
        next += 1;
        let path = format!("/proc/{parent}/task/{parent}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        all.extend(
            children
                .split_whitespace()
                .filter_map(|pid| Some((pid.parse().ok()?, depth + 1))),
        );
    }
    all.sort_by_key(|&(_, depth)| depth);
    all.into_iter()
        .map(|(pid, depth)| (pid, ROLES.get(depth).copied().unwrap_or("other")))
        .collect()
}

/// A line of a process's file, in KiB.
fn field(process: u32, file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
