//! The questions of agents that wait for a person's answer. Without a connected person a question is answered at
//! once with `HumanReply::Nobody`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shieling::approval::{self, Answer, AnswerFuture, Approver};
use shieling::request::RequestKind;
use shieling::session::{Human, HumanQuestion, HumanReply, ReplyFuture, Screen};
use tokio::sync::{oneshot, watch};

use super::protocol::{Approval, Question, ScreenText};
use crate::approver;

/// The largest number of open questions; further ones are answered with `Nobody`.
const MAX_OPEN: usize = 64;

/// The queue of open questions. Clones share one queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuestionQueue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of connected people.
    people: usize,
    last_number: u64,
    open: BTreeMap<u64, OpenQuestion>,
}

#[derive(Debug)]
struct OpenQuestion {
    question: Question,
    reply_to: oneshot::Sender<HumanReply>,
}

impl QuestionQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a person who receives questions until the value is dropped.
    pub(super) fn connect(&self) -> ConnectedPerson {
        self.state().people += 1;
        ConnectedPerson {
            changed: self.0.changed.subscribe(),
            queue: self.clone(),
        }
    }

    /// Returns the open questions.
    pub(super) fn open(&self) -> Vec<Question> {
        self.state().open.values().map(|open| open.question.clone()).collect()
    }

    /// Puts a question to whoever is connected. The reply is `Nobody` if no person is, or the queue is full.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the question.
    async fn put(&self, question: impl FnOnce(u64) -> Question) -> HumanReply {
        let (reply_to, reply) = oneshot::channel();
        let number = {
            let mut state = self.state();
            if state.people == 0 || state.open.len() >= MAX_OPEN {
                return HumanReply::Nobody;
            }
            state.last_number += 1;
            let number = state.last_number;
            let question = question(number);
            state.open.insert(number, OpenQuestion { question, reply_to });
            number
        };
        self.0.changed.send_replace(());
        let _withdraw = WithdrawOnDrop(self, number);
        reply.await.unwrap_or(HumanReply::Nobody)
    }

    fn remove(&self, number: u64) -> Option<OpenQuestion> {
        let open = self.state().open.remove(&number);
        self.0.changed.send_replace(());
        open
    }
}

impl Human for QuestionQueue {
    fn ask<'a>(&'a self, question: HumanQuestion) -> ReplyFuture<'a> {
        Box::pin(self.put(move |number| Question {
            number,
            prompt: question.prompt,
            job: question.job.as_ref().map(ToString::to_string),
            screen: question.screen.as_ref().map(screen_text),
            terminal: question.terminal.is_some(),
            approval: None,
        }))
    }
}

/// An approver that asks the people who are connected.
#[derive(Debug, Clone)]
pub(crate) struct QueueApprover(pub(crate) QuestionQueue);

impl Approver for QueueApprover {
    fn is_there(&self) -> bool {
        self.0.state().people > 0
    }

    fn ask<'a>(&'a self, question: &'a approval::Question) -> AnswerFuture<'a> {
        Box::pin(async move {
            let shown = match approver::shown(question) {
                Ok(shown) => shown,
                Err(most) => return Answer::TooLong { most },
            };
            let host = question.kind == RequestKind::Network;
            let reply = self.0.put(|number| Question {
                number,
                prompt: String::new(),
                job: None,
                screen: None,
                terminal: false,
                approval: Some(Approval { shown, host }),
            });
            match reply.await {
                HumanReply::Answer(line) => approver::decided(&line, host),
                HumanReply::Declined | HumanReply::TookOver => Answer::No(String::new()),
                HumanReply::Nobody => Answer::Nobody,
            }
        })
    }
}

/// Removes a question from the queue when its asker stops waiting.
struct WithdrawOnDrop<'a>(&'a QuestionQueue, u64);

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        drop(self.0.remove(self.1));
    }
}

/// A person who receives questions and may answer them.
#[derive(Debug)]
pub(super) struct ConnectedPerson {
    queue: QuestionQueue,
    changed: watch::Receiver<()>,
}

impl ConnectedPerson {
    /// Waits until the set of open questions changes.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn changed(&mut self) {
        // The sender cannot be gone: `queue` holds it.
        let _ = self.changed.changed().await;
    }

    /// Answers a question if it is still open.
    pub(super) fn answer(&self, number: u64, reply: HumanReply) {
        if let Some(open) = self.queue.remove(number) {
            // The asker may have stopped waiting just now.
            let _ = open.reply_to.send(reply);
        }
    }
}

impl Drop for ConnectedPerson {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.people -= 1;
        if state.people == 0 {
            // Dropping the senders answers every open question with `Nobody`.
            state.open.clear();
        }
    }
}

fn screen_text(screen: &Screen) -> ScreenText {
    ScreenText {
        window: screen.size.into(),
        text: screen.text.clone(),
        title: screen.title.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> HumanQuestion {
        HumanQuestion {
            prompt: "which?".to_owned(),
            job: None,
            screen: None,
            terminal: None,
        }
    }

    #[tokio::test]
    async fn without_a_person_the_reply_is_nobody_at_once() {
        let queue = QuestionQueue::default();
        assert_eq!(queue.ask(question()).await, HumanReply::Nobody);
        assert_eq!(queue.open(), []);
    }

    #[tokio::test]
    async fn a_connected_person_answers_and_leaving_answers_with_nobody() {
        let queue = QuestionQueue::default();
        let mut first = queue.connect();
        let asked = queue.ask(question());
        let answering = async {
            first.changed().await;
            let open = queue.open();
            assert_eq!((open.len(), open[0].prompt.as_str()), (1, "which?"));
            first.answer(open[0].number + 1, HumanReply::Declined);
            first.answer(open[0].number, HumanReply::Answer("this".to_owned()));
        };
        let (reply, ()) = tokio::join!(asked, answering);
        assert_eq!(
            (reply, queue.open()),
            (HumanReply::Answer("this".to_owned()), Vec::new())
        );

        let leaving = async {
            first.changed().await;
            while queue.open().is_empty() {
                first.changed().await;
            }
            drop(first);
        };
        let (reply, ()) = tokio::join!(queue.ask(question()), leaving);
        assert_eq!(reply, HumanReply::Nobody);
    }

    #[tokio::test]
    async fn a_withdrawn_question_leaves_the_queue() {
        let queue = QuestionQueue::default();
        let _person = queue.connect();
        let mut asked = queue.ask(question());
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(asked.as_mut().poll(cx).is_pending())).await);
        assert_eq!(queue.open().len(), 1);
        drop(asked);
        assert_eq!(queue.open(), []);
    }
}
