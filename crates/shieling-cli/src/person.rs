//! The person at the terminal, who is asked by an agent, and who can take the keyboard of a job.
//!
//! Asks on `/dev/tty` and nowhere else, as approvals do. The agent's words and the job's screen are
//! strangers' text: what is asked is escaped, and a job that the person has taken is drawn, never
//! copied. Whatever happens, the terminal is given back as it was.

mod lent;

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

use crate::approver::Terminal;
use crate::config::files;
use crate::escape::{self, Escaped};

use lent::Lent;

/// The longest prompt that is shown whole, in characters.
const LONGEST: usize = 8 * 1024;

/// The longest answer, in bytes: the kernel's bound of a line.
const ANSWER: usize = 4 * 1024;

/// Ctrl-], which gives the keyboard back.
const BACK: u8 = 0x1d;

/// The person, and the way to their terminal.
#[derive(Debug)]
pub(crate) struct Person {
    open: fn() -> io::Result<File>,
}

impl Person {
    /// The person, if one can be supposed to sit at the terminal.
    pub(crate) fn find() -> Option<Self> {
        Terminal::find().map(|_| Self { open: files::terminal })
    }

    async fn converse(&self, question: &HumanQuestion) -> io::Result<HumanReply> {
        let mut note = None;
        loop {
            let mut page = Vec::new();
            match note.take() {
                None => show(&mut page, question)?,
                Some(note) => writeln!(page, "{note}")?,
            }
            invite(&mut page, question)?;
            let Some(line) = answered((self.open)()?, page).await? else {
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

    /// Lets the person type into the job until they give its keyboard back, or it ends.
    pub(crate) async fn take(&self, mut attachment: Attachment) -> io::Result<()> {
        let mut resized = signal(SignalKind::window_change())?;
        let before = attachment.size();
        let (lent, mut typed) = Lent::new((self.open)()?)?;
        let mut size = without_hint(lent.size(), before);
        attachment.resize(size);
        let mut renderer = Renderer::new(size, KeyTarget::Program);
        let mut changed = true;
        loop {
            if changed && lent.is_idle() {
                let mut frame = renderer.render();
                frame.extend(hint(size));
                lent.show(frame);
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
                    let back = typed.iter().position(|&byte| byte == BACK);
                    let keys = &typed[..back.unwrap_or(typed.len())];
                    // Keys that a program does not read are lost, as on any terminal.
                    let _ = keys.is_empty() || attachment.write(keys);
                    if back.is_some() {
                        break;
                    }
                }
                () = lent.idle(), if changed => {}
                _ = resized.recv() => {
                    size = without_hint(lent.size(), before);
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
        // A terminal that fails is one at which nobody sits.
        Box::pin(async move { self.converse(&question).await.unwrap_or(HumanReply::Nobody) })
    }
}

/// The size that a job gets: all but the last line, which says how to give its keyboard back.
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

/// What is asked, as a person may see it.
fn show(to: &mut impl Write, question: &HumanQuestion) -> io::Result<()> {
    match &question.job {
        Some(job) => writeln!(
            to,
            "\nthe agent asks, about job `{job}`; the marked lines are its own words:"
        )?,
        None => writeln!(to, "\nthe agent asks; the marked lines are its own words:")?,
    }
    let mut prompt: String = question.prompt.chars().take(LONGEST).collect();
    let left_out = question.prompt.len() - prompt.len();
    if left_out > 0 {
        prompt.push_str(&format!("\n[... {left_out} bytes more ...]"));
    }
    // Each bears a mark, so that none can be taken for one of ours.
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

fn invite(to: &mut impl Write, question: &HumanQuestion) -> io::Result<()> {
    let take = match question.terminal {
        Some(_) => ", `/take` for its keyboard",
        None => "",
    };
    write!(to, "your answer (`/decline` for none{take}): ")
}

/// Shows a page and waits for a line; none if the terminal gives none. Dropping the future ends the
/// waiting: the next line is somebody else's.
async fn answered(terminal: File, page: Vec<u8>) -> io::Result<Option<String>> {
    let (off, _on) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (answer, answered) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("question".to_owned()).spawn(move || {
        // Nobody waits any more if the question was dropped.
        let _ = answer.send(read_line(terminal, &page, &off));
    })?;
    answered.await.unwrap_or(Ok(None))
}

fn read_line(mut terminal: File, page: &[u8], off: &OwnedFd) -> io::Result<Option<String>> {
    // Keys that were pressed before there was a question do not answer it.
    rustix::termios::tcflush(&terminal, QueueSelector::IFlush)?;
    terminal.write_all(page)?;
    let mut fds = [PollFd::new(&terminal, PollFlags::IN), PollFd::new(off, PollFlags::IN)];
    rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
    if !fds[1].revents().is_empty() {
        return Ok(None);
    }
    let mut line = vec![0; ANSWER];
    let count = rustix::io::retry_on_intr(|| rustix::io::read(&terminal, line.as_mut_slice()))?;
    let line = String::from_utf8_lossy(&line[..count]).into_owned();
    Ok((count > 0).then_some(line))
}

#[cfg(test)]
mod tests;
