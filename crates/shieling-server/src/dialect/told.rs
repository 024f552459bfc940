//! What a client is told of a tool, in an environment that keeps sessions and in one that does not.

use serde_json::{Map, Value};

use super::DialectTool;

/// What is said of sessions, and what is said instead where there are none.
const SESSIONS: &[(&str, &str)] = &[
    (
        "in a persistent session, whose directory, variables and functions last from call to call",
        ALONE,
    ),
    (
        "in a persistent shell session, whose directory, variables and functions last from call to call",
        ALONE,
    ),
    (
        "The persistent shell to run it in; a new name starts a new one, and several run in parallel. \"\" runs it in a fresh process, of which nothing stays.",
        "There are no sessions here: leave it out, or give \"\".",
    ),
    (
        ", which starts in the session's directory with its exported variables; what it changes of them does not come back",
        "",
    ),
    ("; only with session \"\"", ""),
    ("; the session stays", ""),
    (
        "Lists the sessions, with where they stand, and the jobs",
        "Lists the jobs",
    ),
    ("List sessions and jobs", "List jobs"),
];

const ALONE: &str = "in a process of its own: no directory, variable or function lasts from call to call";

/// What a client is told of a tool.
#[derive(Debug)]
pub(crate) struct Told {
    /// The title for people.
    pub(crate) title: String,
    /// The description for models.
    pub(crate) description: String,
    /// The schema of the arguments.
    pub(crate) takes: Map<String, Value>,
}

impl Told {
    /// Returns what is told where there are sessions.
    pub(crate) fn of(tool: &DialectTool) -> Self {
        Self {
            title: tool.tool.definition().title.to_owned(),
            description: tool.description().to_owned(),
            takes: tool.schema(),
        }
    }

    /// Removes what holds only where there are sessions. What is accepted stays the same, so that a call that names a
    /// session is refused with the reason.
    pub(crate) fn leave_out_sessions(&mut self, tool: &DialectTool) {
        for (said, instead) in SESSIONS {
            self.title = self.title.replace(said, instead);
            self.description = self.description.replace(said, instead);
        }
        let properties = self.takes.get_mut("properties").and_then(Value::as_object_mut);
        for (name, property) in properties.into_iter().flatten() {
            if tool.argument_of_ours(name) == "session"
                && let Some(property) = property.as_object_mut()
            {
                property.remove("default");
            }
            if let Some(Value::String(description)) = property.get_mut("description") {
                for (said, instead) in SESSIONS {
                    *description = description.replace(said, instead);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;

    /// All texts of all tools of all dialects, with the tool.
    fn texts(keeps_sessions: bool) -> Vec<(String, String)> {
        let mut texts = Vec::new();
        for dialect in Dialect::names() {
            for tool in Dialect::named(dialect).expect("there is such a dialect").tools() {
                let mut told = Told::of(&tool);
                if !keeps_sessions {
                    told.leave_out_sessions(&tool);
                }
                let name = format!("{dialect}.{}", tool.name);
                texts.push((name.clone(), told.title));
                texts.push((name.clone(), told.description));
                texts.push((name, Value::Object(told.takes).to_string()));
            }
        }
        texts
    }

    #[test]
    fn where_there_are_no_sessions_no_tool_promises_one() {
        for (tool, text) in texts(false) {
            let text = text.to_lowercase();
            for promise in [
                "persistent",
                "last from call",
                "\"main\"",
                "session stays",
                "session's directory",
            ] {
                assert!(!text.contains(promise), "{tool}: {text}");
            }
        }
    }

    #[test]
    fn each_replaced_text_is_one_that_a_tool_has() {
        let texts = texts(true);
        for (said, _) in SESSIONS {
            let said = Value::from(*said).to_string();
            let said = &said[1..said.len() - 1];
            assert!(
                texts.iter().any(|(_, text)| text.contains(said)),
                "no tool says {said:?}"
            );
        }
    }
}
