//! What is asked, who is asked, and what can be answered.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use super::grant::Scope;
use super::plain::{is_plain, is_plain_word};
use crate::policy::Verdict;
use crate::request::{Digest, Request, RequestKind};
use crate::units::ByteCount;

/// What a request is judged by besides itself.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What the policy says.
    pub verdict: &'a Verdict,
    /// The digest of that policy.
    pub policy: Digest,
    /// The name of the environment in which it is to run.
    pub environment: &'a str,
    /// The session that it belongs to, if any.
    pub session: Option<&'a str>,
}

/// All that an approver should know to say yes or no.
///
/// Texts are as they were given: whoever shows them on a terminal escapes control characters. What is
/// longer than they can show whole they do not ask about ([`Answer::TooLong`]).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// Whether it is a command or an operation on files.
    pub kind: RequestKind,
    /// The text of the command, or how the operation reads.
    pub text: String,
    /// What an operation on files would change: a unified diff, or a line that says it.
    pub change: Option<String>,
    /// Where it is to run.
    pub cwd: PathBuf,
    /// The names of the variables that it gets.
    pub variables: Vec<String>,
    /// What the policy says, with its reasons, and the commands and effects it has read.
    pub verdict: Verdict,
    /// The environment in which it is to run.
    pub environment: String,
    /// The session that it belongs to, if any.
    pub session: Option<String>,
    /// The digest of text, directory, and variables with their values; of an operation on files, of all
    /// that it would change.
    pub command_digest: Digest,
    /// The digest of the policy.
    pub policy_digest: Digest,
    /// The files that the text runs, as they are now.
    pub files: Vec<(PathBuf, Digest)>,
    /// Those of them that have changed since the same question was answered with yes a moment ago;
    /// empty the first time.
    pub changed: Vec<PathBuf>,
    /// The digest of directory and variables alone, without those that bash keeps itself.
    pub(super) place: Digest,
}

impl Question {
    pub(super) fn new(request: &impl Request, case: &Case<'_>, files: Vec<(PathBuf, Digest)>) -> Self {
        Self {
            kind: request.kind(),
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

    /// The programs to which a yes for the session is bound ([`Scope::Session`]): those that the text
    /// launches, or the operation on files. Nothing where such a yes cannot be bound to them, since the
    /// text holds more than commands of plain words; it then counts for this one start.
    pub fn programs(&self) -> Option<BTreeSet<String>> {
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

/// What an approver says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this far.
    Yes(Scope),
    /// No, with words for whoever asked; may be empty.
    No(String),
    /// There is nobody who could answer.
    Nobody,
    /// Whoever could answer cannot be shown all of it, and was not asked: a yes would be to what they
    /// have not seen.
    TooLong {
        /// How much of it could be shown: of its text, or of what it would change.
        most: ByteCount,
    },
}

/// An answer that may take its time.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// Somebody who can be asked: a person at a terminal, a client of a server, a function.
///
/// Several questions may be asked at the same time; whoever can show only one makes the others
/// wait. A question whose asker has gone away is dropped.
pub trait Approver: Send + Sync {
    /// Asks.
    fn ask<'a>(&'a self, question: &'a Question) -> Asking<'a>;
}

/// Nobody is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _: &'a Question) -> Asking<'a> {
        Box::pin(std::future::ready(Answer::Nobody))
    }
}

/// A function answers, at once.
pub struct Callback<F>(pub F);

impl<F: Fn(&Question) -> Answer + Send + Sync> Approver for Callback<F> {
    fn ask<'a>(&'a self, question: &'a Question) -> Asking<'a> {
        Box::pin(async move { (self.0)(question) })
    }
}

impl<F> fmt::Debug for Callback<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}
