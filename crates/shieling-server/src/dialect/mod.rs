//! The names that models already know, over the same tools.
//!
//! A dialect is data: for each of its tools the one of ours that does the work, what its arguments are
//! called here, and in which unit they come. Nothing in a dialect can do what the default cannot.

mod tables;

use serde_json::{Map, Value, json};

use crate::check;
use crate::tools::{self, Definition, Tool};

pub(crate) use tables::DIALECTS;

/// A set of tool names.
#[derive(Debug, Clone, Copy)]
pub struct Dialect(&'static Table);

/// There is no such dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no dialect `{}`; there are {}", .0.escape_debug(), Dialect::names().join(", "))]
pub struct DialectError(String);

impl Dialect {
    /// The one of this name.
    ///
    /// # Errors
    /// Names those that there are.
    pub fn named(name: &str) -> Result<Self, DialectError> {
        let found = DIALECTS.iter().find(|table| table.name == name);
        found.map(Self).ok_or_else(|| DialectError(name.to_owned()))
    }

    /// All names, the default first.
    pub fn names() -> Vec<&'static str> {
        DIALECTS.iter().map(|table| table.name).collect()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// How its results read.
    pub(crate) fn voice(self) -> Voice {
        self.0.voice
    }

    /// Its tools.
    pub(crate) fn tools(self) -> Vec<Spoken> {
        match self.0.tools {
            [] => tools::all().map(Spoken::same).collect(),
            tables => tables.concat(),
        }
    }
}

impl Default for Dialect {
    /// The one of our own names.
    fn default() -> Self {
        Self(&DIALECTS[0])
    }
}

/// A dialect's table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) voice: Voice,
    /// Its tools: those for commands, those for files. Empty for ours as they are.
    pub(crate) tools: &'static [&'static [Spoken]],
}

/// How results read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    Default,
    Codex,
    Claude,
    Camel,
    Pydantic,
}

/// A tool as a dialect has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spoken {
    /// Its name here.
    pub(crate) name: &'static str,
    /// What does the work.
    pub(crate) tool: Tool,
    /// What a model is told of it; empty for the tool's own words.
    pub(crate) about: &'static str,
    /// Its arguments; none for the tool's own.
    pub(crate) takes: Option<&'static [Argument]>,
    /// Arguments of the tool that are always the same here.
    pub(crate) fixed: &'static [(&'static str, Fixed)],
}

/// An argument as a dialect has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    /// Its name here.
    pub(crate) name: &'static str,
    /// Its name in ours.
    pub(crate) to: &'static str,
    /// How the one becomes the other.
    pub(crate) how: How,
    /// Whether it must be there.
    pub(crate) required: bool,
    /// What it is where it is absent, in the dialect's own unit.
    pub(crate) default: Option<Fixed>,
    /// What a model is told of it; empty for the argument's own words.
    pub(crate) about: &'static str,
}

/// How an argument becomes ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// As it is.
    Same,
    /// 7 is the job `j7`.
    Number,
    /// Seconds, which may be broken, become milliseconds.
    Seconds,
    /// Tokens become bytes, four each.
    Tokens,
    /// True becomes false.
    Not,
    /// A name of the caller's choice, for a job that has one of ours.
    Alias,
    /// Lines are counted from 1, and 0 means the first one as well.
    FromOne,
    /// `files_with_matches` becomes `files`.
    Modes,
}

/// A value in a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fixed {
    Text(&'static str),
    Number(u64),
    Truth(bool),
}

impl Fixed {
    fn value(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::Number(number) => number.into(),
            Self::Truth(truth) => truth.into(),
        }
    }
}

/// A call in our own words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    /// Our arguments.
    pub(crate) arguments: Map<String, Value>,
    /// The caller's own name for the job, if the dialect has such names.
    pub(crate) alias: Option<String>,
}

impl Spoken {
    fn same(definition: &Definition) -> Self {
        Self {
            name: definition.name,
            tool: definition.tool,
            about: "",
            takes: None,
            fixed: &[],
        }
    }

    /// What a model is told of it.
    pub(crate) fn about(&self) -> &'static str {
        match self.about {
            "" => self.tool.definition().about,
            about => about,
        }
    }

    /// The schema of its arguments.
    pub(crate) fn schema(&self) -> Map<String, Value> {
        let ours = (self.tool.definition().takes)();
        let Some(takes) = self.takes else { return ours };
        let mut properties = Map::new();
        for argument in takes {
            let property = ours.get("properties").and_then(|all| all.get(argument.to));
            let property = property.cloned().unwrap_or_else(|| json!({}));
            properties.insert(argument.name.to_owned(), argument.schema(property));
        }
        let required: Vec<&str> = takes.iter().filter(|one| one.required).map(|one| one.name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema.insert("required".to_owned(), required.into());
        schema.insert("additionalProperties".to_owned(), false.into());
        schema
    }

    /// These arguments in our words.
    ///
    /// # Errors
    /// All that is wrong with them, for a model.
    pub(crate) fn said(&self, arguments: Map<String, Value>) -> Result<Said, String> {
        let mut checked = check::check(self.name, &self.schema(), arguments)?;
        let mut said = Said {
            arguments: Map::new(),
            alias: None,
        };
        match self.takes {
            None => said.arguments = checked,
            Some(takes) => {
                for argument in takes {
                    let default = || argument.default.map(Fixed::value);
                    let Some(value) = checked.remove(argument.name).or_else(default) else {
                        continue;
                    };
                    match (argument.how, &value) {
                        (How::Alias, Value::String(name)) => said.alias = Some(name.clone()),
                        (how, _) => {
                            said.arguments.insert(argument.to.to_owned(), how.ours(value));
                        }
                    }
                }
            }
        }
        for (name, value) in self.fixed {
            said.arguments.insert((*name).to_owned(), value.value());
        }
        Ok(said)
    }
}

impl Argument {
    fn schema(&self, mut property: Value) -> Value {
        let words = property.get("description").cloned().unwrap_or_default();
        match self.how {
            How::Same => {}
            How::Number => property = json!({"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64}),
            How::Seconds => property = json!({"type": "number", "exclusiveMinimum": 0, "maximum": 3_600}),
            How::Tokens => property = json!({"type": "integer", "minimum": 1, "maximum": 250_000}),
            How::Not => property = json!({"type": "boolean"}),
            How::Alias => property = json!({"type": "string", "minLength": 1, "maxLength": 200}),
            How::FromOne => property = json!({"type": "integer", "minimum": 0, "maximum": 1_000_000_000_000_u64}),
            How::Modes => property = json!({"type": "string", "enum": ["content", "files_with_matches", "count"]}),
        }
        if let Some(property) = property.as_object_mut() {
            let about = if self.about.is_empty() {
                words
            } else {
                self.about.into()
            };
            property.insert("description".to_owned(), about);
            if let Some(default) = self.default {
                property.insert("default".to_owned(), default.value());
            } else if self.how != How::Same || self.required {
                property.remove("default");
            }
        }
        property
    }
}

impl How {
    /// A checked value in our unit.
    fn ours(self, value: Value) -> Value {
        match self {
            Self::Same | Self::Alias => value,
            Self::Number => value.as_u64().map_or(Value::Null, |number| format!("j{number}").into()),
            Self::Seconds => {
                let seconds = value.as_f64().unwrap_or_default().clamp(0.001, 3_600.0);
                let duration = std::time::Duration::from_secs_f64(seconds);
                u64::try_from(duration.as_millis()).unwrap_or(1).max(1).into()
            }
            Self::Tokens => value
                .as_u64()
                .map_or(Value::Null, |tokens| tokens.saturating_mul(4).into()),
            Self::Not => value.as_bool().map_or(Value::Null, |truth| (!truth).into()),
            Self::FromOne => value.as_u64().map_or(Value::Null, |line| line.saturating_sub(1).into()),
            Self::Modes => match value.as_str() {
                Some("files_with_matches") => "files".into(),
                Some(_) | None => value,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_has_no_tool_and_no_argument_that_we_do_not_have() {
        for table in DIALECTS {
            for spoken in Dialect(table).tools() {
                let ours = (spoken.tool.definition().takes)();
                let known = |name: &str| ours["properties"].get(name).is_some();
                for argument in spoken.takes.unwrap_or_default() {
                    let place = format!("{}.{}.{}", table.name, spoken.name, argument.name);
                    assert!(known(argument.to), "{place}");
                    assert!(
                        spoken.schema()["properties"][argument.name]["description"].is_string(),
                        "{place}"
                    );
                }
                for (name, _) in spoken.fixed {
                    assert!(known(name), "{}.{}: {name}", table.name, spoken.name);
                }
                let ours: Vec<&str> = ours
                    .get("required")
                    .and_then(Value::as_array)
                    .map(|names| names.iter().filter_map(Value::as_str).collect())
                    .unwrap_or_default();
                if let Some(takes) = spoken.takes {
                    for name in ours {
                        let given = takes.iter().any(|one| one.to == name && one.required);
                        assert!(given, "{}.{} never gives `{name}`", table.name, spoken.name);
                    }
                }
            }
        }
    }

    #[test]
    fn units_and_names_are_ours_afterwards() {
        let said = |dialect: &str, tool: &str, arguments: Value| {
            let dialect = Dialect::named(dialect).expect("there is such a dialect");
            let spoken = dialect.tools().into_iter().find(|spoken| spoken.name == tool);
            let arguments = arguments.as_object().expect("an object").clone();
            spoken.expect("there is such a tool").said(arguments)
        };
        let ours = |said: Result<Said, String>| said.map(|said| (Value::Object(said.arguments), said.alias));
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
