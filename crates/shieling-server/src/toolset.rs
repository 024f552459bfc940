//! Selects the tools that are offered, and configures their behaviour.
//!
//! ```text
//! offered = the dialect's tools ∩ what the environment supports ∩ included − excluded
//! ```
//!
//! A tool that is not offered does not exist for the client: no list and no text mentions it, and a call of it is a
//! call of an unknown tool.

mod offered;

use std::collections::BTreeSet;

use shieling::environment::Ability;
use shieling::units::ByteCount;

use crate::dialect::{Dialect, DialectTool};

pub(crate) use offered::Offered;

/// The configuration of a set of tools.
#[derive(Debug, Clone)]
#[must_use]
pub struct Toolset {
    dialect: Dialect,
    /// The included tools; `None` means all.
    included: Option<BTreeSet<&'static str>>,
    excluded: BTreeSet<&'static str>,
    images: Option<ByteCount>,
    repeats: u32,
}

/// A name that is not a tool of the dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the dialect `{dialect}` has no tool `{}`; it has {}", name.escape_debug(), known.join(", ")
)]
pub struct UnknownTool {
    /// The name.
    pub name: String,
    /// The dialect.
    pub dialect: &'static str,
    /// The names of its tools.
    pub known: Vec<&'static str>,
}

impl Toolset {
    /// Creates a set of all tools of a dialect that the environment supports. Images of up to 10 MiB are returned as
    /// images, and a call that has failed five times is refused ([`with_repeats`](Self::with_repeats)).
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            included: None,
            excluded: BTreeSet::new(),
            images: Some(ByteCount::mib(10)),
            repeats: 5,
        }
    }

    /// Includes only the tools with these names in the dialect. Repeated calls add names. Without any name, nothing
    /// is offered.
    ///
    /// # Errors
    /// [`UnknownTool`], also for a tool of another dialect. A tool that the environment does not support is accepted,
    /// but not offered.
    pub fn including<S: AsRef<str>>(mut self, names: &[S]) -> Result<Self, UnknownTool> {
        let names = self.known(names)?;
        self.included.get_or_insert_default().extend(names);
        Ok(self)
    }

    /// Excludes these tools, even if they are included.
    ///
    /// # Errors
    /// Those of [`Self::including`].
    pub fn excluding<S: AsRef<str>>(mut self, names: &[S]) -> Result<Self, UnknownTool> {
        let names = self.known(names)?;
        self.excluded.extend(names);
        Ok(self)
    }

    /// Sets the largest image that is returned as an image (default: 10 MiB). With `None`, images are described as
    /// binary files, for models without vision.
    pub fn with_images(mut self, most: Option<ByteCount>) -> Self {
        self.images = most;
        self
    }

    /// Sets the number of failures after which the same call is refused (default: 5). With 0, it is never refused.
    ///
    /// Calls are the same if tool and arguments are. The call is accepted again once another call of this client has
    /// made a change, or a read of files shows something new; and, since changes by others may go unnoticed, after a
    /// minute. A call with invalid arguments remains refused. From the third failure on, the result advises the model
    /// to do something else. Calls whose obstacle may pass by itself are never refused: reading something that does
    /// not exist yet, waiting, and calls that came too early.
    pub fn with_repeats(mut self, most: u32) -> Self {
        self.repeats = most;
        self
    }

    /// Returns the dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the names of the tools that are offered in an environment with these abilities, in order.
    #[must_use]
    pub fn names(&self, abilities: &BTreeSet<Ability>) -> Vec<&'static str> {
        self.offered(abilities)
            .tools()
            .iter()
            .map(|dialect_tool| dialect_tool.name)
            .collect()
    }

    pub(crate) fn images(&self) -> Option<ByteCount> {
        self.images
    }

    pub(crate) fn repeats(&self) -> u32 {
        self.repeats
    }

    /// Returns the tools that are offered in an environment with these abilities.
    pub(crate) fn offered(&self, abilities: &BTreeSet<Ability>) -> Offered {
        let is_offered = |dialect_tool: &DialectTool| {
            let needs = dialect_tool.tool.definition().needs;
            needs.iter().all(|need| abilities.contains(need))
                && self
                    .included
                    .as_ref()
                    .is_none_or(|names| names.contains(dialect_tool.name))
                && !self.excluded.contains(dialect_tool.name)
        };
        Offered::new(
            self.dialect,
            self.dialect.tools().into_iter().filter(is_offered),
            abilities.contains(&Ability::Sessions),
        )
    }

    fn known<S: AsRef<str>>(&self, names: &[S]) -> Result<Vec<&'static str>, UnknownTool> {
        let known: Vec<&'static str> = self
            .dialect
            .tools()
            .iter()
            .map(|dialect_tool| dialect_tool.name)
            .collect();
        let find = |name: &S| {
            let found = known.iter().find(|known| **known == name.as_ref());
            found.copied().ok_or_else(|| UnknownTool {
                name: name.as_ref().to_owned(),
                dialect: self.dialect.name(),
                known: known.clone(),
            })
        };
        names.iter().map(find).collect()
    }
}

impl From<Dialect> for Toolset {
    fn from(dialect: Dialect) -> Self {
        Self::new(dialect)
    }
}

impl Offered {
    /// Creates the set of all tools of a dialect.
    pub(crate) fn all(dialect: Dialect) -> Self {
        Toolset::new(dialect).offered(&BTreeSet::from(Ability::ALL))
    }
}

impl Default for Offered {
    fn default() -> Self {
        Self::all(Dialect::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(toolset: &Toolset) -> Vec<&'static str> {
        toolset.names(&BTreeSet::from(Ability::ALL))
    }

    #[test]
    fn exclusion_wins_over_inclusion() {
        let toolset = Toolset::new(Dialect::default());
        let toolset = toolset.including(&["grep", "ls", "read_file"]).expect("they are known");
        let toolset = toolset.excluding(&["ls", "shell"]).expect("they are known");
        assert_eq!(names(&toolset), ["read_file", "grep"]);
        let more = toolset.including(&["ls", "stat"]).expect("they are known");
        assert_eq!(names(&more), ["read_file", "grep", "stat"]);
    }

    #[test]
    fn none_included_is_none_offered_and_nothing_said_is_all() {
        let all = Toolset::new(Dialect::default());
        assert_eq!(names(&all).len(), 19);
        let none = all.including::<&str>(&[]).expect("there is nothing to know");
        assert!(names(&none).is_empty());
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_those_of_the_dialect() {
        let claude = || Toolset::new(Dialect::named("claude").expect("there is one"));
        for name in ["bash", "shell", "", "Bash ", "\u{1b}[2K"] {
            let error = claude().including(&["Bash", name]).expect_err("there is none");
            assert_eq!(error.name, name);
            let said = error.to_string();
            assert!(
                said.ends_with("it has Bash, BashOutput, KillShell, Read, Write, Edit, Glob, Grep"),
                "{said}"
            );
            assert!(!said.contains('\u{1b}'), "{said}");
            assert!(claude().excluding(&[name]).is_err());
        }
    }

    #[test]
    fn what_an_environment_cannot_do_is_not_offered() {
        let can = |abilities: &[Ability]| {
            let toolset = Toolset::new(Dialect::default());
            toolset.names(&abilities.iter().copied().collect())
        };
        assert_eq!(can(&[]), ["ask_human", "environment"]);
        assert_eq!(
            can(&[Ability::ReadFiles])[2..],
            ["read_file", "ls", "glob", "grep", "stat"]
        );
        // Without reading there is no writing: the results of writes would reveal contents.
        assert_eq!(can(&[Ability::WriteFiles]).len(), 2);
        let commands = can(&[Ability::Commands, Ability::Jobs]);
        assert!(
            commands.contains(&"shell_view") && !commands.contains(&"shell_write"),
            "{commands:?}"
        );
    }
}
