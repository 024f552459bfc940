//! The protocol: what a client asks, handed to the service, and what it gives, in the protocol's shapes.
//!
//! Both kinds of clients are served, those that open a session and those that send all that they are
//! with each request. A refusal, a wrong argument and a failed command are results that a model reads;
//! an error of the protocol is only what no model could mend, such as the name of a tool that is not there.

mod handler;
mod lines;
mod progress;
mod resources;
mod serve;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::dialect::{Dialect, Spoken};
use crate::toolset::{Offered, Toolset};
use crate::workplaces::Workplaces;

pub(crate) use progress::Reporter;
pub use serve::ServeError;

/// An MCP server: a set of tools over the workplaces of its clients. A clone serves another client;
/// what they share is the workplace, if that is shared.
#[derive(Debug, Clone)]
pub struct Server {
    workplaces: Workplaces,
    toolset: Toolset,
    instructions: Arc<str>,
}

impl Server {
    /// One that offers these tools, and gives a client these instructions.
    pub fn new(workplaces: impl Into<Workplaces>, toolset: impl Into<Toolset>, instructions: &str) -> Self {
        Self {
            workplaces: workplaces.into(),
            toolset: toolset.into(),
            instructions: instructions.into(),
        }
    }
}

fn tools(offered: &Offered) -> Vec<(Spoken, Tool)> {
    let tool = |spoken: Spoken| {
        let definition = spoken.tool.definition();
        let hints = definition.hints;
        let annotations = ToolAnnotations::with_title(definition.title)
            .read_only(hints.read_only)
            .destructive(hints.destructive)
            .idempotent(hints.idempotent)
            .open_world(hints.open_world);
        let tool = Tool::new(spoken.name, spoken.about(), Arc::<JsonObject>::new(spoken.schema()))
            .with_title(definition.title)
            .with_raw_output_schema(Arc::new((definition.gives)()))
            .with_annotations(annotations);
        (spoken, tool)
    };
    offered.tools().iter().copied().map(tool).collect()
}

/// The tools of a dialect as a client is told of them, for a file that is reviewed.
pub fn schemas(dialect: Dialect) -> Value {
    let tools: Vec<Tool> = tools(&Offered::all(dialect))
        .into_iter()
        .map(|(_, tool)| tool)
        .collect();
    json!({"dialect": dialect.name(), "tools": tools})
}
