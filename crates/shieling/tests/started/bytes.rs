//! What goes in and what comes out.

use std::time::Duration;

use shieling::outcome::Status;
use shieling::process::{Received, SendError};
use shieling_testkit::prerequisite;

use crate::support::{SOON, everywhere, receive, receive_all};

#[tokio::test]
async fn what_is_sent_comes_back_from_cat() {
    everywhere(async |at| {
        let cat = at.start("cat").await;
        cat.send(b"hello\n").await.unwrap();
        assert_eq!(receive(&cat, 6).await, b"hello\n");
        cat.send(b"again\n").await.unwrap();
        assert_eq!(receive(&cat, 6).await, b"again\n");
        assert_eq!(cat.returncode(), None);
        cat.send_eof().await;
        assert_eq!(cat.recv(SOON).await, Received::End);
        assert_eq!(cat.recv(SOON).await, Received::End, "the end stays the end");
        let outcome = cat.wait().await;
        assert_eq!((outcome.status, outcome.exit_code), (Status::Exited, Some(0)));
        assert_eq!((outcome.stdout.as_str(), outcome.stdout_bytes), ("", 12));
        assert_eq!(cat.returncode(), Some(0));
    })
    .await;
}

#[tokio::test]
async fn ten_megabytes_pass_while_one_sends_and_one_receives() {
    everywhere(async |at| {
        let started = at.start("tr a b").await;
        let sent = vec![b'a'; 10_000_000];
        let send = async {
            started.send(&sent).await.unwrap();
            started.send_eof().await;
        };
        let ((), received) = tokio::join!(send, receive_all(&started));
        assert_eq!(received.len(), sent.len());
        assert!(received.iter().all(|byte| *byte == b'b'));
        assert_eq!(started.wait().await.stdout_bytes, 10_000_000);
    })
    .await;
}

#[tokio::test]
async fn whoever_sends_to_a_program_that_does_not_read_waits() {
    everywhere(async |at| {
        let started = at.start("until test -e read; do sleep 0.05; done; wc -c").await;
        let sent = vec![b'x'; 1_000_000];
        let send = started.send(&sent);
        tokio::pin!(send);
        let early = tokio::time::timeout(Duration::from_millis(300), &mut send).await;
        assert!(early.is_err(), "a pipe does not hold this much");
        at.workspace.write("read", "now");
        send.await.unwrap();
        started.send_eof().await;
        assert_eq!(receive_all(&started).await.trim_ascii(), b"1000000");
    })
    .await;
}

#[tokio::test]
async fn a_flood_that_nobody_reads_waits_and_goes_on_when_it_is_read() {
    everywhere(async |at| {
        let started = at.start("head -c 50000000 /dev/zero; echo done >&2").await;
        assert_eq!(started.recv_stderr(Duration::from_secs(1)).await, Received::TimedOut);
        assert_eq!(started.returncode(), None, "nobody has read, so it cannot have ended");
        assert_eq!(receive_all(&started).await.len(), 50_000_000);
        assert_eq!(started.recv_stderr(SOON).await, Received::Bytes(b"done\n".to_vec()));
        assert_eq!(started.wait().await.stdout_bytes, 50_000_000);
    })
    .await;
}

#[tokio::test]
async fn what_is_late_is_given_later() {
    everywhere(async |at| {
        let started = at.start("read x; echo \"got $x\"").await;
        assert_eq!(started.recv(Duration::from_millis(50)).await, Received::TimedOut);
        assert_eq!(started.recv(Duration::ZERO).await, Received::TimedOut);
        started.send(b"it\n").await.unwrap();
        assert_eq!(receive_all(&started).await, b"got it\n");
    })
    .await;
}

#[tokio::test]
async fn a_receiver_that_is_dropped_loses_nothing() {
    everywhere(async |at| {
        let started = at
            .start("i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done")
            .await;
        let mut all = Vec::new();
        loop {
            // Broken off at every point, also before it was looked at once.
            let next = tokio::time::timeout(Duration::from_micros(20), started.recv(SOON)).await;
            match next {
                Err(_) => tokio::task::yield_now().await,
                Ok(Received::Bytes(bytes)) => all.extend(bytes),
                Ok(Received::End) => break,
                Ok(Received::TimedOut) => panic!("no end after {} bytes", all.len()),
            }
        }
        let expected: String = (0..3_000).map(|i| format!("{i}\n")).collect();
        assert_eq!(String::from_utf8(all).unwrap(), expected);
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_text_pass_as_they_are() {
    everywhere(async |at| {
        let every: Vec<u8> = (0..=255).collect();
        let started = at.start("cat").await;
        started.send(&every).await.unwrap();
        started.send_eof().await;
        assert_eq!(receive_all(&started).await, every);
    })
    .await;
}

#[tokio::test]
async fn the_streams_are_apart() {
    everywhere(async |at| {
        let started = at.start("echo out; echo err >&2; read x").await;
        assert_eq!(started.recv_stderr(SOON).await, Received::Bytes(b"err\n".to_vec()));
        assert_eq!(started.recv(SOON).await, Received::Bytes(b"out\n".to_vec()));
        started.send_eof().await;
        assert_eq!(started.recv_stderr(SOON).await, Received::End);
        assert_eq!(started.recv(SOON).await, Received::End);
    })
    .await;
}

#[tokio::test]
async fn a_program_that_closes_its_output_goes_on() {
    everywhere(async |at| {
        let started = at.start("echo a; exec 1>&-; read x; echo \"$x\" >&2; exit 4").await;
        assert_eq!(receive_all(&started).await, b"a\n");
        assert_eq!(started.returncode(), None);
        started.send(b"on\n").await.unwrap();
        assert_eq!(started.recv_stderr(SOON).await, Received::Bytes(b"on\n".to_vec()));
        assert_eq!(started.wait().await.exit_code, Some(4));
    })
    .await;
}

#[tokio::test]
async fn sending_to_a_program_that_reads_no_more_is_an_error_and_no_signal() {
    everywhere(async |at| {
        let ended = at.start("exit 3").await;
        assert_eq!(ended.wait().await.exit_code, Some(3));
        assert_eq!(ended.send(b"x").await, Err(SendError::NobodyReads { sent: 0 }));

        let closed = at.start("exec 0<&-; echo closed; sleep 50").await;
        assert_eq!(receive(&closed, 7).await, b"closed\n");
        assert_eq!(closed.send(b"x").await, Err(SendError::NobodyReads { sent: 0 }));

        // In the middle of what is sent, and while it waits.
        let leaving = at.start("head -c 10 >/dev/null").await;
        let sent = leaving.send(&vec![0; 10_000_000]).await;
        assert!(matches!(sent, Err(SendError::NobodyReads { sent }) if (10..10_000_000).contains(&sent)));
    })
    .await;
}

#[tokio::test]
async fn the_end_of_file_can_be_sent_twice_and_nothing_follows_it() {
    everywhere(async |at| {
        let started = at.start("cat").await;
        started.send_eof().await;
        started.send_eof().await;
        assert_eq!(started.send(b"x").await, Err(SendError::Closed));
        assert_eq!(started.wait().await.exit_code, Some(0));
    })
    .await;
}

#[tokio::test]
async fn two_programs_are_talked_to_at_once() {
    everywhere(async |at| {
        let (one, other) = (at.start("sed -u s/^/1/").await, at.start("sed -u s/^/2/").await);
        for round in 0..20 {
            let text = format!("{round}\n");
            let (a, b) = tokio::join!(one.send(text.as_bytes()), other.send(text.as_bytes()));
            a.unwrap();
            b.unwrap();
            let (a, b) = tokio::join!(receive(&one, text.len() + 1), receive(&other, text.len() + 1));
            assert_eq!(a, format!("1{text}").into_bytes());
            assert_eq!(b, format!("2{text}").into_bytes());
        }
    })
    .await;
}

#[tokio::test]
async fn a_dialogue_with_an_interpreter_keeps_its_state() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    everywhere(async |at| {
        let program = "python3 -uc '
import sys
names = {}
for line in sys.stdin:
    try:
        print(eval(line, names))
    except SyntaxError:
        exec(line, names)
        print(\"ok\")
'";
        let python = at.start(program).await;
        for (said, answer) in [("x = 20\n", "ok\n"), ("x + 1\n", "21\n"), ("'é' * 3\n", "ééé\n")] {
            python.send(said.as_bytes()).await.unwrap();
            assert_eq!(receive(&python, answer.len()).await, answer.as_bytes(), "{said}");
        }
        python.send_eof().await;
        let outcome = python.wait().await;
        assert_eq!(outcome.exit_code, Some(0), "{}", outcome.stderr);
    })
    .await;
}
