//! Recordings of terminals and pipes as asciicast v2, which `shieling log replay` and other players
//! play: what was printed, and marks for what happened besides.
//!
//! What is typed is never recorded, only how much of it: it may be a password, and no look at the
//! terminal's echo tells for sure. Output is recorded as it is: keeping secrets out of it is not done
//! here. Times are those of the monotonic clock; only the header has the wall clock's.

mod tape;
mod files;
mod listing;

use std::fs::File;
use std::io::{self, Write as _};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

pub use files::{RecordTo, RecordingId, RecordingIdError};
pub use listing::{Recorded, recorded};
pub(crate) use tape::Tape;

use super::Size;
use crate::output::Stream;
use crate::units::ByteCount;

/// The longest title, and the longest text of a mark, in characters.
const LONGEST: usize = 1_000;

/// What is kept free for the last mark.
const LAST_MARK: u64 = 256;

/// What a recording says of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    /// The command.
    pub(crate) title: &'a str,
    /// The size of its terminal, or of the one to show it on.
    pub(crate) size: Size,
    /// Whether it has a terminal. The line ends of pipes are recorded as a terminal would show them.
    pub(crate) terminal: bool,
    /// Its `TERM` and its `SHELL`.
    pub(crate) variables: [Option<&'a str>; 2],
}

/// One recording, being written. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Recording {
    id: RecordingId,
    /// None once it was cut off or could not be written.
    file: Option<File>,
    to: RecordTo,
    written: u64,
    /// How much it may take until it looks for more room.
    room: u64,
    started: Instant,
    terminal: bool,
    /// For each stream, the bytes of a character that is not whole yet.
    broken: [Vec<u8>; 2],
    error: Option<String>,
}

impl Recording {
    /// Begins one, for which the oldest go. One for which there is no room is cut off at once.
    ///
    /// # Errors
    /// A directory that is not ours alone, what the system says.
    pub(crate) fn begin(to: &RecordTo, about: &About<'_>) -> io::Result<Self> {
        let now = SystemTime::now();
        let [term, shell] = about.variables;
        let variables: serde_json::Map<_, _> = [("TERM", term), ("SHELL", shell)]
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), shortened(value?).into())))
            .collect();
        let header = json!({
            "version": 2,
            "width": about.size.columns,
            "height": about.size.rows,
            "timestamp": now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            "title": shortened(about.title),
            "env": variables,
            files::OURS: {"version": env!("CARGO_PKG_VERSION"), "terminal": about.terminal},
        });
        // Looked for before it is there, since an empty file would count as well.
        let room = files::taken(0);
        let has_room =
            crate::output::private_directory(&to.directory, "recordings").and_then(|()| files::has_room(to, room))?;
        let (id, file) = files::create(to, now)?;
        let mut recording = Self {
            id,
            file: Some(file),
            to: to.clone(),
            written: 0,
            room,
            started: Instant::now(),
            terminal: about.terminal,
            broken: [Vec::new(), Vec::new()],
            error: None,
        };
        // The header stands in it in any case: without it nobody would know it as ours later.
        let mut begun = recording.put(&header.to_string());
        if !has_room && begun.is_ok() {
            begun = recording.cut(&recording.no_room());
        }
        match begun {
            Ok(()) => Ok(recording),
            Err(error) => {
                files::remove(to, &recording.id);
                Err(error)
            }
        }
    }

    /// Its name, under which it can be replayed.
    pub(crate) fn id(&self) -> &RecordingId {
        &self.id
    }

    /// Why it ends sooner than what it records, if it could not be written.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Something was printed.
    pub(crate) fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if self.file.is_none() {
            return;
        }
        let mut text = whole_characters(&mut self.broken[stream as usize], bytes);
        if !self.terminal {
            text = text.replace('\n', "\r\n");
        }
        if !text.is_empty() {
            self.event("o", &text);
        }
    }

    /// Something was typed, of which only the amount is recorded.
    pub(crate) fn input(&mut self, bytes: &[u8]) {
        let count = bytes.len();
        self.event(
            "m",
            &format!("input: {count} byte{}", if count == 1 { "" } else { "s" }),
        );
    }

    /// Something happened.
    pub(crate) fn mark(&mut self, label: &str) {
        self.event("m", &shortened(label));
    }

    /// The terminal has this size now.
    pub(crate) fn resize(&mut self, size: Size) {
        self.event("r", &format!("{}x{}", size.columns, size.rows));
    }

    fn event(&mut self, kind: &str, text: &str) {
        let line = json!([self.seconds(), kind, text]).to_string();
        self.line(&line);
    }

    /// The time since the beginning, to the microsecond.
    fn seconds(&self) -> f64 {
        (self.started.elapsed().as_secs_f64() * 1e6).round() / 1e6
    }

    fn line(&mut self, line: &str) {
        if self.file.is_none() {
            return;
        }
        let length = line.len() as u64 + 1;
        let written = match self.make_room(length) {
            Ok(None) => self.put(line),
            Ok(Some(why)) => self.cut(&why),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.file = None;
            self.error = Some(error.to_string());
        }
    }

    /// Has room for so many bytes and the last mark, or says why there is none.
    fn make_room(&mut self, length: u64) -> io::Result<Option<String>> {
        let then = self.written + length;
        let bound = self.to.bound();
        if then + LAST_MARK > bound {
            return Ok(Some(format!("a recording takes at most {}", ByteCount::bytes(bound))));
        }
        let room = files::taken(then);
        if room > self.room {
            if !files::has_room(&self.to, room - self.room)? {
                return Ok(Some(self.no_room()));
            }
            self.room = room;
        }
        Ok(None)
    }

    fn no_room(&self) -> String {
        let in_all = self.to.in_all;
        format!("all recordings together take at most {in_all}, which those being written have taken")
    }

    fn put(&mut self, line: &str) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        self.written += line.len() as u64 + 1;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Ends it with a last mark.
    fn cut(&mut self, why: &str) -> io::Result<()> {
        let mark = json!([self.seconds(), "m", format!("cut off: {why}")]).to_string();
        let written = self.put(&mark);
        self.file = None;
        written
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        for broken in std::mem::take(&mut self.broken) {
            if !broken.is_empty() {
                self.event("o", &String::from_utf8_lossy(&broken));
            }
        }
    }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The text of what was broken off and `bytes`, but for a character at the end that is not whole yet.
fn whole_characters(broken: &mut Vec<u8>, bytes: &[u8]) -> String {
    let mut all = std::mem::take(broken);
    all.extend_from_slice(bytes);
    let mut text = String::with_capacity(all.len());
    let mut rest = all.as_slice();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return text;
            }
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                let Some(wrong) = error.error_len() else {
                    *broken = after.to_vec();
                    return text;
                };
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &after[wrong..];
            }
        }
    }
}

#[cfg(test)]
mod tests;
