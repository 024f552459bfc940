//! The result of a call, and whether repeating a failed call can succeed.

use serde::Serialize;
use serde_json::{Value, json};
use shieling::outcome::{Denial, Layer, Status};

use crate::approval::Unanswered;

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallResult {
    /// The text for the model.
    pub(crate) text: String,
    /// An image for a model that accepts images.
    pub(crate) image: Option<Image>,
    /// The structured content for the client.
    pub(crate) structured: Option<Value>,
    /// Whether the call failed.
    pub(crate) error: bool,
    /// For a failed call, whether repeating it can succeed.
    pub(crate) again: Retry,
}

impl CallResult {
    pub(crate) fn new(text: String, value: &impl Serialize, error: bool) -> Self {
        Self {
            text,
            image: None,
            structured: serde_json::to_value(value).ok(),
            error,
            again: Retry::MaySucceed,
        }
    }

    /// Creates the result of a call that fails in the present state. Programs read the same text as `error`.
    pub(crate) fn failure(text: impl Into<String>) -> Self {
        let text = text.into();
        let value = json!({"error": text});
        Self::new(text, &value, true)
    }

    /// Creates the result of a call that can never succeed.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self {
            again: Retry::Fails,
            ..Self::failure(text)
        }
    }

    /// Returns whether the call only exceeded the rate limit.
    pub(crate) fn is_rate_limited(&self) -> bool {
        let status = self.structured.as_ref().and_then(|value| value.get("status"));
        status.and_then(Value::as_str) == Some(Status::RateLimited.name())
    }
}

/// An image in its file format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) mime: String,
    pub(crate) bytes: Vec<u8>,
}

/// Whether repeating a failed call can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Retry {
    /// It may succeed, since the obstacle passes by itself.
    MaySucceed,
    /// It fails until something changes: a file, a policy, a person's decision.
    NeedsChange,
    /// It always fails, since the call itself is wrong.
    Fails,
}

impl Retry {
    /// Classifies a refusal by the library, and a question that may not have been answered.
    pub(crate) fn after(status: Status, denial: &Denial, unanswered: Option<&Unanswered>) -> Self {
        match (status, denial.layer, unanswered) {
            // A person is present, and may answer the next time.
            (_, _, Some(Unanswered::Dismissed | Unanswered::Unreadable | Unanswered::Failed(_))) => Self::MaySucceed,
            (Status::NeedsApproval, _, _) | (Status::Denied, Layer::Policy | Layer::Approval, _) => Self::NeedsChange,
            _ => Self::MaySucceed,
        }
    }
}
