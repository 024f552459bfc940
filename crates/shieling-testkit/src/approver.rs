//! Approvers that answer from a list, and approvals for tests of what comes after them.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use shieling::approval::{Answer, Approvals, Approved, Approver, Asking, Case, Mode, Nobody, Question};
use shieling::policy::{Decision, Verdict};
use shieling::request::{Command, Digest};
use shieling::units::SystemClock;

/// An approver that gives the answers it was told to give, in order, then is away, and remembers
/// what it was asked.
#[derive(Default)]
pub struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Question>>,
    meanwhile: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Scripted {
    /// With these answers.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            ..Self::default()
        })
    }

    /// With these answers, and with something that happens each time before the answer is given.
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

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Approver for Scripted {
    fn ask<'a>(&'a self, question: &'a Question) -> Asking<'a> {
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

/// A command as it is after everybody has agreed, for tests of environments and processes.
///
/// It goes through [`Approvals`] like any other: there is no other maker.
pub fn approved(command: Command) -> Approved<Command> {
    let approvals = Approvals::new(Mode::Never, Arc::new(Nobody), Arc::new(SystemClock));
    let (decision, policy) = (Decision::Allow, Digest::of(b"test"));
    let verdict = Verdict {
        decision,
        reasons: Vec::new(),
        commands: Vec::new(),
        effects: Vec::new(),
    };
    let case = Case {
        verdict: &verdict,
        policy,
        environment: "test",
        session: None,
    };
    block_on(approvals.approve(command, &case, |_| Vec::new())).expect("an allowed command needs nobody")
}

/// Runs a future that never waits for anything outside this thread.
///
/// # Panics
/// If it does wait: a test that needs a runtime says so with `#[tokio::test]`.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits for something; use a runtime"),
    }
}
