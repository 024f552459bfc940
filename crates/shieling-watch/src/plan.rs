//! What is watched.

use std::path::PathBuf;
use std::time::Duration;

use shieling_gate::Lead;

/// What is watched.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The directory, absolute and without links.
    pub root: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Paths in the root that the user's tools are led to from elsewhere.
    pub leads: Vec<Lead>,
    /// Directories outside to which links may lead.
    pub toolchains: Vec<PathBuf>,
    /// Other directories that are watched likewise.
    pub beside: Vec<PathBuf>,
    /// How long the start may look; the rest is looked at in the background.
    pub first_budget: Duration,
    /// Whether it is to be noticed cheaply that nothing changed, for more than one look.
    pub has_notifier: bool,
}
