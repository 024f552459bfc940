//! What each tool does: the one place that calls the library.
//!
//! Gives facts to [`text`](crate::text) for their words, and decides nothing: a refusal that the library
//! gives is passed on, with what the person behind the client has to do with it.

mod files;
mod jobs;
mod names;
mod run;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value, json};
use shieling::outcome::Status;
use shieling::output::{ReadSpillError, Stream, read_spilled};
use shieling::session::{Answered, JobId};
use shieling::units::ByteCount;

use crate::approval::{Person, Silence};
use crate::arguments;
use crate::core::Workplace;
use crate::dialect::{Said, Spoken};
use crate::mcp::Reporter;
use crate::repeats::Again;
use crate::text::{self, About};
use crate::tools::Tool;
use crate::toolset::Offered;
use crate::visible;

use names::Names;

/// How many whole outputs are remembered; the oldest goes.
const OUTPUTS: usize = 100;

/// The tools over one workplace.
#[derive(Debug)]
pub(crate) struct Service {
    workplace: Arc<Workplace>,
    offered: Offered,
    /// Images up to this size are given as images.
    images: Option<ByteCount>,
    names: Mutex<Names>,
    /// The whole outputs that were told of, newest last.
    outputs: Mutex<VecDeque<Whole>>,
}

/// A whole output that an outcome told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) id: String,
    /// What wrote it, on one short line.
    pub(crate) command: String,
}

/// What a call gives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    /// For the model.
    pub(crate) text: String,
    /// For a model that sees.
    pub(crate) image: Option<Image>,
    /// For the client.
    pub(crate) structured: Option<Value>,
    /// Whether it is an error.
    pub(crate) error: bool,
    /// What the same call would come to if it is one.
    pub(crate) again: Again,
}

/// An image, as it is in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) mime: String,
    pub(crate) bytes: Vec<u8>,
}

impl Given {
    pub(crate) fn new(text: String, value: &impl Serialize, error: bool) -> Self {
        Self {
            text,
            image: None,
            structured: serde_json::to_value(value).ok(),
            error,
            again: Again::MaySucceed,
        }
    }

    /// A request that cannot be done as things stand. A program reads the same words as `error`.
    pub(crate) fn wrong(text: impl Into<String>) -> Self {
        let text = text.into();
        let value = json!({"error": text});
        Self::new(text, &value, true)
    }

    /// A request that can never be done as it stands.
    pub(crate) fn senseless(text: impl Into<String>) -> Self {
        Self {
            again: Again::Fails,
            ..Self::wrong(text)
        }
    }

    /// Whether the same call is right, and only came too soon.
    pub(crate) fn is_only_early(&self) -> bool {
        let status = self.structured.as_ref().and_then(|value| value.get("status"));
        status.and_then(Value::as_str) == Some(Status::RateLimited.name())
    }
}

impl Service {
    /// These tools over this workplace, with images of up to this size.
    pub(crate) fn new(workplace: Arc<Workplace>, offered: Offered, images: Option<ByteCount>) -> Self {
        Self {
            workplace,
            offered,
            images,
            names: Mutex::default(),
            outputs: Mutex::default(),
        }
    }

    /// The whole outputs that were told of, newest first.
    pub(crate) fn outputs(&self) -> Vec<Whole> {
        let outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.iter().rev().cloned().collect()
    }

    fn remember(&self, given: &Given, command: &str) {
        let value = |name: &str| given.structured.as_ref()?.get(name)?.as_str();
        let Some(id) = value("output_id") else { return };
        let command = visible::line(value("command").unwrap_or(command), 200);
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.retain(|whole| whole.id != id);
        if outputs.len() == OUTPUTS {
            outputs.pop_front();
        }
        outputs.push_back(Whole {
            id: id.to_owned(),
            command,
        });
    }

    pub(crate) fn workplace(&self) -> &Workplace {
        &self.workplace
    }

    /// Does what a tool does.
    ///
    /// # Cancel safety
    /// Dropping the future ends what a command of it has started.
    pub(crate) async fn call(
        &self,
        spoken: &Spoken,
        arguments: Map<String, Value>,
        person: &Arc<Person>,
        reporter: Option<Reporter>,
    ) -> Given {
        let Said { mut arguments, alias } = match spoken.said(arguments) {
            Ok(said) => said,
            Err(wrong) => return unusable(&wrong),
        };
        let workplace = &self.workplace;
        let about = About {
            offered: self.offered.clone(),
            alias: alias.clone(),
            ..About::default()
        };
        if let Some(alias) = alias {
            match (self.named(&alias, workplace), spoken.tool) {
                (Some(job), Tool::Shell) if names::runs(workplace, &job) => {
                    return Given::wrong(text::taken_alias(&alias));
                }
                (_, Tool::Shell) | (None, Tool::AskHuman) => {}
                (Some(job), _) => {
                    arguments.insert("job".to_owned(), job.to_string().into());
                }
                (None, _) => return Given::wrong(text::unknown_alias(&alias)),
            }
        }
        let command = arguments
            .get("command")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let given = self
            .done(spoken.tool, Value::Object(arguments), about, person, reporter)
            .await;
        if spoken.tool != Tool::ShellOutput {
            self.remember(&given, &command);
        }
        given
    }

    async fn done(
        &self,
        tool: Tool,
        arguments: Value,
        about: About,
        person: &Arc<Person>,
        reporter: Option<Reporter>,
    ) -> Given {
        let workplace = &self.workplace;
        match tool {
            Tool::Shell => match read(arguments) {
                Ok(asked) => self.shell(workplace, asked, about, person, reporter).await,
                Err(wrong) => wrong,
            },
            Tool::ShellView => match read(arguments) {
                Ok(asked) => jobs::view(workplace, asked, about).await,
                Err(wrong) => wrong,
            },
            Tool::ShellWrite => match read(arguments) {
                Ok(asked) => jobs::write(workplace, asked, about, person).await,
                Err(wrong) => wrong,
            },
            Tool::ShellWait => match read(arguments) {
                Ok(asked) => jobs::wait(workplace, asked, about).await,
                Err(wrong) => wrong,
            },
            Tool::ShellKill => match read(arguments) {
                Ok(asked) => jobs::kill(workplace, &asked, about).await,
                Err(wrong) => wrong,
            },
            Tool::ShellList => {
                let listing = workplace.core.list();
                Given::new(text::listing(&listing), &listing, false)
            }
            Tool::ShellOutput => match read(arguments) {
                Ok(asked) => output(workplace, &asked, &about),
                Err(wrong) => wrong,
            },
            Tool::AskHuman => match read(arguments) {
                Ok(asked) => ask_human(workplace, &asked, person).await,
                Err(wrong) => wrong,
            },
            Tool::Environment => environment(workplace).await,
            Tool::ReadFile => self.file::<arguments::ReadFile>(arguments, about, person).await,
            Tool::WriteFile => self.file::<arguments::WriteFile>(arguments, about, person).await,
            Tool::EditFile => self.file::<arguments::EditFile>(arguments, about, person).await,
            Tool::ApplyPatch => self.file::<arguments::ApplyPatch>(arguments, about, person).await,
            Tool::Ls => self.file::<arguments::Ls>(arguments, about, person).await,
            Tool::Glob => self.file::<arguments::Glob>(arguments, about, person).await,
            Tool::Grep => self.file::<arguments::Grep>(arguments, about, person).await,
            Tool::Stat => self.file::<arguments::Stat>(arguments, about, person).await,
            Tool::DeleteFile => self.file::<arguments::DeleteFile>(arguments, about, person).await,
            Tool::MoveFile => self.file::<arguments::MoveFile>(arguments, about, person).await,
        }
    }
}

/// The arguments, which were checked against their schema before.
fn read<T: serde::de::DeserializeOwned>(arguments: Value) -> Result<T, Given> {
    serde_json::from_value(arguments).map_err(|error| unusable(&error))
}

fn unusable(why: &dyn fmt::Display) -> Given {
    Given::senseless(format!("the arguments cannot be used; nothing was done\n{why}"))
}

fn output(workplace: &Workplace, asked: &arguments::ShellOutput, about: &About) -> Given {
    match piece(workplace, &asked.output_id, asked.stream, asked.cursor, asked.limit) {
        Ok(piece) => {
            let text = text::chunk(&piece.text, piece.next, piece.end, about);
            let value = json!({
                "output_id": asked.output_id,
                "stream": asked.stream,
                "text": piece.text,
                "cursor": asked.cursor,
                "next_cursor": piece.next,
                "end": piece.end,
            });
            Given::new(text, &value, false)
        }
        Err(error) => Given::wrong(error),
    }
}

/// A piece of a whole output.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) next: u64,
    pub(crate) end: bool,
}

/// A piece of a whole output that ends with a whole character.
///
/// # Errors
/// Why it cannot be read, in words.
pub(crate) fn piece(
    workplace: &Workplace,
    id: &str,
    stream: arguments::Stream,
    cursor: u64,
    limit: u64,
) -> Result<Piece, String> {
    let Some(spill) = workplace.core.spill() else {
        return Err("no whole outputs are kept here".to_owned());
    };
    let stream = match stream {
        arguments::Stream::Stdout => Stream::Stdout,
        arguments::Stream::Stderr => Stream::Stderr,
    };
    let read = read_spilled(&spill.directory, id, stream, cursor, ByteCount::bytes(limit));
    let mut chunk = read.map_err(|error| match &error {
        ReadSpillError::Unreadable { source, .. } => format!("{error}: {source}"),
        _ => error.to_string(),
    })?;
    if !chunk.end
        && let Err(error) = std::str::from_utf8(&chunk.bytes)
        && error.error_len().is_none()
        && error.valid_up_to() > 0
    {
        let whole = error.valid_up_to();
        let cut = (chunk.bytes.len() - whole) as u64;
        chunk.bytes.truncate(whole);
        chunk.next_cursor = chunk.next_cursor.saturating_sub(cut);
    }
    Ok(Piece {
        text: String::from_utf8_lossy(&chunk.bytes).into_owned(),
        next: chunk.next_cursor,
        end: chunk.end,
    })
}

async fn ask_human(workplace: &Workplace, asked: &arguments::AskHuman, person: &Person) -> Given {
    let job = match asked.job.as_deref().map(str::parse::<JobId>).transpose() {
        Ok(job) => job,
        Err(error) => return Given::senseless(error.to_string()),
    };
    let answer = match workplace.core.ask_human(&asked.prompt, job.as_ref()).await {
        Ok(Answered::Nobody) => person.answer(&asked.prompt, asked.job.as_deref()).await,
        Ok(answer) => answer,
        Err(error) => return Given::wrong(error.to_string()),
    };
    // Somebody was there, and a model that takes them for absent would go on without them.
    let without = match person.silence() {
        Some(Silence::Dismissed) => Some("[the person closed the question without an answer]"),
        Some(Silence::Unreadable) => Some("[what the client brought back is no answer to the question]"),
        Some(Silence::NoWay | Silence::Failed(_)) | None => None,
    };
    if let (Answered::Nobody, Some(said)) = (&answer, without) {
        return Given::new(said.to_owned(), &json!({"kind": "dismissed"}), false);
    }
    Given::new(text::answer(&answer), &answer, false)
}

async fn environment(workplace: &Workplace) -> Given {
    if let Err(why) = (workplace.prepare)().await {
        return Given::wrong(format!("failed: no command can run here\n{why}"));
    }
    let told = (workplace.told)().await;
    let described = workplace
        .core
        .describe(&workplace.template, told, &workplace.tools)
        .await;
    let left = workplace.core.room();
    let mut text = described.to_string();
    if let Some(left) = left {
        text.push_str(&format!("\n{left} more commands may start now.\n"));
    }
    let mut value = serde_json::to_value(&described).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("commands_left".to_owned(), left.map_or(Value::Null, Value::from));
    }
    Given::new(text, &value, false)
}
