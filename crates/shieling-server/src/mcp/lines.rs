//! Reads the client's lines before the protocol does. Lines that are not JSON or too long are answered here, since a
//! client would wait forever for the answer.
//!
//! Only the form of a line is examined, not its meaning.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::mpsc;

use super::arrivals::Arrivals;

/// The longest message, in bytes: a command or a file of the largest size, with every byte of the command escaped,
/// and few of the file. Of a longer message only the start is examined, for its id.
const LONGEST: usize = 16 * 1024 * 1024;

/// The part of a long line that is searched for its id, in bytes.
const START: usize = 4_096;

/// The largest number of unwritten answers. While they wait, nothing more is read.
const WAITING: usize = 16;

/// The size of the buffer between this module and the protocol, in bytes.
const BETWEEN: usize = 64 * 1024;

type ErrorReply = (ErrorData, Option<RequestId>);

/// Creates the transport, and the task that feeds it, which ends with the client's stream.
pub(super) fn answering<R, W>(
    read: R,
    write: W,
    arrivals: Arc<Arrivals>,
) -> (ReplyingTransport<W>, impl Future<Output = ()> + Send)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (good, theirs) = tokio::io::duplex(BETWEEN);
    let (bad, answers) = mpsc::channel(WAITING);
    let transport = ReplyingTransport {
        inner: AsyncRwTransport::new_server(theirs, write).with_max_line_length(LONGEST),
        answers,
        answering: None,
        arrivals,
    };
    (transport, sort(read, good, bad))
}

/// Forwards lines that are JSON, and answers the others.
async fn sort(read: impl AsyncRead + Send + Unpin, mut good: DuplexStream, bad: mpsc::Sender<ErrorReply>) {
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
            // Under its id, as far as it can be found: the client waits for the answer to that.
            match message(&line) {
                Err(why) => {
                    // What has no method is an answer of the client's, whose id is one of ours.
                    let is_request = line.windows(8).any(|part| part == b"\"method\"");
                    let id = is_request.then(|| id(&line)).flatten();
                    Some((ErrorData::new(ErrorCode::PARSE_ERROR, why, None), id))
                }
                Ok(message) => message.as_ref().and_then(malformed),
            }
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

/// Returns the message on a line; `None` if the line is empty, which is ignored.
///
/// # Errors
/// Why the line is not JSON.
fn message(line: &[u8]) -> Result<Option<Value>, String> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let error = match serde_json::from_slice::<Value>(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error.to_string(),
    };
    let surrogate = if error.contains("surrogate") || error.contains("hex escape") {
        "; `\\ud800` to `\\udfff` stand in pairs, of which one is missing here"
    } else {
        ""
    };
    Err(format!("the line is no JSON{surrogate}: {error}; nothing was done"))
}

/// Returns the answer to a request whose form is wrong although its id can be read: the protocol would answer it
/// without the id.
fn malformed(message: &Value) -> Option<ErrorReply> {
    let (method, id) = (message.get("method")?, message.get("id")?);
    let id: RequestId = serde_json::from_value(id.clone()).ok()?;
    let wrong = if message.get("jsonrpc").is_none_or(|version| version != "2.0") {
        ErrorData::invalid_request("`jsonrpc` must be \"2.0\"; nothing was done", None)
    } else if !method.is_string() {
        ErrorData::invalid_request("`method` must be a text; nothing was done", None)
    } else if !matches!(message.get("params"), None | Some(Value::Null | Value::Object(_))) {
        ErrorData::invalid_params("`params` must be an object; nothing was done", None)
    } else {
        return None;
    };
    Some((wrong, Some(id)))
}

/// Returns the length of a text in quotes, whatever stands in it.
fn text_length(start: &[u8]) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in start.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Returns the id of a message of which only the start is known, or which is no JSON: the value of `id` in the
/// outermost object.
fn id(start: &[u8]) -> Option<RequestId> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = start.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let length = text_length(&start[at..])?;
                // What is no text, such as half of a surrogate pair, is not the name that is looked for.
                let text = serde_json::from_slice::<String>(&start[at..at + length]).unwrap_or_default();
                at += length;
                let rest = start[at..].trim_ascii_start();
                if let (1, "id", Some(value)) = (depth, text.as_str(), rest.strip_prefix(b":")) {
                    let mut values = serde_json::Deserializer::from_slice(value).into_iter();
                    let id = values.next()?.ok()?;
                    // A number at the end of the known part may continue.
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

/// The transport for rmcp, which also sends the answers of this module.
pub(super) struct ReplyingTransport<W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, DuplexStream, W>,
    answers: mpsc::Receiver<ErrorReply>,
    /// An answer that is being written. Kept here because receiving may be interrupted.
    answering: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    arrivals: Arc<Arrivals>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for ReplyingTransport<W> {
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
                    // If the client does not read it, the next answer notices.
                    self.answering = Some(Box::pin(async { drop(sent.await) }));
                }
                message = self.inner.receive() => {
                    if let Some(JsonRpcMessage::Request(request)) = &message
                        && matches!(request.request, ClientRequest::CallToolRequest(_))
                    {
                        self.arrivals.arrived(request.id.clone());
                    }
                    return message;
                }
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
        assert_eq!(
            found(r#"{"params":{"x":"\ud83d","y":1e400},"id":9,"m":1}"#).as_deref(),
            Some("9")
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
            assert!(message(nothing.as_bytes()).is_ok(), "{nothing:?}");
        }
        for bad in [&b"{"[..], b"nonsense", b"\"\\ud800\"", b"\"\xff\""] {
            assert!(message(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_request_of_a_wrong_form_is_answered_under_its_id() {
        let answer = |line: &str| {
            let message = message(line.as_bytes()).expect("it is JSON").expect("it is not empty");
            malformed(&message).map(|(error, id)| (error.code.0, id.expect("it is known").to_string()))
        };
        for (line, code, id) in [
            (r#"{"jsonrpc":"1.0","id":78,"method":"ping"}"#, -32600, "78"),
            (r#"{"id":"a","method":"ping"}"#, -32600, "a"),
            (r#"{"jsonrpc":"2.0","id":80,"method":5}"#, -32600, "80"),
            (
                r#"{"jsonrpc":"2.0","id":81,"method":"tools/list","params":[1]}"#,
                -32602,
                "81",
            ),
        ] {
            assert_eq!(answer(line), Some((code, id.to_owned())), "{line}");
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
            // Without an id that an answer could have: a notification, an answer, and what is none of these.
            r#"{"jsonrpc":"1.0","method":"ping"}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":[1],"method":"ping"}"#,
            "[1]",
        ] {
            assert_eq!(answer(line), None, "{line}");
        }
    }
}
