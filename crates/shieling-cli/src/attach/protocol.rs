//! The protocol between `shieling attach` and a running server: one JSON object per line, one subject per
//! connection. Lines are bounded; a line that does not parse ends the connection.
//!
//! ```text
//! list          ─► listed
//! wait          ─► question, withdrawn …      ◄─ answer …
//! take JOB      ─► taken, anew, more …, ended ◄─ typed, resized …    closing the connection gives the keyboard back
//! look JOB      ─► output …, ended
//!                  (any of them may be answered with refused)
//! ```

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shieling::session::{HumanReply, TerminalSize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest line, in bytes: a large screen with all of its colours fits.
const MAX_LINE_BYTES: u64 = 8 * 1024 * 1024;

/// The directory of the servers' sockets.
pub(super) fn socket_directory(state: &Path) -> PathBuf {
    state.join("attach")
}

/// A message from `shieling attach`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientMessage {
    /// Asks for the sessions and jobs.
    List,
    /// Subscribes to the questions of agents.
    Wait,
    /// Answers a question.
    Answer {
        /// The number of the question.
        question: u64,
        /// The answer.
        reply: Reply,
    },
    /// Takes the keyboard of this job.
    Take(String),
    /// Keys for the job whose keyboard was taken.
    Typed(Bytes),
    /// A new size for that job's terminal.
    Resized(Window),
    /// Subscribes to the output of this job.
    Look(String),
}

/// A message from a server.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServerMessage {
    /// The sessions and jobs, one per line, escaped for a terminal.
    Listed(Vec<String>),
    /// A new question.
    Question(Question),
    /// The number of a question that needs no answer any more.
    Withdrawn(u64),
    /// The keyboard was taken; the job's terminal has this size.
    Taken(Window),
    /// Bytes that draw the whole screen.
    Anew(Bytes),
    /// Further bytes for the screen.
    More(Bytes),
    /// Output of the job.
    Output(String),
    /// The job or the subscription ended; says how.
    Ended(String),
    /// The request was refused; says why.
    Refused(String),
}

/// A question of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) prompt: String,
    pub(super) job: Option<String>,
    pub(super) screen: Option<ScreenText>,
    /// Whether the job has a terminal whose keyboard can be taken.
    pub(super) terminal: bool,
    /// What a yes would approve, as the person is shown it. The question is then Shieling's, and no agent's.
    #[serde(default)]
    pub(super) approval: Option<Approval>,
}

/// An approval that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Approval {
    /// What is asked, escaped.
    pub(super) shown: String,
    /// Whether it is about a host, to which there are more answers.
    pub(super) host: bool,
}

/// The contents of a terminal, not yet escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScreenText {
    pub(super) window: Window,
    pub(super) text: String,
    pub(super) title: String,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Answer(String),
    TookOver,
    Declined,
    Nobody,
}

impl From<HumanReply> for Reply {
    fn from(reply: HumanReply) -> Self {
        match reply {
            HumanReply::Answer(text) => Self::Answer(text),
            HumanReply::TookOver => Self::TookOver,
            HumanReply::Declined => Self::Declined,
            HumanReply::Nobody => Self::Nobody,
        }
    }
}

impl From<Reply> for HumanReply {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Answer(text) => Self::Answer(text),
            Reply::TookOver => Self::TookOver,
            Reply::Declined => Self::Declined,
            Reply::Nobody => Self::Nobody,
        }
    }
}

/// The size of a terminal, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    pub(super) rows: u16,
    pub(super) columns: u16,
}

impl From<TerminalSize> for Window {
    fn from(TerminalSize { rows, columns }: TerminalSize) -> Self {
        Self { rows, columns }
    }
}

impl From<Window> for TerminalSize {
    fn from(Window { rows, columns }: Window) -> Self {
        Self { rows, columns }
    }
}

/// Bytes as text: each byte becomes the character with its number, so that ASCII stays readable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        bytes.0.into_iter().map(char::from).collect()
    }
}

impl TryFrom<String> for Bytes {
    type Error = std::char::TryFromCharError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.chars().map(u8::try_from).collect::<Result<_, _>>().map(Self)
    }
}

/// Writes one message.
pub(super) async fn send(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line).await
}

/// Reads one message; `None` at the end of the connection.
///
/// # Cancel safety
/// Not cancel safe: the part of a line that was read is lost.
pub(super) async fn read<T: DeserializeOwned>(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let read = from.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
    if read == 0 {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_survive_and_an_invalid_message_is_an_error() {
        let all = ServerMessage::More(Bytes((0..=255).collect()));
        let mut line = Vec::new();
        send(&mut line, &all).await.expect("memory takes it");
        assert_eq!(
            read::<ServerMessage>(&mut line.as_slice()).await.expect("a message"),
            Some(all)
        );
        assert_eq!(read::<ServerMessage>(&mut &b""[..]).await.expect("an end"), None);
        for wrong in [
            "{}\n",
            "\"take\"\n",
            "{\"typed\": \"\u{100}\"}\n",
            "\n",
            "{\"take\": 3}\n",
            "[\n",
            "\"list\"",
        ] {
            let read = read::<ClientMessage>(&mut wrong.as_bytes()).await;
            assert!(read.is_err() || wrong == "\"list\"", "{wrong}");
        }
    }
}
