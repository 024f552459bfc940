//! Limits how often a model repeats a call that keeps failing.
//!
//! ```text
//! fails ──► fails ──► from the third on, a remark each time ──► too often ──► refused without a try
//!   ▲                                                                            │
//!   └── a change was made or observed, or a minute has passed ◄───────┘
//! ```
//!
//! Only the same tool with the same arguments is refused. Calls that may succeed by themselves the next time are
//! never refused ([`Retry::MaySucceed`]): reading a file or a job that may appear, a busy session, a rate limit, a
//! failure that the call did not cause. Changes by other clients of the same workplace, or by a person, are only
//! noticed if a read of files shows them; hence the limit of a minute.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shieling::outcome::{Denial, Layer, Status};
use shieling::policy::{Decision, Reason};
use shieling::request::Digest;

use crate::result::{CallResult, Retry};
use crate::text;
use crate::tools::Tool;

/// The number of failures from which on a remark is added.
const TOLD: u32 = 3;

/// The time for which a call is refused that could succeed after a change that was not observed.
const PAUSE: Duration = Duration::from_secs(60);

/// The largest number of failing calls, and of reads, that are remembered; the oldest is dropped.
const MOST: usize = 64;

/// The failed calls.
#[derive(Debug)]
pub(crate) struct Repeats {
    most: u32,
    known: Mutex<History>,
}

/// The remembered calls, newest last.
#[derive(Debug, Default)]
struct History {
    failing: VecDeque<FailingCall>,
    /// Reads of files, with the result of each.
    looked: VecDeque<(Digest, Digest)>,
}

/// A call that has failed and not succeeded since.
#[derive(Debug)]
struct FailingCall {
    call: Digest,
    again: Retry,
    /// The number of consecutive failures.
    count: u32,
    /// The number of failures since the last change, or since it could have succeeded by itself.
    unchanged: u32,
    last: Instant,
    /// The result of the last try.
    text: String,
    structured: Option<Value>,
}

impl Repeats {
    /// Creates a limit of this many failures. With 0 nothing is refused or remarked.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            known: Mutex::default(),
        }
    }

    /// Returns the refusal of a call that has failed too often.
    pub(crate) fn refused(&self, call: Digest, now: Instant) -> Option<CallResult> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let failing = known.failing.iter().find(|failing| failing.call == call)?;
        if self.most == 0 || failing.unchanged < self.most {
            return None;
        }
        let left = match failing.again {
            Retry::MaySucceed => return None,
            Retry::NeedsChange => Some(
                (failing.last + PAUSE)
                    .checked_duration_since(now)
                    .filter(|left| !left.is_zero())?,
            ),
            Retry::Fails => None,
        };
        Some(failing.refusal(left))
    }

    /// Counts the result of a call, and adds a remark if it has failed before.
    pub(crate) fn note(&self, tool: Tool, call: Digest, given: &mut CallResult, now: Instant) {
        if self.most == 0 || given.is_rate_limited() {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.failing.iter().position(|failing| failing.call == call);
        let before = at.and_then(|at| known.failing.remove(at));
        if !given.error {
            if changes(tool) || known.shows_news(tool, call, &given.text) {
                known.changed();
            }
            return;
        }
        let (count, unchanged) = before.map_or((0, 0), |before| (before.count, before.unchanged));
        let count = count.saturating_add(1);
        let unchanged = match given.again {
            Retry::MaySucceed => 0,
            Retry::NeedsChange | Retry::Fails => unchanged.saturating_add(1),
        };
        if known.failing.len() == MOST {
            known.failing.pop_front();
        }
        known.failing.push_back(FailingCall {
            call,
            again: given.again,
            count,
            unchanged,
            last: now,
            text: given.text.clone(),
            structured: given.structured.clone(),
        });
        drop(known);
        if count < TOLD.min(self.most) {
            return;
        }
        let then = match given.again {
            Retry::MaySucceed => "do something else".to_owned(),
            Retry::NeedsChange if unchanged < self.most => {
                format!(
                    "after {} it is not tried again until something has changed: do something else",
                    self.most
                )
            }
            Retry::NeedsChange => "it is not tried again until something has changed: do something else".to_owned(),
            Retry::Fails => "it always will: correct its arguments, or do something else".to_owned(),
        };
        let text = format!("\n[this very call has failed {} in a row; {then}]", times(count));
        given.text.push_str(&text);
        if let Some(Value::Object(structured)) = &mut given.structured {
            structured.insert("failed_in_a_row".to_owned(), count.into());
        }
    }
}

impl History {
    /// Returns whether a read of files shows something new: a person may have changed it.
    fn shows_news(&mut self, tool: Tool, call: Digest, text: &str) -> bool {
        if !matches!(tool, Tool::ReadFile | Tool::Ls | Tool::Glob | Tool::Grep | Tool::Stat) {
            return false;
        }
        let shown = Digest::of(text.as_bytes());
        let at = self.looked.iter().position(|(look, _)| *look == call);
        let before = at.and_then(|at| self.looked.remove(at));
        if self.looked.len() == MOST {
            self.looked.pop_front();
        }
        self.looked.push_back((call, shown));
        before.is_none_or(|(_, before)| before != shown)
    }

    /// Forgets failures that may succeed after a change.
    fn changed(&mut self) {
        let may_differ = self.failing.iter_mut().filter(|failing| failing.again != Retry::Fails);
        may_differ.for_each(|failing| failing.unchanged = 0);
    }
}

/// Returns whether a successful call may have changed the conditions of others: by itself, or because it shows that a
/// program or a person has made progress.
fn changes(tool: Tool) -> bool {
    !tool.definition().hints.read_only || matches!(tool, Tool::ShellView | Tool::ShellWait | Tool::AskHuman)
}

fn times(count: u32) -> String {
    format!("{count} {}", if count == 1 { "time" } else { "times" })
}

impl FailingCall {
    /// Words the refusal: not until something changes, or, if `left` is given, until that time has passed.
    fn refusal(&self, left: Option<Duration>) -> CallResult {
        let reason = Reason {
            decision: Decision::Deny,
            rule: "repeats".to_owned(),
            object: String::new(),
            span: None,
            because: match left {
                Some(_) => format!(
                    "this very call has failed {}, and no call has changed anything since",
                    times(self.unchanged)
                ),
                None => format!("this very call has failed {}, as it always will", times(self.unchanged)),
            },
            instead: Some(
                match left {
                    Some(_) => "change what is in its way, or ask for something else",
                    None => "correct its arguments, or ask for something else",
                }
                .to_owned(),
            ),
        };
        let denial = Denial {
            layer: Layer::Rate,
            decision: Decision::Deny,
            reasons: vec![reason],
            retry_after_ms: left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
        };
        let mut text = text::repeated(&denial);
        text.push_str(&format!("\nat last it said:\n{}", self.text));
        let mut value = match &self.structured {
            // A caller that runs a command always receives an outcome.
            Some(Value::Object(outcome)) if outcome.contains_key("exit_code") => outcome.clone(),
            last => [("last".to_owned(), last.clone().unwrap_or_default())]
                .into_iter()
                .collect(),
        };
        let status = self.structured.as_ref().and_then(|last| last.get("status")).cloned();
        let facts = json!({
            "status": status.unwrap_or_else(|| json!(Status::Denied)),
            "error": "the same call has failed too often, and was not tried again",
            "code": "repeated",
            "denial": denial,
            "failed_in_a_row": self.count,
        });
        value.extend(facts.as_object().cloned().unwrap_or_default());
        CallResult {
            again: self.again,
            ..CallResult::new(text, &value, true)
        }
    }
}

#[cfg(test)]
mod tests;
