//! The person at the terminal: answers an agent's questions and can take the keyboard of a job.
//!
//! Asks on `/dev/tty` and nowhere else, as approvals do. The agent's words and the job's screen are untrusted:
//! questions are escaped, and the screen of a job is drawn from its parsed state, never copied. The terminal's modes
//! are restored in every case.

mod raw_terminal;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::PipeFlags;
use rustix::termios::QueueSelector;
use shieling::session::{
    Attachment, Human, HumanQuestion, HumanReply, KeyTarget, Renderer, ReplyFuture, Screen, ScreenUpdate, TerminalSize,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::approver::{Terminal, choices};
use crate::config::files;
use crate::escape::{self, Escaped};

use raw_terminal::RawTerminal;

/// The longest prompt that is shown in full, in characters.
const MAX_PROMPT_CHARS: usize = 8 * 1024;

/// The longest answer, in bytes: the kernel's limit for a line in canonical mode.
const MAX_ANSWER_BYTES: usize = 4 * 1024;

/// Ctrl-], which returns the keyboard to the agent.
const RELEASE_KEY: u8 = 0x1d;

/// A person, reached by opening their terminal.
#[derive(Debug)]
pub(crate) struct Person {
    open_terminal: fn() -> io::Result<File>,
}

impl Person {
    /// Finds the person, if this process has a controlling terminal.
    pub(crate) fn find() -> Option<Self> {
        Terminal::find().map(|_| Self {
            open_terminal: files::terminal,
        })
    }

    async fn ask_on_terminal(&self, question: &HumanQuestion) -> io::Result<HumanReply> {
        let mut note = None;
        loop {
            let mut page = Vec::new();
            match note.take() {
                None => write_question(&mut page, question)?,
                Some(note) => writeln!(page, "{note}")?,
            }
            write_instructions(&mut page, question)?;
            let Some(line) = read_answer((self.open_terminal)()?, page).await? else {
                return Ok(HumanReply::Nobody);
            };
            note = match (line.trim(), &question.terminal) {
                ("/decline", _) => return Ok(HumanReply::Declined),
                ("/take", Some(terminal)) => match terminal.attach() {
                    Ok(attachment) => {
                        self.take(attachment).await?;
                        return Ok(HumanReply::TookOver);
                    }
                    Err(error) => Some(escape::line(&error.to_string())),
                },
                ("/take", None) => Some("there is no terminal to take".to_owned()),
                (answer, _) => return Ok(HumanReply::Answer(answer.to_owned())),
            };
        }
    }

    /// Shows an approval that is asked for, and gives the line that answers it. `host` tells which answers there are.
    pub(crate) async fn approve(&self, shown: &str, host: bool) -> HumanReply {
        let mut page = String::from("\n");
        for line in Escaped::new(shown).text.lines().filter(|line| !line.is_empty()) {
            page.push_str(line);
            page.push('\n');
        }
        page.push_str(choices(host));
        let answered = match (self.open_terminal)() {
            Ok(terminal) => read_answer(terminal, page.into_bytes()).await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(Some(line)) => HumanReply::Answer(line.trim().to_owned()),
            Ok(None) | Err(_) => HumanReply::Nobody,
        }
    }

    /// Lets the person type into the job until they press Ctrl-] or the job ends.
    ///
    /// # Errors
    /// If the terminal cannot be opened or its modes cannot be set.
    pub(crate) async fn take(&self, mut attachment: Attachment) -> io::Result<()> {
        let mut resized = signal(SignalKind::window_change())?;
        let before = attachment.size();
        let (raw, mut typed) = RawTerminal::new((self.open_terminal)()?)?;
        let mut size = without_hint(raw.size(), before);
        attachment.resize(size);
        let mut renderer = Renderer::new(size, KeyTarget::Program);
        let mut changed = true;
        loop {
            if changed && raw.is_idle() {
                let mut frame = renderer.render();
                frame.extend(hint(size));
                raw.show(frame);
                changed = false;
            }
            tokio::select! {
                shown = attachment.next() => {
                    match shown {
                        None => break,
                        Some(ScreenUpdate::Append(bytes)) => renderer.output(&bytes),
                        Some(ScreenUpdate::Reset(bytes)) => {
                            renderer = Renderer::new(size, KeyTarget::Program);
                            renderer.output(&bytes);
                        }
                    }
                    changed = true;
                }
                typed = typed.recv() => {
                    let Some(typed) = typed else { break };
                    let release = typed.iter().position(|&byte| byte == RELEASE_KEY);
                    let keys = &typed[..release.unwrap_or(typed.len())];
                    // Keys that a program does not read are lost, as on any terminal.
                    let _ = keys.is_empty() || attachment.write(keys);
                    if release.is_some() {
                        break;
                    }
                }
                () = raw.idle(), if changed => {}
                _ = resized.recv() => {
                    size = without_hint(raw.size(), before);
                    renderer.resize(size);
                    attachment.resize(size);
                    changed = true;
                }
            }
        }
        attachment.resize(before);
        Ok(())
    }
}

impl Human for Person {
    fn ask<'a>(&'a self, question: HumanQuestion) -> ReplyFuture<'a> {
        // A terminal that fails has no person to answer.
        Box::pin(async move { self.ask_on_terminal(&question).await.unwrap_or(HumanReply::Nobody) })
    }
}

/// The size of the job's part of the terminal: all but the last line, which shows how to return the keyboard.
fn without_hint(own: Option<TerminalSize>, otherwise: TerminalSize) -> TerminalSize {
    own.map_or(otherwise, |own| TerminalSize {
        rows: own.rows.saturating_sub(1).clamp(1, TerminalSize::LARGEST.rows),
        columns: own.columns.clamp(1, TerminalSize::LARGEST.columns),
    })
}

fn hint(size: TerminalSize) -> Vec<u8> {
    let text: String = "you have the keyboard; Ctrl-] gives it back"
        .chars()
        .take(usize::from(size.columns.saturating_sub(1)))
        .collect();
    let row = size.rows.saturating_add(1);
    format!("\x1b7\x1b[{row};1H\x1b[m\x1b[2K\x1b[7m{text}\x1b[m\x1b8").into_bytes()
}

/// Writes the question, escaped.
fn write_question(to: &mut impl Write, question: &HumanQuestion) -> io::Result<()> {
    match &question.job {
        Some(job) => writeln!(
            to,
            "\nthe agent asks, about job `{job}`; the marked lines are its own words:"
        )?,
        None => writeln!(to, "\nthe agent asks; the marked lines are its own words:")?,
    }
    let mut prompt: String = question.prompt.chars().take(MAX_PROMPT_CHARS).collect();
    let left_out = question.prompt.len() - prompt.len();
    if left_out > 0 {
        prompt.push_str(&format!("\n[... {left_out} bytes more ...]"));
    }
    // Each line is marked, so that the agent cannot imitate Shieling's own text.
    for line in Escaped::new(&prompt).text.lines() {
        writeln!(to, "  > {line}")?;
    }
    if let Some(Screen { text, title, .. }) = &question.screen {
        let title = escape::headline(title, 60);
        let separator = if title.is_empty() { "" } else { ": " };
        writeln!(to, "its screen{separator}{title}")?;
        for line in Escaped::new(text).text.lines() {
            writeln!(to, "  | {line}")?;
        }
    }
    Ok(())
}

fn write_instructions(to: &mut impl Write, question: &HumanQuestion) -> io::Result<()> {
    let take = match question.terminal {
        Some(_) => ", `/take` for its keyboard",
        None => "",
    };
    write!(to, "your answer (`/decline` for none{take}): ")
}

/// Writes a page to the terminal and reads a line; `None` at end of file.
///
/// # Cancel safety
/// Dropping the future stops reading: the next line goes to the next reader.
async fn read_answer(terminal: File, page: Vec<u8>) -> io::Result<Option<String>> {
    let (cancelled, _cancel_on_drop) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (answer, answered) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("question".to_owned()).spawn(move || {
        // The receiver is gone if the question was withdrawn.
        let _ = answer.send(read_line(terminal, &page, &cancelled));
    })?;
    answered.await.unwrap_or(Ok(None))
}

fn read_line(mut terminal: File, page: &[u8], cancelled: &OwnedFd) -> io::Result<Option<String>> {
    // Discards keys that were pressed before the question was shown.
    rustix::termios::tcflush(&terminal, QueueSelector::IFlush)?;
    terminal.write_all(page)?;
    let mut fds = [
        PollFd::new(&terminal, PollFlags::IN),
        PollFd::new(cancelled, PollFlags::IN),
    ];
    rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
    if !fds[1].revents().is_empty() {
        return Ok(None);
    }
    let mut line = vec![0; MAX_ANSWER_BYTES];
    let count = rustix::io::retry_on_intr(|| rustix::io::read(&terminal, line.as_mut_slice()))?;
    let line = String::from_utf8_lossy(&line[..count]).into_owned();
    Ok((count > 0).then_some(line))
}

#[cfg(test)]
mod tests;
