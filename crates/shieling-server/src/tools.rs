//! The definitions of the tools: name, description, arguments, result, and hints for clients. Everything else about
//! tools is derived from here: the dialects, the committed schemas, the tests.
//!
//! [`service`](super::service) performs the calls.

mod definition;
mod files;
mod shell;

pub(crate) use definition::{Definition, Tool};

/// Returns all definitions, in the order in which a model reads them.
pub(crate) fn all() -> impl Iterator<Item = &'static Definition> {
    shell::TOOLS.iter().chain(files::TOOLS)
}

impl Tool {
    /// Returns the definition of this tool.
    pub(crate) fn definition(self) -> &'static Definition {
        all()
            .find(|definition| definition.tool == self)
            .expect("each tool has a definition; a test looks")
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
