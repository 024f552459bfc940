//! Puts what several threads found into the order of the walk, and ends it where the answer ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::{GrepMode, Grepped, Hit};
use super::keep::{Line, Place, Room};
use super::plan::{Cursor, Plan};
use super::text::Searched;

/// The most text in one answer, in bytes; a match more may be in it.
const TEXT: usize = 4 << 20;

/// How many shares may wait for one before them.
const WAITING: usize = 1 << 16;

/// What was looked at.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    searched: u64,
    binary: u64,
    unreadable: u64,
}

/// What was found in a file.
struct File {
    below: PathBuf,
    lines: Vec<Line>,
    matched: u64,
    /// What was looked at of its share up to it, with it.
    counts: Counts,
}

/// What was found in a share of the walk.
pub(super) struct Part {
    limit: u64,
    mode: GrepMode,
    files: Vec<File>,
    counts: Counts,
    /// How many matches, or files, and bytes there are.
    matched: u64,
    bytes: usize,
    /// There is more than there was room for.
    pub(super) more: bool,
}

impl Part {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            limit: plan.limit,
            mode: plan.mode,
            files: Vec::new(),
            counts: Counts::default(),
            matched: 0,
            bytes: 0,
            more: false,
        }
    }

    /// How much more of it could be part of the answer.
    pub(super) fn room(&self) -> Room {
        Room {
            matches: self.limit - self.matched,
            bytes: TEXT.saturating_sub(self.bytes),
            first: self.matched == 0,
        }
    }

    pub(super) fn unreadable(&mut self, count: u64) {
        self.counts.unreadable += count;
    }

    /// Takes what a search of a file gave.
    pub(super) fn searched(&mut self, below: PathBuf, searched: Searched) {
        let found = match searched {
            Searched::Binary => {
                self.counts.binary += 1;
                return;
            }
            Searched::Text(found) => found,
        };
        self.counts.searched += 1;
        self.counts.unreadable += u64::from(found.broken);
        self.more |= found.more;
        if found.matched == 0 {
            return;
        }
        let weight = match self.mode {
            GrepMode::Content => found.matched,
            GrepMode::Files | GrepMode::Count => 1,
        };
        if self.matched + weight > self.limit {
            self.more = true;
            return;
        }
        self.matched += weight;
        self.bytes += found.lines.iter().map(|line| line.text.len()).sum::<usize>();
        self.files.push(File {
            below,
            lines: found.lines,
            matched: found.matched,
            counts: self.counts,
        });
    }
}

/// An answer that is being made.
pub(super) struct Page {
    limit: u64,
    mode: GrepMode,
    answer: Grepped,
    matched: u64,
    bytes: usize,
    /// Where the last match that is given stands.
    last: Option<String>,
    /// How many lines at its end only lead to a match that is not in it yet.
    leads: usize,
    /// Nothing more belongs to it.
    done: bool,
    /// The share that comes next, and those that wait for it.
    number: u64,
    waiting: BTreeMap<u64, Part>,
    matched_waiting: u64,
    bytes_waiting: usize,
}

impl Page {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            limit: plan.limit,
            mode: plan.mode,
            answer: Grepped {
                root: PathBuf::new(),
                hits: Vec::new(),
                next: None,
                searched: 0,
                binary: 0,
                unreadable: 0,
            },
            matched: 0,
            bytes: 0,
            last: None,
            leads: 0,
            done: false,
            number: 0,
            waiting: BTreeMap::new(),
            matched_waiting: 0,
            bytes_waiting: 0,
        }
    }

    /// Takes what was found in a share. Each number comes once.
    pub(super) fn add(&mut self, number: u64, part: Part) {
        self.matched_waiting += part.matched + u64::from(part.more);
        self.bytes_waiting += part.bytes;
        self.waiting.insert(number, part);
        while let Some(part) = self.waiting.remove(&self.number) {
            self.number += 1;
            self.matched_waiting -= part.matched + u64::from(part.more);
            self.bytes_waiting -= part.bytes;
            if !self.done {
                self.append(part);
            }
        }
    }

    /// Whether shares that were not begun yet may still belong to it.
    pub(super) fn is_open(&self) -> bool {
        !self.done && self.matched + self.matched_waiting <= self.limit
    }

    /// Whether nothing more belongs to it.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether so much waits for a share before it that nothing else should be begun.
    pub(super) fn is_crowded(&self) -> bool {
        !self.done && (self.bytes_waiting >= TEXT || self.waiting.len() >= WAITING)
    }

    /// The answer to a search that was made there.
    pub(super) fn finish(self, root: PathBuf) -> Grepped {
        Grepped { root, ..self.answer }
    }

    fn append(&mut self, part: Part) {
        for file in part.files {
            let ended = match self.mode {
                GrepMode::Content => self.lines(&file.below, file.lines),
                GrepMode::Files | GrepMode::Count => self.file(&file.below, file.matched),
            };
            if ended {
                return self.end(file.counts);
            }
        }
        if part.more {
            return self.end(part.counts);
        }
        self.count(part.counts);
    }

    /// Gives lines of a file. Whether the answer ends before one that matches.
    fn lines(&mut self, below: &Path, lines: Vec<Line>) -> bool {
        for line in lines {
            if line.place == Place::Match {
                if self.is_full() {
                    return true;
                }
                self.matched += 1;
                self.last = Some(Cursor::written(Some(line.number), below));
            }
            self.bytes += line.text.len();
            self.leads = if line.place == Place::Before { self.leads + 1 } else { 0 };
            self.answer.hits.push(Hit {
                path: below.to_path_buf(),
                line: Some(line.number),
                text: Some(line.text),
                matched: line.place == Place::Match,
                count: None,
            });
        }
        false
    }

    /// Gives a file. Whether the answer ends before it.
    fn file(&mut self, below: &Path, matched: u64) -> bool {
        if self.is_full() {
            return true;
        }
        self.matched += 1;
        self.last = Some(Cursor::written(None, below));
        self.answer.hits.push(Hit {
            path: below.to_path_buf(),
            line: None,
            text: None,
            matched: true,
            count: (self.mode == GrepMode::Count).then_some(matched),
        });
        false
    }

    fn is_full(&self) -> bool {
        self.matched == self.limit || (self.matched > 0 && self.bytes >= TEXT)
    }

    fn end(&mut self, counts: Counts) {
        self.answer.hits.truncate(self.answer.hits.len() - self.leads);
        self.count(counts);
        self.answer.next = self.last.take();
        self.done = true;
    }

    fn count(&mut self, counts: Counts) {
        self.answer.searched += counts.searched;
        self.answer.binary += counts.binary;
        self.answer.unreadable += counts.unreadable;
    }
}
