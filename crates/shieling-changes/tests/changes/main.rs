//! Sets are made by real overlays, which ordinary users can mount in namespaces of their own, and committed.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make files and start programs"
)]

mod support;
mod commits;
mod copies;
mod conflicts;
mod held;
mod kills;
mod live;
mod random;
mod renames;
mod scripts;
