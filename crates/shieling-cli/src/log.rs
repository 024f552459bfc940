//! `shieling log`: the audit log for people, its hash chain, and stored output. Recordings are played
//! by [`replay`](crate::replay).
//!
//! Logs are read line by line and never held whole, except for the last lines that `-n` asks for.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::Path;

use serde_json::Value;

use crate::config::{Printable, files, reason};
use crate::escape;
use crate::options::{Log, Size};
use crate::run::{self, Chain};
use crate::words::Failure;

/// The longest line that is read. A command may be 1 MiB long and JSON may escape each byte of it.
const LONGEST_LINE: u64 = 16 * 1024 * 1024;

/// How much of a stored output is read at a time.
const PIECE: u64 = 1024 * 1024;

/// The status for a chain that is broken.
const BROKEN: u8 = 1;

/// Shows, verifies or reads.
pub(crate) fn log(options: &Log) -> Result<u8, Failure> {
    match options {
        Log::Show { file, json, last } => show(file, *json, *last),
        Log::Verify { file, head } => verify(file, head.as_deref()),
        Log::Output {
            id,
            stream,
            cursor,
            limit,
        } => output(id, stream == "stdout", *cursor, *limit),
        Log::Replay(options) => crate::replay::replay(options),
    }
}

fn open(file: &Path) -> Result<BufReader<File>, Failure> {
    let opened = files::open(file).map(BufReader::new);
    opened.map_err(|error| Failure::new(format!("{} cannot be read: {}", Printable(file), reason(&error))))
}

fn show(file: &Path, json: bool, last: Option<usize>) -> Result<u8, Failure> {
    let mut log = open(file)?;
    let mut to = io::stdout().lock();
    let mut kept: VecDeque<(u64, String)> = VecDeque::new();
    let mut number = 0;
    loop {
        let mut line = Vec::new();
        let read = log.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::new(format!("{} cannot be read: {error}", Printable(file))))? == 0 {
            break;
        }
        number += 1;
        if line.len() as u64 == LONGEST_LINE {
            return Err(Failure::new(format!(
                "{}:{number}: the line is longer than 16 MiB",
                Printable(file)
            )));
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        match last {
            None => {
                if !print(&mut to, number, &line, json)? {
                    return Ok(0);
                }
            }
            Some(count) => {
                kept.push_back((number, line));
                if kept.len() > count {
                    kept.pop_front();
                }
            }
        }
    }
    for (number, line) in kept {
        if !print(&mut to, number, &line, json)? {
            break;
        }
    }
    Ok(0)
}

/// Prints one record; false if nobody reads any more.
fn print(to: &mut impl Write, number: u64, line: &str, json: bool) -> Result<bool, Failure> {
    let text = if json { line.to_owned() } else { record(number, line) };
    crate::print::told(writeln!(to, "{text}"))
}

/// One record in one line: number, time, kind, decision or end, and the command. An operation on files
/// has no exit code: it is done, or it failed and says why.
fn record(number: u64, line: &str) -> String {
    let Ok(fields @ Value::Object(_)) = serde_json::from_str::<Value>(line) else {
        return format!("{number:>5}  not a record: {}", escape::headline(line, 80));
    };
    let text = |at: &str| match fields.pointer(at) {
        Some(Value::String(text)) => Some(escape::headline(text, 200)),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(_) | None => None,
    };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let status = text("/outcome/status").map(|status| match fields.get("file") {
        Some(_) if status == "exited" => "done".to_owned(),
        Some(_) | None => status,
    });
    let what = match (status, text("/outcome/exit_code"), text("/denial/layer")) {
        (Some(status), Some(code), _) => format!("{status} {code}"),
        (Some(status), None, _) => status,
        (None, _, Some(layer)) => format!("by {layer}"),
        (None, _, None) => or_dash(
            text("/grant/basis")
                .map(|basis| format!("by {basis}"))
                // Allowed was not a command of that text.
                .or(fields.get("typed").map(|_| "typing".to_owned()))
                .or(text("/verdict/decision")),
        ),
    };
    let (time, kind, command) = (
        or_dash(text("/time")),
        or_dash(text("/kind")),
        or_dash(text("/command")),
    );
    let file = |at: &str| fields.get("file").and_then(|_| text(at));
    let bytes = file("/file/bytes").map_or_else(String::new, |bytes| format!(" ({bytes} bytes)"));
    let error = file("/outcome/error").map_or_else(String::new, |error| format!(": {error}"));
    format!("{number:>5}  {time}  {kind:<8} {what:<13} {command}{bytes}{error}")
}

fn verify(file: &Path, noted: Option<&str>) -> Result<u8, Failure> {
    let (text, status) = match run::verify(file, noted)? {
        Chain::Whole { records, head } => {
            let head = head.map_or_else(String::new, |head| format!("head     {head}\n"));
            (
                format!("whole: {records} records, each linked to the one before\n{head}"),
                0,
            )
        }
        Chain::Broken { path, line, why } => (
            format!("broken: {}:{line} {}\n", Printable(&path), escape::line(&why)),
            BROKEN,
        ),
    };
    crate::print::write_all(io::stdout().lock(), &text)?;
    Ok(status)
}

fn output(id: &str, stdout: bool, mut cursor: u64, limit: Option<Size>) -> Result<u8, Failure> {
    let mut left = limit.map_or(u64::MAX, |limit| limit.get().get());
    let mut to = io::stdout().lock();
    loop {
        let piece = run::read_output(id, stdout, cursor, left.min(PIECE))?;
        left -= piece.bytes.len() as u64;
        cursor = piece.next;
        if !crate::print::told(to.write_all(&piece.bytes))? || piece.end {
            return Ok(0);
        }
        if left == 0 {
            crate::print::write_all(io::stderr().lock(), &format!("output   goes on at --cursor {cursor}\n"))?;
            return Ok(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_escaped_line() {
        let lines = [
            r#"{"kind":"intent","time":"2026-11-21T07:00:00Z","command":"rm \u001b[2K\nx","verdict":{"decision":"ask"}}"#,
            r#"{"kind":"approved","time":"2026-11-21T07:00:00Z","command":"ls","verdict":{"decision":"ask"},"grant":{"basis":"answer"}}"#,
            r#"{"kind":"denied","time":"2026-11-21T07:00:00Z","command":"ls","verdict":null,"denial":{"layer":"rate"}}"#,
            r#"{"kind":"outcome","time":"2026-11-21T07:00:01Z","command":"ls","outcome":{"status":"exited","exit_code":2}}"#,
            r#"{"kind":"outcome","outcome":{"status":"lost","exit_code":null}}"#,
            r#"{"kind":"intent","time":"2026-11-21T07:00:02Z","command":"typed 12 bytes into job j1, then Enter","typed":{"job":"j1","bytes":12,"keys":["Enter"],"keys_omitted":0},"verdict":{"decision":"allow"}}"#,
            r#"{"kind":"intent","command":"typed 12 bytes into job j1, then Enter","verdict":{"decision":"allow"}}"#,
            r#"{"kind":"outcome","command":"read_file a","file":{"operation":"read_file","bytes":12},"outcome":{"status":"exited","exit_code":null}}"#,
            r#"{"kind":"outcome","command":"edit_file a","file":{"operation":"edit_file","bytes":null},"outcome":{"status":"failed","exit_code":null,"error":"not \u001bthere"}}"#,
            "\u{1b}]0;not json",
        ];
        let page: Vec<String> = (1..).zip(lines).map(|(number, line)| record(number, line)).collect();
        insta::assert_snapshot!(page.join("\n"), @r"
            1  2026-11-21T07:00:00Z  intent   ask           rm \x1b[2K\nx
            2  2026-11-21T07:00:00Z  approved by answer     ls
            3  2026-11-21T07:00:00Z  denied   by rate       ls
            4  2026-11-21T07:00:01Z  outcome  exited 2      ls
            5  -  outcome  lost          -
            6  2026-11-21T07:00:02Z  intent   typing        typed 12 bytes into job j1, then Enter
            7  -  intent   allow         typed 12 bytes into job j1, then Enter
            8  -  outcome  done          read_file a (12 bytes)
            9  -  outcome  failed        edit_file a: not \x1bthere
           10  not a record: \x1b]0;not json
        ");
    }
}
