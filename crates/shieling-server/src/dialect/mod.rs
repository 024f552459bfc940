//! Dialects: the tool names of other products, which models already know, for the same tools.
//!
//! A dialect is data: for each of its tools, our tool that performs the call, and the names and units of its
//! arguments. A dialect cannot do anything that the default cannot.

mod tables;
mod told;
mod tool;

use crate::tools;
use tables::{DIALECTS, Table};

pub(crate) use told::Told;
pub(crate) use tool::{Argument, Conversion, DialectTool, Style, TranslatedCall};

/// A set of tool names.
#[derive(Debug, Clone, Copy)]
pub struct Dialect(&'static Table);

/// No dialect has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no dialect `{}`; there are {}", .0.escape_debug(), Dialect::names().join(", "))]
pub struct DialectError(String);

impl Dialect {
    /// Returns the dialect of this name.
    ///
    /// # Errors
    /// Lists the names of all dialects.
    pub fn named(name: &str) -> Result<Self, DialectError> {
        let found = DIALECTS.iter().find(|table| table.name == name);
        found.map(Self).ok_or_else(|| DialectError(name.to_owned()))
    }

    /// Returns all names, the default first.
    pub fn names() -> Vec<&'static str> {
        DIALECTS.iter().map(|table| table.name).collect()
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the style of results.
    pub(crate) fn style(self) -> Style {
        self.0.style
    }

    /// Returns the tools.
    pub(crate) fn tools(self) -> Vec<DialectTool> {
        match self.0.tools {
            [] => tools::all().map(DialectTool::same).collect(),
            tables => tables.concat(),
        }
    }
}

impl Default for Dialect {
    /// Returns the dialect with our own names.
    fn default() -> Self {
        Self(&DIALECTS[0])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_dialect_has_no_tool_and_no_argument_that_we_do_not_have() {
        for table in DIALECTS {
            for dialect_tool in Dialect(table).tools() {
                let ours = (dialect_tool.tool.definition().takes)();
                let known = |name: &str| ours["properties"].get(name).is_some();
                for argument in dialect_tool.takes.unwrap_or_default() {
                    let place = format!("{}.{}.{}", table.name, dialect_tool.name, argument.name);
                    assert!(known(argument.to), "{place}");
                    assert!(
                        dialect_tool.schema()["properties"][argument.name]["description"].is_string(),
                        "{place}"
                    );
                }
                for (name, _) in dialect_tool.fixed {
                    assert!(known(name), "{}.{}: {name}", table.name, dialect_tool.name);
                }
                let ours: Vec<&str> = ours
                    .get("required")
                    .and_then(Value::as_array)
                    .map(|names| names.iter().filter_map(Value::as_str).collect())
                    .unwrap_or_default();
                if let Some(takes) = dialect_tool.takes {
                    for name in ours {
                        let given = takes.iter().any(|one| one.to == name && one.required);
                        assert!(given, "{}.{} never gives `{name}`", table.name, dialect_tool.name);
                    }
                }
            }
        }
    }

    #[test]
    fn units_and_names_are_ours_afterwards() {
        let said = |dialect: &str, tool: &str, arguments: Value| {
            let dialect = Dialect::named(dialect).expect("there is such a dialect");
            let dialect_tool = dialect
                .tools()
                .into_iter()
                .find(|dialect_tool| dialect_tool.name == tool);
            let arguments = arguments.as_object().expect("an object").clone();
            dialect_tool.expect("there is such a tool").translate(arguments)
        };
        let ours = |said: Result<TranslatedCall, String>| said.map(|said| (Value::Object(said.arguments), said.alias));
        assert_eq!(
            ours(said(
                "codex",
                "write_stdin",
                json!({"session_id": 7, "chars": "y\n", "max_output_tokens": 10})
            )),
            Ok((
                json!({"job": "j7", "text": "y\n", "enter": false, "wait_ms": 250, "max_output_bytes": 40}),
                None
            ))
        );
        assert_eq!(
            ours(said(
                "camel",
                "shell_exec",
                json!({"id": "a b", "command": "ls", "block": false, "timeout": 0.5})
            )),
            Ok((
                json!({"command": "ls", "background": true, "timeout_ms": 500, "session": ""}),
                Some("a b".to_owned())
            ))
        );
        assert_eq!(
            ours(said(
                "claude",
                "Bash",
                json!({"command": "ls", "run_in_background": true})
            )),
            Ok((
                json!({"command": "ls", "timeout_ms": 120_000, "background": true, "on_timeout": "kill"}),
                None
            ))
        );
        let error = said("claude", "Bash", json!({"cmd": "ls"})).expect_err("there is no such argument");
        assert!(
            error.contains("`Bash` has no `cmd`; it takes `command`") && error.contains("`command` is missing"),
            "{error}"
        );
        let error = said(
            "camel",
            "shell_exec",
            json!({"id": "a", "command": "ls", "timeout": "soon"}),
        );
        assert!(error.is_err_and(|error| error.contains("`timeout` must be a number")));
    }

    #[test]
    fn an_unknown_dialect_names_the_known_ones() {
        let error = Dialect::named("klingon").expect_err("there is none").to_string();
        assert_eq!(
            error,
            "there is no dialect `klingon`; there are default, codex, claude, camel, pydantic"
        );
    }
}
