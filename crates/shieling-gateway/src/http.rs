//! HTTP between the sandbox and a host: each request is checked, written anew, and its response passed back.
//!
//! Used on port 80, and over TLS for hosts that have a secret. Requests that two servers would read differently
//! (conflicting lengths, folded lines, bare line ends) are refused, and so are responses with two lengths; the connection is
//! then closed.
//! Follows no redirect and keeps no cookie.
//!
//! What the host of a secret sends back of it is replaced by the placeholder, plain or encoded: in headers, trailers,
//! bodies and the frames of a WebSocket. This does not hold against a host that gives a secret back in another form
//! (compressed without being asked, reversed, in pieces, as the name of a header): the user trusts the host of a secret
//! with it.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, SEC_WEBSOCKET_EXTENSIONS, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{Authority as UriAuthority, Scheme};
use http::{Extensions, HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1 as client_http1, http2 as client_http2};
use hyper::ext::ReasonPhrase;
use hyper::server::conn::{http1 as server_http1, http2 as server_http2};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::{LazyConfigAcceptor, TlsConnector};

use crate::ask::BoxFuture;
use crate::counted::{Counted, Prefixed};
use crate::framing::{Framed, Framing};
use crate::name::HostName;
use crate::outside::{OpenError, Target};
use crate::record::{End, Live};
use crate::redact::{RedactStream, Redactor};
use crate::relay::idle_for;
use crate::scope::Scope;
use crate::shared::Shared;

/// The longest head of a request or response, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The longest `Host` with its port, in bytes.
const HOST_BYTES_MAX: usize = 260;

/// The most header lines.
const HEADERS_MAX: usize = 200;

/// The windows of HTTP/2 towards the host, in bytes.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// How much of what a host sends after HTTP is read at once, in bytes.
const FRAMES_BUFFER_BYTES: usize = 16 * 1024;

/// How long what could be the beginning of a secret is held back when nothing follows.
const HELD_BACK_MAX: Duration = Duration::from_millis(100);

const H2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

type ResponseBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// A connection of the sandbox that carries HTTP.
struct Site {
    shared: Arc<Shared>,
    live: Arc<Live>,
    /// The name that the connection is for.
    name: HostName,
    port: u16,
    /// Over TLS, to a host that has a secret.
    secure: bool,
    /// In HTTP/2, on both sides.
    http2: bool,
    scope: Scope,
    upstream: AsyncMutex<Option<Upstream>>,
    /// Signalled when the host closes.
    closed: Arc<Notify>,
    /// Two streams that have left HTTP (WebSocket), to be passed on after it.
    upgraded: Mutex<Option<BoxFuture<'static, ()>>>,
    /// A WebSocket was asked for. The connection to the host leaves HTTP then, and has not ended.
    upgrading: AtomicBool,
    /// The connection to the host ended meanwhile.
    closed_early: AtomicBool,
    /// The framing of requests in HTTP/1.
    framing: Arc<Mutex<Framing>>,
    /// How many requests were taken.
    taken: AtomicU64,
}

/// A connection to a host.
struct Upstream {
    name: HostName,
    sender: Sender,
    /// The requests go to a proxy, in absolute form.
    forward_proxy: bool,
}

enum Sender {
    Http1(client_http1::SendRequest<Incoming>),
    Http2(client_http2::SendRequest<Incoming>),
}

/// A request that is answered by the gateway itself.
struct Refusal {
    status: StatusCode,
    text: String,
}

/// Serves plain HTTP/1 on a connection for `name`.
pub(crate) async fn plain(
    shared: Arc<Shared>,
    live: Arc<Live>,
    stream: Prefixed,
    name: HostName,
    port: u16,
    scope: Scope,
) -> End {
    let site = Site::new(shared, live, name, port, false, false, scope);
    site.serve_http1(stream).await
}

/// Ends TLS on a connection for `name`, which has a secret, and serves HTTP to the host over a verified connection.
pub(crate) async fn secure(
    shared: Arc<Shared>,
    live: Arc<Live>,
    stream: Prefixed,
    name: HostName,
    port: u16,
    scope: Scope,
) -> End {
    let Some(authority) = &shared.authority else {
        return End::Failed("there is no certificate authority".to_owned());
    };
    let wait = shared.limits.greeting;
    let acceptor = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream);
    let start = match timeout(wait, acceptor).await {
        Ok(Ok(start)) => start,
        Ok(Err(error)) => return End::Failed(error.to_string()),
        Err(_) => return End::Failed("no ClientHello in time".to_owned()),
    };
    // What the client can speak is offered to the host, and what the host chooses is spoken with the client.
    let offered: Vec<Vec<u8>> = match start.client_hello().alpn() {
        Some(protocols) => protocols
            .filter(|protocol| [H2, HTTP_1_1].contains(protocol))
            .map(<[u8]>::to_vec)
            .collect(),
        None => Vec::new(),
    };
    let (upstream, protocol) = match connect_secure(&shared, &live, &name, port, offered).await {
        Ok(connected) => connected,
        Err(end) => return end,
    };
    let config = match authority.server(&name, &protocol) {
        Ok(config) => config,
        Err(error) => return End::Failed(error),
    };
    let client = match timeout(wait, start.into_stream(config)).await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return End::Failed(format!("the program in the sandbox: {error}")),
        Err(_) => return End::Failed("no end of the TLS handshake in time".to_owned()),
    };
    let site = Site::new(shared, live, name.clone(), port, true, protocol == H2, scope);
    let sender = match site.sender(upstream).await {
        Ok(sender) => sender,
        Err(error) => return End::Failed(error.to_string()),
    };
    *site.upstream.lock().await = Some(Upstream {
        name,
        sender,
        forward_proxy: false,
    });
    if protocol == H2 {
        site.serve_http2(client).await
    } else {
        site.serve_http1(client).await
    }
}

type TlsStream = tokio_rustls::client::TlsStream<Counted>;

/// Connects to a host over TLS. Returns the stream and the protocol that the host chose.
async fn connect_secure(
    shared: &Arc<Shared>,
    live: &Arc<Live>,
    name: &HostName,
    port: u16,
    offered: Vec<Vec<u8>>,
) -> Result<(TlsStream, Vec<u8>), End> {
    let target = Target::Name(name.clone());
    let opened = shared
        .outside
        .open(&target, port, &shared.permit, false)
        .await
        .map_err(|error| ended(shared, name, port, error))?;
    live.set_address(opened.address);
    let authority = shared
        .authority
        .as_ref()
        .ok_or_else(|| End::Failed("there is no certificate authority".to_owned()))?;
    let server = ServerName::try_from(name.to_string()).map_err(|error| End::Failed(error.to_string()))?;
    let connector = TlsConnector::from(authority.client());
    let stream = Counted {
        stream: opened.stream,
        live: Arc::clone(live),
    };
    let connecting = connector.with_alpn(offered).connect(server, stream);
    let stream = match timeout(shared.limits.connect, connecting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(End::Unreachable(format!("TLS with `{name}`: {error}"))),
        Err(_) => {
            return Err(End::Unreachable(format!(
                "no end of the TLS handshake with `{name}` in time"
            )));
        }
    };
    let protocol = stream.get_ref().1.alpn_protocol().unwrap_or_default().to_vec();
    Ok((stream, protocol))
}

/// The end of a connection that could not be made. A refusal is recorded.
pub(crate) fn ended(shared: &Shared, name: &HostName, port: u16, error: OpenError) -> End {
    match error {
        OpenError::Unresolved(text) => End::Unresolved(text),
        OpenError::Unreachable(text) => End::Unreachable(text),
        OpenError::Refused { because, instead } => {
            shared.deny(name.to_string(), Some(port), because, instead);
            End::Refused
        }
    }
}

impl Site {
    fn new(
        shared: Arc<Shared>,
        live: Arc<Live>,
        name: HostName,
        port: u16,
        secure: bool,
        http2: bool,
        scope: Scope,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            live,
            name,
            port,
            secure,
            http2,
            scope,
            upstream: AsyncMutex::new(None),
            closed: Arc::new(Notify::new()),
            upgraded: Mutex::new(None),
            upgrading: AtomicBool::new(false),
            closed_early: AtomicBool::new(false),
            framing: Arc::new(Mutex::new(Framing::new())),
            taken: AtomicU64::new(0),
        })
    }

    async fn serve_http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self: Arc<Self>, stream: S) -> End {
        let service = {
            let site = Arc::clone(&self);
            service_fn(move |request| Arc::clone(&site).respond(request))
        };
        let framed = Framed {
            stream,
            framing: Arc::clone(&self.framing),
        };
        let connection = server_http1::Builder::new()
            .preserve_header_case(true)
            .half_close(true)
            .auto_date_header(false)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(framed), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let mut idle = std::pin::pin!(idle_for(&self.live, self.shared.limits.idle));
        let mut host_closed = false;
        let result = loop {
            tokio::select! {
                result = connection.as_mut() => break result,
                // Plain HTTP connects again for the next request.
                () = self.closed.notified(), if self.secure && !host_closed => {
                    // It tells the client to close, which an answer that opens a WebSocket must not.
                    if self.upgrading.load(Ordering::Acquire) {
                        self.closed_early.store(true, Ordering::Release);
                    } else {
                        host_closed = true;
                        connection.as_mut().graceful_shutdown();
                    }
                }
                () = idle.as_mut() => return End::Idle,
            }
        };
        let upgraded = self.upgraded.lock().expect("no panic while held").take();
        if let Some(upgraded) = upgraded {
            tokio::select! {
                () = upgraded => {}
                () = idle => return End::Idle,
            }
        }
        self.ended(result)
    }

    async fn serve_http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self: Arc<Self>, stream: S) -> End {
        let service = {
            let site = Arc::clone(&self);
            service_fn(move |request| Arc::clone(&site).respond(request))
        };
        let connection = server_http2::Builder::new(self.scope.clone())
            .auto_date_header(false)
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let mut idle = std::pin::pin!(idle_for(&self.live, self.shared.limits.idle));
        let mut host_closed = false;
        let result = loop {
            tokio::select! {
                result = connection.as_mut() => break result,
                () = self.closed.notified(), if !host_closed => {
                    host_closed = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = idle.as_mut() => return End::Idle,
            }
        };
        self.ended(result)
    }

    /// The end of the connection.
    fn ended(&self, result: hyper::Result<()>) -> End {
        match (self.live.failure(), result) {
            (Some(end), _) => end,
            (None, Err(error)) if error.is_parse_too_large() => End::Failed(head_too_large()),
            // The library's words speak of its caller.
            (None, Err(error)) if error.is_user() => End::Failed("the host broke off its response".to_owned()),
            (None, Err(error)) => End::Failed(error.to_string()),
            (None, Ok(())) if self.shared.recorder.exhausted() => End::ByteLimit,
            (None, Ok(())) => End::Closed,
        }
    }

    /// Answers a request.
    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<ResponseBody>, Infallible> {
        let version = request.version();
        Ok(match self.forward(request).await {
            Ok(response) => response,
            Err(refusal) => {
                let body = Full::new(Bytes::from(format!("shieling: {}\n", refusal.text)));
                let mut response = Response::new(body.map_err(|never: Infallible| match never {}).boxed_unsync());
                *response.status_mut() = refusal.status;
                if version < Version::HTTP_2 {
                    response
                        .headers_mut()
                        .insert(CONNECTION, HeaderValue::from_static("close"));
                }
                response
            }
        })
    }

    /// Checks a request, sends it to the host and returns the response.
    async fn forward(&self, mut request: Request<Incoming>) -> Result<Response<ResponseBody>, Refusal> {
        let name = self.check(&request)?;
        let redactor = self.redactor(&name);
        if redactor.is_some() && *request.method() == Method::TRACE {
            self.deny_request(
                None,
                "the answer to `TRACE` would repeat the credentials that are added to it",
            );
            return Err(Refusal {
                status: StatusCode::METHOD_NOT_ALLOWED,
                text: "`TRACE` is not passed on: its answer would repeat the credentials that the gateway adds to it; \
                       use another method"
                    .to_owned(),
            });
        }
        let number = self.live.request(request.method().as_str(), request.uri().path());
        let client_upgrade = take_upgrade(&mut request);
        self.upgrading.store(client_upgrade.is_some(), Ordering::Release);
        self.prepare(&mut request, &name, client_upgrade.is_some());
        if redactor.is_some() {
            let headers = request.headers_mut();
            // A compressed response could not be searched for the credentials, nor could compressed frames. A host that
            // was told a secret once can give it back later.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            headers.remove(SEC_WEBSOCKET_EXTENSIONS);
        }
        let mut response = self.send(request, &name).await?;
        self.live.response(number, response.status().as_u16());
        let headers = response.headers();
        if headers.contains_key(CONTENT_LENGTH) && headers.contains_key(TRANSFER_ENCODING) {
            return Err(Refusal {
                status: StatusCode::BAD_GATEWAY,
                text: format!("the response of `{name}` has `Content-Length` and `Transfer-Encoding`"),
            });
        }
        if let Some(redactor) = redactor {
            redact_headers(redactor, response.headers_mut());
            redact_reason(redactor, response.extensions_mut());
        }
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return self.upgrade(client_upgrade, response, redactor);
        }
        self.upgrading.store(false, Ordering::Release);
        if self.closed_early.swap(false, Ordering::AcqRel) {
            self.closed.notify_one();
        }
        strip_hop_by_hop(response.headers_mut(), false);
        let (parts, body) = response.into_parts();
        let Some(redactor) = redactor else {
            return Ok(Response::from_parts(parts, body.boxed_unsync()));
        };
        let body = Redacted {
            inner: body,
            stream: match self.secure {
                true => redactor.stream(),
                false => redactor.uniform_stream(),
            },
            held: 0,
            waiting: None,
            trailers: None,
            ended: false,
        };
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }

    /// Removes from responses the credentials that the gateway adds to requests for a host; none if it adds none.
    fn redactor(&self, name: &HostName) -> Option<&Redactor> {
        let redactor = match self.secure {
            true => &self.shared.redactor,
            false => self.shared.outside.proxy_redactor(name)?,
        };
        (!redactor.is_empty()).then_some(redactor)
    }

    /// Checks that a request is for a host that this connection may reach, in a form that has one reading. Returns the
    /// host.
    fn check(&self, request: &Request<Incoming>) -> Result<HostName, Refusal> {
        let refuse = |status: StatusCode, text: &str| Refusal {
            status,
            text: text.to_owned(),
        };
        let malformed = |fault: &str| {
            self.deny_request(None, &format!("an invalid request: {fault}"));
            refuse(StatusCode::BAD_REQUEST, fault)
        };
        let number = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        if request.version() < Version::HTTP_2
            && let Err(fault) = self.framing.lock().expect("no panic while held").check(number)
        {
            return Err(malformed(fault));
        }
        let uri = request.uri();
        if *request.method() == Method::CONNECT {
            self.deny_request(uri.authority(), "`CONNECT` asks for a connection to another host");
            return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, "`CONNECT` is not passed on"));
        }
        let mut hosts = request.headers().get_all(HOST).iter();
        let named = if request.version() == Version::HTTP_2 {
            let authority = uri.authority().map(UriAuthority::as_str);
            if hosts
                .next()
                .is_some_and(|host| Some(host.as_bytes()) != authority.map(str::as_bytes))
                || hosts.next().is_some()
            {
                return Err(malformed("`Host` and `:authority` differ"));
            }
            authority
        } else {
            if uri.scheme().is_some() || uri.authority().is_some() {
                self.deny_request(uri.authority(), "a request in absolute form is for a proxy");
                return Err(refuse(
                    StatusCode::BAD_REQUEST,
                    "a request in absolute form is for a proxy, and this is none",
                ));
            }
            let (first, second) = (hosts.next(), hosts.next());
            if second.is_some() {
                return Err(malformed("there are two `Host` headers"));
            }
            first.and_then(|host| host.to_str().ok())
        };
        // A longer one is no host, and would be a long line in the record.
        let Some(named) = named.filter(|named| named.len() <= HOST_BYTES_MAX) else {
            return Err(malformed("the request names no host that could be one"));
        };
        let (host, port) = split_port(named).ok_or_else(|| malformed("`Host` is not well-formed"))?;
        let default_port = if self.secure { 443 } else { 80 };
        let name = HostName::parse(host).ok();
        // Many clients leave the port out. The name then is the one that this connection is for.
        let port = match port {
            None if name.as_ref() == Some(&self.name) => self.port,
            port => port.unwrap_or(default_port),
        };
        let Some(name) = name.filter(|_| port == self.port) else {
            let own = format!("{}:{}", self.name, self.port);
            let because = format!("a connection to `{own}` carries a request for `{host}:{port}`");
            let instead = format!("send `{own}` as `Host`, or open a connection of its own for the other host");
            let text = format!("{because}; {instead}");
            self.shared.deny(host.to_owned(), Some(port), because, Some(instead));
            return Err(refuse(StatusCode::FORBIDDEN, &text));
        };
        if name == self.name {
            return Ok(name);
        }
        let allowed = self.shared.allows(&name, self.port);
        if self.secure || !allowed {
            let because = format!("a connection to `{}` carries a request for `{name}`", self.name);
            // Over TLS, an allowed host has a connection of its own: this status has clients make it.
            let status = if allowed {
                StatusCode::MISDIRECTED_REQUEST
            } else {
                StatusCode::FORBIDDEN
            };
            if !allowed {
                self.shared.deny_other(&name, self.port, because.clone());
            }
            return Err(refuse(status, &because));
        }
        Ok(name)
    }

    /// Records a request that was refused for its form, under the host that it names, or else that of the connection.
    fn deny_request(&self, named: Option<&UriAuthority>, because: &str) {
        let host = named.map_or(self.name.as_str(), UriAuthority::host);
        let port = named.and_then(UriAuthority::port_u16).unwrap_or(self.port);
        let host: String = host.chars().take(256).collect();
        self.shared.deny(host, Some(port), because.to_owned(), None);
    }

    /// Makes a request ready for the host, with its secrets.
    fn prepare(&self, request: &mut Request<Incoming>, name: &HostName, upgrade: bool) {
        strip_hop_by_hop(request.headers_mut(), upgrade);
        // The gateway's server side has answered it.
        request.headers_mut().remove(EXPECT);
        if self.secure {
            self.shared.vault.fill(name, self.port, request.headers_mut());
        }
    }

    /// Sends a request to the host, connecting where there is no connection. Once more, if the host had closed a kept
    /// connection before it took the request.
    async fn send(&self, mut request: Request<Incoming>, name: &HostName) -> Result<Response<Incoming>, Refusal> {
        let bad_gateway = |text: String| Refusal {
            status: StatusCode::BAD_GATEWAY,
            text,
        };
        for attempt in 0..2 {
            let mut upstream = self.upstream.lock().await;
            let usable = match &mut *upstream {
                Some(Upstream {
                    name: connected,
                    sender,
                    ..
                }) if connected == name => match sender {
                    Sender::Http1(sender) => sender.ready().await.is_ok(),
                    Sender::Http2(sender) => sender.ready().await.is_ok(),
                },
                _ => false,
            };
            if !usable {
                *upstream = Some(self.connect(name).await?);
            }
            let Some(Upstream {
                sender, forward_proxy, ..
            }) = &mut *upstream
            else {
                return Err(bad_gateway("there is no connection to the host".to_owned()));
            };
            let sent = match sender {
                Sender::Http1(sender) => {
                    if *forward_proxy {
                        self.to_proxy(&mut request, name);
                    }
                    *request.version_mut() = Version::HTTP_11;
                    let sending = sender.try_send_request(request);
                    drop(upstream);
                    sending.await
                }
                Sender::Http2(sender) => {
                    let mut sender = sender.clone();
                    drop(upstream);
                    sender.try_send_request(request).await
                }
            };
            let mut error = match sent {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if attempt == 0 => request = unsent,
                _ => {
                    let error = error.into_error();
                    let why = match error.is_parse_too_large() {
                        true => head_too_large(),
                        false => error.to_string(),
                    };
                    return Err(bad_gateway(format!("`{name}` failed: {why}")));
                }
            }
        }
        Err(bad_gateway(format!("`{name}` closes each connection")))
    }

    /// Connects to a host.
    async fn connect(&self, name: &HostName) -> Result<Upstream, Refusal> {
        let failed = |end: End| {
            let (status, text) = match &end {
                End::Refused => (StatusCode::FORBIDDEN, format!("the addresses of `{name}` are refused")),
                End::Unresolved(text) => (StatusCode::BAD_GATEWAY, format!("`{name}` is not resolved: {text}")),
                End::Unreachable(text) => (StatusCode::BAD_GATEWAY, format!("`{name}` is not reached: {text}")),
                _ => (StatusCode::BAD_GATEWAY, format!("`{name}` failed")),
            };
            self.live.set_failure(Some(end));
            Refusal { status, text }
        };
        let (sender, forward_proxy) = if self.secure {
            // A request in one version of HTTP is never written in the other one.
            let protocol = if self.http2 { H2 } else { HTTP_1_1 };
            let connected = connect_secure(&self.shared, &self.live, name, self.port, vec![protocol.to_vec()]).await;
            let (stream, chosen) = connected.map_err(failed)?;
            if self.http2 && chosen != H2 {
                return Err(failed(End::Failed(format!("`{name}` speaks HTTP/2 no more"))));
            }
            (self.sender(stream).await, false)
        } else {
            let target = Target::Name(name.clone());
            let opened = self
                .shared
                .outside
                .open(&target, self.port, &self.shared.permit, true)
                .await;
            let opened = opened.map_err(|error| failed(ended(&self.shared, name, self.port, error)))?;
            self.live.set_address(opened.address);
            let stream = Counted {
                stream: opened.stream,
                live: Arc::clone(&self.live),
            };
            (self.sender(stream).await, opened.forward_proxy)
        };
        let sender = sender.map_err(|error| failed(End::Unreachable(error.to_string())))?;
        // The host answers after all.
        self.live.set_failure(None);
        Ok(Upstream {
            name: name.clone(),
            sender,
            forward_proxy,
        })
    }

    /// Begins HTTP on a stream to a host.
    async fn sender<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: S) -> hyper::Result<Sender> {
        let closed = Arc::clone(&self.closed);
        if self.http2 {
            let (sender, connection) = client_http2::Builder::new(self.scope.clone())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_header_list_size(HEAD_BYTES_MAX as u32)
                .handshake(TokioIo::new(stream))
                .await?;
            self.scope.spawn(async move {
                let _ = connection.await;
                closed.notify_one();
            });
            return Ok(Sender::Http2(sender));
        }
        let (sender, connection) = client_http1::Builder::new()
            .preserve_header_case(true)
            .max_headers(HEADERS_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .handshake(TokioIo::new(stream))
            .await?;
        self.scope.spawn(async move {
            let _ = connection.with_upgrades().await;
            closed.notify_one();
        });
        Ok(Sender::Http1(sender))
    }

    /// Writes a request in absolute form, with the credentials of the proxy.
    fn to_proxy(&self, request: &mut Request<Incoming>, name: &HostName) {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(Scheme::HTTP);
        let authority = if self.port == 80 {
            name.to_string()
        } else {
            format!("{name}:{}", self.port)
        };
        parts.authority = authority.parse().ok();
        if parts.path_and_query.as_ref().is_none_or(|path| path == "*") {
            parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        }
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        if let Some(value) = self
            .shared
            .outside
            .proxy_authorization()
            .and_then(|value| HeaderValue::from_str(value).ok())
        {
            request.headers_mut().insert(PROXY_AUTHORIZATION, value);
        }
    }

    /// Passes on two streams that leave HTTP.
    fn upgrade(
        &self,
        client: Option<OnUpgrade>,
        mut response: Response<Incoming>,
        redactor: Option<&Redactor>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let Some(client) = client else {
            return Err(Refusal {
                status: StatusCode::BAD_GATEWAY,
                text: "the host left HTTP without being asked".to_owned(),
            });
        };
        self.framing.lock().expect("no panic while held").stop();
        let host = hyper::upgrade::on(&mut response);
        let redacted = redactor.map(|redactor| match self.secure {
            true => redactor.terminal_stream(),
            false => redactor.uniform_stream(),
        });
        let passing = async move {
            let (Ok(client), Ok(host)) = tokio::join!(client, host) else {
                return;
            };
            let (mut client, mut host) = (TokioIo::new(client), TokioIo::new(host));
            let Some(redacted) = redacted else {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut host).await;
                return;
            };
            let (mut from_client, mut to_client) = tokio::io::split(client);
            let (mut from_host, mut to_host) = tokio::io::split(host);
            let sending = async {
                tokio::io::copy(&mut from_client, &mut to_host).await?;
                to_host.shutdown().await
            };
            let _ = tokio::try_join!(sending, pass_redacted(&mut from_host, &mut to_client, redacted));
        };
        *self.upgraded.lock().expect("no panic while held") = Some(Box::pin(passing));
        let (parts, body) = response.into_parts();
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }
}

/// The limits of heads, of which one was exceeded.
fn head_too_large() -> String {
    let most = HEAD_BYTES_MAX / 1024;
    format!("the head of a message has at most {HEADERS_MAX} lines and {most} KiB here, and this one has more")
}

/// Replaces secrets in the headers or trailers of a response.
fn redact_headers(redactor: &Redactor, headers: &mut HeaderMap) {
    for value in headers.values_mut() {
        if let std::borrow::Cow::Owned(redacted) = redactor.redact(value.as_bytes())
            && let Ok(redacted) = HeaderValue::from_bytes(&redacted)
        {
            *value = redacted;
        }
    }
}

/// Replaces secrets in the words beside the status of a response.
fn redact_reason(redactor: &Redactor, extensions: &mut Extensions) {
    if let Some(reason) = extensions.remove::<ReasonPhrase>()
        && let Ok(reason) = ReasonPhrase::try_from(redactor.redact(reason.as_bytes()).into_owned())
    {
        extensions.insert(reason);
    }
}

/// Passes on what a host sends after HTTP, without the secrets. What could be the beginning of one is held back for a
/// moment, unless it is short, and passed on if nothing follows.
async fn pass_redacted(
    host: &mut (impl AsyncRead + Unpin),
    client: &mut (impl AsyncWrite + Unpin),
    mut stream: RedactStream,
) -> io::Result<()> {
    let mut buffer = vec![0; FRAMES_BUFFER_BYTES];
    let ended = loop {
        let reading = host.read(&mut buffer);
        let read = if stream.is_holding() {
            timeout(HELD_BACK_MAX, reading).await
        } else {
            Ok(reading.await)
        };
        let text = match read {
            Ok(Ok(0)) => break Ok(()),
            Ok(Ok(length)) => stream.push(&buffer[..length]),
            // Many end without the word of TLS for it.
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => break Ok(()),
            Ok(Err(error)) => break Err(error),
            Err(_) => stream.release(),
        };
        client.write_all(&text).await?;
        client.flush().await?;
    };
    client.write_all(&stream.finish()).await?;
    client.flush().await?;
    ended?;
    client.shutdown().await
}

/// Takes the way out of HTTP of a request for a WebSocket. Other protocols, such as HTTP/2 without TLS, could carry
/// requests that nobody checks; their requests go on without the upgrade.
fn take_upgrade(request: &mut Request<Incoming>) -> Option<OnUpgrade> {
    let mut protocols = request.headers().get_all(UPGRADE).iter();
    let web_socket = protocols
        .next()
        .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"));
    (request.version() == Version::HTTP_11 && web_socket && protocols.next().is_none())
        .then(|| hyper::upgrade::on(request))
}

/// Removes the headers that are about one connection (RFC 9110, 7.6.1).
fn strip_hop_by_hop(headers: &mut HeaderMap, upgrade: bool) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // Without its host or length, a request would be another one.
        .filter(|name| ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE].contains(name))
        .collect();
    for name in listed {
        headers.remove(name);
    }
    let trailers = headers
        .get(TE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"));
    for name in [
        CONNECTION,
        TE,
        TRANSFER_ENCODING,
        PROXY_AUTHORIZATION,
        PROXY_AUTHENTICATE,
    ] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection", "http2-settings"] {
        headers.remove(name);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    } else {
        headers.remove(UPGRADE);
    }
}

/// Splits `NAME[:PORT]`.
fn split_port(host: &str) -> Option<(&str, Option<u16>)> {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.contains(':') => {
            Some((name, Some(port.parse().ok()?)))
        }
        Some(_) => None,
        None => Some((host, None)),
    }
}

/// A response in which secrets are replaced by their placeholders. Its length stays the same.
struct Redacted {
    inner: Incoming,
    stream: RedactStream,
    /// How many bytes are held back.
    held: u64,
    /// Until when, while the host sends nothing.
    waiting: Option<Pin<Box<Sleep>>>,
    trailers: Option<HeaderMap>,
    ended: bool,
}

impl Body for Redacted {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            if self.ended {
                return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            }
            let frame = match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Ready(frame) => frame,
                // The host may wait for an answer to these bytes.
                Poll::Pending if self.stream.is_holding() => {
                    let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(HELD_BACK_MAX)));
                    std::task::ready!(waiting.as_mut().poll(context));
                    self.waiting = None;
                    self.held = 0;
                    return Poll::Ready(Some(Ok(Frame::data(self.stream.release().into()))));
                }
                Poll::Pending => return Poll::Pending,
            };
            self.waiting = None;
            let text = match frame {
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        let text = self.stream.push(&data);
                        self.held = self.held + data.len() as u64 - text.len() as u64;
                        text
                    }
                    Err(frame) => {
                        let mut trailers = frame.into_trailers().ok();
                        if let Some(trailers) = &mut trailers {
                            redact_headers(self.stream.redactor(), trailers);
                        }
                        self.trailers = trailers;
                        self.ended = true;
                        self.stream.finish()
                    }
                },
                None => {
                    self.ended = true;
                    self.stream.finish()
                }
            };
            if self.ended {
                self.held = 0;
            }
            if !text.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(text.into()))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        (self.ended && self.trailers.is_none()) || (self.held == 0 && self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + self.held);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + self.held);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_split_from_its_port_in_one_way() {
        assert_eq!(split_port("a.org"), Some(("a.org", None)));
        assert_eq!(split_port("a.org:80"), Some(("a.org", Some(80))));
        assert_eq!(split_port("a.org:80:80"), None);
        assert_eq!(split_port("a.org:+80"), None);
        assert_eq!(split_port("a.org:65536"), None);
        assert_eq!(split_port("[::1]:80"), None);
        assert_eq!(
            split_port("user@a.org"),
            Some(("user@a.org", None)),
            "which is no host name"
        );
    }

    #[test]
    fn headers_of_one_connection_are_not_passed_on_and_those_of_the_request_are() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "x-private, host, close"),
            ("x-private", "1"),
            ("host", "a.org"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
            ("proxy-authorization", "x"),
            ("te", "trailers"),
            ("accept", "*/*"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip_hop_by_hop(&mut headers, false);
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "host", "te"]);
    }
}
