//! One definition for each tool: its name, what a model is told of it, what it takes and gives, and
//! what a client may assume of it. Everything else that speaks of tools comes from here: the dialects,
//! the committed schemas, the tests.
//!
//! Says what there is; [`service`](super::service) does it.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use crate::arguments;
use crate::shapes;

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
}

/// All of them, in the order in which a model reads them.
pub(crate) const TOOLS: &[Definition] = &[
    Definition {
        tool: Tool::Shell,
        name: "shell",
        title: "Run a command",
        about: "Runs bash text in a persistent session, whose directory, variables and functions last from call to call. Its input is empty: give answers as options, or start it with `background` or `tty` and write to it. A refusal names its rule and what is allowed instead.",
        takes: schema::<arguments::Shell>,
        gives: shapes::outcome,
        hints: Hints {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        },
    },
    Definition {
        tool: Tool::ShellView,
        name: "shell_view",
        title: "Look at a job",
        about: "Shows what a job has written since the last view, and how it is. Can wait for more.",
        takes: schema::<arguments::ShellView>,
        gives: shapes::view,
        hints: LOOKS_ON,
    },
    Definition {
        tool: Tool::ShellWrite,
        name: "shell_write",
        title: "Type into a job",
        about: "Types text, then keys, into a job that was started with `background` or `tty`, and shows the output that followed.",
        takes: schema::<arguments::ShellWrite>,
        gives: shapes::view,
        hints: Hints {
            read_only: false,
            destructive: true,
            idempotent: false,
            open_world: true,
        },
    },
    Definition {
        tool: Tool::ShellWait,
        name: "shell_wait",
        title: "Wait for a job",
        about: "Waits until a job's output matches a pattern, a port takes connections, or, with neither, the job ends.",
        takes: schema::<arguments::ShellWait>,
        gives: shapes::waited,
        hints: LOOKS_ON,
    },
    Definition {
        tool: Tool::ShellKill,
        name: "shell_kill",
        title: "End a job",
        about: "Ends a job with every process that it started, and shows what it wrote at the end.",
        takes: schema::<arguments::ShellKill>,
        gives: shapes::view,
        hints: Hints {
            read_only: false,
            destructive: true,
            idempotent: true,
            open_world: false,
        },
    },
    Definition {
        tool: Tool::ShellList,
        name: "shell_list",
        title: "List sessions and jobs",
        about: "Lists the sessions, with where they stand, and the jobs, running and ended.",
        takes: schema::<arguments::Nothing>,
        gives: shapes::listing,
        hints: LOOKS,
    },
    Definition {
        tool: Tool::ShellOutput,
        name: "shell_output",
        title: "Read a whole output",
        about: "Reads on in the whole output of a command whose outcome left some out, by its `output_id`.",
        takes: schema::<arguments::ShellOutput>,
        gives: shapes::chunk,
        hints: LOOKS,
    },
    Definition {
        tool: Tool::AskHuman,
        name: "ask_human",
        title: "Ask the person",
        about: "Asks the person who is there: for a decision, for what only they know, or to do a step themselves, such as a login. Says so at once if nobody is there.",
        takes: schema::<arguments::AskHuman>,
        gives: shapes::answer,
        hints: Hints {
            // A person may take the keyboard, and do what they like.
            read_only: false,
            destructive: false,
            idempotent: false,
            open_world: true,
        },
    },
    Definition {
        tool: Tool::Environment,
        name: "environment",
        title: "Describe the environment",
        about: "Describes where commands run: system, directory, network, limits, policies, which tools are there, and how many commands the rate limit has left.",
        takes: schema::<arguments::Nothing>,
        gives: shapes::environment,
        hints: LOOKS,
    },
];

impl Tool {
    /// Its definition.
    pub(crate) fn definition(self) -> &'static Definition {
        TOOLS
            .iter()
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
    if let Some(Value::String(about)) = property.get_mut("description") {
        *about = about.replace('\n', " ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_property_is_described_plain_and_bounded() {
        for definition in TOOLS {
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
