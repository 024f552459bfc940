//! Figures: throughput, first byte, memory of idle connections. Printed with `figure:` by
//! `cargo test --release -p shieling-gateway --test gateway -- --ignored --nocapture bench`.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use shieling_gateway::{Gateway, Secret};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::gateway::fixture::{Fixture, address, config, many_descriptors};
use crate::gateway::servers;

/// How many bytes a throughput is measured over.
const BYTES: usize = 1 << 30;

/// A server that sends many bytes to each client.
async fn source(at: &str) {
    let listener = TcpListener::bind(at).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let block = vec![7; 1 << 18];
                let mut left = BYTES;
                while left > 0 && stream.write_all(&block[..left.min(block.len())]).await.is_ok() {
                    left -= left.min(block.len());
                }
            });
        }
    });
}

async fn download(from: SocketAddr) -> f64 {
    let began = Instant::now();
    let mut stream = TcpStream::connect(from).await.unwrap();
    let mut buffer = vec![0; 1 << 18];
    let mut received = 0;
    while let length @ 1.. = stream.read(&mut buffer).await.unwrap() {
        received += length;
    }
    assert_eq!(received, BYTES);
    BYTES as f64 / began.elapsed().as_secs_f64() / 1e6
}

async fn first_byte(from: SocketAddr) -> Duration {
    let began = Instant::now();
    let mut stream = TcpStream::connect(from).await.unwrap();
    stream.write_all(b"x").await.unwrap();
    stream.read_u8().await.unwrap();
    began.elapsed()
}

/// The processor time of this process, in the kernel and outside of it.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

space_tests! {
    #[ignore = "measures"]
    async fn throughput_and_first_byte_against_a_direct_connection() {
        let fixture = Fixture::new(&["db.example:7000", "db.example:7001"]);
        fixture.table.set("db.example", "93.184.0.10");
        source("93.184.0.10:7000").await;
        servers::echo("93.184.0.10:7001").await;
        let inside = address("db.example").await;
        let (mut direct, mut through) = (Vec::new(), Vec::new());
        let mut processor = [Duration::ZERO; 2];
        for _ in 0..5 {
            let began = processor_time();
            direct.push(download("93.184.0.10:7000".parse().unwrap()).await);
            let between = processor_time();
            through.push(download((inside, 7000).into()).await);
            processor[0] += between - began;
            processor[1] += processor_time() - between;
        }
        // Of all three sides, which share this process. The wall clock says the rest only on a machine with idle cores.
        eprintln!("figure: processor time for 1 GiB direct {:?}, through the gateway {:?}", processor[0] / 5, processor[1] / 5);
        direct.sort_by(f64::total_cmp);
        through.sort_by(f64::total_cmp);
        eprintln!("figure: 1 GiB direct {:.0} MB/s, through the gateway {:.0} MB/s, ratio {:.2}", direct[2], through[2], through[2] / direct[2]);
        let (mut direct, mut through) = (Vec::new(), Vec::new());
        for _ in 0..200 {
            direct.push(first_byte("93.184.0.10:7001".parse().unwrap()).await);
            through.push(first_byte((inside, 7001).into()).await);
        }
        direct.sort();
        through.sort();
        eprintln!("figure: first byte direct {:?}, through the gateway {:?} (median), {:?} and {:?} (95 %)", direct[100], through[100], direct[190], through[190]);
    }

    #[ignore = "measures"]
    async fn the_start_of_a_gateway_without_and_with_a_secret() {
        let start = |secrets: bool| {
            let mut config = config(&["@python", "@npm", "@rust", "@debian", "@github"]);
            if secrets {
                config.secrets.push(Secret::new("TOKEN@api.github.com".parse().unwrap(), "ghp_0123456789abcdef").unwrap());
            }
            let began = Instant::now();
            let gateway = Gateway::start(config).unwrap();
            (began.elapsed(), gateway)
        };
        for secrets in [false, true] {
            let mut times: Vec<Duration> = (0..21).map(|_| start(secrets).0).collect();
            times.sort();
            eprintln!("figure: start {} {:?} (median)", if secrets { "with a secret" } else { "without secrets" }, times[10]);
        }
    }

    #[ignore = "measures"]
    async fn memory_of_500_idle_connections() {
        if !many_descriptors() {
            return;
        }
        let fixture = Fixture::new(&["db.example:7000"]);
        fixture.table.set("db.example", "93.184.0.10");
        // The server's and the client's side are plain descriptors, so that the gateway's memory is seen.
        let listener = std::net::TcpListener::bind("93.184.0.10:7000").unwrap();
        let accepting = std::thread::spawn(move || (0..501).map(|_| listener.accept().unwrap().0).collect::<Vec<_>>());
        let inside = SocketAddr::from((address("db.example").await, 7000));
        let mut open = vec![std::net::TcpStream::connect(inside).unwrap()];
        tokio::time::sleep(Duration::from_millis(200)).await;
        let before = resident();
        for _ in 0..500 {
            open.push(std::net::TcpStream::connect(inside).unwrap());
        }
        let outside = tokio::task::spawn_blocking(|| accepting.join().unwrap()).await.unwrap();
        fixture.reported(|report| report.connections.len() == 501).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        eprintln!("figure: 500 idle connections {} KiB", resident() - before);
        drop((open, outside));
    }
}
