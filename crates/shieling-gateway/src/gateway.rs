//! The gateway as a whole: started with a configuration, given sockets, and ended by being dropped.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::ask::Asker;
use crate::limits::Limits;
use crate::listeners::{Endpoint, Listeners};
use crate::name::HostName;
use crate::names::{Entry, Names};
use crate::outside::Outside;
use crate::permit::Permit;
use crate::proxy::{NoProxy, Proxy};
use crate::questions::Questions;
use crate::record::{Cursor, Observer, Recorder, Report};
use crate::redact::Redactor;
use crate::relay::Pipes;
use crate::resolve::{Resolver, SystemResolver};
use crate::rule::{DEFAULT_PORTS, Protocol, Rule};
use crate::scope::{Scope, ScopeGuard};
use crate::secret::Secret;
use crate::serve;
use crate::shared::{Arrivals, Shared};
use crate::trust::{Authority, Roots, Trust};
use crate::vault::{Conflict, Vault};

/// What a gateway is made from.
#[derive(Clone)]
pub struct GatewayConfig {
    /// The rules. Of several that mean a connection, the strictest decides; what none means is asked about or refused.
    pub rules: Vec<Rule>,
    /// Secrets. They open no host: a rule has to allow the host of a secret.
    pub secrets: Vec<Secret>,
    /// Who is asked; without one, what no rule allows is refused.
    pub asker: Option<Arc<dyn Asker>>,
    /// Who binds sockets for names that are not known from the beginning; see [`Listeners`].
    pub listeners: Option<Arc<dyn Listeners>>,
    /// Who is told of connections and refusals.
    pub observer: Option<Arc<dyn Observer>>,
    /// Resolves names outside. Default: [`SystemResolver`].
    pub resolver: Arc<dyn Resolver>,
    /// Whose certificates are trusted when a secret goes to its host. Default: the host's.
    pub roots: Roots,
    /// The user's proxy for connections outside. It resolves names itself, so that the gateway cannot refuse a name
    /// that leads to a private address there. Default: none.
    pub proxy: Option<Proxy>,
    /// What goes around the proxy. `host.internal` always does.
    pub no_proxy: NoProxy,
    /// Search domains that the sandbox's `resolv.conf` names, or a client adds by itself. A name that is an allowed
    /// one with such a suffix does not exist, and is no attempt to be reported.
    pub search: Vec<HostName>,
    /// The addresses that stand for names. Default: 198.18.0.0/15 (RFC 2544), of which the first is
    /// [`DNS_ADDRESS`].
    pub pool_v4: Ipv4Net,
    /// The IPv6 addresses that stand for names, at least a /112; `None` answers `AAAA` with no data. Default: `None`.
    pub pool_v6: Option<Ipv6Net>,
    /// The bounds.
    pub limits: Limits,
}

/// The address at which the sandbox's DNS server is expected: the first of 198.18.0.0/15. It stands for no name.
pub const DNS_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            secrets: Vec::new(),
            asker: None,
            listeners: None,
            observer: None,
            resolver: Arc::new(SystemResolver),
            roots: Roots::Host,
            proxy: None,
            no_proxy: NoProxy::default(),
            search: Vec::new(),
            pool_v4: Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15),
            pool_v6: None,
            limits: Limits::default(),
        }
    }
}

/// The reasons why a gateway is not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no tokio runtime with I/O and time.
    #[error("a gateway is started within a tokio runtime")]
    Runtime,
    /// A pool of addresses is too small for the names.
    #[error("the pool of addresses {0} is smaller than the bound of names")]
    Pool(IpNet),
    /// Two secrets of this variable have different values.
    #[error("the variable {0} has two different secrets")]
    SecretConflict(String),
    /// The certificate authority cannot be made, or the host's trusted certificates cannot be read.
    #[error("no certificate authority: {0}")]
    Authority(String),
}

/// A name with the addresses that stand for it inside of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAddress {
    /// The name.
    pub name: HostName,
    /// Its IPv4 address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address, if there is a pool of these.
    pub v6: Option<Ipv6Addr>,
}

/// How many descriptors a connection may take at most: two sockets and a pipe for each direction, with a quarter of all
/// descriptors left to what follows and to the rest of this process.
const DESCRIPTORS_EACH: usize = 8;

/// The share of the descriptors that sockets of looked-up names may take.
const SHARE_OF_NAMES: usize = 8;

/// The share of the descriptors that UDP flows may take, and the one of DNS over TCP.
const SHARE_OF_FLOWS: usize = 32;

/// The bounds for which this process has descriptors. A program in the sandbox must not be able to use them up.
fn affordable(limits: Limits) -> Limits {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let all = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let share = |bound: usize, of: usize| bound.min(all / of).min(Semaphore::MAX_PERMITS);
    Limits {
        connections: share(limits.connections, DESCRIPTORS_EACH),
        name_sockets: share(limits.name_sockets, SHARE_OF_NAMES),
        dns_connections: share(limits.dns_connections, SHARE_OF_FLOWS),
        flows: share(limits.flows, SHARE_OF_FLOWS),
        ..limits
    }
}

/// The way out of one sandbox. Everything it does ends when it is dropped.
pub struct Gateway {
    shared: Arc<Shared>,
    _tasks: ScopeGuard,
}

impl Gateway {
    /// Starts a gateway within the current tokio runtime, whose I/O and time have to be enabled. Its tasks run there.
    ///
    /// # Errors
    /// If there is no runtime, or the configuration does not hold together.
    pub fn start(config: GatewayConfig) -> Result<Self, StartError> {
        let runtime = Handle::try_current().map_err(|_| StartError::Runtime)?;
        let limits = affordable(config.limits);
        let names =
            Names::new(config.pool_v4, config.pool_v6, limits.names, limits.unknown_names).map_err(StartError::Pool)?;
        let vault = Vault::new(config.secrets).map_err(|Conflict(variable)| StartError::SecretConflict(variable))?;
        let authority = match vault.variables().is_empty() {
            true => None,
            false => Some(Authority::new(vault.hosts(), &config.roots).map_err(StartError::Authority)?),
        };
        let (scope, tasks) = Scope::new(runtime);
        let shared = Arc::new(Shared {
            permit: Permit::new(config.rules),
            names,
            questions: Questions::new(config.asker, &limits),
            outside: Outside {
                resolver: config.resolver,
                proxy_redactor: config.proxy.as_ref().map(Proxy::redactor).unwrap_or_default(),
                proxy: config.proxy,
                no_proxy: config.no_proxy,
                resolve_wait: limits.resolve,
                connect_wait: limits.connect,
            },
            redactor: vault.redactor(),
            vault,
            authority,
            recorder: Recorder::new(limits.records, limits.requests, limits.bytes, config.observer),
            pipes: Pipes::default(),
            listeners: config.listeners,
            search: config.search,
            connections: Arc::new(Semaphore::new(limits.connections)),
            name_sockets: Semaphore::new(limits.name_sockets),
            dns_connections: Arc::new(Semaphore::new(limits.dns_connections)),
            flows: Arc::new(Semaphore::new(limits.flows)),
            arrivals: Arrivals::new(&limits),
            limits,
            scope,
        });
        // Named ones come first, so that no program can use up their addresses. Their sockets are the caller's matter.
        for name in shared.permit.names() {
            if let Some(entry) = shared.names.entry(&name, false) {
                let _ = entry.listening.set(());
            }
        }
        Ok(Self { shared, _tasks: tasks })
    }

    /// Answers DNS queries at these sockets of the sandbox's namespace, which are bound already.
    ///
    /// # Errors
    /// If the sockets cannot be used.
    pub fn serve_dns(&self, udp: UdpSocket, tcp: TcpListener) -> io::Result<()> {
        let runtime = self.shared.scope.runtime();
        let _within = runtime.enter();
        udp.set_nonblocking(true)?;
        tcp.set_nonblocking(true)?;
        let udp = tokio::net::UdpSocket::from_std(udp)?;
        let tcp = tokio::net::TcpListener::from_std(tcp)?;
        self.shared.scope.spawn(serve::dns_udp(Arc::clone(&self.shared), udp));
        self.shared.scope.spawn(serve::dns_tcp(Arc::clone(&self.shared), tcp));
        Ok(())
    }

    /// Serves the connections of a listening socket, bound to one [`Endpoint`] or to the unspecified address.
    ///
    /// # Errors
    /// If the socket cannot be used.
    pub fn serve(&self, listener: TcpListener) -> io::Result<()> {
        let runtime = self.shared.scope.runtime();
        let _within = runtime.enter();
        serve::start_connections(&self.shared, listener)
    }

    /// Serves the datagrams of a socket that is bound to one [`Endpoint`].
    ///
    /// # Errors
    /// If the socket cannot be used.
    pub fn serve_udp(&self, socket: UdpSocket) -> io::Result<()> {
        let runtime = self.shared.scope.runtime();
        let _within = runtime.enter();
        serve::start_datagrams(&self.shared, socket)
    }

    /// The endpoints that are known from the beginning: names and single addresses that rules name, with their ports.
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let mut endpoints = BTreeSet::new();
        for entry in self.entries() {
            endpoints.extend(serve::endpoints(&self.shared, &entry, false));
        }
        for (net, ports) in self
            .shared
            .permit
            .networks()
            .filter(|(net, _)| net.prefix_len() == net.max_prefix_len())
        {
            endpoints.extend(ports.iter().map(|(protocol, port)| Endpoint {
                protocol: *protocol,
                address: SocketAddr::new(net.addr(), *port),
            }));
        }
        endpoints.into_iter().collect()
    }

    /// The entries of the names that rules name.
    fn entries(&self) -> impl Iterator<Item = Arc<Entry>> {
        self.shared
            .permit
            .names()
            .into_iter()
            .filter_map(|name| self.shared.names.entry(&name, false))
    }

    /// The networks that the sandbox's namespace has to treat as local: the pools, and what rules name by address.
    #[must_use]
    pub fn routes(&self) -> Vec<IpNet> {
        let named = self.shared.permit.networks().map(|(net, _)| net);
        let routes: BTreeSet<IpNet> = self.shared.names.pools().chain(named).collect();
        routes.into_iter().collect()
    }

    /// The ports on which some host can be reached, now or after a question, for sockets on the unspecified address.
    #[must_use]
    pub fn ports(&self) -> Vec<(Protocol, u16)> {
        let mut ports = self.shared.permit.all_ports();
        if self.shared.questions.can_ask() {
            ports.extend(DEFAULT_PORTS.map(|port| (Protocol::Tcp, port)));
        }
        ports.into_iter().collect()
    }

    /// The names that rules name, with their addresses, for the sandbox's `/etc/hosts`.
    #[must_use]
    pub fn names(&self) -> Vec<NamedAddress> {
        self.entries()
            .map(|entry| NamedAddress {
                name: entry.name.clone(),
                v4: entry.v4,
                v6: entry.v6,
            })
            .collect()
    }

    /// The certificate authority, if there are secrets.
    #[must_use]
    pub fn trust(&self) -> Option<&Trust> {
        self.shared.authority.as_ref().map(Authority::trust)
    }

    /// The variables of the secrets, with their placeholders.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        self.shared.vault.variables()
    }

    /// Removes the secrets of this gateway from texts.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        self.shared.redactor.clone()
    }

    /// The present position in the record.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.shared.recorder.cursor()
    }

    /// What happened since a position.
    #[must_use]
    pub fn report(&self, since: Cursor) -> Report {
        self.shared.recorder.report(since)
    }
}
