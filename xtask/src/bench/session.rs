//! What a session costs: a command in it, many of them idle, many of them busy, a flood through one.
//!
//! The floor is a raw bash on two pipes, written to and read from by hand.

mod crowd;
mod flood;
mod mcp;
mod raw;

use std::path::Path;
use std::time::{Duration, Instant};

use super::measure::not_measured;
use super::measure::{Measured, Plan, Row, interleaved};
use super::scratch::Scratch;
use super::target::{Target, table};
use crate::subject::{Caller, Library, Place};

/// What a command in a session is to take: at most so long, and so many times a raw bash.
const ROUND_TRIP: Duration = Duration::from_micros(100);
const RATIO: f64 = 4.0;
const WORST: Duration = Duration::from_millis(1);
/// And over MCP.
const OVER_MCP: Duration = Duration::from_micros(400);

/// The whole section. `program` is where the built `shieling` stands.
pub(crate) fn run(program: &Path) -> anyhow::Result<String> {
    let scratch = Scratch::new("session")?;
    let caller = Caller::here(scratch.path())?;
    let library = Library::new(&caller)?;
    let mut text = String::new();
    for (title, section) in [
        ("`:` and back", round_trips(&library, program, scratch.path())),
        ("1,000 idle sessions", crowd::idle(scratch.path())),
        ("64 busy sessions", crowd::busy(scratch.path())),
        ("200 MB through a session", flood::run(scratch.path())),
    ] {
        let section = section.unwrap_or_else(not_measured);
        text.push_str(&format!("### {title}\n\n{}\n\n", section.trim_end()));
    }
    Ok(text)
}

/// What this program does where the bench starts it anew.
pub(crate) fn work(what: &str, workspace: &Path) -> anyhow::Result<Option<String>> {
    let library = |worker: &str| anyhow::Ok((worker == what).then(|| Caller::here(workspace)).transpose()?);
    Ok(Some(if let Some(caller) = library("idle")? {
        crowd::idle_here(&Library::new(&caller)?)?
    } else if let Some(caller) = library("busy")? {
        crowd::busy_here(&Library::new(&caller)?)?
    } else if let Some(caller) = library("flood")? {
        flood::here(&Library::new(&caller)?)?
    } else {
        return Ok(None);
    }))
}

fn round_trips(library: &Library, program: &Path, workspace: &Path) -> anyhow::Result<String> {
    let mut raw = raw::Bash::start()?;
    let (local, sandbox) = (library.local(), library.sandbox());
    let mut server = mcp::Server::start(program, workspace)?;
    let ready = server.ready;
    for place in [&local, &sandbox] {
        // Its shell is started with the first command.
        place.session("main", ":")?;
    }
    server.call(":")?;
    let rows = vec![
        Row::new("a raw bash on two pipes", || raw.round_trip()),
        Row::new("library, `local`", || timed(&local)),
        Row::new("library, `sandbox`", || timed(&sandbox)),
        Row::new("`shieling mcp`, `local`", || server.call(":")),
    ];
    let plan = Plan {
        rounds: 20,
        calls_a_round: 200,
    };
    let targets = [
        Target::None,
        Target::InAll(ROUND_TRIP),
        Target::InAll(ROUND_TRIP),
        Target::InAll(OVER_MCP),
    ];
    let measured = interleaved(rows, plan)?;
    let floor = measured.first().map(Measured::median).unwrap_or_default();
    let notes: Vec<String> = measured
        .iter()
        .skip(1)
        .take(2)
        .map(|row| {
            let worst = row.quantile(0.99);
            let says = |held: bool| if held { "held" } else { "**missed**" };
            format!(
                "{}: {:.1} times the raw bash (target ≤ {RATIO}, {}); p99 ≤ 1 ms {}.",
                row.name,
                row.median().as_secs_f64() / floor.as_secs_f64(),
                says(row.median() <= floor.mul_f64(RATIO)),
                says(worst <= WORST)
            )
        })
        .collect();
    let rows: Vec<(Measured, Target)> = measured.into_iter().zip(targets).collect();
    drop(raw);
    local.end();
    sandbox.end();
    Ok(format!(
        "{}\n{}\n\n`shieling mcp` answers {} after its start (target ≤ 20 ms).\n",
        table(&rows),
        notes.join("\n"),
        super::measure::shown(ready)
    ))
}

fn timed(place: &Place<'_>) -> anyhow::Result<Duration> {
    let start = Instant::now();
    place.session("main", ":")?;
    Ok(start.elapsed())
}
