//! The server as a client meets it, over a core that needs no shell, and over a sandbox.
#![expect(clippy::disallowed_methods, reason = "a test makes the files that it has served")]

#[path = "mcp/approvals.rs"]
mod approvals;
#[path = "mcp/client.rs"]
mod client;
#[path = "mcp/fake.rs"]
mod fake;
#[path = "mcp/files.rs"]
mod files;
#[path = "mcp/held_back.rs"]
mod held_back;
#[path = "mcp/protocol.rs"]
mod protocol;
#[path = "mcp/repeats.rs"]
mod repeats;
#[path = "mcp/resources.rs"]
mod resources;
#[path = "mcp/rmcp_client.rs"]
mod rmcp_client;
#[path = "mcp/schemas.rs"]
mod schemas;
#[path = "mcp/tools.rs"]
mod tools;
#[path = "mcp/toolset.rs"]
mod toolset;
#[path = "mcp/workplaces.rs"]
mod workplaces;
#[path = "mcp/yes.rs"]
mod yes;
