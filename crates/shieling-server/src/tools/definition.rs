//! The form of a tool's definition, and the schema of its arguments.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};
use shieling::environment::Ability;

/// A tool by its function. A new tool needs an entry here, its arguments, and an arm in the service.
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

/// Hints about a tool, as defined by the protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hints {
    /// The tool changes nothing.
    pub(crate) read_only: bool,
    /// The tool may destroy data.
    pub(crate) destructive: bool,
    /// A repeated call changes nothing more.
    pub(crate) idempotent: bool,
    /// The tool may access the outside world.
    pub(crate) open_world: bool,
}

pub(super) const LOOKS: Hints = Hints {
    read_only: true,
    destructive: false,
    idempotent: true,
    open_world: false,
};

/// Changes nothing but the size of a terminal. It is not idempotent, since output counts as viewed after the first
/// call.
pub(super) const LOOKS_ON: Hints = Hints {
    idempotent: false,
    ..LOOKS
};

/// The definition of a tool.
pub(crate) struct Definition {
    /// The tool.
    pub(crate) tool: Tool,
    /// The name in the default dialect.
    pub(crate) name: &'static str,
    /// The title for people.
    pub(crate) title: &'static str,
    /// The description for models.
    pub(crate) description: &'static str,
    /// Returns the schema of the arguments.
    pub(crate) takes: fn() -> Map<String, Value>,
    /// Returns the schema of the result.
    pub(crate) gives: fn() -> Map<String, Value>,
    /// Hints for clients.
    pub(crate) hints: Hints,
    /// The abilities that the environment must have.
    pub(crate) needs: &'static [Ability],
}

/// Generates the schema of a tool's arguments in the subset of JSON Schema that every client supports: without
/// references and formats, and with absent values instead of null.
pub(super) fn schema<T: JsonSchema>() -> Map<String, Value> {
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
    if let Some(Value::String(description)) = property.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}
