//! Parses unified diffs, as written by git and diff.

use std::path::PathBuf;

use super::name;
use super::section::{Hunk, Line, Section, Side, unreadable};
use crate::files::FilesError;

/// Parses a patch. Text before and between the files is ignored, unless it looks like a part of a hunk.
///
/// # Errors
/// [`FilesError::BadPatch`] with the line.
pub(super) fn parse(patch: &str) -> Result<Vec<Section>, FilesError> {
    let mut lines: Vec<&str> = patch.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    let is_head = |line: &&&str| ["--- ", "+++ ", "@@ "].iter().any(|head| line.starts_with(head));
    // If all head lines end with a carriage return, a transport has changed the line ends of the whole patch.
    if lines.iter().filter(is_head).all(|line| line.ends_with('\r')) {
        lines
            .iter_mut()
            .for_each(|line| *line = line.strip_suffix('\r').unwrap_or(line));
    }
    let mut reader = Reader { lines, at: 0 };
    let mut sections = Vec::new();
    while let Some(line) = reader.line() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            sections.push(reader.git(names)?);
        } else if reader.is_names() {
            let section = Head::at(reader.at);
            sections.push(reader.section(section)?);
        } else if line.starts_with("@@ ") || line.starts_with("@@@ ") {
            return unreadable(
                reader.at,
                "a hunk of no file: `--- a/file` and `+++ b/file` must stand before it",
            );
        } else if !sections.is_empty() && line != "-- " && line.starts_with([' ', '+', '-']) {
            return unreadable(reader.at, "the hunk before has fewer lines than that, as its head says");
        } else {
            reader.at += 1;
        }
    }
    if sections.is_empty() {
        let why = "no file is named: a patch has `--- a/file` and `+++ b/file` lines, or begins with `*** Begin Patch`";
        return unreadable(0, why);
    }
    Ok(sections)
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

/// The lines before the hunks of a file.
#[derive(Default)]
struct Head {
    at: usize,
    /// The names on the line `diff --git`.
    names: Option<(PathBuf, PathBuf)>,
    renamed: (Option<PathBuf>, Option<PathBuf>),
    executable: (Option<bool>, Option<bool>),
    is_new: bool,
    is_removed: bool,
}

impl Head {
    fn at(at: usize) -> Self {
        Self { at, ..Self::default() }
    }
}

impl<'a> Reader<'a> {
    fn line(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// Returns whether the two lines with the names of a file are next.
    fn is_names(&self) -> bool {
        let starts = |at: usize, with: &str| self.lines.get(at).is_some_and(|line| line.starts_with(with));
        starts(self.at, "--- ") && starts(self.at + 1, "+++ ")
    }

    /// Parses a file after `diff --git`.
    fn git(&mut self, names: &str) -> Result<Section, FilesError> {
        let mut head = Head {
            names: name::both(names),
            ..Head::at(self.at)
        };
        self.at += 1;
        while let Some(line) = self.line() {
            if line.starts_with("diff --git ") || self.is_names() || line.starts_with("@@ ") {
                break;
            }
            let Some((what, rest)) = self.extended(line) else { break };
            let name = || match name::first(rest) {
                Some((name, _)) => Ok(Some(name)),
                None => unreadable(self.at, "the quotes of the name are wrong"),
            };
            match what {
                "old mode " => head.executable.0 = Some(self.mode(rest)?),
                "new mode " => head.executable.1 = Some(self.mode(rest)?),
                "new file mode " => (head.is_new, head.executable.1) = (true, Some(self.mode(rest)?)),
                "deleted file mode " => (head.is_removed, head.executable.0) = (true, Some(self.mode(rest)?)),
                "rename from " => head.renamed.0 = name()?,
                "rename to " => head.renamed.1 = name()?,
                "copy from " | "copy to " => return unreadable(self.at, "copies are not made: write the file"),
                "GIT binary patch" | "Binary files " => {
                    let (old, new) = head.names.unwrap_or_default();
                    let (_, new) = name::bare(Some(old), Some(new));
                    let file = new
                        .filter(|name| name.as_os_str() != "")
                        .unwrap_or_else(|| names.into());
                    let file = file.display();
                    return unreadable(self.at, format!("`{file}` is no text: binary patches are not applied"));
                }
                _ => {}
            }
            self.at += 1;
        }
        self.section(head)
    }

    /// Recognises the lines that git writes between `diff --git` and the names.
    fn extended(&self, line: &'a str) -> Option<(&'static str, &'a str)> {
        const KNOWN: [&str; 13] = [
            "old mode ",
            "new mode ",
            "new file mode ",
            "deleted file mode ",
            "rename from ",
            "rename to ",
            "copy from ",
            "copy to ",
            "GIT binary patch",
            "Binary files ",
            "index ",
            "similarity index ",
            "dissimilarity index ",
        ];
        KNOWN
            .into_iter()
            .find_map(|known| line.strip_prefix(known).map(|rest| (known, rest)))
    }

    fn mode(&self, text: &str) -> Result<bool, FilesError> {
        match text.trim() {
            "100644" | "100664" => Ok(false),
            "100755" => Ok(true),
            "120000" => unreadable(self.at, "links are not made or changed by a patch"),
            _ => unreadable(self.at, "only the modes 100644 and 100755 are set by a patch"),
        }
    }

    /// Parses the names, if they are next, and the hunks.
    fn section(&mut self, head: Head) -> Result<Section, FilesError> {
        let git = head.names.clone();
        let (mut from, mut to) = match head.names {
            Some((old, new)) => name::bare(Some(old), Some(new)),
            None => (None, None),
        };
        let named = self.is_names();
        if named {
            let old = self.name("--- ")?;
            let new = self.name("+++ ")?;
            // If the names on the line `diff --git` have no prefixes, these have none either.
            let bare = git.is_some_and(|(old, new)| old == new);
            (from, to) = if bare { (old, new) } else { name::bare(old, new) };
        }
        if let (Some(old), Some(new)) = head.renamed {
            (from, to) = (Some(old), Some(new));
        } else if let (Some(old), Some(new)) = (&from, &to)
            && old != new
        {
            return unreadable(
                head.at,
                format!("two names, `{}` and `{}`, and no rename", old.display(), new.display()),
            );
        }
        if head.is_new {
            from = None;
        }
        if head.is_removed {
            to = None;
        }
        if from.is_none() && to.is_none() {
            return unreadable(head.at, "no file is named");
        }
        let mut hunks = Vec::new();
        while let Some(line) = self.line() {
            if line.starts_with("@@ ") {
                hunks.push(self.hunk(line)?);
            } else if line.starts_with("@@@ ") {
                return unreadable(self.at, "a diff of a merge is not applied");
            } else {
                break;
            }
        }
        let says_nothing = hunks.is_empty() && from == to && head.executable.1.is_none();
        if says_nothing || (named && hunks.is_empty()) {
            return unreadable(
                self.at.min(self.lines.len() - 1),
                "a hunk, which begins with `@@ -`, is missing here",
            );
        }
        let (line, executable) = (head.at as u64 + 1, head.executable);
        Ok(Section {
            line,
            from,
            to,
            executable,
            hunks,
            tells_all: true,
        })
    }

    /// Parses the name on a line with this beginning; `None` for `/dev/null`.
    fn name(&mut self, before: &str) -> Result<Option<PathBuf>, FilesError> {
        let line = self
            .line()
            .and_then(|line| line.strip_prefix(before))
            .unwrap_or_default();
        let Some((name, _)) = name::first(line) else {
            return unreadable(self.at, "the quotes of the name are wrong");
        };
        if name.as_os_str().is_empty() {
            return unreadable(self.at, "no file is named");
        }
        self.at += 1;
        Ok((name.as_os_str() != "/dev/null").then_some(name))
    }

    fn hunk(&mut self, head: &str) -> Result<Hunk, FilesError> {
        let start = self.at;
        let Some(((old_at, old_count), (new_at, new_count))) = ranges(head) else {
            return unreadable(start, "a hunk begins with `@@ -line,count +line,count @@`");
        };
        self.at += 1;
        let mut hunk = Hunk {
            at: Some((old_at, new_at)),
            ..Hunk::default()
        };
        let (mut old, mut new) = (0, 0);
        while old < old_count || new < new_count {
            let counted = format!("{old} of {old_count} old and {new} of {new_count} new lines");
            let Some(line) = self.line() else {
                return unreadable(self.at - 1, format!("the patch ends within a hunk, after {counted}"));
            };
            let (side, text) = match line.split_at_checked(1) {
                // Editors and models strip the blank that represents an empty line.
                None if line.is_empty() => (Side::Both, ""),
                Some((" ", text)) => (Side::Both, text),
                Some(("-", text)) => (Side::Old, text),
                Some(("+", text)) => (Side::New, text),
                Some(("\\", _)) => {
                    self.open_end(&mut hunk)?;
                    continue;
                }
                Some(_) | None => {
                    let why =
                        format!("no line of a hunk, of which {counted} have come: it begins with ` `, `-` or `+`");
                    return unreadable(self.at, why);
                }
            };
            old += u64::from(side != Side::New);
            new += u64::from(side != Side::Old);
            if old > old_count || new > new_count {
                let why =
                    format!("the hunk has more lines than its head says: {old_count} old and {new_count} new ones");
                return unreadable(self.at, why);
            }
            hunk.lines.push(Line {
                side,
                text: text.to_owned(),
                ended: true,
            });
            self.at += 1;
        }
        if self.line().is_some_and(|line| line.starts_with('\\')) {
            self.open_end(&mut hunk)?;
        }
        if old_count == 0 && new_count == 0 {
            return unreadable(start, "the hunk changes nothing");
        }
        Ok(hunk)
    }

    /// Parses `\ No newline at end of file`: the line before it has no line end.
    fn open_end(&mut self, hunk: &mut Hunk) -> Result<(), FilesError> {
        match hunk.lines.last_mut() {
            Some(last) => last.ended = false,
            None => return unreadable(self.at, "there is no line before this"),
        }
        self.at += 1;
        Ok(())
    }
}

type Range = (u64, u64);

/// Parses the positions and the lengths in the head of a hunk.
fn ranges(head: &str) -> Option<(Range, Range)> {
    let (ranges, _) = head.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<Range> {
        let (at, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((at.parse().ok()?, count.parse().ok()?))
    };
    Some((range(old)?, range(new)?))
}
