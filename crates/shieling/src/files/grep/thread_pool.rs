//! The threads of one search.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ignore::overrides::Override;

use super::super::FilesError;
use super::super::ignored::unreadable;
use super::super::walk::{Batch, Directory, Rules, Walk};
use super::file_search::FileSearch;
use super::page::{BatchResult, Page};
use super::plan::Plan;
use super::unsearched::Unsearched;
use crate::environment::{Entry, Kind};

/// The largest number of threads.
const MOST: usize = 8;

/// The interval at which a waiting thread checks whether there is still something to wait for.
const NAP: Duration = Duration::from_millis(50);

struct ThreadPool<'a> {
    plan: &'a Plan,
    rules: &'a Rules<'a>,
    chosen: &'a Override,
    walk: Mutex<Walk<'a>>,
    page: Mutex<Page>,
    /// Notified when the page accepts more batches.
    moved: Condvar,
    /// The page is complete, or a thread has panicked.
    over: AtomicBool,
}

/// Searches all files of a walk, with one thread per core including the calling one. If threads cannot be started,
/// there are fewer.
pub(super) fn work<'a>(plan: &'a Plan, rules: &'a Rules<'a>, chosen: &'a Override, walk: Walk<'a>) -> Page {
    let crew = ThreadPool {
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
            let started = thread::Builder::new().spawn_scoped(scope, || crew.run_thread());
            if started.is_err() {
                break;
            }
        }
        crew.run_thread();
    });
    crew.page.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadPool<'_> {
    fn run_thread(&self) {
        // A thread that panics must not leave the others waiting for its result.
        let _end = End(self);
        let mut search = FileSearch::new(self.plan, self.rules.stopped);
        while !self.is_over() {
            // Locked for the walk alone: a temporary in `while let` would hold the lock during the search.
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

    fn search(&self, search: &mut FileSearch<'_>, batch: Batch) -> BatchResult {
        let mut part = BatchResult::new(self.plan);
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

    fn file(&self, search: &mut FileSearch<'_>, directory: &Directory, entry: &Entry, part: &mut BatchResult) {
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
        // Opened first: the access check applies to the file that is then read, and the path is resolved only once.
        let opened = directory.node.open_child(&entry.name).map_err(FilesError::from);
        let admitted = opened.and_then(|content| {
            self.rules.context.access.reads(&path, &|| content.meta())?;
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

/// Wakes the other threads when a thread ends.
struct End<'a, 'b>(&'a ThreadPool<'b>);

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
