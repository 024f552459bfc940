//! How long it takes until a command has run: in a new sandbox, in one that runs, in none.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::bubblewrap;
use super::exec::Exec;
use crate::bench::measure::{Measured, Plan, Row, interleaved};
use crate::bench::measure::{one_line, time};
use crate::bench::target::{Target, table};
use crate::subject::{Caller, Library, Place};

const NEW: Target = Target::Over(Duration::from_millis(2));
const FURTHER: Target = Target::Over(Duration::from_micros(500));
const EXEC: Target = Target::InAll(Duration::from_millis(6));
const LOCAL: Target = Target::Ratio(1.15);

/// The rows of one table, with what could not be among them.
#[derive(Default)]
struct Rows<'a> {
    rows: Vec<Row<'a>>,
    targets: Vec<Target>,
    absent: String,
}

impl<'a> Rows<'a> {
    fn add(&mut self, name: &str, target: Target, call: impl FnMut() -> anyhow::Result<Duration> + 'a) {
        self.rows.push(Row::new(name, call));
        self.targets.push(target);
    }

    fn absent(&mut self, name: &str, why: &anyhow::Error) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.absent, "\n{name}: not measured, {}.", one_line(why));
    }

    /// The rows that are always there.
    fn usual(&mut self, ready: &'a Ready<'a>, closings: &'a RefCell<Vec<Duration>>, caller: &'a Caller) {
        self.add("bare `bash --noprofile --norc -c true`", Target::None, || {
            time(bare("true", caller))
        });
        self.add("library, a new sandbox and one command", NEW, || {
            let start = Instant::now();
            let place = ready.library.sandbox();
            place.run("true")?;
            let took = start.elapsed();
            closings.borrow_mut().push(place.close());
            Ok(took)
        });
        for (name, target, place) in [
            ("library, a further command in a sandbox", FURTHER, &ready.running),
            ("library, a command in `local`", LOCAL, &ready.local),
        ] {
            self.add(name, target, move || {
                let start = Instant::now();
                place.run("true")?;
                Ok(start.elapsed())
            });
        }
    }

    fn measure(self, plan: Plan, closings: &RefCell<Vec<Duration>>) -> anyhow::Result<String> {
        let mut rows: Vec<_> = interleaved(self.rows, plan)?.into_iter().zip(self.targets).collect();
        let closing = Measured::new("library, closing a new sandbox", closings.take());
        rows.push((closing, Target::Apart));
        Ok(table(&rows) + &self.absent)
    }
}

/// For the sandbox that runs meanwhile, a directory of its own: in the other's it would have made already
/// what a new one has to make there.
fn beside(caller: &Caller) -> anyhow::Result<Library> {
    let directory = caller.workspace.join("running");
    fs::create_dir_all(&directory)?;
    Library::new(&Caller::here(&directory)?)
}

/// What runs already.
struct Ready<'a> {
    library: &'a Library,
    running: Place<'a>,
    local: Place<'a>,
}

impl<'a> Ready<'a> {
    fn new(library: &'a Library, beside: &'a Library) -> anyhow::Result<Self> {
        let (running, local) = (beside.sandbox(), library.local());
        running.run("true")?;
        local.run("true")?;
        Ok(Self {
            library,
            running,
            local,
        })
    }

    fn close(self) {
        self.running.close();
        self.local.close();
    }
}

/// The table with everything in it.
pub(super) fn run(library: &Library, caller: &Caller, program: &Path) -> anyhow::Result<String> {
    let beside = beside(caller)?;
    let ready = Ready::new(library, &beside)?;
    let closings = RefCell::default();
    let mut rows = Rows::default();
    rows.usual(&ready, &closings, caller);
    rows.add(
        "library, the first sandbox of a process, and one command",
        Target::None,
        || first_elsewhere(caller),
    );
    match bubblewrap::Same::new(&ready.running, beside.caller()) {
        Ok(same) => rows.add("`bwrap` with the same view", Target::None, move || {
            time(same.command("true"))
        }),
        Err(why) => rows.absent("`bwrap`", &why),
    }
    for (environment, target) in [("sandbox", EXEC), ("local", Target::None)] {
        let name = format!("`shieling exec --env {environment}`, start to exit");
        match Exec::new(program, environment, caller) {
            Ok(exec) => rows.add(&name, target, move || time(exec.command("true"))),
            Err(why) => rows.absent(&name, &why),
        }
    }
    let plan = Plan {
        rounds: 12,
        calls_a_round: 30,
    };
    let text = rows.measure(plan, &closings)?;
    ready.close();
    Ok(text)
}

/// The table with the library's rows only.
pub(super) fn few(library: &Library, caller: &Caller) -> anyhow::Result<String> {
    let beside = beside(caller)?;
    let ready = Ready::new(library, &beside)?;
    let closings = RefCell::default();
    let mut rows = Rows::default();
    rows.usual(&ready, &closings, caller);
    let plan = Plan {
        rounds: 10,
        calls_a_round: 30,
    };
    let text = rows.measure(plan, &closings)?;
    ready.close();
    Ok(text)
}

/// Runs one command in the first sandbox of this process, and says how many nanoseconds that took.
pub(super) fn first(library: &Library) -> anyhow::Result<String> {
    let start = Instant::now();
    let place = library.sandbox();
    place.run("true")?;
    let took = start.elapsed();
    place.close();
    Ok(took.as_nanos().to_string())
}

fn first_elsewhere(caller: &Caller) -> anyhow::Result<Duration> {
    let output = Command::new(std::env::current_exe()?)
        .args(["bench-worker", "first"])
        .arg(&caller.workspace)
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "a fresh process: {}", error.trim());
    let took = String::from_utf8(output.stdout)?;
    Ok(Duration::from_nanos(
        took.trim().parse().context("it tells nanoseconds")?,
    ))
}

/// The floor: the text in bash, with what the caller gives a command and nothing else.
pub(in crate::bench) fn bare(text: &str, caller: &Caller) -> Command {
    let mut command = Command::new("/bin/bash");
    command
        .args(["--noprofile", "--norc", "-c", text])
        .env_clear()
        .envs(caller.variables())
        .current_dir(&caller.workspace)
        .stdin(Stdio::null());
    command
}
