//! Names, addresses, and what leaves the sandbox when they are looked up.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::CNAME;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use shieling_gateway::{Decision, GatewayConfig, HostName, Limits, Rule};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use crate::gateway::fixture::{Fixture, address, config, query};
use crate::gateway::servers;

space_tests! {
    async fn an_allowed_name_has_an_address_and_another_one_does_not_exist_at_once() {
        let fixture = Fixture::new(&["pypi.org", "*.example.org"]);
        let found = address("PyPI.org").await;
        assert_eq!(fixture.gateway.names()[0].v4, found);
        assert_ne!(address("a.example.org").await, found);
        let began = Instant::now();
        for name in ["evil.org", "example.org", "pypi.org.evil.org", "xpypi.org"] {
            let reply = query(name, RecordType::A).await;
            assert_eq!(reply.metadata.response_code, ResponseCode::NXDomain, "{name}");
        }
        assert!(began.elapsed() < Duration::from_secs(4), "a client tries again after 5 s");
        assert_eq!(fixture.denied("evil.org", None).await, "no rule allows `evil.org`");
        let report = fixture.report();
        let denied = report.denied.iter().find(|denied| denied.host == "evil.org").unwrap();
        assert_eq!(denied.instead.as_deref(), Some("`--allow-host evil.org`"));
    }

    async fn no_lookup_leaves_the_sandbox_and_a_connection_resolves_its_own_name_alone() {
        let fixture = Fixture::new(&["*.example.org:7000"]);
        fixture.table.set("a.example.org", "93.184.0.10");
        servers::echo("93.184.0.10:7000").await;
        for name in ["secret-data.evil.org", "secret-data.example.org", "a.example.org"] {
            for record_type in [RecordType::A, RecordType::AAAA, RecordType::TXT, RecordType::NULL, RecordType::HTTPS] {
                query(name, record_type).await;
            }
        }
        assert!(fixture.table.asked().is_empty());
        assert_eq!(fixture.exchange("a.example.org", 7000, b"hello").await, "hello");
        assert_eq!(fixture.table.asked(), ["a.example.org"]);
    }

    async fn types_without_records_are_no_data_and_reverse_lookups_find_the_name() {
        let fixture = Fixture::new(&["pypi.org"]);
        for record_type in [RecordType::AAAA, RecordType::HTTPS, RecordType::MX] {
            let reply = query("pypi.org", record_type).await;
            assert_eq!((reply.metadata.response_code, reply.answers.len()), (ResponseCode::NoError, 0));
        }
        let octets = address("pypi.org").await.octets();
        let reverse = format!("{}.{}.{}.{}.in-addr.arpa", octets[3], octets[2], octets[1], octets[0]);
        let reply = query(&reverse, RecordType::PTR).await;
        assert!(matches!(&reply.answers[0].data, RData::PTR(name) if name.0.to_ascii() == "pypi.org."));
        assert!(fixture.report().denied.is_empty());
    }

    async fn ipv6_addresses_are_given_where_there_is_a_pool() {
        let pool_v6 = Some("fd00:5ee1::/64".parse().unwrap());
        let fixture = Fixture::with(GatewayConfig { pool_v6, listeners: None, ..config(&["*.example.org"]) });
        let reply = query("a.example.org", RecordType::AAAA).await;
        assert!(matches!(reply.answers[0].data, RData::AAAA(_)));
        assert_eq!(fixture.gateway.routes().len(), 2);
    }

    async fn names_with_a_search_domain_or_a_service_are_no_attempts() {
        let search = vec![HostName::parse("corp.example").unwrap()];
        let fixture = Fixture::with(GatewayConfig { search, ..config(&["deb.debian.org"]) });
        for name in ["deb.debian.org.corp.example", "_http._tcp.deb.debian.org"] {
            assert_eq!(query(name, RecordType::A).await.metadata.response_code, ResponseCode::NXDomain);
        }
        assert!(fixture.report().denied.is_empty());
        query("_http._tcp.evil.org", RecordType::SRV).await;
        assert_eq!(fixture.report().denied.len(), 1);
    }

    async fn queries_over_tcp_are_answered_and_a_stream_of_rubbish_is_closed() {
        let _fixture = Fixture::new(&["pypi.org"]);
        let mut stream = TcpStream::connect("198.18.0.1:53").await.unwrap();
        let query = b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04pypi\x03org\x00\x00\x01\x00\x01";
        for part in [&[0, u8::try_from(query.len()).unwrap()][..], &query[..5], &query[5..]] {
            stream.write_all(part).await.unwrap();
        }
        let length = stream.read_u16().await.unwrap();
        let mut reply = vec![0; length.into()];
        stream.read_exact(&mut reply).await.unwrap();
        assert_eq!((&reply[..2], reply[7]), (&[0, 7][..], 1));
        stream.write_all(&[0xff, 0xff]).await.unwrap();
        assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
    }

    async fn a_rule_that_refuses_tells_its_reason_before_a_wider_one_allows() {
        let mut config = config(&["*.example.org"]);
        config.rules.push(Rule {
            host: "tracker.example.org".parse().unwrap(),
            decision: Decision::Deny,
            because: Some("it collects data".to_owned()),
            instead: Some("leave it out".to_owned()),
        });
        let fixture = Fixture::with(config);
        address("a.example.org").await;
        assert_eq!(query("tracker.example.org", RecordType::A).await.metadata.response_code, ResponseCode::NXDomain);
        assert_eq!(fixture.denied("tracker.example.org", None).await, "it collects data");
        assert_eq!(fixture.report().denied[0].instead.as_deref(), Some("leave it out"));
    }

    async fn addresses_run_out_for_wildcards_without_taking_those_of_named_hosts() {
        let limits = Limits { names: 20, ..Limits::default() };
        let fixture = Fixture::with(GatewayConfig { limits, listeners: None, ..config(&["pypi.org", "*.example.org"]) });
        let mut given = 0;
        for number in 0..40 {
            let reply = query(&format!("h{number}.example.org"), RecordType::A).await;
            given += reply.answers.len();
            assert!(!reply.answers.is_empty() || reply.metadata.response_code == ResponseCode::ServFail);
        }
        assert_eq!(given, 19);
        address("pypi.org").await;
        address("h0.example.org").await;
        assert!(fixture.denied("h39.example.org", None).await.contains("too many names"));
    }

    async fn an_alias_of_a_public_name_does_not_lead_to_a_private_address() {
        // The resolver of the system follows aliases, as the one of every machine does.
        std::fs::write("/mnt/resolv.conf", "nameserver 93.184.0.53\n").unwrap();
        let asked = aliases("93.184.0.53:53", &[("private.example", "10.9.0.8"), ("loopback.example", "127.0.0.1"), ("public.example", "93.184.0.10")]).await;
        let fixture = Fixture::resolving(config(&["*.example:7000", "named.example:7001", "10.9.0.8:7001"]));
        for address in ["10.9.0.8:7000", "10.9.0.8:7001", "127.0.0.1:7000", "93.184.0.10:7000"] {
            servers::echo(address).await;
        }
        assert_eq!(fixture.exchange("public.example", 7000, b"x").await, "x");
        for (name, leads) in [("private.example", "10.9.0.8, a private address"), ("loopback.example", "127.0.0.1, a loopback address")] {
            assert_eq!(fixture.exchange(name, 7000, b"x").await, "");
            assert!(fixture.denied(name, Some(7000)).await.contains(leads), "{:?}", fixture.report());
        }
        // Of the names of an alias the one that was allowed left, and no other.
        let asked = asked.lock().unwrap().clone();
        assert!(asked.iter().all(|name| name.ends_with("public.example.") || name.ends_with("private.example.") || name.ends_with("loopback.example.")), "{asked:?}");
    }

    async fn datagrams_pass_where_udp_is_named_and_replies_find_their_way_back() {
        let fixture = Fixture::new(&["udp:ntp.example.org:123"]);
        fixture.table.set("ntp.example.org", "93.184.0.10");
        let server = UdpSocket::bind("93.184.0.10:123").await.unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 100];
            loop {
                let (length, peer) = server.recv_from(&mut buffer).await.unwrap();
                server.send_to(&buffer[..length], peer).await.unwrap();
            }
        });
        let to = address("ntp.example.org").await;
        let clients = [UdpSocket::bind("0.0.0.0:0").await.unwrap(), UdpSocket::bind("0.0.0.0:0").await.unwrap()];
        for (number, client) in clients.iter().enumerate() {
            client.send_to(format!("from {number}").as_bytes(), (to, 123)).await.unwrap();
        }
        for (number, client) in clients.iter().enumerate() {
            let mut buffer = [0; 100];
            let (length, peer) = client.recv_from(&mut buffer).await.unwrap();
            assert_eq!((&buffer[..length], peer), (format!("from {number}").as_bytes(), (to, 123).into()));
        }
        assert!(TcpStream::connect((to, 123)).await.is_err());
        let report = fixture.report();
        assert_eq!(report.connections.len(), 2);
        assert_eq!((report.connections[0].bytes_in, report.connections[0].bytes_out), (6, 6));
    }
}

/// A name server for which each name is an alias of another one, which has the address. Keeps the names that were asked.
async fn aliases(at: &str, names: &'static [(&str, &str)]) -> Arc<Mutex<Vec<String>>> {
    let socket = UdpSocket::bind(at).await.unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let keep = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut buffer = [0; 512];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
            let query = Message::from_vec(&buffer[..length]).unwrap();
            let question = query.queries[0].clone();
            let name = question.name().clone();
            keep.lock().unwrap().push(name.to_ascii());
            let mut reply = Message::new(query.metadata.id, MessageType::Response, OpCode::Query);
            let address = names.iter().find(|(known, _)| format!("{known}.") == name.to_ascii());
            if let (Some((_, address)), RecordType::A) = (address, question.query_type()) {
                let alias = Name::from_ascii(format!("alias.{name}")).unwrap();
                reply.add_answer(Record::from_rdata(name, 1, RData::CNAME(CNAME(alias.clone()))));
                reply.add_answer(Record::from_rdata(
                    alias,
                    1,
                    RData::A(address.parse::<std::net::Ipv4Addr>().unwrap().into()),
                ));
            }
            reply.add_query(question);
            socket.send_to(&reply.to_vec().unwrap(), peer).await.unwrap();
        }
    });
    asked
}
