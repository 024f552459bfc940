//! Peers that are broken, hostile, silent or of another version, at either end.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use shieling::environment::Environment as _;
use shieling::outcome::Status;
use shieling::process::Streams;
use shieling_remote::{LinkError, Timing};
use shieling_testkit::{Marker, approved};

use super::support::{command, connect, facade, local, marked, memory, nothing_left, served, served_over, soon};

/// What each side says first.
const HELLO: &[u8] = b"shieling\x04\0\0\0";
/// How long a header is.
const HEADER: usize = 9;
/// A frame of credit, by the upper half of its kind.
const CREDIT: u8 = 0x30;

/// Patience for peers that say nothing.
const SHORT: Timing = Timing {
    beat: Duration::from_millis(100),
    max_silence: Duration::from_millis(500),
};

/// Patience in which a busy machine still lets both sides give signs of life.
const LIVELY: Timing = Timing {
    beat: Duration::from_millis(100),
    max_silence: Duration::from_secs(3),
};

/// One frame, as its bytes.
fn frame(stream: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER];
    stream.read_exact(&mut bytes)?;
    let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    bytes.resize(HEADER + length, 0);
    stream.read_exact(&mut bytes[HEADER..])?;
    Ok(bytes)
}

fn header(length: u32, kind: u8, call: u32) -> Vec<u8> {
    let (length, call) = (length.to_le_bytes(), call.to_le_bytes());
    [&length[..], &[kind], &call].concat()
}

/// What a far side says first of all: its version, and what its environment is.
fn description() -> Vec<u8> {
    let (mut near, far) = served(memory(), Timing::default());
    let mut hello = [0; 12];
    near.read_exact(&mut hello).expect("it says its version");
    assert_eq!(hello, HELLO);
    near.write_all(HELLO).expect("it is read");
    let described = frame(&mut near).expect("it says what it is");
    drop((near, far));
    [HELLO, &described].concat()
}

/// How a near side that hears these bytes and then an end sees it.
fn near_hears(bytes: &[u8], timing: Timing) -> Result<(), LinkError> {
    let (near, mut far) = UnixStream::pair().expect("a pair");
    let bytes = bytes.to_vec();
    let writing = std::thread::spawn(move || {
        // Whoever has heard enough does not read the rest.
        let _ = far.write_all(&bytes);
        let _ = far.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut far, &mut std::io::sink());
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let heard = runtime.block_on(soon("hearing", async {
        let remote = connect(near, timing).await?;
        let ran = remote
            .spawn(approved(command("true", Path::new("/work"))), Streams::Output)
            .await;
        assert!(ran.is_err(), "nobody is there to run it");
        drop(remote);
        Ok(())
    }));
    writing.join().expect("no panic");
    heard
}

/// How a far side that hears these bytes and then an end sees it.
fn far_hears(bytes: &[u8]) -> LinkError {
    let (mut near, far) = served(memory(), Timing::default());
    let mut reading = near.try_clone().expect("a copy");
    let reading = std::thread::spawn(move || std::io::copy(&mut reading, &mut std::io::sink()));
    let _ = near.write_all(bytes);
    let _ = near.shutdown(Shutdown::Write);
    let end = far.end();
    drop(near);
    let _ = reading.join().expect("no panic");
    end
}

#[test]
fn a_peer_of_another_version_is_told_from_either_end_and_so_is_no_peer() {
    let of = |version: u32| [&HELLO[..8], &version.to_le_bytes()].concat();
    for (version, word) in [(3, "older"), (5, "newer")] {
        for said in [
            near_hears(&of(version), Timing::default())
                .expect_err("another version")
                .to_string(),
            far_hears(&of(version)).to_string(),
        ] {
            let expected = format!(
                "the other side speaks version {version} of the protocol and this one version 4: it is {word}; \
                 use the same shieling at both ends"
            );
            assert_eq!(said, expected);
        }
    }
    let said = near_hears(b"bash: line 1: shieling: not found\n", Timing::default()).expect_err("no peer");
    assert_eq!(
        said.to_string(),
        "what answers is not shieling: its first bytes are \"bash: line 1: shieling: not found\\n\""
    );
    assert_eq!(far_hears(b""), LinkError::Ended);
}

#[test]
fn a_peer_that_says_nothing_is_given_up_within_the_patience() {
    let (near, _far) = UnixStream::pair().expect("a pair");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let begun = Instant::now();
    let silent = runtime.block_on(connect(near, SHORT)).expect_err("nobody is there");
    assert!(matches!(silent, LinkError::Silent { .. }), "{silent}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    // And the far side ends what it runs if the near side falls silent.
    let (_near, far) = served(memory(), SHORT);
    assert!(matches!(far.end(), LinkError::Silent { .. }));
}

#[test]
fn a_link_on_which_nothing_happens_stays_by_its_signs_of_life() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (near, _far) = served(memory(), LIVELY);
    runtime.block_on(async {
        let remote = connect(near, LIVELY).await.expect("a link");
        tokio::time::sleep(LIVELY.max_silence * 3 / 2).await;
        assert_eq!(remote.end(), None);
    });
}

#[test]
fn lengths_that_no_frame_has_end_the_link_and_take_no_memory() {
    let described = description();
    for kind in [0x01, 0x10, 0x11, 0x20, 0x30, 0x40] {
        for length in [u32::MAX, 1 << 30, 4 * 1024 * 1024 + 1] {
            let wrong = header(length, kind, 1);
            let end = far_hears(&[HELLO, &wrong].concat());
            assert!(matches!(end, LinkError::Violated(_)), "{kind:#x} {length}: {end}");
            // It has ended before or after it was connected.
            let _ = near_hears(&[&described[..], &wrong].concat(), Timing::default());
        }
    }
    // A length that is allowed and never comes.
    assert_eq!(
        far_hears(&[HELLO, &header(4 * 1024 * 1024, 1, 1), b"x"].concat()),
        LinkError::Ended
    );
}

#[test]
fn a_near_side_that_only_stops_to_write_has_everything_ended() {
    let (mut near, far) = served(memory(), Timing::default());
    near.write_all(HELLO).expect("it is read");
    near.shutdown(Shutdown::Write).expect("ours");
    assert_eq!(far.end(), LinkError::Ended);
    let mut rest = Vec::new();
    near.read_to_end(&mut rest).expect("it has an end");
}

/// Carries frames from one side to the other but those that are not let through.
fn filtered(mut from: UnixStream, mut to: UnixStream, passes: impl Fn(u8) -> bool + Send + 'static) {
    std::thread::spawn(move || {
        let mut hello = [0; 12];
        let carried = from.read_exact(&mut hello).and_then(|()| to.write_all(&hello));
        while let (Ok(()), Ok(bytes)) = (&carried, frame(&mut from)) {
            if passes(bytes[4]) && to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_never_grants_credit_holds_up_only_what_needs_it() {
    let (near, near_far) = UnixStream::pair().expect("a pair");
    let (far_near, far) = UnixStream::pair().expect("a pair");
    let copy = |stream: &UnixStream| stream.try_clone().expect("a copy");
    filtered(copy(&near_far), copy(&far_near), |kind| kind & 0xf0 != CREDIT);
    filtered(far_near, near_far, |_| true);
    let far = served_over(local(Path::new("/tmp")), far, Timing::default());
    let remote = connect(near, Timing::default()).await.expect("a link");
    let shieling = facade(remote, "/tmp");
    let marker = Marker::new();
    let flood = marked(command("exec cat /dev/zero", Path::new("/tmp")), &marker);
    let flood = flood.with_deadline(Duration::from_secs(2)).expect("some");
    let small = async {
        for _ in 0..10 {
            let outcome = shieling.run(command("echo small", Path::new("/tmp")), None).await;
            assert_eq!(outcome.stdout, "small\n");
        }
    };
    let (outcome, ()) = soon("no credit", async { tokio::join!(shieling.run(flood, None), small) }).await;
    assert_eq!(outcome.status, Status::TimedOut, "{outcome:?}");
    nothing_left(&marker);
    drop((shieling, far));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_orders_than_a_slow_link_takes_at_once_wait_for_their_turn() {
    let (near, near_far) = UnixStream::pair().expect("a pair");
    let (far_near, far) = UnixStream::pair().expect("a pair");
    let copy = |stream: &UnixStream| stream.try_clone().expect("a copy");
    let begun = Instant::now();
    // Nothing but the first word for a while, and all of it then.
    filtered(copy(&near_far), copy(&far_near), move |_| {
        std::thread::sleep(Duration::from_millis(700).saturating_sub(begun.elapsed()));
        true
    });
    filtered(far_near, near_far, |_| true);
    let far = served_over(local(Path::new("/tmp")), far, Timing::default());
    let remote = connect(near, Timing::default()).await.expect("a link");
    let text = format!("true {}; echo done", "x".repeat(1000 * 1000));
    let mut starting = tokio::task::JoinSet::new();
    let remote = Arc::new(remote);
    for _ in 0..48 {
        let (remote, command) = (Arc::clone(&remote), command(&text, Path::new("/tmp")));
        starting.spawn(async move { remote.spawn(approved(command), Streams::Output).await.map(drop) });
    }
    soon("all of them", async {
        while let Some(started) = starting.join_next().await {
            started.expect("no panic").expect("it is started");
        }
    })
    .await;
    assert_eq!(remote.end(), None);
    drop((remote, far));
}

fn kinds() -> impl Strategy<Value = u8> {
    prop_oneof![
        Just(0x00),
        Just(0x01),
        (0_u8..3).prop_map(|channel| 0x10 | channel),
        (0_u8..3).prop_map(|channel| 0x20 | channel),
        (0_u8..3).prop_map(|channel| 0x30 | channel),
        (0_u8..3).prop_map(|channel| 0x40 | channel),
        any::<u8>(),
    ]
}

/// Frames that are well-formed from outside.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let one = (kinds(), 0_u32..4, proptest::collection::vec(any::<u8>(), 0..40));
    proptest::collection::vec(one, 0..12).prop_map(|frames| {
        let frames = frames.into_iter().map(|(kind, call, body)| {
            let length = u32::try_from(body.len()).expect("it is short");
            [header(length, kind, call), body].concat()
        });
        frames.collect::<Vec<_>>().concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic_the_far_side(bytes in prop_oneof![frames(), proptest::collection::vec(any::<u8>(), 0..200)]) {
        far_hears(&[HELLO, &bytes].concat());
    }

    #[test]
    fn no_bytes_panic_the_near_side(bytes in prop_oneof![frames(), proptest::collection::vec(any::<u8>(), 0..200)]) {
        thread_local!(static DESCRIBED: Vec<u8> = description());
        let described = DESCRIBED.with(Clone::clone);
        let _ = near_hears(&[&described[..], &bytes].concat(), Timing::default());
    }
}
