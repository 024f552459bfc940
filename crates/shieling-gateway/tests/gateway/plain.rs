//! Connections without TLS: passed on as they are, or HTTP on port 80.

use std::time::{Duration, Instant};

use shieling_gateway::{End, GatewayConfig, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::gateway::fixture::{Fixture, config, is_refused};
use crate::gateway::servers::{self, Seen, itself};

/// A gateway to two hosts on one address, as a content network has them, of which one is allowed.
async fn cdn() -> (Fixture, Seen) {
    let fixture = Fixture::new(&["good.example"]);
    fixture.table.set("good.example", "93.184.0.10");
    fixture.table.set("evil.example", "93.184.0.10");
    let seen = servers::http("93.184.0.10:80", itself).await;
    (fixture, seen)
}

/// Asserts that a request was refused, and that the server saw nothing of it.
async fn refused(request: &str, status: &str) -> Fixture {
    let (fixture, seen) = cdn().await;
    let answer = fixture.exchange("good.example", 80, request.as_bytes()).await;
    assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert!(seen.lock().unwrap().is_empty(), "{seen:?}");
    fixture
}

space_tests! {
    async fn other_ports_are_passed_on_in_both_directions_and_half_closed_each_by_itself() {
        let fixture = Fixture::new(&["db.example:5432"]);
        fixture.table.set("db.example", "93.184.0.10");
        servers::echo("93.184.0.10:5432").await;
        let sent: Vec<u8> = (0..3_000_000_u32).map(|number| u8::try_from(number % 251).unwrap()).collect();
        let stream = fixture.connect("db.example", 5432).await;
        let (mut read, mut write) = stream.into_split();
        let writing = async {
            write.write_all(&sent).await.unwrap();
            write.shutdown().await.unwrap();
        };
        let mut received = Vec::new();
        let (_, read) = tokio::join!(writing, read.read_to_end(&mut received));
        read.unwrap();
        assert!(received == sent);
        let report = fixture.reported(|report| report.connections.iter().any(|connection| connection.end == End::Closed)).await;
        let connection = &report.connections[0];
        assert_eq!((connection.host.as_str(), connection.port), ("db.example", 5432));
        assert_eq!((connection.bytes_in, connection.bytes_out), (3_000_000, 3_000_000));
        assert_eq!(connection.address, Some(servers::outside("93.184.0.10:5432")));
    }

    async fn a_reset_outside_is_one_inside() {
        let fixture = Fixture::new(&["db.example:5432"]);
        fixture.table.set("db.example", "93.184.0.10");
        let listener = tokio::net::TcpListener::bind("93.184.0.10:5432").await.unwrap();
        let mut stream = fixture.connect("db.example", 5432).await;
        let (mut outside, _) = listener.accept().await.unwrap();
        stream.write_all(b"x").await.unwrap();
        outside.read_u8().await.unwrap();
        outside.set_zero_linger().unwrap();
        drop(outside);
        assert_eq!(stream.read(&mut [0]).await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
        fixture.reported(|report| matches!(report.connections[0].end, End::Failed(_))).await;
    }

    async fn requests_on_port_80_are_passed_on_and_recorded() {
        let (fixture, seen) = cdn().await;
        let requests = "GET /one?token=1 HTTP/1.1\r\nHost: good.example\r\nX-Odd-CASE: kept\r\n\r\n\
            POST /two HTTP/1.1\r\nHost: Good.Example.:80\r\nContent-Length: 5\r\n\r\nhello\
            PUT /three HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let answer = fixture.exchange("good.example", 80, requests.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 3, "{answer}");
        assert!(answer.contains("GET /one?token=1 HTTP/1.1\r\n") && answer.contains("X-Odd-CASE: kept"), "{answer}");
        assert_eq!(seen.lock().unwrap().len(), 3);
        let report = fixture.reported(|report| report.connections.iter().any(|connection| connection.end == End::Closed)).await;
        let requests: Vec<_> = report.connections[0].requests.iter().map(|request| (request.method.as_str(), request.path.as_str(), request.status)).collect();
        assert_eq!(requests, [("GET", "/one", Some(200)), ("POST", "/two", Some(200)), ("PUT", "/three", Some(200))]);
        assert!(report.denied.is_empty());
    }

    async fn a_request_for_another_host_is_refused() {
        let fixture = refused("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403").await;
        assert!(fixture.denied("evil.example", Some(80)).await.contains("carries a request for `evil.example`"));
        assert_eq!(fixture.report().denied[0].instead.as_deref(), Some("`--allow-host evil.example`"));
    }

    async fn a_second_request_on_a_kept_connection_is_checked_like_the_first() {
        let (fixture, seen) = cdn().await;
        let requests = "GET /1 HTTP/1.1\r\nHost: good.example\r\n\r\nGET /2 HTTP/1.1\r\nHost: evil.example\r\n\r\nGET /3 HTTP/1.1\r\nHost: good.example\r\n\r\n";
        let answer = fixture.exchange("good.example", 80, requests.as_bytes()).await;
        assert_eq!((answer.matches("HTTP/1.1 200").count(), answer.matches("HTTP/1.1 403").count()), (1, 1), "{answer}");
        assert_eq!(seen.lock().unwrap().len(), 1);
        fixture.denied("evil.example", Some(80)).await;
    }

    async fn absolute_form_and_connect_are_refused() {
        refused("GET http://evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", "400").await.denied("evil.example", Some(80)).await;
    }

    async fn connect_through_an_allowed_host_is_refused() {
        refused("CONNECT evil.example:443 HTTP/1.1\r\nHost: good.example\r\n\r\n", "405").await.denied("evil.example", Some(443)).await;
    }

    async fn odd_hosts_are_refused() {
        let (fixture, seen) = cdn().await;
        for host in ["good.example\r\nHost: evil.example", "evil.example:80", "good.example:8080", "good.example@evil.example", "0x5d.0xb8.0.0xa", "93.184.0.10", "[::ffff:93.184.0.10]", "good.example\u{0}", "good.example..", "g\u{43e}od.example"] {
            let answer = fixture.exchange("good.example", 80, format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 4"), "{host:?}: {answer}");
        }
        let answer = fixture.exchange("good.example", 80, b"GET / HTTP/1.1\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(seen.lock().unwrap().is_empty(), "{seen:?}");
    }

    async fn requests_that_could_be_read_in_two_ways_are_refused_and_end_the_connection() {
        let smuggled = "GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n";
        let length = 5 + smuggled.len();
        let (fixture, seen) = cdn().await;
        for headers in [
            format!("Content-Length: {length}\r\nTransfer-Encoding: chunked"),
            format!("Transfer-Encoding: chunked\r\nContent-Length: {length}"),
            format!("Content-Length: 0\r\nContent-Length: {length}"),
            format!("Content-Length: 0, {length}"),
            "Transfer-Encoding: xchunked".to_owned(),
            "Transfer-Encoding: chunked, identity".to_owned(),
            "Transfer-Encoding : chunked".to_owned(),
            "Transfer-Encoding:\r\n chunked".to_owned(),
            "X: y\r\n\tz\r\nContent-Length: 5".to_owned(),
            "X: y\nContent-Length: 5".to_owned(),
            "X: y\rContent-Length: 5".to_owned(),
            "X: y\n".to_owned(),
            "\n".to_owned(),
        ] {
            let first = "GET /first HTTP/1.1\r\nHost: good.example\r\n\r\n";
            let request = format!("{first}POST / HTTP/1.1\r\nHost: good.example\r\n{headers}\r\n\r\n0\r\n\r\n{smuggled}{first}");
            let answer = fixture.exchange("good.example", 80, request.as_bytes()).await;
            let statuses: Vec<&str> = answer.split("HTTP/1.1 ").skip(1).map(|one| &one[..3]).collect();
            assert_eq!(statuses, ["200", "400"], "{headers:?}: {answer}");
            assert_eq!(seen.lock().unwrap().drain(..).count(), 1, "{headers:?}");
        }
    }

    async fn a_line_that_ends_with_lf_alone_is_in_the_report() {
        let fixture = refused("GET / HTTP/1.1\r\nHost: good.example\nX: y\r\n\r\n", "400").await;
        let because = fixture.denied("good.example", Some(80)).await;
        assert!(because.contains("ends with LF alone"), "{because}");
    }

    async fn a_response_with_two_lengths_is_refused() {
        let cases = ["Content-Length: 3\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3", "Content-Length: 3\r\nContent-Length: 4"];
        let fixture = Fixture::new(&["good.example"]);
        fixture.table.set("good.example", "93.184.0.10");
        let listener = tokio::net::TcpListener::bind("93.184.0.10:80").await.unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = [0; 4096];
                let length = stream.read(&mut head).await.unwrap();
                let head = String::from_utf8_lossy(&head[..length]);
                let case = head.strip_prefix("GET /").and_then(|rest| rest[..1].parse::<usize>().ok()).unwrap();
                let answer = format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n3\r\nabc\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", cases[case]);
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.read(&mut [0; 4096]).await;
            }
        });
        for (case, headers) in cases.iter().enumerate() {
            let request = format!("GET /{case} HTTP/1.1\r\nHost: good.example\r\n\r\n");
            let answer = fixture.exchange("good.example", 80, request.as_bytes()).await;
            assert!(answer.starts_with("HTTP/1.1 502"), "{headers:?}: {answer}");
            assert!(!answer.contains("abc") && !answer.contains("evil"), "{headers:?}: {answer}");
        }
    }

    async fn a_response_whose_head_is_too_large_is_refused_with_the_limit() {
        fn lines(request: &str) -> (String, String) {
            let count = request["GET /".len()..].split(' ').next().unwrap().parse().unwrap();
            ("X: y\r\n".repeat(count), "body".to_owned())
        }
        let fixture = Fixture::new(&["good.example"]);
        fixture.table.set("good.example", "93.184.0.10");
        servers::http("93.184.0.10:80", lines).await;
        let get = |count: usize| format!("GET /{count} HTTP/1.1\r\nHost: good.example\r\n\r\n");
        let answer = fixture.exchange("good.example", 80, get(190).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("body"), "{answer}");
        let answer = fixture.exchange("good.example", 80, get(250).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("at most 200 lines and 64 KiB"), "{answer}");
        let request = get(1).replace("\r\n\r\n", &"\r\nX: y".repeat(250)) + "\r\n\r\n";
        assert!(fixture.exchange("good.example", 80, request.as_bytes()).await.starts_with("HTTP/1.1 431"));
        let told = |end: &End| matches!(end, End::Failed(text) if text.contains("at most 200 lines and 64 KiB"));
        fixture.reported(|report| report.connections.iter().any(|connection| told(&connection.end))).await;
    }

    async fn no_mixture_of_lengths_smuggles_a_request() {
        let (fixture, seen) = cdn().await;
        let smuggled = "GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n";
        let length = smuggled.len() + 5;
        let lengths = [String::new(), "Content-Length: 0".into(), format!("Content-Length: {length}"), format!("Content-Length: +{length}"), format!("Content-Length: {length}, {length}"), format!("Content-Length: {length}\r\nContent-Length: 5"), "Content-Length:\t5".into(), "Content-Length: 5 ".into(), "Content-Length: 0x5".into(), "Content-Length : 5".into(), "Content_Length: 5".into()];
        let encodings = ["", "Transfer-Encoding: chunked", "Transfer-Encoding: Chunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked", "Transfer-Encoding:\u{b}chunked", "Transfer-Encoding: chunked\r\n x", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked", "Transfer-Encoding : chunked", "X: y\rTransfer-Encoding: chunked", "X: y\nTransfer-Encoding: chunked", "\u{0}Transfer-Encoding: chunked", "Transfer-Encoding: \u{0}chunked"];
        let mut tried = 0;
        for body_length in &lengths {
            for encoding in encodings {
                for (first, second) in [(body_length.as_str(), encoding), (encoding, body_length.as_str())] {
                    let headers: Vec<&str> = ["Host: good.example", first, second].into_iter().filter(|line| !line.is_empty()).collect();
                    let request = format!("POST / HTTP/1.1\r\n{}\r\n\r\n0\r\n\r\n{smuggled}", headers.join("\r\n"));
                    fixture.exchange("good.example", 80, request.as_bytes()).await;
                    for seen in seen.lock().unwrap().drain(..) {
                        assert!(!seen.starts_with("GET /evil"), "{request:?} became {seen:?}");
                        let (head, _) = seen.split_once("\r\n\r\n").unwrap();
                        assert!(!head.contains("evil") && head.matches("Host: ").count() == 1, "{request:?} became {seen:?}");
                    }
                    tried += 1;
                }
            }
        }
        assert_eq!(tried, 286);
    }

    async fn a_host_that_closes_kept_connections_is_connected_to_again() {
        let fixture = Fixture::new(&["good.example"]);
        fixture.table.set("good.example", "93.184.0.10");
        let listener = tokio::net::TcpListener::bind("93.184.0.10:80").await.unwrap();
        let serving = tokio::spawn(async move {
            for _ in 0..3 {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                // Kept, as far as the response says.
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            }
        });
        let mut stream = fixture.connect("good.example", 80).await;
        for _ in 0..3 {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n").await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
        }
        serving.await.unwrap();
    }

    async fn http2_without_tls_is_not_spoken() {
        let (fixture, seen) = cdn().await;
        fixture.exchange("good.example", 80, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
        let upgrade = "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n";
        let answer = fixture.exchange("good.example", 80, upgrade.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let seen = seen.lock().unwrap().join("").to_ascii_lowercase();
        assert!(!seen.contains("h2c") && !seen.contains("http2-settings") && !seen.contains("pri *"), "{seen}");
    }

    async fn a_web_socket_passes_in_both_directions() {
        let (fixture, _) = cdn().await;
        let mut stream = fixture.connect("good.example", 80).await;
        let request = "GET /chat HTTP/1.1\r\nHost: good.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"));
        // What goes this way is no request any more.
        stream.write_all(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        fixture.reported(|report| report.connections[0].requests[0].status == Some(101)).await;
    }

    async fn a_web_socket_that_the_host_refuses_leaves_requests_checked() {
        let (fixture, seen) = cdn().await;
        let requests = "GET /no HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n";
        let answer = fixture.exchange("good.example", 80, requests.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("HTTP/1.1 403"), "{answer}");
        assert_eq!(seen.lock().unwrap().len(), 1);
    }

    async fn a_host_that_is_allowed_itself_is_reached_where_it_is() {
        let fixture = Fixture::new(&["a.example", "b.example"]);
        fixture.table.set("a.example", "93.184.0.10");
        fixture.table.set("b.example", "93.184.0.11");
        let (a, b) = (servers::http("93.184.0.10:80", itself).await, servers::http("93.184.0.11:80", itself).await);
        let requests = "GET /1 HTTP/1.1\r\nHost: b.example\r\n\r\nGET /2 HTTP/1.1\r\nHost: a.example\r\n\r\n";
        let answer = fixture.exchange("a.example", 80, requests.as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{answer}");
        assert!(a.lock().unwrap()[0].starts_with("GET /2") && b.lock().unwrap()[0].starts_with("GET /1"));
    }

    async fn a_name_that_comes_to_lead_to_a_private_address_is_refused() {
        let fixture = Fixture::new(&["good.example:7000", "ok.example:7000", "10.9.0.7:7000"]);
        servers::echo("93.184.0.10:7000").await;
        servers::echo("10.9.0.7:7000").await;
        servers::echo("10.9.0.8:7000").await;
        servers::echo("127.0.0.1:7000").await;
        fixture.table.set("good.example", "93.184.0.10");
        assert_eq!(fixture.exchange("good.example", 7000, b"x").await, "x");
        // Rebinding: the second resolution leads elsewhere.
        for address in ["10.9.0.8", "127.0.0.1", "169.254.169.254", "::1", "::ffff:10.9.0.8", "0.0.0.0", "198.18.0.16"] {
            fixture.table.set("good.example", address);
            let began = Instant::now();
            assert_eq!(fixture.exchange("good.example", 7000, b"x").await, "", "{address}");
            assert!(began.elapsed() < Duration::from_secs(8), "it was not refused at once");
        }
        let because = fixture.denied("good.example", Some(7000)).await;
        assert!(because.contains("a private address"), "{because}");
        // The address that a rule names is open to names as well.
        fixture.table.set("ok.example", "10.9.0.7");
        assert_eq!(fixture.exchange("ok.example", 7000, b"x").await, "x");
    }

    async fn an_address_that_a_rule_names_is_passed_on_and_its_neighbour_is_not() {
        let limits = Limits { connections: 4, ..Limits::default() };
        let fixture = Fixture::with(GatewayConfig { limits, ..config(&["93.184.0.20:7000"]) });
        assert_eq!(fixture.gateway.endpoints()[0].address, servers::outside("93.184.0.20:7000"));
        // In this network the address inside and the one outside are the same: the gateway connects to itself, until
        // its own limit ends that. A real sandbox has a network of its own.
        for address in ["93.184.0.20:7000", "93.184.0.21:7000", "198.18.9.9:7000"] {
            fixture.gateway.serve(std::net::TcpListener::bind(address).unwrap()).unwrap();
            assert!(is_refused(servers::outside(address)).await, "{address}");
        }
        assert_eq!(fixture.denied("93.184.0.20", Some(7000)).await, "too many connections are open: at most 4");
        assert_eq!(fixture.denied("93.184.0.21", Some(7000)).await, "no rule allows `93.184.0.21:7000`");
        assert_eq!(fixture.denied("198.18.9.9", Some(7000)).await, "no rule allows `198.18.9.9:7000`");
    }

    async fn the_hosts_loopback_is_reached_by_its_own_name_alone() {
        let fixture = Fixture::new(&["host.internal:7000"]);
        servers::echo("127.0.0.1:7000").await;
        assert_eq!(fixture.exchange("host.internal", 7000, b"x").await, "x");
        let below = crate::gateway::fixture::query("x.host.internal", hickory_proto::rr::RecordType::A).await;
        assert!(below.answers.is_empty());
        assert_eq!(fixture.report().denied[0].instead.as_deref(), Some("`--allow-host host.internal:PORT`"));
        assert!(fixture.table.asked().is_empty());
    }

    async fn a_dead_host_is_given_up_in_time() {
        let limits = Limits { connect: Duration::from_millis(300), ..Limits::default() };
        let fixture = Fixture::with(GatewayConfig { limits, ..config(&["dead.example:7000", "none.example:7000", "dead.example"]) });
        // One that is connected fills the queue, which then does not answer.
        let listener = socket_without_backlog("93.184.0.10:7000");
        let filler = TcpStream::connect("93.184.0.10:7000").await.unwrap();
        fixture.table.set("dead.example", "93.184.0.10");
        let began = Instant::now();
        assert_eq!(fixture.exchange("dead.example", 7000, b"").await, "");
        assert!(began.elapsed() < Duration::from_secs(8), "it was given up late");
        fixture.reported(|report| matches!(&report.connections[0].end, End::Unreachable(_))).await;
        assert_eq!(fixture.exchange("none.example", 7000, b"").await, "");
        fixture.reported(|report| report.connections.iter().any(|connection| matches!(&connection.end, End::Unresolved(_)))).await;
        let answer = fixture.exchange("dead.example", 80, b"GET / HTTP/1.1\r\nHost: dead.example\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
        drop((listener, filler));
    }

    async fn everything_ends_with_the_gateway() {
        let fixture = Fixture::new(&["db.example:5432"]);
        fixture.table.set("db.example", "93.184.0.10");
        servers::echo("93.184.0.10:5432").await;
        let mut stream = fixture.connect("db.example", 5432).await;
        stream.write_all(b"x").await.unwrap();
        stream.read_u8().await.unwrap();
        let endpoint = fixture.gateway.endpoints()[0].address;
        drop(fixture);
        assert!(matches!(stream.read(&mut [0]).await, Ok(0) | Err(_)));
        for _ in 0..100 {
            if TcpStream::connect(endpoint).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the gateway still listens");
    }
}

/// A listening socket whose queue is full with the first connection.
fn socket_without_backlog(address: &str) -> std::os::fd::OwnedFd {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &address.parse::<std::net::SocketAddr>().unwrap()).unwrap();
    listen(&socket, 0).unwrap();
    socket
}
