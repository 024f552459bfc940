//! The loops over sockets of the sandbox: DNS, connections, datagrams.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::connection;
use crate::dns::{self, Asked, Finding, Question};
use crate::listeners::{Endpoint, Listener};
use crate::name::{HOST_INTERNAL, HostName};
use crate::names::Entry;
use crate::outside::{OpenError, Target};
use crate::permit::Verdict;
use crate::record::End;
use crate::rule::{DEFAULT_PORTS, Protocol};
use crate::shared::{Shared, option_for};

/// How long a DNS client over TCP may be silent.
const DNS_IDLE: Duration = Duration::from_secs(30);

/// How long binding the sockets of a name may take.
const LISTEN_WAIT: Duration = Duration::from_secs(5);

/// How long a UDP flow lives without a datagram.
const FLOW_IDLE: Duration = Duration::from_secs(60);

/// How much of a name that no host has is recorded, in characters.
const NAME_SHOWN_MAX: usize = 253;

/// The longest datagram, in bytes.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Datagrams of one flow that wait. Further ones are lost, as UDP may.
const DATAGRAMS_WAITING: usize = 32;

/// The pause after an error of a socket, which fails again at once while descriptors are used up.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// The queries over UDP that are answered at once. Most need no wait.
const QUERIES_AT_ONCE: usize = 64;

/// The next connection. What serves earlier ones and has ended is forgotten meanwhile.
async fn accept(listener: &TcpListener, serving: &mut JoinSet<()>) -> TcpStream {
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => return stream,
                Err(_) => sleep(ERROR_PAUSE).await,
            },
            Some(_) = serving.join_next() => {}
        }
    }
}

/// Accepts connections, each of which ends with this loop.
pub(crate) async fn connections(shared: Arc<Shared>, listener: TcpListener) {
    let mut serving = JoinSet::new();
    loop {
        let stream = accept(&listener, &mut serving).await;
        let Ok(local) = stream.local_addr() else { continue };
        let limits = &shared.limits;
        let refused = if shared.recorder.exhausted() {
            Some(("the bytes that the gateway may pass on are used up".to_owned(), None))
        } else if !shared.arrivals.take(Instant::now()) {
            let (burst, rate) = (limits.burst, limits.rate);
            let because = format!(
                "too many connections were opened in a short time: at most {burst} at once, then {rate} a second"
            );
            Some((
                because,
                Some("keep connections open for several requests, or open them more slowly"),
            ))
        } else {
            None
        };
        let slot = Arc::clone(&shared.connections).try_acquire_owned();
        match (refused, slot) {
            (None, Ok(slot)) => {
                let serve = connection::serve(Arc::clone(&shared), stream, local);
                serving.spawn(async move {
                    serve.await;
                    drop(slot);
                });
            }
            (refused, _) => {
                let (because, instead) = refused.unwrap_or_else(|| {
                    let most = limits.connections;
                    let because = format!("too many connections are open: at most {most}");
                    (
                        because,
                        Some("close those that are not used any more, or open fewer at the same time"),
                    )
                });
                shared.deny(
                    shared.target(local.ip()).to_string(),
                    Some(local.port()),
                    because,
                    instead.map(str::to_owned),
                );
                let _ = stream.set_zero_linger();
            }
        }
    }
}

/// Answers queries over UDP.
pub(crate) async fn dns_udp(shared: Arc<Shared>, socket: UdpSocket) {
    let socket = Arc::new(socket);
    let slots = Arc::new(Semaphore::new(QUERIES_AT_ONCE));
    let mut answering = JoinSet::new();
    let mut buffer = vec![0; dns::QUERY_BYTES_MAX];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            Some(_) = answering.join_next() => continue,
        };
        let Ok((length, peer)) = received else {
            sleep(ERROR_PAUSE).await;
            continue;
        };
        let question = match dns::read(&buffer[..length]) {
            Ok(question) => question,
            Err(reply) => {
                if let Some(reply) = reply {
                    let _ = socket.send_to(&reply, peer).await;
                }
                continue;
            }
        };
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let (shared, socket) = (Arc::clone(&shared), Arc::clone(&socket));
        answering.spawn(async move {
            if let Some(reply) = question.reply(&find(&shared, &question).await) {
                let _ = socket.send_to(&reply, peer).await;
            }
            drop(slot);
        });
    }
}

/// Answers queries over TCP.
pub(crate) async fn dns_tcp(shared: Arc<Shared>, listener: TcpListener) {
    let mut serving = JoinSet::new();
    loop {
        let stream = accept(&listener, &mut serving).await;
        let Ok(slot) = Arc::clone(&shared.dns_connections).try_acquire_owned() else {
            continue;
        };
        let shared = Arc::clone(&shared);
        serving.spawn(async move {
            let _ = dns_stream(&shared, stream).await;
            drop(slot);
        });
    }
}

/// Answers the queries of one connection.
async fn dns_stream(shared: &Arc<Shared>, mut stream: TcpStream) -> io::Result<()> {
    loop {
        let query = timeout(DNS_IDLE, async {
            let length = usize::from(stream.read_u16().await?);
            if length > dns::QUERY_BYTES_MAX {
                return Err(io::Error::other("a query of this length"));
            }
            let mut query = vec![0; length];
            stream.read_exact(&mut query).await?;
            Ok(query)
        });
        let query = query.await??;
        let reply = match dns::read(&query) {
            Ok(question) => question.reply(&find(shared, &question).await),
            Err(reply) => reply,
        };
        let Some(reply) = reply else { return Ok(()) };
        let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
        let mut message = length.to_be_bytes().to_vec();
        message.extend(reply);
        timeout(DNS_IDLE, stream.write_all(&message)).await??;
    }
}

/// Decides what a question leads to.
async fn find(shared: &Arc<Shared>, question: &Question) -> Finding {
    let name = match &question.asked {
        Asked::Name(name) => name,
        Asked::Reverse(address) => return shared.names.at(*address).map_or(Finding::NoName, Finding::Pointer),
        Asked::NoHost(text) => {
            let shown: String = text.chars().take(NAME_SHOWN_MAX).collect();
            shared.deny(shown, None, "this is not the name of a host".to_owned(), None);
            return Finding::NoName;
        }
    };
    if name.as_str() == "localhost" || name.as_str().ends_with(".localhost") {
        return Finding::Addresses {
            v4: Ipv4Addr::LOCALHOST,
            v6: Some(Ipv6Addr::LOCALHOST),
        };
    }
    let unknown = match shared.permit.lookup(name) {
        Verdict::Allow => false,
        Verdict::Ask(_) if shared.questions.can_ask() => false,
        Verdict::Ask(because) => {
            let because = because.unwrap_or_else(|| format!("nobody is there to allow `{name}`"));
            shared.deny(name.to_string(), None, because, instead(name));
            return Finding::NoName;
        }
        Verdict::Deny { because, instead } => {
            let because = because.unwrap_or_else(|| format!("a rule refuses `{name}`"));
            shared.deny(name.to_string(), None, because, instead);
            return Finding::NoName;
        }
        Verdict::Unnamed if is_derived(shared, name) => return Finding::NoName,
        Verdict::Unnamed if shared.questions.can_ask() && name.as_str() != HOST_INTERNAL => true,
        Verdict::Unnamed => {
            shared.deny(
                name.to_string(),
                None,
                format!("no rule allows `{name}`"),
                instead(name),
            );
            return Finding::NoName;
        }
    };
    if !question.for_address {
        return Finding::NoData;
    }
    let Some(entry) = shared.names.entry(name, unknown) else {
        shared.deny(name.to_string(), None, "too many names were looked up".to_owned(), None);
        return Finding::Failure;
    };
    match listen(shared, &entry, unknown).await {
        Ok(()) => Finding::Addresses {
            v4: entry.v4,
            v6: entry.v6,
        },
        Err(_) => Finding::Failure,
    }
}

/// The option that would allow a name.
fn instead(name: &HostName) -> Option<String> {
    let target = Target::of(name.clone());
    match matches!(target, Target::Internal) || name.is_under(&HostName::internal()) {
        true => Some(format!("`--allow-host {HOST_INTERNAL}:PORT`")),
        false => option_for(&target, Protocol::Tcp, DEFAULT_PORTS[0]),
    }
}

/// Whether a resolver or a program made a name from an allowed one, so that it is no attempt at another host: with a
/// search domain behind it, or a service before it (`_http._tcp.deb.debian.org`).
fn is_derived(shared: &Shared, name: &HostName) -> bool {
    let allowed = |text: &str| {
        HostName::parse(text)
            .is_ok_and(|name| !matches!(shared.permit.lookup(&name), Verdict::Unnamed | Verdict::Deny { .. }))
    };
    let mut service = name.as_str();
    while let Some((_, rest)) = service.split_once('.').filter(|(label, _)| label.starts_with('_')) {
        service = rest;
    }
    let searched = shared.search.iter().filter(|domain| name.is_under(domain));
    (service != name.as_str() && allowed(service))
        || searched
            .map(|domain| &name.as_str()[..name.as_str().len() - domain.as_str().len() - 1])
            .any(allowed)
}

/// Has sockets bound at the addresses of a name, once. They are never closed: a program may keep the address.
async fn listen(shared: &Arc<Shared>, entry: &Entry, unknown: bool) -> io::Result<()> {
    let Some(listeners) = &shared.listeners else {
        return Ok(());
    };
    let bind = async || {
        let endpoints = endpoints(shared, entry, unknown);
        let slots = u32::try_from(endpoints.len()).ok();
        let slots = slots.and_then(|slots| shared.name_sockets.try_acquire_many(slots).ok());
        let Some(slots) = slots else {
            let most = shared.limits.name_sockets;
            let because = format!("too many names were looked up: at most {most} sockets are made for them");
            let instead = "allow the hosts that are needed by their names: these always have theirs";
            shared.deny(entry.name.to_string(), None, because, Some(instead.to_owned()));
            return Err(io::ErrorKind::QuotaExceeded.into());
        };
        for listener in timeout(LISTEN_WAIT, listeners.listen(&endpoints)).await?? {
            match listener {
                Listener::Tcp(listener) => start_connections(shared, listener)?,
                Listener::Udp(socket) => start_datagrams(shared, socket)?,
            }
        }
        slots.forget();
        Ok::<(), io::Error>(())
    };
    entry.listening.get_or_try_init(bind).await?;
    Ok(())
}

/// The endpoints at which a name may be reached, now or after a question.
pub(crate) fn endpoints(shared: &Shared, entry: &Entry, unknown: bool) -> Vec<Endpoint> {
    let mut ports: BTreeSet<(Protocol, u16)> = shared.permit.ports(&entry.name);
    if unknown {
        ports.extend(DEFAULT_PORTS.map(|port| (Protocol::Tcp, port)));
    }
    let addresses = [Some(IpAddr::V4(entry.v4)), entry.v6.map(IpAddr::V6)];
    let each = |address: IpAddr| {
        ports.iter().map(move |(protocol, port)| Endpoint {
            protocol: *protocol,
            address: SocketAddr::new(address, *port),
        })
    };
    addresses.into_iter().flatten().flat_map(each).collect()
}

/// Starts the loop over a listening socket. Within the runtime.
pub(crate) fn start_connections(shared: &Arc<Shared>, listener: std::net::TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    shared.scope.spawn(connections(Arc::clone(shared), listener));
    Ok(())
}

/// Starts the loop over a socket of datagrams. Within the runtime.
pub(crate) fn start_datagrams(shared: &Arc<Shared>, socket: std::net::UdpSocket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let socket = UdpSocket::from_std(socket)?;
    shared.scope.spawn(datagrams(Arc::clone(shared), socket));
    Ok(())
}

/// Passes the datagrams of each peer in the sandbox on in a flow of its own, so that replies find their way back.
async fn datagrams(shared: Arc<Shared>, socket: UdpSocket) {
    let Ok(local) = socket.local_addr() else { return };
    let target = shared.target(local.ip());
    let socket = Arc::new(socket);
    let mut flows: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut passing: JoinSet<SocketAddr> = JoinSet::new();
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            Some(ended) = passing.join_next() => {
                if let Ok(peer) = ended {
                    flows.remove(&peer);
                }
                continue;
            }
        };
        let Ok((length, peer)) = received else {
            sleep(ERROR_PAUSE).await;
            continue;
        };
        let datagram = buffer[..length].to_vec();
        if let Some(flow) = flows.get(&peer) {
            let _ = flow.try_send(datagram);
            continue;
        }
        let Ok(slot) = Arc::clone(&shared.flows).try_acquire_owned() else {
            shared.deny(
                target.to_string(),
                Some(local.port()),
                "too many UDP flows are open".to_owned(),
                None,
            );
            continue;
        };
        let (sender, waiting) = mpsc::channel(DATAGRAMS_WAITING);
        let _ = sender.try_send(datagram);
        flows.insert(peer, sender);
        let flow = flow(
            Arc::clone(&shared),
            Arc::clone(&socket),
            target.clone(),
            local.port(),
            peer,
            waiting,
        );
        passing.spawn(async move {
            flow.await;
            drop(slot);
            peer
        });
    }
}

/// Passes the datagrams of one peer on, until there are none for a while.
async fn flow(
    shared: Arc<Shared>,
    inside: Arc<UdpSocket>,
    target: Target,
    port: u16,
    peer: SocketAddr,
    mut waiting: mpsc::Receiver<Vec<u8>>,
) {
    if shared.recorder.exhausted() || !shared.admit(&target, Protocol::Udp, port).await {
        return;
    }
    let live = shared.recorder.begin(target.to_string(), port, Protocol::Udp);
    let outside = match shared.outside.open_udp(&target, port, &shared.permit).await {
        Ok((outside, address)) => {
            live.set_address(Some(address));
            outside
        }
        Err(OpenError::Unresolved(text)) => return live.finish(End::Unresolved(text)),
        Err(OpenError::Unreachable(text)) => return live.finish(End::Unreachable(text)),
        Err(OpenError::Refused { because, instead }) => {
            shared.deny(target.to_string(), Some(port), because, instead);
            return live.finish(End::Refused);
        }
    };
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    let end = loop {
        let within_limit = tokio::select! {
            datagram = waiting.recv() => match datagram {
                Some(datagram) => {
                    let _ = outside.send(&datagram).await;
                    live.count_out(datagram.len() as u64)
                }
                None => break End::Closed,
            },
            received = outside.recv(&mut buffer) => match received {
                Ok(length) => {
                    let _ = inside.send_to(&buffer[..length], peer).await;
                    live.count_in(length as u64)
                }
                Err(error) => break End::Failed(error.to_string()),
            },
            () = sleep(FLOW_IDLE) => break End::Closed,
        };
        if !within_limit {
            break End::ByteLimit;
        }
    };
    live.finish(end);
}
