//! The conformance suite: the properties that every environment must have.
//!
//! The author of an environment implements a factory and calls one function:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use shieling::environment::{JailLimits, Later, Local, Network, Shell};
//! use shieling_testkit::Workspace;
//! use shieling_testkit::conformance::{HostDirectory, EnvironmentFactory, TestEnvironment, Unmet, Requirements, conform};
//!
//! struct LocalFactory;
//!
//! impl EnvironmentFactory for LocalFactory {
//!     fn name(&self) -> String {
//!         "local".to_owned()
//!     }
//!
//!     fn make<'a>(&'a self, requirements: &'a Requirements) -> Later<'a, Result<TestEnvironment, Unmet>> {
//!         Box::pin(async move {
//!             // Refuse unsupported requirements, and never ignore them.
//!             if requirements.limits != JailLimits::default() {
//!                 return Err(Unmet::Refused("local limits no processes".to_owned()));
//!             }
//!             if requirements.network.is_some_and(|network| network != Network::Host) {
//!                 return Err(Unmet::Refused("local has the host's network".to_owned()));
//!             }
//!             let shell = Shell::find(None).map_err(Unmet::fault)?;
//!             let (workspace, beside) = (Workspace::new(), Workspace::new());
//!             for (path, content) in &requirements.files {
//!                 workspace.write_bytes(path, content);
//!             }
//!             Ok(TestEnvironment {
//!                 environment: Arc::new(Local::new(shell).with_workspace(workspace.root())),
//!                 workspace: workspace.root().to_path_buf(),
//!                 variables: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
//!                 outside: Some(Box::new(HostDirectory::new(beside.root()))),
//!                 keep: Box::new((workspace, beside)),
//!             })
//!         })
//!     }
//! }
//!
//! # async fn example() {
//! let report = conform(Arc::new(LocalFactory)).await;
//! println!("{report}");
//! report.assert_passed();
//! # }
//! ```
//!
//! Each case gets a new environment, uses it through the façade that agents use, and finally closes the façade and
//! checks that no process is left. A case declares its needs ([`Ability`] and the other [`Capabilities`]). A case
//! that cannot run counts as skipped, with the reason, and the caller decides how many skipped cases are acceptable.
//! The declared capabilities are themselves checked.
//!
//! `CONFORMANCE.md` in this crate maps another project's suite to these cases.
//!
//! [`Ability`]: shieling::environment::Ability
//! [`Capabilities`]: shieling::environment::Capabilities

mod factory;
mod host;
mod report;
mod step;
mod case;
mod expect;
mod context;
mod files;
mod suite;
mod cases;

use std::sync::Arc;

pub use factory::{EnvironmentFactory, OutsideDirectory, Requirements, TestEnvironment, Unmet};
pub use host::HostDirectory;
pub use report::{CaseReport, CaseResult, CheckFailure, Report};
pub use suite::Suite;

/// Runs the whole suite.
///
/// # Cancel safety
/// Dropping the future drops the façades of the running cases, which ends their processes.
///
/// # Panics
/// Outside of a tokio runtime with I/O and timers.
pub async fn conform(factory: Arc<dyn EnvironmentFactory>) -> Report {
    Suite::new().run(factory).await
}
