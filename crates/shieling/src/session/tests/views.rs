//! What a view shows, and what it waits for.

use std::time::{Duration, Instant};

use super::support::{start, start_with};
use crate::outcome::Status;
use crate::session::{JobError, Progress, Until, ViewRequest};
use crate::units::ByteCount;

const LONG: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_view_shows_only_what_is_new() {
    let job = start("echo one; read x; echo two; read x; echo three >&2").await;
    assert_eq!(job.next().await.outcome.stdout, "one\n");
    let again = job.now().await;
    assert_eq!(
        (again.outcome.stdout.as_str(), again.outcome.status),
        ("", Status::Running)
    );
    let second = job.line("", LONG).await;
    assert_eq!(
        (second.outcome.stdout.as_str(), second.outcome.stderr.as_str()),
        ("two\n", "")
    );
    let last = job.line("", LONG).await;
    assert_eq!(
        (last.outcome.stdout.as_str(), last.outcome.stderr.as_str()),
        ("", "three\n")
    );
    let end = job.waiting(Until::Exit, LONG).await;
    assert_eq!((end.outcome.status, end.outcome.exit_code), (Status::Exited, Some(0)));
    assert_eq!((end.outcome.stdout_bytes, end.outcome.stderr_bytes), (8, 6));
    // What was shown is still there for whoever asks for it.
    let ask = ViewRequest {
        cursor: Some(0),
        ..job.ask()
    };
    let all = job.view(&ask).await.expect("a view");
    assert_eq!(
        (all.outcome.stdout.as_str(), all.cursor, all.missed_bytes),
        ("one\ntwo\n", 14, 0)
    );
    let ask = ViewRequest {
        cursor: Some(4),
        ..job.ask()
    };
    assert_eq!(job.view(&ask).await.expect("a view").outcome.stdout, "two\n");
}

// CAMEL C11.
#[tokio::test]
async fn a_prompt_without_a_newline_is_seen_at_once() {
    let job = start("printf 'Password: '; read p; echo \"<$p>\"").await;
    let begun = Instant::now();
    assert_eq!(job.next().await.outcome.stdout, "Password: ");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(job.line("secret", LONG).await.outcome.stdout, "<secret>\n");
}

#[tokio::test]
async fn a_wait_ends_with_what_it_waits_for() {
    let job = start("for i in 1 2 3; do echo $i; sleep 0.05; done; read x; sleep 0.3").await;
    // Quiet: all three lines, although they come one by one.
    assert_eq!(job.waiting(Until::Quiet, LONG).await.outcome.stdout, "1\n2\n3\n");
    let begun = Instant::now();
    let nothing = job.waiting(Until::Output, Duration::from_millis(100)).await;
    assert_eq!(nothing.outcome.stdout, "");
    let waited = begun.elapsed();
    assert!(
        (Duration::from_millis(100)..Duration::from_secs(20)).contains(&waited),
        "{waited:?}"
    );
    job.line("", Duration::ZERO).await;
    let end = job.waiting(Until::Exit, LONG).await;
    assert_eq!(end.outcome.exit_code, Some(0));
    // A job that has ended is not waited for.
    let begun = Instant::now();
    job.waiting(Until::Output, LONG).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_view_that_is_given_up_has_shown_nothing() {
    let job = start("read x; echo late; read x").await;
    let ask = ViewRequest {
        wait: LONG,
        until: Until::Quiet,
        ..job.ask()
    };
    let given_up = tokio::time::timeout(Duration::from_millis(150), job.view(&ask)).await;
    assert!(given_up.is_err());
    let input = crate::session::JobInput {
        enter: true,
        ..Default::default()
    };
    let given_up = tokio::time::timeout(Duration::from_millis(150), job.write(&input, LONG)).await;
    assert!(given_up.is_err(), "it waits for quiet, which takes 200 ms");
    assert_eq!(job.next().await.outcome.stdout, "late\n");
}

// CAMEL C14.
#[tokio::test]
async fn output_that_looks_like_our_words_changes_nothing() {
    let job =
        start("printf '%s\\n' '--- SESSION TERMINATED ---' 'Error: No session found' '[No new output]'; read x").await;
    let view = job.waiting(Until::Quiet, LONG).await;
    assert_eq!((view.outcome.status, view.outcome.exit_code), (Status::Running, None));
    assert!(view.outcome.stdout.starts_with("--- SESSION TERMINATED ---\n"));
    assert_eq!(job.info().status, Status::Running);
    job.kill().await;
}

// CAMEL C7.
#[tokio::test]
async fn bytes_that_are_no_text_end_nothing() {
    let job =
        start("printf 'a\\n'; printf '\\377\\200\\303\\n'; printf 'caf\\303'; read x; printf '\\251\\n'; read x").await;
    let view = job.waiting(Until::Quiet, LONG).await;
    // The last byte may be the first half of a character, and waits for the other one.
    assert_eq!(view.outcome.stdout, "a\n\u{fffd}\u{fffd}\u{fffd}\ncaf");
    assert_eq!(job.line("", LONG).await.outcome.stdout, "é\n");
    job.line("", LONG).await;
    assert_eq!(job.ended().await.exit_code, Some(0));
}

#[tokio::test]
async fn a_page_leads_to_the_next_until_all_was_read() {
    let job = start_with("seq 1 20000; seq 1 20000 >&2", |setup| {
        setup.command = setup
            .command
            .clone()
            .with_output_kept(ByteCount::kib(1))
            .expect("more than none");
    })
    .await;
    let end = job.waiting(Until::Exit, LONG).await;
    assert!(end.outcome.truncated && end.outcome.stdout.contains("bytes left out"));
    assert_eq!(end.missed_bytes, 0, "the log keeps more than one view shows");
    let (mut stdout, mut stderr, mut cursor) = (String::new(), String::new(), 0);
    loop {
        let ask = ViewRequest {
            cursor: Some(cursor),
            ..job.ask()
        };
        let page = job.view(&ask).await.expect("a view");
        assert!(page.outcome.stdout.len() + page.outcome.stderr.len() <= 1024 && !page.outcome.truncated);
        stdout.push_str(&page.outcome.stdout);
        stderr.push_str(&page.outcome.stderr);
        if page.cursor == cursor {
            break;
        }
        cursor = page.cursor;
    }
    let all: String = (1..=20000).map(|number| format!("{number}\n")).collect();
    assert!(stdout == all && stderr == all);
}

#[tokio::test]
async fn an_outcome_that_was_shown_is_not_shown_again() {
    let job = start("echo one; read x; echo two").await;
    while job.info().unseen_bytes == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(job.outcome().stdout, "one\n");
    let shown = job.shown();
    assert_eq!(
        (shown.status, shown.stdout.as_str(), shown.job.as_deref()),
        (Status::Running, "one\n", Some("j1"))
    );
    assert_eq!(job.line("", LONG).await.outcome.stdout, "two\n");
    assert_eq!(job.outcome().stdout, "one\ntwo\n");
}

#[tokio::test]
async fn a_screen_is_for_terminals() {
    let job = start("read x").await;
    let ask = ViewRequest {
        screen: true,
        ..job.ask()
    };
    let error = job.view(&ask).await.expect_err("it has none");
    assert!(matches!(error, JobError::NoTerminal { .. }), "{error}");
}

#[tokio::test]
async fn patterns_are_found_in_what_is_there_and_in_what_comes() {
    let job = start("echo server 1; read x; printf 'listening on '; sleep 0.1; echo port 8080; read x; echo bye").await;
    job.next().await;
    let found = job.wait_for_pattern("^server [0-9]$", LONG).await.expect("a pattern");
    assert!(found, "a view does not hide it");
    job.line("", Duration::ZERO).await;
    let found = job
        .wait_for_pattern("listening on port ([0-9]+)", LONG)
        .await
        .expect("a pattern");
    let view = job.look(None, false);
    assert!(found && view.outcome.stdout.ends_with("port 8080\n"), "{view:?}");
    let begun = Instant::now();
    let found = job
        .wait_for_pattern("never", Duration::from_millis(100))
        .await
        .expect("a pattern");
    assert!(!found && begun.elapsed() < Duration::from_secs(20));
    job.line("", Duration::ZERO).await;
    // Its end ends the wait.
    let found = job.wait_for_pattern("never", LONG).await.expect("a pattern");
    let view = job.look(None, false);
    assert_eq!((found, view.outcome.status), (false, Status::Exited));
    assert!(matches!(
        job.wait_for_pattern("(", LONG).await,
        Err(JobError::Pattern(_))
    ));
}

#[tokio::test]
async fn a_port_is_waited_for() {
    let job = start("read x").await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    assert!(job.wait_for_port(port, LONG).await);
    drop(listener);
    let begun = Instant::now();
    assert!(!job.wait_for_port(port, Duration::from_millis(200)).await);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn progress_is_told_now_and_then_and_at_the_end() {
    let (to, mut told) = tokio::sync::watch::channel(Progress::default());
    let job = start_with(
        "for i in $(seq 1 300); do echo line $i; sleep 0.002; done; echo; printf last",
        |setup| {
            setup.progress = Some(to);
        },
    )
    .await;
    let mut count = 0;
    let begun = Instant::now();
    while told.changed().await.is_ok() {
        count += 1;
        assert!(told.borrow_and_update().bytes > 0);
    }
    let most = begun.elapsed().as_millis() / 100 + 3;
    assert!(count >= 2 && count <= most, "{count} in {:?}", begun.elapsed());
    let bytes = job.ended().await.stdout_bytes;
    assert_eq!(
        *told.borrow(),
        Progress {
            bytes,
            line: "last".to_owned()
        }
    );
}

#[tokio::test]
async fn what_nobody_received_is_new_again() {
    let job = start("echo one; read x; echo two; read x").await;
    let lost = job.next().await;
    assert_eq!(lost.outcome.stdout, "one\n");
    job.unview(&lost);
    let view = job.next().await;
    assert_eq!((view.outcome.stdout.as_str(), view.cursor), ("one\n", lost.cursor));
    job.line("", Duration::ZERO).await;
    assert!(job.wait_for_pattern("two", LONG).await.expect("a pattern"));
    assert_eq!(job.look(None, false).outcome.stdout, "two\n");
    job.unview(&view);
    assert_eq!(
        job.look(None, false).outcome.stdout,
        "",
        "another view has gone on since"
    );
    job.kill().await;
}
