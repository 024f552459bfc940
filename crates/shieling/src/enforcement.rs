//! What a policy asks of the environment in which its commands run, and what that answers.
//!
//! The builder of [`Shieling`](crate::Shieling) derives an [`Enforcement`] from the policy and hands it over
//! once; only what comes back as [`Enforced`] relaxes what is asked about because of a command's text.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

/// Says which paths of the workspace do not exist for a command.
pub trait Hidden: Send + Sync {
    /// Whether this path, relative to the workspace and never empty, is hidden.
    fn hides(&self, path_relative_to_workspace: &Path, is_directory: bool) -> bool;

    /// How many of the directories right above a hidden path have to keep their names and places for it to stay
    /// hidden, whatever those above them are called. All of them, unless an implementation knows better.
    fn needs_above(&self, path_relative_to_workspace: &Path, is_directory: bool) -> usize {
        let _ = is_directory;
        path_relative_to_workspace.components().count().saturating_sub(1)
    }

    /// What says so, in order, with something between lists that are judged apart: two with the same patterns hide
    /// the same. None if it is not made of patterns; it is then the same as itself alone.
    fn patterns(&self) -> &[String] {
        &[]
    }
}

impl fmt::Debug for dyn Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hidden").field(&self.patterns()).finish()
    }
}

/// What of a policy can be enforced below the text of a command. The default asks for nothing.
///
/// Deny lists and rule files are not in it: they are about texts, and are judged by reading alone.
#[derive(Debug, Clone, Default)]
pub struct Enforcement {
    /// The directory, absolute, that what is hidden is relative to.
    pub workspace: PathBuf,
    /// Nothing of the workspace can be changed.
    pub readonly: bool,
    /// What of the workspace does not exist; nothing is hidden if there is none.
    pub hidden: Option<Arc<dyn Hidden>>,
    /// The only programs that can be executed, each a name or a path (absolute, or relative to the workspace);
    /// any if there is no list.
    pub programs: Option<Vec<String>>,
}

impl Enforcement {
    /// Whether an environment that enforces this one enforces all that the other asks for.
    pub fn covers(&self, other: &Self) -> bool {
        let hides = match (&self.hidden, &other.hidden) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(mine), Some(theirs)) => self.workspace == other.workspace && same(&**mine, &**theirs),
        };
        let same_place = self.workspace == other.workspace || !other.names_its_workspace();
        let programs = other.programs.is_none() || self.programs == other.programs && same_place;
        hides && programs && (self.readonly || !other.readonly)
    }

    /// Whether it says anything that depends on which directory the workspace is.
    pub fn names_its_workspace(&self) -> bool {
        let relative = |name: &String| name.contains('/') && !name.starts_with('/');
        self.hidden.is_some() || self.programs.iter().flatten().any(relative)
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        !self.readonly && self.hidden.is_none() && self.programs.is_none()
    }
}

fn same(one: &dyn Hidden, other: &dyn Hidden) -> bool {
    let address = |hidden: &dyn Hidden| std::ptr::from_ref(hidden).cast::<()>();
    address(one) == address(other) || !one.patterns().is_empty() && one.patterns() == other.patterns()
}

/// What an environment enforces for every command and file operation, whatever a text says. The default is
/// nothing.
///
/// What is enforced is contained, so that a text which cannot be decided needs no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Enforced {
    /// Nothing of the workspace can be changed.
    pub readonly: bool,
    /// What the policy hides does not exist.
    pub hidden: bool,
    /// No program can be executed but those of the policy's allow list.
    pub programs: bool,
}

/// The cure where an environment was bound by another.
pub(crate) const ONE_EACH: &str = "make an environment of its own for each policy, and build over it before it starts";

/// Why an environment without staged changes holds none back.
pub(crate) const UNSTAGED: &str = "it has rules about what changes (`changes`, `adds`, `deletes`, `max_files`, \
                                   `max_bytes`), which hold in `sandbox` with `--changes commit`, `review` or `discard`";

/// An environment that cannot serve this policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnforceError {
    /// It serves another policy, or has started without one.
    #[error("`{environment}` {why}, and what it enforces cannot be changed any more: {cure}")]
    Bound {
        /// Its name.
        environment: String,
        /// Why it cannot be changed.
        why: &'static str,
        /// What to do instead.
        cure: &'static str,
    },
    /// Its workspace is another one, so that hidden paths would be others.
    #[error(
        "what the policy hides and allows is relative to {}, and the workspace of `{environment}` is {}: give both \
         the same, absolute and without links", asked.display(), has.display()
    )]
    Workspace {
        /// Its name.
        environment: String,
        /// The workspace of the policy.
        asked: PathBuf,
        /// That of the environment.
        has: PathBuf,
    },
    /// It can do this in no way, and nothing may be weaker than asked in silence.
    #[error("`{environment}` cannot serve this policy: {why}")]
    Unsupported {
        /// Its name.
        environment: String,
        /// What it cannot do, and why.
        why: &'static str,
    },
    /// It cannot open the network by name, or not as it is asked to be.
    #[error("`{environment}` cannot open the network by name: {why}")]
    Network {
        /// Its name.
        environment: String,
        /// Why.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Lines(Vec<String>);

    impl Hidden for Lines {
        fn hides(&self, _: &Path, _: bool) -> bool {
            false
        }

        fn patterns(&self) -> &[String] {
            &self.0
        }
    }

    fn hiding(workspace: &str, lines: &[&str]) -> Enforcement {
        let lines = lines.iter().map(|&line| line.to_owned()).collect();
        Enforcement {
            workspace: workspace.into(),
            hidden: Some(Arc::new(Lines(lines))),
            ..Enforcement::default()
        }
    }

    #[test]
    fn one_covers_another_if_it_asks_for_no_less() {
        let nothing = Enforcement::default();
        let readonly = Enforcement {
            readonly: true,
            ..Enforcement::default()
        };
        let programs = |names: &[&str]| Enforcement {
            programs: Some(names.iter().map(|&name| name.to_owned()).collect()),
            ..Enforcement::default()
        };
        let elsewhere = |asked: Enforcement| Enforcement {
            workspace: "/elsewhere".into(),
            ..asked
        };
        let unnamed = hiding("/w", &[]);
        for (one, other, covers) in [
            (&nothing, &nothing, true),
            (&readonly, &nothing, true),
            (&nothing, &readonly, false),
            (&hiding("/w", &[".env"]), &nothing, true),
            (&hiding("/w", &[".env"]), &hiding("/w", &[".env"]), true),
            (&hiding("/w", &[".env"]), &hiding("/v", &[".env"]), false),
            (&hiding("/w", &[".env"]), &hiding("/w", &["*.pem"]), false),
            (&nothing, &hiding("/w", &[".env"]), false),
            (&unnamed, &unnamed.clone(), true),
            (&unnamed, &hiding("/w", &[]), false),
            (&programs(&["ls"]), &programs(&["ls"]), true),
            (&programs(&["ls"]), &programs(&["cat"]), false),
            (&programs(&["./t"]), &programs(&["./t"]), true),
            (&programs(&["./t"]), &elsewhere(programs(&["./t"])), false),
            (&programs(&["ls"]), &elsewhere(programs(&["ls"])), true),
            (&programs(&[]), &nothing, true),
            (&nothing, &programs(&[]), false),
        ] {
            assert_eq!(one.covers(other), covers, "{one:?} {other:?}");
        }
    }
}
