//! `shieling log replay`: plays a recording on the terminal, or prints its text.
//!
//! A recording is a stranger's text: whoever ran in it wrote it. It is never copied to the terminal.
//! What would have been seen is computed and drawn ([`Renderer`]); as text, sequences are left out.

use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use shieling::output::plain_text;
use shieling::session::{KeyTarget, RecordingId, Renderer, TerminalSize, list_recordings};
use tokio::signal::unix::SignalKind;
use tokio::time::Instant;

use crate::config::{Printable, files, reason};
use crate::escape::{self, Escaped};
use crate::options::Replay;
use crate::runtime;
use crate::signals::taken;
use crate::state;
use crate::words::Failure;

/// The longest line that is read: an event may hold some MiB of output, and JSON escapes it.
const LONGEST_LINE: u64 = 16 * 1024 * 1024;

/// The longest line of text that is held until its end.
const LONGEST_TEXT: usize = 1024 * 1024;

/// The longest time between two events, in seconds: longer ones are no recording's.
const LONGEST_TIME: f64 = 1e9;

/// Plays or prints.
pub(crate) fn replay(options: &Replay) -> Result<u8, Failure> {
    let Some(recording) = &options.recording else {
        return list();
    };
    let file = find(recording)?;
    let mut recording = Recording::open(&file)?;
    if options.as_text || !io::stdout().is_terminal() {
        return print(&mut recording, options.marks);
    }
    runtime::start()?.block_on(play(&mut recording, options))
}

/// Prints what recordings there are, newest first.
fn list() -> Result<u8, Failure> {
    let directory = state::recordings(&state()?);
    let all = list_recordings(&directory)
        .map_err(|error| Failure::new(format!("{} cannot be read: {}", Printable(&directory), reason(&error))))?;
    if all.is_empty() {
        let none = "there are no recordings; `--record` makes them\n";
        crate::print::write_all(io::stderr().lock(), none)?;
    }
    let mut page = String::new();
    for one in all {
        let length = match one.seconds {
            _ if one.open => "goes on".to_owned(),
            Some(seconds) => format!("{seconds:.1} s"),
            None => "?".to_owned(),
        };
        let (size, title) = (one.size.to_string(), escape::headline(&one.title, 60));
        page.push_str(&format!("{}  {length:>9}  {size:>9}  {title}\n", one.id));
    }
    crate::print::write_all(io::stdout().lock(), &page)?;
    Ok(0)
}

fn state() -> Result<PathBuf, Failure> {
    state::directory().ok_or_else(|| Failure::new("there are no recordings: neither XDG_STATE_HOME nor HOME is set"))
}

/// The file of a recording. What has the form of an id is one, and never part of a path.
fn find(named: &Path) -> Result<PathBuf, Failure> {
    let id = named.to_str().and_then(|text| text.parse::<RecordingId>().ok());
    let Some(id) = id else { return Ok(named.to_owned()) };
    Ok(state::recordings(&state()?).join(id.file_name()))
}

/// Something that a recording holds.
#[derive(Debug, PartialEq)]
enum Event {
    Output(String),
    Mark(String),
    Resize(TerminalSize),
    /// Input, and what this version does not know.
    Other,
}

/// A recording, read line by line.
struct Recording {
    file: PathBuf,
    lines: Box<dyn io::BufRead>,
    number: u64,
    size: TerminalSize,
    idle: Option<f64>,
    last: f64,
}

impl Recording {
    fn open(file: &Path) -> Result<Self, Failure> {
        let opened = files::open(file);
        let opened =
            opened.map_err(|error| Failure::new(format!("{} cannot be read: {}", Printable(file), reason(&error))))?;
        Self::read(file, Box::new(BufReader::new(opened)))
    }

    fn read(file: &Path, lines: Box<dyn io::BufRead>) -> Result<Self, Failure> {
        let mut recording = Self {
            file: file.to_owned(),
            lines,
            number: 0,
            size: TerminalSize::default(),
            idle: None,
            last: 0.0,
        };
        let header: Value = match recording.line()? {
            Some(line) => serde_json::from_str(&line).unwrap_or_default(),
            None => Value::Null,
        };
        if header["version"] != 2 {
            return Err(recording.wrong("this is no asciicast of version 2"));
        }
        let length = |name: &str| header[name].as_u64().and_then(|length| u16::try_from(length).ok());
        let size = match (length("height"), length("width")) {
            (Some(rows), Some(columns)) => TerminalSize { rows, columns }.checked().ok(),
            _ => None,
        };
        recording.size = size.ok_or_else(|| recording.wrong("its header has no size that a terminal can have"))?;
        recording.idle = header["idle_time_limit"].as_f64().filter(|limit| *limit >= 0.0);
        Ok(recording)
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::new(format!("{}:{}: {what}", Printable(&self.file), self.number))
    }

    fn line(&mut self) -> Result<Option<String>, Failure> {
        let mut line = Vec::new();
        self.number += 1;
        let read = self.lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        match read {
            Err(error) => Err(self.wrong(&format!("it cannot be read: {error}"))),
            Ok(0) => Ok(None),
            Ok(_) if line.len() as u64 == LONGEST_LINE => Err(self.wrong("the line is longer than 16 MiB")),
            Ok(_) => Ok(Some(String::from_utf8_lossy(&line).into_owned())),
        }
    }

    /// The next event and the seconds since the beginning, which never go backwards. A last line that
    /// was not written to its end is none.
    fn next(&mut self) -> Result<Option<(f64, Event)>, Failure> {
        let Some(line) = self.line()? else { return Ok(None) };
        let Ok((time, kind, text)) = serde_json::from_str::<(f64, String, String)>(&line) else {
            return if line.ends_with('\n') {
                Err(self.wrong("this is no event"))
            } else {
                Ok(None)
            };
        };
        self.last = time.clamp(self.last, LONGEST_TIME);
        let event = match kind.as_str() {
            "o" => Event::Output(text),
            "m" => Event::Mark(text),
            "r" => size(&text).map_or(Event::Other, Event::Resize),
            _ => Event::Other,
        };
        Ok(Some((self.last, event)))
    }
}

/// `COLUMNSxROWS`.
fn size(text: &str) -> Option<TerminalSize> {
    let (columns, rows) = text.split_once('x')?;
    let size = TerminalSize {
        rows: rows.parse().ok()?,
        columns: columns.parse().ok()?,
    };
    size.checked().ok()
}

/// Prints its text, line by line.
fn print(recording: &mut Recording, marks: bool) -> Result<u8, Failure> {
    let mut to = Page {
        terminal: io::stdout().is_terminal(),
        line: String::new(),
    };
    while let Some((time, event)) = recording.next()? {
        let goes_on = match event {
            Event::Output(text) => to.write(&text)?,
            Event::Mark(label) if marks => to.mark(time, &label)?,
            Event::Mark(_) | Event::Resize(_) | Event::Other => true,
        };
        if !goes_on {
            return Ok(0);
        }
    }
    to.end()?;
    Ok(0)
}

/// Where the text goes.
struct Page {
    /// Whether it is a terminal, which is shown nothing that could deceive.
    terminal: bool,
    /// The line so far.
    line: String,
}

impl Page {
    /// Whether somebody still reads.
    fn write(&mut self, text: &str) -> Result<bool, Failure> {
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if (piece.ends_with('\n') || self.line.len() > LONGEST_TEXT) && !self.flush()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<bool, Failure> {
        let plain = plain_text(&std::mem::take(&mut self.line)).replace("\r\n", "\n");
        let text = if self.terminal {
            Escaped::new(&plain).text
        } else {
            plain
        };
        crate::print::told(io::stdout().lock().write_all(text.as_bytes()))
    }

    fn mark(&mut self, time: f64, label: &str) -> Result<bool, Failure> {
        Ok(self.end()? && crate::print::told(writeln!(io::stdout().lock(), "{}", mark(time, label)))?)
    }

    /// Ends the line, if there is something in it.
    fn end(&mut self) -> Result<bool, Failure> {
        if plain_text(&self.line).is_empty() {
            self.line.clear();
            return Ok(true);
        }
        self.line.push('\n');
        self.flush()
    }
}

fn mark(time: f64, label: &str) -> String {
    format!("[{time:.1} s] {}", escape::headline(label, 200))
}

/// The person's terminal, lent. Dropping it gives it back as it was.
struct Stage;

impl Stage {
    fn enter() -> Result<Self, Failure> {
        let stage = Self;
        show(Renderer::ENTER.as_bytes())?;
        Ok(stage)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // If it is gone, there is nothing to give back.
        let _ = show(Renderer::LEAVE.as_bytes());
    }
}

fn show(bytes: &[u8]) -> Result<bool, Failure> {
    let mut to = io::stdout().lock();
    crate::print::told(to.write_all(bytes).and_then(|()| to.flush()))
}

/// Plays it on the terminal, with its timing, until its end or a signal.
async fn play(recording: &mut Recording, options: &Replay) -> Result<u8, Failure> {
    let mut interrupt = taken(SignalKind::interrupt())?;
    let mut terminate = taken(SignalKind::terminate())?;
    let idle = options.idle.map(|idle| idle.as_secs_f64()).or(recording.idle);
    fits(recording.size, options.marks)?;
    let mut renderer = Renderer::new(recording.size, KeyTarget::Viewer);
    let stage = Stage::enter()?;
    let mut due = Instant::now();
    let mut before = 0.0;
    let stopped = loop {
        let Some((time, event)) = recording.next()? else {
            break None;
        };
        let gap = (time - before).min(idle.unwrap_or(LONGEST_TIME)) / options.speed.get();
        before = time;
        due += Duration::try_from_secs_f64(gap).unwrap_or_default();
        if due > Instant::now() {
            show(&renderer.render())?;
        }
        // A signal counts also when nothing is waited for.
        let stopped = tokio::select! {
            biased;
            _ = interrupt.recv() => Some(130),
            _ = terminate.recv() => Some(143),
            () = tokio::time::sleep_until(due) => None,
        };
        if stopped.is_some() {
            break stopped;
        }
        match event {
            Event::Output(text) => renderer.output(text.as_bytes()),
            Event::Resize(size) => {
                fits(size, options.marks)?;
                renderer.resize(size);
            }
            Event::Mark(label) if options.marks => drop(below(&mark(time, &label))?),
            Event::Mark(_) | Event::Other => {}
        }
    };
    drop(stage);
    // What was seen last stays.
    crate::print::write_all(
        io::stdout().lock(),
        &format!("{}\n", Escaped::new(&renderer.screen().text).text),
    )?;
    Ok(stopped.unwrap_or(0))
}

/// Sees that the person's terminal is large enough: what does not fit would be drawn over the rest.
fn fits(size: TerminalSize, marks: bool) -> Result<(), Failure> {
    let (rows, columns) = (size.rows.saturating_add(u16::from(marks)), size.columns);
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(own) if own.ws_row < rows || own.ws_col < columns => Err(Failure::new(format!(
            "the recording needs a terminal of {columns} × {rows} characters, and this one has {} × {}",
            own.ws_col, own.ws_row
        ))
        .with("instead", "make it larger, or print the text with `--as-text`")),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Shows a line below the recording, in the last line of the terminal.
fn below(text: &str) -> Result<bool, Failure> {
    let own = rustix::termios::tcgetwinsize(io::stdout());
    let (row, width) = own.map_or((24, 80), |own| (own.ws_row, usize::from(own.ws_col)));
    let text = escape::headline(text, width.saturating_sub(1));
    show(format!("\x1b7\x1b[{row};1H\x1b[m\x1b[2K\x1b[7m{text}\x1b[m\x1b8").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Recording, String> {
        let lines = io::Cursor::new(text.as_bytes().to_vec());
        Recording::read(Path::new("a.cast"), Box::new(lines)).map_err(|failure| failure.to_string())
    }

    const HEADER: &str = "{\"version\": 2, \"width\": 80, \"height\": 24}\n";

    #[test]
    fn events_come_in_order_and_what_was_cut_off_is_left_out() {
        let text = "[0.5, \"o\", \"a\"]\n[0.2, \"m\", \"b\"]\n[3e300, \"i\", \"c\"]\n[9, \"r\", \"100x30\"]\n\
                    [9, \"r\", \"0x30\"]\n[9, \"o\", \"cut o";
        let mut recording = read(&format!("{HEADER}{text}")).expect("it is one");
        let size = TerminalSize { rows: 30, columns: 100 };
        for expected in [
            (0.5, Event::Output("a".to_owned())),
            (0.5, Event::Mark("b".to_owned())),
            (LONGEST_TIME, Event::Other),
            (LONGEST_TIME, Event::Resize(size)),
            (LONGEST_TIME, Event::Other),
        ] {
            assert_eq!(recording.next().expect("an event"), Some(expected));
        }
        assert_eq!(recording.next().expect("an end"), None);
    }

    #[test]
    fn what_is_no_recording_is_told_with_its_line() {
        for (text, what) in [
            ("", "a.cast:1: this is no asciicast"),
            ("{}\n", "a.cast:1: this is no asciicast"),
            ("\u{1b}[2J\n", "a.cast:1: this is no asciicast"),
            ("{\"version\": 3}\n", "a.cast:1: this is no asciicast of version 2"),
            ("{\"version\": 2}\n", "a.cast:1: its header has no size"),
            (
                "{\"version\": 2, \"width\": 80, \"height\": 65535}\n",
                "a.cast:1: its header has no size",
            ),
        ] {
            let error = read(text).err().expect(text);
            assert!(error.contains(what), "{error}");
        }
        let mut recording = read(&format!("{HEADER}[1, \"o\"]\n")).expect("its header is one");
        let error = recording.next().expect_err("it is no event").to_string();
        assert!(error.contains("a.cast:2: this is no event"), "{error}");
    }

    #[test]
    fn a_mark_is_one_escaped_line() {
        assert_eq!(mark(1.25, "command: a\u{1b}[2J\nb"), "[1.2 s] command: a\\x1b[2J\\nb");
    }
}
