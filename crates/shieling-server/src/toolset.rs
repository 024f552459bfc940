//! Which tools are offered, and how they behave.
//!
//! ```text
//! offered = the dialect's tools ∩ what the environment can do ∩ included − excluded
//! ```
//!
//! What is not offered is not there: it is in no list, no answer speaks of it, and a call of it is a call
//! of an unknown tool.

mod offered;

use std::collections::BTreeSet;

use shieling::environment::Ability;
use shieling::units::ByteCount;

use crate::dialect::{Dialect, Spoken};

pub(crate) use offered::Offered;

/// The rules for a set of tools.
#[derive(Debug, Clone)]
#[must_use]
pub struct Toolset {
    dialect: Dialect,
    /// None: all of them.
    included: Option<BTreeSet<&'static str>>,
    excluded: BTreeSet<&'static str>,
    images: Option<ByteCount>,
    repeats: u32,
}

/// A name that none of a dialect's tools has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the dialect `{dialect}` has no tool `{}`; it has {}", name.escape_debug(), known.join(", ")
)]
pub struct UnknownTool {
    /// The name.
    pub name: String,
    /// The dialect.
    pub dialect: &'static str,
    /// The names that it has.
    pub known: Vec<&'static str>,
}

impl Toolset {
    /// All tools of a dialect that the environment can serve. Images of up to 10 MiB are given as
    /// images, and what has failed five times is not tried once more ([`with_repeats`](Self::with_repeats)).
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            included: None,
            excluded: BTreeSet::new(),
            images: Some(ByteCount::mib(10)),
            repeats: 5,
        }
    }

    /// With these tools only, by the names that the dialect has for them; those of several calls add
    /// up. With no name at all, nothing is offered.
    ///
    /// # Errors
    /// [`UnknownTool`], also for a tool of another dialect. One that the dialect has and the
    /// environment cannot serve is no error: it is not offered.
    pub fn including<S: AsRef<str>>(mut self, names: &[S]) -> Result<Self, UnknownTool> {
        let names = self.known(names)?;
        self.included.get_or_insert_default().extend(names);
        Ok(self)
    }

    /// Without these tools, also where they are included.
    ///
    /// # Errors
    /// As [`Self::including`].
    pub fn excluding<S: AsRef<str>>(mut self, names: &[S]) -> Result<Self, UnknownTool> {
        let names = self.known(names)?;
        self.excluded.extend(names);
        Ok(self)
    }

    /// With images of up to this size (default 10 MiB) given as images. None: they are told of as
    /// binary files, for models that see none.
    pub fn with_images(mut self, most: Option<ByteCount>) -> Self {
        self.images = most;
        self
    }

    /// With so many failures of the same call (default 5) before it is refused without being tried once
    /// more; 0: it never is.
    ///
    /// The same call is one of the same tool with the same arguments. It is tried again as soon as
    /// something was changed by another call of this client, or a look at files shows what it has not shown
    /// before; and, since not all that others change is seen here, after a minute. What is wrong in the
    /// arguments themselves stays refused. From the third failure on the answer tells a model to do something else. Never refused is what may come
    /// about by itself: a look at what is not there yet, waiting, and what came too early.
    pub fn with_repeats(mut self, most: u32) -> Self {
        self.repeats = most;
        self
    }

    /// The dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The names of the tools that are offered where this can be done, in order.
    #[must_use]
    pub fn names(&self, abilities: &BTreeSet<Ability>) -> Vec<&'static str> {
        self.offered(abilities)
            .tools()
            .iter()
            .map(|spoken| spoken.name)
            .collect()
    }

    pub(crate) fn images(&self) -> Option<ByteCount> {
        self.images
    }

    pub(crate) fn repeats(&self) -> u32 {
        self.repeats
    }

    /// The tools that are offered where this can be done.
    pub(crate) fn offered(&self, abilities: &BTreeSet<Ability>) -> Offered {
        let is_offered = |spoken: &Spoken| {
            let needs = spoken.tool.definition().needs;
            needs.iter().all(|need| abilities.contains(need))
                && self.included.as_ref().is_none_or(|names| names.contains(spoken.name))
                && !self.excluded.contains(spoken.name)
        };
        Offered::new(self.dialect, self.dialect.tools().into_iter().filter(is_offered))
    }

    fn known<S: AsRef<str>>(&self, names: &[S]) -> Result<Vec<&'static str>, UnknownTool> {
        let known: Vec<&'static str> = self.dialect.tools().iter().map(|spoken| spoken.name).collect();
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
        // Whoever cannot read does not write either: the answers would tell what is there.
        assert_eq!(can(&[Ability::WriteFiles]).len(), 2);
        let commands = can(&[Ability::Commands, Ability::Jobs]);
        assert!(
            commands.contains(&"shell_view") && !commands.contains(&"shell_write"),
            "{commands:?}"
        );
    }
}
