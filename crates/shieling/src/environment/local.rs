//! This host, unconfined, and it says so: a command can do whatever the user can.

use std::collections::BTreeSet;

use super::{Capabilities, Environment, Later, Limit, Network, Shell};
use crate::approval::Approved;
use crate::outcome::Confinement;
use crate::process::{Process, SpawnError};
use crate::request::Command;

/// Commands run directly on this host. Nothing is confined; only the size of files can be limited.
#[derive(Debug, Clone)]
pub struct Local {
    shell: Shell,
}

impl Local {
    /// With this shell.
    pub fn new(shell: Shell) -> Self {
        Self { shell }
    }
}

impl Environment for Local {
    fn name(&self) -> &str {
        "local"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            hides_ignored: false,
            enforces_readonly: false,
            enforces_allow: false,
            networks: BTreeSet::from([Network::Host]),
            limits: BTreeSet::from([Limit::FileSize]),
        }
    }

    fn confinement(&self) -> Confinement {
        Confinement::default()
    }

    fn spawn(&self, command: Approved<Command>) -> Later<'_, Result<Process, SpawnError>> {
        Box::pin(async move { Process::start(&self.shell.plan(command.request())).await })
    }

    fn close(&self) -> Later<'_, ()> {
        Box::pin(async {})
    }
}
