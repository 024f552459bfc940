//! Many commands at once do not touch each other.

use std::time::{Duration, Instant};

use shieling::process::End;
use shieling_testkit::is_alone;

use super::support::{Mark, loud, own_children, run, run_within};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_commands_with_orphans_end_without_each_other() {
    let _load = loud().await;
    // On a busy machine, some have not begun when their time is over: then all get more.
    for factor in [1, 4, 16] {
        if all_end_without_each_other(factor).await {
            return;
        }
    }
    panic!("some never began");
}

/// Whether all had begun what is to end.
async fn all_end_without_each_other(factor: u32) -> bool {
    let marks: Vec<Mark> = (0..20).map(|_| Mark::new()).collect();
    let bystander = Mark::new();
    let other = tokio::spawn(run_within_owned(
        format!("setsid sleep {bystander} & sleep {bystander}"),
        Duration::from_secs(6) * factor,
    ));
    bystander.wait_for(2);
    let mut running = Vec::new();
    for mark in &marks {
        let text = format!("setsid sleep {mark} & (setsid nohup sleep {mark} >/dev/null 2>&1 &) ; sleep {mark}");
        running.push(tokio::spawn(run_within_owned(text, Duration::from_secs(2) * factor)));
    }
    let mut begun = true;
    for (task, mark) in running.into_iter().zip(&marks) {
        let (end, survivors, ended) = task.await.expect("it does not panic");
        assert_eq!((end, survivors), (End::TimedOut, 0));
        assert!(ended <= 2, "{ended}");
        begun &= ended == 2;
        assert_eq!(mark.alive(), [] as [u32; 0]);
        assert_eq!(bystander.alive().len(), 2);
    }
    let (end, survivors, _) = other.await.expect("it does not panic");
    assert_eq!((end, survivors), (End::TimedOut, 0));
    assert_eq!(bystander.alive(), [] as [u32; 0]);
    begun
}

async fn run_within_owned(text: String, deadline: Duration) -> (End, u32, u32) {
    let finished = run_within(&text, deadline).await;
    (finished.end, finished.survivors, finished.ended_processes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_hundred_short_commands_leave_no_process_and_no_descriptor() {
    if !is_alone("local::concurrency::three_hundred_short_commands_leave_no_process_and_no_descriptor") {
        return;
    }
    let count = || std::fs::read_dir("/proc/self/fd").expect("proc is mounted").count();
    // What is opened once for all.
    drop(run("echo first").await);
    let (before, children) = (count(), own_children().len());
    let mut running = Vec::new();
    for number in 0..300 {
        running.push(tokio::spawn(async move {
            run(&format!("echo {number}")).await.stdout.text()
        }));
        if running.len() == 20 {
            for task in running.drain(..) {
                assert!(task.await.expect("it does not panic").ends_with('\n'));
            }
        }
    }
    let begun = Instant::now();
    while count() > before || own_children().len() > children {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{} descriptors, {before} before; {} children, {children} before",
            count(),
            own_children().len(),
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
