//! The place where AI agents work: one execution environment in which every command is judged,
//! contained, bounded, recorded and reported truthfully.
//!
//! One request's journey, and the order in which to read the modules:
//!
//! ```text
//! Request ─► Verdict ─► Approved<Request> ─► Environment ─► Process ─► Output ─► Outcome ─► Audit
//! ```
//!
//! The library reads no home directory, no environment variable and no ambient working directory:
//! whoever embeds it passes them in.

pub mod shieling;
pub mod units;
pub mod request;
pub mod enforcement;
pub mod policy;
pub mod approval;
pub mod rate;
pub mod process;
#[cfg(feature = "gateway")]
pub mod network;
pub mod environment;
pub mod session;
pub mod files;
pub mod output;
pub mod outcome;
pub mod changes;
pub mod describe;
pub mod audit;

pub use shieling::{Builder, Shieling, Told, enforcement_of};
