use std::future::Future as _;

use super::super::control::Holder;
use super::super::human::{Attachment, Deed, attach};
use super::super::{Keyboard, Painter};
use super::*;

const SIZE: Size = Size { rows: 3, columns: 20 };

fn watched() -> Watched {
    Watched::new(Some(Emulator::new(SIZE)), None)
}

/// What the person sees once all that waits for them was shown.
fn seen(person: &mut Attachment, painter: &mut Painter) -> String {
    while let Ok(Some(shown)) = waiting(person) {
        match shown {
            Shown::Anew(bytes) => {
                *painter = Painter::new(SIZE, Keyboard::Ours);
                painter.output(&bytes);
            }
            Shown::More(bytes) => painter.output(&bytes),
        }
    }
    painter.screen().text
}

/// What waits, without waiting for more.
fn waiting(person: &mut Attachment) -> Result<Option<Shown>, ()> {
    let next = std::pin::pin!(person.next());
    match next.poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(shown) => Ok(shown),
        std::task::Poll::Pending => Err(()),
    }
}

#[test]
fn a_person_who_comes_later_sees_all_of_the_screen() {
    let (mut watched, holder) = (watched(), Holder::default());
    watched.output(Stream::Stdout, b"\x1b[2;3Hbefore");
    let (mut person, onlooker, _deeds) = attach(holder.take().expect("nobody has it"), SIZE);
    watched.attach(onlooker);
    let mut painter = Painter::new(SIZE, Keyboard::Ours);
    assert_eq!(seen(&mut person, &mut painter), "\n  before");
    watched.output(Stream::Stdout, b" after");
    assert_eq!(seen(&mut person, &mut painter), "\n  before after");
    assert!(holder.person());
}

#[test]
fn a_person_who_does_not_look_holds_nothing_up_and_misses_nothing() {
    let (mut watched, holder) = (watched(), Holder::default());
    let (mut person, onlooker, mut deeds) = attach(holder.take().expect("nobody has it"), SIZE);
    watched.attach(onlooker);
    for number in 0..1_000 {
        watched.output(Stream::Stdout, format!("\r\n{number}").as_bytes());
    }
    let mut painter = Painter::new(SIZE, Keyboard::Ours);
    assert_ne!(seen(&mut person, &mut painter), "997\n998\n999");
    // Nothing more is written, but the person has caught up and wants to see the rest.
    assert_eq!(deeds.try_recv(), Ok(Deed::Look));
    watched.output(Stream::Stdout, b"");
    assert_eq!(seen(&mut person, &mut painter), "997\n998\n999");
    watched.output(Stream::Stdout, b"!");
    assert_eq!(seen(&mut person, &mut painter), "997\n998\n999!");
    assert!(deeds.try_recv().is_err());
}

#[tokio::test]
async fn what_a_person_does_comes_in_order_until_they_let_go() {
    let (mut watched, holder) = (watched(), Holder::default());
    let (person, onlooker, mut deeds) = attach(holder.take().expect("nobody has it"), SIZE);
    watched.attach(onlooker);
    assert!(person.write(b"ls\r"));
    assert!(person.resize(Size {
        rows: 0,
        columns: 9_999
    }));
    drop(person);
    assert_eq!(deeds.recv().await, Some(Deed::Type(b"ls\r".to_vec())));
    let drawn_in = Size {
        rows: 1,
        columns: 1_000,
    };
    assert_eq!(deeds.recv().await, Some(Deed::Resize(drawn_in)));
    assert_eq!(deeds.recv().await, None);
    assert!(!holder.person());
    watched.output(Stream::Stdout, b"nobody looks");
    assert!(watched.person.is_none());
}

#[tokio::test]
async fn a_job_that_ends_tells_the_person_who_looks_on() {
    let (mut watched, holder) = (watched(), Holder::default());
    let (mut person, onlooker, deeds) = attach(holder.take().expect("nobody has it"), SIZE);
    watched.attach(onlooker);
    watched.output(Stream::Stdout, b"bye");
    drop((watched, deeds));
    assert!(matches!(person.next().await, Some(Shown::Anew(_))));
    assert_eq!(person.next().await, Some(Shown::More(b"bye".to_vec())));
    assert_eq!(person.next().await, None);
    assert!(!person.write(b"too late"));
}

#[test]
fn without_a_terminal_there_is_no_screen_and_enter_is_a_line_end() {
    let watched = Watched::default();
    assert_eq!(watched.screen(), None);
    assert_eq!(watched.keys(&["Enter".to_owned()]), Ok(b"\n".to_vec()));
    let mut terminal = self::watched();
    terminal.output(Stream::Stdout, b"\x1b[?1h\x1b[6n");
    assert_eq!(terminal.keys(&["Up".to_owned()]), Ok(b"\x1bOA".to_vec()));
    assert_eq!(terminal.replies(), b"\x1b[1;1R");
}
