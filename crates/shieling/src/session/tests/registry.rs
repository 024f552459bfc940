//! All jobs together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::support::{Mark, Started, start, start_with};
use crate::session::{Claim, JobError, JobId, Jobs, Reservation};

async fn new(jobs: &Jobs, id: Option<&str>) -> Result<(), JobError> {
    match claim(jobs, id).await? {
        Claim::Reserved(reservation) => drop(reservation),
        Claim::Existing(_) => panic!("{id:?} is known"),
    }
    Ok(())
}

async fn claim<'a>(jobs: &'a Jobs, id: Option<&str>) -> Result<Claim<'a>, JobError> {
    jobs.claim(id.map(|id| id.parse().expect("a good name"))).await
}

async fn reservation<'a>(jobs: &'a Jobs, id: Option<&str>) -> Reservation<'a> {
    match claim(jobs, id).await.expect("there is room") {
        Claim::Reserved(reservation) => reservation,
        Claim::Existing(job) => panic!("{job:?} is known"),
    }
}

/// Starts a job under a name, or the next number.
async fn add(jobs: &Jobs, id: Option<&str>, text: &str) -> Started {
    let reservation = reservation(jobs, id).await;
    let started = start_with(text, |setup| setup.id = reservation.id().clone()).await;
    reservation.register(&started.job);
    started
}

// CAMEL C3.
#[tokio::test]
async fn a_name_stands_for_one_job() {
    let jobs = Jobs::new();
    let first = add(&jobs, Some("build"), "echo built").await;
    first.ended().await;
    let Ok(Claim::Existing(again)) = claim(&jobs, Some("build")).await else {
        panic!("it is known");
    };
    assert_eq!(again.outcome().stdout, "built\n");
    assert!(Arc::ptr_eq(&again, &first.job));
    // Numbers go round names.
    let _j1 = add(&jobs, Some("j1"), "true").await;
    assert_eq!(reservation(&jobs, None).await.id().to_string(), "j2");
    let error = jobs.find(&JobId::numbered(9)).expect_err("there is none").to_string();
    assert_eq!(error, "there is no job `j9`; there are `build`, `j1`");
    jobs.forget(&"build".parse().expect("a name"));
    assert_eq!(
        jobs.list().iter().map(|info| info.job.to_string()).collect::<Vec<_>>(),
        ["j1"]
    );
}

#[tokio::test]
async fn two_calls_with_one_name_start_one_job() {
    let jobs = Jobs::new();
    let reservation = reservation(&jobs, Some("once")).await;
    let job = start("true").await;
    let second = async {
        let claim = claim(&jobs, Some("once")).await.expect("it is known soon");
        assert_eq!(jobs.list().len(), 1, "it was waited for");
        matches!(claim, Claim::Existing(_))
    };
    let first = async {
        reservation.register(&job.job);
    };
    // In this order: the second call waits before the first one has its job.
    assert_eq!(tokio::join!(biased; second, first), (true, ()));
}

#[tokio::test]
async fn a_start_that_failed_leaves_its_name_free() {
    let jobs = Jobs::new();
    new(&jobs, Some("again")).await.expect("there is room");
    new(&jobs, Some("again")).await.expect("there is room");
    assert!(jobs.list().is_empty());
}

#[tokio::test]
async fn the_oldest_that_have_ended_go_and_running_ones_stay() {
    let jobs = Jobs::new();
    let running = add(&jobs, Some("running"), "sleep 1000").await;
    let mut started = Vec::new();
    for _ in 0..70 {
        let job = add(&jobs, None, "true").await;
        job.ended().await;
        started.push(job);
    }
    let listed: Vec<String> = jobs.list().iter().map(|info| info.job.to_string()).collect();
    assert_eq!(
        (listed.len(), listed[0].as_str(), listed[1].as_str()),
        (65, "running", "j7")
    );
    running.kill().await;
}

#[tokio::test]
async fn one_too_many_is_refused_until_there_is_room() {
    let jobs = Jobs::new();
    let ended = add(&jobs, None, "true").await;
    ended.ended().await;
    let mut slots = Vec::new();
    for _ in 0..256 {
        // The one that has ended makes room for the last.
        slots.push(reservation(&jobs, None).await);
    }
    let Err(error) = claim(&jobs, None).await else {
        panic!("there is no room");
    };
    assert_eq!(
        error.to_string(),
        "256 jobs are running or waiting to, and that is the most; end one, or wait for its end"
    );
    slots.pop();
    new(&jobs, None).await.expect("there is room again");
}

// CAMEL C4.
#[tokio::test]
async fn closing_ends_all_and_starts_no_more() {
    let jobs = Jobs::new();
    let mark = Mark::new();
    let _first = add(&jobs, None, &format!("setsid sleep {mark} & sleep {mark}")).await;
    let _second = add(&jobs, None, &format!("trap '' TERM; sleep {mark}; sleep {mark}")).await;
    mark.wait_for(3).await;
    let late = reservation(&jobs, None).await;
    let begun = Instant::now();
    jobs.close().await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!((mark.alive(), jobs.list().len()), (0, 0));
    assert!(matches!(claim(&jobs, None).await, Err(JobError::Closed)));
    // What was about to start belongs to nobody then.
    let job = start("sleep 1000").await;
    late.register(&job.job);
    assert!(jobs.list().is_empty());
}
