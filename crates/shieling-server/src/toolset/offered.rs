//! What is offered, as whoever words an answer needs to know it.

use std::collections::BTreeSet;
use std::sync::Arc;

use shieling::environment::Ability;

use super::Toolset;
use crate::dialect::{Argument, Dialect, Spoken, Voice};
use crate::tools::Tool;

/// The tools that are offered, by the names that their dialect has for them.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    dialect: Dialect,
    tools: Arc<[Spoken]>,
}

impl Offered {
    /// These, of this dialect.
    pub(super) fn new(dialect: Dialect, tools: impl Iterator<Item = Spoken>) -> Self {
        let tools = tools.collect();
        Self { dialect, tools }
    }

    /// All that a dialect has.
    pub(crate) fn all(dialect: Dialect) -> Self {
        Toolset::new(dialect).offered(&BTreeSet::from(Ability::ALL))
    }

    /// The same but for one of our tools.
    pub(crate) fn without(self, tool: Tool) -> Self {
        let rest = self.tools.iter().filter(|spoken| spoken.tool != tool).copied();
        Self::new(self.dialect, rest)
    }

    pub(crate) fn tools(&self) -> &[Spoken] {
        &self.tools
    }

    /// How results read.
    pub(crate) fn voice(&self) -> Voice {
        self.dialect.voice()
    }

    /// What one of our tools is called, if it is offered.
    pub(crate) fn name_of(&self, tool: Tool) -> Option<&'static str> {
        self.find(tool).map(|spoken| spoken.name)
    }

    /// Whether a tool is offered with this argument of ours.
    pub(crate) fn takes(&self, tool: Tool, name: &str) -> bool {
        let has = |takes: &[Argument]| takes.iter().any(|argument| argument.to == name);
        self.find(tool).is_some_and(|spoken| spoken.takes.is_none_or(has))
    }

    /// What an argument of ours is called, and how it is told; as we have it where the tool does not.
    pub(crate) fn argument(&self, tool: Tool, name: &str) -> Option<&'static Argument> {
        let takes = self.find(tool)?.takes?;
        takes.iter().find(|argument| argument.to == name)
    }

    fn find(&self, tool: Tool) -> Option<&Spoken> {
        self.tools.iter().find(|spoken| spoken.tool == tool)
    }
}

impl Default for Offered {
    fn default() -> Self {
        Self::all(Dialect::default())
    }
}
