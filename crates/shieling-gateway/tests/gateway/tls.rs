//! Connections with TLS that are passed on as they are: the name they carry is checked.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use shieling_gateway::End;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::gateway::fixture::{Fixture, address};
use crate::gateway::servers::{self, Ca, Seen, itself};

/// A client that trusts these certificates (PEM) and speaks these protocols.
pub(crate) fn connector(pem: &str, protocols: &[&str]) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

/// Begins TLS on a connection, asking for a name.
pub(crate) async fn begin(
    connector: &TlsConnector,
    stream: TcpStream,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    connector
        .connect(ServerName::try_from(name.to_owned()).unwrap(), stream)
        .await
}

/// Sends a request and returns the response.
pub(crate) async fn request(mut stream: TlsStream<TcpStream>, text: &str) -> String {
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        answer.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.lines().next()?.parse::<usize>().ok());
            if length.is_some_and(|length| body.len() >= length) {
                break;
            }
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// A gateway to one of two hosts on one address.
async fn cdn(rules: &[&str]) -> (Fixture, Seen, TlsConnector) {
    let fixture = Fixture::new(rules);
    let ca = Ca::new();
    for name in ["good.example", "evil.example", "other.example"] {
        fixture.table.set(name, "93.184.0.10");
    }
    let seen = servers::https(
        "93.184.0.10:443",
        ca.acceptor(&["good.example", "evil.example", "other.example"], &[]),
        itself,
    )
    .await;
    (fixture, seen, connector(&ca.pem, &[]))
}

space_tests! {
    async fn tls_to_an_allowed_name_passes_untouched() {
        let (fixture, seen, connector) = cdn(&["good.example"]).await;
        let stream = begin(&connector, fixture.connect("good.example", 443).await, "good.example").await.unwrap();
        let answer = request(stream, "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(seen.lock().unwrap().len(), 1);
        let report = fixture.reported(|report| report.connections[0].end != End::Open).await;
        assert!(report.connections[0].requests.is_empty() && report.connections[0].bytes_out > 200);
        assert!(fixture.gateway.trust().is_none());
    }

    async fn another_name_of_the_same_network_is_refused_with_an_alert() {
        let (fixture, _, connector) = cdn(&["good.example"]).await;
        let error = begin(&connector, fixture.connect("good.example", 443).await, "evil.example").await.unwrap_err();
        assert!(error.to_string().contains("UnrecognisedName"), "{error}");
        let because = fixture.denied("evil.example", Some(443)).await;
        assert_eq!(because, "a connection to `good.example` asks for `evil.example` (SNI)");
        let report = fixture.reported(|report| report.connections[0].end == End::Refused).await;
        assert_eq!(report.denied[0].instead.as_deref(), Some("`--allow-host evil.example`"));
        assert_eq!(fixture.table.asked(), Vec::<String>::new(), "nothing was connected to");
    }

    async fn a_name_that_is_allowed_itself_is_reached_as_itself() {
        let (fixture, seen, connector) = cdn(&["good.example", "other.example"]).await;
        let stream = begin(&connector, fixture.connect("good.example", 443).await, "other.example").await.unwrap();
        request(stream, "GET / HTTP/1.1\r\nHost: other.example\r\n\r\n").await;
        assert_eq!(seen.lock().unwrap().len(), 1);
        assert_eq!(fixture.table.asked(), ["other.example"]);
        assert_eq!(fixture.report().connections[0].host, "other.example");
    }

    async fn what_names_no_host_is_refused_on_port_443() {
        let (fixture, seen, connector) = cdn(&["good.example"]).await;
        // An address as the server's name sends no SNI.
        begin(&connector, fixture.connect("good.example", 443).await, "93.184.0.10").await.unwrap_err();
        assert!(fixture.denied("good.example", Some(443)).await.contains("names no host"));
        let answer = fixture.exchange("good.example", 443, b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n").await;
        assert!(!answer.contains("HTTP"), "{answer}");
        fixture.reported(|report| report.denied.iter().any(|denied| denied.because.contains("is not TLS"))).await;
        assert!(seen.lock().unwrap().is_empty());
    }

    async fn ssh_passes_on_port_443_since_it_carries_no_name() {
        let fixture = Fixture::new(&["ssh.example:443"]);
        fixture.table.set("ssh.example", "93.184.0.10");
        servers::echo("93.184.0.10:443").await;
        assert_eq!(fixture.exchange("ssh.example", 443, b"SSH-2.0-x\r\nhello").await, "SSH-2.0-x\r\nhello");
    }

    async fn a_hello_in_single_bytes_is_read_and_passed_on_whole() {
        let (_fixture, seen, connector) = cdn(&["good.example"]).await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:9000").await.unwrap();
        let to = address("good.example").await;
        tokio::spawn(async move {
            let (mut from, _) = listener.accept().await.unwrap();
            let mut to = TcpStream::connect((to, 443)).await.unwrap();
            to.set_nodelay(true).unwrap();
            for _ in 0..200 {
                to.write_u8(from.read_u8().await.unwrap()).await.unwrap();
            }
            tokio::io::copy_bidirectional(&mut from, &mut to).await
        });
        let stream = begin(&connector, TcpStream::connect("127.0.0.1:9000").await.unwrap(), "good.example").await.unwrap();
        assert!(request(stream, "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n").await.starts_with("HTTP/1.1 200"));
        assert_eq!(seen.lock().unwrap().len(), 1);
    }
}
