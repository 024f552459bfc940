//! An operation on files, worked out and not made: what it reads and changes, by paths in which no link
//! is left.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Digest, Fields, Request, RequestKind};
use crate::units::ByteCount;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A file is read.
    ReadFile,
    /// A whole file is written.
    WriteFile,
    /// Text in a file is replaced.
    EditFile,
    /// Several files are changed at once.
    ApplyPatch,
    /// A directory is listed.
    ListFiles,
    /// Files are found by their names.
    Glob,
    /// Files are searched.
    Grep,
    /// Something is looked at.
    Stat,
    /// Something is removed.
    DeleteFile,
    /// Something is moved.
    MoveFile,
}

impl Operation {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::ApplyPatch => "apply_patch",
            Self::ListFiles => "list_files",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::Stat => "stat",
            Self::DeleteFile => "delete_file",
            Self::MoveFile => "move_file",
        }
    }

    /// Whether it changes something.
    pub fn changes(self) -> bool {
        match self {
            Self::WriteFile | Self::EditFile | Self::ApplyPatch | Self::DeleteFile | Self::MoveFile => true,
            Self::ReadFile | Self::ListFiles | Self::Glob | Self::Grep | Self::Stat => false,
        }
    }
}

/// What happens to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// What stands there is seen.
    Read,
    /// It is made, or gets other content.
    Write,
    /// It is removed, or moved away.
    Remove,
}

impl Access {
    /// Whether it changes something.
    pub fn changes(self) -> bool {
        match self {
            Self::Read => false,
            Self::Write | Self::Remove => true,
        }
    }
}

/// A path, and what happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// What happens.
    pub access: Access,
    /// The path: absolute, with no link in it.
    pub path: PathBuf,
    /// Whether it is a directory, if that is known.
    pub directory: Option<bool>,
    /// Where the operation's text names it, or the directory that it goes with, in bytes.
    pub span: Range<usize>,
}

/// One operation on files.
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
    /// This operation in a workspace, whose own path has no link in it, on these paths. `words` are
    /// whatever else decides what it does, such as `--recursive` or a pattern.
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
        // Where each path stands that the text names.
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

    /// The operation with this content to write, replace or apply, of which only the digest is kept.
    #[must_use]
    pub fn with_content(mut self, content: Digest) -> Self {
        self.content = content;
        self
    }

    /// The operation with what it would change, for whoever has to say yes.
    #[must_use]
    pub fn with_change(mut self, change: impl Into<String>) -> Self {
        self.change = Some(change.into());
        self
    }

    /// The operation, of whose change no more than so much is shown, and that is not all of it: nobody is
    /// asked about it. None: it is all of it.
    #[must_use]
    pub fn with_change_cut(mut self, at: Option<ByteCount>) -> Self {
        self.change_cut_at = at;
        self
    }

    /// The operation, of whose paths these are directories, and the others are not. Without it that is not
    /// known of any, and what a policy hides of either kind is hidden.
    #[must_use]
    pub fn with_directories(mut self, directories: &HashSet<PathBuf>) -> Self {
        for touched in &mut self.touched {
            touched.directory = Some(directories.contains(&touched.path));
        }
        self
    }

    /// What is done.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// How it reads: `write_file src/main.rs`. Paths in the workspace are relative to it; what is more
    /// than letters, digits and the usual signs stands in quotes, with whatever deceives escaped.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The directory that is worked in, without links.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// What it reads and changes, in the order of its text.
    pub fn touched(&self) -> &[Touched] {
        &self.touched
    }

    /// How a path stands in the text: by itself, or by the directory that it goes with.
    pub fn named(&self, touched: &Touched) -> &str {
        self.text.get(touched.span.clone()).unwrap_or_default()
    }

    /// What it would change, as far as that can be shown.
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

    fn variable_names(&self) -> Vec<String> {
        Vec::new()
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
}

/// Appends a blank and a word, and gives where the word stands.
fn push_word(text: &mut String, word: &Path) -> Range<usize> {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=@,:%~^*?![]{}()|&$#;<>\\".contains(c);
    text.push(' ');
    let start = text.len();
    match word.to_str() {
        Some(word) if !word.is_empty() && word.chars().all(plain) => text.push_str(word),
        // Its quotes keep two paths from reading like one with a blank.
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
