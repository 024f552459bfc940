//! The threads of a search.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ignore::overrides::Override;

use super::super::FilesError;
use super::super::walk::{Batch, Directory, Rules, Walk, unreadable};
use super::page::{Page, Part};
use super::plan::Plan;
use super::text::{Search, Unsearched};
use crate::environment::{Entry, Kind};

/// The most threads of one search.
const MOST: usize = 8;

/// How long a thread waits at once before it looks whether there still is anything to wait for.
const NAP: Duration = Duration::from_millis(50);

struct Crew<'a> {
    plan: &'a Plan,
    rules: &'a Rules<'a>,
    chosen: &'a Override,
    walk: Mutex<Walk<'a>>,
    page: Mutex<Page>,
    /// Said when shares no longer wait.
    moved: Condvar,
    /// The page is done, or a thread has failed.
    over: AtomicBool,
}

/// Searches everything that a walk gives, on as many threads as there are cores, of which the caller's is
/// one. If there can be no more threads, there are fewer.
pub(super) fn work<'a>(plan: &'a Plan, rules: &'a Rules<'a>, chosen: &'a Override, walk: Walk<'a>) -> Page {
    let crew = Crew {
        plan,
        rules,
        chosen,
        walk: Mutex::new(walk),
        page: Mutex::new(Page::new(plan)),
        moved: Condvar::new(),
        over: AtomicBool::new(false),
    };
    let others = thread::available_parallelism().map_or(1, NonZero::get).min(MOST) - 1;
    thread::scope(|scope| {
        for _ in 0..others {
            let started = thread::Builder::new().spawn_scoped(scope, || crew.labour());
            if started.is_err() {
                break;
            }
        }
        crew.labour();
    });
    crew.page.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Crew<'_> {
    fn labour(&self) {
        // A thread that fails must not leave the others waiting for its share.
        let _end = End(self);
        let mut search = Search::new(self.plan, self.rules.stopped);
        while !self.is_over() {
            // The lock is held for the walk alone: as a temporary of `while let` it would be for the search.
            let batch = locked(&self.walk).next();
            let Some(batch) = batch else { break };
            let number = batch.number;
            let part = self.search(&mut search, batch);
            let mut page = locked(&self.page);
            page.add(number, part);
            self.moved.notify_all();
            while page.is_crowded() && !self.is_over() {
                let woken = self.moved.wait_timeout(page, NAP);
                page = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
            if !page.is_open() {
                self.over.fetch_or(page.is_done(), Ordering::Relaxed);
                break;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.rules.stopped.load(Ordering::Relaxed)
    }

    fn search(&self, search: &mut Search<'_>, batch: Batch) -> Part {
        let mut part = Part::new(self.plan);
        part.unreadable(batch.unreadable);
        for piece in batch.pieces {
            for entry in piece.entries {
                if part.more || self.is_over() {
                    return part;
                }
                self.file(search, &piece.directory, &entry, &mut part);
            }
        }
        part
    }

    fn file(&self, search: &mut Search<'_>, directory: &Directory, entry: &Entry, part: &mut Part) {
        if entry.kind != Kind::File {
            return;
        }
        let Some(path) = self.rules.admits(directory, entry) else {
            return;
        };
        if self.chosen.matched(&path, false).is_ignore() {
            return;
        }
        let below = directory.below.join(&entry.name);
        // Opened first: what is judged is the file that is then read, and that costs no second way to it.
        let opened = directory.node.open_child(&entry.name).map_err(FilesError::from);
        let admitted = opened.and_then(|content| {
            self.rules.context.gate.reads(&path, &|| content.meta())?;
            Ok(content)
        });
        let content = match admitted {
            Ok(content) => content,
            Err(error) => return part.unreadable(unreadable(&error)),
        };
        match search.file(content, self.plan.resumed(&below), part.room()) {
            Ok(searched) => part.searched(below, searched),
            Err(Unsearched::Stopped) => {}
            Err(Unsearched::Failed(_) | Unsearched::TooLarge { .. } | Unsearched::Line | Unsearched::Slow) => {
                part.unreadable(1);
            }
        }
    }
}

/// Tells the others when a thread ends.
struct End<'a, 'b>(&'a Crew<'b>);

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.over.store(true, Ordering::Relaxed);
        }
        self.0.moved.notify_all();
    }
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
