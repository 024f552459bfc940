//! Finds the parts of a file that resemble a missing text, and describes the difference.
//!
//! First come parts that differ only in blanks, quotes, case, or in characters that models add when they paste; then
//! those that share most pairs of letters with the text. Both searches take time linear in the size of the file, of
//! which the first 64 MiB are examined.

mod differs;
mod squeezed;

use std::collections::HashMap;

use memchr::memmem;

use super::Candidate;
use squeezed::{Pairs, Squeezed};

/// The part of a file that is examined, in bytes.
const LOOKED_AT: usize = 64 << 20;

/// The part of the text that is compared, in lines and in bytes.
const COMPARED_LINES: usize = 50;
const COMPARED_BYTES: usize = 16 << 10;

/// The number of results.
const TOLD: usize = 3;

/// The number of characters of each result.
const TOLD_CHARS: usize = 400;

/// The number of places that are compared line by line.
const WEIGHED: usize = 16;

/// The least similarity of a result, from 0 to 1.
const LIKE: f64 = 0.5;

/// Returns the most similar parts, best first.
pub(super) fn places(content: &str, sought: &str) -> Vec<Candidate> {
    let content = &content[..content.floor_char_boundary(LOOKED_AT)];
    let file = Squeezed::new(content);
    let mut found: Vec<Candidate> = Vec::new();
    for variant in differs::variants(sought) {
        let squeezed = Squeezed::new(&variant);
        if squeezed.text.is_empty() {
            continue;
        }
        for at in memmem::find_iter(file.text.as_bytes(), squeezed.text.as_bytes()).take(TOLD) {
            let (first, last) = (file.line_at(at), file.line_at(at + squeezed.text.len() - 1));
            let window = file.window(content, first, last);
            let differs = differs::said(window, sought);
            found.push(candidate(first, window, differs));
        }
        if !found.is_empty() {
            found.truncate(TOLD);
            return found;
        }
    }
    alike(content, &file, &sought[..sought.floor_char_boundary(COMPARED_BYTES)])
}

fn candidate(first: usize, window: &str, differs: Option<String>) -> Candidate {
    let text = window
        .strip_suffix('\n')
        .unwrap_or(window)
        .chars()
        .take(TOLD_CHARS)
        .collect();
    Candidate {
        line: first as u64 + 1,
        text,
        differs,
    }
}

/// Finds the parts whose lines resemble those of the text.
fn alike(content: &str, file: &Squeezed, sought: &str) -> Vec<Candidate> {
    let lines: Vec<&str> = sought.split_inclusive('\n').take(COMPARED_LINES).collect();
    let wanted: Vec<String> = lines.iter().map(|line| Squeezed::new(line).text).collect();
    let Some((key_at, key)) = wanted.iter().enumerate().max_by_key(|(_, line)| line.len()) else {
        return Vec::new();
    };
    let starts = candidates(file, &wanted, key_at, &Pairs::of(key));

    let weight: usize = wanted.iter().map(String::len).sum();
    let pairs: Vec<Pairs> = wanted.iter().map(|line| Pairs::of(line)).collect();
    let mut weighed: Vec<(f64, usize)> = Vec::new();
    for start in starts {
        let like: f64 = (0..wanted.len())
            .map(|at| {
                let line = file.line(start + at);
                let like = if line == wanted[at] { 1.0 } else { pairs[at].like(line) };
                like * wanted[at].len() as f64
            })
            .sum();
        weighed.push((like / weight as f64, start));
    }
    weighed.retain(|(like, _)| *like >= LIKE);
    weighed.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut told: Vec<usize> = Vec::new();
    for (_, start) in weighed {
        if told.len() < TOLD && told.iter().all(|other| start.abs_diff(*other) >= lines.len()) {
            told.push(start);
        }
    }
    let told = told.into_iter().map(|start| {
        let window = file.window(content, start, start + lines.len() - 1);
        candidate(start, window, differs::lines(window, &lines))
    });
    told.collect()
}

/// Returns possible starts: where most of the lines occur in order, and where a line resembles the longest one.
fn candidates(file: &Squeezed, wanted: &[String], key_at: usize, key: &Pairs) -> Vec<usize> {
    let mut known: HashMap<&str, Vec<usize>> = HashMap::new();
    // A brace alone occurs everywhere.
    for (at, line) in wanted.iter().enumerate().filter(|(_, line)| line.len() > 3) {
        known.entry(line.as_str()).or_default().push(at);
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    let mut best: Vec<(f64, usize)> = Vec::new();
    let mut least = 0.2;
    for at in 0..file.lines() {
        let line = file.line(at);
        for before in known.get(line).into_iter().flatten() {
            if let Some(start) = at.checked_sub(*before)
                && (votes.len() < 100_000 || votes.contains_key(&start))
            {
                *votes.entry(start).or_default() += 1;
            }
        }
        let like = key.like(line);
        if like > least
            && let Some(start) = at.checked_sub(key_at)
        {
            best.push((like, start));
            if best.len() > 4 * WEIGHED {
                best.sort_by(|a, b| b.0.total_cmp(&a.0));
                best.truncate(WEIGHED);
                least = best[WEIGHED - 1].0;
            }
        }
    }
    best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut voted: Vec<(usize, usize)> = votes.into_iter().map(|(start, votes)| (votes, start)).collect();
    voted.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let voted = voted.into_iter().take(WEIGHED).map(|(_, start)| start);
    let mut starts: Vec<usize> = voted
        .chain(best.into_iter().take(WEIGHED).map(|(_, start)| start))
        .collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}
