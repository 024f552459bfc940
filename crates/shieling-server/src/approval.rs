//! Questions to the person behind the client, in both forms that the protocol has.
//!
//! ```text
//! until 2025-11-25   the call waits ─► elicitation/create ─► the answer ─► the call continues
//! since 2026-07-28   the call ends with "input required" and a state ─► the client repeats the call with
//!                    the answer and the state ─► the same question is asked again, and answered
//! ```
//!
//! In both forms the library's approvals decide. They ask [`Elicitation`], which finds the person behind the call in
//! whose task it runs. Only an answer that is exactly one of the offered choices counts.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ServerRequest,
};
use rmcp::service::Peer;
use serde_json::{Map, Value, json};
use shieling::approval::{Answer, AnswerFuture, Approver, GrantLimits, Question, Scope};
use shieling::policy::Decision;
use shieling::request::{Digest, Operation, RequestKind};
use shieling::session::AskHumanResponse;
use shieling::units::ByteCount;

use crate::visible;

/// The length of an agent's question that a person is shown, in characters.
const SHOWN: usize = 16_384;

/// The longest command that a person is asked about, with deceptive characters escaped.
const COMMAND: ByteCount = ByteCount::kib(32);

/// The longest change of files: the library's bound, and room for escapes.
const CHANGE: ByteCount = ByteCount::kib(96);

/// The longest title of a choice, in characters.
const CHOICE: usize = 200;

/// The number of files that a command runs that are shown with their digests.
const FILES: usize = 20;

tokio::task_local! {
    /// The person behind the call that the current task performs.
    pub(crate) static PERSON: Arc<Person>;
}

/// The person behind one call.
#[derive(Debug)]
pub(crate) struct Person {
    way: QuestionChannel,
    /// The purpose of the call, in the agent's words.
    purpose: Mutex<Option<String>>,
    /// A question that the client has to ask.
    pending: Mutex<Option<PendingQuestion>>,
    /// Why the last question was not answered.
    silent: Mutex<Option<Unanswered>>,
}

/// How a person can be asked.
#[derive(Debug)]
pub(crate) enum QuestionChannel {
    /// During the call.
    During(Peer<RoleServer>),
    /// Between two calls. Contains the answer that this call brought.
    Between(Mutex<Option<ReceivedAnswer>>),
    /// Not at all: the client does not support questions.
    None,
}

/// An answer, and the digest of its subject.
#[derive(Debug)]
pub(crate) struct ReceivedAnswer {
    pub(crate) subject: Digest,
    pub(crate) reply: Reply,
}

/// A question that the client has to ask.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    pub(crate) subject: Digest,
    pub(crate) request: ElicitRequestParams,
}

/// The client's response to a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Accepted(Value),
    Declined,
    Dismissed,
    Unreadable,
}

/// The calls that wait for a command, the oldest first.
static WAITING: Mutex<Vec<Weak<Person>>> = Mutex::new(Vec::new());

/// A call that waits for a command, whose person can be asked about what the command does meanwhile.
#[derive(Debug)]
pub(crate) struct Waiting(Weak<Person>);

impl Waiting {
    /// Begins the wait of this person's call.
    pub(crate) fn begin(person: &Arc<Person>) -> Self {
        let weak = Arc::downgrade(person);
        lock(&WAITING).push(Weak::clone(&weak));
        Self(weak)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waiting = lock(&WAITING);
        if let Some(at) = waiting.iter().position(|one| one.ptr_eq(&self.0)) {
            waiting.remove(at);
        }
    }
}

/// The person behind the newest call that waits and in the middle of which they can be asked.
fn waiting() -> Option<Arc<Person>> {
    let waiting = lock(&WAITING);
    let mut people = waiting.iter().rev().filter_map(Weak::upgrade);
    people.find(|person| matches!(person.way, QuestionChannel::During(_)))
}

/// Why a question was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The client does not support questions.
    NoWay,
    /// The person closed the question.
    Dismissed,
    /// The response was none of the offered choices.
    Unreadable,
    /// The client failed to ask.
    Failed(String),
}

impl Person {
    pub(crate) fn new(way: QuestionChannel) -> Self {
        Self {
            way,
            purpose: Mutex::default(),
            pending: Mutex::default(),
            silent: Mutex::default(),
        }
    }

    /// Sets the purpose of the call.
    pub(crate) fn says(&self, purpose: Option<String>) {
        *lock(&self.purpose) = purpose;
    }

    /// Returns the question that the client has to ask before it repeats the call.
    pub(crate) fn pending(&self) -> Option<PendingQuestion> {
        lock(&self.pending).take()
    }

    /// Returns why the last question was not answered.
    pub(crate) fn unanswered(&self) -> Option<Unanswered> {
        lock(&self.silent).clone()
    }

    /// Asks a question about `subject`. Returns `None` if it was not answered; [`unanswered`](Self::silence) and
    /// [`pending`](Self::pending) explain why.
    pub(crate) async fn ask(&self, subject: Digest, message: String, properties: Value) -> Option<Value> {
        match self.reply(subject, message, properties).await {
            Ok(Reply::Accepted(content)) => Some(content),
            Ok(Reply::Declined) => Some(Value::Null),
            Ok(Reply::Dismissed) => self.silently(Unanswered::Dismissed),
            Ok(Reply::Unreadable) => self.silently(Unanswered::Unreadable),
            Err(unanswered) => unanswered.and_then(|unanswered| self.silently(unanswered)),
        }
    }

    /// Asks for a free-form answer, optionally about a job.
    pub(crate) async fn answer(&self, prompt: &str, job: Option<&str>) -> AskHumanResponse {
        let message = from_the_agent(prompt, job);
        let subject = Digest::of(format!("ask_human\0{message}").as_bytes());
        let words = json!({"answer": {"type": "string", "title": "Your answer", "maxLength": 16_384}});
        match self.ask(subject, message, words).await {
            None => AskHumanResponse::Nobody,
            Some(Value::Null) => AskHumanResponse::Declined,
            Some(answer) => match answer.get("answer") {
                Some(Value::String(text)) => AskHumanResponse::Answer {
                    text: text.chars().take(16_384).collect(),
                },
                _ => {
                    self.silently(Unanswered::Unreadable);
                    AskHumanResponse::Nobody
                }
            },
        }
    }

    fn silently(&self, unanswered: Unanswered) -> Option<Value> {
        *lock(&self.silent) = Some(unanswered);
        None
    }

    async fn reply(&self, subject: Digest, message: String, properties: Value) -> Result<Reply, Option<Unanswered>> {
        let schema = ElicitationSchema::from_json_schema(form(properties))
            .map_err(|error| Some(Unanswered::Failed(error.to_string())))?;
        let request = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema: schema,
        };
        match &self.way {
            QuestionChannel::None => Err(Some(Unanswered::NoWay)),
            QuestionChannel::During(peer) => {
                let asked = peer
                    .send_request(ServerRequest::ElicitRequest(ElicitRequest::new(request)))
                    .await;
                match asked {
                    Ok(ClientResult::ElicitResult(result)) => Ok(Reply::of(&result)),
                    Ok(_) => Ok(Reply::Unreadable),
                    Err(error) => Err(Some(Unanswered::Failed(visible::line(&error.to_string(), 300)))),
                }
            }
            QuestionChannel::Between(replied) => {
                let brought = lock(replied).take_if(|replied| replied.subject == subject);
                match brought {
                    Some(replied) => Ok(replied.reply),
                    None => {
                        *lock(&self.pending) = Some(PendingQuestion { subject, request });
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

    /// What a client returns between two calls.
    pub(crate) fn read(value: &Value) -> Self {
        match serde_json::from_value::<ElicitResult>(value.clone()) {
            Ok(result) => Self::of(&result),
            Err(_) => Self::Unreadable,
        }
    }
}

/// Formats an agent's question for a person. It begins with words of Shieling, and every line of the agent is marked,
/// so that no text of the agent can be taken for one of Shieling.
fn from_the_agent(prompt: &str, job: Option<&str>) -> String {
    let context = job.map_or(String::new(), |job| {
        format!(" about the job {}", visible::line(job, 100))
    });
    let said = visible::within(prompt, SHOWN);
    let lines: Vec<String> = said.split('\n').map(|line| format!("    | {line}")).collect();
    format!(
        "The agent asks{context}. The marked lines are the agent's own words, not Shieling's; an answer approves \
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

/// The approver of a server. It asks the person behind the call that a request belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Elicitation;

/// An approver that asks as [`Elicitation`] does, and asks another one for calls whose client cannot ask a person.
#[derive(Debug, Clone)]
pub struct ElicitationOr<A>(pub A);

/// Whether the person behind the current call can be asked in the middle of it.
fn is_there() -> bool {
    let during = |person: &Arc<Person>| matches!(person.way, QuestionChannel::During(_));
    PERSON.try_with(during).unwrap_or_default()
}

impl<A: Approver> Approver for ElicitationOr<A> {
    fn is_there(&self) -> bool {
        // Whoever can only be asked between two calls has no other person in their place.
        let between = |person: &Arc<Person>| matches!(person.way, QuestionChannel::Between(_));
        is_there() || !PERSON.try_with(between).unwrap_or_default() && self.0.is_there()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a> {
        let cannot_ask = |person: &Arc<Person>| matches!(person.way, QuestionChannel::None);
        // Outside of a call, a question about a host goes to a call that waits, if one can be asked.
        let outside = || waiting().is_none();
        match PERSON.try_with(cannot_ask).unwrap_or_else(|_| outside()) {
            false => Elicitation.ask(question),
            true => Box::pin(async move {
                let answer = self.0.ask(question).await;
                if matches!(answer, Answer::Nobody) {
                    let _ = PERSON.try_with(|person| person.silently(Unanswered::NoWay));
                }
                answer
            }),
        }
    }
}

impl Approver for Elicitation {
    fn is_there(&self) -> bool {
        is_there()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(async move {
            let person = match (PERSON.try_with(Arc::clone), question.kind) {
                (Ok(person), _) => person,
                // A command connects while its call waits for it.
                (Err(_), RequestKind::Network) => match waiting() {
                    Some(person) => person,
                    None => return Answer::Nobody,
                },
                // There is no person behind a request outside of a call.
                (Err(_), RequestKind::Command | RequestKind::Files) => return Answer::Nobody,
            };
            let shown = match Subject::of(question) {
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
                    person.silently(Unanswered::Unreadable);
                    Answer::Nobody
                }),
                None => Answer::Nobody,
            }
        })
    }
}

/// Returns the digest of everything that an approval is bound to.
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

/// The subject of an approval, whole and escaped for display.
struct Subject {
    text: String,
    change: Option<String>,
}

impl Subject {
    /// # Errors
    /// The number of bytes that could be shown, if the subject is longer: the part that was left out could be the
    /// decisive one.
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

/// Formats the question for the person.
fn wording(question: &Question, shown: &Subject, purpose: Option<&str>) -> String {
    let asked = match question.kind {
        RequestKind::Files if question.operation == Some(Operation::AcceptHeldBack) => {
            "A command made this, and it was held back. May it go into your workspace?"
        }
        RequestKind::Files if question.operation == Some(Operation::CommitChanges) => {
            "Commands made these changes. May they go into your workspace?"
        }
        RequestKind::Command => "May this command run?",
        RequestKind::Files => "May this be done with files?",
        RequestKind::Network => "May a command do this?",
    };
    let mut lines = vec![asked.to_owned(), String::new()];
    lines.extend(shown.text.lines().map(|line| format!("    {line}")));
    lines.push(String::new());
    if let Some(change) = &shown.change {
        // Every line is marked, so that none can be taken for one of Shieling.
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
const ALWAYS: &str = "always";
const NO: &str = "no";

fn choices(question: &Question, way: &QuestionChannel) -> Value {
    let mut offered = vec![(ONCE, "Yes, once".to_owned())];
    if question.kind == RequestKind::Network {
        offered.push((SESSION, "Yes, until this environment ends".to_owned()));
        offered.push((ALWAYS, "Yes, and tell me the line that keeps it".to_owned()));
    }
    offered.extend(for_the_session(question).map(|title| (SESSION, title)));
    offered.push((NO, "No".to_owned()));
    let (names, titles): (Vec<&str>, Vec<&String>) = offered.iter().map(|(name, title)| (*name, title)).unzip();
    let decision = match way {
        QuestionChannel::Between(_) => {
            let offered = offered
                .iter()
                .map(|(name, title)| json!({"const": name, "title": title}));
            json!({"type": "string", "title": "Decision", "oneOf": offered.collect::<Vec<_>>()})
        }
        // The form of versions before 2025-11-25, which later versions still accept.
        QuestionChannel::During(_) | QuestionChannel::None => {
            json!({"type": "string", "title": "Decision", "enum": names, "enumNames": titles})
        }
    };
    json!({
        "decision": decision,
        "words": {"type": "string", "title": "Words for the agent", "maxLength": 2_000},
    })
}

/// Returns the title of the choice for the whole session. Returns `None` if it is not offered, since it could not be
/// bound to what is shown.
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
    // A choice that cannot be shown whole is not offered.
    (visible::visible(&title).chars().count() <= CHOICE).then(|| visible::line(&title, CHOICE))
}

/// Returns the decision, if it is one of the offered choices.
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
            let limits = GrantLimits {
                uses: NonZeroU32::new(1_000)?,
                ..GrantLimits::default()
            };
            Some(Answer::Yes(Scope::Session(limits)))
        }
        SESSION if question.kind == RequestKind::Network => Some(Answer::Yes(Scope::Session(GrantLimits::default()))),
        ALWAYS if question.kind == RequestKind::Network => Some(Answer::Yes(Scope::Always)),
        NO => Some(Answer::No(words)),
        _ => None,
    }
}
