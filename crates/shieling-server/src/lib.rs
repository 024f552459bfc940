//! Serves Shieling to agents over MCP, on standard input and output.
//!
//! This is the only crate that knows JSON-RPC. It makes no decisions and starts nothing: each tool is a call of the
//! library, which judges, approves, runs and records. The crate adds what lies between the library and a model: one
//! definition per tool, the tool names that models already know, questions to the person behind the client, and the
//! text of results.
//!
//! Reading order: `tools` defines the tools, `dialect` their names in other products, `toolset` selects which of them
//! are offered, `workplaces` where they work, `service` performs calls, `repeats` bounds repeated failures, `text`
//! words the results, `approval` asks the person, and `mcp` is the protocol.

mod core;
mod workplaces;
mod arguments;
mod base64;
mod check;
mod shapes;
mod tools;
mod dialect;
mod toolset;
mod visible;
mod text;
mod approval;
mod pending;
mod result;
mod service;
mod repeats;
mod instructions;
mod mcp;

pub use self::core::{Core, FactsProvider, Prepare, Workplace};
pub use approval::{Elicitation, ElicitationOr};
pub use dialect::{Dialect, DialectError};
pub use instructions::instructions;
pub use mcp::{ServeError, Server, schemas};
pub use toolset::{Toolset, UnknownTool};
pub use workplaces::{EnterError, EnteredWorkplace, Source, WorkplaceFactory, Workplaces};
