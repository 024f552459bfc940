//! Much output.

use std::time::{Duration, Instant};

use super::support::{start, start_with};
use crate::outcome::Status;
use crate::session::{Until, ViewRequest};

const LONG: Duration = Duration::from_secs(60);

// CAMEL C8 and C9.
#[tokio::test]
async fn many_lines_take_no_time_and_the_newest_are_kept() {
    let begun = Instant::now();
    let job = start("seq 1 300000").await;
    let view = job.waiting(Until::Exit, LONG).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(view.outcome.stdout.ends_with("\n299999\n300000\n"));
    assert_eq!(view.outcome.stdout_bytes, 1_988_895);
    // What is gone is told to the byte.
    assert_eq!(view.missed_bytes, 1_988_895 - 256 * 1024);
    assert!(view.outcome.truncated);
}

// CAMEL C10.
#[tokio::test]
async fn a_line_of_100_mb_is_bounded() {
    let job = start("head -c 100000000 /dev/zero | tr '\\0' a; read x").await;
    loop {
        let view = job.waiting(Until::Output, LONG).await;
        assert!(view.outcome.stdout.len() < 70_000, "{}", view.outcome.stdout.len());
        if view.outcome.stdout_bytes == 100_000_000 {
            break;
        }
    }
    let ask = ViewRequest {
        cursor: Some(0),
        ..job.ask()
    };
    let view = job.view(&ask).await.expect("a view");
    assert_eq!(view.missed_bytes, 100_000_000 - 256 * 1024);
    job.kill().await;
    let outcome = job.outcome();
    assert!(outcome.truncated && outcome.stdout.len() < 70_000);
}

#[tokio::test]
async fn a_flood_delays_no_view_and_no_kill() {
    let job = start_with("yes & yes >&2", |setup| setup.kill_leftovers = false).await;
    for _ in 0..20 {
        let begun = Instant::now();
        let view = job.next().await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        assert_eq!(view.outcome.status, Status::Running);
    }
    // It is never quiet, and the wait ends all the same.
    let begun = Instant::now();
    job.waiting(Until::Quiet, Duration::from_millis(300)).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let begun = Instant::now();
    job.kill().await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(job.outcome().survivors, 0);
}

#[tokio::test]
async fn a_pattern_is_found_in_the_middle_of_a_flood() {
    let job = start("yes | head -c 3000000; printf 'need'; printf 'le\\n'; yes | head -c 30000000; read x").await;
    assert!(job.wait_for_pattern("^needle$", LONG).await.expect("a pattern"));
    job.kill().await;
}

#[tokio::test]
async fn a_gigabyte_passes_as_fast_as_it_is_made() {
    // What the same program takes when it writes to a program that throws it away, at the same load.
    let measure = async |text: &str| {
        let begun = Instant::now();
        let outcome = start(text).await.ended().await;
        (outcome.stdout_bytes, begun.elapsed())
    };
    let (_, thrown_away) = measure("head -c 1000000000 /dev/zero | cat >/dev/null").await;
    let (bytes, took) = measure("head -c 1000000000 /dev/zero").await;
    assert_eq!(bytes, 1_000_000_000);
    println!("1 GB in {took:?}, thrown away in {thrown_away:?}");
    // Far from what it takes on an idle machine, and far below a cost per byte.
    let longest = Duration::from_secs(10).max(thrown_away * 10);
    assert!(took < longest, "{took:?}, thrown away in {thrown_away:?}");
}
