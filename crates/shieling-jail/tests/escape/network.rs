//! The network: `none` reaches nothing at all, `loopback` reaches itself, `host` reaches what the host
//! does; and in none of them abstract sockets of the host.

mod unix;

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use shieling::environment::Network;

use super::support::{Case, Checked, Field, LONGEST, case, check};

use unix::{abstract_sockets, each_other, path_sockets};

pub(crate) const CASES: &[Case] = &[
    case(
        "without a network, nothing of the host's loopback is reached",
        |field| nothing_reached(field, Network::None),
    ),
    case(
        "with a loopback of its own, nothing of the host's is reached",
        |field| nothing_reached(field, Network::Loopback),
    ),
    case("without a network, nothing can be sent anywhere", nowhere),
    case("without a network, the interface cannot be switched on", switched_off),
    case("raw sockets and packets cannot be made", raw),
    case("names are not resolved without a network", names),
    case("abstract sockets of the host are out of reach", abstract_sockets),
    case("sockets of the host by their paths are not there", path_sockets),
    case("a server and its client work on a loopback of its own", own_loopback),
    case(
        "the host's loopback works where the host's network was asked for",
        host_network,
    ),
    case("two sandboxes do not reach each other", each_other),
];

/// Servers of the host's, which must not get a byte.
struct Servers {
    stream: [TcpListener; 2],
    datagram: [UdpSocket; 2],
}

impl Servers {
    fn start() -> Checked<Self> {
        let any = |six: bool| -> SocketAddr {
            if six {
                ([0, 0, 0, 0, 0, 0, 0, 1], 0).into()
            } else {
                ([127, 0, 0, 1], 0).into()
            }
        };
        let four = TcpListener::bind(any(false))?;
        // Where there is no IPv6, the other address of the network's own is taken.
        let six = TcpListener::bind(any(true)).or_else(|_| TcpListener::bind(any(false)))?;
        let servers = Self {
            stream: [four, six],
            datagram: [
                UdpSocket::bind(any(false))?,
                UdpSocket::bind(any(true)).or_else(|_| UdpSocket::bind(any(false)))?,
            ],
        };
        for one in &servers.datagram {
            one.set_read_timeout(Some(LONGEST))?;
        }
        Ok(servers)
    }

    /// Nobody has come, and nothing has: the first that comes to each is ours, which comes now. What was sent
    /// before would stand before it.
    fn are_untouched(&self) -> Checked {
        for server in &self.stream {
            let own = TcpStream::connect(server.local_addr()?)?.local_addr()?;
            let came = server.accept();
            check(came.as_ref().is_ok_and(|(_, from)| *from == own), || {
                format!("ESCAPED: somebody connected: {came:?}")
            })?;
        }
        for server in &self.datagram {
            let here = server.local_addr()?;
            let own = UdpSocket::bind(SocketAddr::new(here.ip(), 0))?;
            own.send_to(b"ours", here)?;
            let came = server.recv_from(&mut [0; 16]);
            let from = own.local_addr()?;
            check(came.as_ref().is_ok_and(|(_, sender)| *sender == from), || {
                format!("ESCAPED: something came: {came:?}")
            })?;
        }
        Ok(())
    }
}

/// A text that has Python do this.
fn python(code: &str) -> String {
    format!("python3 -c '\nimport socket, os, sys\n{code}'")
}

fn nothing_reached(field: &Field<'_>, network: Network) -> Checked {
    let place = field.place().with(|asked| asked.network = network).start()?;
    let servers = Servers::start()?;
    for server in &servers.stream {
        let (host, port) = (server.local_addr()?.ip(), server.local_addr()?.port());
        place.refused(&format!("exec 3<> /dev/tcp/{host}/{port} && echo x >&3"))?;
        if field.needs("curl").is_ok() {
            let host = if host.is_ipv6() {
                format!("[{host}]")
            } else {
                host.to_string()
            };
            for option in [
                "",
                "--http2-prior-knowledge",
                "--proxy socks5://127.0.0.1:1",
                "--interface lo",
            ] {
                place.refused(&format!("curl -sS -m 2 {option} http://{host}:{port}/"))?;
            }
        }
        if field.needs("python3").is_ok() {
            place.refused(&python(&format!(
                "socket.create_connection((\"{host}\", {port}), 2).send(b\"x\")"
            )))?;
            // By the opening packet itself.
            place.refused(&python(&format!(
                "s = socket.socket(socket.AF_INET6 if \":\" in \"{host}\" else socket.AF_INET, socket.SOCK_STREAM)\n\
                     sys.exit(s.sendto(b\"x\", 0x20000000, (\"{host}\", {port})) != 1)"
            )))?;
        }
    }
    for server in &servers.datagram {
        let (host, port) = (server.local_addr()?.ip(), server.local_addr()?.port());
        // On a loopback of its own this goes out, to nobody.
        place.attempt(&format!("echo x > /dev/udp/{host}/{port}"))?;
        if field.needs("python3").is_ok() {
            let family = if host.is_ipv6() {
                "socket.AF_INET6"
            } else {
                "socket.AF_INET"
            };
            place.attempt(&python(&format!(
                "socket.socket({family}, socket.SOCK_DGRAM).sendto(b\"x\", (\"{host}\", {port}))"
            )))?;
        }
    }
    servers.are_untouched()
}

fn nowhere(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = field.place().with(|asked| asked.network = Network::None).start()?;
    for address in [
        "127.0.0.1",
        "192.0.2.1",
        "169.254.169.254",
        "10.0.0.1",
        "255.255.255.255",
        "224.0.0.1",
    ] {
        place.refused(&format!("timeout 3 bash -c 'exec 3<> /dev/tcp/{address}/80'"))?;
        place.refused(&python(&format!("s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)\ns.sendto(b\"x\", (\"{address}\", 53))"),
        ))?;
    }
    for address in ["::1", "2001:db8::1", "fe80::1", "ff02::1"] {
        place.refused(&python(&format!(
            "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b\"x\", (\"{address}\", 53))"
        )))?;
        place.refused(&python(&format!(
            "socket.socket(socket.AF_INET6, socket.SOCK_STREAM).connect((\"{address}\", 80))"
        )))?;
    }
    for code in [
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM).bind((\"127.0.0.1\", 0))",
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM).bind((\"0.0.0.0\", 8080))",
        // MPTCP, SCTP, DCCP, UDP-Lite: TCP by other names.
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect((\"127.0.0.1\", 80))",
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).connect((\"127.0.0.1\", 80))",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136).sendto(b\"x\", (\"127.0.0.1\", 80))",
    ] {
        place.refused(&python(code))?;
    }
    // What needs no network works.
    place.works(&python(
        "a, b = socket.socketpair()\na.send(b\"x\")\nassert b.recv(1) == b\"x\"",
    ))?;
    place.works(&python("s = socket.socket(socket.AF_UNIX)\ns.bind(\"/tmp/s\")\ns.listen()\nc = socket.socket(socket.AF_UNIX)\nc.connect(\"/tmp/s\")\nc.send(b\"x\")\nassert s.accept()[0].recv(1) == b\"x\"",
    ))?;
    place.works(&python("s = socket.socket(socket.AF_UNIX)\ns.bind(b\"\\0own\")\ns.listen()\nc = socket.socket(socket.AF_UNIX)\nc.connect(b\"\\0own\")",
    ))
    .map(drop)
}

fn switched_off(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = field.place().with(|asked| asked.network = Network::None).start()?;
    place.refused_with(
        &python("import fcntl, struct\nfcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, struct.pack(\"16sh22x\", b\"lo\", 0x49))",
        ),
        &["Operation not permitted"],
    )?;
    if field.needs("ip").is_ok() {
        for text in [
            "ip link set lo up",
            "ip addr add 127.0.0.2/8 dev lo",
            "ip link add d type dummy",
            "ip route add default dev lo",
            "ip tuntap add t mode tun",
        ] {
            place.refused(text)?;
        }
    }
    let interfaces = place.works("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | tr '\\n' ' '")?;
    // The kernel may have its own kinds of tunnels in each network; none of them is up.
    check(!interfaces.contains("eth") && interfaces.contains("lo"), || {
        format!("interfaces: {interfaces}")
    })?;
    place
        .works(&python("assert \"lo\" in [name for _, name in socket.if_nameindex()]"))
        .map(drop)
}

fn raw(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    for network in [Network::None, Network::Loopback, Network::Host] {
        let place = field.place().with(|asked| asked.network = network).start()?;
        for protocol in [1, 6, 17, 58, 255] {
            for family in ["AF_INET", "AF_INET6"] {
                place.refused_with(
                    &python(&format!("socket.socket(socket.{family}, socket.SOCK_RAW, {protocol})")),
                    &["Operation not permitted", "Protocol not supported"],
                )?;
            }
        }
        place.refused_with(
            &python("socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
            &["Operation not permitted"],
        )?;
        // Not even with the host's network may the host's settings be changed.
        place.refused_with(
            &python("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).setsockopt(socket.SOL_SOCKET, 25, b\"lo\\0\" * 4) or socket.socket(socket.AF_INET, socket.SOCK_DGRAM).setsockopt(socket.SOL_SOCKET, 36, 7)"),
            &["Operation not permitted"],
        )?;
    }
    let place = field.place().start()?;
    place.refused(&python("socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1).sendto(b\"\\x08\\0\\0\\0\\0\\0\\0\\0\", (\"127.0.0.1\", 0))"))?;
    if field.needs("ping").is_ok() {
        place.refused("ping -c 1 -W 1 127.0.0.1")?;
    }
    Ok(())
}

fn names(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    place.refused("getent hosts example.com")?;
    // No server of the host's is named: nobody listens where this one is said to be.
    place.works(
        "[ \"$(grep -c nameserver /etc/resolv.conf)\" = 1 ] && grep -qx 'nameserver 127.0.0.1' /etc/resolv.conf",
    )?;
    if field.needs("python3").is_ok() {
        place.refused(&python("socket.getaddrinfo(\"example.com\", 80)"))?;
        place.refused(&python("socket.gethostbyname(\"example.com\")"))?;
        place.works(&python("socket.gethostbyname(\"localhost\")"))?;
    }
    place
        .works("getent hosts localhost && getent passwd $(id -un) && getent hosts $(hostname)")
        .map(drop)
}

fn own_loopback(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = field.place().with(|asked| asked.network = Network::Loopback).start()?;
    if field.needs("curl").is_ok() {
        place.works(
            "echo served > page; python3 -m http.server --bind 127.0.0.1 8765 > /dev/null 2>&1 & \
             for i in $(seq 100); do got=$(curl -s http://127.0.0.1:8765/page) && break; sleep 0.05; done; kill %1; [ \"$got\" = served ]",
        )?;
    }
    for (family, address) in [("AF_INET", "127.0.0.1"), ("AF_INET", "127.9.9.9"), ("AF_INET6", "::1")] {
        place.works(&python(&format!("s = socket.socket(socket.{family})\ns.bind((\"{address}\", 0))\ns.listen()\nc = socket.create_connection(s.getsockname()[:2], 5)\nc.send(b\"x\")\nassert s.accept()[0].recv(1) == b\"x\""),
        ))?;
        place.works(&python(&format!("s = socket.socket(socket.{family}, socket.SOCK_DGRAM)\ns.bind((\"{address}\", 0))\ns.sendto(b\"x\", s.getsockname())\nassert s.recv(1) == b\"x\""),
        ))?;
    }
    // By its name, and from one command to the next.
    place.works(&python("s = socket.create_server((\"localhost\", 0))\nsocket.create_connection((\"localhost\", s.getsockname()[1]), 5)"))?;
    for address in ["192.0.2.1", "169.254.169.254", "8.8.8.8"] {
        place.refused(&python(&format!("socket.create_connection((\"{address}\", 53), 2)")))?;
    }
    Ok(())
}

fn host_network(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = field.place().with(|asked| asked.network = Network::Host).start()?;
    let server = TcpListener::bind(("127.0.0.1", 0))?;
    let port = server.local_addr()?.port();
    place.works(&python(&format!(
        "socket.create_connection((\"127.0.0.1\", {port}), 5).send(b\"x\")"
    )))?;
    place.works(&format!("exec 3<> /dev/tcp/127.0.0.1/{port} && echo x >&3"))?;
    check(server.accept().is_ok(), || "nobody came".to_owned())?;
    let confinement = field.runtime.block_on(place.sandbox.start())?;
    check(
        !confinement
            .enforced
            .iter()
            .any(|layer| layer == "network" || layer == "landlock.tcp"),
        || format!("it claims what does not hold: {confinement:?}"),
    )?;
    // Only the network is the host's.
    place.refused("[ \"$(cat /proc/1/cmdline | tr -d '\\0')\" != shieling-jail ]")?;
    place.refused("[ $(uname -n) != shieling ]").map(drop)
}
