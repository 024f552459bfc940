//! The person at the terminal, who says yes or no.
//!
//! Asks on `/dev/tty` and nowhere else: the streams may be pipes that belong to somebody else, and
//! the command's own standard input is never read. What is shown is escaped and shown whole; a
//! command that is too long to be judged by looking at it is not asked about. The safe answer is
//! the one of an empty line, an end of file, and anything not understood.

use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _, Write};
use std::path::Path;

use shieling::policy::Reason;

use crate::config::{Printable, files};
use crate::escape::Escaped;
use crate::words;

/// The longest command that a person is asked about, in bytes.
const LONGEST: usize = 8 * 1024;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// The command.
    pub(crate) text: &'a str,
    /// Where it would run.
    pub(crate) cwd: &'a Path,
    /// The environment it would run in.
    pub(crate) environment: &'a str,
    /// Why somebody is asked; empty where every command is.
    pub(crate) reasons: &'a [Reason],
    /// The words that a yes for a prefix would cover, where there are any.
    pub(crate) prefix: Option<&'a str>,
}

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Yes, this once.
    Once,
    /// Yes to exactly this, while this session lasts.
    Exact,
    /// Yes to all that starts like this, while this session lasts.
    Prefix,
    /// No.
    No,
}

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

    /// Asks, and waits for the answer. Blocks.
    ///
    /// # Errors
    /// Those of the terminal; nobody has said yes then.
    pub(crate) fn ask(&self, question: &Question<'_>) -> io::Result<Answer> {
        let mut terminal = files::terminal()?;
        if question.text.len() > LONGEST {
            let (bytes, command) = (question.text.len(), crate::escape::headline(question.text, 60));
            writeln!(
                terminal,
                "not asked: `{command}` is {bytes} bytes long, too long to be judged by looking at it"
            )?;
            return Ok(Answer::No);
        }
        show(&mut terminal, question)?;
        // Keys that were pressed before the question was seen do not answer it.
        rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush)?;
        let mut line = String::new();
        BufReader::new(terminal.take(64)).read_line(&mut line)?;
        Ok(understood(&line, question.prefix.is_some()))
    }
}

fn show(to: &mut impl Write, question: &Question<'_>) -> io::Result<()> {
    writeln!(
        to,
        "\nmay this run in `{}`, in {}?",
        question.environment,
        Printable(question.cwd)
    )?;
    for line in Escaped::new(question.text).text.lines() {
        writeln!(to, "  {line}")?;
    }
    for reason in question.reasons {
        writeln!(to, "{:<8} {}", "because", words::sentence(reason))?;
        writeln!(to, "{:<8} {}", "rule", crate::escape::line(&reason.rule))?;
    }
    write!(to, "y = once, e = exactly this from now on")?;
    if let Some(prefix) = question.prefix {
        write!(to, ", p = all that starts with `{}`", crate::escape::line(prefix))?;
    }
    write!(to, ", n = no [n] ")?;
    to.flush()
}

fn understood(line: &str, prefix: bool) -> Answer {
    match line.trim() {
        "y" | "Y" | "yes" => Answer::Once,
        "e" | "E" => Answer::Exact,
        "p" | "P" if prefix => Answer::Prefix,
        _ => Answer::No,
    }
}

#[cfg(test)]
mod tests {
    use shieling::policy::Decision;

    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        for (line, answer) in [
            ("y\n", Answer::Once),
            ("yes\n", Answer::Once),
            (" Y \n", Answer::Once),
            ("e\n", Answer::Exact),
            ("p\n", Answer::Prefix),
            ("n\n", Answer::No),
            ("\n", Answer::No),
            ("", Answer::No),
            ("yy\n", Answer::No),
            ("y; n\n", Answer::No),
            ("\u{1b}[Ay\n", Answer::No),
        ] {
            assert_eq!(understood(line, true), answer, "{line:?}");
        }
        assert_eq!(understood("p\n", false), Answer::No);
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
        let question = Question {
            text: "python3 x.py \u{1b}[2K\r\nrm \u{202e}x",
            cwd: Path::new("/w\u{1b}"),
            environment: "local",
            reasons: &reasons,
            prefix: Some("python3"),
        };
        let mut shown = Vec::new();
        show(&mut shown, &question).unwrap();
        insta::assert_snapshot!(String::from_utf8(shown).unwrap().trim(), @r"
        may this run in `local`, in /w\x1b?
          python3 x.py \x1b[2K\r
          rm \u{202e}x
        because  `python3`: an interpreter can change anything
        rule     readonly
        y = once, e = exactly this from now on, p = all that starts with `python3`, n = no [n]
        ");
    }
}
