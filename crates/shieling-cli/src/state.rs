//! Where Shieling keeps what outlives a run.

use std::path::{Path, PathBuf};

use shieling::units::ByteCount;

/// How much of a command's whole output is kept in files.
pub(crate) const WHOLE: ByteCount = ByteCount::mib(16);

/// Where Shieling keeps what outlives a run: `$XDG_STATE_HOME/shieling`, or under `~/.local/state`.
pub(crate) fn directory() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("shieling"))
}

/// Where whole outputs are kept.
pub(crate) fn outputs(state: &Path) -> PathBuf {
    state.join("outputs")
}

/// Where change sets are kept.
pub(crate) fn change_sets(state: &Path) -> PathBuf {
    state.join("changes")
}

/// Where recordings are kept.
pub(crate) fn recordings(state: &Path) -> PathBuf {
    state.join("recordings")
}
