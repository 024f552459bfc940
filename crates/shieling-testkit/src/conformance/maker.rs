//! What the author of an environment gives: a way to make places.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling::environment::{Environment, JailLimits, Later, Network};
use shieling::policy::Policy;

/// Makes environments that nobody has used. Each case gets one of its own.
pub trait Maker: Send + Sync {
    /// What the report calls it.
    fn name(&self) -> String;

    /// Makes one, with a workspace that holds what is wished and nothing else.
    ///
    /// # Errors
    /// [`Unmet`]: there is none, or none like that.
    fn make<'a>(&'a self, wishes: &'a Wishes) -> Later<'a, Result<Place, Unmet>>;
}

/// What a case wants its place to be. What is not wished is left at the default of the environment.
#[derive(Clone)]
#[non_exhaustive]
pub struct Wishes {
    /// The policy of the façade that will stand over the environment, which hands it over by itself. One that
    /// enforces only what it was made with is made with [`shieling::enforcement_of`] it.
    pub policy: Policy,
    /// Files of the workspace, by their paths relative to it.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Limits for all commands together. One that the environment cannot set is [`Unmet::Refused`], never
    /// left out.
    pub limits: JailLimits,
    /// What of the network may be reached; none for whatever it is made with.
    pub network: Option<Network>,
}

impl Wishes {
    pub(super) fn none() -> Self {
        Self {
            policy: Policy::open(),
            files: BTreeMap::new(),
            limits: JailLimits::default(),
            network: None,
        }
    }
}

impl fmt::Debug for Wishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wishes")
            .field("readonly", &self.policy.is_readonly())
            .field("hidden", &self.policy.hidden())
            .field("programs", &self.policy.programs())
            .field("files", &self.files.keys())
            .field("limits", &self.limits)
            .field("network", &self.network)
            .finish()
    }
}

/// Why no place was made.
#[derive(Debug)]
pub enum Unmet {
    /// This environment is never made so: it says so, and has not left the wish out. The case counts as
    /// skipped, unless the environment declares that it can.
    Refused(String),
    /// It ought to have been made. The case counts as failed.
    Fault(String),
}

impl Unmet {
    /// From an error that ought not to be.
    pub fn fault(error: impl fmt::Display) -> Self {
        Self::Fault(error.to_string())
    }
}

/// An environment, and what is known of it from outside.
pub struct Place {
    /// It.
    pub environment: Arc<dyn Environment>,
    /// The workspace, as its commands see it: absolute, without links.
    pub workspace: PathBuf,
    /// What every command is given, such as `PATH`.
    pub variables: BTreeMap<String, String>,
    /// What lies beside the workspace and is no business of whoever works in it; none if there is no such
    /// thing, or no way to it.
    pub outside: Option<Box<dyn Outside>>,
    /// Whatever is to go with it, such as a temporary directory.
    pub keep: Box<dyn std::any::Any + Send + Sync>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("environment", &self.environment.name())
            .field("workspace", &self.workspace)
            .field("outside", &self.outside.is_some())
            .finish_non_exhaustive()
    }
}

/// A directory beside the workspace, reached by another way than the environment: what a file tool may
/// neither read nor change, whatever a link in the workspace says.
pub trait Outside: Send + Sync {
    /// Where it is, as a link in the workspace would name it.
    fn path(&self) -> &Path;

    /// Puts a file there.
    ///
    /// # Errors
    /// What the system says.
    fn put(&self, name: &str, content: &[u8]) -> io::Result<()>;

    /// The file, if it is there.
    ///
    /// # Errors
    /// What the system says.
    fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// The names of all that is there.
    ///
    /// # Errors
    /// What the system says.
    fn names(&self) -> io::Result<Vec<String>>;
}
