use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::termios::{LocalModes, Winsize, tcgetattr, tcgetwinsize, tcsetwinsize};
use shieling::session::{InputEvent, JobError, JobId, Pty, TakeOver};
use tokio::sync::mpsc;

use super::*;

/// How long is waited for what must come.
const LONG: Duration = Duration::from_secs(10);

thread_local! {
    /// The terminal at which the person of this test sits.
    static SEAT: std::cell::RefCell<Option<OwnedFd>> = const { std::cell::RefCell::new(None) };
}

/// The person's terminal, seen from the person's side.
struct Seat {
    ours: Arc<OwnedFd>,
    theirs: OwnedFd,
    seen: String,
}

impl Seat {
    fn new() -> Self {
        let Pty { ours, theirs } = Pty::open(TerminalSize { rows: 11, columns: 60 }).expect("there are terminals");
        rustix::io::ioctl_fionbio(&ours, true).expect("it is a descriptor");
        let own = theirs.try_clone().expect("it can be had twice");
        SEAT.with_borrow_mut(|seat| *seat = Some(own));
        Self {
            ours: Arc::new(ours),
            theirs,
            seen: String::new(),
        }
    }

    /// The person who sits there. Like `/dev/tty`, each opening is one of its own.
    fn person(&self) -> Person {
        Person {
            open_terminal: || {
                SEAT.with_borrow(|seat| {
                    let path = format!(
                        "/proc/self/fd/{}",
                        rustix::fd::AsRawFd::as_raw_fd(seat.as_ref().expect("new"))
                    );
                    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
                    Ok(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?.into())
                })
            },
        }
    }

    /// Waits until the terminal shows this, and types that.
    async fn when(&mut self, text: &str, typed: &str) {
        let waited = tokio::time::timeout(LONG, async {
            while !self.seen.contains(text) {
                let mut buffer = [0; 4096];
                match rustix::io::read(&self.ours, &mut buffer) {
                    Ok(count) => self.seen.push_str(&String::from_utf8_lossy(&buffer[..count])),
                    Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
                }
            }
        });
        assert!(waited.await.is_ok(), "waited for {text:?}: {:?}", self.seen);
        rustix::io::write(&self.ours, typed.as_bytes()).expect("it can be typed");
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.theirs).expect("it is a terminal");
        !modes.local_modes.contains(LocalModes::ICANON)
    }
}

fn question(prompt: &str) -> HumanQuestion {
    HumanQuestion {
        prompt: prompt.to_owned(),
        job: None,
        screen: None,
        terminal: None,
    }
}

/// A job whose keyboard can be taken once.
struct Job(Mutex<Option<Attachment>>);

impl TakeOver for Job {
    fn attach(&self) -> Result<Attachment, JobError> {
        let mut attachment = self.0.lock().expect("nobody panicked");
        attachment.take().ok_or(JobError::PersonHolds {
            job: JobId::numbered(7),
        })
    }
}

fn about_job(size: TerminalSize) -> (HumanQuestion, mpsc::Sender<ScreenUpdate>, mpsc::Receiver<InputEvent>) {
    let (attachment, shown, events) = Attachment::for_testing(size);
    let question = HumanQuestion {
        job: Some(JobId::numbered(7)),
        terminal: Some(Arc::new(Job(Mutex::new(Some(attachment))))),
        ..question("log in, please")
    };
    (question, shown, events)
}

async fn next_event(events: &mut mpsc::Receiver<InputEvent>) -> Option<InputEvent> {
    tokio::time::timeout(LONG, events.recv()).await.expect("it comes")
}

#[test]
fn the_question_shows_what_would_otherwise_hide() {
    let question = HumanQuestion {
        prompt: "which\u{1b}[2J one\r\nof \u{202e}them?".to_owned(),
        job: Some(JobId::numbered(3)),
        screen: Some(Screen {
            size: TerminalSize::default(),
            text: "$ ls\na\u{200b}b".to_owned(),
            cursor: None,
            alternate: false,
            title: "sh\u{9b}31m".to_owned(),
        }),
        terminal: None,
    };
    let mut page = Vec::new();
    write_question(&mut page, &question).unwrap();
    write_instructions(&mut page, &question).unwrap();
    insta::assert_snapshot!(String::from_utf8(page).unwrap().trim(), @r"
    the agent asks, about job `j3`; the marked lines are its own words:
      > which\x1b[2J one\r
      > of \u{202e}them?
    its screen: sh\u{9b}31m
      | $ ls
      | a\u{200b}b
    your answer (`/decline` for none):
    ");
    let mut page = Vec::new();
    write_question(&mut page, &self::question(&"x".repeat(10_000))).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.ends_with("  > [... 1808 bytes more ...]\n"), "{page}");
}

#[tokio::test]
async fn a_line_is_the_answer() {
    for (typed, reply) in [
        ("the second\n", HumanReply::Answer("the second".to_owned())),
        ("\n", HumanReply::Answer(String::new())),
        ("/decline\n", HumanReply::Declined),
        ("\u{4}", HumanReply::Nobody),
    ] {
        let mut seat = Seat::new();
        let person = seat.person();
        let asked = person.ask(question("which one?"));
        let (got, ()) = tokio::join!(asked, seat.when("for none): ", typed));
        assert_eq!(got, reply);
        assert!(!seat.is_raw());
    }
}

#[tokio::test]
async fn what_was_typed_before_the_question_does_not_answer_it() {
    let mut seat = Seat::new();
    rustix::io::write(&seat.ours, b"yes, delete it\n").expect("it can be typed");
    let person = seat.person();
    let asked = tokio::time::timeout(Duration::from_millis(300), person.ask(question("delete?")));
    let (got, ()) = tokio::join!(asked, seat.when("for none): ", ""));
    assert!(got.is_err());
    // And the question that was taken back reads no line of the next one.
    seat.seen.clear();
    let asked = person.ask(question("again?"));
    let (got, ()) = tokio::join!(asked, seat.when("for none): ", "no\n"));
    assert_eq!(got, HumanReply::Answer("no".to_owned()));
}

#[tokio::test]
async fn a_person_takes_the_keyboard_and_gives_it_back() {
    let mut seat = Seat::new();
    let (question, shown, mut events) = about_job(TerminalSize::default());
    let person = seat.person();
    let asked = person.ask(question);
    let (got, ()) = tokio::join!(asked, async {
        seat.when("/take` for its keyboard): ", "/take\n").await;
        let size = TerminalSize { rows: 10, columns: 60 };
        assert_eq!(next_event(&mut events).await, Some(InputEvent::Resize(size)));
        assert!(seat.is_raw());
        let written = b"\x1b]0;owned\x07\x1b[6nPassword: ".to_vec();
        shown.send(ScreenUpdate::Reset(written)).await.expect("they look on");
        seat.when("Password:", "hunter2\r\x03").await;
        assert_eq!(
            next_event(&mut events).await,
            Some(InputEvent::Type(b"hunter2\r\x03".to_vec()))
        );
        shown
            .send(ScreenUpdate::Append(b"welcome".to_vec()))
            .await
            .expect("they look on");
        seat.when("welcome", "x\x1dnot for the job").await;
        assert_eq!(next_event(&mut events).await, Some(InputEvent::Type(b"x".to_vec())));
        assert_eq!(
            next_event(&mut events).await,
            Some(InputEvent::Resize(TerminalSize::default()))
        );
        assert_eq!(next_event(&mut events).await, None);
    });
    assert_eq!(got, HumanReply::TookOver);
    seat.when("\u{1b}[?1049l", "").await;
    assert!(!seat.is_raw());
    assert!(seat.seen.contains("Ctrl-] gives it back"), "{:?}", seat.seen);
    assert!(
        !seat.seen.contains("owned") && !seat.seen.contains("\u{1b}[6n"),
        "{:?}",
        seat.seen
    );
}

#[tokio::test]
async fn the_keyboard_comes_back_when_the_job_ends_and_when_nobody_waits_any_more() {
    let mut seat = Seat::new();
    let (question, shown, events) = about_job(TerminalSize::default());
    let person = seat.person();
    let (got, ()) = tokio::join!(person.ask(question), async {
        seat.when("keyboard): ", "/take\n").await;
        seat.when("Ctrl-]", "").await;
        drop((shown, events));
    });
    assert_eq!((got, seat.is_raw()), (HumanReply::TookOver, false));

    let mut seat = Seat::new();
    let (question, _shown, mut events) = about_job(TerminalSize::default());
    let person = seat.person();
    let asked = tokio::time::timeout(Duration::from_millis(500), person.ask(question));
    let (got, ()) = tokio::join!(asked, seat.when("keyboard): ", "/take\n"));
    assert!(got.is_err() && !seat.is_raw());
    assert!(matches!(next_event(&mut events).await, Some(InputEvent::Resize(_))));
    assert_eq!(next_event(&mut events).await, None);
}

#[tokio::test]
async fn a_keyboard_that_cannot_be_taken_is_told_and_asked_about_again() {
    let mut seat = Seat::new();
    let taken = HumanQuestion {
        terminal: Some(Arc::new(Job(Mutex::new(None)))),
        ..question("log in")
    };
    let person = seat.person();
    let (got, ()) = tokio::join!(person.ask(taken), async {
        seat.when("keyboard): ", "/take\n").await;
        seat.when("a person has control of job `j7`", "").await;
        seat.when(
            "given back\r\nyour answer (`/decline` for none, `/take` for its keyboard): ",
            "well\n",
        )
        .await;
    });
    assert_eq!(got, HumanReply::Answer("well".to_owned()));
    let (got, ()) = tokio::join!(person.ask(question("log in")), async {
        seat.seen.clear();
        seat.when("for none): ", "/take\n").await;
        seat.when(
            "no terminal to take\r\nyour answer (`/decline` for none): ",
            "/decline\n",
        )
        .await;
    });
    assert_eq!(got, HumanReply::Declined);
}

#[test]
fn a_window_leaves_a_line_for_the_hint() {
    let pair = Pty::open(TerminalSize::default()).expect("there are terminals");
    let size = Winsize {
        ws_row: 1,
        ws_col: 9_999,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&pair.theirs, size).expect("it can be set");
    let got = tcgetwinsize(&pair.ours).expect("it is a terminal");
    let own = TerminalSize {
        rows: got.ws_row,
        columns: got.ws_col,
    };
    assert_eq!(
        without_hint(Some(own), TerminalSize::default()),
        TerminalSize {
            rows: 1,
            columns: 1_000
        }
    );
    assert_eq!(without_hint(None, TerminalSize::default()), TerminalSize::default());
}
