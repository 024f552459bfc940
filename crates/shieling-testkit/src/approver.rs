//! Scripted approvers, and approved commands for tests of later stages.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use shieling::approval::{
    Answer, AnswerFuture, ApprovalContext, Approvals, Approved, Approver, Mode, NoApprover, Question,
};
use shieling::policy::{Decision, Verdict};
use shieling::request::{Command, Digest};
use shieling::units::SystemClock;

/// An approver that gives the listed answers in order, then is unavailable, and records the questions.
#[derive(Default)]
pub struct ScriptedApprover {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Question>>,
    meanwhile: Option<Box<dyn Fn() + Send + Sync>>,
}

impl ScriptedApprover {
    /// Creates an approver with these answers.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        })
    }

    /// Creates an approver with these answers that calls a function before each.
    pub fn with_meanwhile(
        answers: impl IntoIterator<Item = Answer>,
        meanwhile: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            meanwhile: Some(Box::new(meanwhile)),
            ..Self::default()
        })
    }

    /// Returns the questions so far.
    pub fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Approver for ScriptedApprover {
    fn ask<'a>(&'a self, question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(async move {
            self.asked
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(question.clone());
            if let Some(meanwhile) = &self.meanwhile {
                meanwhile();
            }
            self.answers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front()
                .unwrap_or(Answer::Nobody)
        })
    }
}

/// Returns an approved command, for tests of environments and processes.
///
/// It passes through [`Approvals`] like any other, since nothing else can create one.
pub fn approved(command: Command) -> Approved<Command> {
    let approvals = Approvals::new(Mode::Never, Arc::new(NoApprover), Arc::new(SystemClock));
    let (decision, policy) = (Decision::Allow, Digest::of(b"test"));
    let verdict = Verdict {
        decision,
        reasons: Vec::new(),
        commands: Vec::new(),
        effects: Vec::new(),
    };
    let case = ApprovalContext {
        verdict: &verdict,
        policy,
        environment: "test",
        session: None,
    };
    block_on(approvals.approve(command, &case, |_| Vec::new())).expect("an allowed command needs nobody")
}

/// Polls a future that completes without waiting.
///
/// # Panics
/// If it does wait. A test that needs a runtime uses `#[tokio::test]`.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits for something; use a runtime"),
    }
}
