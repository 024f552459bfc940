//! Validates arguments against a tool's schema, with messages that help a model to correct them.
//!
//! Supports only the subset of JSON Schema that our tools use. The schema that a client sees is thereby the one that
//! is enforced.

use serde_json::{Map, Value};

use crate::visible;

/// The length of a wrong value in a message.
const SHOWN: usize = 60;

/// Validates arguments. Removes nulls that stand for absent values, and normalises whole numbers.
///
/// # Errors
/// All violations, one line each.
pub(crate) fn check(
    tool: &str,
    schema: &Map<String, Value>,
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let empty = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut wrong = Vec::new();
    let mut checked = Map::new();
    let mut unknown = Vec::new();
    for (name, mut value) in arguments {
        let Some(property) = known.get(&name) else {
            unknown.push(format!("`{}`", shorten(&name)));
            continue;
        };
        if value.is_null() && !required.contains(&name.as_str()) {
            continue;
        }
        match fits(property, &mut value) {
            Ok(()) => {
                checked.insert(name, value);
            }
            Err(expected) => wrong.push(format!(
                "`{name}` must be {expected}, not {}",
                // JSON is escaped already.
                visible::line(&value.to_string(), SHOWN)
            )),
        }
    }
    if !unknown.is_empty() {
        let names: Vec<String> = known.keys().map(|name| format!("`{name}`")).collect();
        let takes = if names.is_empty() {
            "no arguments".to_owned()
        } else {
            names.join(", ")
        };
        wrong.push(format!("`{tool}` has no {}; it takes {takes}", unknown.join(", ")));
    }
    let mentioned = |name: &str| wrong.iter().any(|line| line.starts_with(&format!("`{name}` must")));
    let missing: Vec<String> = required
        .iter()
        .filter(|name| !checked.contains_key(**name) && !mentioned(name))
        .map(|name| format!("`{name}` is missing"))
        .collect();
    wrong.extend(missing);
    if wrong.is_empty() {
        Ok(checked)
    } else {
        Err(wrong.join("\n"))
    }
}

fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Checks a value against a schema. Returns what it should be otherwise.
fn fits(schema: &Value, value: &mut Value) -> Result<(), String> {
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        let names: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return if allowed.contains(value) {
            Ok(())
        } else {
            Err(names.join(" or "))
        };
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => string(schema, value),
        Some("integer") => integer(schema, value),
        Some("number") => number(schema, value),
        Some("boolean") if !value.is_boolean() => Err("true or false".to_owned()),
        Some("array") => array(schema, value),
        _ => Ok(()),
    }
}

fn string(schema: &Value, value: &Value) -> Result<(), String> {
    let least = bound(schema, "minLength").unwrap_or(0);
    let most = bound(schema, "maxLength").unwrap_or(u64::MAX);
    let expected = || match (least, most) {
        (0, u64::MAX) => "a text".to_owned(),
        (0, most) => format!("a text of at most {most} characters"),
        (least, u64::MAX) => format!("a text of at least {least} characters"),
        (least, most) => format!("a text of {least} to {most} characters"),
    };
    let Some(text) = value.as_str() else {
        return Err(expected());
    };
    let length = text.chars().count() as u64;
    if (least..=most).contains(&length) {
        Ok(())
    } else {
        Err(expected())
    }
}

fn integer(schema: &Value, value: &mut Value) -> Result<(), String> {
    let least = bound(schema, "minimum").unwrap_or(0);
    let most = bound(schema, "maximum").unwrap_or(u64::MAX);
    let expected = || match most {
        u64::MAX => format!("a whole number from {least} on"),
        most => format!("a whole number from {least} to {most}"),
    };
    // `1000.0` is the same number, and some clients send numbers only in this form.
    if let Some(whole) = value
        .as_f64()
        .filter(|number| value.is_f64() && number.fract() == 0.0 && (0.0..9e15).contains(number))
        .and_then(|number| format!("{number:.0}").parse::<u64>().ok())
    {
        *value = whole.into();
    }
    match value.as_u64() {
        Some(number) if (least..=most).contains(&number) => Ok(()),
        _ => Err(expected()),
    }
}

fn number(schema: &Value, value: &Value) -> Result<(), String> {
    let above = schema.get("exclusiveMinimum").and_then(Value::as_f64).unwrap_or(0.0);
    let most = schema.get("maximum").and_then(Value::as_f64).unwrap_or(f64::MAX);
    match value.as_f64() {
        Some(number) if number > above && number <= most => Ok(()),
        _ => Err(format!("a number above {above}, at most {most}")),
    }
}

fn array(schema: &Value, value: &mut Value) -> Result<(), String> {
    let most = bound(schema, "maxItems").unwrap_or(u64::MAX);
    let Some(items) = value.as_array_mut() else {
        return Err("a list".to_owned());
    };
    if items.len() as u64 > most {
        return Err(format!("a list of at most {most}"));
    }
    match schema.get("items") {
        Some(each) => items
            .iter_mut()
            .try_for_each(|item| fits(each, item))
            .map_err(|expected| format!("a list, each {expected}")),
        None => Ok(()),
    }
}

fn bound(schema: &Value, name: &str) -> Option<u64> {
    schema.get(name).and_then(Value::as_u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Map<String, Value> {
        let schema = json!({
            "properties": {
                "command": {"type": "string", "minLength": 1, "maxLength": 5},
                "wait": {"type": "integer", "minimum": 1, "maximum": 10},
                "fast": {"type": "boolean"},
                "keys": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
                "mode": {"type": "string", "enum": ["a", "b"]},
            },
            "required": ["command"],
        });
        schema.as_object().expect("an object").clone()
    }

    fn checked(arguments: Value) -> Result<Value, String> {
        check("tool", &schema(), arguments.as_object().expect("an object").clone()).map(Value::Object)
    }

    #[test]
    fn what_fits_passes_and_null_is_absent() {
        let given = json!({"command": "ls", "wait": 3.0, "fast": null, "keys": ["x"], "mode": "b"});
        let expected = json!({"command": "ls", "wait": 3, "keys": ["x"], "mode": "b"});
        assert_eq!(checked(given), Ok(expected));
    }

    #[test]
    fn whatever_is_wrong_is_named_with_what_would_be_right() {
        for (given, says) in [
            (
                json!({"command": "ls", "wiat": 1}),
                "`tool` has no `wiat`; it takes `command`, `fast`, `keys`, `mode`, `wait`",
            ),
            (json!({}), "`command` is missing"),
            (
                json!({"command": null}),
                "`command` must be a text of 1 to 5 characters, not null",
            ),
            (
                json!({"command": "toolong"}),
                "`command` must be a text of 1 to 5 characters, not \"toolong\"",
            ),
            (
                json!({"command": "ls", "wait": 0}),
                "`wait` must be a whole number from 1 to 10, not 0",
            ),
            (
                json!({"command": "ls", "wait": "3s"}),
                "`wait` must be a whole number from 1 to 10, not \"3s\"",
            ),
            (
                json!({"command": "ls", "wait": -1}),
                "`wait` must be a whole number from 1 to 10, not -1",
            ),
            (
                json!({"command": "ls", "fast": "yes"}),
                "`fast` must be true or false, not \"yes\"",
            ),
            (
                json!({"command": "ls", "keys": [1]}),
                "`keys` must be a list, each a text, not [1]",
            ),
            (
                json!({"command": "ls", "keys": ["a", "b", "c"]}),
                "`keys` must be a list of at most 2",
            ),
            (
                json!({"command": "ls", "mode": "c"}),
                "`mode` must be \"a\" or \"b\", not \"c\"",
            ),
        ] {
            let error = checked(given.clone()).expect_err("it does not fit");
            assert!(error.starts_with(says), "{given}: {error}");
        }
    }

    #[test]
    fn a_huge_value_is_not_said_again() {
        let error = checked(json!({"command": "x".repeat(1_000_000)})).expect_err("it does not fit");
        assert!(error.len() < 200, "{error}");
    }
}
