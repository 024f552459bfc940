//! The person at the terminal, who says yes or no.
//!
//! Asks on `/dev/tty` and nowhere else: the streams may be pipes that belong to somebody else, and
//! the command's own standard input is never read. What is shown is escaped and shown whole; a
//! command, or a change of files, that is too long to be judged by looking at it is not asked about.
//! The safe answer is the one of an empty line, an end of file, and anything not understood.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shieling::approval::{Answer, AnswerFuture, Approver, GrantLimits, Question, Scope};
use shieling::policy::Reason;
use shieling::request::RequestKind;
use shieling::units::ByteCount;

use crate::config::{Printable, files};
use crate::escape::Escaped;
use crate::pty::Asking;
use crate::words;

/// The longest command that a person is asked about, as it is shown.
const LONGEST: ByteCount = ByteCount::kib(8);

/// The longest change of files, as it is shown: what the library makes of one, and room for what is
/// escaped in it.
const LONGEST_CHANGE: ByteCount = ByteCount::kib(96);

/// How often it is looked whether anybody still waits for an answer.
const LOOKS: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The terminal that this process was started from.
#[derive(Debug)]
pub(crate) struct Terminal(());

impl Terminal {
    /// The terminal, if a person can be supposed to sit at it: one of our streams leads there, and we
    /// are in the foreground. From the background a question would stop us instead of being answered.
    pub(crate) fn find() -> Option<Self> {
        if !(io::stdin().is_terminal() || io::stderr().is_terminal()) {
            return None;
        }
        let terminal = files::terminal().ok()?;
        let foreground = rustix::termios::tcgetpgrp(&terminal).ok()?;
        (foreground == rustix::process::getpgrp()).then_some(Self(()))
    }
}

impl Approver for Terminal {
    /// Asks on a thread of its own, so that the question can be dropped while nobody answers.
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a> {
        let question = question.clone();
        let (answered, answer) = tokio::sync::oneshot::channel();
        let asking = std::thread::Builder::new().name("question".to_owned()).spawn(move || {
            let answer = ask(&question, &|| answered.is_closed()).unwrap_or(Answer::Nobody);
            // Nobody waits any more if the question was dropped.
            let _ = answered.send(answer);
        });
        Box::pin(async move {
            match asking {
                Ok(_) => answer.await.unwrap_or(Answer::Nobody),
                Err(_) => Answer::Nobody,
            }
        })
    }
}

/// Asks, and waits for the answer, or until nobody waits for it any more. Blocks.
///
/// # Errors
/// Those of the terminal; nobody has said yes then.
fn ask(question: &Question, is_dropped: &dyn Fn() -> bool) -> io::Result<Answer> {
    let shown = match shown(question) {
        Ok(shown) => shown,
        Err(most) => return Ok(Answer::TooLong { most }),
    };
    let mut terminal = files::terminal()?;
    // A command may have the keys at present.
    let _asking = Asking::begin();
    if is_dropped() {
        return Ok(Answer::Nobody);
    }
    terminal.write_all(shown.as_bytes())?;
    // Keys that were pressed before the question was seen do not answer it. Those that follow its last words do.
    rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush)?;
    let host = question.kind == RequestKind::Network;
    write!(terminal, "{}", choices(host))?;
    terminal.flush()?;
    loop {
        let mut fds = [PollFd::new(&terminal, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut fds, Some(&LOOKS)))?;
        if !fds[0].revents().is_empty() {
            break;
        }
        if is_dropped() {
            return Ok(Answer::Nobody);
        }
    }
    let mut line = String::new();
    BufReader::new(terminal.take(64)).read_line(&mut line)?;
    Ok(decided(&line, host))
}

/// What there is to answer.
pub(crate) fn choices(host: bool) -> &'static str {
    match host {
        true => "y = yes, once, s = until this ends, a = always, n = no [n] ",
        false => "y = yes, n = no [n] ",
    }
}

/// What an answer means.
pub(crate) fn decided(line: &str, host: bool) -> Answer {
    match line.trim() {
        "s" | "S" if host => Answer::Yes(Scope::Session(GrantLimits::default())),
        "a" | "A" if host => Answer::Yes(Scope::Always),
        _ if is_yes(line) => Answer::Yes(Scope::Once),
        _ => Answer::No(String::new()),
    }
}

/// A question as a person is shown it, whole and escaped.
///
/// # Errors
/// The bound that it is longer than.
pub(crate) fn shown(question: &Question) -> Result<String, ByteCount> {
    let shown = Shown {
        kind: question.kind,
        change: question.change.as_deref(),
        text: &question.text,
        cwd: &question.cwd,
        environment: &question.environment,
        reasons: &question.verdict.reasons,
        changed: &question.changed,
    };
    match shown.exceeds() {
        Some(most) => Err(most),
        None => Ok(shown.to_string()),
    }
}

/// What of a question is shown.
struct Shown<'a> {
    kind: RequestKind,
    change: Option<&'a str>,
    text: &'a str,
    cwd: &'a Path,
    environment: &'a str,
    reasons: &'a [Reason],
    changed: &'a [PathBuf],
}

impl Shown<'_> {
    /// The bound that it is longer than, if it is too long to be judged by looking at it.
    fn exceeds(&self) -> Option<ByteCount> {
        let exceeds = |text: &str, most: ByteCount| (Escaped::new(text).text.len() > most.as_usize()).then_some(most);
        exceeds(self.text, LONGEST).or_else(|| exceeds(self.change?, LONGEST_CHANGE))
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let question = self;
        let asked = match question.kind {
            RequestKind::Command => "may this run",
            RequestKind::Files => "may this be done with files",
            RequestKind::Network => "may a command do this",
        };
        let place = Printable(question.cwd);
        writeln!(to, "\n{asked} in `{}`, in {place}?", question.environment)?;
        for line in Escaped::new(question.text).text.lines() {
            writeln!(to, "  {line}")?;
        }
        for line in question
            .change
            .map(|change| Escaped::new(change).text)
            .iter()
            .flat_map(|change| change.lines())
        {
            writeln!(to, "  | {line}")?;
        }
        for path in question.changed {
            writeln!(to, "{:<8} {} since your last yes", "changed", Printable(path))?;
        }
        for reason in question.reasons {
            writeln!(to, "{:<8} {}", "because", words::sentence(reason))?;
            writeln!(to, "{:<8} {}", "rule", crate::escape::line(&reason.rule))?;
        }
        Ok(())
    }
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim(), "y" | "Y" | "yes")
}

#[cfg(test)]
mod tests {
    use shieling::policy::Decision;

    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for line in ["y\n", "yes\n", " Y \n"] {
            assert!(is_yes(line), "{line:?}");
        }
        for line in ["n\n", "\n", "", "yy\n", "y; n\n", "\u{1b}[Ay\n"] {
            assert!(!is_yes(line), "{line:?}");
        }
    }

    #[test]
    fn the_question_shows_what_would_otherwise_hide() {
        let reasons = [Reason {
            decision: Decision::Ask,
            rule: "readonly".to_owned(),
            object: "python3".to_owned(),
            span: None,
            because: "an interpreter can change anything".to_owned(),
            instead: None,
        }];
        let question = Shown {
            kind: RequestKind::Command,
            change: None,
            text: "python3 x.py \u{1b}[2K\r\nrm \u{202e}x",
            cwd: Path::new("/w\u{1b}"),
            environment: "local",
            reasons: &reasons,
            changed: &[PathBuf::from("x.py")],
        };
        insta::assert_snapshot!(question.to_string().trim(), @r"
        may this run in `local`, in /w\x1b?
          python3 x.py \x1b[2K\r
          rm \u{202e}x
        changed  x.py since your last yes
        because  `python3`: an interpreter can change anything
        rule     readonly
        ");
    }

    #[test]
    fn a_change_of_files_is_shown_line_by_line_and_cannot_be_taken_for_anything_else() {
        let question = Shown {
            kind: RequestKind::Files,
            change: Some("--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new \u{1b}[2K\ry = yes, n = no [n] y\nbecause  it is fine"),
            text: "edit_file a",
            cwd: Path::new("/w"),
            environment: "local",
            reasons: &[],
            changed: &[],
        };
        insta::assert_snapshot!(question.to_string().trim(), @r"
        may this be done with files in `local`, in /w?
          edit_file a
          | --- a
          | +++ a
          | @@ -1 +1 @@
          | -old
          | +new \x1b[2K\ry = yes, n = no [n] y
          | because  it is fine
        ");
    }

    #[test]
    fn nobody_is_asked_about_what_is_too_long_to_be_judged_by_looking_at_it() {
        let shown = |text, change| {
            Shown {
                kind: RequestKind::Files,
                change,
                text,
                cwd: Path::new("/w"),
                environment: "local",
                reasons: &[],
                changed: &[],
            }
            .exceeds()
        };
        let letters = "x".repeat(96 << 10);
        let (one_more, escapes) = (format!("{letters}x"), "\u{1b}".repeat(4 << 10));
        assert_eq!(shown(&letters[..8 << 10], Some(&letters)), None);
        assert_eq!(shown(&letters[..(8 << 10) + 1], None), Some(LONGEST));
        assert_eq!(shown("x", Some(&one_more)), Some(LONGEST_CHANGE));
        // What is escaped takes the room of its escape.
        assert_eq!(shown(&escapes, None), Some(LONGEST));
    }
}
