//! How jobs end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::support::{Mark, start, start_with};
use crate::outcome::Status;
use crate::output::SpillTo;
use crate::process::End;
use crate::session::Until;
use crate::units::ByteCount;

// CAMEL C5.
#[tokio::test]
async fn the_outcome_is_the_one_of_the_command() {
    for (text, status, code, signal) in [
        ("echo x; exit 7", Status::Exited, Some(7), None),
        ("echo x; kill -9 $$", Status::Signalled, Some(137), Some(9)),
        ("echo x; kill -15 $$", Status::Signalled, Some(143), Some(15)),
    ] {
        let job = start(text).await;
        let outcome = job.ended().await;
        assert_eq!(
            (outcome.status, outcome.exit_code, outcome.signal),
            (status, code, signal),
            "{text}"
        );
        assert_eq!(
            (outcome.stdout.as_str(), outcome.job.as_deref()),
            ("x\n", None),
            "{text}"
        );
        assert_eq!(job.ends_told().len(), 1, "{text}");
        assert_eq!(job.ends_told(), [outcome], "{text}");
        assert!(job.is_over());
    }
}

// CAMEL C2 and C4.
#[tokio::test]
async fn a_kill_ends_all_of_it_at_once() {
    let mark = Mark::new();
    let text = format!(
        "sleep {mark} & setsid sleep {mark} & setsid nohup sleep {mark} >/dev/null 2>&1 & \
         (trap '' TERM; exec sleep {mark}) & (sleep {mark} &) ; sleep {mark}; echo never"
    );
    let job = start(&text).await;
    mark.wait_for(6).await;
    let begun = Instant::now();
    job.kill().await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(mark.alive(), 0);
    let view = job.now().await;
    assert_eq!(
        (view.outcome.status, view.outcome.signal),
        (Status::Signalled, Some(15))
    );
    assert_eq!((view.outcome.survivors, view.outcome.stdout.as_str()), (0, ""));
    assert_eq!(job.ends_told().len(), 1);
    // Once more is no error, and changes nothing.
    job.kill().await;
    assert_eq!(job.now().await.outcome.status, Status::Signalled);
}

#[tokio::test]
async fn a_killed_job_that_ends_by_itself_is_told_as_such() {
    let job = start("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done").await;
    job.next().await;
    job.kill().await;
    let outcome = job.outcome();
    assert_eq!((outcome.status, outcome.exit_code), (Status::Exited, Some(3)));
    assert_eq!(outcome.stdout, "ready\nbye\n");
    let immune = start("trap '' TERM; echo ready; while :; do sleep 0.01; done").await;
    immune.next().await;
    immune.kill().await;
    assert_eq!(immune.outcome().signal, Some(9));
}

#[tokio::test]
async fn a_stop_with_a_cause_is_told_by_it_and_keeps_the_work() {
    let job = start("echo work; sleep 1000").await;
    job.next().await;
    job.stop(Some(End::TimedOut), Duration::from_millis(100));
    let outcome = job.ended().await;
    assert_eq!((outcome.status, outcome.exit_code), (Status::TimedOut, Some(124)));
    assert_eq!((outcome.stdout.as_str(), outcome.survivors), ("work\n", 0));
}

#[tokio::test]
async fn the_last_handle_takes_the_processes_with_it() {
    let mark = Mark::new();
    let job = start(&format!("setsid sleep {mark} & sleep {mark}")).await;
    mark.wait_for(2).await;
    let second = Arc::clone(&job.job);
    let told = Arc::clone(&job.told);
    drop(job.job);
    // Another job begins and ends meanwhile, as these would have.
    start("true").await.ended().await;
    assert_eq!(mark.alive(), 2, "there is another handle");
    drop(second);
    mark.wait_for(0).await;
    let told = told.lock().expect("nobody panics").clone();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].status, Status::Lost);
}

#[tokio::test]
async fn what_stands_alone_leaves_nothing_behind() {
    let mark = Mark::new();
    let job = start(&format!("sleep {mark} & echo started")).await;
    let outcome = job.ended().await;
    assert_eq!(
        (outcome.exit_code, outcome.ended_processes, outcome.survivors),
        (Some(0), 1, 0)
    );
    assert_eq!((outcome.stdout.as_str(), mark.alive()), ("started\n", 0));
}

#[tokio::test]
async fn in_a_session_the_command_ends_and_what_it_left_goes_on() {
    let mark = Mark::new();
    let text = format!("(read x </dev/null; sleep 0.4; echo later; exec sleep {mark}) & echo now; exit 4");
    let job = start_with(&text, |setup| setup.kill_leftovers = false).await;
    let outcome = job.ended().await;
    assert_eq!((outcome.status, outcome.exit_code), (Status::Exited, Some(4)));
    assert_eq!((outcome.stdout.as_str(), outcome.job.as_deref()), ("now\n", Some("j1")));
    assert!(!job.is_over());
    assert_eq!(job.info().status, Status::Running);
    assert_eq!(job.now().await.outcome.stdout, "now\n");
    // What it writes belongs to the job.
    let later = job.next().await;
    assert_eq!(
        (later.outcome.stdout.as_str(), later.outcome.status),
        ("later\n", Status::Running)
    );
    mark.wait_for(1).await;
    job.kill().await;
    assert_eq!(mark.alive(), 0);
    let end = job.now().await.outcome;
    assert_eq!(
        (end.status, end.exit_code, end.ended_processes),
        (Status::Exited, Some(4), 1)
    );
    assert_eq!(job.ends_told().len(), 1);
}

#[tokio::test]
async fn in_a_session_a_command_whose_pipes_are_closed_is_over() {
    let mark = Mark::new();
    let text = format!("sleep {mark} >/dev/null 2>&1 & echo now; exit 4");
    let job = start_with(&text, |setup| setup.kill_leftovers = false).await;
    let outcome = job.ended().await;
    assert_eq!((outcome.exit_code, outcome.job), (Some(4), None));
    assert!(job.is_over());
}

#[tokio::test]
async fn too_much_output_ends_it() {
    let job = start_with("yes", |setup| setup.output_limit = Some(ByteCount::mib(2))).await;
    let outcome = job.ended().await;
    assert_eq!((outcome.status, outcome.survivors), (Status::OutputLimit, 0));
}

#[tokio::test]
async fn the_whole_output_is_kept_in_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let to = SpillTo::new(directory.path().join("outputs"));
    let job = start_with("seq 1 100000; read x", |setup| setup.spill = Some(to.clone())).await;
    job.waiting(Until::Quiet, Duration::from_secs(10)).await;
    let id = job.outcome().output_id.expect("it is known while it runs");
    job.kill().await;
    let outcome = job.outcome();
    assert_eq!(outcome.output_id.as_ref(), Some(&id));
    let file = directory.path().join("outputs").join(format!("{id}.stdout"));
    let written = std::fs::read_to_string(file).expect("it is there");
    let all: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    assert!(written == all);
}
