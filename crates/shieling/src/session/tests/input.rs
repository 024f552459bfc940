//! Typing into jobs on pipes.

use std::time::{Duration, Instant};

use super::support::{start, start_with};
use crate::outcome::Status;
use crate::session::{JobError, JobInput, Until};

const LONG: Duration = Duration::from_secs(10);

fn keys(keys: &[&str]) -> JobInput {
    JobInput {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        ..JobInput::default()
    }
}

// CAMEL C12.
#[tokio::test]
async fn a_program_that_chatters_answers_within_the_wait() {
    // It prints every 0.1 s, so that it is never quiet.
    let job = start("(while :; do echo tick; sleep 0.1; done) & while read x; do echo \"<$x>\"; done").await;
    job.next().await;
    let begun = Instant::now();
    let view = job.line("hello", Duration::from_secs(1)).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(view.outcome.stdout.contains("<hello>\n"), "{:?}", view.outcome.stdout);
    job.kill().await;
}

// CAMEL C13.
#[tokio::test]
async fn a_slow_answer_is_given_to_its_own_question() {
    let job = start("while read x; do sleep 0.6; echo \"<$x>\"; done").await;
    for word in ["one", "two", "three"] {
        let view = job.line(word, LONG).await;
        assert_eq!(view.outcome.stdout, format!("<{word}>\n"));
    }
}

#[tokio::test]
async fn output_from_before_is_shown_and_not_taken_for_the_answer() {
    let job = start("echo banner; while read x; do sleep 0.4; echo \"<$x>\"; done").await;
    let found = job.wait_for_pattern("banner", LONG).await.expect("a pattern");
    assert!(found);
    let begun = Instant::now();
    let other = start("echo banner; while read x; do sleep 0.4; echo \"<$x>\"; done").await;
    while other.info().unseen_bytes == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let view = other.line("x", LONG).await;
    assert_eq!(view.outcome.stdout, "banner\n<x>\n");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn the_end_of_input_is_a_key() {
    let job = start("wc -c").await;
    let text = JobInput {
        text: "12345".to_owned(),
        keys: vec!["C-d".to_owned()],
        ..JobInput::default()
    };
    let view = job.write(&text, LONG).await.expect("it is written");
    assert_eq!((view.outcome.stdout.trim(), view.outcome.status), ("5", Status::Exited));
    let error = job.write(&keys(&["Tab"]), LONG).await.expect_err("it has ended");
    assert!(matches!(error, JobError::Ended { .. }), "{error}");
    let job = start("read x; read y; sleep 1000").await;
    job.write(&keys(&["C-d"]), Duration::ZERO).await.expect("it is closed");
    let error = job.write(&keys(&["Enter"]), LONG).await.expect_err("it is closed");
    assert!(matches!(error, JobError::NoInput { .. }), "{error}");
    job.kill().await;
}

#[tokio::test]
async fn keys_mean_what_they_can_on_a_pipe() {
    let job = start("read -r x; echo \"<$x>\"; sleep 1000").await;
    let view = job.write(&keys(&["a", "Tab", "é", "Space", "b", "Enter"]), LONG).await;
    assert_eq!(view.expect("it is written").outcome.stdout, "<a\té b>\n");
    for (key, what) in [("Up", "such keys"), ("^C", "or kill it"), ("Hyper", "there is no key")] {
        let error = job
            .write(&keys(&["x", key]), LONG)
            .await
            .expect_err("no such key on a pipe");
        assert!(error.to_string().contains(what), "{error}");
    }
    job.kill().await;
}

#[tokio::test]
async fn an_interrupt_in_a_session_stops_what_runs() {
    let job = start_with("echo on; sleep 1000; echo never", |setup| setup.kill_leftovers = false).await;
    job.next().await;
    let view = job.write(&keys(&["C-c"]), LONG).await.expect("it is told");
    assert_eq!(
        (view.outcome.status, view.outcome.stdout.as_str()),
        (Status::Signalled, "")
    );
}

#[tokio::test]
async fn what_is_not_read_is_told_and_not_written_later() {
    let job = start("exec sleep 1000").await;
    let begun = Instant::now();
    let input = JobInput {
        text: "x".repeat(1_000_000),
        enter: true,
        ..JobInput::default()
    };
    let error = job.write(&input, LONG).await.expect_err("nobody reads it");
    let waited = begun.elapsed();
    assert!(
        (Duration::from_millis(1900)..Duration::from_secs(4)).contains(&waited),
        "{waited:?}"
    );
    let JobError::Full { left, .. } = error else {
        panic!("{error}")
    };
    assert!((800_000..1_000_001).contains(&left), "{left}");
    job.kill().await;
}

#[tokio::test]
async fn a_megabyte_is_written_to_whoever_reads_it() {
    let job = start("wc -c").await;
    let input = JobInput {
        text: "x".repeat(1_000_000),
        keys: vec!["C-d".to_owned()],
        ..JobInput::default()
    };
    assert_eq!(
        job.write(&input, LONG)
            .await
            .expect("it is written")
            .outcome
            .stdout
            .trim(),
        "1000000"
    );
}

#[tokio::test]
async fn what_has_no_input_says_so() {
    let job = start_with("sleep 1000", |setup| setup.stdin = None).await;
    let error = job.write(&keys(&["Enter"]), LONG).await.expect_err("it has none");
    assert!(error.to_string().contains("reads from nowhere"), "{error}");
    assert_eq!(
        job.waiting(Until::Output, Duration::ZERO).await.outcome.status,
        Status::Running
    );
    job.kill().await;
}
