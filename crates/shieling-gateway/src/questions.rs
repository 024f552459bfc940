//! Questions that are open, and answers that stand.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::ask::{Answer, Asker, Attempt};
use crate::limits::Limits;
use crate::rule::Protocol;

/// The most refusals that are remembered at once.
const REFUSALS_MAX: usize = 1024;

/// The connection that a question is about.
type Key = (String, u16, Protocol);

/// Why a connection is not allowed after all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is nobody to ask.
    NobodyAsked,
    /// The answer is no, or was no a short time ago, for this reason, which may be empty.
    Answered(String),
    /// No answer came in time.
    NoAnswer,
    /// The question cannot be shown whole.
    TooLong,
    /// Too many questions are open.
    TooMany,
}

/// The questions of one gateway.
pub(crate) struct Questions {
    asker: Option<Arc<dyn Asker>>,
    wait: Duration,
    remembered: Duration,
    open_max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    granted: HashSet<Key>,
    refused: HashMap<Key, (Instant, Refusal)>,
    open: HashMap<Key, watch::Receiver<Option<Result<(), Refusal>>>>,
}

/// Closes a question, also when the one who asked it is dropped.
struct Open<'a> {
    questions: &'a Questions,
    key: Key,
    result: watch::Sender<Option<Result<(), Refusal>>>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.questions.state().open.remove(&self.key);
    }
}

impl Questions {
    pub(crate) fn new(asker: Option<Arc<dyn Asker>>, limits: &Limits) -> Self {
        Self {
            asker,
            wait: limits.answer_wait,
            remembered: limits.refusal_remembered,
            open_max: limits.questions,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no panic while held")
    }

    /// Whether there is somebody to ask.
    pub(crate) fn can_ask(&self) -> bool {
        self.asker.is_some()
    }

    /// Whether an answer allows a connection until the gateway ends.
    pub(crate) fn granted(&self, host: &str, protocol: Protocol, port: u16) -> bool {
        self.state().granted.contains(&(host.to_owned(), port, protocol))
    }

    /// Waits for the answer about an attempt. Attempts for the same host and port share one question.
    pub(crate) async fn ask(&self, attempt: Attempt) -> Result<(), Refusal> {
        let Some(asker) = &self.asker else {
            return Err(Refusal::NobodyAsked);
        };
        let key: Key = (attempt.host.clone(), attempt.port, attempt.protocol);
        let question = loop {
            let mut answered = {
                let mut state = self.state();
                if state.granted.contains(&key) {
                    return Ok(());
                }
                let now = Instant::now();
                state.refused.retain(|_, (until, _)| *until > now);
                if let Some((_, refusal)) = state.refused.get(&key) {
                    return Err(refusal.clone());
                }
                match state.open.get(&key) {
                    Some(open) => open.clone(),
                    None if state.open.len() >= self.open_max => return Err(Refusal::TooMany),
                    None => {
                        let (result, receiver) = watch::channel(None);
                        state.open.insert(key.clone(), receiver);
                        break Open {
                            questions: self,
                            key: key.clone(),
                            result,
                        };
                    }
                }
            };
            if let Ok(result) = answered.wait_for(Option::is_some).await
                && let Some(result) = &*result
            {
                return result.clone();
            }
            // The one who asked is gone without an answer.
        };
        let answer = timeout(self.wait, asker.ask(attempt)).await;
        let mut state = self.state();
        let result = match answer.unwrap_or(Answer::NoAnswer) {
            Answer::Once => Ok(()),
            Answer::Session | Answer::Always => {
                state.granted.insert(key.clone());
                Ok(())
            }
            Answer::No(reason) => Err(Refusal::Answered(reason)),
            Answer::Nobody => Err(Refusal::NobodyAsked),
            Answer::NoAnswer => Err(Refusal::NoAnswer),
            Answer::TooLong => Err(Refusal::TooLong),
        };
        if let Err(refusal) = &result
            && state.refused.len() < REFUSALS_MAX
        {
            let until = Instant::now() + self.remembered;
            state.refused.insert(key, (until, refusal.clone()));
        }
        drop(state);
        question.result.send_replace(Some(result.clone()));
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;
    use crate::ask::BoxFuture;

    struct Fixed {
        answer: Answer,
        asked: AtomicUsize,
        go: Notify,
    }

    impl Asker for Fixed {
        fn ask(&self, _attempt: Attempt) -> BoxFuture<'_, Answer> {
            Box::pin(async {
                self.asked.fetch_add(1, Ordering::Relaxed);
                self.go.notified().await;
                self.answer.clone()
            })
        }
    }

    fn attempt(host: &str) -> Attempt {
        Attempt {
            host: host.to_owned(),
            port: 443,
            protocol: Protocol::Tcp,
            rule: host.parse().unwrap(),
            because: None,
        }
    }

    fn questions(answer: Answer) -> (Questions, Arc<Fixed>) {
        let asker = Arc::new(Fixed {
            answer,
            asked: AtomicUsize::new(0),
            go: Notify::new(),
        });
        let limits = Limits {
            questions: 2,
            ..Limits::default()
        };
        (Questions::new(Some(asker.clone()), &limits), asker)
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_at_one_host_share_one_question_and_one_answer() {
        let (questions, asker) = questions(Answer::Once);
        let release = async { asker.go.notify_one() };
        let (a, b, ()) = tokio::join!(
            questions.ask(attempt("a.org")),
            questions.ask(attempt("a.org")),
            release
        );
        assert_eq!((a, b), (Ok(()), Ok(())));
        assert_eq!(asker.asked.load(Ordering::Relaxed), 1);
        asker.go.notify_one();
        assert_eq!(questions.ask(attempt("a.org")).await, Ok(()));
        assert_eq!(asker.asked.load(Ordering::Relaxed), 2, "once is once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_yes_for_the_session_stands_and_is_for_that_host_alone() {
        let (questions, asker) = questions(Answer::Session);
        asker.go.notify_one();
        assert_eq!(questions.ask(attempt("a.org")).await, Ok(()));
        assert_eq!(questions.ask(attempt("a.org")).await, Ok(()));
        assert!(questions.granted("a.org", Protocol::Tcp, 443));
        assert!(!questions.granted("a.org", Protocol::Tcp, 22) && !questions.granted("b.org", Protocol::Tcp, 443));
        assert_eq!(asker.asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_no_stands_for_a_while_and_no_answer_is_a_no() {
        let (questions, asker) = questions(Answer::No("not that one".to_owned()));
        asker.go.notify_one();
        for _ in 0..2 {
            let no = Err(Refusal::Answered("not that one".to_owned()));
            assert_eq!(questions.ask(attempt("a.org")).await, no);
        }
        assert_eq!(asker.asked.load(Ordering::Relaxed), 1);
        tokio::time::advance(Limits::default().refusal_remembered).await;
        for _ in 0..2 {
            assert_eq!(questions.ask(attempt("a.org")).await, Err(Refusal::NoAnswer));
        }
        assert_eq!(asker.asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn questions_are_bounded_and_one_that_is_given_up_passes_to_the_next() {
        let (questions, asker) = questions(Answer::Once);
        let mut first = Box::pin(questions.ask(attempt("a.org")));
        let mut second = Box::pin(questions.ask(attempt("b.org")));
        assert!(futures_now(&mut first).await.is_none() && futures_now(&mut second).await.is_none());
        assert_eq!(questions.ask(attempt("c.org")).await, Err(Refusal::TooMany));
        let mut waiting = Box::pin(questions.ask(attempt("a.org")));
        assert!(futures_now(&mut waiting).await.is_none());
        drop(first);
        assert!(futures_now(&mut waiting).await.is_none());
        assert_eq!(asker.asked.load(Ordering::Relaxed), 3);
        drop(second);
        asker.go.notify_one();
        assert_eq!(waiting.await, Ok(()));
        let nobody = Questions::new(None, &Limits::default());
        assert_eq!(nobody.ask(attempt("a.org")).await, Err(Refusal::NobodyAsked));
    }

    /// Polls a future once.
    async fn futures_now<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(context) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
