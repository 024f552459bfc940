//! Parses patches that begin with `*** Begin Patch`, whose hunks have no line numbers.

use std::path::PathBuf;

use super::section::{Hunk, Line, Section, Side, unreadable};
use crate::files::FilesError;

/// The first line.
pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const REMOVE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Parses a patch.
///
/// # Errors
/// [`FilesError::BadPatch`] with the line.
pub(super) fn parse(patch: &str) -> Result<Vec<Section>, FilesError> {
    let mut lines: Vec<&str> = patch.lines().collect();
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    let first = lines.iter().position(|line| line.trim() == BEGIN);
    let Some(first) = first else {
        return unreadable(0, format!("`{BEGIN}` must stand alone on its line"));
    };
    let mut reader = Reader { lines, at: first + 1 };
    let mut sections = Vec::new();
    while let Some(line) = reader.line() {
        if line.trim() == END {
            return match (reader.at + 1 < reader.lines.len(), sections.is_empty()) {
                (true, _) => unreadable(reader.at + 1, format!("nothing may follow `{END}`")),
                (false, true) => unreadable(reader.at, "the patch changes nothing"),
                (false, false) => Ok(sections),
            };
        }
        if line.trim().is_empty() {
            reader.at += 1;
            continue;
        }
        sections.push(reader.section(line)?);
    }
    unreadable(reader.at - 1, format!("`{END}` is missing after this line"))
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn line(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn section(&mut self, line: &str) -> Result<Section, FilesError> {
        let at = self.at;
        let path = |name: &str| match name.trim() {
            "" => unreadable(at, "no file is named"),
            name => Ok(Some(PathBuf::from(name))),
        };
        self.at += 1;
        let mut section = Section {
            line: at as u64 + 1,
            from: None,
            to: None,
            executable: (None, None),
            hunks: Vec::new(),
            tells_all: false,
        };
        if let Some(name) = line.strip_prefix(ADD) {
            section.to = path(name)?;
            let mut hunk = Hunk::default();
            while let Some(text) = self.line().and_then(|line| line.strip_prefix('+')) {
                hunk.lines.push(Line {
                    side: Side::New,
                    text: text.to_owned(),
                    ended: true,
                });
                self.at += 1;
            }
            if !hunk.lines.is_empty() {
                section.hunks.push(hunk);
            }
        } else if let Some(name) = line.strip_prefix(REMOVE) {
            section.from = path(name)?;
        } else if let Some(name) = line.strip_prefix(UPDATE) {
            section.from = path(name)?;
            section.to.clone_from(&section.from);
            if let Some(name) = self.line().and_then(|line| line.strip_prefix(MOVE)) {
                section.to = path(name)?;
                self.at += 1;
            }
            self.hunks(&mut section)?;
            if section.hunks.is_empty() && section.from == section.to {
                return unreadable(at, "the file is named, and nothing of it changes");
            }
        } else {
            let why = format!(
                "one of `{}`, `{}`, `{}` or `{END}` is expected",
                ADD.trim(),
                UPDATE.trim(),
                REMOVE.trim()
            );
            return unreadable(at, why);
        }
        Ok(section)
    }

    /// Parses the hunks, up to the next line that begins with `***`.
    fn hunks(&mut self, section: &mut Section) -> Result<(), FilesError> {
        let mut hunk = Hunk {
            loose_end: true,
            ..Hunk::default()
        };
        while let Some(line) = self.line() {
            let (side, text) = match line.split_at_checked(1) {
                _ if line == "@@" || line.starts_with("@@ ") => {
                    self.close(&mut hunk, section);
                    let anchor = line.trim_start_matches('@').trim().trim_end_matches("@@").trim();
                    if !anchor.is_empty() {
                        hunk.anchors.push(anchor.to_owned());
                    }
                    self.at += 1;
                    continue;
                }
                _ if line.trim_end() == END_OF_FILE => {
                    hunk.at_end = true;
                    self.close(&mut hunk, section);
                    self.at += 1;
                    continue;
                }
                _ if line.starts_with("***") => break,
                None => (Side::Both, ""),
                Some((" ", text)) => (Side::Both, text),
                Some(("-", text)) => (Side::Old, text),
                Some(("+", text)) => (Side::New, text),
                Some(_) => {
                    return unreadable(
                        self.at,
                        "a line of a hunk begins with ` `, `-` or `+`, and a hunk with `@@`",
                    );
                }
            };
            hunk.lines.push(Line {
                side,
                text: text.to_owned(),
                ended: true,
            });
            self.at += 1;
        }
        if !hunk.anchors.is_empty() && hunk.lines.is_empty() {
            return unreadable(self.at - 1, "a hunk ends here that has no lines");
        }
        self.close(&mut hunk, section);
        Ok(())
    }

    /// Ends a hunk that has lines. One without lines keeps collecting anchors.
    fn close(&self, hunk: &mut Hunk, section: &mut Section) {
        // An empty line before the next head belongs to the patch, not to the file.
        let next = self
            .line()
            .is_none_or(|line| line.starts_with("***") && line.trim_end() != END_OF_FILE);
        if next
            && hunk
                .lines
                .last()
                .is_some_and(|last| last.side == Side::Both && last.text.is_empty())
        {
            hunk.lines.pop();
        }
        if !hunk.lines.is_empty() {
            section.hunks.push(std::mem::replace(
                hunk,
                Hunk {
                    loose_end: true,
                    ..Hunk::default()
                },
            ));
        }
    }
}
