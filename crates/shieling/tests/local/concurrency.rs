//! Many commands at once do not touch each other.

use std::time::{Duration, Instant};

use shieling::process::End;

use super::support::{Mark, loud, own_children, run, run_within};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_commands_with_orphans_end_without_each_other() {
    let _load = loud().await;
    let marks: Vec<Mark> = (0..20).map(|_| Mark::new()).collect();
    let bystander = Mark::new();
    let other = tokio::spawn(run_within_owned(
        format!("setsid sleep {bystander} & sleep {bystander}"),
        Duration::from_secs(6),
    ));
    bystander.wait_for(2);
    let mut running = Vec::new();
    for mark in &marks {
        let text = format!("setsid sleep {mark} & (setsid nohup sleep {mark} >/dev/null 2>&1 &) ; sleep {mark}");
        running.push(tokio::spawn(run_within_owned(text, Duration::from_secs(2))));
    }
    for (task, mark) in running.into_iter().zip(&marks) {
        let (end, survivors, ended) = task.await.expect("it does not panic");
        assert_eq!((end, survivors, ended), (End::TimedOut, 0, 2));
        assert_eq!(mark.alive(), [] as [u32; 0]);
        assert_eq!(bystander.alive().len(), 2);
    }
    let (end, survivors, _) = other.await.expect("it does not panic");
    assert_eq!((end, survivors), (End::TimedOut, 0));
    assert_eq!(bystander.alive(), [] as [u32; 0]);
}

async fn run_within_owned(text: String, deadline: Duration) -> (End, u32, u32) {
    let finished = run_within(&text, deadline).await;
    (finished.end, finished.survivors, finished.ended_processes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_hundred_short_commands_leave_no_process_and_no_descriptor() {
    let _load = loud().await;
    let count = || std::fs::read_dir("/proc/self/fd").expect("proc is mounted").count();
    let before = count();
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
    // Other tests of this process open some of their own for a while.
    let begun = Instant::now();
    while count() > before + 8 || own_children().len() > 16 {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{} descriptors, {} before",
            count(),
            before
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
