//! Why a change is held back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::node::Node;
use crate::rules::{Matcher, RULE, Reason};
use crate::scan::Change;

/// A path that is held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    /// The gate's rule, or [`RULE`](crate::RULE) if it is one of the caller's, or
    /// [`UNCOPIED`](crate::UNCOPIED).
    pub rule: &'static str,
    /// Why.
    pub because: String,
    /// What to do instead.
    pub instead: String,
}

/// All paths that are held back, where they are needed.
pub(crate) type HeldPaths = BTreeSet<PathBuf>;

pub(crate) fn ruled(path: &Path, reason: Reason) -> Held {
    Held {
        path: path.to_path_buf(),
        rule: RULE,
        because: reason.because,
        instead: reason.instead,
    }
}

pub(crate) fn fixed(path: &Path) -> Held {
    Held {
        path: path.to_path_buf(),
        rule: "fixed",
        because: "it decides what commands may do here".to_owned(),
        instead: "tell the user what should change in it".to_owned(),
    }
}

/// The rule by which is held back what would be where something is hidden.
pub const HIDDEN: &str = "hidden";

/// Whether a change is of something that commands cannot see.
pub(crate) fn conceals(hides: &dyn Matcher, change: &Change) -> bool {
    [&change.old, &change.new]
        .into_iter()
        .flatten()
        .any(|node| hides.matches(change.action, &change.path, node.is_directory()))
}

pub(crate) fn hidden(path: &Path, is_made: bool) -> Held {
    let because = match is_made {
        true => "it is hidden, so that commands cannot know what it would replace",
        false => "it is hidden, and stays with the directory that it is in",
    };
    Held {
        path: path.to_path_buf(),
        rule: HIDDEN,
        because: because.to_owned(),
        instead: "use a name that is not hidden".to_owned(),
    }
}

/// Whether what replaces something has another owner.
pub(crate) fn changes_owner(change: &Change) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => old.user != new.user && !(old.is_directory() && new.is_directory()),
        _ => false,
    }
}

/// The rule by which is held back what would replace a file of another owner.
pub const OWNER: &str = "owner.other";

pub(crate) fn owned(path: &Path, old: &Node) -> Held {
    Held {
        path: path.to_path_buf(),
        rule: OWNER,
        because: format!("it belongs to the user {}, and what replaces it would not", old.user),
        instead: "let its owner change it, or give it to the user who works here".to_owned(),
    }
}
