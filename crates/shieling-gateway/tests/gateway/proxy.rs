//! The user's proxy, through which the gateway connects.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shieling_gateway::{GatewayConfig, NoProxy, Proxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::gateway::fixture::{Fixture, config};
use crate::gateway::servers::{self, itself};

/// A proxy that connects to one address, whatever is asked for, and keeps the heads of requests.
async fn proxy(to: &'static str) -> Arc<Mutex<Vec<String>>> {
    let listener = TcpListener::bind("127.0.0.1:3128").await.unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let log = heads.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let log = log.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await?);
                }
                let mut host = TcpStream::connect(to).await?;
                if head.starts_with(b"CONNECT ") {
                    client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
                } else {
                    host.write_all(&head).await?;
                }
                log.lock().unwrap().push(String::from_utf8(head).unwrap());
                tokio::io::copy_bidirectional(&mut client, &mut host).await
            });
        }
    });
    heads
}

space_tests! {
    async fn connections_go_through_the_proxy_and_requests_in_absolute_form() {
        let heads = proxy("93.184.0.10:80").await;
        servers::http("93.184.0.10:80", itself).await;
        let proxy = Some(Proxy::parse("http://user:pass@127.0.0.1:3128").unwrap());
        let no_proxy = NoProxy::parse("near.example");
        let fixture = Fixture::with(GatewayConfig { proxy, no_proxy, ..config(&["far.example", "far.example:7000", "near.example"]) });
        fixture.table.set("near.example", "93.184.0.10");
        let request = |host: &str| format!("GET /x?y HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: mine\r\n\r\n");
        let answer = fixture.exchange("far.example", 80, request("far.example").as_bytes()).await;
        // The server has sent back the request that it got from the proxy.
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("GET http://far.example/x?y"), "{answer}");
        assert!(!answer.contains(&STANDARD.encode("user:pass")), "{answer}");
        let answer = fixture.exchange("far.example", 7000, request("any").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let answer = fixture.exchange("near.example", 80, request("near.example").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("Basic"), "{answer}");
        let heads = heads.lock().unwrap().clone();
        assert_eq!(heads.len(), 2, "{heads:?}");
        assert!(heads[0].starts_with("GET http://far.example/x?y HTTP/1.1\r\n"), "{}", heads[0]);
        assert!(heads[0].to_ascii_lowercase().contains("proxy-authorization: basic dxnlcjpwyxnz") && !heads[0].contains("mine"), "{}", heads[0]);
        assert!(heads[1].starts_with("CONNECT far.example:7000 HTTP/1.1\r\n"), "{}", heads[1]);
        assert_eq!(fixture.table.asked(), ["near.example"]);
        assert!(fixture.report().connections[0].address.is_none());
    }

    async fn a_command_does_not_get_the_credentials_of_the_proxy_back() {
        let heads = proxy("93.184.0.10:80").await;
        servers::http("93.184.0.10:80", itself).await;
        let proxy = Some(Proxy::parse("http://user:p%40ssword@127.0.0.1:3128").unwrap());
        let no_proxy = NoProxy::parse("near.example");
        let fixture = Fixture::with(GatewayConfig { proxy, no_proxy, ..config(&["far.example", "near.example"]) });
        fixture.table.set("near.example", "93.184.0.10");
        let trace = |host: &str| format!("TRACE / HTTP/1.1\r\nHost: {host}\r\nMax-Forwards: 0\r\n\r\n");
        let answer = fixture.exchange("far.example", 80, trace("far.example").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("shieling: `TRACE` is not passed on"), "{answer}");
        assert!(fixture.denied("far.example", Some(80)).await.contains("TRACE"));
        let answer = fixture.exchange("near.example", 80, trace("near.example").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "nothing is added to it: {answer}");
        // A page that names them decoded.
        let page = "GET /user:p@ssword HTTP/1.1\r\nHost: far.example\r\nAccept-Encoding: gzip\r\n\r\n";
        let answer = fixture.exchange("far.example", 80, page.as_bytes()).await;
        assert!(answer.contains("GET http://far.example/xxx") && !answer.contains("p@ssword"), "{answer}");
        let heads = heads.lock().unwrap().clone();
        assert!(heads.len() == 1 && heads[0].contains("identity"), "{heads:?}");
    }
}
