//! How programs end, and that nothing of them is left.

use std::time::{Duration, Instant};

use shieling::outcome::Status;
use shieling::policy::Policy;
use shieling::process::{Received, SendError};
use shieling::units::ByteCount;
use shieling_testkit::leftovers;

use crate::support::{SOON, eventually, everywhere, everywhere_with, receive, receive_all};

#[tokio::test]
async fn exit_codes_and_signals_are_told_twice_alike() {
    everywhere(async |at| {
        for (text, status, code) in [
            ("exit 0", Status::Exited, 0),
            ("exit 255", Status::Exited, 255),
            ("no-such-program", Status::Exited, 127),
            ("kill -TERM $$", Status::Signalled, 143),
            ("kill -9 $$", Status::Signalled, 137),
        ] {
            let started = at.start(text).await;
            let outcome = started.wait().await;
            assert_eq!((outcome.status, outcome.exit_code), (status, Some(code)), "{text}");
            assert_eq!(started.returncode(), Some(code), "{text}");
            let signal = (status == Status::Signalled).then_some(code - 128);
            assert_eq!((started.signal(), outcome.signal), (signal, signal), "{text}");
            assert_eq!(started.wait().await, outcome, "waiting again gives the same");
        }
    })
    .await;
}

#[tokio::test]
async fn the_return_code_is_known_without_waiting() {
    everywhere(async |at| {
        let started = at.start("echo unread; exit 7").await;
        eventually("it has ended", || started.returncode() == Some(7)).await;
        assert_eq!(receive_all(&started).await, b"unread\n", "what it wrote is still there");
    })
    .await;
}

#[tokio::test]
async fn a_kill_ends_the_whole_tree() {
    everywhere(async |at| {
        for text in [
            "echo up; sleep 1000 & wait",
            "sleep 1000 & sleep 1000 & echo up; read x",
            "setsid sh -c 'sleep 1000; :' & echo up; sleep 1000",
            "(setsid sh -c 'trap \"\" TERM; echo up; sleep 1000; sleep 1000' &) ; sleep 1000",
            "trap '' TERM HUP INT; echo up; while :; do sleep 1000; done",
        ] {
            let started = at.start(text).await;
            assert_eq!(receive(&started, 3).await, b"up\n", "{text}");
            let outcome = started.kill().await;
            assert_eq!(outcome.survivors, 0, "{text}");
            assert_eq!(outcome.status, Status::Signalled, "{text}: {outcome:?}");
            at.nobody_is_left();
            assert_eq!(started.recv(SOON).await, Received::End, "{text}");
            assert_eq!(started.kill().await, outcome, "{text}: a second kill tells the same");
        }
    })
    .await;
}

#[tokio::test]
async fn what_has_ended_by_itself_is_not_called_killed() {
    everywhere(async |at| {
        let started = at.start("sleep 1000 & exit 5").await;
        eventually("its main process has ended", || started.returncode().is_some()).await;
        let outcome = started.kill().await;
        assert_eq!((outcome.status, outcome.exit_code), (Status::Exited, Some(5)));
        assert_eq!((outcome.survivors, outcome.ended_processes), (0, 1));
    })
    .await;
}

#[tokio::test]
async fn what_is_left_in_the_background_goes_on_until_somebody_waits() {
    everywhere(async |at| {
        let started = at.start("(sleep 0.5; echo later; sleep 1000) & exit 0").await;
        eventually("its main process has ended", || started.returncode() == Some(0)).await;
        assert_eq!(receive(&started, 6).await, b"later\n");
        let outcome = started.wait().await;
        assert_eq!((outcome.exit_code, outcome.survivors), (Some(0), 0));
        at.nobody_is_left();
    })
    .await;
}

#[tokio::test]
async fn waiting_keeps_the_ends_of_what_was_not_received() {
    everywhere(async |at| {
        let command = at
            .command("echo first; read x; seq 1 200000; echo last")
            .with_output_kept(ByteCount::bytes(1_000))
            .unwrap();
        let started = at.started(command).await;
        assert_eq!(receive(&started, 6).await, b"first\n");
        started.send(b"\n").await.unwrap();
        let outcome = started.wait().await;
        let expected: u64 = (1..=200_000_u32).map(|n| n.to_string().len() as u64 + 1).sum::<u64>() + 11;
        assert_eq!(outcome.stdout_bytes, expected);
        assert!(outcome.truncated && outcome.stdout.len() < 1_200, "{}", outcome.stdout);
        assert!(outcome.stdout.starts_with("1\n2\n") && outcome.stdout.ends_with("200000\nlast\n"));
    })
    .await;
}

#[tokio::test]
async fn a_wait_that_is_given_up_can_be_repeated() {
    everywhere(async |at| {
        let started = at.start("echo kept; read x; exit 6").await;
        let given_up = tokio::time::timeout(Duration::from_millis(200), started.wait()).await;
        assert!(given_up.is_err());
        started.send(b"go\n").await.unwrap();
        let outcome = started.wait().await;
        assert_eq!((outcome.exit_code, outcome.stdout.as_str()), (Some(6), "kept\n"));
    })
    .await;
}

#[tokio::test]
async fn the_deadline_ends_it_though_nobody_looks() {
    everywhere(async |at| {
        let text = "echo early; read x; echo late; setsid sleep 1000 & sleep 1000";
        let command = at.command(text).with_deadline(Duration::from_secs(2)).unwrap();
        let started = at.started(command).await;
        assert_eq!(receive(&started, 6).await, b"early\n");
        started.send(b"\n").await.unwrap();
        eventually("it has ended", || started.returncode().is_some()).await;
        at.nobody_left().await;
        assert!(matches!(
            started.send(&[0; 1_000_000]).await,
            Err(SendError::NobodyReads { .. })
        ));
        let outcome = started.wait().await;
        assert_eq!((outcome.status, outcome.exit_code), (Status::TimedOut, Some(124)));
        assert_eq!((outcome.stdout.as_str(), outcome.stdout_bytes), ("late\n", 11));
        assert_eq!(outcome.survivors, 0);
        assert!(outcome.duration_ms >= 2_000.0, "{}", outcome.duration_ms);
    })
    .await;
}

#[tokio::test]
async fn what_was_written_before_the_deadline_can_be_received_after_it() {
    everywhere(async |at| {
        let command = at.command("echo early; sleep 1000");
        let command = command.with_deadline(Duration::from_secs(1)).unwrap();
        let started = at.started(command).await;
        eventually("it has ended", || started.returncode().is_some()).await;
        assert_eq!(receive_all(&started).await, b"early\n");
        assert_eq!(started.wait().await.status, Status::TimedOut);
    })
    .await;
}

#[tokio::test]
async fn a_limit_of_all_output_counts_what_is_received() {
    let limited = |builder: shieling::Builder| builder.output_limit(ByteCount::bytes(1_000_000));
    everywhere_with(Policy::open, limited, async |at| {
        let started = at.start("yes").await;
        let received = receive_all(&started).await;
        let outcome = started.wait().await;
        assert_eq!(outcome.status, Status::OutputLimit);
        let (counted, received) = (outcome.stdout_bytes, received.len());
        assert!(
            counted > 1_000_000 && received < 2_000_000,
            "{counted} bytes counted, {received} received"
        );
        assert_eq!(outcome.survivors, 0);
    })
    .await;
}

#[tokio::test]
async fn a_handle_that_is_dropped_leaves_nothing() {
    everywhere(async |at| {
        let text = "setsid sleep 1000 & (trap '' TERM; sleep 1000) & echo up; sleep 1000";
        let started = at.start(text).await;
        assert_eq!(receive(&started, 3).await, b"up\n");
        assert!(!leftovers(&at.marker).is_empty(), "it runs");
        drop(started);
        at.nobody_left().await;

        // Also one whose start nobody waits for to its end.
        let given_up = tokio::time::timeout(Duration::from_micros(500), at.shieling.start(at.command(text)));
        drop(given_up.await);
        at.nobody_left().await;
    })
    .await;
}

#[tokio::test]
async fn a_sender_that_waits_is_told_when_the_program_is_killed() {
    everywhere(async |at| {
        let started = at.start("sleep 1000").await;
        let began = Instant::now();
        let sent = vec![0; 10_000_000];
        // In this order: the sender waits, since the pipe is full, before anything is killed.
        let (sent, outcome) = tokio::join!(biased; started.send(&sent), started.kill());
        assert!(matches!(sent, Err(SendError::NobodyReads { .. })), "{sent:?}");
        assert_eq!(outcome.status, Status::Signalled);
        assert!(began.elapsed() < SOON);
    })
    .await;
}
