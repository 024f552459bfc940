//! Lines from the middle of a large file, against `sed`, and how much memory that takes.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use shieling::files::{FileContent, FileRequest, FileResponse, ReadRequest};

use crate::bench::measure::time;
use crate::bench::measure::{Plan, Row, interleaved};
use crate::bench::target::{Target, table};
use crate::subject::Library;

/// The length of a line with its end, and how many there are: 1 GB.
const LINE: usize = 100;
const LINES: u64 = 10_000_000;
const FIRST: u64 = LINES / 2;
const SHOWN: u64 = 100;
const MOST_MEMORY_KIB: u64 = 16 << 10;

pub(super) fn run(library: &Library, scratch: &Path) -> anyhow::Result<String> {
    let path = scratch.join("large");
    make(&path)?;
    let place = library.local();
    let ask = ReadRequest {
        offset: FIRST,
        limit: SHOWN,
        ..ReadRequest::new("large")
    };
    let read = || -> anyhow::Result<()> {
        let FileResponse::Read(read) = place.file(FileRequest::Read(ask.clone()))? else {
            anyhow::bail!("a read gave something else");
        };
        let FileContent::Text { lines, text, .. } = read.content else {
            anyhow::bail!("it was not taken for text");
        };
        ensure!(
            lines == SHOWN && text.starts_with(&format!("{FIRST:08} ")),
            "other lines were read"
        );
        Ok(())
    };
    read()?;
    let grown = growth(read)?;
    let script = format!("{},{}p;{}q", FIRST + 1, FIRST + SHOWN, FIRST + SHOWN);
    let sed = || {
        let mut sed = Command::new("sed");
        sed.args(["-n", &script]).arg(&path);
        sed
    };
    let rows = vec![
        Row::new("`sed -n`", || time(sed())),
        Row::new("library", || {
            let start = Instant::now();
            read()?;
            Ok(start.elapsed())
        }),
    ];
    let plan = Plan {
        rounds: 3,
        calls_a_round: 3,
    };
    let rows: Vec<_> = interleaved(rows, plan)?
        .into_iter()
        .zip([Target::None, Target::Ratio(1.0)])
        .collect();
    place.end();
    fs::remove_file(&path)?;
    let held = if grown <= MOST_MEMORY_KIB { "held" } else { "**missed**" };
    Ok(format!(
        "Lines {FIRST} to {} of {LINES}, warm.\n\n{}\nMemory grows by {grown} KiB meanwhile (target ≤ 16 MiB, {held}).\n",
        FIRST + SHOWN,
        table(&rows)
    ))
}

/// By how much the most memory of this process grows, in KiB.
fn growth(work: impl Fn() -> anyhow::Result<()>) -> anyhow::Result<u64> {
    let field = |name: &str| -> anyhow::Result<u64> {
        let status = fs::read_to_string("/proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.context("the kernel does not say")?.parse().context("a number")
    };
    // The most so far is forgotten.
    fs::write("/proc/self/clear_refs", "5")?;
    let before = field("VmRSS:")?;
    work()?;
    Ok(field("VmHWM:")?.saturating_sub(before))
}

fn make(path: &Path) -> anyhow::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let rest = "x".repeat(LINE - 10);
    for number in 0..LINES {
        writeln!(file, "{number:08} {rest}")?;
    }
    file.flush().context("there is no room for 1 GB")
}
