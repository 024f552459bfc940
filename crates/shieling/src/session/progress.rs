//! Reports the progress of a job, ten times a second at most. It reads only the newest output, so that its cost does
//! not grow with the amount of output.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::Progress;
use super::log::Log;
use crate::output::plain_text;

/// The shortest time between two reports.
const EVERY: Duration = Duration::from_millis(100);
/// The number of bytes of output that are searched for the last line.
const SEARCHED: usize = 4096;
/// The longest line in a report, in bytes.
const LINE: usize = 200;

/// Sends progress reports to one receiver.
pub(super) struct Reporter {
    to: watch::Sender<Progress>,
    /// The time of the next report, if something has changed since the last one.
    pub(super) due: Option<Instant>,
    last: Option<Instant>,
}

impl Reporter {
    pub(super) fn new(to: watch::Sender<Progress>) -> Self {
        Self {
            to,
            due: None,
            last: None,
        }
    }

    /// Schedules a report.
    pub(super) fn changed(&mut self) {
        if self.due.is_none() {
            let now = Instant::now();
            self.due = Some(self.last.map_or(now, |last| now.max(last + EVERY)));
        }
    }

    /// Sends a report.
    pub(super) fn send(&mut self, bytes: u64, log: &Log) {
        self.due = None;
        self.last = Some(Instant::now());
        let line = last_line(&log.newest(SEARCHED));
        self.to.send_replace(Progress { bytes, line });
    }
}

/// Returns the last line that is not blank.
fn last_line(bytes: &[u8]) -> String {
    let text = plain_text(&String::from_utf8_lossy(bytes));
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let mut line = line.unwrap_or_default().to_owned();
    line.truncate(line.floor_char_boundary(LINE));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_short_and_not_blank() {
        let long = "é".repeat(150);
        let cases = [
            ("", ""),
            ("one\ntwo\n\n  \n", "two"),
            ("10%\r50%\r99%", "99%"),
            ("\u{1b}[1mbold\u{1b}[0m\r\n", "bold"),
            (&long, &"é".repeat(100)),
        ];
        for (text, line) in cases {
            assert_eq!(last_line(text.as_bytes()), line, "{text:?}");
        }
    }
}
