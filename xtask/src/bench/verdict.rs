//! How long a verdict takes: for what models type, and for what is made to be slow.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use shieling_testkit::random::Random;
use shieling_testkit::scripts::script;

use super::measure::{Measured, shown};
use crate::subject::Judge;

const MIB: usize = 1024 * 1024;
const DEPTH: usize = 10_000;

/// About 200 bytes, as an agent types them.
const PIPELINE: &str = "git log --oneline --since='2 weeks ago' -- src/main.rs | grep -v '^Merge' | sort -k 2 | uniq -c \
    | head -n 20 && find . -name '*.rs' -newer Cargo.toml -print0 | xargs -0 wc -l | tail -1 2>/dev/null";

/// The table for all judges.
pub(crate) fn run(judges: &[(&'static str, Judge)]) -> String {
    if judges.is_empty() {
        return "Not measured: no policy could be made.\n".to_owned();
    }
    let mut random = Random::new(1);
    let spread: Vec<String> = std::iter::repeat_with(|| script(&mut random, 20))
        .filter(|line| line.len() < 4_096)
        .take(4_000)
        .collect();
    let mut text = String::from("| policy | line | n | p50 | p99 | max | target |\n|-|-|-|-|-|-|-|\n");
    for (policy, judge) in judges {
        let mut row = |line: &str, measured: &Measured, n: usize, target: &str| {
            let (p50, p99, max) = (
                shown(measured.median()),
                shown(measured.quantile(0.99)),
                shown(measured.quantile(1.0)),
            );
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {policy} | {line} | {n} | {p50} | {p99} | {max} | {target} |");
        };
        let pipeline = Measured::new("", (0..5_000).map(|_| time(judge, PIPELINE)).skip(100).collect());
        row(
            &format!("pipeline of {} bytes", PIPELINE.len()),
            &pipeline,
            4_900,
            "p50 ≤ 100 µs",
        );
        let lines = Measured::new("", spread.iter().map(|line| time(judge, line)).collect());
        row("random lines below 4 KiB", &lines, spread.len(), "p99 ≤ 1 ms");
        for (name, line) in slow() {
            let slow = Measured::new("", (0..5).map(|_| time(judge, &line)).collect());
            row(name, &slow, 5, "≤ 50 ms");
        }
    }
    text
}

fn time(judge: &Judge, line: &str) -> Duration {
    let start = Instant::now();
    std::hint::black_box(judge(std::hint::black_box(line)));
    start.elapsed()
}

/// Lines that are as long as any that is read, longer ones, and deep ones.
fn slow() -> Vec<(&'static str, String)> {
    let fill = |unit: &str| unit.repeat(MIB / unit.len());
    let longest = |unit: &str| unit.repeat(250 * 1024 / unit.len());
    let nested =
        |open: &str, middle: &str, close: &str| format!("{}{middle}{}", open.repeat(DEPTH), close.repeat(DEPTH));
    vec![
        ("1 MiB: one word", format!("echo {}", fill("a"))),
        ("1 MiB: commands", fill("ls; ")),
        ("1 MiB: pipes", format!("ls{}", fill("|cat"))),
        ("1 MiB: quotes", format!("echo {}", fill("'a'\"b\""))),
        ("1 MiB: substitutions", format!("echo {}", fill("$(ls) "))),
        ("1 MiB: one open quote", format!("echo '{}", fill("a "))),
        ("250 KiB: commands with wildcards", longest("ls * ; ")),
        ("250 KiB: changes of directory", longest("cd d; cat a; ")),
        ("250 KiB: assignments", longest("a=$a$b; b=$a; ")),
        ("250 KiB: words", format!("cat {}", longest("a/b "))),
        ("10,000 deep: ( )", nested("( ", "ls", " )")),
        ("10,000 deep: $( )", format!("echo {}", nested("$(echo ", "x", ")"))),
        ("10,000 deep: ${x:- }", format!("echo {}", nested("${x:-", "y", "}"))),
        ("10,000 deep: $(( ))", format!("echo $(({}))", nested("(", "1", ")"))),
        ("10,000 deep: if", nested("if ls; then ", "ls", "; fi")),
        ("10,000 deep: { }", nested("{ ", "ls", "; }")),
    ]
}
