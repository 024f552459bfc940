//! The file tools: from arguments to a request to the library, and from its response or error to the result.

mod requests;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use shieling::environment::FileError;
use shieling::files::{FileContent, FileResponse, FilesError};
use shieling::outcome::{Denial, Status};

use super::{Service, read};
use crate::approval::{PERSON, Person, Unanswered};
use crate::result::{CallResult, Image, Retry};
use crate::text::{self, CallContext, files::FileAction};

pub(super) use requests::FileArguments;

impl Service {
    /// Performs the call of a file tool.
    pub(super) async fn file<A: FileArguments>(
        &self,
        arguments: Value,
        context: CallContext,
        person: &Arc<Person>,
    ) -> CallResult {
        let asked = match read::<A>(arguments) {
            Ok(asked) => asked,
            Err(wrong) => return wrong,
        };
        let (ask, action) = match asked.ask(self.images) {
            Ok(ask) => ask,
            Err(wrong) => return CallResult::invalid(format!("{wrong}; nothing was done")),
        };
        let context = CallContext {
            workspace: self.workplace.template.cwd().to_owned(),
            ..context
        };
        let answered = PERSON.scope(person.clone(), self.workplace.core.file(ask)).await;
        match answered {
            Ok(answer) => result_of(answer, &action, &context),
            Err(FilesError::Refused { status, denial }) => refused(status, denial, &action, &context, person),
            Err(error) => failed(&error, &action, &context),
        }
    }
}

fn result_of(mut answer: FileResponse, action: &FileAction, context: &CallContext) -> CallResult {
    let text = text::files::answer(&answer, action, context);
    let mut given = CallResult::new(text, &answer, false);
    if let FileResponse::Read(read) = &mut answer
        && let FileContent::Image { mime, bytes } = &mut read.content
    {
        given.image = Some(Image {
            mime: std::mem::take(mime),
            bytes: std::mem::take(bytes),
        });
    }
    given
}

fn refused(
    status: Status,
    mut denial: Denial,
    action: &FileAction,
    context: &CallContext,
    person: &Person,
) -> CallResult {
    if status == Status::NeedsApproval
        && !denial.is_for_length()
        && let Some(reason) = denial.reasons.iter_mut().rfind(|reason| reason.rule == "approval")
    {
        reason.instead.get_or_insert_with(|| remedy(person.unanswered()));
    }
    let text = text::files::refusal(status, &denial, action, context);
    let value = json!({
        "status": status,
        "error": FilesError::Refused { status, denial: denial.clone() }.to_string(),
        "code": status,
        "denial": denial,
    });
    CallResult {
        again: Retry::after(status, &denial, person.unanswered().as_ref()),
        ..CallResult::new(text, &value, true)
    }
}

/// Explains how the person can approve.
fn remedy(unanswered: Option<Unanswered>) -> String {
    const LESS: &str = "start the server with a policy that decides it, or so that less is asked about";
    match unanswered {
        None => format!("{LESS}; or with a client that can ask a person (MCP elicitation)"),
        Some(Unanswered::NoWay) => {
            format!("this client cannot ask a person: use one that has MCP elicitation, or {LESS}")
        }
        Some(Unanswered::Failed(why)) => {
            format!("the client did not put the question ({why}): try again, or {LESS}")
        }
        Some(unanswered @ (Unanswered::Dismissed | Unanswered::Unreadable)) => {
            super::remedy::remedy(Some(unanswered), "")
        }
    }
}

fn failed(error: &FilesError, action: &FileAction, context: &CallContext) -> CallResult {
    let text = text::files::error(error, action, context);
    let mut value = facts(error);
    value.insert("error".to_owned(), text::files::sentence(error, context).into());
    value.insert("code".to_owned(), error.code().into());
    value.insert("correctable".to_owned(), error.is_correctable().into());
    CallResult {
        again: again(error, action),
        ..CallResult::new(text, &value, true)
    }
}

/// Classifies an error: what is read may appear by itself; what is changed needs another state or another request.
fn again(error: &FilesError, action: &FileAction) -> Retry {
    let looks = action.tool().definition().hints.read_only;
    match error {
        FilesError::BadPatch { .. } => Retry::Fails,
        FilesError::File(FileError::Changed(_)) => Retry::MaySucceed,
        error if looks || !error.is_correctable() => Retry::MaySucceed,
        _ => Retry::NeedsChange,
    }
}

/// Returns the data of an error that is useful to programs besides the text.
fn facts(error: &FilesError) -> Map<String, Value> {
    let value = match error {
        FilesError::BeyondEnd { lines, .. } => json!({"lines": lines}),
        FilesError::Stale { now, diff, .. } => json!({"hash": now, "diff": diff}),
        FilesError::NoMatch { nearest, .. } => json!({"nearest": nearest}),
        FilesError::Ambiguous { count, lines, .. } => json!({"count": count, "lines": lines}),
        FilesError::TooLarge { size, limit, .. } => json!({"size": size, "limit": limit}),
        FilesError::BadPatch { line, .. } => json!({"line": line}),
        FilesError::Misfit { hunk, nearest, .. } => json!({"hunk": hunk, "nearest": nearest}),
        // The text of the other errors is complete, including that of errors added later.
        _ => json!({}),
    };
    value.as_object().cloned().unwrap_or_default()
}
