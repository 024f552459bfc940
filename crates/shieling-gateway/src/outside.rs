//! Connections to the outside: resolution, the choice of addresses, the user's proxy.
//!
//! The addresses that were judged are the ones that are connected to: a name is resolved once for each connection.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::address::{self, AddressClass};
use crate::name::{HOST_INTERNAL, HostName};
use crate::permit::{Permit, Verdict, with_reason};
use crate::proxy::{NoProxy, Proxy};
use crate::redact::Redactor;
use crate::resolve::Resolver;
use crate::rule::Protocol;

/// How long one address may take before the next one is tried beside it (RFC 8305).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// The most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;

/// The longest answer of a proxy to `CONNECT`, in bytes.
const PROXY_HEAD_BYTES_MAX: usize = 16 * 1024;

/// The host at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A name.
    Name(HostName),
    /// This machine's loopback.
    Internal,
    /// An address that a rule names.
    Address(IpAddr),
}

impl Target {
    /// The target of a name that has an address in the sandbox.
    pub(crate) fn of(name: HostName) -> Self {
        if name.as_str() == HOST_INTERNAL {
            Self::Internal
        } else {
            Self::Name(name)
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::Internal => f.write_str(HOST_INTERNAL),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// A connection to the outside.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) stream: TcpStream,
    /// The address of the host; `None` if a proxy connects to it.
    pub(crate) address: Option<SocketAddr>,
    /// Requests go to the proxy itself, in absolute form.
    pub(crate) forward_proxy: bool,
}

/// Why there is no connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The name has no address.
    Unresolved(String),
    /// No address answered, or the proxy did not connect.
    Unreachable(String),
    /// All addresses of the name are ones that a public name must not lead to, or that a rule refuses.
    Refused {
        /// The reason.
        because: String,
        /// What to do instead: the option that would allow it, or what the rule says.
        instead: Option<String>,
    },
}

/// The addresses of a target that may be connected to, and why others may not.
#[derive(Debug)]
struct Addresses {
    addresses: Vec<SocketAddr>,
    left_out: Option<OpenError>,
}

impl Addresses {
    fn all(addresses: Vec<SocketAddr>) -> Self {
        Self {
            addresses,
            left_out: None,
        }
    }

    /// That none of them answers, with why others were not tried.
    fn unreachable(&self, why: &str) -> OpenError {
        OpenError::Unreachable(match &self.left_out {
            Some(OpenError::Refused { because, .. }) => format!("{why}; {because}"),
            _ => why.to_owned(),
        })
    }
}

/// How connections to the outside are made.
pub(crate) struct Outside {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) proxy: Option<Proxy>,
    /// Removes the credentials of the proxy from texts.
    pub(crate) proxy_redactor: Redactor,
    pub(crate) no_proxy: NoProxy,
    pub(crate) resolve_wait: Duration,
    pub(crate) connect_wait: Duration,
}

impl Outside {
    /// The proxy through which a target is reached.
    fn proxy_for(&self, target: &Target) -> Option<&Proxy> {
        let proxy = self.proxy.as_ref()?;
        let around = match target {
            Target::Internal => true,
            Target::Name(name) => self.no_proxy.has_name(name.as_str()),
            Target::Address(address) => self.no_proxy.has_address(*address),
        };
        (!around).then_some(proxy)
    }

    /// The value of `Proxy-Authorization` for requests in absolute form.
    pub(crate) fn proxy_authorization(&self) -> Option<&str> {
        self.proxy.as_ref()?.authorization.as_deref()
    }

    /// Removes the credentials of the proxy through which a name is reached; none if it is reached without.
    pub(crate) fn proxy_redactor(&self, name: &HostName) -> Option<&Redactor> {
        self.proxy_for(&Target::Name(name.clone()))
            .map(|_| &self.proxy_redactor)
    }

    /// Connects to a target. `plain_http` says that requests of HTTP follow, which a proxy takes in absolute form.
    pub(crate) async fn open(
        &self,
        target: &Target,
        port: u16,
        permit: &Permit,
        plain_http: bool,
    ) -> Result<Opened, OpenError> {
        if let Some(proxy) = self.proxy_for(target) {
            let stream = timeout(self.connect_wait, through(proxy, target, port, plain_http)).await;
            let stream = stream.map_err(|_| OpenError::Unreachable("the proxy did not answer in time".to_owned()))?;
            let stream = stream.map_err(|error| OpenError::Unreachable(format!("the proxy: {error}")))?;
            return Ok(Opened {
                stream,
                address: None,
                forward_proxy: plain_http,
            });
        }
        let found = self.addresses(target, Protocol::Tcp, port, permit).await?;
        match timeout(self.connect_wait, first_of(&found.addresses)).await {
            Ok(Ok((stream, address))) => {
                let _ = stream.set_nodelay(true);
                Ok(Opened {
                    stream,
                    address: Some(address),
                    forward_proxy: false,
                })
            }
            Ok(Err(error)) => Err(found.unreachable(&error.to_string())),
            Err(_) => Err(found.unreachable(&format!("no answer within {} s", self.connect_wait.as_secs_f32()))),
        }
    }

    /// Makes a UDP socket that sends to a target and receives from it alone. UDP does not go through a proxy.
    pub(crate) async fn open_udp(
        &self,
        target: &Target,
        port: u16,
        permit: &Permit,
    ) -> Result<(UdpSocket, SocketAddr), OpenError> {
        let Addresses { addresses, .. } = self.addresses(target, Protocol::Udp, port, permit).await?;
        let failed = |error: io::Error| OpenError::Unreachable(error.to_string());
        let address = *addresses
            .first()
            .ok_or_else(|| OpenError::Unresolved("no address".to_owned()))?;
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await.map_err(failed)?;
        socket.connect(address).await.map_err(failed)?;
        Ok((socket, address))
    }

    /// The addresses of a target that may be connected to.
    async fn addresses(
        &self,
        target: &Target,
        protocol: Protocol,
        port: u16,
        permit: &Permit,
    ) -> Result<Addresses, OpenError> {
        let name = match target {
            Target::Internal => {
                let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                let addresses = loopback.map(|address| SocketAddr::new(address, port));
                return Ok(Addresses::all(addresses.to_vec()));
            }
            Target::Address(address) => return Ok(Addresses::all(vec![SocketAddr::new(*address, port)])),
            Target::Name(name) => name,
        };
        let found = match timeout(self.resolve_wait, self.resolver.resolve(name)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(OpenError::Unresolved(error.to_string())),
            Err(_) => {
                return Err(OpenError::Unresolved(format!(
                    "no answer within {} s",
                    self.resolve_wait.as_secs_f32()
                )));
            }
        };
        let mut refused: Option<OpenError> = None;
        let mut addresses = Vec::new();
        for address in found.into_iter().map(address::canonical) {
            match (permit.address(address, protocol, port), address::class(address)) {
                // Before what a special address is refused for: no other rule can help.
                (Verdict::Deny { because, instead }, _) => {
                    let leads = format!("`{name}` leads to {address}, which a rule refuses");
                    refused = Some(OpenError::Refused {
                        because: with_reason(leads, because.as_deref()),
                        instead,
                    });
                }
                (Verdict::Unnamed, Some(class)) => {
                    refused.get_or_insert_with(|| special(name, SocketAddr::new(address, port), class));
                }
                (Verdict::Ask(because), _) => {
                    let leads =
                        format!("`{name}` leads to {address}, about which a rule asks; names do not open these");
                    refused.get_or_insert_with(|| OpenError::Refused {
                        because: with_reason(leads, because.as_deref()),
                        // A rule that asks is stricter than one that allows.
                        instead: None,
                    });
                }
                (Verdict::Allow, _) | (Verdict::Unnamed, None) => addresses.push(SocketAddr::new(address, port)),
            }
        }
        addresses.truncate(ADDRESSES_MAX);
        match (addresses.is_empty(), refused) {
            (false, left_out) => Ok(Addresses { addresses, left_out }),
            (true, Some(refused)) => Err(refused),
            (true, None) => Err(OpenError::Unresolved("the name has no address".to_owned())),
        }
    }
}

/// The refusal of an address that a public name must not lead to.
fn special(name: &HostName, address: SocketAddr, class: AddressClass) -> OpenError {
    let ip = address.ip();
    OpenError::Refused {
        because: format!("`{name}` leads to {ip}, a {class} address, and names do not open these"),
        instead: Some(match class {
            AddressClass::Loopback => {
                format!(
                    "for this machine's loopback, `--allow-host {HOST_INTERNAL}:{}`",
                    address.port()
                )
            }
            _ => format!("`--allow-host {address}` in addition, if that address is meant"),
        }),
    }
}

/// Connects to the first address that answers. The next one is tried when one fails, or has not answered for a while.
async fn first_of(addresses: &[SocketAddr]) -> io::Result<(TcpStream, SocketAddr)> {
    let mut waiting = addresses.iter().copied();
    let mut tries = JoinSet::new();
    let mut last_error = None;
    let mut next = waiting.next();
    loop {
        if let Some(address) = next.take() {
            tries.spawn(async move { (TcpStream::connect(address).await, address) });
        }
        let more = waiting.len() > 0;
        tokio::select! {
            ended = tries.join_next() => match ended {
                Some(Ok((Ok(stream), address))) => return Ok((stream, address)),
                Some(Ok((Err(error), _))) => {
                    last_error = Some(error);
                    next = waiting.next();
                }
                Some(Err(_)) => next = waiting.next(),
                None if !more => return Err(last_error.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into())),
                None => next = waiting.next(),
            },
            () = sleep(NEXT_ADDRESS_AFTER), if more => next = waiting.next(),
        }
    }
}

/// Connects to a proxy, and has it connect to a target.
async fn through(proxy: &Proxy, target: &Target, port: u16, plain_http: bool) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((proxy.host.as_str(), proxy.port)).await?;
    let _ = stream.set_nodelay(true);
    if plain_http {
        return Ok(stream);
    }
    let authority = match target {
        Target::Address(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        _ => format!("{target}:{port}"),
    };
    let authorization = match &proxy.authorization {
        Some(value) => format!("Proxy-Authorization: {value}\r\n"),
        None => String::new(),
    };
    stream
        .write_all(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n").as_bytes())
        .await?;
    // One byte at a time: what follows the head is the target's.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= PROXY_HEAD_BYTES_MAX {
            return Err(io::Error::other("its answer is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    let line = String::from_utf8_lossy(&head);
    let line = line.lines().next().unwrap_or_default();
    let status = line
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5))
        .and_then(|status| status.parse::<u16>().ok());
    match status {
        Some(200..=299) => Ok(stream),
        Some(407) => Err(io::Error::other("it wants other credentials (407)")),
        Some(status) => Err(io::Error::other(format!("it answered with status {status}"))),
        None => Err(io::Error::other("its answer is not HTTP")),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::ask::BoxFuture;
    use crate::rule::{Decision, Rule};

    struct Fixed(Vec<IpAddr>);

    impl Resolver for Fixed {
        fn resolve<'a>(&'a self, _name: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(async { Ok(self.0.clone()) })
        }
    }

    fn outside(addresses: &[&str]) -> Outside {
        Outside {
            resolver: Arc::new(Fixed(
                addresses.iter().map(|address| address.parse().unwrap()).collect(),
            )),
            proxy: None,
            proxy_redactor: Redactor::default(),
            no_proxy: NoProxy::default(),
            resolve_wait: Duration::from_secs(1),
            connect_wait: Duration::from_secs(2),
        }
    }

    fn permit(rules: &[&str]) -> Permit {
        Permit::new(rules.iter().map(|rule| Rule::allow(rule.parse().unwrap())).collect())
    }

    fn target() -> Target {
        Target::of(HostName::parse("a.example").unwrap())
    }

    async fn found(addresses: &[&str], rules: &[&str]) -> Result<Vec<SocketAddr>, OpenError> {
        outside(addresses)
            .addresses(&target(), Protocol::Tcp, 443, &permit(rules))
            .await
            .map(|found| found.addresses)
    }

    #[tokio::test]
    async fn a_name_that_leads_to_a_special_address_is_refused_unless_that_address_is_named() {
        for address in [
            "127.0.0.1",
            "::1",
            "10.0.0.5",
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "fe80::1",
            "64:ff9b::7f00:1",
            "0.0.0.0",
        ] {
            let refused = found(&[address], &["a.example"]).await.unwrap_err();
            assert!(matches!(refused, OpenError::Refused { .. }), "{address}: {refused:?}");
        }
        let both = ["a.example", "10.0.0.5:443"];
        assert_eq!(
            found(&["10.0.0.5"], &both).await.unwrap(),
            ["10.0.0.5:443".parse().unwrap()]
        );
        assert_eq!(
            found(&["::ffff:10.0.0.5"], &both).await.unwrap(),
            ["10.0.0.5:443".parse().unwrap()]
        );
        assert!(found(&["10.0.0.6"], &both).await.is_err());
        assert!(
            found(&["10.0.0.5"], &["a.example", "10.0.0.5:80"]).await.is_err(),
            "another port"
        );
        assert!(found(&["10.0.0.5"], &["a.example", "0.0.0.0/0:443"]).await.is_err());
    }

    #[tokio::test]
    async fn a_rule_that_refuses_a_range_holds_for_names_that_lead_there() {
        let outside = outside(&["93.184.216.34"]);
        let rules = |range: &str| {
            let mut deny = Rule::allow(range.parse().unwrap());
            deny.decision = Decision::Deny;
            deny.because = Some("not that network".to_owned());
            deny.instead = Some("use the mirror".to_owned());
            Permit::new(vec![Rule::allow("a.example".parse().unwrap()), deny])
        };
        let permit = rules("93.184.216.0/24");
        let refused = outside
            .addresses(&target(), Protocol::Tcp, 443, &permit)
            .await
            .unwrap_err();
        assert_eq!(
            refused,
            OpenError::Refused {
                because: "`a.example` leads to 93.184.216.34, which a rule refuses: not that network".to_owned(),
                instead: Some("use the mirror".to_owned()),
            }
        );
        let permit = rules("93.184.217.0/24");
        assert!(outside.addresses(&target(), Protocol::Tcp, 443, &permit).await.is_ok());
    }

    #[tokio::test]
    async fn a_rule_that_asks_about_a_range_is_not_got_round_by_a_name() {
        let outside = outside(&["93.184.216.34"]);
        let mut ask = Rule::allow("93.184.216.0/24".parse().unwrap());
        ask.decision = Decision::Ask;
        let permit = Permit::new(vec![Rule::allow("a.example".parse().unwrap()), ask]);
        let found = outside.addresses(&target(), Protocol::Tcp, 443, &permit).await;
        assert!(
            matches!(&found, Err(OpenError::Refused { instead: None, because }) if because.contains("a rule asks")),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn where_the_other_addresses_fail_it_is_told_why_one_was_left_out() {
        let outside = outside(&["93.184.216.34", "2606:4700::1"]);
        let mut deny = Rule::allow("0.0.0.0/0".parse().unwrap());
        deny.decision = Decision::Deny;
        let permit = Permit::new(vec![Rule::allow("a.example".parse().unwrap()), deny]);
        let found = outside.addresses(&target(), Protocol::Tcp, 443, &permit).await.unwrap();
        assert_eq!(found.addresses, ["[2606:4700::1]:443".parse().unwrap()]);
        assert_eq!(
            found.unreachable("no route"),
            OpenError::Unreachable("no route; `a.example` leads to 93.184.216.34, which a rule refuses".to_owned())
        );
    }

    #[tokio::test]
    async fn of_mixed_addresses_only_the_public_ones_are_used() {
        assert_eq!(
            found(&["10.0.0.5", "1.1.1.1", "127.0.0.1"], &["a.example"])
                .await
                .unwrap(),
            ["1.1.1.1:443".parse().unwrap()]
        );
        assert_eq!(
            found(&[], &["a.example"]).await.unwrap_err(),
            OpenError::Unresolved("the name has no address".to_owned())
        );
    }

    #[tokio::test]
    async fn a_dead_address_gives_way_to_the_next_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let alive = listener.local_addr().unwrap();
        let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let (_, address) = first_of(&[dead, alive]).await.unwrap();
        assert_eq!(address, alive);
        assert!(first_of(&[dead]).await.is_err());
        assert!(first_of(&[]).await.is_err());
    }

    /// A proxy that answers with `answer`; returns its address and the request that it saw.
    async fn proxy(answer: &'static str) -> (Proxy, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://user:pass@127.0.0.1:{}", listener.local_addr().unwrap().port());
        let seen = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(head).unwrap()
        });
        (Proxy::parse(&url).unwrap(), seen)
    }

    #[tokio::test]
    async fn the_proxy_connects_by_name_with_credentials_and_what_follows_its_head_is_the_hosts() {
        let (proxy, seen) = proxy("HTTP/1.1 200 OK\r\nVia: x\r\n\r\nhello").await;
        let outside = Outside {
            proxy: Some(proxy),
            ..outside(&[])
        };
        let mut opened = outside
            .open(&target(), 443, &permit(&["a.example"]), false)
            .await
            .unwrap();
        assert_eq!((opened.address, opened.forward_proxy), (None, false));
        let head = seen.await.unwrap();
        assert_eq!(
            head,
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n"
        );
        let mut text = String::new();
        opened.stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "hello");
    }

    #[tokio::test]
    async fn what_a_proxy_refuses_is_told_and_exceptions_go_around_it() {
        let (proxy, _seen) = proxy("HTTP/1.1 407 Auth\r\n\r\n").await;
        let no_proxy = NoProxy::parse("b.example");
        let outside = Outside {
            proxy: Some(proxy),
            no_proxy,
            ..outside(&[])
        };
        let refused = outside
            .open(&target(), 443, &permit(&["a.example"]), false)
            .await
            .unwrap_err();
        assert!(
            matches!(&refused, OpenError::Unreachable(text) if text.contains("407")),
            "{refused:?}"
        );
        assert!(outside.proxy_for(&Target::Internal).is_none());
        assert!(
            outside
                .proxy_for(&Target::of(HostName::parse("x.b.example").unwrap()))
                .is_none()
        );
    }
}
