//! A tool of a dialect: its schema, and the conversion of its arguments to ours.

use serde_json::{Map, Value, json};

use crate::check;
use crate::tools::{Definition, Tool};

/// The style of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Default,
    Codex,
    Claude,
    Camel,
    Pydantic,
}

/// A tool in a dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DialectTool {
    /// The name in the dialect.
    pub(crate) name: &'static str,
    /// Our tool that performs the call.
    pub(crate) tool: Tool,
    /// The description; if empty, that of our tool.
    pub(crate) description: &'static str,
    /// The arguments; `None` means those of our tool.
    pub(crate) takes: Option<&'static [Argument]>,
    /// Arguments of our tool with fixed values.
    pub(crate) fixed: &'static [(&'static str, Fixed)],
}

/// An argument in a dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    /// The name in the dialect.
    pub(crate) name: &'static str,
    /// The name of our argument.
    pub(crate) to: &'static str,
    /// The conversion to our argument.
    pub(crate) how: Conversion,
    /// Whether it is required.
    pub(crate) required: bool,
    /// The default in the dialect's unit.
    pub(crate) default: Option<Fixed>,
    /// The description; if empty, that of our argument.
    pub(crate) description: &'static str,
}

/// The conversion of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// None.
    Same,
    /// The number 7 becomes the job `j7`.
    Number,
    /// Seconds, possibly fractional, become milliseconds.
    Seconds,
    /// Tokens become bytes, four each.
    Tokens,
    /// The value is negated.
    Not,
    /// A name that the caller has chosen becomes the name of the job.
    Alias,
    /// Line numbers counted from 1 become offsets; 0 also means the first line.
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

/// A call with our arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TranslatedCall {
    /// The arguments.
    pub(crate) arguments: Map<String, Value>,
    /// The caller's name for the job, if the dialect has such names.
    pub(crate) alias: Option<String>,
}

impl DialectTool {
    /// Returns our tool as it is.
    pub(super) fn same(definition: &Definition) -> Self {
        Self {
            name: definition.name,
            tool: definition.tool,
            description: "",
            takes: None,
            fixed: &[],
        }
    }

    /// Returns the description for models.
    pub(crate) fn description(&self) -> &'static str {
        match self.description {
            "" => self.tool.definition().description,
            description => description,
        }
    }

    /// Returns the name of our argument for one of the dialect.
    pub(super) fn argument_of_ours<'a>(&self, name: &'a str) -> &'a str {
        let takes = self.takes.unwrap_or_default();
        takes
            .iter()
            .find(|argument| argument.name == name)
            .map_or(name, |argument| argument.to)
    }

    /// Returns the schema of the arguments.
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

    /// Converts arguments of the dialect to ours.
    ///
    /// # Errors
    /// All violations of the schema, worded for a model.
    pub(crate) fn translate(&self, arguments: Map<String, Value>) -> Result<TranslatedCall, String> {
        let mut checked = check::check(self.name, &self.schema(), arguments)?;
        let mut said = TranslatedCall {
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
                        (Conversion::Alias, Value::String(name)) => said.alias = Some(name.clone()),
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
            Conversion::Same => {}
            Conversion::Number => {
                property = json!({"type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_u64})
            }
            Conversion::Seconds => property = json!({"type": "number", "exclusiveMinimum": 0, "maximum": 3_600}),
            Conversion::Tokens => property = json!({"type": "integer", "minimum": 1, "maximum": 250_000}),
            Conversion::Not => property = json!({"type": "boolean"}),
            Conversion::Alias => property = json!({"type": "string", "minLength": 1, "maxLength": 200}),
            Conversion::FromOne => {
                property = json!({"type": "integer", "minimum": 0, "maximum": 1_000_000_000_000_u64})
            }
            Conversion::Modes => {
                property = json!({"type": "string", "enum": ["content", "files_with_matches", "count"]})
            }
        }
        if let Some(property) = property.as_object_mut() {
            let description = if self.description.is_empty() {
                words
            } else {
                self.description.into()
            };
            property.insert("description".to_owned(), description);
            if let Some(default) = self.default {
                property.insert("default".to_owned(), default.value());
            } else if self.how != Conversion::Same || self.required {
                property.remove("default");
            }
        }
        property
    }
}

impl Conversion {
    /// Converts a validated value to our unit.
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

/// Returns an optional argument that is ours under another name.
pub(super) const fn may(name: &'static str, to: &'static str) -> Argument {
    Argument {
        name,
        to,
        how: Conversion::Same,
        required: false,
        default: None,
        description: "",
    }
}

/// Returns a required argument that is ours under another name.
pub(super) const fn must(name: &'static str, to: &'static str) -> Argument {
    Argument {
        required: true,
        ..may(name, to)
    }
}
