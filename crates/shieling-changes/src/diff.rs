//! What changed in a text, for a person to read, bounded in size and in time.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use similar::TextDiff;

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::node::{Kind, Node};
use crate::renames::Rename;
use crate::scan::{Action, Change};

/// The bounds of what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffLimits {
    /// Bytes of a file up to which it is compared by lines.
    pub file_bytes: u64,
    /// Bytes of all that is shown; what comes after that is only counted.
    pub bytes: usize,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self {
            file_bytes: 1 << 20,
            bytes: 256 << 10,
        }
    }
}

/// How long two versions of one file are compared before a coarser result is taken.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// A shown change set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// The text: one section for each path, in the form of `diff -u`. Control characters are escaped.
    pub text: String,
    /// How many paths are not in it.
    pub left_out: u64,
    /// How many of those in it have contents that are not text, or too long, of which only the sizes are told.
    pub sizes_only: u64,
}

impl Diff {
    /// Shows one more change, unless the bound is reached.
    pub(crate) fn add(
        &mut self,
        change: &Change,
        upper: Option<&Directory>,
        workspace: Option<&Directory>,
        limits: DiffLimits,
    ) -> Result<(), ChangesError> {
        if self.text.len() >= limits.bytes {
            self.left_out += 1;
            return Ok(());
        }
        let (mut section, has_sizes_only) = section(change, upper, workspace, limits)?;
        self.sizes_only += u64::from(has_sizes_only);
        let room = limits.bytes - self.text.len();
        if section.len() > room {
            let cut = (0..=room).rev().find(|at| section.is_char_boundary(*at)).unwrap_or(0);
            let more = section.len() - cut;
            section.truncate(cut);
            let _ = write!(section, "\n({more} more bytes of this file's changes are not shown)\n");
        }
        self.text.push_str(&section);
        Ok(())
    }

    /// Says that something has another name.
    pub(crate) fn add_rename(&mut self, rename: &Rename, change: &Change, limits: DiffLimits) {
        if self.text.len() >= limits.bytes {
            self.left_out += 1;
            return;
        }
        let kind = change.new.as_ref().map_or("", |node| node.kind.name());
        let (from, to) = (escape_name(&rename.from), escape_name(&rename.to));
        let _ = writeln!(self.text, "renamed {kind} {from} to {to}");
    }
}

/// One change, and whether a content of it is told by its size alone.
fn section(
    change: &Change,
    upper: Option<&Directory>,
    workspace: Option<&Directory>,
    limits: DiffLimits,
) -> Result<(String, bool), ChangesError> {
    let path = &change.path;
    let shown = escape_name(path);
    let mut text = String::new();
    let word = match change.action {
        Action::Added => "added",
        Action::Modified => "modified",
        Action::Deleted => "deleted",
        Action::Touched => return Ok((text, false)),
    };
    let kind = change
        .new
        .as_ref()
        .or(change.old.as_ref())
        .map_or("", |node| node.kind.name());
    let _ = writeln!(text, "{word} {kind} {shown}");
    if let (Some(old), Some(new)) = (&change.old, &change.new) {
        if old.kind != new.kind {
            let _ = writeln!(text, "was a {}", old.kind.name());
        } else if old.mode != new.mode && old.kind != Kind::Symlink {
            let _ = writeln!(text, "mode {:04o} becomes {:04o}", old.mode, new.mode);
        }
    }
    let side = |node: &Option<Node>, directory: Option<&Directory>| -> Result<Side, ChangesError> {
        match (node, directory, path.file_name()) {
            (Some(node), Some(directory), Some(name)) => match node.kind {
                Kind::File if node.size > limits.file_bytes => Ok(Side::Bytes(node.size)),
                Kind::File => {
                    let bytes = directory.read_some(name, limits.file_bytes).doing("read", path)?;
                    match String::from_utf8(bytes) {
                        Ok(text) if !text.contains('\0') => Ok(Side::Text(text)),
                        _ => Ok(Side::Bytes(node.size)),
                    }
                }
                Kind::Symlink => {
                    let target = directory.read_link(name).doing("read", path)?;
                    Ok(Side::Text(format!("{}\n", target.display())))
                }
                Kind::Directory | Kind::Fifo | Kind::Socket | Kind::Device => Ok(Side::Nothing),
            },
            _ => Ok(Side::Nothing),
        }
    };
    let (old, new) = (side(&change.old, workspace)?, side(&change.new, upper)?);
    let has_sizes_only = [&old, &new].iter().any(|side| matches!(side, Side::Bytes(_)));
    match (old, new) {
        (Side::Nothing, Side::Nothing) => {}
        (Side::Bytes(bytes), Side::Nothing) | (Side::Nothing, Side::Bytes(bytes)) => {
            let _ = writeln!(text, "{bytes} bytes, not shown");
        }
        (old @ (Side::Bytes(_) | Side::Text(_)), Side::Bytes(bytes)) => {
            let _ = writeln!(text, "{} bytes become {bytes} bytes, not shown", old.len());
        }
        (Side::Bytes(bytes), new @ Side::Text(_)) => {
            let _ = writeln!(text, "{bytes} bytes become {} bytes, not shown", new.len());
        }
        (old, new) => text.push_str(&unified(path, &old.text(), &new.text())),
    }
    Ok((text, has_sizes_only))
}

enum Side {
    Nothing,
    Text(String),
    Bytes(u64),
}

impl Side {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Nothing | Self::Bytes(_) => String::new(),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Bytes(bytes) => *bytes,
            Self::Nothing => 0,
        }
    }
}

fn unified(path: &Path, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let shown = escape_name(path);
    let diff = TextDiff::configure()
        .deadline(Instant::now() + DIFF_TIMEOUT)
        .diff_lines(old, new);
    let text = diff
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{shown}"), &format!("b/{shown}"))
        .to_string();
    escape(&text)
}

/// The same for a path, which has no lines.
fn escape_name(path: &Path) -> String {
    escape(&path.to_string_lossy())
        .replace('\n', "\\n")
        .replace('\t', "\\t")
}

/// Makes control characters and invisible ones visible, except for line ends and tabs: a person decides by this text.
fn escape(text: &str) -> String {
    let hides = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    if !text.contains(hides) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match hides(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}
