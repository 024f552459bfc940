//! Secrets: where they are put in, and all the places where they are not.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use shieling_gateway::{End, Gateway, GatewayConfig, Roots, Secret};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use crate::gateway::fixture::{Fixture, config};
use crate::gateway::servers::{self, Answer, Ca, Seen, itself};
use crate::gateway::tls::{begin, connector, request};

const VALUE: &str = "ghp_R3alS3cr3t/With+Signs0123456789";

fn secret(spec: &str) -> Secret {
    Secret::new(spec.parse().unwrap(), VALUE).unwrap()
}

/// A gateway with a secret for `api.example`, its placeholder, and a client that trusts its authority.
struct Setup {
    fixture: Fixture,
    seen: Seen,
    placeholder: String,
}

fn gateway(ca: &Ca) -> Fixture {
    let fixture = Fixture::with(GatewayConfig {
        secrets: vec![secret("TOKEN@api.example")],
        roots: Roots::Pem(ca.pem.clone()),
        ..config(&["api.example", "other.example", "api.example:8443"])
    });
    fixture.table.set("api.example", "93.184.0.10");
    fixture.table.set("other.example", "93.184.0.11");
    fixture
}

impl Setup {
    async fn new(answer: Answer) -> Self {
        let ca = Ca::new();
        let fixture = gateway(&ca);
        let seen = servers::https("93.184.0.10:443", ca.acceptor(&["api.example"], &["http/1.1"]), answer).await;
        Self {
            placeholder: placeholder(&fixture.gateway),
            fixture,
            seen,
        }
    }

    fn connector(&self, protocols: &[&str]) -> TlsConnector {
        connector(self.fixture.gateway.trust().unwrap().authority_pem(), protocols)
    }

    /// Sends a request over TLS, of which `$` is the placeholder.
    async fn request(&self, text: &str) -> String {
        let stream = self.fixture.connect("api.example", 443).await;
        let stream = begin(&self.connector(&["h2", "http/1.1"]), stream, "api.example")
            .await
            .unwrap();
        request(stream, &text.replace('$', &self.placeholder)).await
    }

    fn seen(&self) -> String {
        self.seen.lock().unwrap().join("\n")
    }
}

fn placeholder(gateway: &Gateway) -> String {
    let variables = gateway.variables();
    assert_eq!(variables[0].0, "TOKEN");
    assert!(!variables[0].1.contains(VALUE));
    variables[0].1.clone()
}

space_tests! {
    async fn the_host_sees_the_secret_in_headers_and_the_sandbox_sees_the_placeholder() {
        let setup = Setup::new(itself).await;
        let answer = setup.request("GET /user HTTP/1.1\r\nHost: api.example\r\nAuthorization: token $\r\nX-Key: $\r\nAccept-Encoding: gzip\r\n\r\n").await;
        let seen = setup.seen();
        assert!(seen.contains(&format!("token {VALUE}\r\n")) && seen.contains(&format!("X-Key: {VALUE}\r\n")), "{seen}");
        assert!(!seen.contains(&setup.placeholder) && !seen.contains("gzip"), "{seen}");
        // The server sent its request back, in parts of 13 bytes.
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains(&format!("token {}\r\n", setup.placeholder)), "{answer}");
        assert!(!answer.contains(VALUE), "{answer}");
        let report = setup.fixture.reported(|report| report.connections[0].requests.iter().any(|request| request.status.is_some())).await;
        let request = &report.connections[0].requests[0];
        assert_eq!((request.method.as_str(), request.path.as_str(), request.status), ("GET", "/user", Some(200)));
        assert!(!format!("{report:?}").contains(VALUE));
    }

    async fn basic_credentials_are_decoded_filled_and_hidden_again() {
        let setup = Setup::new(itself).await;
        let basic = STANDARD.encode(format!("x-access-token:{}", setup.placeholder));
        let answer = setup.request(&format!("GET / HTTP/1.1\r\nHost: api.example\r\nAuthorization: Basic {basic}\r\n\r\n")).await;
        let real = STANDARD.encode(format!("x-access-token:{VALUE}"));
        assert!(setup.seen().contains(&real));
        assert!(!answer.contains(&real) && !answer.contains(&real[24..real.len() - 4]), "{answer}");
    }

    async fn urls_and_bodies_keep_the_placeholder() {
        let setup = Setup::new(itself).await;
        setup.request("GET /?token=$ HTTP/1.1\r\nHost: api.example\r\n\r\n").await;
        let length = setup.placeholder.len() + 2;
        setup.request(&format!("POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: {length}\r\n\r\n'$'")).await;
        let chunks = format!("{:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", 5, &setup.placeholder[..5], setup.placeholder.len() - 5, &setup.placeholder[5..]);
        setup.request(&format!("POST / HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")).await;
        let seen = setup.seen();
        assert_eq!(setup.seen.lock().unwrap().len(), 3);
        assert!(!seen.contains(VALUE) && seen.matches(&setup.placeholder).count() >= 2, "{seen}");
    }

    async fn another_host_sees_the_placeholder_and_its_tls_is_its_own() {
        let ca = Ca::new();
        let fixture = gateway(&ca);
        let placeholder = placeholder(&fixture.gateway);
        let seen = servers::https("93.184.0.11:443", ca.acceptor(&["other.example"], &[]), itself).await;
        let plain = servers::http("93.184.0.10:80", itself).await;
        // The certificate is the host's, not the gateway's.
        let stream = begin(&connector(&ca.pem, &[]), fixture.connect("other.example", 443).await, "other.example").await.unwrap();
        request(stream, &format!("GET / HTTP/1.1\r\nHost: other.example\r\nAuthorization: {placeholder}\r\n\r\n")).await;
        assert!(seen.lock().unwrap()[0].contains(&placeholder));
        // The secret's host without TLS does not get it either.
        fixture.exchange("api.example", 80, format!("GET / HTTP/1.1\r\nHost: api.example\r\nAuthorization: {placeholder}\r\n\r\n").as_bytes()).await;
        assert!(plain.lock().unwrap()[0].contains(&placeholder));
    }

    async fn a_request_for_another_host_within_the_secrets_connection_is_refused() {
        let setup = Setup::new(itself).await;
        let answer = setup.request("GET / HTTP/1.1\r\nHost: evil.example\r\nAuthorization: $\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        let answer = setup.request("GET / HTTP/1.1\r\nHost: other.example\r\nAuthorization: $\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
        assert_eq!(setup.seen(), "");
        setup.fixture.denied("evil.example", Some(443)).await;
    }

    async fn a_redirect_is_passed_on_and_carries_no_secret() {
        fn redirect(request: &str) -> (String, String) {
            let token = request.split("Authorization: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
            (format!("Location: https://evil.example/?t={}\r\nX-T: {token}\r\n", token.replace('/', "%2F").replace('+', "%2B")), String::new())
        }
        let setup = Setup::new(redirect).await;
        let answer = setup.request("GET / HTTP/1.1\r\nHost: api.example\r\nAuthorization: $\r\n\r\n").await;
        assert!(setup.seen().contains(VALUE));
        assert!(answer.contains("https://evil.example/?t=ghp_") && !answer.contains("R3alS3cr3t"), "{answer}");
        assert_eq!(setup.fixture.table.asked(), ["api.example"]);
    }

    async fn http2_is_spoken_with_secrets_also_in_continuations() {
        let ca = Ca::new();
        let fixture = gateway(&ca);
        let placeholder = placeholder(&fixture.gateway);
        let seen = servers::http2("93.184.0.10:443", ca.acceptor(&["api.example"], &["h2", "http/1.1"])).await;
        let connector = connector(fixture.gateway.trust().unwrap().authority_pem(), &["h2", "http/1.1"]);
        let stream = begin(&connector, fixture.connect("api.example", 443).await, "api.example").await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = |host: &str, path: &str| {
            http::Request::post(format!("https://{host}{path}"))
                .header("authorization", format!("Bearer {placeholder}"))
                // Fills more than a frame of 16 KiB.
                .header("x-long", "x".repeat(20_000))
                .header("x-last", &placeholder)
                .body(Full::new(Bytes::from(format!("body {placeholder}"))))
                .unwrap()
        };
        let response = sender.send_request(request("api.example", "/one")).await.unwrap();
        assert_eq!(response.status(), 200);
        let text = String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
        let saw = seen.lock().unwrap().remove(0);
        assert!(saw.contains(&format!("Bearer {VALUE}")) && saw.contains(&format!("x-last: {VALUE}")), "{}", &saw[..200]);
        assert!(saw.ends_with(&format!("body {placeholder}")));
        assert!(!text.contains(VALUE) && text.contains(&format!("Bearer {placeholder}")));
        let both = (0..20).map(|_| sender.clone()).map(|mut sender| {
            let request = request("api.example", "/many");
            tokio::spawn(async move { sender.send_request(request).await.unwrap().status().as_u16() })
        });
        for status in both.collect::<Vec<_>>() {
            assert_eq!(status.await.unwrap(), 200);
        }
        assert_eq!(seen.lock().unwrap().len(), 20);
        assert_eq!(sender.send_request(request("evil.example", "/")).await.unwrap().status(), 403);
        assert_eq!(sender.send_request(request("other.example", "/")).await.unwrap().status(), 421);
        assert_eq!(seen.lock().unwrap().len(), 20);
        let report = fixture.report();
        assert_eq!(report.connections[0].requests_total, 21);
    }

    async fn a_secret_for_another_port_is_put_in_there_alone() {
        let ca = Ca::new();
        let fixture = Fixture::with(GatewayConfig {
            secrets: vec![secret("TOKEN@api.example:8443")],
            roots: Roots::Pem(ca.pem.clone()),
            ..config(&["api.example", "api.example:8443", "other.example:8443"])
        });
        fixture.table.set("api.example", "93.184.0.10");
        fixture.table.set("other.example", "93.184.0.11");
        let placeholder = placeholder(&fixture.gateway);
        let (on_443, on_8443) = (
            servers::https("93.184.0.10:443", ca.acceptor(&["api.example"], &[]), itself).await,
            servers::https("93.184.0.10:8443", ca.acceptor(&["api.example"], &[]), itself).await,
        );
        servers::echo("93.184.0.11:8443").await;
        let ours = connector(fixture.gateway.trust().unwrap().authority_pem(), &[]);
        let get = |port: u16| format!("GET / HTTP/1.1\r\nHost: api.example:{port}\r\nAuthorization: {placeholder}\r\n\r\n");
        let stream = begin(&ours, fixture.connect("api.example", 8443).await, "api.example").await.unwrap();
        request(stream, &get(8443)).await;
        let stream = begin(&connector(&ca.pem, &[]), fixture.connect("api.example", 443).await, "api.example").await.unwrap();
        request(stream, &get(443)).await;
        // Without its port, the name is that of the connection.
        let stream = begin(&ours, fixture.connect("api.example", 8443).await, "api.example").await.unwrap();
        let answer = request(stream, &get(8443).replace(":8443", "")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let stream = begin(&ours, fixture.connect("api.example", 8443).await, "api.example").await.unwrap();
        let answer = request(stream, &get(9000)).await;
        let because = "a connection to `api.example:8443` carries a request for `api.example:9000`";
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(&format!("shieling: {because}; ")), "{answer}");
        assert_eq!(fixture.denied("api.example", Some(9000)).await, because);
        assert!(fixture.report().denied[0].instead.as_deref().unwrap().contains("`api.example:8443`"));
        assert!(on_8443.lock().unwrap()[0].contains(VALUE) && on_443.lock().unwrap()[0].contains(&placeholder));
        // What is not TLS is passed on at that port for other hosts, and refused for the secret's.
        assert_eq!(fixture.exchange("other.example", 8443, b"x").await, "x");
        fixture.exchange("api.example", 8443, get(8443).as_bytes()).await;
        assert!(fixture.denied("api.example", Some(8443)).await.contains("is not TLS"));
        assert_eq!(on_8443.lock().unwrap().len(), 2);
    }

    async fn the_secrets_host_gets_it_also_by_another_hosts_address() {
        let setup = Setup::new(itself).await;
        let stream = setup.fixture.connect("other.example", 443).await;
        let stream = begin(&setup.connector(&[]), stream, "api.example").await.unwrap();
        let answer = request(stream, &format!("GET / HTTP/1.1\r\nHost: api.example\r\nAuthorization: {}\r\n\r\n", setup.placeholder)).await;
        assert!(setup.seen().contains(VALUE) && !answer.contains(VALUE));
        assert_eq!(setup.fixture.table.asked(), ["api.example"]);
    }

    async fn the_secret_goes_to_a_verified_host_alone() {
        let (trusted, strange) = (Ca::new(), Ca::new());
        let fixture = gateway(&trusted);
        let seen = servers::https("93.184.0.10:443", strange.acceptor(&["api.example"], &[]), itself).await;
        let connector = connector(fixture.gateway.trust().unwrap().authority_pem(), &[]);
        begin(&connector, fixture.connect("api.example", 443).await, "api.example").await.unwrap_err();
        assert!(seen.lock().unwrap().is_empty());
        let report = fixture.reported(|report| report.connections[0].end != End::Open).await;
        assert!(matches!(&report.connections[0].end, End::Unreachable(text) if text.contains("certificate")), "{report:?}");
    }

    async fn the_authority_of_another_gateway_is_not_trusted() {
        let setup = Setup::new(itself).await;
        let other = Gateway::start(GatewayConfig {
            secrets: vec![secret("TOKEN@api.example")],
            roots: Roots::Pem(Ca::new().pem),
            ..GatewayConfig::default()
        })
        .unwrap();
        assert_ne!(placeholder(&other), setup.placeholder);
        let connector = connector(other.trust().unwrap().authority_pem(), &[]);
        begin(&connector, setup.fixture.connect("api.example", 443).await, "api.example").await.unwrap_err();
        assert_eq!(setup.seen(), "");
    }

    async fn a_body_that_pauses_within_what_could_be_the_secret_is_passed_on_and_the_rest_is_hidden() {
        let ca = Ca::new();
        let fixture = gateway(&ca);
        let placeholder = placeholder(&fixture.gateway);
        let listener = tokio::net::TcpListener::bind("93.184.0.10:443").await.unwrap();
        let acceptor = ca.acceptor(&["api.example"], &["http/1.1"]);
        let (arrived, next) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let mut host = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 5 + VALUE.len());
            host.write_all(format!("{head}ping {}", &VALUE[..9]).as_bytes()).await.unwrap();
            host.flush().await.unwrap();
            next.await.unwrap();
            host.write_all(&VALUE.as_bytes()[9..]).await.unwrap();
            host.flush().await.unwrap();
            std::future::pending::<()>().await;
        });
        let connector = connector(fixture.gateway.trust().unwrap().authority_pem(), &[]);
        let mut stream = begin(&connector, fixture.connect("api.example", 443).await, "api.example").await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let first = async {
            while !answer.ends_with(&VALUE.as_bytes()[..9]) {
                answer.push(stream.read_u8().await.unwrap());
            }
        };
        tokio::time::timeout(Duration::from_secs(10), first).await.expect("nothing is held back for ever");
        arrived.send(()).unwrap();
        let mut rest = vec![0; VALUE.len() - 9];
        stream.read_exact(&mut rest).await.unwrap();
        assert_eq!(String::from_utf8(rest).unwrap(), placeholder[9..]);
    }

    async fn outputs_are_redacted_in_parts() {
        let setup = Setup::new(itself).await;
        let mut stream = setup.fixture.gateway.redactor().stream();
        let mut text = Vec::new();
        for part in format!("a {VALUE} b {}", STANDARD.encode(VALUE)).as_bytes().chunks(3) {
            text.extend(stream.push(part));
        }
        text.extend(stream.finish());
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with(&format!("a {} b ", setup.placeholder)) && !text.contains("R3alS3cr3t"), "{text}");
    }
}
