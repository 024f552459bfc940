//! Hosts that are slow, dead or large, and protocols that fall back.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use shieling::outcome::NetworkConnection;

use crate::place::{Place, Server, has};

/// Serves each connection of a new port of the loopback on a thread of its own.
fn serve(each: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || each(stream));
        }
    });
    port
}

/// Opens a port of the loopback.
fn place(port: u16) -> Place {
    Place::open(&[&format!("host.internal:{port}")])
}

/// The one connection that a command made.
fn connection(place: &Place, text: &str) -> (NetworkConnection, shieling::outcome::Outcome) {
    let outcome = place.run(text);
    let mut network = outcome.network.clone().expect("the network was opened");
    assert_eq!(network.connections.len(), 1, "{outcome:?}");
    (network.connections.remove(0), outcome)
}

#[test]
fn a_host_that_sends_byte_by_byte_is_heard_to_its_end() {
    let port = serve(|mut stream| {
        let _ = stream.set_nodelay(true);
        let _ = stream.read(&mut [0; 1024]);
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nslow as this" {
            std::thread::sleep(Duration::from_millis(20));
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
        }
    });
    let place = place(port);
    if !has("curl") {
        return;
    }
    assert_eq!(
        place.prints(&format!("curl -sS http://host.internal:{port}/")),
        "slow as this"
    );
}

#[test]
fn a_host_that_accepts_nothing_is_given_up_in_time_and_the_outcome_says_so() {
    if !has("curl") {
        return;
    }
    // What fills its queue is answered; everything after it is not.
    let full = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&full, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    listen(&full, 0).expect("a socket of ours");
    let address: SocketAddr = getsockname(&full)
        .expect("it is bound")
        .try_into()
        .expect("an address of the internet");
    let began = Instant::now();
    let mut fillers = Vec::new();
    while let Ok(filler) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        fillers.push(filler);
        assert!(began.elapsed() < Duration::from_secs(10), "a queue of none is full");
    }
    let place = place(address.port());
    let get = format!("curl -sS -m 40 http://host.internal:{}/", address.port());
    let (connection, outcome) = connection(&place, &get);
    assert!(outcome.exit_code != Some(0), "{outcome:?}");
    assert!(
        outcome.took() < Duration::from_secs(20),
        "not the system's two minutes: {outcome:?}"
    );
    let because = connection.error.as_deref().unwrap_or_default();
    assert!(because.contains("no answer within 10 s"), "{outcome:?}");
    let hints: Vec<_> = outcome.hints.iter().map(|hint| hint.because.as_str()).collect();
    assert!(
        hints
            .iter()
            .any(|hint| hint.contains("is allowed, but it cannot be reached: no answer within 10 s")),
        "{outcome:?}"
    );
}

#[test]
fn a_host_that_breaks_off_is_told_as_that() {
    let port = serve(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
        std::thread::sleep(Duration::from_millis(50));
        let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
    });
    let place = place(port);
    if !has("curl") {
        return;
    }
    let (connection, outcome) = connection(&place, &format!("curl -sS http://host.internal:{port}/"));
    assert!(
        outcome.exit_code != Some(0) && outcome.stdout.contains("half"),
        "{outcome:?}"
    );
    assert!(
        connection
            .error
            .as_deref()
            .is_some_and(|error| error.contains("reset by peer")),
        "{outcome:?}"
    );
}

#[test]
fn a_client_that_waits_for_a_silent_host_has_its_own_deadline() {
    let port = serve(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let place = place(port);
    if !has("curl") {
        return;
    }
    let (connection, outcome) = connection(&place, &format!("curl -sS -m 1 http://host.internal:{port}/"));
    assert_eq!(outcome.exit_code, Some(28), "{outcome:?}");
    assert!(
        connection.error.is_none() && connection.bytes_in == 0 && connection.bytes_out > 0,
        "{outcome:?}"
    );
}

#[test]
fn quic_is_refused_at_once_and_tcp_is_there_to_fall_back_to() {
    let server = Server::start();
    let place = Place::open(&[&server.host(), "example.org"]);
    if !has("python3") {
        return;
    }
    let port = server.address.port();
    // What a client of HTTP/3 sees: an error of its socket, with which it goes on over TCP.
    let printed = place.prints(&format!(
        "python3 -c '
import socket, time
for name, port in ((\"example.org\", 443), (\"host.internal\", {port})):
    began = time.monotonic()
    address = socket.gethostbyname(name)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
    s.connect((address, port))
    try: s.send(b\"\\xc0\" * 1200); s.recv(1); print(\"an answer\")
    except ConnectionRefusedError: print(\"refused\", time.monotonic() - began < 1)
s = socket.create_connection((\"host.internal\", {port}))
s.sendall(b\"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n\"); print(s.recv(999)[-6:].decode())'"
    ));
    assert_eq!(printed, "refused True\nrefused True\nserved");
}

/// How much a large download is, in bytes.
fn large() -> u64 {
    shieling_testkit::extent::rounds(64 << 20, 1 << 30)
}

/// A line of `/proc/self/status`, in KiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("our own process");
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn a_large_download_takes_no_memory() {
    // The gateway is in this process, whose memory other tests use as well.
    if !shieling_testkit::is_alone("upstreams::a_large_download_takes_no_memory") {
        return;
    }
    let port = serve(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", large()).as_bytes());
        let block = vec![7; 1 << 16];
        let mut left = usize::try_from(large()).expect("64 bits");
        while left > 0 && stream.write_all(&block[..left.min(block.len())]).is_ok() {
            left -= left.min(block.len());
        }
    });
    let place = place(port);
    if !has("curl") {
        return;
    }
    // The first connection has what every later one uses.
    let get = |bytes: u64| {
        format!("curl -sS http://host.internal:{port}/ | head -c {bytes} | wc -c; exit ${{PIPESTATUS[2]}}")
    };
    place.prints(&get(1000));
    // Begins the peak anew.
    std::fs::write("/proc/self/clear_refs", "5").expect("our own process");
    let before = memory("VmRSS");
    assert_eq!(place.prints(&get(large())), large().to_string());
    let grown = memory("VmHWM").saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB for {} bytes", large());
    let network = place.run("true").network.expect("the network was opened");
    assert!(network.connections.is_empty(), "{network:?}");
}

/// A program without glibc, whose resolver knows `/etc/resolv.conf` alone.
const STATIC: &str = "
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
    int error = getaddrinfo(words[1], words[2], &hints, &found);
    if (error) return printf(\"%s\\n\", gai_strerror(error)), 2;
    int s = socket(found->ai_family, SOCK_STREAM, 0);
    if (connect(s, found->ai_addr, found->ai_addrlen)) return perror(\"connect\"), 3;
    dprintf(s, \"GET / HTTP/1.0\\r\\nHost: %s:%s\\r\\n\\r\\n\", words[1], words[2]);
    char bytes[1000] = {0};
    for (int all = 0, some; all < 999 && (some = read(s, bytes + all, 999 - all)) > 0 && !strstr(bytes, \"served\"); all += some);
    puts(strstr(bytes, \"served\") ? \"served\" : bytes);
    return 0;
}
";

#[test]
fn a_static_program_of_musl_resolves_and_connects() {
    if !has("musl-gcc") {
        return;
    }
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    let folder = tempfile::tempdir().expect("a directory");
    let source = folder.path().join("get.c");
    std::fs::write(&source, STATIC).expect("our own file");
    let built = std::process::Command::new("musl-gcc")
        .args(["-static", "-o"])
        .arg(place.workspace.path().join("get"))
        .arg(&source)
        .output()
        .expect("it is there");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let port = server.address.port();
    assert_eq!(place.prints(&format!("./get host.internal {port}")), "served");
    let denied = place.fails("./get other.example.org 80");
    assert!(
        denied.iter().any(|denied| denied.host == "other.example.org"),
        "{denied:?}"
    );
}
