//! Measures rows side by side and makes a table of them.
//!
//! A time alone says as much about the machine as about the program. So every table has a floor that is
//! measured in the same run, rows take turns, and what is compared are the ratios of their medians.

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;

/// One thing to measure. The call times itself, so that preparing and checking are not counted.
pub(crate) struct Row<'a> {
    pub(crate) name: String,
    pub(crate) call: Box<dyn FnMut() -> anyhow::Result<Duration> + 'a>,
}

impl<'a> Row<'a> {
    pub(crate) fn new(name: impl Into<String>, call: impl FnMut() -> anyhow::Result<Duration> + 'a) -> Self {
        Self {
            name: name.into(),
            call: Box::new(call),
        }
    }
}

/// The samples of one row, sorted.
pub(crate) struct Measured {
    pub(crate) name: String,
    samples: Vec<Duration>,
}

impl Measured {
    pub(crate) fn new(name: impl Into<String>, mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        Self {
            name: name.into(),
            samples,
        }
    }

    /// The sample that this share of all samples does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let rank = (self.samples.len() as f64 * share).ceil() as usize;
        self.samples
            .get(rank.saturating_sub(1).min(self.samples.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(0.5)
    }
}

/// How often each row is measured.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) calls_a_round: usize,
}

/// Measures all rows in turns; the first call of each row in each round only warms up.
pub(crate) fn interleaved(rows: Vec<Row<'_>>, plan: Plan) -> anyhow::Result<Vec<Measured>> {
    let mut rows: Vec<(Row<'_>, Vec<Duration>)> = rows.into_iter().map(|row| (row, Vec::new())).collect();
    for round in 0..plan.rounds {
        // Whoever comes first after a pause meets colder caches, so the order changes.
        let first = round % rows.len().max(1);
        rows.rotate_left(first);
        for (row, samples) in &mut rows {
            (row.call)()?;
            for _ in 0..plan.calls_a_round {
                samples.push((row.call)()?);
            }
        }
        rows.rotate_right(first);
    }
    Ok(rows
        .into_iter()
        .map(|(row, samples)| Measured::new(row.name, samples))
        .collect())
}

/// A table in Markdown; the first row is the floor.
pub(crate) fn table(rows: &[Measured]) -> String {
    let mut text = String::from("| row | n | min | median | p99 | ratio |\n|-|-|-|-|-|-|\n");
    let floor = rows.first().map_or(Duration::ZERO, Measured::median).as_secs_f64();
    for (index, row) in rows.iter().enumerate() {
        let ratio = if floor > 0.0 {
            row.median().as_secs_f64() / floor
        } else {
            f64::NAN
        };
        let name = if index == 0 {
            format!("**{}**", cell(&row.name))
        } else {
            cell(&row.name)
        };
        let (min, p99) = (row.quantile(0.0), row.quantile(0.99));
        let n = row.samples.len();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {n} | {} | {} | {} | {ratio:.2} |",
            shown(min),
            shown(row.median()),
            shown(p99)
        );
    }
    text
}

/// A row's name, as it stands in a table.
pub(crate) fn cell(name: &str) -> String {
    name.replace('|', "\\|")
}

/// A duration with three digits that count.
pub(crate) fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (number, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    let digits = if number >= 100.0 {
        0
    } else if number >= 10.0 {
        1
    } else {
        2
    };
    format!("{number:.digits$} {unit}")
}

/// From before the start to after the end, with both output streams read, as every runner must.
pub(super) fn time(mut command: Command) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let output = command.output()?;
    let took = start.elapsed();
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(took)
}

/// The text for what could not be measured.
pub(super) fn not_measured(error: anyhow::Error) -> String {
    format!("Not measured: {error:#}\n")
}

/// A reason, fit for one line of a table.
pub(super) fn one_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}").replace('|', "/");
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_turns_and_are_compared_with_the_first() {
        let order = std::cell::RefCell::new(Vec::new());
        let row = |name: &'static str, ms: u64| {
            let order = &order;
            Row::new(name, move || {
                order.borrow_mut().push(name);
                Ok(Duration::from_millis(ms))
            })
        };
        let measured = interleaved(
            vec![row("floor", 2), row("ours", 3)],
            Plan {
                rounds: 2,
                calls_a_round: 1,
            },
        )
        .unwrap();
        assert_eq!(
            *order.borrow(),
            ["floor", "floor", "ours", "ours", "ours", "ours", "floor", "floor"]
        );
        assert_eq!(
            table(&measured),
            "| row | n | min | median | p99 | ratio |\n|-|-|-|-|-|-|\n\
             | **floor** | 2 | 2.00 ms | 2.00 ms | 2.00 ms | 1.00 |\n\
             | ours | 2 | 3.00 ms | 3.00 ms | 3.00 ms | 1.50 |\n"
        );
    }

    #[test]
    fn quantiles_are_samples() {
        let row = Measured::new("x", (1..=100).map(Duration::from_millis).collect());
        assert_eq!(row.median(), Duration::from_millis(50));
        assert_eq!(row.quantile(0.99), Duration::from_millis(99));
        assert_eq!(row.quantile(1.0), Duration::from_millis(100));
        assert_eq!(Measured::new("none", Vec::new()).median(), Duration::ZERO);
    }
}
