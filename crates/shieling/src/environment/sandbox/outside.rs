//! The network of a sandbox, where it is opened by name: an outlet for each jail, and what of it is seen in the jail.

use std::sync::Arc;
#[cfg(feature = "gateway")]
use std::sync::{Mutex, OnceLock, PoisonError};

use shieling_jail::plan::Entry;
#[cfg(feature = "gateway")]
use shieling_jail::plan::Isolation;

#[cfg(feature = "gateway")]
use super::{EnforceError, Network};
use super::{LimitCounts, SandboxError};
#[cfg(feature = "gateway")]
use crate::network::{self, Look, NetworkAccess};
use crate::outcome::Outcome;
use crate::process::{Jail, Process, SessionShell, SpawnError};

#[cfg(feature = "gateway")]
pub(super) use crate::network::Outlet;

/// What of the network is opened, and the outlet of the jail that was made last.
#[cfg(feature = "gateway")]
#[derive(Debug, Default)]
pub(super) struct Outside {
    access: OnceLock<NetworkAccess>,
    latest: Mutex<Option<Arc<Outlet>>>,
}

#[cfg(feature = "gateway")]
impl Outside {
    /// Opens hosts by name, once and before anything runs.
    pub(super) fn open(
        &self,
        access: NetworkAccess,
        isolation: Isolation,
        network: Network,
    ) -> Result<(), EnforceError> {
        let refuse = |why: String| {
            let environment = "sandbox".to_owned();
            Err(EnforceError::Network { environment, why })
        };
        if isolation != Isolation::Full {
            return refuse("this isolation does without a network namespace, and a gateway needs one".to_owned());
        }
        match network {
            Network::Loopback => {}
            Network::Host => return refuse("with the host's network everything can be reached already".to_owned()),
            Network::None => {
                return refuse("without a network nothing can be reached; it needs one with a loopback".to_owned());
            }
        }
        if let Some(rule) = access.unserved() {
            return refuse(format!(
                "`{rule}`: datagrams to more than 256 addresses cannot be served"
            ));
        }
        match self.access.set(access) {
            Ok(()) => Ok(()),
            Err(_) => refuse("its network was opened already, for another policy".to_owned()),
        }
    }

    /// Whether hosts are opened by name.
    pub(super) fn is_open(&self) -> bool {
        self.access.get().is_some()
    }

    /// Whether an outlet can be made here and now, if there is to be one.
    pub(super) fn can_open(&self) -> bool {
        !self.is_open() || tokio::runtime::Handle::try_current().is_ok()
    }

    /// The outlet of the jail that runs, or else of the one that is made next, started if need be; none if no host is
    /// opened. One jail has one outlet: its authority signs what the certificates in the jail's view trust.
    pub(super) fn current(&self) -> Result<Option<Arc<Outlet>>, SandboxError> {
        let Some(access) = self.access.get() else {
            return Ok(None);
        };
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outlet) = latest.as_ref().filter(|outlet| outlet.is_current()) {
            return Ok(Some(Arc::clone(outlet)));
        }
        let outlet = Outlet::open(access).map_err(|error| SandboxError::Gateway(error.to_string()))?;
        Ok(Some(Arc::clone(latest.insert(Arc::new(outlet)))))
    }

    fn latest(&self) -> Option<Arc<Outlet>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves a jail that was made with the latest outlet.
    pub(super) fn attach(&self, jail: &Arc<Jail>) -> Result<(), SandboxError> {
        self.latest().map_or(Ok(()), |outlet| {
            outlet
                .attach(jail)
                .map_err(|error| SandboxError::Gateway(error.to_string()))
        })
    }

    /// The variables of commands: placeholders of secrets, and certificates.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        self.latest().map_or_else(Vec::new, |outlet| outlet.variables())
    }

    /// Whether a host is opened.
    pub(super) fn reaches(&self, name: &str) -> bool {
        self.access.get().is_some_and(|access| access.reaches(name))
    }

    /// The ports that programs could listen at if the gateway of the latest jail did not.
    pub(super) fn held_ports(&self) -> Vec<u16> {
        self.latest().map_or_else(Vec::new, |outlet| outlet.held_ports())
    }

    /// A look at what has happened until now.
    pub(super) fn look(&self) -> Option<Look> {
        self.latest().map(|outlet| outlet.look())
    }

    /// A process whose output, in pipes or on a terminal, is without the secrets.
    pub(super) fn redacted(&self, process: Process, terminal: bool) -> Result<Process, SpawnError> {
        match self.latest().and_then(|outlet| outlet.redactor()) {
            Some(redactor) if terminal => Ok(network::on_terminal(process, &redactor)),
            Some(redactor) => network::redacted(process, &redactor).map_err(|source| SpawnError::Supervisor {
                what: "making a pipe",
                source,
            }),
            None => Ok(process),
        }
    }

    /// A shell whose commands' output is without the secrets.
    pub(super) fn redacted_shell(&self, inner: Box<dyn SessionShell>) -> Box<dyn SessionShell> {
        match self.latest().and_then(|outlet| outlet.redactor()) {
            Some(redactor) => Box::new(network::RedactedShell { inner, redactor }),
            None => inner,
        }
    }

    /// Tells in an outcome what happened since a look.
    pub(super) fn tell(&self, outcome: &mut Outcome, before: &LimitCounts) {
        let Some(outlet) = self.latest() else { return };
        let mut summary = network::summary(&outlet.report(before.network.as_ref()));
        summary.always = outlet.take_always();
        outcome.network = Some(summary);
    }

    /// Ends the gateway of a jail that has ended.
    pub(super) async fn close(&self) {
        let outlet = self.latest.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(outlet) = outlet {
            outlet.settle().await;
        }
    }
}

/// No host can be opened by name. Braces, so that it is made as with the feature.
#[cfg(not(feature = "gateway"))]
#[derive(Debug, Default)]
pub(super) struct Outside {}

/// There is none.
#[cfg(not(feature = "gateway"))]
pub(super) enum Outlet {}

#[cfg(not(feature = "gateway"))]
#[expect(clippy::unused_self, reason = "as with the feature")]
impl Outside {
    pub(super) fn is_open(&self) -> bool {
        false
    }

    pub(super) fn can_open(&self) -> bool {
        true
    }

    pub(super) fn current(&self) -> Result<Option<Arc<Outlet>>, SandboxError> {
        Ok(None)
    }

    pub(super) fn attach(&self, _: &Arc<Jail>) -> Result<(), SandboxError> {
        Ok(())
    }

    pub(super) fn variables(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    pub(super) fn reaches(&self, _: &str) -> bool {
        false
    }

    pub(super) fn held_ports(&self) -> Vec<u16> {
        Vec::new()
    }

    pub(super) fn redacted(&self, process: Process, _: bool) -> Result<Process, SpawnError> {
        Ok(process)
    }

    pub(super) fn redacted_shell(&self, inner: Box<dyn SessionShell>) -> Box<dyn SessionShell> {
        inner
    }

    pub(super) fn tell(&self, _: &mut Outcome, _: &LimitCounts) {}

    #[expect(clippy::unused_async, reason = "as with the feature")]
    pub(super) async fn close(&self) {}
}

#[cfg(not(feature = "gateway"))]
impl Outlet {
    pub(super) fn plan(&self) -> shieling_jail::plan::Gateway {
        match *self {}
    }
}

/// Has a view show what programs need to find and trust the outlet.
#[cfg(feature = "gateway")]
pub(super) fn show(outlet: &Outlet, entries: &mut Vec<Entry>) {
    for entry in entries.iter_mut() {
        let Entry::File { target, content } = entry else {
            continue;
        };
        match target.to_str() {
            Some("/etc/resolv.conf") => *content = Outlet::resolver().into_bytes(),
            Some("/etc/hosts") => content.extend(outlet.hosts().into_bytes()),
            _ => {}
        }
    }
    entries.extend(outlet.trust());
}

#[cfg(not(feature = "gateway"))]
pub(super) fn show(outlet: &Outlet, _: &mut Vec<Entry>) {
    match *outlet {}
}
