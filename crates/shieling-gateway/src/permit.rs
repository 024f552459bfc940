//! What the rules as a whole decide about a host and a port.
//!
//! Pure: looks nothing up. Whether somebody is to be asked about what no rule means is the caller's matter.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::address;
use crate::name::HostName;
use crate::rule::{DEFAULT_PORTS, Decision, Host, Protocol, Rule};

/// What the rules say about a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A rule allows it.
    Allow,
    /// A rule asks, for this reason.
    Ask(Option<String>),
    /// A rule refuses it.
    Deny {
        /// The rule's reason.
        because: Option<String>,
        /// What to do instead.
        instead: Option<String>,
    },
    /// No rule means it.
    Unnamed,
}

/// What happened, with the reason of the rule that refuses it, if it has one.
pub(crate) fn with_reason(what: String, rule: Option<&str>) -> String {
    match rule {
        Some(rule) => format!("{what}: {rule}"),
        None => what,
    }
}

/// The rules of a gateway.
#[derive(Debug)]
pub(crate) struct Permit {
    rules: Vec<Rule>,
}

impl Permit {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Judges a connection to a name.
    pub(crate) fn name(&self, name: &HostName, protocol: Protocol, port: u16) -> Verdict {
        strictest(
            self.rules
                .iter()
                .filter(|rule| rule.host.means_name(name) && rule.means_port(protocol, port)),
        )
    }

    /// Judges a connection to an address: one that a program named itself, or one that a name leads to.
    pub(crate) fn address(&self, address: IpAddr, protocol: Protocol, port: u16) -> Verdict {
        let means = |rule: &&Rule| match rule.host.host() {
            Host::Network(net) => {
                // A wide range allows public addresses only; it refuses all of its addresses.
                let reached = rule.decision == Decision::Deny
                    || address::class(address).is_none()
                    || address::names_special(net, address);
                net.contains(&address) && reached && rule.means_port(protocol, port)
            }
            Host::Name(_) | Host::Under(_) | Host::Internal => false,
        };
        strictest(self.rules.iter().filter(means))
    }

    /// Whether a lookup of a name, which has no port yet, leads anywhere.
    pub(crate) fn lookup(&self, name: &HostName) -> Verdict {
        let named = || self.rules.iter().filter(|rule| rule.host.means_name(name));
        // A refusal of a single port is told when that port is tried.
        let whole = |rule: &&Rule| rule.decision == Decision::Deny && rule.host.port().is_none();
        match strictest(named().filter(whole)) {
            Verdict::Unnamed => strictest(named().filter(|rule| rule.decision != Decision::Deny)),
            refused => refused,
        }
    }

    /// The ports on which a name may be reached, now or after a question.
    pub(crate) fn ports(&self, name: &HostName) -> BTreeSet<(Protocol, u16)> {
        let opening = self
            .rules
            .iter()
            .filter(|rule| rule.decision != Decision::Deny && rule.host.means_name(name));
        opening.flat_map(ports_of).collect()
    }

    /// The ports that any rule opens.
    pub(crate) fn all_ports(&self) -> BTreeSet<(Protocol, u16)> {
        self.rules
            .iter()
            .filter(|rule| rule.decision != Decision::Deny)
            .flat_map(ports_of)
            .collect()
    }

    /// The names that rules name one by one, without those that are refused.
    pub(crate) fn names(&self) -> Vec<HostName> {
        let mut names = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.decision != Decision::Deny) {
            let name = match rule.host.host() {
                Host::Name(name) => name.clone(),
                Host::Internal => HostName::internal(),
                Host::Under(_) | Host::Network(_) => continue,
            };
            if !names.contains(&name) && !matches!(self.lookup(&name), Verdict::Deny { .. }) {
                names.push(name);
            }
        }
        names
    }

    /// The networks that rules open, with their ports.
    pub(crate) fn networks(&self) -> impl Iterator<Item = (IpNet, BTreeSet<(Protocol, u16)>)> {
        let opening = self.rules.iter().filter(|rule| rule.decision != Decision::Deny);
        opening.filter_map(|rule| match rule.host.host() {
            Host::Network(net) => Some((*net, ports_of(rule).collect())),
            Host::Name(_) | Host::Under(_) | Host::Internal => None,
        })
    }
}

/// The ports that a rule opens.
fn ports_of(rule: &Rule) -> impl Iterator<Item = (Protocol, u16)> + use<> {
    let protocol = rule.host.protocol();
    let ports = match rule.host.port() {
        Some(port) => vec![port],
        None => DEFAULT_PORTS.to_vec(),
    };
    ports.into_iter().map(move |port| (protocol, port))
}

/// The strictest decision of several rules.
fn strictest<'a>(rules: impl Iterator<Item = &'a Rule>) -> Verdict {
    let Some(rule) = rules.reduce(|strictest, rule| {
        if rule.decision > strictest.decision {
            rule
        } else {
            strictest
        }
    }) else {
        return Verdict::Unnamed;
    };
    match rule.decision {
        Decision::Allow => Verdict::Allow,
        Decision::Ask => Verdict::Ask(rule.because.clone()),
        Decision::Deny => Verdict::Deny {
            because: rule.because.clone(),
            instead: rule.instead.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::HostRule;

    fn permit(rules: &[(&str, Decision)]) -> Permit {
        let rule = |(text, decision): &(&str, Decision)| Rule {
            decision: *decision,
            ..Rule::allow(text.parse().unwrap())
        };
        Permit::new(rules.iter().map(rule).collect())
    }

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn refusal() -> Verdict {
        Verdict::Deny {
            because: None,
            instead: None,
        }
    }

    #[test]
    fn a_rule_without_port_allows_443_and_80_and_no_other() {
        let permit = permit(&[("pypi.org", Decision::Allow), ("db.corp:5432", Decision::Allow)]);
        for (host, port, allowed) in [
            ("pypi.org", 443, true),
            ("pypi.org", 80, true),
            ("pypi.org", 22, false),
            ("db.corp", 5432, true),
            ("db.corp", 443, false),
            ("evil.org", 443, false),
        ] {
            let expected = if allowed { Verdict::Allow } else { Verdict::Unnamed };
            assert_eq!(permit.name(&name(host), Protocol::Tcp, port), expected, "{host}:{port}");
        }
        assert_eq!(permit.name(&name("pypi.org"), Protocol::Udp, 443), Verdict::Unnamed);
    }

    #[test]
    fn the_strictest_rule_decides_and_a_refusal_without_port_means_all_ports() {
        let permit = permit(&[
            ("*.example.org", Decision::Allow),
            ("evil.example.org", Decision::Deny),
            ("ask.example.org:443", Decision::Ask),
        ]);
        assert_eq!(permit.name(&name("a.example.org"), Protocol::Tcp, 443), Verdict::Allow);
        assert_eq!(permit.name(&name("evil.example.org"), Protocol::Tcp, 8443), refusal());
        assert_eq!(permit.lookup(&name("evil.example.org")), refusal());
        assert_eq!(
            permit.name(&name("ask.example.org"), Protocol::Tcp, 443),
            Verdict::Ask(None)
        );
        assert_eq!(permit.name(&name("ask.example.org"), Protocol::Tcp, 80), Verdict::Allow);
        assert_eq!(permit.lookup(&name("example.org")), Verdict::Unnamed);
    }

    #[test]
    fn a_wide_range_opens_public_addresses_alone() {
        let permit = permit(&[("0.0.0.0/0:443", Decision::Allow), ("10.0.0.5:5432", Decision::Allow)]);
        let judge = |address: &str, port| permit.address(address.parse().unwrap(), Protocol::Tcp, port);
        assert_eq!(judge("1.1.1.1", 443), Verdict::Allow);
        assert_eq!(judge("169.254.169.254", 443), Verdict::Unnamed);
        assert_eq!(judge("127.0.0.1", 443), Verdict::Unnamed);
        assert_eq!(judge("10.0.0.5", 5432), Verdict::Allow);
        assert_eq!(
            judge("::ffff:10.0.0.5", 5432),
            Verdict::Unnamed,
            "callers pass the canonical address"
        );
        assert_eq!(judge("10.0.0.5", 443), Verdict::Unnamed);
        assert_eq!(judge("10.0.0.6", 5432), Verdict::Unnamed);
    }

    #[test]
    fn names_and_ports_are_listed_without_what_is_refused() {
        let permit = permit(&[
            ("a.org", Decision::Allow),
            ("a.org:22", Decision::Allow),
            ("b.org", Decision::Allow),
            ("b.org", Decision::Deny),
            ("host.internal:5432", Decision::Allow),
        ]);
        assert_eq!(permit.names(), [name("a.org"), HostName::internal()]);
        let tcp = |port| (Protocol::Tcp, port);
        assert_eq!(
            permit.ports(&name("a.org")),
            BTreeSet::from([tcp(22), tcp(80), tcp(443)])
        );
        assert_eq!(permit.ports(&HostName::internal()), BTreeSet::from([tcp(5432)]));
        assert!("host.internal:5432".parse::<HostRule>().is_ok());
    }
}
