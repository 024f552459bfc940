//! How long it takes to end a sandbox whose processes do what they can to stay.

use std::time::{Duration, Instant};

use anyhow::ensure;
use shieling_testkit::{Marker, leftovers};

use crate::bench::measure::{Measured, shown};
use crate::bench::target::Target;
use crate::subject::Library;

const PROCESSES: usize = 200;
const RUNS: usize = 5;
const TARGET: Target = Target::InAll(Duration::from_millis(50));
/// How long they may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn run(library: &Library) -> anyhow::Result<String> {
    let (mut times, mut survivors) = (Vec::new(), 0);
    for _ in 0..RUNS {
        let (took, left) = once(library)?;
        times.push(took);
        survivors += left;
    }
    let measured = Measured::new("", times);
    let median = measured.median();
    Ok(format!(
        "Closing a sandbox with {PROCESSES} daemons (two forks, a session of their own, SIGTERM ignored), which are \
         looked for in `/proc` right afterwards.\n\n\
         | n | min | median | max | survivors | target |\n|-|-|-|-|-|-|\n| {RUNS} | {} | {} | {} | {survivors} | {}; 0 survivors |\n",
        shown(measured.quantile(0.0)),
        shown(median),
        shown(measured.quantile(1.0)),
        TARGET.told(median, Duration::ZERO),
    ))
}

/// Ends one such sandbox: the time, and how many were left.
fn once(library: &Library) -> anyhow::Result<(Duration, usize)> {
    let marker = Marker::new();
    let (name, mark) = marker.variable();
    let script = format!(
        "export {name}={mark}; trap '' TERM\n\
         for i in $(seq {PROCESSES}); do (setsid sleep 300 &); done\n\
         sleep 300"
    );
    // The shell has the mark too, in its arguments or as what it has become.
    let marked = PROCESSES + 1;
    let place = library.sandbox();
    let begun = Instant::now();
    let all_there = || leftovers(&marker).len() >= marked || begun.elapsed() > PATIENCE;
    let took = place.close_under(&script, all_there)?;
    let left = leftovers(&marker).len();
    ensure!(
        begun.elapsed() < PATIENCE,
        "{PROCESSES} processes did not start within {PATIENCE:?}"
    );
    Ok((took, left))
}
