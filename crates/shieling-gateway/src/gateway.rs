//! The gateway as a whole: started with a configuration, given sockets, and ended by being dropped.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::ask::Asker;
use crate::limits::Limits;
use crate::listeners::{Endpoint, Listeners};
use crate::name::HostName;
use crate::proxy::{NoProxy, Proxy};
use crate::record::{Cursor, Observer, Recorder, Report};
use crate::redact::Redactor;
use crate::resolve::{Resolver, SystemResolver};
use crate::rule::Rule;
use crate::secret::Secret;
use crate::trust::Trust;

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
    /// The user's proxy for connections outside. Default: none.
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

/// The way out of one sandbox. Everything it does ends when it is dropped.
pub struct Gateway {}

impl Gateway {
    /// Starts a gateway within the current tokio runtime.
    ///
    /// # Errors
    /// If there is no runtime, or the configuration does not hold together.
    pub fn start(config: GatewayConfig) -> Result<Self, StartError> {
        let _ = config;
        Err(StartError::Runtime)
    }

    /// Answers DNS queries at these sockets of the sandbox's namespace, which are bound already.
    ///
    /// # Errors
    /// If the sockets cannot be used.
    pub fn serve_dns(&self, udp: UdpSocket, tcp: TcpListener) -> io::Result<()> {
        let _ = (udp, tcp);
        Ok(())
    }

    /// Serves the connections of a listening socket, bound to one [`Endpoint`] or to the unspecified address.
    ///
    /// # Errors
    /// If the socket cannot be used.
    pub fn serve(&self, listener: TcpListener) -> io::Result<()> {
        let _ = listener;
        Ok(())
    }

    /// Serves the datagrams of a socket that is bound to one [`Endpoint`].
    ///
    /// # Errors
    /// If the socket cannot be used.
    pub fn serve_udp(&self, socket: UdpSocket) -> io::Result<()> {
        let _ = socket;
        Ok(())
    }

    /// The endpoints that are known from the beginning: names and single addresses that rules name, with their ports.
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        Vec::new()
    }

    /// The networks that the sandbox's namespace has to treat as local: the pools, and what rules name by address.
    #[must_use]
    pub fn routes(&self) -> Vec<IpNet> {
        Vec::new()
    }

    /// The ports on which some name or network can be reached, for sockets on the unspecified address.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        Vec::new()
    }

    /// The names that rules name, with their addresses, for the sandbox's `/etc/hosts`.
    #[must_use]
    pub fn names(&self) -> Vec<NamedAddress> {
        Vec::new()
    }

    /// The certificate authority, if there are secrets.
    #[must_use]
    pub fn trust(&self) -> Option<&Trust> {
        None
    }

    /// The variables of the secrets, with their placeholders.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Removes the secrets of this gateway from texts.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        Redactor::default()
    }

    /// The present position in the record.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Recorder::new(1, 1, None, None).cursor()
    }

    /// What happened since a position.
    #[must_use]
    pub fn report(&self, since: Cursor) -> Report {
        Report {
            connections: Vec::new(),
            denied: Vec::new(),
            left_out: 0,
            cursor: since,
        }
    }
}
