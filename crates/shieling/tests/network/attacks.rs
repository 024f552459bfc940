//! What a command tries in vain.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use crate::place::{Place, Server, has};

#[test]
fn other_names_do_not_exist_and_the_outcome_says_what_opens_them() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("curl") {
        return;
    }
    let denied = place.fails("curl -sS http://other.example.org/");
    assert!(
        denied.iter().any(|denied| denied.host == "other.example.org"
            && denied
                .instead
                .as_deref()
                .is_some_and(|instead| instead.contains("--allow-host other.example.org"))),
        "{denied:?}"
    );
    // As another command looks for a name without a way out, it is told once more.
    let again = place.fails("getent hosts other.example.org");
    assert!(
        again.iter().any(|denied| denied.host == "other.example.org"),
        "{again:?}"
    );
}

#[test]
fn addresses_are_unreachable_at_once_in_whatever_notation() {
    let server = Server::start();
    let reached = TcpListener::bind("127.0.0.1:0").expect("a port");
    reached.set_nonblocking(true).expect("a socket");
    let port = reached.local_addr().expect("bound").port();
    let place = Place::open(&[&server.host()]);
    if !has("curl") {
        return;
    }
    for host in [
        "127.0.0.1",
        "0177.0.0.1",
        "0x7f.1",
        "2130706433",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "host.internal",
        "host.internal.",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "192.0.2.1",
        "198.18.0.1",
        "198.19.255.255",
        "[2001:db8::1]",
    ] {
        place.fails(&format!("curl -sS -g -m 10 http://{host}:{port}/"));
    }
    assert!(reached.accept().is_err(), "nobody came");
}

#[test]
fn datagrams_raw_sockets_and_packets_go_nowhere() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("python3") {
        return;
    }
    let here = UdpSocket::bind("127.0.0.1:0").expect("a port");
    here.set_nonblocking(true).expect("a socket");
    let port = here.local_addr().expect("bound").port();
    // This one may be sent, on the sandbox's own loopback.
    place.run(&format!(
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", {port}))'"
    ));
    assert!(here.recv(&mut [0; 8]).is_err(), "it went to the host");
    for socket in [
        "socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP",
        "socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW",
        "socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP",
        "socket.AF_PACKET, socket.SOCK_RAW, 0x300",
        "socket.AF_NETLINK, socket.SOCK_RAW, 12",
        "socket.AF_VSOCK, socket.SOCK_STREAM",
    ] {
        place.fails(&format!("python3 -c 'import socket; socket.socket({socket})'"));
    }
    for address in ["192.0.2.1", "8.8.8.8", "169.254.169.254"] {
        place.fails(&format!(
            "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"{address}\", 53))'"
        ));
    }
}

#[test]
fn routes_and_the_interface_cannot_be_changed() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    for text in [
        "ip route add local 10.0.0.0/8 dev lo",
        "ip route add default dev lo",
        "ip link add type dummy",
        "ip addr add 10.0.0.1/8 dev lo",
        "unshare -rn true",
        "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start",
        "python3 -c 'import socket; socket.socket().bind((\"198.18.0.16\", 443))'",
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind((\"198.18.0.1\", 53))'",
    ] {
        place.fails(text);
    }
}

#[test]
fn no_command_has_a_descriptor_of_the_gateway() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    let printed = place.prints("readlink /proc/[0-9]*/fd/* | grep -c socket; true");
    assert_eq!(printed, "0", "neither its own nor those of pid 1");
    place.fails("cat /proc/1/fd/[4-9]*");
    place.fails("python3 -c 'import os; os.pidfd_open(1); import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(438, os.pidfd_open(1), 5, 0) < 0)'");
}

#[test]
fn another_sandbox_does_not_reach_it() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("python3") {
        return;
    }
    let address = place.prints("getent hosts host.internal | cut -d' ' -f1");
    let port = server.address.port();
    let connect = format!("exec 3<> /dev/tcp/{address}/{port}");
    place.prints(&connect);
    let other = Place::open(&["example.org"]);
    other.fails(&connect);
    // Nor does this host: the address is the sandbox's alone.
    let socket = std::net::TcpStream::connect_timeout(
        &format!("{address}:{port}").parse().expect("an address"),
        Duration::from_millis(300),
    );
    assert!(socket.is_err());
}

#[test]
fn no_name_leaves_that_is_not_allowed() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("python3") {
        return;
    }
    // The data would be in the name.
    let text = "python3 -c '
import socket
for i in range(200):
    try: socket.getaddrinfo(f\"secret-{i}.tunnel.example.org\", 80)
    except OSError: pass
    else: raise SystemExit(0)
raise SystemExit(1)'";
    let denied = place.fails(text);
    assert!(!denied.is_empty() && denied.len() <= 64, "bounded: {}", denied.len());
}

#[test]
fn a_request_to_go_on_to_another_host_reaches_the_server_that_was_named_and_no_other() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("python3") {
        return;
    }
    let port = server.address.port();
    let text = format!(
        "python3 -c '
import socket
s = socket.create_connection((\"host.internal\", {port}))
s.sendall(b\"CONNECT other.example.org:443 HTTP/1.1\\r\\nHost: other.example.org\\r\\n\\r\\n\")
print(s.recv(999)[-6:])'"
    );
    place.run(&text);
    let received = server.received();
    assert_eq!(received.len(), 1, "{received:?}");
    assert!(
        received[0].starts_with("CONNECT other.example.org"),
        "as it was sent: {received:?}"
    );
}
