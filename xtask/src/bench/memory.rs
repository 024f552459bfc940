//! Files and a bash in memory: a new one, commands in it against a bash of the system, and a snapshot.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::Environment as _;
use shieling::policy::Policy;
use shieling::request::Command;
use shieling_memory::Memory;

use super::measure::{Plan, Row, interleaved};
use super::target::{Target, table};

const WORKSPACE: &str = "/workspace";
const FILES: usize = 10_000;

/// Twenty lines that start no program and twenty-odd of the usual ones.
const SCRIPT: &str = r#"mkdir -p out
for n in 1 2 3 4 5; do
  echo "line $n" > out/$n.txt
done
total=0
for f in out/*.txt; do
  count=$(wc -w < "$f")
  total=$((total + count))
done
echo "$total words"
sort -r out/*.txt | head -n 2
grep -c line out/1.txt
sed 's/line/row/' out/2.txt
awk '{ print $2 }' out/3.txt
cat out/*.txt | tr a-z A-Z | tail -n 1
cut -d' ' -f2 out/4.txt
basename out/5.txt .txt
find out -type f | wc -l
rm -r out
"#;

/// The table of everything.
pub(crate) fn run() -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let memory = memory()?;
    let library = Shieling::builder(Arc::new(memory.clone()), Policy::open(), WORKSPACE)
        .approval(Mode::OnAsk)
        .build()?;
    let full = Memory::builder(WORKSPACE)
        .seed((0..FILES).map(|n| (format!("d{}/f{n}", n % 100), b"content".to_vec())))
        .build()?;
    let ran = |text: &'static str, expected: &'static str| {
        let (library, runtime) = (&library, &runtime);
        move || {
            let command = Command::new(text, WORKSPACE)?;
            let start = Instant::now();
            let outcome = runtime.block_on(library.run(command, None));
            let took = start.elapsed();
            ensure!(
                outcome.stdout.starts_with(expected),
                "it printed {:?}, {}",
                outcome.stdout,
                outcome.stderr
            );
            Ok(took)
        }
    };
    let us = Duration::from_micros;
    let rows = vec![
        (Row::new("bare `bash` in a folder, 20 lines", bash), Target::None),
        (
            Row::new("`Shieling::run` in `memory`, 20 lines", ran(SCRIPT, "10 words")),
            Target::Ratio(0.1),
        ),
        (
            Row::new(
                "`Shieling::run` in `memory`, `echo hi | tr a-z A-Z`",
                ran("echo hi | tr a-z A-Z", "HI"),
            ),
            Target::InAll(us(150)),
        ),
        (Row::new("a new memory", || timed(memory_made)), Target::InAll(us(200))),
        (
            Row::new(format!("a snapshot of {FILES} files"), || {
                timed(|| {
                    drop(full.snapshot());
                    Ok(())
                })
            }),
            Target::InAll(us(1_000)),
        ),
        (
            Row::new(format!("a fork of {FILES} files"), || {
                timed(|| {
                    drop(full.fork());
                    Ok(())
                })
            }),
            Target::InAll(us(1_000)),
        ),
    ];
    let (rows, targets): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let measured = interleaved(
        rows,
        Plan {
            rounds: 6,
            calls_a_round: 40,
        },
    )?;
    runtime.block_on(memory.close());
    Ok(table(&measured.into_iter().zip(targets).collect::<Vec<_>>()))
}

fn memory() -> anyhow::Result<Memory> {
    Memory::builder(WORKSPACE).build().context("an empty memory")
}

fn memory_made() -> anyhow::Result<()> {
    memory().map(drop)
}

fn timed(act: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let start = Instant::now();
    act()?;
    Ok(start.elapsed())
}

fn bash() -> anyhow::Result<Duration> {
    let scratch = super::scratch::Scratch::new("memory")?;
    let mut command = std::process::Command::new("/bin/bash");
    command
        .args(["--noprofile", "--norc", "-c", SCRIPT])
        .current_dir(scratch.path());
    super::measure::time(command)
}
