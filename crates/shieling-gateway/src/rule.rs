//! Rules: which hosts are meant, and what is decided about them.
//!
//! Parses and compares. What the rules as a whole decide stands in `permit`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::address::{self, AddressClass};
use crate::name::{HOST_INTERNAL, HostName, NameError};
use crate::sets;

/// The ports that a rule without a port allows.
pub const DEFAULT_PORTS: [u16; 2] = [443, 80];

/// The transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP, the default.
    Tcp,
    /// UDP, only where a rule begins with `udp:`.
    Udp,
}

/// The hosts that a rule means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// One name.
    Name(HostName),
    /// All subdomains of a name, at any depth, and not the name itself: `*.example.org`.
    Under(HostName),
    /// One address or a range of addresses.
    Network(IpNet),
    /// This machine's own loopback: `host.internal`.
    Internal,
}

/// A host and a port as a user writes them: `NAME[:PORT]`.
///
/// ```
/// use shieling_gateway::HostRule;
///
/// let rule: HostRule = "*.Example.org:8443".parse()?;
/// assert_eq!(rule.to_string(), "*.example.org:8443");
/// assert!("0x7f.1".parse::<HostRule>().is_err());
/// # Ok::<(), shieling_gateway::RuleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    protocol: Protocol,
    host: Host,
    port: Option<u16>,
}

/// The reasons why a text is not a [`HostRule`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The name is not a host name.
    #[error("{0}")]
    Name(#[from] NameError),
    /// The port is not a number from 1 to 65535.
    #[error("a port is a number from 1 to 65535")]
    Port,
    /// More than one port, or another word before the host than `udp:` and `tcp:`.
    #[error("a host has one port, and before it stands nothing but `udp:` or `tcp:`")]
    Colons,
    /// An IPv6 address without brackets.
    #[error("an IPv6 address stands in brackets")]
    Brackets,
    /// The address in brackets, or the range, is not well-formed.
    #[error("this is not an address or range in its usual notation")]
    Address,
    /// An address range with bits set outside of its prefix.
    #[error("the range has bits set outside of its prefix; the range itself is {0}")]
    HostBits(IpNet),
    /// A star that is not the first label of a name.
    #[error("`*` stands only for all subdomains of a name, as in `*.example.org`")]
    Star,
    /// A URL.
    #[error("this is a URL; name the host alone")]
    Url,
    /// An address that no rule can open.
    #[error("{address} is a {class} address, which no rule opens")]
    Special {
        /// The address.
        address: IpNet,
        /// Its class.
        class: AddressClass,
    },
    /// `localhost`, or a loopback address. Both belong to the sandbox itself.
    #[error("loopback is the sandbox's own")]
    Loopback,
    /// A name below `host.internal`.
    #[error("`{HOST_INTERNAL}` is this machine's loopback, and no name stands below it")]
    BelowInternal,
    /// A set that does not exist.
    #[error("there is no set of hosts of this name")]
    UnknownSet,
    /// UDP without a port.
    #[error("UDP is opened by port")]
    UdpPort,
}

impl RuleError {
    /// What to write instead, where that is known.
    #[must_use]
    pub fn instead(&self) -> Option<String> {
        Some(match self {
            Self::Name(NameError::Number) => "write an IPv4 address as four decimal numbers, as in 10.0.0.5".to_owned(),
            Self::Colons => "write it as in example.org:8443, [2001:db8::1]:443 or udp:ntp.example.org:123".to_owned(),
            Self::Brackets => "write it as in [2001:db8::1]:443".to_owned(),
            Self::HostBits(net) => net.to_string(),
            Self::Star => "name a host, or use `--network host` to open everything".to_owned(),
            Self::Url => "for https://pypi.org/simple write pypi.org".to_owned(),
            Self::Loopback | Self::BelowInternal => {
                format!("to reach this machine's loopback, write {HOST_INTERNAL}:PORT")
            }
            Self::UnknownSet => {
                let known: Vec<String> = sets::names().map(|name| format!("@{name}")).collect();
                format!("known sets: {}", known.join(", "))
            }
            Self::UdpPort => "write it as in udp:ntp.example.org:123".to_owned(),
            Self::Name(_) | Self::Port | Self::Address | Self::Special { .. } => return None,
        })
    }
}

impl HostRule {
    /// Parses `NAME[:PORT]` or a set (`@python`), which gives several rules.
    ///
    /// # Errors
    /// If the text is neither.
    pub fn expand(text: &str) -> Result<Vec<Self>, RuleError> {
        match text.strip_prefix('@') {
            Some(set) => sets::hosts(set).ok_or(RuleError::UnknownSet)?.map(str::parse).collect(),
            None => Ok(vec![text.parse()?]),
        }
    }

    /// The rule for a name and a port.
    #[must_use]
    pub fn name(name: HostName, port: u16) -> Self {
        Self {
            protocol: Protocol::Tcp,
            host: Host::Name(name),
            port: Some(port),
        }
    }

    /// The hosts that are meant.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port that is meant, if the rule names one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether the rule means this name, on any port.
    #[must_use]
    pub fn means_name(&self, name: &HostName) -> bool {
        match &self.host {
            Host::Name(named) => named == name,
            // The name of this machine's loopback is opened by itself alone.
            Host::Under(parent) => name.as_str() != HOST_INTERNAL && name.is_under(parent),
            Host::Internal => name.as_str() == HOST_INTERNAL,
            Host::Network(_) => false,
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.protocol == Protocol::Udp {
            f.write_str("udp:")?;
        }
        match &self.host {
            Host::Name(name) => write!(f, "{name}")?,
            Host::Under(parent) => write!(f, "*.{parent}")?,
            Host::Internal => f.write_str(HOST_INTERNAL)?,
            Host::Network(IpNet::V4(net)) if net.prefix_len() == 32 => write!(f, "{}", net.addr())?,
            Host::Network(IpNet::V4(net)) => write!(f, "{net}")?,
            Host::Network(IpNet::V6(net)) if net.prefix_len() == 128 => write!(f, "[{}]", net.addr())?,
            Host::Network(IpNet::V6(net)) => write!(f, "[{net}]")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl FromStr for HostRule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        if let Some(character) = text.chars().find(|c| c.is_control() || c.is_whitespace()) {
            return Err(NameError::Character(character).into());
        }
        if text.contains("://") {
            return Err(RuleError::Url);
        }
        let (protocol, rest) = match text.strip_prefix("udp:") {
            Some(rest) => (Protocol::Udp, rest),
            None => (Protocol::Tcp, text.strip_prefix("tcp:").unwrap_or(text)),
        };
        let (host, port) = if let Some(bracketed) = rest.strip_prefix('[') {
            in_brackets(bracketed)?
        } else {
            plain(rest)?
        };
        if protocol == Protocol::Udp && port.is_none() {
            return Err(RuleError::UdpPort);
        }
        Ok(Self { protocol, host, port })
    }
}

/// Parses what follows `[`: `ADDRESS]`, `ADDRESS/BITS]` or `ADDRESS]/BITS`, each with an optional `:PORT`.
fn in_brackets(text: &str) -> Result<(Host, Option<u16>), RuleError> {
    let (inside, after) = text.split_once(']').ok_or(RuleError::Brackets)?;
    let (bits_after, port) = match after.split_once(':') {
        Some((bits, port)) => (bits, Some(parse_port(port)?)),
        None => (after, None),
    };
    let (address, bits_inside) = match inside.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (inside, None),
    };
    let bits = match (bits_inside, bits_after) {
        (bits, "") => bits,
        (None, bits) => Some(bits.strip_prefix('/').ok_or(RuleError::Address)?),
        (Some(_), _) => return Err(RuleError::Address),
    };
    let address: Ipv6Addr = address.parse().map_err(|_| RuleError::Address)?;
    let net = Ipv6Net::new(address, parse_bits(bits, 128)?).map_err(|_| RuleError::Address)?;
    Ok((network(IpNet::V6(net))?, port))
}

/// Parses `NAME`, `*.NAME`, `ADDRESS` or `ADDRESS/BITS`, each with an optional `:PORT`.
fn plain(text: &str) -> Result<(Host, Option<u16>), RuleError> {
    let (host, port) = match text.split_once(':') {
        Some((_, rest)) if rest.contains(':') => {
            let address = text.split(['/', '%']).next().unwrap_or(text);
            let without_port = address.rsplit_once(':').map_or(address, |(address, _)| address);
            let is_one = [address, without_port]
                .iter()
                .any(|text| text.parse::<Ipv6Addr>().is_ok());
            return Err(if is_one { RuleError::Brackets } else { RuleError::Colons });
        }
        Some((host, port)) => (host, Some(parse_port(port)?)),
        None => (text, None),
    };
    if let Some((address, bits)) = host.split_once('/') {
        let address: Ipv4Addr = address.parse().map_err(|_| RuleError::Address)?;
        let net = Ipv4Net::new(address, parse_bits(Some(bits), 32)?).map_err(|_| RuleError::Address)?;
        return Ok((network(IpNet::V4(net))?, port));
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Ok((network(IpNet::V4(address.into()))?, port));
    }
    if let Some(parent) = host.strip_prefix("*.") {
        let parent = not_local(HostName::parse(parent)?)?;
        return match parent.as_str() == HOST_INTERNAL {
            true => Err(RuleError::BelowInternal),
            false => Ok((Host::Under(parent), port)),
        };
    }
    if host.contains('*') {
        return Err(RuleError::Star);
    }
    let name = not_local(HostName::parse(host)?)?;
    Ok((
        if name.as_str() == HOST_INTERNAL {
            Host::Internal
        } else {
            Host::Name(name)
        },
        port,
    ))
}

/// Refuses names that mean loopback (RFC 6761), and names that nobody has.
fn not_local(name: HostName) -> Result<HostName, RuleError> {
    if name.is_under(&HostName::internal()) {
        return Err(RuleError::BelowInternal);
    }
    match name.as_str() == "localhost" || name.as_str().ends_with(".localhost") {
        true => Err(RuleError::Loopback),
        false => Ok(name),
    }
}

/// Checks a range that a rule names.
fn network(net: IpNet) -> Result<Host, RuleError> {
    if net.addr() != net.network() {
        return Err(RuleError::HostBits(net.trunc()));
    }
    let special = |class| Err(RuleError::Special { address: net, class });
    // A mapped address is another spelling of the IPv4 address.
    if let IpNet::V6(v6) = net
        && address::canonical(IpAddr::V6(v6.addr())).is_ipv4()
    {
        return Err(RuleError::Address);
    }
    // What lies as a whole in one of these blocks. A wide range that contains them does not open them.
    match address::class(net.addr()) {
        Some(AddressClass::Loopback) if net.prefix_len() >= 8 => Err(RuleError::Loopback),
        Some(class @ AddressClass::Multicast) => special(class),
        Some(class @ AddressClass::Reserved) if SYNTHETIC.contains(&net) => special(class),
        _ => Ok(Host::Network(net)),
    }
}

/// The addresses that stand for names inside of a sandbox.
const SYNTHETIC: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15));

/// Parses a port: decimal digits, from 1.
fn parse_port(text: &str) -> Result<u16, RuleError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| *port != 0 && digits);
    port.ok_or(RuleError::Port)
}

/// Parses the length of a prefix; a single address without one.
fn parse_bits(text: Option<&str>, max: u8) -> Result<u8, RuleError> {
    let Some(text) = text else { return Ok(max) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|bits| digits && *bits <= max)
        .ok_or(RuleError::Address)
}

/// What is decided about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// It is made.
    Allow,
    /// The [`Asker`](crate::Asker) is asked; without one it is refused.
    Ask,
    /// It is refused.
    Deny,
}

/// A [`HostRule`] with its decision. Of several rules that mean a connection, the strictest decides.
///
/// Without a port, a rule that allows means the ports 443 and 80; a rule that asks or denies means every port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The hosts and the port.
    pub host: HostRule,
    /// What is decided.
    pub decision: Decision,
    /// The reason, told with a refusal.
    pub because: Option<String>,
    /// What to do instead, told with a refusal.
    pub instead: Option<String>,
}

impl Rule {
    /// A rule that allows what `--allow-host` names.
    #[must_use]
    pub fn allow(host: HostRule) -> Self {
        Self {
            host,
            decision: Decision::Allow,
            because: None,
            instead: None,
        }
    }

    /// Whether the rule means this port of a host that it means.
    pub(crate) fn means_port(&self, protocol: Protocol, port: u16) -> bool {
        self.host.protocol == protocol
            && match (self.host.port, self.decision) {
                (Some(named), _) => named == port,
                (None, Decision::Allow) => DEFAULT_PORTS.contains(&port),
                (None, Decision::Ask | Decision::Deny) => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> String {
        text.parse::<HostRule>().expect(text).to_string()
    }

    fn refused(text: &str) -> RuleError {
        text.parse::<HostRule>().expect_err(text)
    }

    #[test]
    fn rules_are_read_and_shown_in_canonical_form() {
        for (text, shown) in [
            ("pypi.org", "pypi.org"),
            ("PyPI.org.:8443", "pypi.org:8443"),
            ("*.example.org", "*.example.org"),
            ("10.0.0.5:5432", "10.0.0.5:5432"),
            ("10.0.0.0/8:5432", "10.0.0.0/8:5432"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("[2606:4700::1111]:443", "[2606:4700::1111]:443"),
            ("[2606:4700::1111]", "[2606:4700::1111]"),
            ("[fd00::/8]:443", "[fd00::/8]:443"),
            ("[fd00::]/8:443", "[fd00::/8]:443"),
            ("host.internal:5432", "host.internal:5432"),
            ("udp:ntp.example.org:123", "udp:ntp.example.org:123"),
            ("tcp:pypi.org", "pypi.org"),
            ("db:5432", "db:5432"),
            ("169.254.169.254:80", "169.254.169.254:80"),
        ] {
            assert_eq!(parsed(text), shown);
            assert_eq!(parsed(shown), shown);
        }
    }

    #[test]
    fn what_programs_read_differently_is_refused_with_a_cure() {
        assert_eq!(refused("0x7f.0.0.1"), NameError::Number.into());
        assert_eq!(refused("0177.0.0.1"), NameError::Number.into());
        assert_eq!(refused("2130706433:80"), NameError::Number.into());
        assert_eq!(refused("10.0.0.05"), NameError::Number.into());
        assert_eq!(refused("10.0.5"), NameError::Number.into());
        assert_eq!(refused("010.0.0.0/8"), RuleError::Address);
        assert_eq!(refused("2001:db8::1"), RuleError::Brackets);
        assert_eq!(refused("[2001:db8::1"), RuleError::Brackets);
        assert_eq!(refused("[fe80::1%eth0]"), RuleError::Address);
        assert_eq!(refused("[::ffff:10.0.0.1]:80"), RuleError::Address);
        assert_eq!(refused("[pypi.org]"), RuleError::Address);
        assert_eq!(
            refused("10.0.0.5/8"),
            RuleError::HostBits("10.0.0.0/8".parse().unwrap())
        );
        assert_eq!(refused("10.0.0.0/33"), RuleError::Address);
        assert_eq!(refused("10.0.0.0/+8"), RuleError::Address);
        for text in ["a:0", "a:65536", "a:", "a:+80", "a:8a", "a: 80"] {
            assert!(
                matches!(
                    refused(text),
                    RuleError::Port | RuleError::Name(NameError::Character(' '))
                ),
                "{text}"
            );
        }
        for text in ["*", "*.*.org", "a.*.org", "*example.org", "**.org"] {
            assert!(
                matches!(
                    refused(text),
                    RuleError::Star | RuleError::Name(NameError::Character('*'))
                ),
                "{text}"
            );
        }
        assert_eq!(refused("https://pypi.org/simple"), RuleError::Url);
        for text in [
            "localhost:80",
            "a.localhost",
            "127.0.0.1:80",
            "[::1]:80",
            "127.0.0.0/8",
            "0.0.0.0:80",
        ] {
            assert_eq!(refused(text), RuleError::Loopback, "{text}");
        }
        for text in ["*.host.internal:80", "x.host.internal", "*.x.host.internal"] {
            assert_eq!(refused(text), RuleError::BelowInternal, "{text}");
        }
        assert!(refused("127.0.0.1:80").instead().unwrap().contains("host.internal"));
        assert!(matches!(refused("224.0.0.1"), RuleError::Special { .. }));
        assert!(matches!(refused("198.18.0.7:443"), RuleError::Special { .. }));
        assert_eq!(refused("udp:a.org"), RuleError::UdpPort);
        assert_eq!(refused("pypi.org\0"), NameError::Character('\0').into());
        assert_eq!(refused(""), NameError::Empty.into());
    }

    #[test]
    fn every_set_is_well_formed_and_an_unknown_one_names_those_that_exist() {
        for name in sets::names() {
            assert!(HostRule::expand(&format!("@{name}")).unwrap().len() > 1, "{name}");
        }
        let error = HostRule::expand("@pyhton").unwrap_err();
        assert!(error.instead().unwrap().contains("@python"));
    }

    #[test]
    fn a_wildcard_means_subdomains_and_never_the_bare_name() {
        let rule: HostRule = "*.example.org".parse().unwrap();
        let means = |text| rule.means_name(&HostName::parse(text).unwrap());
        assert!(means("a.example.org") && means("a.b.example.org"));
        assert!(!means("example.org") && !means("xexample.org") && !means("example.org.evil.net"));
        let internal: HostRule = "*.internal".parse().unwrap();
        assert!(!internal.means_name(&HostName::parse(HOST_INTERNAL).unwrap()));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_parses_is_stable(text in "[*a-z0-9.:/\\[\\]@x -]{0,30}|\\PC{0,30}") {
            if let Ok(rule) = text.parse::<HostRule>() {
                prop_assert_eq!(rule.to_string().parse::<HostRule>(), Ok(rule));
            }
        }
    }
}
