//! `cargo xtask fuzz`: judges millions of broken and hostile lines, which must never panic or stall.
//!
//! The seed decides every line. Each block of 10,000 lines has a seed of its own, counted up from the
//! first; a finding names its block's seed, and `--seed` with that and `--lines 10000` makes it again.
//! Two runs make different lines if their seeds are further apart than the number of their blocks.

mod mutate;

use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use shieling_testkit::random::Random;

use crate::subject::{Judge, judges};

/// Lines that are made from one seed before the next: small, so that a finding is soon made again.
const BLOCK: u64 = 10_000;

/// Panics that are kept; beyond that they are only counted.
const KEPT: usize = 20;

/// A verdict that takes longer is a failure. A debug build only looks for those that do not end: it is slow itself,
/// and runs beside other work.
const SLOW: Duration = match cfg!(debug_assertions) {
    true => Duration::from_secs(5),
    false => Duration::from_millis(50),
};

/// What is asked for.
struct Options {
    lines: u64,
    seed: u64,
    threads: usize,
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Self {
            lines: 1_000_000,
            seed: 1,
            threads,
        };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("`{name}` needs a number"))?;
            let number: u64 = value
                .replace('_', "")
                .parse()
                .with_context(|| format!("`{name} {value}` is no number"))?;
            match name.as_str() {
                "--lines" => options.lines = number,
                "--seed" => options.seed = number,
                "--threads" => options.threads = usize::try_from(number)?.clamp(1, 256),
                _ => bail!("`fuzz` takes --lines N, --seed N and --threads N, not `{name}`"),
            }
        }
        Ok(options)
    }
}

/// What one thread found.
#[derive(Default)]
struct Found {
    lines: u64,
    verdicts: u64,
    panics: Vec<String>,
    panicked: u64,
    slowest: (Duration, String),
}

impl Found {
    fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.verdicts += other.verdicts;
        self.panicked += other.panicked;
        self.panics.extend(other.panics);
        self.panics.truncate(KEPT);
        if other.slowest.0 > self.slowest.0 {
            self.slowest = other.slowest;
        }
    }
}

/// Judges as many lines as asked for, on all cores, in a release build.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    Options::parse(arguments)?;
    if cfg!(debug_assertions) {
        let again: Vec<String> = ["fuzz".to_owned()]
            .into_iter()
            .chain(arguments.iter().cloned())
            .collect();
        return crate::workspace::again_in_release(&again);
    }
    run_here(arguments)
}

/// Judges them in this build. Fewer lines a second in a debug build, which also panics where a number overflows.
pub(crate) fn run_here(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let options = Options::parse(arguments)?;
    let judges = judges();
    ensure!(!judges.is_empty(), "there is no judge to fuzz yet");
    println!(
        "fuzz: {} lines, seed {}, {} threads, {} policies",
        options.lines,
        options.seed,
        options.threads,
        judges.len()
    );
    let start = Instant::now();
    // A panic is counted and shown at the end; the default hook would print each as it happens.
    panic::set_hook(Box::new(|_| {}));
    let found = on_all_threads(&options, &judges);
    drop(panic::take_hook());
    let found = found?;

    let took = start.elapsed().as_secs_f64();
    println!(
        "{} lines, {} verdicts in {took:.1} s: {:.0} lines/s",
        found.lines,
        found.verdicts,
        found.lines as f64 / took
    );
    println!(
        "slowest verdict {:.3} ms: {}",
        found.slowest.0.as_secs_f64() * 1e3,
        found.slowest.1
    );
    println!("{} panics", found.panicked);
    for panic in &found.panics {
        println!("  {panic}");
    }
    let slow = found.slowest.0 > SLOW;
    if slow {
        println!("slower than {} ms", SLOW.as_millis());
    }
    Ok(if found.panicked == 0 && !slow {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn on_all_threads(options: &Options, judges: &[(&'static str, Judge)]) -> anyhow::Result<Found> {
    let next = AtomicU64::new(0);
    let blocks = options.lines.div_ceil(BLOCK);
    std::thread::scope(|scope| {
        let work = || {
            let mut found = Found::default();
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= blocks {
                    return found;
                }
                let lines = BLOCK.min(options.lines - block * BLOCK);
                fuzz(options.seed.wrapping_add(block), lines, judges, &mut found);
            }
        };
        let threads: Vec<_> = (0..options.threads).map(|_| scope.spawn(work)).collect();
        let mut all = Found::default();
        for thread in threads {
            match thread.join() {
                Ok(found) => all.add(found),
                Err(_) => bail!("a thread of the fuzzer itself panicked"),
            }
        }
        Ok(all)
    })
}

/// Judges the lines of one seed under every policy.
fn fuzz(seed: u64, lines: u64, judges: &[(&'static str, Judge)], found: &mut Found) {
    let mut random = Random::new(seed);
    for number in 0..lines {
        let line = mutate::line(&mut random);
        found.lines += 1;
        // Reading comes before every policy and is the same for all, so each line meets one of them.
        let turn = usize::try_from(number).unwrap_or_default() % judges.len();
        for (policy, judge) in &judges[turn..=turn] {
            let start = Instant::now();
            let judged = panic::catch_unwind(AssertUnwindSafe(|| judge(&line)));
            let took = start.elapsed();
            found.verdicts += 1;
            let place = || format!("seed {seed}, line {number}, {policy}: {line:?}");
            if let Err(panic) = judged {
                found.panicked += 1;
                if found.panics.len() < KEPT {
                    let said = panic
                        .downcast_ref::<String>()
                        .map(String::as_str)
                        .or_else(|| panic.downcast_ref::<&str>().copied());
                    found
                        .panics
                        .push(format!("{}: {}", place(), said.unwrap_or("a panic without words")));
                }
            }
            if took > found.slowest.0 {
                found.slowest = (took, place());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use shieling::policy::Decision;

    use super::*;

    #[test]
    fn a_panic_is_found_with_its_seed_and_line() {
        let judge: Judge = Box::new(|line| {
            if line.contains("xargs") {
                panic!("on xargs")
            } else {
                Decision::Ask
            }
        });
        let options = Options {
            lines: 300,
            seed: 7,
            threads: 2,
        };
        let found = on_all_threads(&options, &[("readonly", judge)]).unwrap();
        assert_eq!((found.lines, found.verdicts), (300, 300));
        assert!(found.panicked > 0 && found.panics.len() <= KEPT);
        assert!(
            found.panics[0].starts_with("seed 7, line ") && found.panics[0].ends_with("on xargs"),
            "{}",
            found.panics[0]
        );
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let parse = |text: &str| Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(
            parse("--lines 10_000_000 --seed 3")
                .map(|options| (options.lines, options.seed))
                .unwrap(),
            (10_000_000, 3)
        );
        for wrong in ["--lines", "--lines many", "--speed 3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
