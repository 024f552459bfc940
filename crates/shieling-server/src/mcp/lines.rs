//! The client's lines, before the protocol reads them: what is no JSON, and what is longer than is read,
//! is answered here, since a client waits for an answer that silence never gives.
//!
//! Looks at a line's form alone. What a message means is the protocol's.

use std::future::Future;
use std::pin::Pin;

use rmcp::RoleServer;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc;

/// The longest message that is read, in bytes: a command or a file of the largest size, each byte of the
/// one escaped, and most of the other not.
/// Of a longer one only the start is looked at, for its id.
const LONGEST: usize = 16 * 1024 * 1024;

/// How much of a line that is too long is searched for its id.
const START: usize = 4_096;

/// How many answers wait to be written; while they do, nothing more is read.
const WAITING: usize = 16;

/// What lies between the lines and the protocol, in bytes.
const BETWEEN: usize = 64 * 1024;

type Answer = (ErrorData, Option<RequestId>);

/// The transport, and what has to run for it to hear anything: that ends with the client's stream.
pub(super) fn answering<R, W>(read: R, write: W) -> (Answering<W>, impl Future<Output = ()> + Send)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (good, theirs) = tokio::io::duplex(BETWEEN);
    let (bad, answers) = mpsc::channel(WAITING);
    let transport = Answering {
        inner: AsyncRwTransport::new_server(theirs, write).with_max_line_length(LONGEST),
        answers,
        answering: None,
    };
    (transport, sort(read, good, bad))
}

/// Hands on what is JSON, and asks for an answer to what is not.
async fn sort(read: impl AsyncRead + Send + Unpin, mut good: DuplexStream, bad: mpsc::Sender<Answer>) {
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let Ok(there) = read.fill_buf().await else { return };
        if there.is_empty() {
            return;
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(there.len(), |end| end + 1);
        if line.len() + taken > LONGEST {
            too_long = true;
            line.truncate(START);
        }
        if !too_long || line.len() < START {
            line.extend_from_slice(&there[..taken]);
        }
        read.consume(taken);
        if end.is_none() {
            continue;
        }
        let answer = if too_long {
            let why = format!("the message is longer than {LONGEST} bytes, which is the limit; nothing was done");
            Some((ErrorData::invalid_request(why, None), id(&line)))
        } else {
            wrong(&line).map(|why| (ErrorData::new(ErrorCode::PARSE_ERROR, why, None), None))
        };
        let handed_on = match answer {
            Some(answer) => bad.send(answer).await.is_ok(),
            None => good.write_all(&line).await.is_ok(),
        };
        if !handed_on {
            return;
        }
        line.clear();
        too_long = false;
    }
}

/// Why a line is no JSON. An empty one is nothing at all.
fn wrong(line: &[u8]) -> Option<String> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return None;
    }
    let error = serde_json::from_slice::<Value>(line).err()?;
    Some(format!("the line is no JSON: {error}"))
}

/// The id of a message of which only the start is there: the value of `id` in the outermost object.
fn id(start: &[u8]) -> Option<RequestId> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = start.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let mut texts = serde_json::Deserializer::from_slice(&start[at..]).into_iter::<String>();
                let text = texts.next()?.ok()?;
                at += texts.byte_offset();
                let rest = start[at..].trim_ascii_start();
                if let (1, "id", Some(value)) = (depth, text.as_str(), rest.strip_prefix(b":")) {
                    let mut values = serde_json::Deserializer::from_slice(value).into_iter();
                    let id = values.next()?.ok()?;
                    // A number that the start ends with may go on.
                    return (values.byte_offset() < value.len()).then_some(id);
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The transport of rmcp, which answers what was sorted out as well.
pub(super) struct Answering<W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, DuplexStream, W>,
    answers: mpsc::Receiver<Answer>,
    /// An answer that is being written; kept, since receiving may be interrupted.
    answering: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for Answering<W> {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answering) = &mut self.answering {
                answering.await;
                self.answering = None;
            }
            tokio::select! {
                biased;
                Some((error, id)) = self.answers.recv() => {
                    let sent = self.inner.send(JsonRpcMessage::error(error, id));
                    // A client that does not read it is found gone by the next answer.
                    self.answering = Some(Box::pin(async { drop(sent.await) }));
                }
                message = self.inner.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_in_the_outermost_object_only() {
        let found = |start: &str| id(start.as_bytes()).map(|id| id.to_string());
        assert_eq!(
            found(r#"{"jsonrpc":"2.0","id": 7,"method":"x","params":{"a":"aaaa"#).as_deref(),
            Some("7")
        );
        assert_eq!(
            found(r#"{"params":{"id":1,"x":["id"]},"id":"a\"b","m"#).as_deref(),
            Some("a\"b")
        );
        for none in [
            r#"{"params":{"id":1,"aaaaaa"#,
            r#"{"x":"\"id\":3"#,
            r#"["id",3"#,
            "",
            r#"{"id""#,
            r#"{"id":{}"#,
            r#"{"id":12"#,
        ] {
            assert_eq!(found(none), None, "{none}");
        }
    }

    #[test]
    fn an_empty_line_is_nothing_and_no_json_is_wrong() {
        for nothing in ["", "\r\n", "\u{feff}\n", "{}", "\u{feff}{}\n"] {
            assert_eq!(wrong(nothing.as_bytes()), None, "{nothing:?}");
        }
        for bad in [&b"{"[..], b"nonsense", b"\"\\ud800\"", b"\"\xff\""] {
            assert!(wrong(bad).is_some(), "{bad:?}");
        }
    }
}
