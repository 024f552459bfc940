//! The offered tools, for text that mentions them.

use std::sync::Arc;

use crate::dialect::{Argument, Dialect, DialectTool, Style};
use crate::tools::Tool;

/// The offered tools, by their names in the dialect.
#[derive(Debug, Clone)]
pub(crate) struct Offered {
    dialect: Dialect,
    tools: Arc<[DialectTool]>,
    /// Whether the environment keeps sessions.
    keeps_sessions: bool,
}

impl Offered {
    /// Creates a set of these tools of a dialect.
    pub(super) fn new(dialect: Dialect, tools: impl Iterator<Item = DialectTool>, keeps_sessions: bool) -> Self {
        let tools = tools.collect();
        Self {
            dialect,
            tools,
            keeps_sessions,
        }
    }

    /// Returns the set without one of our tools.
    pub(crate) fn without(self, tool: Tool) -> Self {
        let rest = self
            .tools
            .iter()
            .filter(|dialect_tool| dialect_tool.tool != tool)
            .copied();
        Self::new(self.dialect, rest, self.keeps_sessions)
    }

    /// Returns whether the environment keeps sessions.
    pub(crate) fn keeps_sessions(&self) -> bool {
        self.keeps_sessions
    }

    pub(crate) fn tools(&self) -> &[DialectTool] {
        &self.tools
    }

    /// Returns the style of results.
    pub(crate) fn style(&self) -> Style {
        self.dialect.style()
    }

    /// Returns the dialect's name of one of our tools, if it is offered.
    pub(crate) fn name_of(&self, tool: Tool) -> Option<&'static str> {
        self.find(tool).map(|dialect_tool| dialect_tool.name)
    }

    /// Returns whether a tool is offered with this argument of ours.
    pub(crate) fn takes(&self, tool: Tool, name: &str) -> bool {
        let has = |takes: &[Argument]| takes.iter().any(|argument| argument.to == name);
        self.find(tool)
            .is_some_and(|dialect_tool| dialect_tool.takes.is_none_or(has))
    }

    /// Returns the dialect's name and conversion of an argument of ours; our own if the tool does not rename it.
    pub(crate) fn argument(&self, tool: Tool, name: &str) -> Option<&'static Argument> {
        let takes = self.find(tool)?.takes?;
        takes.iter().find(|argument| argument.to == name)
    }

    fn find(&self, tool: Tool) -> Option<&DialectTool> {
        self.tools.iter().find(|dialect_tool| dialect_tool.tool == tool)
    }
}
