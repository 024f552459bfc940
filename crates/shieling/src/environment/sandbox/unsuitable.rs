//! What a workspace must not hold if commands get a layer over all of it, or a copy of all of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::homes;

/// Why commands get no layer over a workspace, and no copy of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsuitable {
    /// It is or holds somebody's home.
    #[error("the workspace is or holds the home `{}`", .home.display())]
    Home {
        /// The home.
        home: PathBuf,
    },
    /// It holds a directory in which Shieling stores what it trusts, or is in one.
    #[error("{what} are stored in `{}`, and neither it nor the workspace may be inside the other", .directory.display())]
    Stored {
        /// What is stored.
        what: &'static str,
        /// The directory.
        directory: PathBuf,
    },
}

impl Unsuitable {
    /// Returns what to do.
    #[must_use]
    pub fn instead(&self) -> &'static str {
        match self {
            Self::Home { .. } => "choose a project directory",
            Self::Stored { .. } => "choose another workspace, or a state directory outside of it (XDG_STATE_HOME)",
        }
    }

    /// Looks at a workspace, with the homes that there are, and with the directories in which something is stored. All
    /// paths are absolute and without links.
    pub(super) fn look(
        workspace: &Path,
        homes: &BTreeSet<PathBuf>,
        stored: &[(&'static str, &Path)],
    ) -> Result<(), Self> {
        // Before the homes: what is stored is stored in one by default.
        let holds = |directory: &Path| directory.starts_with(workspace) || workspace.starts_with(directory);
        if let Some((what, directory)) = stored.iter().find(|(_, directory)| holds(directory)) {
            return Err(Self::Stored {
                what,
                directory: directory.to_path_buf(),
            });
        }
        match homes.iter().find(|home| home.starts_with(workspace)) {
            Some(home) => Err(Self::Home { home: home.clone() }),
            None => Ok(()),
        }
    }
}

/// Refuses a workspace of which commands are to get a copy if it is or holds a home, or holds a directory of `stored`,
/// or is in one. `stored` names what Shieling keeps in each. All paths are absolute and without links.
///
/// # Errors
/// [`Unsuitable`]: commands could read, or change by what comes back, what is trusted later.
pub fn check_copied(workspace: &Path, home: Option<&Path>, stored: &[(&'static str, &Path)]) -> Result<(), Unsuitable> {
    Unsuitable::look(workspace, &homes::known(home), stored)
}
