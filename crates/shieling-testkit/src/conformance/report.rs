//! The report of a suite.

use std::fmt;
use std::time::Duration;

/// A failed check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFailure {
    /// The expectation.
    pub expected: String,
    /// The actual result.
    pub seen: String,
}

impl CheckFailure {
    pub(crate) fn new(expected: impl Into<String>, seen: impl Into<String>) -> Self {
        Self {
            expected: expected.into(),
            seen: seen.into(),
        }
    }
}

/// The result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseResult {
    /// It passed.
    Passed,
    /// It failed.
    Failed(CheckFailure),
    /// It was skipped, for this reason.
    Skipped(String),
}

/// A case with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseReport {
    /// The group, such as `exit codes`.
    pub group: &'static str,
    /// The name of the case, a sentence.
    pub name: &'static str,
    /// The result.
    pub came: CaseResult,
    /// The duration.
    pub took: Duration,
}

/// The results of a suite. Every case is passed, failed or skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a report that nobody reads finds nothing"]
pub struct Report {
    pub(super) environment: String,
    pub(super) lines: Vec<CaseReport>,
    pub(super) took: Duration,
}

impl Report {
    /// Returns the name of the environment.
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Returns all cases, in the order of the suite.
    pub fn lines(&self) -> &[CaseReport] {
        &self.lines
    }

    /// Returns the number of passed cases.
    pub fn passed(&self) -> usize {
        self.lines.iter().filter(|line| line.came == CaseResult::Passed).count()
    }

    /// Returns the failed cases.
    pub fn failed(&self) -> impl Iterator<Item = (&CaseReport, &CheckFailure)> {
        self.lines.iter().filter_map(|line| match &line.came {
            CaseResult::Failed(wrong) => Some((line, wrong)),
            CaseResult::Passed | CaseResult::Skipped(_) => None,
        })
    }

    /// Returns the skipped cases, with their reasons.
    pub fn skipped(&self) -> impl Iterator<Item = (&CaseReport, &str)> {
        self.lines.iter().filter_map(|line| match &line.came {
            CaseResult::Skipped(why) => Some((line, why.as_str())),
            CaseResult::Passed | CaseResult::Failed(_) => None,
        })
    }

    /// Returns whether this case failed.
    pub fn has_failed(&self, name: &str) -> bool {
        self.failed().any(|(line, _)| line.name == name)
    }

    /// Asserts that no case failed and at least one passed.
    ///
    /// # Panics
    /// With the report, otherwise.
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
                    CaseResult::Passed => 0,
                    CaseResult::Failed(_) => 1,
                    CaseResult::Skipped(_) => 2,
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

/// Shortens a text to what a person reads.
fn shortened(text: &str) -> String {
    const MOST: usize = 1_500;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((context, _)) => format!("{} … ({} bytes)", &text[..context], text.len()),
    }
}

/// The result of a check.
pub(crate) type Checked = Result<(), CheckFailure>;

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let line = |group, name, came| CaseReport {
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
                    CaseResult::Failed(CheckFailure::new("\"out\"", "\"outerr\"")),
                ),
                line("streams", "they are whole", CaseResult::Passed),
                line("jobs", "they end", CaseResult::Skipped("it has no jobs".to_owned())),
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
