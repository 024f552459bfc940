//! Runs all cases, a few at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::support::{Case, In, attempt, beside};
use super::{blocking, descriptors, endings, forging, names, options, output, places, syntax, traps};

/// How many at once. Most of them wait.
const AT_ONCE: usize = 12;

/// Programs that a case may call and that not every machine has.
const PROGRAMS: [&str; 1] = ["python3"];

/// Whether the programs that a case calls are installed. If not, the runner has been told which are missing.
fn has_programs(case: &Case) -> bool {
    let called: Vec<&str> = PROGRAMS
        .into_iter()
        .filter(|program| case.steps.iter().any(|step| step.text.contains(program)))
        .collect();
    shieling_testkit::prerequisite::has(&called)
}

fn all() -> Vec<Case> {
    [
        endings::cases(),
        traps::cases(),
        options::cases(),
        names::cases(),
        descriptors::cases(),
        syntax::cases(),
        output::cases(),
        places::cases(),
        blocking::cases(),
        forging::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn there_are_at_least_120_cases_and_each_has_a_name() {
    let cases = all();
    assert!(cases.len() >= 120, "{} cases", cases.len());
    let mut names: Vec<_> = cases.iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
    eprintln!("{} cases", cases.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_session_is_after_it_what_it_was_before() {
    let _beside = beside().await;
    let only = std::env::var("SHIELING_SESSIONS").unwrap_or_default();
    let user = shieling_testkit::is_user();
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for (_, case) in all()
        .into_iter()
        .enumerate()
        .filter(|(at, _)| !user || at.is_multiple_of(3))
    {
        if !case.name.contains(&only) || !has_programs(&case) {
            continue;
        }
        let case = Arc::new(case);
        for &at in case.places {
            let (case, room) = (Arc::clone(&case), Arc::clone(&room));
            tasks.spawn(async move {
                let _turn = room.acquire_owned().await;
                let begun = Instant::now();
                let done = attempt(&case, at).await;
                (case.name, at, done, begun.elapsed())
            });
        }
    }
    let (mut wrong, mut slowest, mut count) = (Vec::new(), (Duration::ZERO, ""), 0);
    while let Some(done) = tasks.join_next().await {
        let (name, at, done, took) = done.expect("no case panics");
        count += 1;
        slowest = slowest.max((took, name));
        if let Err(error) = done {
            wrong.push(format!("{name} ({at:?}): {error}"));
        }
    }
    eprintln!("{count} in {:?}, the slowest {slowest:?}", begun.elapsed());
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn and_as_an_ordinary_user_too() {
    let _beside = beside().await;
    shieling_testkit::again_as_user(&[
        "--exact",
        "sessions::table::every_session_is_after_it_what_it_was_before",
    ]);
}

/// Where a case's place says so.
#[test]
fn a_case_runs_in_both_environments_unless_it_says_otherwise() {
    let cases = all();
    let both = cases
        .iter()
        .filter(|case| case.places == [In::Local, In::Sandbox])
        .count();
    assert!(both * 10 >= cases.len() * 8, "{both} of {}", cases.len());
}
