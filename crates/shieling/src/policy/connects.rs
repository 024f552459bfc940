//! Rules about connections to hosts. The gateway of an environment decides by them; no text is judged by them.

#[cfg(feature = "gateway")]
use shieling_gateway::{DEFAULT_PORTS, Host, HostRule};

use super::verdict::Decision;

/// What a policy says of connections to some hosts.
#[cfg(feature = "gateway")]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectRule {
    /// Its name, with its place in the policy file.
    pub name: String,
    /// The hosts.
    pub hosts: Vec<HostRule>,
    /// What is decided about them.
    pub decision: Decision,
    /// Why.
    pub because: Option<String>,
    /// What to do instead.
    pub instead: Option<String>,
}

/// The hosts of a rule.
#[derive(Debug, Clone)]
pub(super) struct Hosts(#[cfg(feature = "gateway")] pub(super) Vec<HostRule>);

#[cfg(feature = "gateway")]
impl Hosts {
    /// Those that these texts name.
    pub(super) fn parse(texts: &[String]) -> Result<Self, String> {
        if texts.is_empty() {
            return Err("`connects` names no host".to_owned());
        }
        let mut hosts = Vec::new();
        for text in texts {
            hosts.extend(HostRule::expand(text).map_err(|fault| told(text, &fault))?);
        }
        Ok(Self(hosts))
    }

    /// Whether a host and port, as `--allow-host` takes them, is one of these. Without a port it is 443.
    pub(super) fn mean(&self, example: &str, decision: Decision) -> Result<bool, String> {
        let asked: HostRule = example.parse().map_err(|fault| told(example, &fault))?;
        let port = asked.port().unwrap_or(DEFAULT_PORTS[0]);
        Ok(self.0.iter().any(|host| {
            let named = match (host.host(), asked.host()) {
                (_, Host::Name(name)) => host.means_name(name),
                (Host::Network(net), Host::Network(address)) => net.contains(address),
                (Host::Internal, Host::Internal) => true,
                _ => false,
            };
            let ported = match (host.port(), decision) {
                (Some(named), _) => named == port,
                (None, Decision::Allow) => DEFAULT_PORTS.contains(&port),
                (None, Decision::Ask | Decision::Deny) => true,
            };
            named && ported && host.protocol() == asked.protocol()
        }))
    }
}

#[cfg(feature = "gateway")]
fn told(text: &str, fault: &shieling_gateway::RuleError) -> String {
    match fault.instead() {
        Some(instead) => format!("`{text}` is no host: {fault}; {instead}"),
        None => format!("`{text}` is no host: {fault}"),
    }
}

#[cfg(not(feature = "gateway"))]
impl Hosts {
    pub(super) fn parse(_: &[String]) -> Result<Self, String> {
        Err("`connects` needs a gateway, which this build is without".to_owned())
    }

    pub(super) fn mean(&self, _: &str, _: Decision) -> Result<bool, String> {
        Ok(false)
    }
}

#[cfg(test)]
#[cfg(feature = "gateway")]
mod tests {
    use super::super::RuleFile;

    fn parse(rule: &str) -> Result<RuleFile, String> {
        RuleFile::parse("p.toml", &format!("[[rule]]\n{rule}")).map_err(|error| error.to_string())
    }

    #[test]
    fn examples_of_hosts_are_checked() {
        let rule = |decision: &str, lists: &str| {
            parse(&format!(
                "decision = \"{decision}\"\nconnects = [\"*.example.org\", \"10.0.0.0/8:5432\", \"host.internal:80\"]\n{lists}"
            ))
        };
        assert!(
            rule(
                "allow",
                "match = [\"a.example.org\", \"a.b.example.org:80\", \"10.1.2.3:5432\", \"host.internal:80\"]\n\
                 not_match = [\"example.org\", \"a.example.org:22\", \"10.1.2.3\", \"11.0.0.1:5432\"]"
            )
            .is_ok()
        );
        // A denial without a port is one of every port.
        assert!(rule("deny", "match = [\"a.example.org:22\"]").is_ok());
        let wrong = rule("allow", "match = [\"example.org\"]").unwrap_err();
        assert_eq!(
            wrong,
            "p.toml:4: the rule `rule 1` should match its example `example.org`"
        );
    }

    #[test]
    fn what_is_no_host_is_an_error_of_its_line() {
        let wrong = parse("decision = \"allow\"\nconnects = \"https://example.org/\"").unwrap_err();
        assert!(
            wrong.starts_with("p.toml:3: `https://example.org/` is no host: this is a URL"),
            "{wrong}"
        );
        let both = parse("decision = \"allow\"\nconnects = \"a.org\"\ncommand = \"curl\"").unwrap_err();
        assert!(both.contains("make it two rules"), "{both}");
        assert!(parse("decision = \"allow\"\nconnects = []").is_err());
    }
}
