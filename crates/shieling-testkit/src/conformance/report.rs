//! What came of a suite.

use std::fmt;
use std::time::Duration;

/// What was expected, and what was seen instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// What was expected.
    pub expected: String,
    /// What was seen.
    pub seen: String,
}

impl Wrong {
    pub(crate) fn new(expected: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            expected: expected.into(),
            seen: seen.into(),
        }
    }
}

/// What came of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// It holds.
    Passed,
    /// It does not.
    Failed(Wrong),
    /// It could not be tried, for this reason.
    Skipped(String),
}

/// One case and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it belongs to, such as `exit codes`.
    pub group: &'static str,
    /// The case, as a sentence.
    pub name: &'static str,
    /// What came of it.
    pub came: Came,
    /// How long it took.
    pub took: Duration,
}

/// What came of a suite: each case is passed, failed or skipped, and none is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a report that nobody reads finds nothing"]
pub struct Report {
    pub(super) environment: String,
    pub(super) lines: Vec<Line>,
    pub(super) took: Duration,
}

impl Report {
    /// What was tried.
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// All cases, in the order of the suite.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// How many passed.
    pub fn passed(&self) -> usize {
        self.lines.iter().filter(|line| line.came == Came::Passed).count()
    }

    /// Those that failed.
    pub fn failed(&self) -> impl Iterator<Item = (&Line, &Wrong)> {
        self.lines.iter().filter_map(|line| match &line.came {
            Came::Failed(wrong) => Some((line, wrong)),
            Came::Passed | Came::Skipped(_) => None,
        })
    }

    /// Those that could not be tried, each with its reason.
    pub fn skipped(&self) -> impl Iterator<Item = (&Line, &str)> {
        self.lines.iter().filter_map(|line| match &line.came {
            Came::Skipped(why) => Some((line, why.as_str())),
            Came::Passed | Came::Failed(_) => None,
        })
    }

    /// Whether this case failed.
    pub fn has_failed(&self, name: &str) -> bool {
        self.failed().any(|(line, _)| line.name == name)
    }

    /// For tests: nothing failed, and something was tried.
    ///
    /// # Panics
    /// With the table, otherwise.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.failed().next().is_none() && self.passed() > 0, "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} passed, {} failed, {} skipped in {:.1} s",
            self.environment,
            self.passed(),
            self.failed().count(),
            self.skipped().count(),
            self.took.as_secs_f64(),
        )?;
        let mut groups: Vec<&str> = self.lines.iter().map(|line| line.group).collect();
        groups.dedup();
        writeln!(f, "\n{:<18} passed  failed  skipped", "")?;
        for group in groups {
            let mut counts = [0; 3];
            for line in self.lines.iter().filter(|line| line.group == group) {
                counts[match line.came {
                    Came::Passed => 0,
                    Came::Failed(_) => 1,
                    Came::Skipped(_) => 2,
                }] += 1;
            }
            let [passed, failed, skipped] = counts;
            writeln!(f, "{group:<18} {passed:>6}  {failed:>6}  {skipped:>7}")?;
        }
        for (line, wrong) in self.failed() {
            writeln!(f, "\nFAILED    {}: {}", line.group, line.name)?;
            writeln!(f, "expected  {}", shortened(&wrong.expected))?;
            writeln!(f, "seen      {}", shortened(&wrong.seen))?;
        }
        if self.skipped().next().is_some() {
            writeln!(f)?;
        }
        for (line, why) in self.skipped() {
            writeln!(f, "skipped   {}: {} ({why})", line.group, line.name)?;
        }
        Ok(())
    }
}

/// As much of a text as a person reads.
fn shortened(text: &str) -> String {
    const MOST: usize = 1_500;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} … ({} bytes)", &text[..at], text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let line = |group, name, came| Line {
            group,
            name,
            came,
            took: Duration::ZERO,
        };
        Report {
            environment: "paper".to_owned(),
            lines: vec![
                line(
                    "streams",
                    "they are apart",
                    Came::Failed(Wrong::new("\"out\"", "\"outerr\"")),
                ),
                line("streams", "they are whole", Came::Passed),
                line("jobs", "they end", Came::Skipped("it has no jobs".to_owned())),
            ],
            took: Duration::from_millis(1_234),
        }
    }

    #[test]
    fn a_report_tells_what_failed_and_what_was_not_tried() {
        let shown = report().to_string();
        for line in [
            "paper: 1 passed, 1 failed, 1 skipped in 1.2 s",
            "streams                 1       1        0",
            "FAILED    streams: they are apart\nexpected  \"out\"\nseen      \"outerr\"",
            "skipped   jobs: they end (it has no jobs)",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
    }

    #[test]
    #[should_panic(expected = "they are apart")]
    fn a_failure_is_a_panic_for_tests() {
        report().assert_passed();
    }

    #[test]
    #[should_panic(expected = "0 passed")]
    fn a_suite_in_which_nothing_was_tried_has_not_passed() {
        let mut report = report();
        report.lines.drain(..2);
        report.assert_passed();
    }
}
