//! A person who can be asked, and who can take over the keyboard of a job. The program that embeds the library
//! provides the person, if there is one.
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

use super::keyboard::{KeyboardGuard, KeyboardLock};
use super::{JobError, JobId, Screen, TerminalSize};

/// The number of pieces of output that wait for a person. When there are more, the person receives the whole screen
/// instead.
const QUEUE_LENGTH: usize = 64;

/// The future of a reply.
pub type ReplyFuture<'a> = Pin<Box<dyn Future<Output = HumanReply> + Send + 'a>>;

/// A person who can be asked.
///
/// ```
/// use shieling::session::{ReplyFuture, Human, HumanQuestion, HumanReply};
///
/// struct Oracle;
///
/// impl Human for Oracle {
///     fn ask<'a>(&'a self, question: HumanQuestion) -> ReplyFuture<'a> {
///         let answer = format!("you asked {}", question.prompt);
///         Box::pin(std::future::ready(HumanReply::Answer(answer)))
///     }
/// }
/// ```
pub trait Human: Send + Sync {
    /// Asks a question. Dropping the future withdraws the question, and takes the keyboard back if the person has it.
    fn ask<'a>(&'a self, question: HumanQuestion) -> ReplyFuture<'a>;
}

/// A question to a person. The prompt comes from an agent and the screen from a program: escape both before display.
#[derive(Clone)]
pub struct HumanQuestion {
    /// The agent's words.
    pub prompt: String,
    /// The job that the question is about.
    pub job: Option<JobId>,
    /// The contents of the job's terminal.
    pub screen: Option<Screen>,
    /// Lets the person take over the keyboard of the job, if the job has a terminal.
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

/// The reply to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HumanReply {
    /// The person answered with these words.
    Answer(String),
    /// The person took over the keyboard and has given it back.
    TookOver,
    /// The person declined to answer.
    Declined,
    /// No person is available.
    Nobody,
}

/// The absence of a person. Replies [`HumanReply::Nobody`] at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHuman;

impl Human for NoHuman {
    fn ask<'a>(&'a self, _question: HumanQuestion) -> ReplyFuture<'a> {
        Box::pin(std::future::ready(HumanReply::Nobody))
    }
}

/// Access to the keyboard of a job.
pub trait TakeOver: Send + Sync {
    /// Takes over the keyboard. The agent's writes fail with [`JobError::PersonHolds`] until the attachment is
    /// dropped.
    ///
    /// # Errors
    /// [`JobError::PersonHolds`] if another person has the keyboard, [`JobError::Ended`] if the job has ended.
    fn attach(&self) -> Result<Attachment, JobError>;
}

/// Output of a job for a person. It is untrusted: display it through a [`Renderer`](super::Renderer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenUpdate {
    /// The whole screen, which replaces everything before.
    Reset(Vec<u8>),
    /// More output.
    Append(Vec<u8>),
}

/// An input event of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputEvent {
    /// The person typed these bytes.
    Type(Vec<u8>),
    /// The person resized the terminal.
    Resize(TerminalSize),
    /// The person is ready for output after some was dropped. The job then sends the whole screen.
    Refresh,
}

/// A person's connection to a job's terminal. Dropping it gives the keyboard back.
#[derive(Debug)]
pub struct Attachment {
    size: TerminalSize,
    shown: mpsc::Receiver<ScreenUpdate>,
    events: mpsc::Sender<InputEvent>,
    missed: Arc<AtomicBool>,
    _held: KeyboardGuard,
}

impl Attachment {
    /// Returns the size of the terminal at the time of the connection.
    pub fn size(&self) -> TerminalSize {
        self.size
    }

    /// Waits for the next output. Returns `None` once the job has ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<ScreenUpdate> {
        if self.shown.is_empty() && self.missed.load(Ordering::Acquire) {
            // If the queue is full, the events before this one lead to an output, which sends the whole screen.
            let _ = self.events.try_send(InputEvent::Refresh);
        }
        self.shown.recv().await
    }

    /// Types bytes. Returns `false` if the job has ended, or has not yet read what was typed before.
    pub fn write(&self, bytes: &[u8]) -> bool {
        self.events.try_send(InputEvent::Type(bytes.to_vec())).is_ok()
    }

    /// Resizes the terminal to the nearest valid size. Returns `false` if the job has ended.
    pub fn resize(&self, size: TerminalSize) -> bool {
        self.events.try_send(InputEvent::Resize(size.clamped())).is_ok()
    }

    /// Creates a connection without a job, for tests of a [`Human`]: the caller sends the output and receives the
    /// events.
    pub fn for_testing(size: TerminalSize) -> (Self, mpsc::Sender<ScreenUpdate>, mpsc::Receiver<InputEvent>) {
        let held = KeyboardLock::default().take().expect("it is new, so nobody has it");
        let (attachment, viewer, events) = attach(held, size);
        attachment.missed.store(false, Ordering::Release);
        (attachment, viewer.shown, events)
    }
}

/// The job's side of a person's connection.
#[derive(Debug)]
pub(crate) struct Viewer {
    shown: mpsc::Sender<ScreenUpdate>,
    /// Whether output was dropped, or none was sent yet.
    missed: Arc<AtomicBool>,
}

impl Viewer {
    /// Sends output, or the whole screen if output was dropped before. Returns whether the person is still connected.
    pub(crate) fn show(&mut self, bytes: &[u8], whole: impl FnOnce() -> ScreenUpdate) -> bool {
        match self.shown.try_reserve() {
            Ok(place) => {
                if self.missed.swap(false, Ordering::AcqRel) {
                    place.send(whole());
                } else if !bytes.is_empty() {
                    place.send(ScreenUpdate::Append(bytes.to_vec()));
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

/// Connects a person to a job's terminal: returns the person's side, the job's side, and the person's events. The
/// event queue closes when the person gives the keyboard back.
pub(crate) fn attach(held: KeyboardGuard, size: TerminalSize) -> (Attachment, Viewer, mpsc::Receiver<InputEvent>) {
    let (show, shown) = mpsc::channel(QUEUE_LENGTH);
    let (events, done) = mpsc::channel(QUEUE_LENGTH);
    let missed = Arc::new(AtomicBool::new(true));
    let attachment = Attachment {
        size,
        shown,
        events,
        missed: Arc::clone(&missed),
        _held: held,
    };
    let viewer = Viewer { shown: show, missed };
    (attachment, viewer, done)
}
