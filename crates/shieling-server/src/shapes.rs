//! The JSON schemas of the tools' `structuredContent`.
//!
//! They are not derived from the library's types: those would need `schemars`, and their nested fields would close what
//! these schemas leave open on purpose, such as the items of lists. Tests compare the properties with serialised values.

use serde_json::{Map, Value, json};

/// Returns the schema of an outcome.
pub(crate) fn outcome() -> Map<String, Value> {
    object(outcome_properties(), &OUTCOME)
}

/// Returns the schema of a job.
pub(crate) fn view() -> Map<String, Value> {
    let mut properties = outcome_properties();
    for (name, shape) in view_properties() {
        properties.insert(name, shape);
    }
    let required: Vec<&str> = OUTCOME.into_iter().chain(VIEW).collect();
    object(properties, &required)
}

/// Returns the schema of a job after a wait.
pub(crate) fn waited() -> Map<String, Value> {
    let mut view = view();
    if let Some(Value::Object(properties)) = view.get_mut("properties") {
        properties.insert(
            "met".to_owned(),
            json!({"type": "boolean", "description": "Whether it is so."}),
        );
    }
    if let Some(Value::Array(required)) = view.get_mut("anyOf").and_then(|any| any.pointer_mut("/0/required")) {
        required.push("met".into());
    }
    view
}

/// Returns the schema of a listing.
pub(crate) fn listing() -> Map<String, Value> {
    let list = |what: &str| json!({"type": "array", "items": {"type": "object"}, "description": what});
    let properties = json!({
        "sessions": list("session, cwd, job that keeps it busy, restarts, commands, recording"),
        "jobs": list("job, session, command, status, exit_code, duration_ms, output_bytes, unseen_bytes, terminal, person, recording"),
    });
    object(
        properties.as_object().cloned().unwrap_or_default(),
        &["sessions", "jobs"],
    )
}

/// Returns the schema of a person's answer.
pub(crate) fn answer() -> Map<String, Value> {
    let properties = json!({
        "kind": {"type": "string", "enum": ["answer", "took_over", "declined", "dismissed", "nobody"]},
        "text": {"type": "string"},
        "changed": {"type": "array", "items": {"type": "string"}},
    });
    object(properties.as_object().cloned().unwrap_or_default(), &["kind"])
}

/// Returns the schema of a part of a whole output.
pub(crate) fn chunk() -> Map<String, Value> {
    let properties = json!({
        "output_id": {"type": "string"},
        "stream": {"type": "string"},
        "text": {"type": "string"},
        "cursor": {"type": "integer"},
        "next_cursor": {"type": "integer"},
        "end": {"type": "boolean"},
    });
    let all = ["output_id", "stream", "text", "cursor", "next_cursor", "end"];
    object(properties.as_object().cloned().unwrap_or_default(), &all)
}

/// Returns the schema of a description.
pub(crate) fn environment() -> Map<String, Value> {
    let properties = json!({
        "environment": {"type": "string"},
        "cwd": {"type": "string"},
        "limits": {"type": "object"},
        "advice": {"type": "array", "items": {"type": "string"}},
        "commands_left": {
            "type": ["integer", "null"],
            "description": "How many commands the rate limit lets through now; null if there is none."
        },
    });
    object(
        properties.as_object().cloned().unwrap_or_default(),
        &["environment", "cwd", "limits", "advice"],
    )
}

/// Returns the schema of a read file. The bytes of an image are separate content.
pub(crate) fn read() -> Map<String, Value> {
    let properties = json!({
        "path": {"type": "string"},
        "size": {"type": "integer"},
        "hash": {"type": "string", "description": "The file's state, for a later edit or write."},
        "kind": {"type": "string", "enum": ["text", "image", "binary"]},
        "text": {"type": "string", "description": "The lines, with the ends that they have in the file."},
        "offset": {"type": "integer"},
        "lines": {"type": "integer"},
        "total_lines": {"type": ["integer", "null"]},
        "next_offset": {"type": ["integer", "null"]},
        "encoding": {"type": "string"},
        "cut_bytes": {"type": "integer"},
        "mime": {"type": "string"},
        "format": {"type": ["string", "null"]},
        "why": {"type": ["string", "null"]},
    });
    file(properties, &["path", "size", "hash", "kind"])
}

/// Returns the schema of a written file.
pub(crate) fn written() -> Map<String, Value> {
    let properties = json!({
        "path": {"type": "string"},
        "created": {"type": "boolean"},
        "size": {"type": "integer"},
        "hash": {"type": "string"},
        "diff": {"type": ["string", "null"]},
        "note": {"type": "string", "description": "What there is to know of where it is."},
    });
    file(properties, &["path", "created", "size", "hash", "diff"])
}

/// Returns the schema of an edited file.
pub(crate) fn edited() -> Map<String, Value> {
    let properties = json!({
        "path": {"type": "string"},
        "replacements": {"type": "integer"},
        "diff": {"type": "string"},
        "size": {"type": "integer"},
        "hash": {"type": "string"},
        "note": {"type": "string", "description": "What there is to know of where it is."},
    });
    file(properties, &["path", "replacements", "diff", "size", "hash"])
}

/// Returns the schema of an applied patch.
pub(crate) fn patched() -> Map<String, Value> {
    let properties = json!({
        "files": {
            "type": "array",
            "items": {"type": "object"},
            "description": "path, change (added, changed, removed, moved), from, added, removed, hash"
        },
        "note": {"type": "string", "description": "What there is to know of where it is."},
    });
    file(properties, &["files"])
}

/// Returns the schema of a directory.
pub(crate) fn listed() -> Map<String, Value> {
    let properties = json!({
        "path": {"type": "string"},
        "entries": {
            "type": "array",
            "items": {"type": "object"},
            "description": "path, kind, size, mode, modified, target, dangling"
        },
        "next": {"type": ["string", "null"], "description": "The name to go on after, if there is more."},
    });
    file(properties, &["path", "entries", "next"])
}

/// Returns the schema of found paths.
pub(crate) fn found() -> Map<String, Value> {
    let properties = json!({
        "root": {"type": "string", "description": "What paths are relative to."},
        "paths": {"type": "array", "items": {"type": "string"}},
        "next": {"type": ["string", "null"], "description": "The path to go on after, if there is more."},
        "unreadable": {"type": "integer"},
    });
    file(properties, &["root", "paths", "next", "unreadable"])
}

/// Returns the schema of a content search.
pub(crate) fn grepped() -> Map<String, Value> {
    let properties = json!({
        "root": {"type": "string", "description": "What paths are relative to."},
        "hits": {
            "type": "array",
            "items": {"type": "object"},
            "description": "path, line, text, matched, count"
        },
        "next": {"type": ["string", "null"], "description": "The cursor to go on with, if there is more."},
        "searched": {"type": "integer"},
        "binary": {"type": "integer"},
        "unreadable": {"type": "integer"},
    });
    file(
        properties,
        &["root", "hits", "next", "searched", "binary", "unreadable"],
    )
}

/// Returns the schema of metadata.
pub(crate) fn info() -> Map<String, Value> {
    let properties = json!({
        "path": {"type": "string"},
        "kind": {"type": "string", "enum": ["file", "directory", "link", "fifo", "socket", "device"]},
        "size": {"type": ["integer", "null"]},
        "mode": {"type": "string"},
        "modified": {"type": "string"},
        "target": {"type": ["string", "null"]},
        "dangling": {"type": "boolean"},
        "hash": {"type": "string"},
        "note": {"type": "string", "description": "What there is to know of a removal or a move."},
    });
    file(
        properties,
        &["path", "kind", "size", "mode", "modified", "target", "dangling"],
    )
}

/// Returns the schema of a result about files. An error also has a code and possibly a denial.
fn file(properties: Value, required: &[&str]) -> Map<String, Value> {
    let mut properties = properties.as_object().cloned().unwrap_or_default();
    properties.insert(
        "code".to_owned(),
        json!({"type": "string", "description": "Of an error: which, such as not_found, no_match, stale."}),
    );
    properties.insert("denial".to_owned(), json!({"type": ["object", "null"]}));
    object(properties, required)
}

const OUTCOME: [&str; 24] = [
    "status",
    "exit_code",
    "signal",
    "stdout",
    "stderr",
    "stdout_bytes",
    "stderr_bytes",
    "truncated",
    "output_id",
    "duration_ms",
    "cwd",
    "environment",
    "confinement",
    "survivors",
    "ended_processes",
    "session",
    "session_restarted",
    "job",
    "changes",
    "network",
    "hints",
    "limits_hit",
    "denial",
    "error",
];

const VIEW: [&str; 4] = ["cursor", "missed_bytes", "command", "screen"];

fn outcome_properties() -> Map<String, Value> {
    let properties = json!({
        "status": {"type": "string", "enum": [
            "exited", "signalled", "timed_out", "out_of_memory", "output_limit", "denied", "needs_approval",
            "rate_limited", "running", "lost", "failed"
        ]},
        "exit_code": {"type": ["integer", "null"]},
        "signal": {"type": ["integer", "null"]},
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
        "stdout_bytes": {"type": "integer"},
        "stderr_bytes": {"type": "integer"},
        "truncated": {"type": "boolean"},
        "output_id": {"type": ["string", "null"]},
        "duration_ms": {"type": "number"},
        "cwd": {"type": "string"},
        "environment": {"type": "string"},
        "confinement": {"type": "object"},
        "survivors": {"type": "integer"},
        "ended_processes": {"type": "integer"},
        "session": {"type": ["string", "null"]},
        "session_restarted": {"type": "boolean"},
        "job": {"type": ["string", "null"]},
        "changes": {"type": ["object", "null"]},
        "network": {"type": ["object", "null"]},
        "hints": {"type": "array"},
        "limits_hit": {"type": "array"},
        "denial": {"type": ["object", "null"]},
        "error": {"type": ["string", "null"]},
    });
    properties.as_object().cloned().unwrap_or_default()
}

fn view_properties() -> Map<String, Value> {
    let properties = json!({
        "cursor": {"type": "integer"},
        "missed_bytes": {"type": "integer"},
        "command": {"type": "string"},
        "screen": {"type": ["object", "null"]},
    });
    properties.as_object().cloned().unwrap_or_default()
}

/// Returns the schema of an object. Other properties are allowed, since properties may be added. An error has only
/// `error` and possibly `denial`; some clients validate errors against this schema, too.
fn object(mut properties: Map<String, Value>, required: &[&str]) -> Map<String, Value> {
    properties.entry("error").or_insert_with(|| json!({"type": "string"}));
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert(
        "anyOf".to_owned(),
        json!([{"required": required}, {"required": ["error"]}]),
    );
    schema
}
