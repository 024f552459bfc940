//! A person, who can be asked, and who can take the keyboard of a job. Refuses nothing and decides
//! nothing: whoever embeds the library brings the person, or nobody is there.
//!
//! ```text
//! agent ──ask──► Human::ask ──► Answer | Declined | Nobody
//!                   │
//!                   └─ TakeOver::attach ─► Attachment ──dropped──► TookOver
//!                                          (the agent's writes are refused meanwhile)
//! ```

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use super::control::{Held, Holder};
use super::{JobError, JobId, Screen, Size};

/// How many pieces of output wait for a person who does not look. What comes after those is not kept:
/// the person gets all of the screen instead.
const WAITING: usize = 64;

/// A person's answer to be.
pub type Asking<'a> = Pin<Box<dyn Future<Output = HumanReply> + Send + 'a>>;

/// Somebody who can be asked.
///
/// ```
/// use shieling::session::{Asking, Human, HumanQuestion, HumanReply};
///
/// struct Oracle;
///
/// impl Human for Oracle {
///     fn ask<'a>(&'a self, question: HumanQuestion) -> Asking<'a> {
///         let answer = format!("you asked {}", question.prompt);
///         Box::pin(std::future::ready(HumanReply::Answer(answer)))
///     }
/// }
/// ```
pub trait Human: Send + Sync {
    /// Asks. Dropping the future takes the question back, and the keyboard, if the person has it.
    fn ask<'a>(&'a self, question: HumanQuestion) -> Asking<'a>;
}

/// What a person is asked. Prompt and screen are an agent's text and a program's: show them escaped.
#[derive(Clone)]
pub struct HumanQuestion {
    /// The agent's words.
    pub prompt: String,
    /// The job that it is about.
    pub job: Option<JobId>,
    /// What stands on its terminal.
    pub screen: Option<Screen>,
    /// The way to take the keyboard of the job, if it has a terminal.
    pub terminal: Option<Arc<dyn TakeOver>>,
}

impl fmt::Debug for HumanQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HumanQuestion")
            .field("prompt", &self.prompt)
            .field("job", &self.job)
            .field("screen", &self.screen)
            .field("terminal", &self.terminal.is_some())
            .finish()
    }
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HumanReply {
    /// The person's words.
    Answer(String),
    /// The person took the keyboard and has given it back.
    TookOver,
    /// The person does not want to answer.
    Declined,
    /// Nobody is there.
    Nobody,
}

/// Nobody, who says so at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyThere;

impl Human for NobodyThere {
    fn ask<'a>(&'a self, _question: HumanQuestion) -> Asking<'a> {
        Box::pin(std::future::ready(HumanReply::Nobody))
    }
}

/// The way to a job's keyboard.
pub trait TakeOver: Send + Sync {
    /// Takes the keyboard. The agent's writes are answered with [`JobError::PersonHolds`] until the
    /// attachment is dropped.
    ///
    /// # Errors
    /// [`JobError::PersonHolds`] if another person has it, [`JobError::Ended`].
    fn attach(&self) -> Result<Attachment, JobError>;
}

/// What a person sees of a job. It is a program's: show it through a [`Painter`](super::Painter).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The terminal from the beginning, in place of all before.
    Anew(Vec<u8>),
    /// More of it.
    More(Vec<u8>),
}

/// What a person does to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Types this.
    Type(Vec<u8>),
    /// Makes its terminal so large.
    Resize(Size),
    /// Looks again after some of the output was missed: the job's watcher is to be told of an output
    /// of nothing.
    Look,
}

/// A job's terminal in a person's hands. Dropping it gives it back.
#[derive(Debug)]
pub struct Attachment {
    size: Size,
    shown: mpsc::Receiver<Shown>,
    deeds: mpsc::Sender<Deed>,
    missed: Arc<AtomicBool>,
    _held: Held,
}

impl Attachment {
    /// The size that the terminal had.
    pub fn size(&self) -> Size {
        self.size
    }

    /// What is to be seen next; none once the job has ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Shown> {
        if self.shown.is_empty() && self.missed.load(Ordering::Acquire) {
            // If it takes nothing, there are deeds in front of this one; the next output shows it all.
            let _ = self.deeds.try_send(Deed::Look);
        }
        self.shown.recv().await
    }

    /// Types this; whether it was taken. It is not if the job has ended, or does not read what was
    /// typed before.
    pub fn write(&self, bytes: &[u8]) -> bool {
        self.deeds.try_send(Deed::Type(bytes.to_vec())).is_ok()
    }

    /// Makes the terminal so large, or as nearly as one can be; whether it was taken.
    pub fn resize(&self, size: Size) -> bool {
        self.deeds.try_send(Deed::Resize(size.clamped())).is_ok()
    }

    /// One of no job, for trying out a [`Human`]: what is sent is shown, until the sender is dropped,
    /// and what the person does comes out at the other end.
    pub fn rehearsed(size: Size) -> (Self, mpsc::Sender<Shown>, mpsc::Receiver<Deed>) {
        let held = Holder::default().take().expect("it is new, so nobody has it");
        let (attachment, onlooker, deeds) = attach(held, size);
        attachment.missed.store(false, Ordering::Release);
        (attachment, onlooker.shown, deeds)
    }
}

/// A person who looks on, as the job sees them.
#[derive(Debug)]
pub(crate) struct Onlooker {
    shown: mpsc::Sender<Shown>,
    /// Whether something was not shown, or nothing yet.
    missed: Arc<AtomicBool>,
}

impl Onlooker {
    /// Shows what was written, or everything after something was missed; whether they still look on.
    pub(crate) fn show(&mut self, bytes: &[u8], whole: impl FnOnce() -> Shown) -> bool {
        match self.shown.try_reserve() {
            Ok(place) => {
                if self.missed.swap(false, Ordering::AcqRel) {
                    place.send(whole());
                } else if !bytes.is_empty() {
                    place.send(Shown::More(bytes.to_vec()));
                }
                true
            }
            Err(mpsc::error::TrySendError::Full(())) => {
                self.missed.store(true, Ordering::Release);
                true
            }
            Err(mpsc::error::TrySendError::Closed(())) => false,
        }
    }
}

/// Puts a job's terminal of this size into a person's hands: their end of it, whom the job shows what
/// it writes, and what they do. Once that has no more, the person has let go.
pub(crate) fn attach(held: Held, size: Size) -> (Attachment, Onlooker, mpsc::Receiver<Deed>) {
    let (show, shown) = mpsc::channel(WAITING);
    let (deeds, done) = mpsc::channel(WAITING);
    let missed = Arc::new(AtomicBool::new(true));
    let attachment = Attachment {
        size,
        shown,
        deeds,
        missed: Arc::clone(&missed),
        _held: held,
    };
    let onlooker = Onlooker { shown: show, missed };
    (attachment, onlooker, done)
}
