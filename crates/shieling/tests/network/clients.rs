//! Programs that need no variable to use an opened network.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};

use crate::outside::own_address;
use crate::place::{Place, Server, has};

#[test]
fn programs_that_know_no_proxy_reach_a_host_that_is_opened() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    let url = format!("http://{}/", server.host());
    let port = server.address.port();
    let raw = format!(
        "python3 -c 'import socket; s = socket.create_connection((\"host.internal\", {port})); \
         s.sendall(b\"GET / HTTP/1.1\\r\\nHost: host.internal:{port}\\r\\n\\r\\n\"); print(s.recv(999)[-6:].decode())'"
    );
    let fetch = format!("node -e 'fetch(\"{url}\").then(r => r.text()).then(console.log)'");
    let http = format!(
        "node -e 'require(\"http\").get(\"{url}\", r => {{ r.setEncoding(\"utf8\"); r.on(\"data\", d => console.log(d)) }})'"
    );
    let urllib =
        format!("python3 -c 'import urllib.request; print(urllib.request.urlopen(\"{url}\").read().decode())'");
    let requests = format!("curl -sS {url} --next -sS {url} | tail -c 6");
    let bash = format!(
        "exec 3<> /dev/tcp/host.internal/{port}; printf 'GET / HTTP/1.1\\r\\nHost: host.internal:{port}\\r\\n\\r\\n' >&3; \
         timeout 1 cat <&3 | tail -c 6; true"
    );
    let java = format!(
        "cat > T.java <<'X'\nclass T {{ public static void main(String[] a) throws Exception {{ \
         System.out.println(new String(new java.net.URL(\"{url}\").openStream().readAllBytes())); }} }}\nX\njava T.java"
    );
    for (program, text) in [
        ("curl", &requests),
        ("wget", &format!("wget -qO- {url}")),
        ("python3", &raw),
        ("python3", &urllib),
        ("node", &fetch),
        ("node", &http),
        ("bash", &bash),
        ("java", &java),
    ] {
        if has(program) {
            assert_eq!(place.prints(text), "served", "{text}");
        }
    }
}

#[test]
fn the_outcome_says_what_was_reached() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("curl") {
        return;
    }
    let outcome = place.run(&format!("curl -sS http://{0}/ http://{0}/", server.host()));
    let network = outcome.network.expect("the network was opened");
    let [connection] = network.connections.as_slice() else {
        panic!("one host: {network:?}");
    };
    assert_eq!(
        (connection.host.as_str(), connection.port),
        ("host.internal", server.address.port())
    );
    assert!(connection.bytes_in >= 12 && connection.bytes_out > 0, "{connection:?}");
    assert_eq!(
        (network.denied.len(), connection.error.as_ref()),
        (0, None),
        "{network:?}"
    );
    // Another command's outcome has nothing of it.
    let quiet = place.run("true").network.expect("the network was opened");
    assert_eq!((quiet.connections.len(), quiet.denied.len()), (0, 0), "{quiet:?}");
}

#[test]
fn every_protocol_passes_on_a_port_that_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // The server speaks first.
            let _ = stream.write_all(b"hello\n");
            let mut said = String::new();
            let _ = stream.read_to_string(&mut said);
            let _ = stream.write_all(said.to_uppercase().as_bytes());
        }
    });
    let place = Place::open(&[&format!("host.internal:{port}")]);
    if !has("python3") {
        return;
    }
    let printed = place.prints(&format!(
        "python3 -c 'import socket; s = socket.create_connection((\"host.internal\", {port})); print(s.recv(99).decode(), end=\"\"); \
         s.sendall(b\"over\"); s.shutdown(1); print(s.recv(99).decode())'"
    ));
    assert_eq!(printed, "hello\nOVER");
}

#[test]
fn datagrams_pass_where_they_are_named() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok((count, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&bytes[..count], from);
        }
    });
    if !has("python3") {
        return;
    }
    let send = format!(
        "python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10); \
         s.connect((\"host.internal\", {port})); s.send(b\"echo\"); print(s.recv(99).decode())'"
    );
    let named = Place::open(&[&format!("udp:host.internal:{port}")]);
    assert_eq!(named.prints(&send), "echo");
    let other = Place::open(&[&format!("host.internal:{port}")]);
    other.fails(&send);
}

#[test]
fn a_programs_own_servers_keep_working() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("python3") || !has("curl") {
        return;
    }
    let port = server.address.port();
    // On the same port of the sandbox's own loopback, and on another one of all its addresses.
    for (address, port) in [("127.0.0.1", port), ("0.0.0.0", port ^ 1), ("::", port ^ 1)] {
        let printed = place.prints(&format!(
            "mkdir -p own; echo own > own/index.html; python3 -m http.server --directory own --bind {address} {port} > /dev/null 2>&1 & \
             for i in $(seq 100); do curl -s http://127.0.0.1:{port}/ && break; sleep 0.1; done; \
             curl -sS http://{}/; kill %1",
            server.host()
        ));
        assert_eq!(printed, "own\nserved", "{address}");
    }
}

#[test]
fn a_server_on_all_addresses_at_the_port_of_a_host_is_refused_with_an_explanation() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("python3") {
        return;
    }
    let port = server.address.port();
    for address in ["0.0.0.0", "::"] {
        let outcome = place.run(&format!("python3 -m http.server --bind {address} {port}"));
        assert_eq!(outcome.exit_code, Some(1), "{outcome:?}");
        let hint = outcome
            .hints
            .iter()
            .find(|hint| hint.because.contains(&format!("port {port}")));
        let instead = hint.map(|hint| hint.instead.as_str());
        assert!(
            instead.is_some_and(|instead| instead.contains(&format!("127.0.0.1:{port}"))),
            "{outcome:?}"
        );
    }
}

#[test]
fn an_allowed_host_that_is_not_reached_is_told_as_that() {
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let closed = format!("host.internal:{}", closed.expect("a port").port());
    let place = Place::open(&["nosuch.example.invalid", &closed]);
    if !has("curl") {
        return;
    }
    for (url, because) in [
        (
            "http://nosuch.example.invalid/",
            "`nosuch.example.invalid:80` is allowed, but it has no address",
        ),
        (
            "https://nosuch.example.invalid/",
            "`nosuch.example.invalid:443` is allowed, but it has no address",
        ),
        (
            &*format!("http://{closed}/"),
            &*format!("`{closed}` is allowed, but it cannot be reached: Connection refused"),
        ),
    ] {
        let outcome = place.run(&format!("curl -sS -m 20 {url}"));
        let hints: Vec<_> = outcome.hints.iter().map(|hint| hint.because.as_str()).collect();
        assert!(hints.len() == 1 && hints[0].contains(because), "{url}: {outcome:?}");
    }
}

#[test]
fn an_address_and_a_range_are_opened_by_port() {
    let Some(address) = own_address() else { return };
    let listener = TcpListener::bind((address, 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"there");
        }
    });
    let connect = format!("exec 3<> /dev/tcp/{address}/{port} && timeout 5 cat <&3");
    let std::net::IpAddr::V4(four) = address else { return };
    let [a, b, c, _] = four.octets();
    let mut rules = vec![format!("{address}:{port}"), format!("{a}.{b}.{c}.0/24:{port}")];
    if four.is_private() {
        // A wider one opens public addresses alone, unless all of it is private.
        rules.push(format!("{a}.{b}.0.0/16:{port}"));
    }
    for rule in rules {
        let place = Place::open(&[&rule]);
        assert_eq!(place.prints(&connect), "there", "{rule}");
    }
    let place = Place::open(&[&format!("{address}:{}", port ^ 1)]);
    place.fails(&connect);
    assert!(TcpStream::connect((address, port)).is_ok(), "the server is still there");
}

#[test]
fn five_hundred_connections_at_once() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("python3") {
        return;
    }
    let port = server.address.port();
    let printed = place.prints(&format!(
        "python3 -c '
import socket
all = [socket.create_connection((\"host.internal\", {port})) for _ in range(500)]
for s in all: s.sendall(b\"GET / HTTP/1.1\\r\\nHost: host.internal:{port}\\r\\n\\r\\n\")
print(sum(s.recv(999).endswith(b\"served\") for s in all))'"
    ));
    assert_eq!(printed, "500");
}

#[test]
fn a_sandbox_that_was_ended_gets_a_gateway_of_its_own_again() {
    let server = Server::start();
    let place = Place::open(&[&server.host()]);
    if !has("curl") {
        return;
    }
    let get = format!("curl -sS http://{}/", server.host());
    assert_eq!(place.prints(&get), "served");
    place.end();
    assert_eq!(place.prints(&get), "served");
}
