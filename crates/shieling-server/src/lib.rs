//! Serves Shieling to agents: MCP now, on standard input and output.
//!
//! The one crate that knows JSON-RPC. It decides nothing and starts nothing: each tool is one call of
//! the library, which judges, asks, runs and records. What is here is what lies between the two: one
//! definition for each tool, the names that models already know, questions to the person behind the
//! client, and the words in which a model reads what happened.
//!
//! Reading order: `tools` for what there is, `dialect` for other names of the same, `toolset` for which
//! of them are offered, `workplaces` for where they work, `service` for what a call does, `repeats` for how
//! often the same one may fail, `text` for how it reads, `approval` for questions, `mcp` for the protocol.

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
mod service;
mod repeats;
mod instructions;
mod mcp;

pub use self::core::{Core, Prepare, Told, Workplace};
pub use approval::Elicitation;
pub use dialect::{Dialect, DialectError};
pub use instructions::instructions;
pub use mcp::{ServeError, Server, schemas};
pub use toolset::{Toolset, UnknownTool};
pub use workplaces::{EnterError, Entered, Make, Source, Workplaces};
