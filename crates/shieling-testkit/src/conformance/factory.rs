//! The interface to the author of an environment: a factory.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling::environment::{Environment, JailLimits, Later, Network};
use shieling::policy::Policy;

/// Creates new environments. Each case gets its own.
pub trait EnvironmentFactory: Send + Sync {
    /// Returns the name for the report.
    fn name(&self) -> String;

    /// Creates an environment whose workspace contains only the requested files.
    ///
    /// # Errors
    /// [`Unmet`] if it cannot be created, or not as requested.
    fn make<'a>(&'a self, requirements: &'a Requirements) -> Later<'a, Result<TestEnvironment, Unmet>>;
}

/// The requirements of a case. What is not required is left at the environment's default.
#[derive(Clone)]
#[non_exhaustive]
pub struct Requirements {
    /// The policy of the façade over the environment, which the façade enforces by itself. If the environment's
    /// enforcement is fixed at its creation, pass [`shieling::enforcement_of`] the policy.
    pub policy: Policy,
    /// Files of the workspace, by relative path.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Limits for all commands together. A limit that the environment cannot set is [`Unmet::Refused`], and never
    /// ignored.
    pub limits: JailLimits,
    /// The network; `None` for the default.
    pub network: Option<Network>,
}

impl Requirements {
    pub(super) fn none() -> Self {
        Self {
            policy: Policy::open(),
            files: BTreeMap::new(),
            limits: JailLimits::default(),
            network: None,
        }
    }
}

impl fmt::Debug for Requirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requirements")
            .field("readonly", &self.policy.is_readonly())
            .field("hidden", &self.policy.hidden())
            .field("programs", &self.policy.programs())
            .field("files", &self.files.keys())
            .field("limits", &self.limits)
            .field("network", &self.network)
            .finish()
    }
}

/// Why no environment was created.
#[derive(Debug)]
pub enum Unmet {
    /// The environment does not support a requirement, and refuses it instead of ignoring it. The case counts as
    /// skipped, unless the environment declares the capability.
    Refused(String),
    /// An unexpected failure. The case counts as failed.
    Fault(String),
}

impl Unmet {
    /// Converts an unexpected error.
    pub fn fault(error: impl fmt::Display) -> Self {
        Self::Fault(error.to_string())
    }
}

/// An environment under test.
pub struct TestEnvironment {
    /// The environment.
    pub environment: Arc<dyn Environment>,
    /// The workspace as its commands see it: absolute, without links.
    pub workspace: PathBuf,
    /// The variables of every command, such as `PATH`.
    pub variables: BTreeMap<String, String>,
    /// Access to a directory beside the workspace that must be inaccessible from the workspace; `None` if there is
    /// none.
    pub outside: Option<Box<dyn OutsideDirectory>>,
    /// A value to drop with the environment, such as a temporary directory.
    pub keep: Box<dyn std::any::Any + Send + Sync>,
}

impl fmt::Debug for TestEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("environment", &self.environment.name())
            .field("workspace", &self.workspace)
            .field("outside", &self.outside.is_some())
            .finish_non_exhaustive()
    }
}

/// Access to a directory beside the workspace, not by way of the environment. File tools must neither read nor change
/// it, whatever the links in the workspace are.
pub trait OutsideDirectory: Send + Sync {
    /// Returns its path, as a link in the workspace would contain it.
    fn path(&self) -> &Path;

    /// Writes a file.
    ///
    /// # Errors
    /// Errors of the system.
    fn put(&self, name: &str, content: &[u8]) -> io::Result<()>;

    /// Reads a file, if it exists.
    ///
    /// # Errors
    /// Errors of the system.
    fn get(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Lists all names.
    ///
    /// # Errors
    /// Errors of the system.
    fn names(&self) -> io::Result<Vec<String>>;
}
