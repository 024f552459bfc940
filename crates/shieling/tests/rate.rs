//! The rate limit: never more than it says, in any window, whoever tries at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use shieling::rate::{RateLimit, RateLimiter};
use shieling::units::SystemClock;
use shieling_testkit::FakeClock;

fn limiter(limit: &str) -> (RateLimiter, Arc<FakeClock>) {
    let clock = FakeClock::new();
    let limit = limit.parse().expect("a limit that a test wrote");
    (RateLimiter::new(limit, clock.clone()), clock)
}

#[test]
fn a_burst_is_let_through_and_the_next_one_is_told_how_long_to_wait() {
    let (limiter, clock) = limiter("3/10,10/60");
    for _ in 0..3 {
        limiter.attempt().expect("the burst has room");
        clock.advance(Duration::from_secs(1));
    }
    let refused = limiter.attempt().expect_err("the burst is used up");
    assert_eq!(refused.window.to_string(), "3/10");
    assert_eq!(refused.retry_after_ms(), 7_000);
    assert_eq!(refused.to_string(), "at most 3 in 10 s; there is room again in 7.0 s");
}

#[test]
fn the_sustained_window_refuses_when_the_burst_has_room() {
    let (limiter, clock) = limiter("3/10,5/60");
    for _ in 0..5 {
        limiter.attempt().expect("spread out");
        clock.advance(Duration::from_secs(5));
    }
    let refused = limiter.attempt().expect_err("five in a minute are used up");
    assert_eq!(refused.window.to_string(), "5/60");
    assert_eq!(refused.retry_after_ms(), 35_000);
}

#[test]
fn a_retry_after_exactly_the_stated_wait_succeeds_and_one_millisecond_sooner_fails() {
    let (limiter, clock) = limiter("1/0.0105");
    limiter.attempt().expect("the first");
    let wait = limiter.attempt().expect_err("too soon").retry_after_ms();
    assert_eq!(wait, 11, "10.5 ms rounded up");
    clock.advance(Duration::from_millis(wait - 1));
    limiter.attempt().expect_err("half a millisecond too soon");
    clock.advance(Duration::from_millis(1));
    limiter.attempt().expect("the wait is over");
}

#[test]
fn an_attempt_that_the_limit_refuses_does_not_push_the_next_one_away() {
    let (limiter, clock) = limiter("1/10");
    limiter.attempt().expect("the first");
    for _ in 0..9 {
        clock.advance(Duration::from_secs(1));
        limiter.attempt().expect_err("still full");
    }
    clock.advance(Duration::from_secs(1));
    limiter.attempt().expect("ten seconds after the first");
}

#[test]
fn six_at_once_get_exactly_as_many_places_as_there_are() {
    for _ in 0..50 {
        let limit: RateLimit = "7/3600".parse().expect("a limit");
        let limiter = RateLimiter::new(limit, Arc::new(SystemClock));
        let let_through = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        if limiter.attempt().is_ok() {
                            let_through.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(let_through.into_inner(), 7);
        assert_eq!(limiter.room(), 0);
    }
}

#[test]
fn a_limit_that_cannot_be_read_shows_the_place() {
    let cases = [
        ("", 0..0, "is not COUNT/SECONDS"),
        ("3", 0..1, "is not COUNT/SECONDS"),
        ("3/10,", 5..5, "is not COUNT/SECONDS"),
        ("3/10,,10/60", 5..5, "is not COUNT/SECONDS"),
        ("0/10", 0..1, "is not a count from 1 to 10000"),
        ("10001/10", 0..5, "is not a count from 1 to 10000"),
        ("-1/10", 0..2, "is not a count from 1 to 10000"),
        ("3/0", 2..3, "is not a number of seconds above 0"),
        ("3/", 2..2, "is not a number of seconds above 0"),
        ("3/10,10/soon", 8..12, "is not a number of seconds above 0"),
        ("3/-5", 2..4, "is not a number of seconds above 0"),
        ("3/10/5", 2..6, "is not a number of seconds above 0"),
    ];
    for (text, at, expected) in cases {
        let error = text.parse::<RateLimit>().expect_err(text);
        assert_eq!((error.at, error.expected), (at, expected), "{text}");
    }
    insta::assert_snapshot!(
        "3/10,10/soon".parse::<RateLimit>().expect_err("no number"),
        @"rate `3/10,10/soon`: `soon` at byte 8 is not a number of seconds above 0, such as `3/10,10/60`"
    );
}

#[test]
fn what_is_read_is_shown_as_it_was_written() {
    for text in ["3/10,10/60", "1/0.5", "10000/3600"] {
        assert_eq!(text.parse::<RateLimit>().expect(text).to_string(), text);
    }
    assert_eq!(
        " 3/10s, 10/1m".parse::<RateLimit>().expect("units").to_string(),
        "3/10,10/60"
    );
}

proptest! {
    #[test]
    fn no_window_ever_holds_more_than_its_count_and_none_is_refused_that_fits(
        burst in 1_usize..5, burst_ms in 1_u64..50,
        sustained in 1_usize..12, sustained_ms in 1_u64..200,
        steps in prop::collection::vec(0_u64..30, 1..200),
    ) {
        let windows = [(burst, burst_ms), (sustained, sustained_ms)];
        let (limiter, clock) = limiter(&format!("{burst}/{burst_ms}ms,{sustained}/{sustained_ms}ms"));
        let mut now = 0_u64;
        let mut passed: Vec<u64> = Vec::new();
        for step in steps {
            clock.advance(Duration::from_millis(step));
            now += step;
            let fits = windows.iter().all(|(count, ms)| {
                passed.iter().filter(|past| now - **past < *ms).count() < *count
            });
            let answer = limiter.attempt();
            prop_assert_eq!(answer.is_ok(), fits, "at {} ms after {:?}", now, passed);
            if fits {
                passed.push(now);
            }
        }
        for (count, ms) in windows {
            for start in &passed {
                let held = passed.iter().filter(|at| (*start..*start + ms).contains(*at)).count();
                prop_assert!(held <= count, "{held} in {ms} ms from {start}");
            }
        }
    }
}
