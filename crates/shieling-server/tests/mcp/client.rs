//! A client that speaks line by line, so that it can also misbehave.

use std::sync::Arc;

use serde_json::{Value, json};
use shieling_server::{Dialect, ServeError, Server};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use crate::fake::Fake;

/// Answers what the server asks.
type Person = Box<dyn FnMut(&Value) -> Option<Value> + Send>;

pub(crate) struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    next: u64,
    /// What goes with each request, for versions without a session.
    meta: Option<Value>,
    pub(crate) person: Person,
    /// Notifications and requests that came.
    pub(crate) heard: Vec<Value>,
    pub(crate) server: JoinHandle<Result<(), ServeError>>,
}

/// A client that can ask a person.
pub(crate) fn with_forms() -> Value {
    json!({"elicitation": {}})
}

impl Client {
    /// Before its first word.
    pub(crate) fn silent(fake: &Arc<Fake>, dialect: &str) -> Self {
        let dialect = Dialect::named(dialect).expect("there is such a dialect");
        Self::of(Server::new(fake.workplace(), dialect, "Work well."))
    }

    /// Of a server that is there already, before its first word.
    pub(crate) fn of(server: Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let server = tokio::spawn(server.serve(read, write, std::future::pending()));
        let (read, write) = tokio::io::split(ours);
        Self {
            lines: BufReader::new(read).lines(),
            write,
            next: 1,
            meta: None,
            person: Box::new(|_| None),
            heard: Vec::new(),
            server,
        }
    }

    /// In a session of an older version.
    pub(crate) async fn stateful(fake: &Arc<Fake>, dialect: &str, can: Value) -> Self {
        Self::silent(fake, dialect).welcome(can).await
    }

    /// Opens a session.
    pub(crate) async fn welcome(self, can: Value) -> Self {
        let mut client = self;
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": can,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let welcome = client.request("initialize", hello).await;
        assert_eq!(welcome["result"]["protocolVersion"], "2025-06-18", "{welcome}");
        client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        client
    }

    /// Without a session: each request says who asks.
    pub(crate) fn stateless(fake: &Arc<Fake>, dialect: &str, can: &Value) -> Self {
        Self::silent(fake, dialect).without_session(can)
    }

    /// The same, of a server that is there already.
    pub(crate) fn stateless_of(server: Server, can: &Value) -> Self {
        Self::of(server).without_session(can)
    }

    fn without_session(self, can: &Value) -> Self {
        Self {
            meta: Some(json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": can,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            })),
            ..self
        }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.line(&message.to_string()).await;
    }

    pub(crate) async fn line(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.write.write_all(line.as_bytes()).await.expect("the server reads");
    }

    /// Asks, without waiting for the answer.
    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        if let Some(meta) = &self.meta {
            for (name, value) in meta.as_object().expect("an object") {
                params["_meta"][name] = value.clone();
            }
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// The next message, whatever it is.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self
            .lines
            .next_line()
            .await
            .expect("the server writes lines")
            .expect("the server is there");
        serde_json::from_str(&line).expect("a line is a message")
    }

    /// The answer to a request. What the server asks meanwhile is answered.
    pub(crate) async fn end(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
            self.heard.push(message.clone());
            if message.get("method").is_some()
                && let Some(asked) = message.get("id")
                && let Some(result) = (self.person)(&message)
            {
                let answer = json!({"jsonrpc": "2.0", "id": asked, "result": result});
                self.send(&answer).await;
            }
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.end(id).await
    }

    /// The result of a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self
            .request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Goes away, and waits until the server has ended.
    pub(crate) async fn leave(mut self) -> Result<(), ServeError> {
        self.write.shutdown().await.expect("it was open");
        drop((self.lines, self.write));
        self.server.await.expect("the server does not panic")
    }
}

/// What a model reads of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a result has a text")
}
