//! Which texts are run, by whom, and side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use shieling_testkit::extent;

use crate::cases::{Case, Expected, corpus};

/// How many cases run at once. Most of their time is spent waiting for processes.
const WORKERS: usize = 4;

/// The attacks of a file of the corpora.
pub(crate) fn attacks(file: &str) -> Vec<Case> {
    let attack = |case: &Case| case.file == file && case.expected != Expected::Allowed;
    corpus().into_iter().filter(attack).collect()
}

/// Of what the full tests run as root, the ordinary user runs one in this many of each class: the texts and the
/// restrictions are the same, and only the sandbox's making differs.
const OF_FULL: usize = 5;

/// Those that are run here: one in `every` of each class, or all of them in the full tests.
pub(crate) fn share(cases: Vec<Case>, every: usize) -> Vec<Case> {
    let mut cases = extent::share(cases, every, |case| case.class.clone());
    if extent::is_full() && shieling_testkit::is_user() {
        let mut seen: BTreeMap<_, usize> = BTreeMap::new();
        cases.retain(|case| {
            let seen = seen.entry(case.class.clone()).or_default();
            *seen += 1;
            (*seen - 1) % OF_FULL == 0
        });
    }
    cases
}

/// `one` for root, and `other` for the ordinary user, who comes after.
pub(crate) fn every(one: usize, other: usize) -> usize {
    if shieling_testkit::is_user() { other } else { one }
}

/// A text as it stands in a list.
pub(crate) fn line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// The texts of a list.
pub(crate) fn listed(list: &str) -> BTreeSet<String> {
    let texts = list.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    texts.map(str::to_owned).collect()
}

/// Works through the cases, a few at a time; `start` makes what one worker needs.
pub(crate) fn side_by_side<W, R: Send>(
    cases: &[Case],
    start: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, &Case) -> R + Sync,
    end: impl Fn(W) + Sync,
) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let mut worker = start();
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(&mut worker, case);
                    results.lock().expect("no worker panicked").push(result);
                }
                end(worker);
            });
        }
    });
    results.into_inner().expect("no worker panicked")
}
