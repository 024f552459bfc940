//! Calls that fail again and again: how often a model may try the very same once more.
//!
//! ```text
//! fails ──► fails ──► told so each time, from the third on ──► too often ──► refused, and not tried
//!   ▲                                                                            │
//!   └── something was changed, or is seen to have changed, or a minute has passed ◄───────┘
//! ```
//!
//! What is refused is the same tool with the same arguments, and nothing else. Never refused is what may
//! succeed by itself the next time ([`Again::MaySucceed`]): looking at a file or a job that may come
//! about, a session that is busy, a limit on the rate, a failure that is not the call's own. What another
//! client of the same workplace changes is not seen from here, nor what a person does by hand, unless a
//! look at files shows it: therefore the minute.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shieling::outcome::{Denial, Layer, Status};
use shieling::policy::{Decision, Reason};
use shieling::request::Digest;

use crate::approval::Silence;
use crate::service::Given;
use crate::text;
use crate::tools::Tool;

/// From which failure on it is told.
const TOLD: u32 = 3;

/// How long a call is not tried again that could succeed if something has changed unseen.
const PAUSE: Duration = Duration::from_secs(60);

/// How many failing calls are remembered, and how many looks; the oldest goes.
const MOST: usize = 64;

/// What a call that failed would come to if it were made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Again {
    /// It may succeed: what stood in its way passes by itself.
    MaySucceed,
    /// It fails, until something has changed: a file, a policy, a person's mind.
    NeedsChange,
    /// It fails, whatever changes: it is wrong in itself.
    Fails,
}

impl Again {
    /// After a refusal, and a question that was perhaps not answered.
    pub(crate) fn after(status: Status, denial: &Denial, silence: Option<&Silence>) -> Self {
        match (status, denial.layer, silence) {
            // Somebody is there, and may answer the next time.
            (_, _, Some(Silence::Dismissed | Silence::Unreadable | Silence::Failed(_))) => Self::MaySucceed,
            (Status::NeedsApproval, _, _) | (Status::Denied, Layer::Policy | Layer::Approval, _) => Self::NeedsChange,
            _ => Self::MaySucceed,
        }
    }
}

/// The calls that failed.
#[derive(Debug)]
pub(crate) struct Repeats {
    most: u32,
    known: Mutex<Known>,
}

/// What is remembered of calls, the newest last.
#[derive(Debug, Default)]
struct Known {
    failing: VecDeque<Failing>,
    /// Looks at files, and what each has shown at last.
    looked: VecDeque<(Digest, Digest)>,
}

/// A call that failed, and has not succeeded since.
#[derive(Debug)]
struct Failing {
    call: Digest,
    again: Again,
    /// How often in a row.
    count: u32,
    /// How often since something was changed, or it could have succeeded by itself.
    unchanged: u32,
    last: Instant,
    /// What the last try gave.
    text: String,
    structured: Option<Value>,
}

impl Repeats {
    /// So many failures before it is refused; 0: it never is, and nothing is told.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            known: Mutex::default(),
        }
    }

    /// The refusal of a call that has failed too often.
    pub(crate) fn refused(&self, call: Digest, now: Instant) -> Option<Given> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let failing = known.failing.iter().find(|failing| failing.call == call)?;
        if self.most == 0 || failing.unchanged < self.most {
            return None;
        }
        let left = match failing.again {
            Again::MaySucceed => return None,
            Again::NeedsChange => Some(
                (failing.last + PAUSE)
                    .checked_duration_since(now)
                    .filter(|left| !left.is_zero())?,
            ),
            Again::Fails => None,
        };
        Some(failing.refusal(left))
    }

    /// Counts what a call gave, and tells in it that it has failed before.
    pub(crate) fn note(&self, tool: Tool, call: Digest, given: &mut Given, now: Instant) {
        if self.most == 0 || given.is_only_early() {
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
            Again::MaySucceed => 0,
            Again::NeedsChange | Again::Fails => unchanged.saturating_add(1),
        };
        if known.failing.len() == MOST {
            known.failing.pop_front();
        }
        known.failing.push_back(Failing {
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
            Again::MaySucceed => "do something else".to_owned(),
            Again::NeedsChange if unchanged < self.most => {
                format!(
                    "after {} it is not tried again until something has changed: do something else",
                    self.most
                )
            }
            Again::NeedsChange => "it is not tried again until something has changed: do something else".to_owned(),
            Again::Fails => "it always will: correct its arguments, or do something else".to_owned(),
        };
        let text = format!("\n[this very call has failed {} in a row; {then}]", times(count));
        given.text.push_str(&text);
        if let Some(Value::Object(structured)) = &mut given.structured {
            structured.insert("failed_in_a_row".to_owned(), count.into());
        }
    }
}

impl Known {
    /// Whether a look at files shows what it has not shown before: a person may have changed it.
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

    /// What failed before may succeed now.
    fn changed(&mut self) {
        let may_differ = self.failing.iter_mut().filter(|failing| failing.again != Again::Fails);
        may_differ.for_each(|failing| failing.unchanged = 0);
    }
}

/// Whether a call of it that succeeds may have changed what others met: by itself, or since it shows that
/// a program or a person has gone on.
fn changes(tool: Tool) -> bool {
    !tool.definition().hints.read_only || matches!(tool, Tool::ShellView | Tool::ShellWait | Tool::AskHuman)
}

fn times(count: u32) -> String {
    format!("{count} {}", if count == 1 { "time" } else { "times" })
}

impl Failing {
    /// That it is not tried again, unless something changes; or, if time is left, in so much of it.
    fn refusal(&self, left: Option<Duration>) -> Given {
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
            // Whoever runs something is given an outcome, whatever came of it.
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
        Given {
            again: self.again,
            ..Given::new(text, &value, true)
        }
    }
}

#[cfg(test)]
mod tests;
