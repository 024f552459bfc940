//! File operations that are prepared and not yet made: what they read and change, by resolved paths.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::operation::Operation;
use super::{Digest, Fields, Request, RequestKind};
use crate::units::ByteCount;

/// How an operation accesses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// The file is read.
    Read,
    /// The file is created or changed.
    Write,
    /// The file is removed or moved away.
    Remove,
}

impl Access {
    /// Returns whether it changes the file.
    pub fn changes(self) -> bool {
        match self {
            Self::Read => false,
            Self::Write | Self::Remove => true,
        }
    }
}

/// A path that an operation accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// How it is accessed.
    pub access: Access,
    /// The absolute path, without links.
    pub path: PathBuf,
    /// Whether it is a directory, if known.
    pub directory: Option<bool>,
    /// The position in the operation's text of the path, or of the directory that contains it, in bytes.
    pub span: Range<usize>,
}

/// A file operation.
///
/// ```
/// use shieling::request::{Access, FileOp, Operation};
///
/// let paths = vec![(Access::Write, "/work/src/main.rs".into())];
/// let op = FileOp::new(Operation::WriteFile, "/work", &[], paths);
/// assert_eq!(op.text(), "write_file src/main.rs");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOp {
    operation: Operation,
    text: String,
    workspace: PathBuf,
    touched: Vec<Touched>,
    content: Digest,
    change: Option<String>,
    change_cut_at: Option<ByteCount>,
}

impl FileOp {
    /// Creates an operation on these paths. The workspace's path must be free of links. `words` are other arguments
    /// that determine the effect, such as `--recursive` or a pattern.
    pub fn new(
        operation: Operation,
        workspace: impl Into<PathBuf>,
        words: &[&str],
        paths: Vec<(Access, PathBuf)>,
    ) -> Self {
        let workspace = workspace.into();
        let mut text = operation.name().to_owned();
        for word in words {
            push_word(&mut text, word.as_ref());
        }
        // The position of each path that the text contains.
        let mut named: HashMap<PathBuf, (Access, Range<usize>)> = HashMap::new();
        let mut touched: Vec<Touched> = Vec::with_capacity(paths.len());
        for (access, path) in paths {
            let above = |above: &Path| {
                let (same, span) = named.get(above)?;
                (above == path || *same == access).then(|| span.clone())
            };
            let span = match path.ancestors().find_map(above) {
                Some(span) => span,
                None => {
                    let inside = path.strip_prefix(&workspace).unwrap_or(&path);
                    let here = Path::new(".");
                    let span = push_word(&mut text, if inside == Path::new("") { here } else { inside });
                    named.insert(path.clone(), (access, span.clone()));
                    span
                }
            };
            touched.push(Touched {
                access,
                path,
                directory: None,
                span,
            });
        }
        Self {
            operation,
            text,
            workspace,
            touched,
            content: Digest::of(b""),
            change: None,
            change_cut_at: None,
        }
    }

    /// Adds the content to write, replace or apply, of which only the digest is kept.
    #[must_use]
    pub fn with_content(mut self, content: Digest) -> Self {
        self.content = content;
        self
    }

    /// Adds the change that it would make, for an approver.
    #[must_use]
    pub fn with_change(mut self, change: impl Into<String>) -> Self {
        self.change = Some(change.into());
        self
    }

    /// Sets the bound at which the change was cut. A cut change cannot be approved. `None`: it is complete.
    #[must_use]
    pub fn with_change_cut(mut self, at: Option<ByteCount>) -> Self {
        self.change_cut_at = at;
        self
    }

    /// Sets which of the paths are directories. Without it this is unknown, and a policy that hides files or
    /// directories by pattern hides either kind.
    #[must_use]
    pub fn with_directories(mut self, directories: &HashSet<PathBuf>) -> Self {
        for touched in &mut self.touched {
            touched.directory = Some(directories.contains(&touched.path));
        }
        self
    }

    /// Returns the kind of the operation.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns the text: `write_file src/main.rs`. Paths in the workspace are relative to it. Paths with unusual
    /// characters are quoted, and deceptive characters escaped.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the workspace's path, without links.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns the paths in the order of the text.
    pub fn touched(&self) -> &[Touched] {
        &self.touched
    }

    /// Returns the name of a path in the text: its own, or that of the directory that contains it.
    pub fn named(&self, touched: &Touched) -> &str {
        self.text.get(touched.span.clone()).unwrap_or_default()
    }

    /// Returns the change that it would make, as far as it can be shown.
    pub fn change(&self) -> Option<&str> {
        self.change.as_deref()
    }
}

impl Request for FileOp {
    fn kind(&self) -> RequestKind {
        RequestKind::Files
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn cwd(&self) -> &Path {
        &self.workspace
    }

    fn digest(&self) -> Digest {
        let mut fields = Fields::of_files();
        fields.add(self.text.as_bytes());
        fields.add(self.workspace.as_os_str().as_encoded_bytes());
        for touched in &self.touched {
            fields.add(&[touched.access as u8, touched.directory.map_or(2, u8::from)]);
            fields.add(touched.path.as_os_str().as_encoded_bytes());
        }
        fields.add(&self.content.0);
        fields.add(self.change.as_deref().unwrap_or_default().as_bytes());
        fields.digest()
    }

    fn place(&self) -> Digest {
        let mut fields = Fields::of_files();
        fields.add(self.workspace.as_os_str().as_encoded_bytes());
        fields.digest()
    }

    fn change(&self) -> Option<&str> {
        self.change.as_deref()
    }

    fn change_cut_at(&self) -> Option<ByteCount> {
        self.change_cut_at
    }

    fn operation(&self) -> Option<Operation> {
        Some(self.operation)
    }
}

/// Appends a blank and a word. Returns the position of the word.
fn push_word(text: &mut String, word: &Path) -> Range<usize> {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=@,:%~^*?![]{}()|&$#;<>\\".contains(c);
    text.push(' ');
    let start = text.len();
    match word.to_str() {
        Some(word) if !word.is_empty() && word.chars().all(plain) => text.push_str(word),
        // The quotes distinguish two paths from one that contains a blank.
        Some(_) | None => write!(text, "{word:?}").expect("writing to a string cannot fail"),
    }
    start..text.len()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;
    use crate::request::Command;

    fn write(path: &str) -> FileOp {
        FileOp::new(Operation::WriteFile, "/work", &[], vec![(Access::Write, path.into())])
    }

    #[test]
    fn two_operations_never_read_the_same() {
        let bytes = PathBuf::from(OsStr::from_bytes(b"/work/\xff"));
        let paths = |paths: &[&str]| paths.iter().map(|path| (Access::Write, PathBuf::from(path))).collect();
        let cases = [
            (vec![(Access::Write, bytes)], r#"apply_patch "\xFF""#),
            (paths(&["/work/src/main.rs"]), "apply_patch src/main.rs"),
            (paths(&["/etc/passwd"]), "apply_patch /etc/passwd"),
            (paths(&["/work"]), "apply_patch ."),
            (paths(&["/work/a b"]), r#"apply_patch "a b""#),
            (paths(&["/work/a", "/work/b"]), "apply_patch a b"),
            (paths(&["/work/a\" \"b"]), r#"apply_patch "a\" \"b""#),
            (
                paths(&["/work/a\nrm \u{1b}[2K\u{202e}"]),
                r#"apply_patch "a\nrm \u{1b}[2K\u{202e}""#,
            ),
            (paths(&["/workspace/x"]), "apply_patch /workspace/x"),
            (paths(&["/work/ä.txt"]), "apply_patch ä.txt"),
        ];
        for (paths, expected) in cases {
            assert_eq!(FileOp::new(Operation::ApplyPatch, "/work", &[], paths).text(), expected);
        }
        let moved = vec![(Access::Remove, "/work/a".into()), (Access::Write, "/work/b".into())];
        let moved = FileOp::new(Operation::MoveFile, "/work", &["--replace"], moved);
        assert_eq!(moved.text(), "move_file --replace a b");
        assert_eq!(moved.named(&moved.touched()[1]), "b");
    }

    #[test]
    fn a_path_that_is_touched_twice_is_named_once() {
        let both = vec![(Access::Write, "/work/a".into()), (Access::Read, "/work/a".into())];
        let op = FileOp::new(Operation::EditFile, "/work", &[], both);
        assert_eq!(op.text(), "edit_file a");
        assert_eq!(op.touched().len(), 2);
    }

    #[test]
    fn what_goes_with_a_directory_is_touched_and_not_named() {
        let all = ["/work/d", "/work/d/a", "/work/d/e/f", "/work/other"].map(|path| (Access::Remove, path.into()));
        let op = FileOp::new(Operation::DeleteFile, "/work", &["--recursive"], all.to_vec());
        assert_eq!(op.text(), "delete_file --recursive d other");
        assert_eq!(op.touched().len(), 4);
        assert_eq!(op.named(&op.touched()[2]), "d");
        let fewer = FileOp::new(
            Operation::DeleteFile,
            "/work",
            &["--recursive"],
            [&all[..1], &all[3..]].concat(),
        );
        assert_eq!(fewer.text(), op.text());
        assert_ne!(
            fewer.digest(),
            op.digest(),
            "what goes with it is part of what is agreed to"
        );
    }

    #[test]
    fn all_that_decides_what_happens_is_in_the_digest() {
        let base = write("/work/a");
        let others = [
            write("/work/b"),
            write("/work/a").with_content(Digest::of(b"other")),
            write("/work/a").with_change("-x\n+y"),
            FileOp::new(
                Operation::EditFile,
                "/work",
                &[],
                vec![(Access::Write, "/work/a".into())],
            ),
            FileOp::new(
                Operation::WriteFile,
                "/work",
                &[],
                vec![(Access::Remove, "/work/a".into())],
            ),
            FileOp::new(Operation::WriteFile, "/", &[], vec![(Access::Write, "/a".into())]),
        ];
        for other in others {
            assert_ne!(base.digest(), other.digest(), "{other:?}");
        }
        assert_eq!(base.digest(), write("/work/a").digest());
    }

    #[test]
    fn an_operation_and_a_command_of_the_same_words_have_nothing_in_common() {
        let command = Command::new("write_file a", "/work").expect("a command");
        let op = write("/work/a");
        assert_eq!(op.text(), command.text());
        assert_ne!(op.digest(), command.digest());
        assert_ne!(op.place(), Request::place(&command));
    }
}
