//! Servers outside, and a certificate authority for them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The requests that a server saw, each as its head and body.
pub(crate) type Seen = Arc<Mutex<Vec<String>>>;

/// An authority whose certificates the host trusts.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Ca {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Test authority");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// The server's side of TLS for names, with these protocols.
    pub(crate) fn acceptor(&self, names: &[&str], protocols: &[&str]) -> TlsAcceptor {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &self.issuer)
            .unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config =
            rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], private)
                .unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A server that sends back what it receives.
pub(crate) async fn echo(address: &str) {
    let listener = TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
}

/// What an HTTP server answers to a request: the extra header lines and the body.
pub(crate) type Answer = fn(&str) -> (String, String);

/// Answers with the request itself.
pub(crate) fn itself(request: &str) -> (String, String) {
    (String::new(), request.to_owned())
}

/// An HTTP/1 server over plain TCP.
pub(crate) async fn http(address: &str, answer: Answer) -> Seen {
    let listener = TcpListener::bind(address).await.unwrap();
    let seen = Seen::default();
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, log.clone(), answer));
        }
    });
    seen
}

/// An HTTP/1 server over TLS.
pub(crate) async fn https(address: &str, acceptor: TlsAcceptor, answer: Answer) -> Seen {
    let listener = TcpListener::bind(address).await.unwrap();
    let seen = Seen::default();
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, log) = (acceptor.clone(), log.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, log, answer).await;
                }
            });
        }
    });
    seen
}

/// Serves requests that follow one another, and understands no more of HTTP than it must: what it sees are the bytes.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, seen: Seen, answer: Answer) {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let mut request = String::from_utf8_lossy(&head).into_owned();
        let lower = request.to_ascii_lowercase();
        if lower.contains("transfer-encoding: chunked") {
            while !request.ends_with("\r\n0\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => request.push(byte as char),
                    Err(_) => return,
                }
            }
        } else if let Some((_, rest)) = lower.split_once("content-length: ") {
            let mut body = vec![0; rest.lines().next().unwrap().parse().unwrap()];
            stream.read_exact(&mut body).await.unwrap();
            request.push_str(&String::from_utf8_lossy(&body));
        }
        seen.lock().unwrap().push(request.clone());
        if lower.contains("upgrade: websocket") && !lower.starts_with("get /no ") {
            let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
            stream.write_all(switched.as_bytes()).await.unwrap();
            let (mut read, mut write) = tokio::io::split(stream);
            let _ = tokio::io::copy(&mut read, &mut write).await;
            let _ = write.shutdown().await;
            return;
        }
        let (headers, body) = answer(&request);
        let response = format!(
            "HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        // In small parts, so that what is replaced in a response is broken by them.
        for part in response.as_bytes().chunks(13) {
            if stream.write_all(part).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
    }
}

/// An HTTP/2 server over TLS, which answers with the headers and the body of the request.
pub(crate) async fn http2(address: &str, acceptor: TlsAcceptor) -> Seen {
    use http_body_util::{BodyExt as _, Full};
    let listener = TcpListener::bind(address).await.unwrap();
    let seen = Seen::default();
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, log) = (acceptor.clone(), log.clone());
            let service = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let log = log.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let mut text = format!("{} {}\n", parts.method, parts.uri);
                    for (name, value) in &parts.headers {
                        text.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())));
                    }
                    let body = body.collect().await?.to_bytes();
                    text.push_str(&String::from_utf8_lossy(&body));
                    log.lock().unwrap().push(text.clone());
                    Ok::<_, hyper::Error>(http::Response::new(Full::new(bytes::Bytes::from(text))))
                }
            });
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let io = hyper_util::rt::TokioIo::new(stream);
                    let mut builder = hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new());
                    builder.max_header_list_size(1 << 16);
                    let _ = builder.serve_connection(io, service).await;
                }
            });
        }
    });
    seen
}

/// The address of a server outside.
pub(crate) fn outside(address: &str) -> SocketAddr {
    address.parse().unwrap()
}
