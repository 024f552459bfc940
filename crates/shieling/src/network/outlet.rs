//! One gateway for one jail.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use shieling_gateway::{
    Answer, Asker, Attempt, BoxFuture, Cursor, DNS_ADDRESS, End, Endpoint, Gateway, GatewayConfig, Protocol, Redactor,
    Report, StartError, TrustPaths,
};
use shieling_jail::plan;
use tokio::sync::watch;

use super::NetworkAccess;
use super::sockets::{JailSockets, planned};
use crate::process::Jail;

/// Where the certificates stand for programs that are told of them.
const AUTHORITY: &str = "/etc/shieling/ca.pem";
const BUNDLE: &str = "/etc/shieling/ca-bundle.pem";
const JAVA_STORE: &str = "/etc/shieling/cacerts";

/// Where systems keep their own bundle of certificates.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// Where they keep Java's.
const JAVA_STORES: [&str; 3] = [
    "/etc/ssl/certs/java/cacerts",
    "/etc/pki/ca-trust/extracted/java/cacerts",
    "/etc/pki/java/cacerts",
];

/// A variable that Java reports on standard error at each start. Where the system's own store is replaced, there is no
/// need for it.
const ANNOUNCED: &str = "JAVA_TOOL_OPTIONS";

/// A gateway and the jail whose only way out it is. Everything that it does ends when it is dropped.
pub(crate) struct Outlet {
    gateway: Gateway,
    jail: watch::Sender<Option<Weak<Jail>>>,
    /// The sockets of the jail, besides those for DNS.
    endpoints: Vec<Endpoint>,
    begin: Cursor,
    always: Arc<Always>,
}

/// The rules that were allowed for always and were not told yet.
#[derive(Default)]
struct Always(Mutex<Vec<String>>);

/// Notes which rules an asker allows for always.
struct Noting {
    asker: Arc<dyn Asker>,
    always: Arc<Always>,
}

impl Asker for Noting {
    fn ask(&self, attempt: Attempt) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let rule = attempt.rule.to_string();
            let answer = self.asker.ask(attempt).await;
            if answer == Answer::Always {
                let mut always = self.always.0.lock().unwrap_or_else(PoisonError::into_inner);
                always.push(rule);
            }
            answer
        })
    }
}

/// A position in the record of an outlet.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    of: Weak<Outlet>,
    cursor: Cursor,
    at: SystemTime,
}

impl PartialEq for Look {
    fn eq(&self, other: &Self) -> bool {
        self.of.ptr_eq(&other.of) && self.cursor == other.cursor
    }
}

impl Outlet {
    /// Starts the gateway, within a runtime.
    ///
    /// # Errors
    /// Those of the gateway.
    pub(crate) fn open(access: &NetworkAccess) -> Result<Self, StartError> {
        let (jail, jails) = watch::channel(None);
        let always = Arc::new(Always::default());
        let noting = |asker: &Arc<dyn Asker>| {
            Arc::new(Noting {
                asker: Arc::clone(asker),
                always: Arc::clone(&always),
            }) as Arc<dyn Asker>
        };
        let config = GatewayConfig::default();
        let gateway = Gateway::start(GatewayConfig {
            resolver: access.resolver.clone().unwrap_or_else(|| Arc::clone(&config.resolver)),
            rules: access.rules.clone(),
            secrets: access.secrets.clone(),
            asker: access.asker.as_ref().map(noting),
            observer: access.observer.clone(),
            listeners: Some(Arc::new(JailSockets(jails))),
            proxy: access.proxy.clone(),
            no_proxy: access.no_proxy.clone(),
            roots: access.roots.clone(),
            ..config
        })?;
        let mut endpoints = gateway.endpoints();
        for (range, protocol, port) in access.ranges() {
            let addresses = match range {
                Some(range) => range.hosts().collect(),
                None => vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
            };
            endpoints.extend(addresses.into_iter().map(|address| Endpoint {
                protocol,
                address: SocketAddr::new(address, port),
            }));
        }
        endpoints.sort();
        endpoints.dedup();
        // What has a socket for all addresses needs none for one.
        let whole: Vec<u16> = endpoints
            .iter()
            .filter(|endpoint| endpoint.address.ip().is_unspecified())
            .map(|endpoint| endpoint.address.port())
            .collect();
        endpoints.retain(|Endpoint { protocol, address }| {
            address.ip().is_unspecified()
                || address.is_ipv6()
                || *protocol == Protocol::Udp
                || !whole.contains(&address.port())
        });
        let begin = gateway.cursor();
        Ok(Self {
            gateway,
            jail,
            endpoints,
            begin,
            always,
        })
    }

    /// The ports from 1024 on at which the jail listens over TCP for hosts that rules name.
    pub(crate) fn held_ports(&self) -> Vec<u16> {
        let tcp = self
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.protocol == Protocol::Tcp);
        let mut ports: Vec<u16> = tcp
            .map(|endpoint| endpoint.address.port())
            .filter(|port| *port >= 1024)
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Whether the jail that it is for has not ended: it runs, or is still to be attached.
    pub(crate) fn is_current(&self) -> bool {
        match &*self.jail.borrow() {
            Some(jail) => jail.upgrade().is_some_and(|jail| jail.is_alive()),
            None => true,
        }
    }

    /// The jail's side of it. If that jail does not start, the next one is made by the same plan.
    pub(crate) fn plan(&self) -> plan::Gateway {
        let resolver = SocketAddr::new(DNS_ADDRESS.into(), 53);
        let resolvers = [plan::Endpoint::Udp(resolver), plan::Endpoint::Tcp(resolver)];
        let routes = self.gateway.routes();
        plan::Gateway {
            routes: routes.iter().map(|net| (net.network(), net.prefix_len())).collect(),
            sockets: resolvers
                .into_iter()
                .chain(self.endpoints.iter().copied().map(planned))
                .collect(),
        }
    }

    /// Serves the jail that was made by that plan.
    ///
    /// # Errors
    /// If its sockets cannot be used.
    pub(crate) fn attach(&self, jail: &Arc<Jail>) -> io::Result<()> {
        let mut sockets = jail.take_sockets().into_iter();
        let few = || io::Error::other("the sandbox gave fewer sockets than it has");
        let udp = sockets.next().ok_or_else(few)?;
        let tcp = sockets.next().ok_or_else(few)?;
        for endpoint in &self.endpoints {
            self.serve(sockets.next().ok_or_else(few)?, endpoint.protocol)?;
        }
        // The last: who has an answer finds its host served.
        self.gateway.serve_dns(UdpSocket::from(udp), TcpListener::from(tcp))?;
        self.jail.send_replace(Some(Arc::downgrade(jail)));
        Ok(())
    }

    fn serve(&self, socket: OwnedFd, protocol: Protocol) -> io::Result<()> {
        match protocol {
            Protocol::Tcp => self.gateway.serve(TcpListener::from(socket)),
            Protocol::Udp => self.gateway.serve_udp(UdpSocket::from(socket)),
        }
    }

    /// The lines of the names that rules name, for the jail's `/etc/hosts`.
    pub(crate) fn hosts(&self) -> String {
        let mut lines = String::new();
        for named in self.gateway.names() {
            writeln!(lines, "{}\t{}", named.v4, named.name).expect("a string takes text");
        }
        lines
    }

    /// The jail's `/etc/resolv.conf`.
    pub(crate) fn resolver() -> String {
        format!("nameserver {DNS_ADDRESS}\noptions timeout:5 attempts:2\n")
    }

    /// The files with which programs of the jail trust the gateway where a secret goes, in the view of their own.
    pub(crate) fn trust(&self) -> Vec<plan::Entry> {
        let Some(trust) = self.gateway.trust() else {
            return Vec::new();
        };
        let file = |target: &str, content: &[u8]| plan::Entry::File {
            target: target.into(),
            content: content.to_vec(),
        };
        let over = |target: &str, content: &[u8]| plan::Entry::Over {
            target: target.into(),
            content: content.to_vec(),
        };
        let bundle = trust.bundle_pem().as_bytes();
        let mut entries = vec![
            file(AUTHORITY, trust.authority_pem().as_bytes()),
            file(BUNDLE, bundle),
            file(JAVA_STORE, trust.java_store()),
        ];
        entries.extend(BUNDLES.map(|target| over(target, bundle)));
        entries.extend(JAVA_STORES.map(|target| over(target, trust.java_store())));
        entries
    }

    /// The variables of its secrets, and those by which programs find the certificates. They win over a command's own:
    /// its secret would be the real one.
    #[expect(
        clippy::disallowed_methods,
        reason = "whether the system has a store for Java is looked up here"
    )]
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut variables = self.gateway.variables();
        if let Some(trust) = self.gateway.trust() {
            let paths = TrustPaths {
                authority: AUTHORITY.into(),
                bundle: BUNDLE.into(),
                java_store: JAVA_STORE.into(),
            };
            let replaced = JAVA_STORES.iter().any(|store| Path::new(store).exists());
            let all = trust.variables(&paths).into_iter();
            variables.extend(all.filter(|(name, _)| !(replaced && name == ANNOUNCED)));
        }
        variables
    }

    /// Removes its secrets from texts; nothing if there are none.
    pub(crate) fn redactor(&self) -> Option<Redactor> {
        Some(self.gateway.redactor()).filter(|redactor| !redactor.is_empty())
    }

    /// The rules that were allowed for always since this was last asked.
    pub(crate) fn take_always(&self) -> Vec<String> {
        std::mem::take(&mut *self.always.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A look at what has happened until now.
    pub(crate) fn look(self: &Arc<Self>) -> Look {
        Look {
            of: Arc::downgrade(self),
            cursor: self.gateway.cursor(),
            at: SystemTime::now(),
        }
    }

    /// What happened since a look; since its beginning if the look was at another one. Of connections, those that
    /// began since then: others were told of with the command that began them.
    pub(crate) fn report(self: &Arc<Self>, since: Option<&Look>) -> Report {
        let Some(look) = since.filter(|look| look.of.ptr_eq(&Arc::downgrade(self))) else {
            return self.gateway.report(self.begin);
        };
        let mut report = self.gateway.report(look.cursor);
        report.connections.retain(|connection| connection.began >= look.at);
        report
    }

    /// Waits, for a moment at most, until the connections of a jail that has ended are recorded as closed.
    pub(crate) async fn settle(&self) {
        const TRIES: u32 = 20;
        const PAUSE: Duration = Duration::from_millis(5);
        for _ in 0..TRIES {
            let report = self.gateway.report(self.begin);
            if report.connections.iter().all(|connection| connection.end != End::Open) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl std::fmt::Debug for Outlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outlet").finish_non_exhaustive()
    }
}
