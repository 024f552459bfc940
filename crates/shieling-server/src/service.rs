//! Performs the calls of tools: the only module that calls the library.
//!
//! It hands results to [`text`](crate::text) and makes no decisions: a refusal by the library is passed on, with a
//! remark about the person behind the client where one applies.

mod files;
mod jobs;
mod names;
mod remedy;
mod run;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use shieling::output::{ReadSpillError, Stream, read_spilled};
use shieling::session::{AskHumanResponse, JobId};
use shieling::units::ByteCount;

use crate::approval::{Person, Unanswered};
use crate::arguments;
use crate::core::Workplace;
use crate::dialect::{DialectTool, TranslatedCall};
use crate::mcp::Reporter;
use crate::result::CallResult;
use crate::text::{self, CallContext};
use crate::tools::Tool;
use crate::toolset::Offered;
use crate::visible;

use names::Names;

/// The number of whole outputs that are remembered; the oldest is dropped.
const OUTPUTS: usize = 100;

/// The tools of one workplace.
#[derive(Debug)]
pub(crate) struct Service {
    workplace: Arc<Workplace>,
    offered: Offered,
    /// The largest image that is returned as an image.
    images: Option<ByteCount>,
    names: Mutex<Names>,
    /// The whole outputs that results have mentioned, newest last.
    outputs: Mutex<VecDeque<WholeOutput>>,
}

/// A whole output that a result has mentioned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WholeOutput {
    pub(crate) id: String,
    /// The command that wrote it, shortened to one line.
    pub(crate) command: String,
}

impl Service {
    /// Creates the tools of a workplace, which return images up to this size.
    pub(crate) fn new(workplace: Arc<Workplace>, offered: Offered, images: Option<ByteCount>) -> Self {
        Self {
            workplace,
            offered,
            images,
            names: Mutex::default(),
            outputs: Mutex::default(),
        }
    }

    /// Returns the whole outputs that results have mentioned, newest first.
    pub(crate) fn outputs(&self) -> Vec<WholeOutput> {
        let outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.iter().rev().cloned().collect()
    }

    fn remember(&self, given: &CallResult, command: &str) {
        let value = |name: &str| given.structured.as_ref()?.get(name)?.as_str();
        let Some(id) = value("output_id") else { return };
        let command = visible::line(value("command").unwrap_or(command), 200);
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.retain(|whole| whole.id != id);
        if outputs.len() == OUTPUTS {
            outputs.pop_front();
        }
        outputs.push_back(WholeOutput {
            id: id.to_owned(),
            command,
        });
    }

    /// Returns the job that a caller's name refers to, or that has this very name.
    fn job_of_alias(&self, alias: &str, workplace: &Workplace) -> Option<JobId> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let assigned = names.find(alias);
        drop(names);
        assigned.or_else(|| {
            let listed = workplace.core.list().jobs;
            let mut jobs = listed.into_iter().map(|info| info.job);
            jobs.find(|job| job.to_string() == alias)
        })
    }

    /// Assigns a caller's name to a job.
    fn assign_alias(&self, alias: &str, job: &str) {
        let Ok(job) = job.parse() else { return };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.assign(alias, job);
    }

    pub(crate) fn workplace(&self) -> &Workplace {
        &self.workplace
    }

    /// Performs a call.
    ///
    /// # Cancel safety
    /// Dropping the future ends the command that the call has started.
    pub(crate) async fn call(
        &self,
        dialect_tool: &DialectTool,
        arguments: Map<String, Value>,
        person: &Arc<Person>,
        reporter: Option<Reporter>,
    ) -> CallResult {
        let TranslatedCall { mut arguments, alias } = match dialect_tool.translate(arguments) {
            Ok(said) => said,
            Err(wrong) => return unusable(&wrong),
        };
        let workplace = &self.workplace;
        let context = CallContext {
            offered: self.offered.clone(),
            alias: alias.clone(),
            ..CallContext::default()
        };
        if let Some(alias) = alias {
            match (self.job_of_alias(&alias, workplace), dialect_tool.tool) {
                (Some(job), Tool::Shell) if names::runs(workplace, &job) => {
                    return CallResult::failure(text::taken_alias(&alias));
                }
                (_, Tool::Shell) | (None, Tool::AskHuman) => {}
                (Some(job), _) => {
                    arguments.insert("job".to_owned(), job.to_string().into());
                }
                (None, _) => return CallResult::failure(text::unknown_alias(&alias)),
            }
        }
        let command = arguments
            .get("command")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let given = self
            .perform(dialect_tool.tool, Value::Object(arguments), context, person, reporter)
            .await;
        if dialect_tool.tool != Tool::ShellOutput {
            self.remember(&given, &command);
        }
        given
    }

    async fn perform(
        &self,
        tool: Tool,
        arguments: Value,
        context: CallContext,
        person: &Arc<Person>,
        reporter: Option<Reporter>,
    ) -> CallResult {
        let workplace = &self.workplace;
        match tool {
            Tool::Shell => match read(arguments) {
                Ok(asked) => self.shell(workplace, asked, context, person, reporter).await,
                Err(wrong) => wrong,
            },
            Tool::ShellView => match read(arguments) {
                Ok(asked) => jobs::view(workplace, asked, context, person).await,
                Err(wrong) => wrong,
            },
            Tool::ShellWrite => match read(arguments) {
                Ok(asked) => jobs::write(workplace, asked, context, person).await,
                Err(wrong) => wrong,
            },
            Tool::ShellWait => match read(arguments) {
                Ok(asked) => jobs::wait(workplace, asked, context, person).await,
                Err(wrong) => wrong,
            },
            Tool::ShellKill => match read(arguments) {
                Ok(asked) => jobs::kill(workplace, &asked, context, person).await,
                Err(wrong) => wrong,
            },
            Tool::ShellList => {
                let listing = workplace.core.list();
                CallResult::new(text::listing(&listing), &listing, false)
            }
            Tool::ShellOutput => match read(arguments) {
                Ok(asked) => output(workplace, &asked, &context),
                Err(wrong) => wrong,
            },
            Tool::AskHuman => match read(arguments) {
                Ok(asked) => ask_human(workplace, &asked, person).await,
                Err(wrong) => wrong,
            },
            Tool::Environment => environment(workplace).await,
            Tool::ReadFile => self.file::<arguments::ReadFile>(arguments, context, person).await,
            Tool::WriteFile => self.file::<arguments::WriteFile>(arguments, context, person).await,
            Tool::EditFile => self.file::<arguments::EditFile>(arguments, context, person).await,
            Tool::ApplyPatch => self.file::<arguments::ApplyPatch>(arguments, context, person).await,
            Tool::Ls => self.file::<arguments::Ls>(arguments, context, person).await,
            Tool::Glob => self.file::<arguments::Glob>(arguments, context, person).await,
            Tool::Grep => self.file::<arguments::Grep>(arguments, context, person).await,
            Tool::Stat => self.file::<arguments::Stat>(arguments, context, person).await,
            Tool::DeleteFile => self.file::<arguments::DeleteFile>(arguments, context, person).await,
            Tool::MoveFile => self.file::<arguments::MoveFile>(arguments, context, person).await,
        }
    }
}

/// Deserializes the arguments, which were validated against their schema before.
fn read<T: serde::de::DeserializeOwned>(arguments: Value) -> Result<T, CallResult> {
    serde_json::from_value(arguments).map_err(|error| unusable(&error))
}

fn unusable(why: &dyn fmt::Display) -> CallResult {
    CallResult::invalid(format!("the arguments cannot be used; nothing was done\n{why}"))
}

fn output(workplace: &Workplace, asked: &arguments::ShellOutput, context: &CallContext) -> CallResult {
    match piece(workplace, &asked.output_id, asked.stream, asked.cursor, asked.limit) {
        Ok(piece) => {
            let text = text::chunk(&piece.text, piece.next, piece.end, context);
            let value = json!({
                "output_id": asked.output_id,
                "stream": asked.stream,
                "text": piece.text,
                "cursor": asked.cursor,
                "next_cursor": piece.next,
                "end": piece.end,
            });
            CallResult::new(text, &value, false)
        }
        Err(error) => CallResult::failure(error),
    }
}

/// A part of a whole output.
#[derive(Debug)]
pub(crate) struct OutputPart {
    pub(crate) text: String,
    pub(crate) next: u64,
    pub(crate) end: bool,
}

/// Reads a part of a whole output that ends at a character boundary.
///
/// # Errors
/// A message why it cannot be read.
pub(crate) fn piece(
    workplace: &Workplace,
    id: &str,
    stream: arguments::Stream,
    cursor: u64,
    limit: u64,
) -> Result<OutputPart, String> {
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
    Ok(OutputPart {
        text: String::from_utf8_lossy(&chunk.bytes).into_owned(),
        next: chunk.next_cursor,
        end: chunk.end,
    })
}

async fn ask_human(workplace: &Workplace, asked: &arguments::AskHuman, person: &Person) -> CallResult {
    let job = match asked.job.as_deref().map(str::parse::<JobId>).transpose() {
        Ok(job) => job,
        Err(error) => return CallResult::invalid(error.to_string()),
    };
    let answer = match workplace.core.ask_human(&asked.prompt, job.as_ref()).await {
        Ok(AskHumanResponse::Nobody) => person.answer(&asked.prompt, asked.job.as_deref()).await,
        Ok(answer) => answer,
        Err(error) => return CallResult::failure(error.to_string()),
    };
    // A person was there. A model that assumes they are absent would continue without them.
    let without = match person.unanswered() {
        Some(Unanswered::Dismissed) => Some("[the person closed the question without an answer]"),
        Some(Unanswered::Unreadable) => Some("[what the client brought back is no answer to the question]"),
        Some(Unanswered::NoWay | Unanswered::Failed(_)) | None => None,
    };
    if let (AskHumanResponse::Nobody, Some(said)) = (&answer, without) {
        return CallResult::new(said.to_owned(), &json!({"kind": "dismissed"}), false);
    }
    CallResult::new(text::answer(&answer), &answer, false)
}

async fn environment(workplace: &Workplace) -> CallResult {
    if let Err(why) = (workplace.prepare)().await {
        return CallResult::failure(format!("failed: no command can run here\n{why}"));
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
    CallResult::new(text, &value, false)
}
