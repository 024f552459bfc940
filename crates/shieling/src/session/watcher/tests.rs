use std::future::Future as _;

use super::super::human::{Attachment, InputEvent, attach};
use super::super::keyboard::KeyboardLock;
use super::super::{KeyTarget, Renderer};
use super::*;

const SIZE: TerminalSize = TerminalSize { rows: 3, columns: 20 };

fn watched() -> Watchers {
    Watchers::new(Some(Emulator::new(SIZE)), None)
}

/// What the person sees once all that waits for them was shown.
fn seen(person: &mut Attachment, renderer: &mut Renderer) -> String {
    while let Ok(Some(shown)) = waiting(person) {
        match shown {
            ScreenUpdate::Reset(bytes) => {
                *renderer = Renderer::new(SIZE, KeyTarget::Viewer);
                renderer.output(&bytes);
            }
            ScreenUpdate::Append(bytes) => renderer.output(&bytes),
        }
    }
    renderer.screen().text
}

/// What waits, without waiting for more.
fn waiting(person: &mut Attachment) -> Result<Option<ScreenUpdate>, ()> {
    let next = std::pin::pin!(person.next());
    match next.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(shown) => Ok(shown),
        std::task::Poll::Pending => Err(()),
    }
}

#[test]
fn a_person_who_comes_later_sees_all_of_the_screen() {
    let (mut watched, lock) = (watched(), KeyboardLock::default());
    watched.output(Stream::Stdout, b"\x1b[2;3Hbefore");
    let (mut person, viewer, _events) = attach(lock.take().expect("nobody has it"), SIZE);
    watched.attach(viewer);
    let mut renderer = Renderer::new(SIZE, KeyTarget::Viewer);
    assert_eq!(seen(&mut person, &mut renderer), "\n  before");
    watched.output(Stream::Stdout, b" after");
    assert_eq!(seen(&mut person, &mut renderer), "\n  before after");
    assert!(lock.is_held());
}

#[test]
fn a_person_who_does_not_look_holds_nothing_up_and_misses_nothing() {
    let (mut watched, lock) = (watched(), KeyboardLock::default());
    let (mut person, viewer, mut events) = attach(lock.take().expect("nobody has it"), SIZE);
    watched.attach(viewer);
    for number in 0..1_000 {
        watched.output(Stream::Stdout, format!("\r\n{number}").as_bytes());
    }
    let mut renderer = Renderer::new(SIZE, KeyTarget::Viewer);
    assert_ne!(seen(&mut person, &mut renderer), "997\n998\n999");
    // Nothing more is written, but the person has caught up and wants to see the rest.
    assert_eq!(events.try_recv(), Ok(InputEvent::Refresh));
    watched.output(Stream::Stdout, b"");
    assert_eq!(seen(&mut person, &mut renderer), "997\n998\n999");
    watched.output(Stream::Stdout, b"!");
    assert_eq!(seen(&mut person, &mut renderer), "997\n998\n999!");
    assert!(events.try_recv().is_err());
}

#[tokio::test]
async fn what_a_person_does_comes_in_order_until_they_let_go() {
    let (mut watched, lock) = (watched(), KeyboardLock::default());
    let (person, viewer, mut events) = attach(lock.take().expect("nobody has it"), SIZE);
    watched.attach(viewer);
    assert!(person.write(b"ls\r"));
    assert!(person.resize(TerminalSize {
        rows: 0,
        columns: 9_999
    }));
    drop(person);
    assert_eq!(events.recv().await, Some(InputEvent::Type(b"ls\r".to_vec())));
    let drawn_in = TerminalSize {
        rows: 1,
        columns: 1_000,
    };
    assert_eq!(events.recv().await, Some(InputEvent::Resize(drawn_in)));
    assert_eq!(events.recv().await, None);
    assert!(!lock.is_held());
    watched.output(Stream::Stdout, b"nobody looks");
    assert!(watched.person.is_none());
}

#[tokio::test]
async fn a_job_that_ends_tells_the_person_who_looks_on() {
    let (mut watched, lock) = (watched(), KeyboardLock::default());
    let (mut person, viewer, events) = attach(lock.take().expect("nobody has it"), SIZE);
    watched.attach(viewer);
    watched.output(Stream::Stdout, b"bye");
    drop((watched, events));
    assert!(matches!(person.next().await, Some(ScreenUpdate::Reset(_))));
    assert_eq!(person.next().await, Some(ScreenUpdate::Append(b"bye".to_vec())));
    assert_eq!(person.next().await, None);
    assert!(!person.write(b"too late"));
}

#[test]
fn without_a_terminal_there_is_no_screen_and_enter_is_a_line_end() {
    let watched = Watchers::default();
    assert_eq!(watched.screen(), None);
    assert_eq!(watched.keys(&["Enter".to_owned()]), Ok(b"\n".to_vec()));
    let mut terminal = self::watched();
    terminal.output(Stream::Stdout, b"\x1b[?1h\x1b[6n");
    assert_eq!(terminal.keys(&["Up".to_owned()]), Ok(b"\x1bOA".to_vec()));
    assert_eq!(terminal.replies(), b"\x1b[1;1R");
}
