//! One word replaced in a large file, against `cp`, which only writes as much.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use shieling::files::{EditRequest, FileRequest, FileResponse};

use crate::bench::measure::time;
use crate::bench::measure::{Plan, Row, interleaved};
use crate::bench::target::{Target, table};
use crate::subject::Library;

const LINE: &str = "an ordinary line of text that is neither short nor long\n";
const SIZE: usize = 50_000_000;
const TARGET: Target = Target::InAll(Duration::from_millis(500));

pub(super) fn run(library: &Library, scratch: &Path) -> anyhow::Result<String> {
    let path = scratch.join("edited");
    let half = LINE.repeat(SIZE / LINE.len() / 2);
    fs::write(&path, format!("{half}the word is here\n{half}"))?;
    let place = library.local();
    let mut words = ["here", "there"];
    let rows = vec![
        Row::new("`cp`", || {
            let mut cp = Command::new("cp");
            cp.arg(&path).arg(scratch.join("copied"));
            time(cp)
        }),
        Row::new("library", || {
            let [now, then] = words;
            let ask = EditRequest::new(
                "edited",
                format!("the word is {now}\n"),
                format!("the word is {then}\n"),
            );
            let start = Instant::now();
            let answer = place.file(FileRequest::Edit(ask))?;
            let took = start.elapsed();
            let once = matches!(&answer, FileResponse::Edit(edited) if edited.replacements == 1);
            ensure!(once, "it gave {answer:?}");
            words.reverse();
            Ok(took)
        }),
    ];
    let plan = Plan {
        rounds: 4,
        calls_a_round: 3,
    };
    let rows: Vec<_> = interleaved(rows, plan)?
        .into_iter()
        .zip([Target::None, TARGET])
        .collect();
    place.end();
    fs::remove_file(&path)?;
    Ok(table(&rows))
}
