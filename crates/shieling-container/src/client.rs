//! The engines' HTTP interface over a socket, of which Docker and Podman speak the same version. Every request has
//! a bound in time and in bytes; knows nothing of what is asked.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::handshake;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::EngineError;

/// The version that both engines have had since 2020, and that Podman goes no further than.
const VERSION: &str = "v1.40";
/// How long making or starting a container may take by default.
pub(crate) const SLOW: Duration = Duration::from_secs(60);
/// How long removing a container may take at most: its caller is about to end, and the next start removes what is left.
const REMOVING: Duration = Duration::from_secs(20);
/// How long a connection may take.
const CONNECTING: Duration = Duration::from_secs(5);
/// The longest answer.
const LARGEST: usize = 8 * 1024 * 1024;
/// How much of an engine's words is passed on.
const WORDS: usize = 2_000;

/// Where an engine listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A socket of this host.
    Unix(PathBuf),
    /// A host and a port, without encryption.
    Tcp(String),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

impl Endpoint {
    /// Reads an address as `DOCKER_HOST` has it.
    ///
    /// # Errors
    /// What is not supported of it, in half a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("unix", _)) => Err("the path of its socket is not absolute".to_owned()),
            Some(("tcp" | "http", address)) => Ok(Self::Tcp(address.trim_end_matches('/').to_owned())),
            Some((scheme @ ("ssh" | "https" | "npipe" | "fd"), _)) => Err(format!(
                "engines are not reached by `{scheme}://`; forward its socket to this host and name it with `unix://`"
            )),
            Some((scheme, _)) => Err(format!("`{scheme}://` is no way to reach an engine")),
            None => Err("it has no `unix://` or `tcp://` in front".to_owned()),
        }
    }
}

/// A stream in both directions.
trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// What came back for a request, before its body was read.
struct Answer {
    response: Response<Incoming>,
    // Reads for the response, as long as that is kept.
    connection: JoinSet<()>,
}

/// An engine, as an address that has answered. Clones name the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    endpoint: Endpoint,
    product: Product,
    slow: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Product {
    /// It has not answered yet.
    Unknown,
    Docker,
    Podman,
}

impl Engine {
    /// The engine at this address, if one answers within 5 seconds.
    ///
    /// # Errors
    /// [`EngineError`]: nothing is there, it does not answer, or it is something else.
    /// # Cancel safety
    /// Cancel safe.
    pub async fn at(endpoint: Endpoint) -> Result<Self, EngineError> {
        let mut engine = Self {
            endpoint,
            product: Product::Unknown,
            slow: SLOW,
        };
        let foreign = |why: String| EngineError::Foreign {
            endpoint: engine.endpoint.to_string(),
            why,
        };
        let answer = engine
            .send(Method::GET, "/_ping", None, "for a sign of life", CONNECTING, false)
            .await?;
        if answer.response.status() != StatusCode::OK {
            return Err(foreign(format!("it answers `{}`", answer.response.status())));
        }
        let headers = answer.response.headers();
        if !headers.contains_key("api-version") {
            return Err(foreign("it does not say which version it speaks".to_owned()));
        }
        engine.product = match headers.contains_key("libpod-api-version") {
            true => Product::Podman,
            false => Product::Docker,
        };
        Ok(engine)
    }

    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whether it is Podman.
    #[must_use]
    pub fn is_podman(&self) -> bool {
        self.product == Product::Podman
    }

    /// `docker` or `podman`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.product {
            Product::Unknown => "the engine",
            Product::Docker => "docker",
            Product::Podman => "podman",
        }
    }

    /// The same engine, which may take this long to make or start a container.
    pub(crate) fn within(self, slow: Duration) -> Self {
        Self { slow, ..self }
    }

    /// How long making or starting a container may take.
    pub(crate) fn slow(&self) -> Duration {
        self.slow
    }

    /// How long a request may take that the engine answers from memory.
    pub(crate) fn quick(&self) -> Duration {
        self.slow / 6
    }

    /// How long removing a container may take.
    pub(crate) fn removing(&self) -> Duration {
        self.slow.min(REMOVING)
    }

    /// Asks for a value.
    pub(crate) async fn get(&self, path: &str, what: &'static str) -> Result<Value, EngineError> {
        self.call(Method::GET, path, None, what, self.quick()).await
    }

    /// Sends a value, or nothing, and gives what comes back; null if that is nothing.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: Option<&Value>,
        what: &'static str,
        most: Duration,
    ) -> Result<Value, EngineError> {
        self.call(Method::POST, path, body, what, most).await
    }

    /// Removes something.
    pub(crate) async fn delete(&self, path: &str, what: &'static str, most: Duration) -> Result<(), EngineError> {
        self.call(Method::DELETE, path, None, what, most).await.map(drop)
    }

    /// Sends an archive.
    pub(crate) async fn put(&self, path: &str, body: Bytes, what: &'static str) -> Result<(), EngineError> {
        let sent = async {
            let answer = self.open(Method::PUT, path, ("application/x-tar", body), false).await?;
            self.whole(answer, what).await
        };
        self.in_time(sent, what, self.slow).await.map(drop)
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        what: &'static str,
        most: Duration,
    ) -> Result<Value, EngineError> {
        let called = async {
            let answer = self.ask(method, path, body, false).await?;
            self.whole(answer, what).await
        };
        let text = self.in_time(called, what, most).await?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&text).map_err(|error| self.foreign(error.to_string()))
    }

    /// Reads lines of JSON as they arrive, each within `between` of the one before.
    pub(crate) async fn lines(
        &self,
        path: &str,
        what: &'static str,
        between: Duration,
        mut each: impl FnMut(&Value),
    ) -> Result<(), EngineError> {
        let mut answer = self.send(Method::POST, path, None, what, between, false).await?;
        if !answer.response.status().is_success() {
            return self
                .in_time(self.whole(answer, what), what, self.quick())
                .await
                .map(drop);
        }
        let mut line = Vec::new();
        loop {
            let frame = self
                .in_time(async { Ok(answer.response.frame().await) }, what, between)
                .await?;
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|error| self.foreign(error.to_string()))?;
            let Ok(data) = frame.into_data() else { continue };
            for byte in data {
                if byte == b'\n' {
                    if let Ok(value) = serde_json::from_slice(&line) {
                        each(&value);
                    }
                    line.clear();
                } else if line.len() < LARGEST {
                    line.push(byte);
                }
            }
        }
        if let Ok(value) = serde_json::from_slice(&line) {
            each(&value);
        }
        drop(answer.connection);
        Ok(())
    }

    /// Turns a connection into the streams of what is named.
    pub(crate) async fn hijack(
        &self,
        path: &str,
        body: Option<&Value>,
        what: &'static str,
    ) -> Result<Hijacked, EngineError> {
        let mut answer = self.send(Method::POST, path, body, what, self.quick(), true).await?;
        let status = answer.response.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            if !status.is_success() {
                self.in_time(self.whole(answer, what), what, self.quick()).await?;
            }
            return Err(self.foreign(format!("it does not give its streams, but `{status}`")));
        }
        let upgraded = hyper::upgrade::on(&mut answer.response);
        let upgraded = self
            .in_time(
                async { upgraded.await.map_err(|error| self.foreign(error.to_string())) },
                what,
                self.quick(),
            )
            .await?;
        Ok(TokioIo::new(upgraded))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        what: &'static str,
        most: Duration,
        upgrade: bool,
    ) -> Result<Answer, EngineError> {
        self.in_time(self.ask(method, path, body, upgrade), what, most).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        upgrade: bool,
    ) -> Result<Answer, EngineError> {
        let body = body.map_or(Bytes::new(), |body| Bytes::from(body.to_string()));
        self.open(method, path, ("application/json", body), upgrade).await
    }

    async fn open(
        &self,
        method: Method,
        path: &str,
        (kind, body): (&str, Bytes),
        upgrade: bool,
    ) -> Result<Answer, EngineError> {
        let stream = self.in_time(self.connect(), "a connection", CONNECTING).await?;
        let (mut sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.foreign(error.to_string()))?;
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            // Its error is also that of the request.
            let _ = connection.with_upgrades().await;
        });
        let mut request = Request::builder()
            .method(method)
            .uri(if path == "/_ping" {
                path.to_owned()
            } else {
                format!("/{VERSION}{path}")
            })
            .header("host", "engine");
        if upgrade {
            request = request.header("connection", "Upgrade").header("upgrade", "tcp");
        }
        if !body.is_empty() {
            request = request.header("content-type", kind);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| self.foreign(error.to_string()))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| self.foreign(error.to_string()))?;
        Ok(Answer {
            response,
            connection: connections,
        })
    }

    async fn connect(&self) -> Result<Box<dyn Duplex>, EngineError> {
        let unreachable = |error: std::io::Error| EngineError::Unreachable {
            endpoint: self.endpoint.to_string(),
            why: match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such socket".to_owned(),
                std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
                std::io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
                _ => error.to_string(),
            },
        };
        Ok(match &self.endpoint {
            Endpoint::Unix(path) => Box::new(UnixStream::connect(path).await.map_err(unreachable)?),
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect(address).await.map_err(unreachable)?;
                stream.set_nodelay(true).map_err(unreachable)?;
                Box::new(stream)
            }
        })
    }

    /// The body of an answer, or its refusal.
    async fn whole(&self, answer: Answer, what: &'static str) -> Result<Bytes, EngineError> {
        let Answer { response, connection } = answer;
        let status = response.status();
        let body = Limited::new(response.into_body(), LARGEST)
            .collect()
            .await
            .map_err(|error| self.foreign(error.to_string()))?
            .to_bytes();
        drop(connection);
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            return Ok(body);
        }
        let said: Option<Value> = serde_json::from_slice(&body).ok();
        let said = said
            .as_ref()
            .and_then(|said| said["message"].as_str())
            .map(str::to_owned);
        let said = said.unwrap_or_else(|| String::from_utf8_lossy(&body).trim().to_owned());
        Err(EngineError::Refused {
            what,
            status: status.as_u16(),
            message: said.chars().take(WORDS).collect(),
        })
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, EngineError>>,
        what: &'static str,
        most: Duration,
    ) -> Result<T, EngineError> {
        timeout(most, work).await.unwrap_or_else(|_| {
            Err(EngineError::Silent {
                engine: self.name(),
                endpoint: self.endpoint.to_string(),
                what,
                after_ms: u64::try_from(most.as_millis()).unwrap_or(u64::MAX),
            })
        })
    }

    fn foreign(&self, why: String) -> EngineError {
        EngineError::Foreign {
            endpoint: self.endpoint.to_string(),
            why,
        }
    }
}

/// The streams of something in the engine, still in its frames.
pub(crate) type Hijacked = TokioIo<hyper::upgrade::Upgraded>;

/// A part of a path or a query, with everything escaped that could mean more.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
