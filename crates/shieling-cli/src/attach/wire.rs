//! What a person's terminal and a server say to each other: a JSON object in each line, one subject for
//! each connection. Lines have a bound, and what does not fit the form ends the connection.
//!
//! ```text
//! list          ─► listed
//! wait          ─► question, withdrawn …      ◄─ answer …
//! take JOB      ─► taken, shown …, ended      ◄─ typed, resized …    closing it gives the keyboard back
//! look JOB      ─► output …, ended
//!                  (or refused, for each of them)
//! ```

use std::io;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shieling::session::{HumanReply, TerminalSize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The longest line, in bytes: all of a large screen with its colours.
const LONGEST: u64 = 8 * 1024 * 1024;

/// What a person's terminal says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// What there is.
    List,
    /// Whatever is asked from now on.
    Wait,
    /// The answer to a question.
    Answer {
        /// Its number.
        question: u64,
        /// It.
        reply: Reply,
    },
    /// The keyboard of this job.
    Take(String),
    /// These keys, of a job that was taken.
    Typed(Bytes),
    /// The size that the job's terminal is to have.
    Resized(Window),
    /// What this job writes.
    Look(String),
}

/// What a server says.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Say {
    /// What there is, in lines that are safe to show.
    Listed(Vec<String>),
    /// Somebody is asked.
    Question(Question),
    /// A question that is asked no more.
    Withdrawn(u64),
    /// The keyboard is the person's; the terminal is so large.
    Taken(Window),
    /// The screen from the beginning.
    Anew(Bytes),
    /// More of it.
    More(Bytes),
    /// What a job wrote.
    Output(String),
    /// The job is over.
    Ended(String),
    /// It cannot be done.
    Refused(String),
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) prompt: String,
    pub(super) job: Option<String>,
    pub(super) screen: Option<Picture>,
    /// Whether the job's keyboard can be taken.
    pub(super) terminal: bool,
}

/// A screen, as a person may be shown it after escaping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Picture {
    pub(super) window: Window,
    pub(super) text: String,
    pub(super) title: String,
}

/// An answer.
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

/// A size.
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

/// Bytes, each as the character that has its number: most are letters, and stay readable.
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

/// Sends one line.
pub(super) async fn send(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line).await
}

/// Reads one line, waiting for it; none at the end of the connection. Not cancel safe: what was read of a
/// line is lost.
pub(super) async fn read<T: DeserializeOwned>(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let read = from.take(LONGEST).read_until(b'\n', &mut line).await?;
    if read == 0 {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_survive_and_what_is_no_message_is_an_error() {
        let all = Say::More(Bytes((0..=255).collect()));
        let mut line = Vec::new();
        send(&mut line, &all).await.expect("memory takes it");
        assert_eq!(read::<Say>(&mut line.as_slice()).await.expect("a message"), Some(all));
        assert_eq!(read::<Say>(&mut &b""[..]).await.expect("an end"), None);
        for wrong in [
            "{}\n",
            "\"take\"\n",
            "{\"typed\": \"\u{100}\"}\n",
            "\n",
            "{\"take\": 3}\n",
            "[\n",
            "\"list\"",
        ] {
            let read = read::<Ask>(&mut wrong.as_bytes()).await;
            assert!(read.is_err() || wrong == "\"list\"", "{wrong}");
        }
    }
}
