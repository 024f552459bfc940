//! Questions to the person behind the client, in both ways that the protocol has.
//!
//! ```text
//! until 2025-11-25   the call waits ─► elicitation/create ─► the answer ─► the call goes on
//! since 2026-07-28   the call ends "input required", with a state ─► the client calls again, with the
//!                    answer and the state ─► the question is met again, and answered
//! ```
//!
//! Either way the library's own approvals decide: they ask [`Elicitation`], which finds the person of
//! the call that it runs in. Only an answer that is exactly one of those offered counts; whatever else
//! comes back is nobody's yes.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ServerRequest,
};
use rmcp::service::Peer;
use serde_json::{Map, Value, json};
use shieling::approval::{Answer, Approver, Asking, Limits, Question, Scope};
use shieling::policy::Decision;
use shieling::request::{Digest, RequestKind};
use shieling::session::Answered;
use shieling::units::ByteCount;

use crate::visible;

/// How many characters of an agent's question a person is shown.
const SHOWN: usize = 16_384;

/// The longest command that a person is asked about, as it is shown, with what deceives escaped.
const COMMAND: ByteCount = ByteCount::kib(32);

/// The longest change of files: what the library makes of one, and room for what is escaped in it.
const CHANGE: ByteCount = ByteCount::kib(96);

/// The longest title of a choice, in characters.
const CHOICE: usize = 200;

/// How many of the files that a command runs are named, with their digests.
const FILES: usize = 20;

tokio::task_local! {
    /// The person behind the call that runs here.
    pub(crate) static PERSON: Arc<Person>;
}

/// The person behind one call.
#[derive(Debug)]
pub(crate) struct Person {
    way: Way,
    /// What the agent says that the call is for.
    purpose: Mutex<Option<String>>,
    /// A question that the client has to be given.
    pending: Mutex<Option<Pending>>,
    /// Why a question was not answered.
    silent: Mutex<Option<Silence>>,
}

/// The way to the person.
#[derive(Debug)]
pub(crate) enum Way {
    /// In the middle of the call.
    During(Peer<RoleServer>),
    /// Between two calls; with the answer that this call brought along.
    Between(Mutex<Option<Replied>>),
    /// There is none: the client does not have it.
    None,
}

/// An answer, and the digest of what it is about.
#[derive(Debug)]
pub(crate) struct Replied {
    pub(crate) subject: Digest,
    pub(crate) reply: Reply,
}

/// A question for the client to put.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) subject: Digest,
    pub(crate) request: ElicitRequestParams,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Accepted(Value),
    Declined,
    Dismissed,
    Unreadable,
}

/// Why nobody answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The client has no way to ask.
    NoWay,
    /// The question was closed.
    Dismissed,
    /// What came back was none of what was offered.
    Unreadable,
    /// The client did not put it.
    Failed(String),
}

impl Person {
    pub(crate) fn new(way: Way) -> Self {
        Self {
            way,
            purpose: Mutex::default(),
            pending: Mutex::default(),
            silent: Mutex::default(),
        }
    }

    /// Tells what the call is for.
    pub(crate) fn says(&self, purpose: Option<String>) {
        *lock(&self.purpose) = purpose;
    }

    /// The question that has to be put before the call can be tried again.
    pub(crate) fn pending(&self) -> Option<Pending> {
        lock(&self.pending).take()
    }

    /// Why the last question was not answered.
    pub(crate) fn silence(&self) -> Option<Silence> {
        lock(&self.silent).clone()
    }

    /// Puts a question about `subject`. Nothing if it was not answered, which [`silence`](Self::silence)
    /// and [`pending`](Self::pending) explain.
    pub(crate) async fn ask(&self, subject: Digest, message: String, properties: Value) -> Option<Value> {
        match self.reply(subject, message, properties).await {
            Ok(Reply::Accepted(content)) => Some(content),
            Ok(Reply::Declined) => Some(Value::Null),
            Ok(Reply::Dismissed) => self.silently(Silence::Dismissed),
            Ok(Reply::Unreadable) => self.silently(Silence::Unreadable),
            Err(silence) => silence.and_then(|silence| self.silently(silence)),
        }
    }

    /// Asks for words, about a job perhaps.
    pub(crate) async fn answer(&self, prompt: &str, job: Option<&str>) -> Answered {
        let message = from_the_agent(prompt, job);
        let subject = Digest::of(format!("ask_human\0{message}").as_bytes());
        let words = json!({"answer": {"type": "string", "title": "Your answer", "maxLength": 16_384}});
        match self.ask(subject, message, words).await {
            None => Answered::Nobody,
            Some(Value::Null) => Answered::Declined,
            Some(answer) => match answer.get("answer") {
                Some(Value::String(text)) => Answered::Answer {
                    text: text.chars().take(16_384).collect(),
                },
                _ => {
                    self.silently(Silence::Unreadable);
                    Answered::Nobody
                }
            },
        }
    }

    fn silently(&self, silence: Silence) -> Option<Value> {
        *lock(&self.silent) = Some(silence);
        None
    }

    async fn reply(&self, subject: Digest, message: String, properties: Value) -> Result<Reply, Option<Silence>> {
        let schema = ElicitationSchema::from_json_schema(form(properties))
            .map_err(|error| Some(Silence::Failed(error.to_string())))?;
        let request = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema: schema,
        };
        match &self.way {
            Way::None => Err(Some(Silence::NoWay)),
            Way::During(peer) => {
                let asked = peer
                    .send_request(ServerRequest::ElicitRequest(ElicitRequest::new(request)))
                    .await;
                match asked {
                    Ok(ClientResult::ElicitResult(result)) => Ok(Reply::of(&result)),
                    Ok(_) => Ok(Reply::Unreadable),
                    Err(error) => Err(Some(Silence::Failed(visible::line(&error.to_string(), 300)))),
                }
            }
            Way::Between(replied) => {
                let brought = lock(replied).take_if(|replied| replied.subject == subject);
                match brought {
                    Some(replied) => Ok(replied.reply),
                    None => {
                        *lock(&self.pending) = Some(Pending { subject, request });
                        Err(None)
                    }
                }
            }
        }
    }
}

impl Reply {
    fn of(result: &ElicitResult) -> Self {
        match (&result.action, &result.content) {
            (ElicitationAction::Accept, Some(content)) => Self::Accepted(content.clone()),
            (ElicitationAction::Decline, _) => Self::Declined,
            (ElicitationAction::Cancel, _) => Self::Dismissed,
            _ => Self::Unreadable,
        }
    }

    /// What a client gives back between two calls.
    pub(crate) fn read(value: &Value) -> Self {
        match serde_json::from_value::<ElicitResult>(value.clone()) {
            Ok(result) => Self::of(&result),
            Err(_) => Self::Unreadable,
        }
    }
}

/// What a person reads of an agent's question. Shieling's own words stand first, and each line of the
/// agent's bears a mark, so that nothing the agent writes can be taken for ours.
fn from_the_agent(prompt: &str, job: Option<&str>) -> String {
    let about = job.map_or(String::new(), |job| {
        format!(" about the job {}", visible::line(job, 100))
    });
    let said = visible::within(prompt, SHOWN);
    let lines: Vec<String> = said.split('\n').map(|line| format!("    | {line}")).collect();
    format!(
        "The agent asks{about}. The marked lines are the agent's own words, not Shieling's; an answer approves \
         no command.\n\n{}",
        lines.join("\n")
    )
}

fn form(properties: Value) -> Map<String, Value> {
    let required: Vec<String> = properties
        .as_object()
        .and_then(|properties| properties.keys().find(|name| *name != "words").cloned())
        .into_iter()
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    schema.as_object().cloned().unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The approver of a server: asks the person behind the call that a command belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Elicitation;

impl Approver for Elicitation {
    fn ask<'a>(&'a self, question: &'a Question) -> Asking<'a> {
        Box::pin(async move {
            // A command that no call belongs to has nobody behind it.
            let Ok(person) = PERSON.try_with(Arc::clone) else {
                return Answer::Nobody;
            };
            let shown = match Shown::of(question) {
                Ok(shown) => shown,
                Err(most) => return Answer::TooLong { most },
            };
            let purpose = lock(&person.purpose).clone();
            let message = wording(question, &shown, purpose.as_deref());
            let answer = person
                .ask(subject(question), message, choices(question, &person.way))
                .await;
            match answer {
                Some(answer) => decided(&answer, question).unwrap_or_else(|| {
                    person.silently(Silence::Unreadable);
                    Answer::Nobody
                }),
                None => Answer::Nobody,
            }
        })
    }
}

/// The digest of all that a yes is about.
fn subject(question: &Question) -> Digest {
    let mut bytes = Vec::new();
    let mut field = |field: &[u8]| {
        bytes.extend_from_slice(&(field.len() as u64).to_le_bytes());
        bytes.extend_from_slice(field);
    };
    field(&question.command_digest.0);
    field(&question.policy_digest.0);
    field(question.environment.as_bytes());
    field(question.session.as_deref().unwrap_or_default().as_bytes());
    for reason in &question.verdict.reasons {
        field(reason.rule.as_bytes());
        field(reason.object.as_bytes());
        field(reason.because.as_bytes());
    }
    for (path, digest) in &question.files {
        field(path.as_os_str().as_encoded_bytes());
        field(&digest.0);
    }
    Digest::of(&bytes)
}

/// What a yes is to, made safe to look at, and whole.
struct Shown {
    text: String,
    change: Option<String>,
}

impl Shown {
    /// # Errors
    /// How much could be shown, if this is more: the middle that was left out could be all that matters.
    fn of(question: &Question) -> Result<Self, ByteCount> {
        let whole = |text: &str, most: ByteCount| {
            let shown = visible::visible(text);
            if shown.len() > most.as_usize() {
                Err(most)
            } else {
                Ok(shown)
            }
        };
        Ok(Self {
            text: whole(&question.text, COMMAND)?,
            change: question
                .change
                .as_deref()
                .map(|change| whole(change, CHANGE))
                .transpose()?,
        })
    }
}

/// What the person reads.
fn wording(question: &Question, shown: &Shown, purpose: Option<&str>) -> String {
    let asked = match question.kind {
        RequestKind::Command => "May this command run?",
        RequestKind::Files => "May this be done with files?",
    };
    let mut lines = vec![asked.to_owned(), String::new()];
    lines.extend(shown.text.lines().map(|line| format!("    {line}")));
    lines.push(String::new());
    if let Some(change) = &shown.change {
        // Each line is marked, so that none can be taken for one of ours.
        lines.extend(change.lines().map(|line| format!("    | {line}")));
        lines.push(String::new());
    }
    let session = question
        .session
        .as_ref()
        .map_or(String::new(), |name| format!(", session {name}"));
    let cwd = visible::line(&question.cwd.to_string_lossy(), 1_000);
    lines.push(format!("in      {cwd} ({}{session})", question.environment));
    lines.extend(purpose.map(|purpose| format!("for     {} (in the agent's words)", visible::line(purpose, 500))));
    for reason in question
        .verdict
        .reasons
        .iter()
        .filter(|reason| reason.decision != Decision::Allow)
    {
        let object = visible::line(&reason.object, 200);
        let object = if object.is_empty() {
            object
        } else {
            format!("`{object}`: ")
        };
        lines.push(format!("since   {object}{}", visible::line(&reason.because, 500)));
    }
    for (path, digest) in question.files.iter().take(FILES) {
        let digest: String = digest.to_string().chars().take(12).collect();
        lines.push(format!(
            "runs    {} ({digest})",
            visible::line(&path.to_string_lossy(), 500)
        ));
    }
    let unnamed = question.files.len().saturating_sub(FILES);
    if unnamed > 0 {
        lines.push(format!("runs    {unnamed} more files"));
    }
    for path in &question.changed {
        lines.push(format!(
            "changed {} since you said yes",
            visible::line(&path.to_string_lossy(), 500)
        ));
    }
    lines.join("\n")
}

const ONCE: &str = "yes";
const SESSION: &str = "session";
const NO: &str = "no";

fn choices(question: &Question, way: &Way) -> Value {
    let mut offered = vec![(ONCE, "Yes, once".to_owned())];
    offered.extend(for_the_session(question).map(|title| (SESSION, title)));
    offered.push((NO, "No".to_owned()));
    let (names, titles): (Vec<&str>, Vec<&String>) = offered.iter().map(|(name, title)| (*name, title)).unzip();
    let decision = match way {
        Way::Between(_) => {
            let offered = offered
                .iter()
                .map(|(name, title)| json!({"const": name, "title": title}));
            json!({"type": "string", "title": "Decision", "oneOf": offered.collect::<Vec<_>>()})
        }
        // The form that versions before 2025-11-25 know, and later ones still read.
        Way::During(_) | Way::None => {
            json!({"type": "string", "title": "Decision", "enum": names, "enumNames": titles})
        }
    };
    json!({
        "decision": decision,
        "words": {"type": "string", "title": "Words for the agent", "maxLength": 2_000},
    })
}

/// What a yes for the session is to, by name; nothing where it is not offered, since it could not be bound
/// to what is shown.
fn for_the_session(question: &Question) -> Option<String> {
    question.session.as_ref()?;
    let programs: Vec<String> = question.programs()?.iter().map(|name| format!("`{name}`")).collect();
    let rules: BTreeSet<&str> = question
        .verdict
        .reasons
        .iter()
        .filter(|reason| reason.decision != Decision::Allow)
        .map(|reason| reason.rule.as_str())
        .collect();
    let rules: Vec<&str> = rules.into_iter().collect();
    let because = match rules.as_slice() {
        [] => String::new(),
        rules => format!(" asked about by {}", rules.join(", ")),
    };
    let title = format!("Yes, and {}{because} in this session for an hour", programs.join(", "));
    // A choice that cannot be read whole is not offered.
    (visible::visible(&title).chars().count() <= CHOICE).then(|| visible::line(&title, CHOICE))
}

/// The decision, if it is one of those offered.
fn decided(answer: &Value, question: &Question) -> Option<Answer> {
    if answer.is_null() {
        return Some(Answer::No(String::new()));
    }
    let words = match answer.get("words") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(words)) => words.chars().take(2_000).collect(),
        Some(_) => return None,
    };
    match answer.get("decision")?.as_str()? {
        ONCE => Some(Answer::Yes(Scope::Once)),
        SESSION if for_the_session(question).is_some() => {
            let limits = Limits {
                uses: NonZeroU32::new(1_000)?,
                ..Limits::default()
            };
            Some(Answer::Yes(Scope::Session(limits)))
        }
        NO => Some(Answer::No(words)),
        _ => None,
    }
}
