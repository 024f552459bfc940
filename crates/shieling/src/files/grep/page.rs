//! Puts the results of several threads into the order of the walk, and ends the response at its bounds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::{GrepMode, GrepResponse, Hit};
use super::collector::{Line, LinePosition, Remaining};
use super::file_search::Searched;
use super::plan::{Cursor, Plan};

/// The size of the text of one response, in bytes. One more match may exceed it.
const TEXT: usize = 4 << 20;

/// The largest number of results that wait for an earlier one.
const WAITING: usize = 1 << 16;

/// The numbers of a response.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    searched: u64,
    binary: u64,
    unreadable: u64,
}

/// The results in one file.
struct FileHits {
    below: PathBuf,
    lines: Vec<Line>,
    matched: u64,
    /// The numbers of its batch up to and including this file.
    counts: Counts,
}

/// The results of one batch.
pub(super) struct BatchResult {
    limit: u64,
    mode: GrepMode,
    files: Vec<FileHits>,
    counts: Counts,
    /// The number of matches or files, and of bytes.
    matched: u64,
    bytes: usize,
    /// Whether there are more results than there was room for.
    pub(super) more: bool,
}

impl BatchResult {
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

    /// Returns how many more results could become part of the response.
    pub(super) fn room(&self) -> Remaining {
        Remaining {
            matches: self.limit - self.matched,
            bytes: TEXT.saturating_sub(self.bytes),
            first: self.matched == 0,
        }
    }

    pub(super) fn unreadable(&mut self, count: u64) {
        self.counts.unreadable += count;
    }

    /// Adds the results in one file.
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
        self.files.push(FileHits {
            below,
            lines: found.lines,
            matched: found.matched,
            counts: self.counts,
        });
    }
}

/// A response that is being built.
pub(super) struct Page {
    limit: u64,
    mode: GrepMode,
    answer: GrepResponse,
    matched: u64,
    bytes: usize,
    /// The position of the last match.
    last: Option<String>,
    /// The number of lines at the end that are context of a match that is not part of the response yet.
    leads: usize,
    /// Whether the response is complete.
    done: bool,
    /// The number of the next batch, and the results that wait for it.
    number: u64,
    waiting: BTreeMap<u64, BatchResult>,
    matched_waiting: u64,
    bytes_waiting: usize,
}

impl Page {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            limit: plan.limit,
            mode: plan.mode,
            answer: GrepResponse {
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

    /// Adds the results of a batch. Each number occurs once.
    pub(super) fn add(&mut self, number: u64, part: BatchResult) {
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

    /// Returns whether batches that were not started yet may still become part of the response.
    pub(super) fn is_open(&self) -> bool {
        !self.done && self.matched + self.matched_waiting <= self.limit
    }

    /// Returns whether the response is complete.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Returns whether too many results wait for an earlier batch.
    pub(super) fn is_crowded(&self) -> bool {
        !self.done && (self.bytes_waiting >= TEXT || self.waiting.len() >= WAITING)
    }

    /// Returns the response for a search in the directory `root`.
    pub(super) fn finish(self, root: PathBuf) -> GrepResponse {
        GrepResponse { root, ..self.answer }
    }

    fn append(&mut self, part: BatchResult) {
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

    /// Adds the lines of a file. Returns whether the response ends before a matching one.
    fn lines(&mut self, below: &Path, lines: Vec<Line>) -> bool {
        for line in lines {
            if line.place == LinePosition::Match {
                if self.is_full() {
                    return true;
                }
                self.matched += 1;
                self.last = Some(Cursor::written(Some(line.number), below));
            }
            self.bytes += line.text.len();
            self.leads = if line.place == LinePosition::Before {
                self.leads + 1
            } else {
                0
            };
            self.answer.hits.push(Hit {
                path: below.to_path_buf(),
                line: Some(line.number),
                text: Some(line.text),
                matched: line.place == LinePosition::Match,
                count: None,
            });
        }
        false
    }

    /// Adds a file. Returns whether the response ends before it.
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
