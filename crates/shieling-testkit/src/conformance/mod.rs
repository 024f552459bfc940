//! The conformance suite: what every environment has to hold to, as sentences.
//!
//! The author of an environment says how one is made, and runs one function:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use shieling::environment::{JailLimits, Later, Local, Network, Shell};
//! use shieling_testkit::Workspace;
//! use shieling_testkit::conformance::{HostDirectory, Maker, Place, Unmet, Wishes, conform};
//!
//! struct LocalMaker;
//!
//! impl Maker for LocalMaker {
//!     fn name(&self) -> String {
//!         "local".to_owned()
//!     }
//!
//!     fn make<'a>(&'a self, wishes: &'a Wishes) -> Later<'a, Result<Place, Unmet>> {
//!         Box::pin(async move {
//!             // What it cannot do it says, and does not leave out.
//!             if wishes.limits != JailLimits::default() {
//!                 return Err(Unmet::Refused("local limits no processes".to_owned()));
//!             }
//!             if wishes.network.is_some_and(|network| network != Network::Host) {
//!                 return Err(Unmet::Refused("local has the host's network".to_owned()));
//!             }
//!             let shell = Shell::find(None).map_err(Unmet::fault)?;
//!             let (workspace, beside) = (Workspace::new(), Workspace::new());
//!             for (path, content) in &wishes.files {
//!                 workspace.write_bytes(path, content);
//!             }
//!             Ok(Place {
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
//! let report = conform(Arc::new(LocalMaker)).await;
//! println!("{report}");
//! report.assert_passed();
//! # }
//! ```
//!
//! Each case gets an environment of its own, works through the façade that agents use, and ends with
//! the façade closed and no process left. A case names what it needs ([`Ability`] and the other
//! [`Capabilities`]); one that cannot be tried counts as skipped, with the reason, and whoever runs the
//! suite decides how many of those there may be. What an environment declares is itself tried.
//!
//! `CONFORMANCE.md` beside this crate's `Cargo.toml` maps another project's suite to these cases.
//!
//! [`Ability`]: shieling::environment::Ability
//! [`Capabilities`]: shieling::environment::Capabilities

mod maker;
mod host;
mod report;
mod case;
mod expect;
mod at;
mod files;
mod suite;
mod cases;

use std::sync::Arc;

pub use host::HostDirectory;
pub use maker::{Maker, Outside, Place, Unmet, Wishes};
pub use report::{Came, Line, Report, Wrong};
pub use suite::Suite;

/// Runs the whole suite over what this maker makes.
///
/// # Cancel safety
/// Dropping the future drops the façades of the cases that run, which ends what they started.
///
/// # Panics
/// Outside a tokio runtime with I/O and timers.
pub async fn conform(maker: Arc<dyn Maker>) -> Report {
    Suite::new().run(maker).await
}
