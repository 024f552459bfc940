//! Where questions lie until a person who waits for them answers one. With nobody there, a question is
//! answered at once: by nobody.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shieling::session::{Human, HumanQuestion, HumanReply, ReplyFuture, Screen};
use tokio::sync::{oneshot, watch};

use super::wire::{Picture, Question};

/// The most questions that lie there at a time; of more than that, nobody is asked.
const MOST: usize = 64;

/// The desk. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Desk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// How many people wait for questions.
    people: usize,
    number: u64,
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    question: Question,
    answer: oneshot::Sender<HumanReply>,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A person who waits for questions from now on, until this is dropped.
    pub(super) fn sit(&self) -> Sitting {
        self.state().people += 1;
        Sitting {
            changed: self.0.changed.subscribe(),
            desk: self.clone(),
        }
    }

    /// What is asked at present.
    pub(super) fn open(&self) -> Vec<Question> {
        self.state().open.values().map(|open| open.question.clone()).collect()
    }

    /// Puts a question there; nothing if nobody waits for one.
    fn put(&self, question: &HumanQuestion) -> Option<(u64, oneshot::Receiver<HumanReply>)> {
        let (answer, answered) = oneshot::channel();
        let mut state = self.state();
        if state.people == 0 || state.open.len() >= MOST {
            return None;
        }
        state.number += 1;
        let number = state.number;
        let question = Question {
            number,
            prompt: question.prompt.clone(),
            job: question.job.as_ref().map(ToString::to_string),
            screen: question.screen.as_ref().map(picture),
            terminal: question.terminal.is_some(),
        };
        state.open.insert(number, Open { question, answer });
        drop(state);
        self.0.changed.send_replace(());
        Some((number, answered))
    }

    fn take(&self, number: u64) -> Option<Open> {
        let open = self.state().open.remove(&number);
        self.0.changed.send_replace(());
        open
    }
}

impl Human for Desk {
    fn ask<'a>(&'a self, question: HumanQuestion) -> ReplyFuture<'a> {
        Box::pin(async move {
            let Some((number, answered)) = self.put(&question) else {
                return HumanReply::Nobody;
            };
            let _lying = Lying(self, number);
            answered.await.unwrap_or(HumanReply::Nobody)
        })
    }
}

/// A question on the desk, taken away when nobody waits for its answer any more.
struct Lying<'a>(&'a Desk, u64);

impl Drop for Lying<'_> {
    fn drop(&mut self) {
        drop(self.0.take(self.1));
    }
}

/// A person at the desk.
#[derive(Debug)]
pub(super) struct Sitting {
    desk: Desk,
    changed: watch::Receiver<()>,
}

impl Sitting {
    /// Waits until other questions lie there. Cancel safe.
    pub(super) async fn changed(&mut self) {
        // Its sender is in the desk.
        let _ = self.changed.changed().await;
    }

    /// Answers a question, if it still lies there.
    pub(super) fn answer(&self, number: u64, reply: HumanReply) {
        if let Some(open) = self.desk.take(number) {
            // Whoever asked may have gone at this moment.
            let _ = open.answer.send(reply);
        }
    }
}

impl Drop for Sitting {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        state.people -= 1;
        if state.people == 0 {
            // Nobody is left to answer, and that is the answer.
            state.open.clear();
        }
    }
}

fn picture(screen: &Screen) -> Picture {
    Picture {
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
    async fn with_nobody_there_the_answer_is_there_at_once() {
        let desk = Desk::default();
        assert_eq!(desk.ask(question()).await, HumanReply::Nobody);
        assert_eq!(desk.open(), []);
    }

    #[tokio::test]
    async fn whoever_sits_there_answers_and_whoever_leaves_answers_too() {
        let desk = Desk::default();
        let mut first = desk.sit();
        let asked = desk.ask(question());
        let answering = async {
            first.changed().await;
            let open = desk.open();
            assert_eq!((open.len(), open[0].prompt.as_str()), (1, "which?"));
            first.answer(open[0].number + 1, HumanReply::Declined);
            first.answer(open[0].number, HumanReply::Answer("this".to_owned()));
        };
        let (reply, ()) = tokio::join!(asked, answering);
        assert_eq!(
            (reply, desk.open()),
            (HumanReply::Answer("this".to_owned()), Vec::new())
        );

        let leaving = async {
            first.changed().await;
            while desk.open().is_empty() {
                first.changed().await;
            }
            drop(first);
        };
        let (reply, ()) = tokio::join!(desk.ask(question()), leaving);
        assert_eq!(reply, HumanReply::Nobody);
    }

    #[tokio::test]
    async fn a_question_that_is_taken_back_lies_there_no_more() {
        let desk = Desk::default();
        let _person = desk.sit();
        let mut asked = desk.ask(question());
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(asked.as_mut().poll(cx).is_pending())).await);
        assert_eq!(desk.open().len(), 1);
        drop(asked);
        assert_eq!(desk.open(), []);
    }
}
