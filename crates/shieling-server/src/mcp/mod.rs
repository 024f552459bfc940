//! The MCP protocol: passes requests of clients to the service, and returns results in the protocol's form.
//!
//! Serves both kinds of clients: those that open a session, and those that send their state with each request.
//! Refusals, invalid arguments and failed commands are results, which a model reads. Protocol errors are reserved for
//! what a model cannot correct, such as an unknown tool.

mod arrivals;
mod handler;
mod lines;
mod progress;
mod resources;
mod serve;

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::dialect::{Dialect, DialectTool, Told};
use crate::toolset::{Offered, Toolset};
use crate::workplaces::Workplaces;

pub(crate) use progress::Reporter;
pub use serve::ServeError;

/// An MCP server: a set of tools, and the workplaces of its clients. Each clone serves one client; clones share the
/// workplace, if it is a shared one.
#[derive(Debug, Clone)]
pub struct Server {
    workplaces: Workplaces,
    toolset: Toolset,
    instructions: Arc<str>,
}

impl Server {
    /// Creates a server with these tools and instructions.
    pub fn new(workplaces: impl Into<Workplaces>, toolset: impl Into<Toolset>, instructions: &str) -> Self {
        Self {
            workplaces: workplaces.into(),
            toolset: toolset.into(),
            instructions: instructions.into(),
        }
    }
}

fn tools(offered: &Offered) -> Vec<(DialectTool, Tool)> {
    let tool = |dialect_tool: DialectTool| {
        let definition = dialect_tool.tool.definition();
        let hints = definition.hints;
        let mut told = Told::of(&dialect_tool);
        if !offered.keeps_sessions() {
            told.leave_out_sessions(&dialect_tool);
        }
        let annotations = ToolAnnotations::with_title(told.title.as_str())
            .read_only(hints.read_only)
            .destructive(hints.destructive)
            .idempotent(hints.idempotent)
            .open_world(hints.open_world);
        let tool = Tool::new(dialect_tool.name, told.description, Arc::<JsonObject>::new(told.takes))
            .with_title(told.title)
            .with_raw_output_schema(Arc::new((definition.gives)()))
            .with_annotations(annotations);
        (dialect_tool, tool)
    };
    offered.tools().iter().copied().map(tool).collect()
}

/// Returns the tools of a dialect in the protocol's form, for the committed schemas.
pub fn schemas(dialect: Dialect) -> Value {
    let tools: Vec<Tool> = tools(&Offered::all(dialect))
        .into_iter()
        .map(|(_, tool)| tool)
        .collect();
    json!({"dialect": dialect.name(), "tools": tools})
}
