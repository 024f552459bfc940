//! A started gateway with its sockets, a table of names, and clients.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use shieling_gateway::{
    BoxFuture, Cursor, DNS_ADDRESS, Endpoint, Gateway, GatewayConfig, HostName, HostRule, Listener, Listeners,
    Protocol, Report, Resolver, Rule,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

/// The table of names outside.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) names: Mutex<HashMap<String, Vec<IpAddr>>>,
    /// The names that left the sandbox.
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Table {
    pub(crate) fn set(&self, name: &str, address: &str) {
        self.names
            .lock()
            .unwrap()
            .insert(name.to_owned(), vec![address.parse().unwrap()]);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for Table {
    fn resolve<'a>(&'a self, name: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(name.to_string());
            let found = self.names.lock().unwrap().get(name.as_str()).cloned();
            found.ok_or_else(|| io::Error::other("no such name"))
        })
    }
}

/// Binds sockets in this network.
pub(crate) struct Binding;

impl Listeners for Binding {
    fn listen<'a>(&'a self, endpoints: &'a [Endpoint]) -> BoxFuture<'a, io::Result<Vec<Listener>>> {
        Box::pin(async move { endpoints.iter().map(bind).collect() })
    }
}

fn bind(endpoint: &Endpoint) -> io::Result<Listener> {
    Ok(match endpoint.protocol {
        Protocol::Tcp => Listener::Tcp(std::net::TcpListener::bind(endpoint.address)?),
        Protocol::Udp => Listener::Udp(std::net::UdpSocket::bind(endpoint.address)?),
    })
}

/// A gateway with its sockets.
pub(crate) struct Fixture {
    pub(crate) gateway: Gateway,
    pub(crate) table: Arc<Table>,
    pub(crate) began: Cursor,
}

/// Lets this process have as many descriptors as it may, before a gateway is started. Returns whether 500 connections
/// find enough.
pub(crate) fn many_descriptors() -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let enough = limit.maximum.is_none_or(|maximum| maximum >= 8 * 500);
    if !enough {
        shieling_testkit::prerequisite::skip("4000 descriptors (`ulimit -Hn`)");
    }
    enough
}

/// The configuration that allows these hosts.
pub(crate) fn config(rules: &[&str]) -> GatewayConfig {
    let rules = rules
        .iter()
        .flat_map(|rule| HostRule::expand(rule).unwrap())
        .map(Rule::allow);
    GatewayConfig {
        rules: rules.collect(),
        listeners: Some(Arc::new(Binding)),
        ..GatewayConfig::default()
    }
}

impl Fixture {
    pub(crate) fn new(rules: &[&str]) -> Self {
        Self::with(config(rules))
    }

    pub(crate) fn with(config: GatewayConfig) -> Self {
        let table = Arc::new(Table::default());
        let resolver = table.clone();
        Self::started(GatewayConfig { resolver, ..config }, table)
    }

    /// With the resolver of the configuration. Nothing looks into the table.
    pub(crate) fn resolving(config: GatewayConfig) -> Self {
        Self::started(config, Arc::default())
    }

    fn started(config: GatewayConfig, table: Arc<Table>) -> Self {
        let gateway = Gateway::start(config).unwrap();
        let dns = SocketAddr::from((DNS_ADDRESS, 53));
        gateway
            .serve_dns(
                std::net::UdpSocket::bind(dns).unwrap(),
                std::net::TcpListener::bind(dns).unwrap(),
            )
            .unwrap();
        // Addresses that rules name are the servers' own in these tests.
        let synthetic = |endpoint: &Endpoint| endpoint.address.ip().to_string().starts_with("198.18.");
        for endpoint in gateway.endpoints().into_iter().filter(synthetic) {
            match bind(&endpoint).unwrap() {
                Listener::Tcp(listener) => gateway.serve(listener).unwrap(),
                Listener::Udp(socket) => gateway.serve_udp(socket).unwrap(),
            }
        }
        let began = gateway.cursor();
        Self { gateway, table, began }
    }

    pub(crate) fn report(&self) -> Report {
        self.gateway.report(self.began)
    }

    /// Waits until the report holds what is looked for.
    pub(crate) async fn reported(&self, holds: impl Fn(&Report) -> bool) -> Report {
        for _ in 0..500 {
            let report = self.report();
            if holds(&report) {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.report());
    }

    /// Waits for a refusal of a host, and returns its reason.
    pub(crate) async fn denied(&self, host: &str, port: Option<u16>) -> String {
        let is = |denied: &&shieling_gateway::Denied| denied.host == host && denied.port == port;
        let report = self
            .reported(|report| report.denied.iter().any(|denied| is(&denied)))
            .await;
        report.denied.iter().find(is).unwrap().because.clone()
    }

    /// Opens a connection to a name of the sandbox.
    pub(crate) async fn connect(&self, name: &str, port: u16) -> TcpStream {
        open((address(name).await, port).into()).await.unwrap()
    }

    /// Sends bytes to a name, and returns all that comes back; nothing if the connection is refused.
    pub(crate) async fn exchange(&self, name: &str, port: u16, bytes: &[u8]) -> String {
        let Ok(mut stream) = open((address(name).await, port).into()).await else {
            return String::new();
        };
        let mut text = Vec::new();
        if stream.write_all(bytes).await.is_ok() && stream.shutdown().await.is_ok() {
            let _ = stream.read_to_end(&mut text).await;
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Opens a connection.
async fn open(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect(address).await
}

/// Whether a connection to an address of the sandbox is refused, at once or by a reset.
pub(crate) async fn is_refused(address: SocketAddr) -> bool {
    match open(address).await {
        Ok(mut stream) => stream.read(&mut [0]).await.is_err(),
        Err(_) => true,
    }
}

/// Asks the gateway's DNS server.
pub(crate) async fn query(name: &str, record_type: RecordType) -> Message {
    let mut message = Message::new(1, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(format!("{name}.")).unwrap(), record_type));
    let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    socket
        .send_to(&message.to_vec().unwrap(), (DNS_ADDRESS, 53))
        .await
        .unwrap();
    let mut buffer = [0; 4096];
    let (length, _) = tokio::time::timeout(Duration::from_secs(5), socket.recv_from(&mut buffer))
        .await
        .unwrap()
        .unwrap();
    Message::from_vec(&buffer[..length]).unwrap()
}

/// The address of a name in the sandbox.
pub(crate) async fn address(name: &str) -> Ipv4Addr {
    let reply = query(name, RecordType::A).await;
    match reply.answers.first().map(|record| &record.data) {
        Some(RData::A(address)) => address.0,
        _ => panic!("{name}: {reply:?}"),
    }
}
