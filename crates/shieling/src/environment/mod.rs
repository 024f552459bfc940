//! Where commands run. An environment takes only what was approved and cannot see a policy.

mod local;
mod shell;
mod variables;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;

use serde::Serialize;

use crate::approval::Approved;
use crate::outcome::Confinement;
use crate::process::{Process, SpawnError};
use crate::request::Command;

pub use local::Local;
pub use shell::{NoShell, Shell};
pub use variables::{VariableError, Variables};

/// What of the network a command may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Nothing.
    None,
    /// The machine it believes to be on.
    Loopback,
    /// Whatever this host can reach.
    Host,
}

/// A resource that can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Memory of all processes together.
    Memory,
    /// The number of processes.
    Pids,
    /// CPU time per wall time.
    Cpus,
    /// The size of any file that is written.
    FileSize,
}

/// What an environment can enforce. What it cannot is refused, not ignored, by whoever was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Ignored paths do not exist in it.
    pub hides_ignored: bool,
    /// Under readonly, nothing can be changed in it.
    pub enforces_readonly: bool,
    /// Under an allow list, no other program can be executed in it.
    pub enforces_allow: bool,
    /// The network modes that it can give.
    pub networks: BTreeSet<Network>,
    /// The limits that it can set.
    pub limits: BTreeSet<Limit>,
}

/// A future on the heap, so that [`Environment`] can be a trait object.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where commands run.
///
/// The same things hold in each: a command gets an end of file as standard input, exactly the
/// variables it was approved with, and no descriptor of its host; its [`Process`] ends all of it.
pub trait Environment: Send + Sync {
    /// Its name: `local`, `sandbox`, `memory`, `container`.
    fn name(&self) -> &str;

    /// What it can enforce.
    fn capabilities(&self) -> Capabilities;

    /// What it does enforce, read back and not wished.
    fn confinement(&self) -> Confinement;

    /// Starts a command. Its time counts from here on.
    ///
    /// # Errors
    /// [`SpawnError`]; nothing is left running.
    /// # Cancel safety
    /// Dropping the future ends what may have been started.
    fn spawn(&self, command: Approved<Command>) -> Later<'_, Result<Process, SpawnError>>;

    /// Gives back what it holds. Commands that still run end with their [`Process`].
    fn close(&self) -> Later<'_, ()>;
}
