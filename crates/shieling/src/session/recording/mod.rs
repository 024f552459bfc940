//! Recordings of terminals and pipes in the format asciicast v2: the output, and marks for other events. `shieling
//! log replay` and other players play them.
//!
//! Input is never recorded, only its length: it may be a password, and the terminal's echo flag does not tell
//! reliably. Output is recorded unchanged; nothing removes secrets from it. Times come from the monotonic clock,
//! except for the start time in the header.

mod recorder;
mod files;
mod listing;

use std::fs::File;
use std::io::{self, Write as _};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

pub use files::{RecordingId, RecordingIdError, RecordingSettings};
pub use listing::{RecordingInfo, list_recordings};
pub(crate) use recorder::Recorder;

use super::TerminalSize;
use crate::output::Stream;
use crate::units::ByteCount;

/// The longest title, and the longest text of a mark, in characters.
const LONGEST: usize = 1_000;

/// The header of a recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordingHeader<'a> {
    /// The title: the command.
    pub(crate) title: &'a str,
    /// The size of its terminal, or the one to replay it on.
    pub(crate) size: TerminalSize,
    /// Whether it has a terminal. Without one, line ends are recorded as a terminal would show them.
    pub(crate) terminal: bool,
    /// The values of `TERM` and `SHELL`.
    pub(crate) variables: [Option<&'a str>; 2],
}

/// A recording that is being written. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Recording {
    id: RecordingId,
    /// `None` after it was cut off or a write failed.
    file: Option<File>,
    to: RecordingSettings,
    written: u64,
    /// The size up to which it may grow before it has to make room again.
    room: u64,
    started: Instant,
    terminal: bool,
    /// For each stream, the first bytes of an incomplete character.
    broken: [Vec<u8>; 2],
    error: Option<String>,
}

impl Recording {
    /// Starts a recording, and removes the oldest recordings to make room for it. Without room, the recording is cut
    /// off at its beginning.
    ///
    /// # Errors
    /// If the directory is not private to this user, or the system reports an error.
    pub(crate) fn begin(to: &RecordingSettings, header: &RecordingHeader<'_>) -> io::Result<Self> {
        let now = SystemTime::now();
        let [term, shell] = header.variables;
        let variables: serde_json::Map<_, _> = [("TERM", term), ("SHELL", shell)]
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), shortened(value?).into())))
            .collect();
        let line = json!({
            "version": 2,
            "width": header.size.columns,
            "height": header.size.rows,
            "timestamp": now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            "title": shortened(header.title),
            "env": variables,
            files::OURS: {"version": env!("CARGO_PKG_VERSION"), "terminal": header.terminal},
        });
        // Checked before the file exists, since an empty file counts as well.
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
            terminal: header.terminal,
            broken: [Vec::new(), Vec::new()],
            error: None,
        };
        // Written even without room: only the header identifies the file as a recording of ours.
        let mut begun = recording.put(&line.to_string());
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

    /// Returns the id under which it can be replayed.
    pub(crate) fn id(&self) -> &RecordingId {
        &self.id
    }

    /// Returns the error that ended the recording early, if there was one.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Records output.
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

    /// Records the length of input.
    pub(crate) fn input(&mut self, bytes: &[u8]) {
        let count = bytes.len();
        self.event(
            "m",
            &format!("input: {count} byte{}", if count == 1 { "" } else { "s" }),
        );
    }

    /// Records another event.
    pub(crate) fn mark(&mut self, label: &str) {
        self.event("m", &shortened(label));
    }

    /// Records a new size of the terminal.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.event("r", &format!("{}x{}", size.columns, size.rows));
    }

    fn event(&mut self, kind: &str, text: &str) {
        let line = json!([self.seconds(), kind, text]).to_string();
        self.line(&line);
    }

    /// Returns the seconds since the start, with a resolution of a microsecond.
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

    /// Makes room for `length` bytes and the last mark. Returns the reason if there is none.
    fn make_room(&mut self, length: u64) -> io::Result<Option<String>> {
        let then = self.written + length;
        let bound = self.to.bound();
        if then + files::LAST_MARK > bound {
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

    /// Ends the recording with a last mark.
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

/// Decodes `bytes`, preceded by what is left of the previous call, and keeps an incomplete last character for the
/// next.
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
