//! The tools for files: what is asked of the library, and from its answer, or why there is none, to what
//! is given.

mod asks;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use shieling::environment::FileError;
use shieling::files::{FileAnswer, FilesError, Seen};
use shieling::outcome::{Denial, Status};

use super::{Given, Image, Service, read};
use crate::approval::{PERSON, Person, Silence};
use crate::repeats::Again;
use crate::text::{self, About, files::Deed};

pub(super) use asks::Asks;

impl Service {
    /// Does what a tool for files does.
    pub(super) async fn file<A: Asks>(&self, arguments: Value, about: About, person: &Arc<Person>) -> Given {
        let asked = match read::<A>(arguments) {
            Ok(asked) => asked,
            Err(wrong) => return wrong,
        };
        let (ask, deed) = match asked.ask(self.images) {
            Ok(ask) => ask,
            Err(wrong) => return Given::senseless(format!("{wrong}; nothing was done")),
        };
        let about = About {
            workspace: self.workplace.template.cwd().to_owned(),
            ..about
        };
        let answered = PERSON.scope(person.clone(), self.workplace.core.file(ask)).await;
        match answered {
            Ok(answer) => given(answer, &deed, &about),
            Err(FilesError::Refused { status, denial }) => refused(status, denial, &deed, &about, person),
            Err(error) => failed(&error, &deed, &about),
        }
    }
}

fn given(mut answer: FileAnswer, deed: &Deed, about: &About) -> Given {
    let text = text::files::answer(&answer, deed, about);
    let mut given = Given::new(text, &answer, false);
    if let FileAnswer::Read(read) = &mut answer
        && let Seen::Image { mime, bytes } = &mut read.seen
    {
        given.image = Some(Image {
            mime: std::mem::take(mime),
            bytes: std::mem::take(bytes),
        });
    }
    given
}

fn refused(status: Status, mut denial: Denial, deed: &Deed, about: &About, person: &Person) -> Given {
    if status == Status::NeedsApproval
        && !denial.is_for_length()
        && let Some(reason) = denial.reasons.iter_mut().rfind(|reason| reason.rule == "approval")
    {
        reason.instead.get_or_insert_with(|| remedy(person.silence()));
    }
    let text = text::files::refusal(status, &denial, deed, about);
    let value = json!({
        "status": status,
        "error": FilesError::Refused { status, denial: denial.clone() }.to_string(),
        "code": status,
        "denial": denial,
    });
    Given {
        again: Again::after(status, &denial, person.silence().as_ref()),
        ..Given::new(text, &value, true)
    }
}

/// How there could be a yes.
fn remedy(silence: Option<Silence>) -> String {
    const LESS: &str = "start the server with a policy that decides it, or so that less is asked about";
    match silence {
        None => format!("{LESS}; or with a client that can ask a person (MCP elicitation)"),
        Some(Silence::NoWay) => {
            format!("this client cannot ask a person: use one that has MCP elicitation, or {LESS}")
        }
        Some(Silence::Failed(why)) => {
            format!("the client did not put the question ({why}): try again, or {LESS}")
        }
        Some(silence @ (Silence::Dismissed | Silence::Unreadable)) => super::run::remedy(Some(silence), ""),
    }
}

fn failed(error: &FilesError, deed: &Deed, about: &About) -> Given {
    let text = text::files::error(error, deed, about);
    let mut value = facts(error);
    value.insert("error".to_owned(), text::files::sentence(error, about).into());
    value.insert("code".to_owned(), error.code().into());
    value.insert("correctable".to_owned(), error.is_correctable().into());
    Given {
        again: again(error, deed),
        ..Given::new(text, &value, true)
    }
}

/// What is looked at may come about by itself; what is to be changed has to be another, or asked otherwise.
fn again(error: &FilesError, deed: &Deed) -> Again {
    let looks = deed.tool().definition().hints.read_only;
    match error {
        FilesError::BadPatch { .. } => Again::Fails,
        FilesError::File(FileError::Changed(_)) => Again::MaySucceed,
        error if looks || !error.is_correctable() => Again::MaySucceed,
        _ => Again::NeedsChange,
    }
}

/// What a program can use of an error besides its words.
fn facts(error: &FilesError) -> Map<String, Value> {
    let value = match error {
        FilesError::BeyondEnd { lines, .. } => json!({"lines": lines}),
        FilesError::Stale { now, diff, .. } => json!({"hash": now, "diff": diff}),
        FilesError::NoMatch { nearest, .. } => json!({"nearest": nearest}),
        FilesError::Ambiguous { count, lines, .. } => json!({"count": count, "lines": lines}),
        FilesError::TooLarge { size, limit, .. } => json!({"size": size, "limit": limit}),
        FilesError::BadPatch { line, .. } => json!({"line": line}),
        FilesError::Misfit { hunk, nearest, .. } => json!({"hunk": hunk, "nearest": nearest}),
        // The others say it all in words, and so does one that is new.
        _ => json!({}),
    };
    value.as_object().cloned().unwrap_or_default()
}
