//! One definition for each tool: its name, what a model is told of it, what it takes and gives, and
//! what a client may assume of it. Everything else that speaks of tools comes from here: the dialects,
//! the committed schemas, the tests.
//!
//! Says what there is; [`service`](super::service) does it.

mod files;
mod shell;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};
use shieling::environment::Ability;

/// A tool, by what it does. A new one is an entry here, its arguments, and its arm in the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Tool {
    Shell,
    ShellView,
    ShellWrite,
    ShellWait,
    ShellKill,
    ShellList,
    ShellOutput,
    AskHuman,
    Environment,
    ReadFile,
    WriteFile,
    EditFile,
    ApplyPatch,
    Ls,
    Glob,
    Grep,
    Stat,
    DeleteFile,
    MoveFile,
}

/// What may be assumed of a tool: hints, as the protocol has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hints {
    /// It changes nothing.
    pub(crate) read_only: bool,
    /// It may destroy.
    pub(crate) destructive: bool,
    /// A second call changes nothing more.
    pub(crate) idempotent: bool,
    /// It may reach the world outside.
    pub(crate) open_world: bool,
}

const LOOKS: Hints = Hints {
    read_only: true,
    destructive: false,
    idempotent: true,
    open_world: false,
};

/// It changes nothing but the size of a terminal, and what it shows is not new the next time.
const LOOKS_ON: Hints = Hints {
    idempotent: false,
    ..LOOKS
};

/// A tool's definition.
pub(crate) struct Definition {
    /// Which.
    pub(crate) tool: Tool,
    /// Its name in the default dialect.
    pub(crate) name: &'static str,
    /// For a person who looks at a list of tools.
    pub(crate) title: &'static str,
    /// For a model.
    pub(crate) about: &'static str,
    /// What it takes.
    pub(crate) takes: fn() -> Map<String, Value>,
    /// What it gives.
    pub(crate) gives: fn() -> Map<String, Value>,
    /// What may be assumed of it.
    pub(crate) hints: Hints,
    /// What the environment must be able to do for it.
    pub(crate) needs: &'static [Ability],
}

/// All of them, in the order in which a model reads them.
pub(crate) fn all() -> impl Iterator<Item = &'static Definition> {
    shell::TOOLS.iter().chain(files::TOOLS)
}

impl Tool {
    /// Its definition.
    pub(crate) fn definition(self) -> &'static Definition {
        all()
            .find(|definition| definition.tool == self)
            .expect("each tool has a definition; a test looks")
    }
}

/// The schema of what a tool takes, in the plain part of JSON Schema that every client reads: no
/// references, no formats, and absent rather than null.
fn schema<T: JsonSchema>() -> Map<String, Value> {
    let generated = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>();
    let mut schema = generated.as_object().cloned().unwrap_or_default();
    schema.remove("title");
    schema.remove("description");
    schema.insert("additionalProperties".to_owned(), false.into());
    schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(plain);
    }
    schema
}

fn plain(property: &mut Value) {
    let Some(property) = property.as_object_mut() else {
        return;
    };
    property.remove("format");
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            property.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::String(about)) = property.get_mut("description") {
        *about = about.replace('\n', " ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_is_described_plain_and_bounded() {
        for definition in all() {
            assert_eq!(definition.tool.definition().name, definition.name);
            let takes = (definition.takes)();
            let properties = takes["properties"].as_object().expect("an object");
            for (name, property) in properties {
                let place = format!("{}.{name}: {property}", definition.name);
                assert!(property["description"].is_string(), "{place}");
                assert!(property["type"].is_string(), "{place}");
                if property["type"] == "string" {
                    assert!(
                        property.get("maxLength").is_some() || property.get("enum").is_some(),
                        "{place}"
                    );
                }
            }
        }
    }
}
