//! What all tasks of one gateway share, and who is admitted.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Semaphore;

use crate::address;
use crate::ask::Attempt;
use crate::limits::Limits;
use crate::listeners::Listeners;
use crate::name::{HOST_INTERNAL, HostName};
use crate::names::Names;
use crate::outside::{Outside, Target};
use crate::permit::{Permit, Verdict, with_reason};
use crate::questions::{Questions, Refusal};
use crate::record::{Denied, Recorder};
use crate::redact::Redactor;
use crate::relay::Pipes;
use crate::rule::{DEFAULT_PORTS, HostRule, Protocol};
use crate::scope::Scope;
use crate::trust::Authority;
use crate::vault::Vault;

/// The state of one gateway.
pub(crate) struct Shared {
    pub(crate) permit: Permit,
    pub(crate) names: Names,
    pub(crate) questions: Questions,
    pub(crate) outside: Outside,
    pub(crate) vault: Vault,
    pub(crate) redactor: Redactor,
    /// There is one if there are secrets.
    pub(crate) authority: Option<Authority>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) pipes: Pipes,
    pub(crate) listeners: Option<Arc<dyn Listeners>>,
    pub(crate) search: Vec<HostName>,
    pub(crate) limits: Limits,
    pub(crate) connections: Arc<Semaphore>,
    /// Taken by the sockets of looked-up names, for good.
    pub(crate) name_sockets: Semaphore,
    pub(crate) dns_connections: Arc<Semaphore>,
    pub(crate) flows: Arc<Semaphore>,
    pub(crate) arrivals: Arrivals,
    pub(crate) scope: Scope,
}

impl Shared {
    /// The host that a program means by connecting to an address.
    pub(crate) fn target(&self, local: IpAddr) -> Target {
        let local = address::canonical(local);
        match self.names.at(local) {
            Some(name) => Target::of(name),
            None => Target::Address(local),
        }
    }

    /// Whether a name may be connected to without a question.
    pub(crate) fn allows(&self, name: &HostName, port: u16) -> bool {
        match self.permit.name(name, Protocol::Tcp, port) {
            Verdict::Allow => true,
            Verdict::Ask(_) | Verdict::Unnamed => self.questions.granted(name.as_str(), Protocol::Tcp, port),
            Verdict::Deny { .. } => false,
        }
    }

    /// Whether a connection may be made. Asks where that is to be asked, and records a refusal.
    pub(crate) async fn admit(&self, target: &Target, protocol: Protocol, port: u16) -> bool {
        let verdict = match target {
            Target::Name(name) => self.permit.name(name, protocol, port),
            Target::Internal => self.permit.name(&HostName::internal(), protocol, port),
            // An address of the pool that stands for no name. No rule can mean it.
            Target::Address(address) if self.names.has(*address) => Verdict::Unnamed,
            Target::Address(address) => self.permit.address(*address, protocol, port),
        };
        let host = target.to_string();
        let reason = match verdict {
            Verdict::Allow => return true,
            Verdict::Deny { because, instead } => {
                let because = because.unwrap_or_else(|| format!("a rule refuses `{}`", self.shown(target, port)));
                self.deny(host, Some(port), because, instead);
                return false;
            }
            Verdict::Ask(reason) => reason,
            Verdict::Unnamed if !self.may_ask_about(target) => {
                self.deny_unnamed(target, protocol, port, "no rule allows");
                return false;
            }
            Verdict::Unnamed => None,
        };
        let Some(rule) = rule_for(target, protocol, port) else {
            self.deny_unnamed(target, protocol, port, "no rule can allow");
            return false;
        };
        let refusal = match self
            .questions
            .ask(Attempt {
                host,
                port,
                protocol,
                rule,
                because: reason,
            })
            .await
        {
            Ok(()) => return true,
            Err(refusal) => refusal,
        };
        let shown = self.shown(target, port);
        let because = match refusal {
            Refusal::NobodyAsked => format!("nobody is there to allow `{shown}`"),
            Refusal::Answered(reason) if reason.is_empty() => format!("the answer was no to `{shown}`"),
            Refusal::Answered(reason) => format!("the answer was no to `{shown}`: {reason}"),
            Refusal::NoAnswer => format!("no answer came in time about `{shown}`"),
            Refusal::TooLong => format!("the question about `{shown}` is too long to be shown whole"),
            Refusal::TooMany => format!("too many questions are open to ask about `{shown}`"),
        };
        self.deny(
            target.to_string(),
            Some(port),
            because,
            option_for(target, protocol, port),
        );
        false
    }

    /// Whether a question about a target makes sense: names only, since an address says nothing to a person, and this
    /// machine's loopback is opened by a rule alone.
    fn may_ask_about(&self, target: &Target) -> bool {
        match target {
            Target::Name(_) => self.questions.can_ask(),
            Target::Internal | Target::Address(_) => false,
        }
    }

    /// Records the refusal of what no rule allows.
    fn deny_unnamed(&self, target: &Target, protocol: Protocol, port: u16, because: &str) {
        let instead = option_for(target, protocol, port);
        self.deny(
            target.to_string(),
            Some(port),
            format!("{because} `{}`", self.shown(target, port)),
            instead,
        );
    }

    /// Records that a connection to one host asked for another one, with the words of the rule that refuses it, if
    /// one does.
    pub(crate) fn deny_other(&self, host: &HostName, port: u16, because: String) {
        let (because, instead) = match self.permit.name(host, Protocol::Tcp, port) {
            Verdict::Deny { because: rule, instead } => (with_reason(because, rule.as_deref()), instead),
            _ => (because, option_for(&Target::of(host.clone()), Protocol::Tcp, port)),
        };
        self.deny(host.to_string(), Some(port), because, instead);
    }

    /// A target with its port, in the form of a rule.
    fn shown(&self, target: &Target, port: u16) -> String {
        match target {
            Target::Address(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            _ => format!("{target}:{port}"),
        }
    }

    /// Records a refusal.
    pub(crate) fn deny(&self, host: String, port: Option<u16>, because: String, instead: Option<String>) {
        self.recorder.denied(Denied {
            host,
            port,
            because,
            instead,
            count: 1,
        });
    }
}

/// The rule that would allow a connection, as a user writes it; `None` if no rule can.
pub(crate) fn rule_for(target: &Target, protocol: Protocol, port: u16) -> Option<HostRule> {
    let port_text = if protocol == Protocol::Tcp && DEFAULT_PORTS.contains(&port) && matches!(target, Target::Name(_)) {
        String::new()
    } else {
        format!(":{port}")
    };
    let host = match target {
        Target::Name(name) => name.to_string(),
        Target::Internal => HOST_INTERNAL.to_owned(),
        Target::Address(IpAddr::V4(address)) => address.to_string(),
        Target::Address(IpAddr::V6(address)) => format!("[{address}]"),
    };
    let protocol_text = if protocol == Protocol::Udp { "udp:" } else { "" };
    format!("{protocol_text}{host}{port_text}").parse().ok()
}

/// The option that would allow a connection; `None` if no rule can.
pub(crate) fn option_for(target: &Target, protocol: Protocol, port: u16) -> Option<String> {
    rule_for(target, protocol, port).map(|rule| format!("`--allow-host {rule}`"))
}

/// How many connections may still arrive now: a burst that fills up again at a rate.
pub(crate) struct Arrivals {
    burst: f64,
    rate: f64,
    state: Mutex<(f64, Instant)>,
}

impl Arrivals {
    pub(crate) fn new(limits: &Limits) -> Self {
        let burst = f64::from(limits.burst);
        Self {
            burst,
            rate: f64::from(limits.rate),
            state: Mutex::new((burst, Instant::now())),
        }
    }

    /// Takes one arrival at a time; false if there is none left.
    pub(crate) fn take(&self, now: Instant) -> bool {
        let mut state = self.state.lock().expect("no panic while held");
        let (left, last) = *state;
        let left = (left + now.saturating_duration_since(last).as_secs_f64() * self.rate).min(self.burst);
        let taken = left >= 1.0;
        *state = (if taken { left - 1.0 } else { left }, now.max(last));
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn arrivals_are_bounded_in_burst_and_rate() {
        let arrivals = Arrivals::new(&Limits {
            burst: 3,
            rate: 2,
            ..Limits::default()
        });
        let now = Instant::now();
        let taken = |at: Instant| (0..10).filter(|_| arrivals.take(at)).count();
        assert_eq!(taken(now), 3);
        assert_eq!(taken(now + Duration::from_secs(1)), 2);
        assert_eq!(taken(now + Duration::from_secs(100)), 3);
    }

    #[test]
    fn the_rule_that_would_allow_is_one_that_parses() {
        let shown = |target: Target, protocol, port| rule_for(&target, protocol, port).map(|rule| rule.to_string());
        let name = || Target::of(HostName::parse("pypi.org").unwrap());
        assert_eq!(shown(name(), Protocol::Tcp, 443).unwrap(), "pypi.org");
        assert_eq!(shown(name(), Protocol::Tcp, 22).unwrap(), "pypi.org:22");
        assert_eq!(shown(name(), Protocol::Udp, 443).unwrap(), "udp:pypi.org:443");
        assert_eq!(shown(Target::Internal, Protocol::Tcp, 80).unwrap(), "host.internal:80");
        assert_eq!(
            shown(Target::Address("2606:4700::1".parse().unwrap()), Protocol::Tcp, 80).unwrap(),
            "[2606:4700::1]:80"
        );
        assert_eq!(
            shown(Target::Address("127.0.0.1".parse().unwrap()), Protocol::Tcp, 80),
            None
        );
    }
}
