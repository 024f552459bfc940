//! How a shell stands between two commands.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// How a shell stands between two commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// Its directory; the last one that had a path, if that was deleted.
    pub cwd: PathBuf,
    /// Whether its directory was deleted.
    pub deleted: bool,
    /// Its exported variables.
    pub variables: BTreeMap<String, String>,
    /// The names of those that are not among them, since they are not UTF-8.
    pub omitted: Vec<String>,
    /// Whether its DEBUG trap was removed after its last command, because that trap would have kept every
    /// further command from running, `trap - DEBUG` included.
    pub debug_trap_removed: bool,
}
