//! What of the network is opened by name.

use std::fmt;
use std::sync::Arc;

use ipnet::IpNet;
use shieling_gateway::{
    Asker, Decision, Host, HostName, HostRule, NoProxy, Observer, Protocol, Proxy, Resolver, Roots, Rule, Secret,
};

/// The most addresses of a range that are listened at one by one. A larger one takes its ports of the whole sandbox.
const SMALL: u32 = 256;

/// What commands may reach by name. The default is nothing.
#[derive(Clone, Default)]
pub struct NetworkAccess {
    /// What is allowed, asked about and denied. The strictest rule that means a connection decides.
    pub rules: Vec<Rule>,
    /// Secrets for hosts that the rules allow.
    pub secrets: Vec<Secret>,
    /// Answers for connections that no rule decides. Without one they are refused.
    pub asker: Option<Arc<dyn Asker>>,
    /// Is told of each connection and refusal.
    pub observer: Option<Arc<dyn Observer>>,
    /// The user's own proxy, for connections outside.
    pub proxy: Option<Proxy>,
    /// What goes around the proxy.
    pub no_proxy: NoProxy,
    /// Resolves names outside. Without one, this host does.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// The certificates that are trusted where secrets go.
    pub roots: Roots,
}

impl NetworkAccess {
    /// Whether it opens, and asks about, nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.secrets.is_empty()
    }

    /// The hosts that are allowed, as `--allow-host` takes them.
    #[must_use]
    pub fn allowed(&self) -> Vec<String> {
        let allowed = self.rules.iter().filter(|rule| rule.decision == Decision::Allow);
        let mut allowed: Vec<String> = allowed.map(|rule| rule.host.to_string()).collect();
        allowed.sort();
        allowed.dedup();
        allowed
    }

    /// Whether a rule allows this name on some port.
    #[must_use]
    pub fn reaches(&self, name: &str) -> bool {
        let Ok(name) = HostName::parse(name) else { return false };
        let mut allowed = self.rules.iter().filter(|rule| rule.decision == Decision::Allow);
        allowed.any(|rule| rule.host.means_name(&name))
    }

    /// The ranges of addresses that rules open, with their ports over TCP: of small ones the addresses, of large ones
    /// nothing but the port.
    pub(crate) fn ranges(&self) -> Vec<(Option<IpNet>, Protocol, u16)> {
        let mut ranges = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.decision != Decision::Deny) {
            let Host::Network(net) = rule.host.host() else { continue };
            if net.prefix_len() == net.max_prefix_len() {
                continue;
            }
            let small = u32::from(net.max_prefix_len() - net.prefix_len()) <= SMALL.ilog2();
            let protocol = rule.host.protocol();
            let named = rule.host.port().map(|port| vec![port]);
            let ports = named.unwrap_or_else(|| shieling_gateway::DEFAULT_PORTS.to_vec());
            ranges.extend(ports.into_iter().map(|port| (small.then_some(*net), protocol, port)));
        }
        ranges
    }

    /// A rule that cannot be served: a socket for datagrams has one address.
    pub(crate) fn unserved(&self) -> Option<&HostRule> {
        let large = |rule: &&Rule| match rule.host.host() {
            Host::Network(net) => u32::from(net.max_prefix_len() - net.prefix_len()) > SMALL.ilog2(),
            Host::Name(_) | Host::Under(_) | Host::Internal => false,
        };
        let mut open = self.rules.iter().filter(|rule| rule.decision != Decision::Deny);
        open.find(|rule| rule.host.protocol() == Protocol::Udp && large(rule))
            .map(|rule| &rule.host)
    }
}

impl fmt::Debug for NetworkAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkAccess")
            .field("rules", &self.rules)
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}
