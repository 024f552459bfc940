//! Questions to an approver, and the answers.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use super::plain::{is_plain, is_plain_word};
use super::scope::Scope;
use crate::policy::Verdict;
use crate::request::{Digest, Operation, Request, RequestKind};
use crate::units::ByteCount;

/// What a request is judged by, besides the request itself.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalContext<'a> {
    /// The verdict of the policy.
    pub verdict: &'a Verdict,
    /// The digest of the policy.
    pub policy: Digest,
    /// The name of the environment that the request is for.
    pub environment: &'a str,
    /// The session of the request, if any.
    pub session: Option<&'a str>,
}

/// Everything that an approver needs to decide.
///
/// Texts are unescaped: escape control characters before display. If a text cannot be displayed whole, do not ask
/// about it, and answer [`Answer::TooLong`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// Whether the request is a command or a file operation.
    pub kind: RequestKind,
    /// The kind of a file operation.
    pub operation: Option<Operation>,
    /// The text of the command or of the file operation.
    pub text: String,
    /// The change that a file operation would make: a unified diff, or a line of text.
    pub change: Option<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The names of the environment variables.
    pub variables: Vec<String>,
    /// The verdict of the policy, with its reasons, and the commands and effects that it has found.
    pub verdict: Verdict,
    /// The name of the environment.
    pub environment: String,
    /// The session of the request, if any.
    pub session: Option<String>,
    /// The digest of the text, the directory, and the variables with their values; for a file operation, of
    /// everything that it would change.
    pub command_digest: Digest,
    /// The digest of the policy.
    pub policy_digest: Digest,
    /// The files that the text runs, in their present state.
    pub files: Vec<(PathBuf, Digest)>,
    /// Those of the files that changed after the previous answer to the same question; empty the first time.
    pub changed: Vec<PathBuf>,
    /// The digest of the directory and the variables, without those that bash maintains itself.
    pub(super) place: Digest,
}

impl Question {
    pub(crate) fn new(request: &impl Request, case: &ApprovalContext<'_>, files: Vec<(PathBuf, Digest)>) -> Self {
        Self {
            kind: request.kind(),
            operation: request.operation(),
            text: request.text().to_owned(),
            change: request.change().map(str::to_owned),
            cwd: request.cwd().to_owned(),
            variables: request.variable_names(),
            verdict: case.verdict.clone(),
            environment: case.environment.to_owned(),
            session: case.session.map(str::to_owned),
            command_digest: request.digest(),
            policy_digest: case.policy,
            files,
            changed: Vec::new(),
            place: request.place(),
        }
    }

    /// Returns the programs that a grant for the session ([`Scope::Session`]) is bound to: those that the text
    /// launches, or the file operation. Returns `None` if the text is more than commands of plain words; the approval
    /// then covers only this start.
    pub fn programs(&self) -> Option<BTreeSet<String>> {
        if self.kind == RequestKind::Network {
            return None;
        }
        if self.kind == RequestKind::Files {
            return Some(self.text.split(' ').take(1).map(str::to_owned).collect());
        }
        let programs: Option<BTreeSet<String>> = self
            .verdict
            .commands
            .iter()
            .map(|command| command.argv.first().filter(|name| is_plain_word(name)).cloned())
            .collect();
        programs.filter(|programs| !programs.is_empty() && is_plain(&self.text))
    }
}

/// The answer of an approver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Allows the request, with this scope.
    Yes(Scope),
    /// Refuses the request, with a reason for the requester, which may be empty.
    No(String),
    /// No approver is available.
    Nobody,
    /// The request cannot be shown whole, and so was not asked about: the approver would allow something unseen.
    TooLong {
        /// The number of bytes of its text or its change that could be shown.
        most: ByteCount,
    },
}

/// The future of an answer.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Answers questions about requests: a person at a terminal, the client of a server, a function.
///
/// Several questions may be asked at the same time; an approver that can show only one queues the others. When the
/// requester goes away, the future of its question is dropped.
pub trait Approver: Send + Sync {
    /// Asks a question.
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a>;

    /// Returns whether it can ask at this moment, and have the answer before the requester goes on. Questions about what
    /// a command has done already are only asked then: they cannot be answered by a request that is made again.
    fn is_there(&self) -> bool {
        true
    }
}

/// The absence of an approver. Answers [`Answer::Nobody`] at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoApprover;

impl Approver for NoApprover {
    fn ask<'a>(&'a self, _: &'a Question) -> AnswerFuture<'a> {
        Box::pin(std::future::ready(Answer::Nobody))
    }

    fn is_there(&self) -> bool {
        false
    }
}

/// An approver that calls a function.
pub struct ApproverFn<F>(pub F);

impl<F: Fn(&Question) -> Answer + Send + Sync> Approver for ApproverFn<F> {
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(async move { (self.0)(question) })
    }
}

impl<F> fmt::Debug for ApproverFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}
