//! Calls that fail again and again: a model that repeats itself is told so, since the same answer for
//! the fourth time teaches it nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use shieling::request::Digest;

use crate::service::Given;

/// The last failing call of each tool, and how often it has failed in a row.
#[derive(Debug)]
pub(crate) struct Repeats {
    most: u32,
    failing: Mutex<BTreeMap<&'static str, (Digest, u32)>>,
}

impl Repeats {
    /// So many failures before it is told; 0: it never is.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            failing: Mutex::default(),
        }
    }

    /// Counts a call of a tool, and adds to its answer if it is one too many. Anything else that is
    /// asked of the same tool begins anew; other tools in between change nothing.
    pub(crate) fn note(&self, tool: &'static str, call: Digest, given: &mut Given) {
        if self.most == 0 || given.is_only_early() {
            return;
        }
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if !given.error {
            failing.remove(tool);
            return;
        }
        let (last, count) = failing.entry(tool).or_insert((call, 0));
        if *last == call {
            *count = count.saturating_add(1);
        } else {
            (*last, *count) = (call, 1);
        }
        let count = *count;
        drop(failing);
        if count < self.most {
            return;
        }
        given.text.push_str(&format!(
            "\n[this very call has failed {count} times in a row, and nothing says that it will not again: do something else]"
        ));
        if let Some(Value::Object(structured)) = &mut given.structured {
            structured.insert("failed_in_a_row".to_owned(), count.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failed(repeats: &Repeats, tool: &'static str, call: &str) -> Value {
        let mut given = Given::wrong("no");
        repeats.note(tool, Digest::of(call.as_bytes()), &mut given);
        let told = given.structured.expect("it has facts")["failed_in_a_row"].clone();
        assert_eq!(given.text.contains("in a row"), !told.is_null());
        told
    }

    #[test]
    fn the_third_failure_of_the_same_call_is_told_and_each_one_after() {
        let repeats = Repeats::new(3);
        let told: Vec<Value> = (0..5).map(|_| failed(&repeats, "edit_file", "a")).collect();
        assert_eq!(told, [json!(null), json!(null), json!(3), json!(4), json!(5)]);
    }

    #[test]
    fn another_call_or_a_success_begins_anew_and_another_tool_does_not() {
        let repeats = Repeats::new(2);
        failed(&repeats, "edit_file", "a");
        failed(&repeats, "read_file", "a");
        assert_eq!(failed(&repeats, "edit_file", "a"), json!(2));
        assert_eq!(failed(&repeats, "edit_file", "b"), json!(null));
        assert_eq!(failed(&repeats, "edit_file", "a"), json!(null));
        let mut good = Given {
            error: false,
            ..Given::wrong("")
        };
        repeats.note("edit_file", Digest::of(b"a"), &mut good);
        assert_eq!(failed(&repeats, "edit_file", "a"), json!(null));
    }

    #[test]
    fn what_only_came_too_soon_is_no_failure_and_0_is_never() {
        let repeats = Repeats::new(1);
        let mut early = Given::new("wait".to_owned(), &json!({"status": "rate_limited"}), true);
        repeats.note("shell", Digest::of(b"a"), &mut early);
        assert_eq!(early.text, "wait");
        assert_eq!(failed(&Repeats::new(0), "shell", "a"), json!(null));
    }
}
