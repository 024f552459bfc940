//! Bounds: what a program can make grow ends somewhere, and says so.

use std::time::{Duration, Instant};

use hickory_proto::rr::RecordType;
use shieling_gateway::{End, GatewayConfig, Limits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::gateway::fixture::{Fixture, address, config, is_refused, many_descriptors, query};
use crate::gateway::servers;

async fn fixture(limits: Limits) -> Fixture {
    let fixture = Fixture::with(GatewayConfig {
        limits,
        ..config(&["db.example:7000", "db.example"])
    });
    fixture.table.set("db.example", "93.184.0.10");
    servers::echo("93.184.0.10:7000").await;
    fixture
}

space_tests! {
    async fn connections_at_once_are_bounded_and_a_closed_one_makes_room() {
        let fixture = fixture(Limits { connections: 2, ..Limits::default() }).await;
        let mut open = Vec::new();
        for _ in 0..2 {
            let mut stream = fixture.connect("db.example", 7000).await;
            stream.write_all(b"x").await.unwrap();
            stream.read_u8().await.unwrap();
            open.push(stream);
        }
        assert!(is_refused((address("db.example").await, 7000).into()).await);
        assert_eq!(fixture.denied("db.example", Some(7000)).await, "too many connections are open: at most 2");
        assert!(fixture.report().denied[0].instead.as_deref().unwrap().contains("close"));
        drop(open);
        fixture.reported(|report| report.connections.iter().all(|connection| connection.end != End::Open)).await;
        assert_eq!(fixture.exchange("db.example", 7000, b"again").await, "again");
    }

    async fn new_connections_have_a_rate() {
        let fixture = fixture(Limits { burst: 3, rate: 20, ..Limits::default() }).await;
        let mut passed = 0;
        for _ in 0..10 {
            passed += usize::from(fixture.exchange("db.example", 7000, b"x").await == "x");
        }
        assert!((3..10).contains(&passed), "{passed}");
        assert!(fixture.denied("db.example", Some(7000)).await.contains("in a short time: at most 3 at once, then 20 a second"));
        assert!(fixture.report().denied[0].instead.as_deref().unwrap().contains("keep"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(fixture.exchange("db.example", 7000, b"x").await, "x");
    }

    async fn bytes_are_bounded_over_all_connections() {
        let fixture = fixture(Limits { bytes: Some(1_000_000), ..Limits::default() }).await;
        let mut stream = fixture.connect("db.example", 7000).await;
        let (mut read, mut write) = stream.split();
        let sending = async {
            while write.write_all(&[7; 10_000]).await.is_ok() {}
        };
        let receiving = async {
            let mut buffer = vec![0; 10_000];
            let mut received = 0;
            while let Ok(length @ 1..) = read.read(&mut buffer).await {
                received += length;
            }
            received
        };
        let ((), received) = tokio::join!(sending, receiving);
        assert!(received < 1_000_000, "{received}");
        fixture.reported(|report| report.connections[0].end == End::ByteLimit).await;
        assert_eq!(fixture.exchange("db.example", 7000, b"x").await, "");
        assert!(fixture.denied("db.example", Some(7000)).await.contains("used up"));
    }

    async fn an_idle_connection_is_ended_and_a_busy_one_is_not() {
        let fixture = fixture(Limits { idle: Duration::from_millis(400), ..Limits::default() }).await;
        let mut busy = fixture.connect("db.example", 7000).await;
        let mut idle = fixture.connect("db.example", 7000).await;
        idle.write_all(b"x").await.unwrap();
        idle.read_u8().await.unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(1) {
            busy.write_all(b"x").await.unwrap();
            busy.read_u8().await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(idle.read(&mut [0]).await.is_err());
        busy.write_all(b"x").await.unwrap();
        busy.read_u8().await.unwrap();
        fixture.reported(|report| report.connections.iter().filter(|connection| connection.end == End::Idle).count() == 1).await;
    }

    async fn a_client_that_does_not_say_where_to_is_given_up() {
        let fixture = fixture(Limits { greeting: Duration::from_millis(200), ..Limits::default() }).await;
        let mut silent = fixture.connect("db.example", 443).await;
        let mut slow = fixture.connect("db.example", 443).await;
        slow.write_all(&[22, 3, 1]).await.unwrap();
        assert!(silent.read(&mut [0]).await.is_err());
        assert!(slow.read(&mut [0]).await.is_err());
        fixture.reported(|report| report.connections.len() == 2 && report.connections.iter().all(|connection| matches!(connection.end, End::Failed(_)))).await;
    }

    async fn a_program_cannot_use_up_the_descriptors_of_this_process() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(80), ..limit }).unwrap();
        let fixture = fixture(Limits::default()).await;
        setrlimit(Resource::Nofile, limit).unwrap();
        let mut open = Vec::new();
        for _ in 0..10 {
            let mut stream = fixture.connect("db.example", 7000).await;
            stream.write_all(b"x").await.unwrap();
            stream.read_u8().await.unwrap();
            open.push(stream);
        }
        assert!(is_refused((address("db.example").await, 7000).into()).await);
    }

    async fn names_that_are_looked_up_cannot_use_up_the_descriptors_of_this_process() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(240), ..limit }).unwrap();
        let fixture = Fixture::new(&["db.example:7000", "*.example.org"]);
        fixture.table.set("db.example", "93.184.0.10");
        servers::echo("93.184.0.10:7000").await;
        let mut found = 0;
        for number in 0..100 {
            let reply = query(&format!("name-{number}.example.org"), RecordType::A).await;
            found += usize::from(!reply.answers.is_empty());
        }
        // An eighth of 240, and two ports for each.
        assert_eq!(found, 15);
        let report = fixture.report();
        assert_eq!(report.denied.len(), 85);
        assert_eq!(report.denied[0].because, "too many names were looked up: at most 30 sockets are made for them");
        assert!(report.denied[0].instead.as_deref().unwrap().contains("by their names"));
        // Those that were found stay, and so does what is named.
        assert!(!query("name-14.example.org", RecordType::A).await.answers.is_empty());
        assert_eq!(fixture.exchange("db.example", 7000, b"x").await, "x");
        setrlimit(Resource::Nofile, limit).unwrap();
    }

    async fn five_hundred_connections_at_once_are_served() {
        if !many_descriptors() {
            return;
        }
        let fixture = fixture(Limits::default()).await;
        let address = address("db.example").await;
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..500_u32 {
            tasks.spawn(async move {
                let mut stream = tokio::net::TcpStream::connect((address, 7000)).await.unwrap();
                stream.write_u32(number).await.unwrap();
                (stream.read_u32().await.unwrap() == number, stream)
            });
        }
        let open = tasks.join_all().await;
        assert!(open.iter().all(|(right, _)| *right));
        assert_eq!(fixture.report().connections.len(), 500);
    }
}
