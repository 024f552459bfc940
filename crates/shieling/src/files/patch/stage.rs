//! Computes the new content of each file of a patch. Nothing is changed here: sections about the same file build on
//! each other, and one that does not match leaves all files as they are.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::apply::{Applied, Misfit, apply};
use super::commit::Work;
use super::section::{Hunk, Section, unreadable};
use super::staged::{NewState, Staged};
use crate::environment::{FileError, Kind, Links};
use crate::files::diff::{self, Diff, Names};
use crate::files::edit;
use crate::files::encoding::Encoding;
use crate::files::resolve::{self, LoadedFile, ResolvedTarget};
use crate::files::{Access, Context, FilesError, PatchedFile, PlannedChange};
use crate::units::ByteCount;

/// The largest size of all files of a patch together, in bytes.
const LARGEST: u64 = 256 << 20;

/// The largest number of files in a patch. Each holds a descriptor, of which a process has only some thousand.
const FILES: usize = 500;

/// The largest preview. An approver could not judge a longer one.
const PREVIEW: ByteCount = ByteCount::kib(64);

/// The files of a patch.
pub(super) struct Stage<'a> {
    context: Context<'a>,
    files: Vec<Staged>,
    told: Vec<(usize, PatchedFile)>,
    size: u64,
}

impl<'a> Stage<'a> {
    pub(super) fn new(context: Context<'a>) -> Self {
        Self {
            context,
            files: Vec::new(),
            told: Vec::new(),
            size: 0,
        }
    }

    /// Applies a section.
    pub(super) fn take(&mut self, section: &Section) -> Result<(), FilesError> {
        match (&section.from, &section.to) {
            (None, Some(to)) => self.add(section, to),
            (Some(from), None) => self.remove(section, from),
            (Some(from), Some(to)) => self.change(section, from, to),
            (None, None) => unreadable(usize::try_from(section.line).unwrap_or(1) - 1, "no file is named"),
        }
    }

    /// Returns the number of a file.
    fn file(&mut self, asked: &Path) -> Result<usize, FilesError> {
        let reached = resolve::write_target(self.context, asked, Links::Follow)?;
        let known = self
            .files
            .iter()
            .position(|file| file.write_target.path() == reached.write_target.path());
        if let Some(known) = known {
            return Ok(known);
        }
        if self.files.len() == FILES {
            let why = format!("it names more than {FILES} files: give it in parts");
            return Err(FilesError::Argument { argument: "patch", why });
        }
        let was = match reached.file()? {
            Some(node) => Some(resolve::load(self.context, node, LARGEST, "patched")?),
            None => None,
        };
        let size = was.as_ref().map_or(0, |held| held.content.len() as u64);
        self.size += size;
        let ResolvedTarget { write_target, .. } = reached;
        if self.size > LARGEST {
            let (path, done) = (write_target.path().to_path_buf(), "patched, all files together,");
            return Err(FilesError::TooLarge {
                path,
                size: self.size,
                limit: LARGEST,
                done,
            });
        }
        let number = self.files.len();
        let content = was.as_ref().map(|held| held.content.clone());
        let now = content.map(|content| NewState {
            content,
            executable: None,
            origin: Some(number),
        });
        self.files.push(Staged { write_target, was, now });
        Ok(number)
    }

    /// Returns the number of an existing file. If the file `goes`, it must not be a link.
    fn present(&mut self, asked: &Path, goes: bool) -> Result<usize, FilesError> {
        let number = self.file(asked)?;
        let named = self.context.files.node(&self.context.absolute(asked), Links::Keep);
        if goes && named.is_ok_and(|node| node.meta().is_ok_and(|meta| meta.kind == Kind::Link)) {
            let why = format!("`{}` is a link: a patch removes and moves files", asked.display());
            return Err(FilesError::Argument { argument: "patch", why });
        }
        if self.files[number].now.is_none() {
            Err(resolve::missing(asked))
        } else {
            Ok(number)
        }
    }

    fn add(&mut self, section: &Section, to: &Path) -> Result<(), FilesError> {
        let number = self.file(to)?;
        let path = self.files[number].path();
        if self.files[number].now.is_some() {
            return Err(FileError::Exists(path).into());
        }
        let applied = applied(&path, &[], &section.hunks)?;
        let executable = section.executable.1.filter(|executable| *executable);
        self.report(number, "added", None, &applied);
        self.files[number].now = Some(NewState {
            content: applied.content,
            executable,
            origin: None,
        });
        Ok(())
    }

    fn remove(&mut self, section: &Section, from: &Path) -> Result<(), FilesError> {
        let number = self.present(from, true)?;
        let path = self.files[number].path();
        let Some(now) = self.files[number].now.take() else {
            return Err(resolve::missing(from));
        };
        let mut applied = Applied::default();
        if section.tells_all {
            applied = self::applied(&path, &now.content, &section.hunks)?;
            if !applied.content.is_empty() {
                let why = "the file has more than what the patch removes".to_owned();
                return Err(FilesError::Misfit {
                    path,
                    hunk: 1,
                    why,
                    nearest: Vec::new(),
                });
            }
        } else {
            applied.removed = Encoding::UTF_8.count_ends(&now.content);
            applied.removed += u64::from(!now.content.is_empty() && !now.content.ends_with(b"\n"));
        }
        self.report(number, "removed", None, &applied);
        Ok(())
    }

    fn change(&mut self, section: &Section, from: &Path, to: &Path) -> Result<(), FilesError> {
        let source = self.present(from, from != to)?;
        let target = if from == to { source } else { self.file(to)? };
        let path = self.files[source].path();
        if source != target && self.files[target].now.is_some() {
            return Err(FileError::Exists(self.files[target].path()).into());
        }
        let Some(now) = self.files[source].now.take() else {
            return Err(resolve::missing(from));
        };
        let applied = applied(&path, &now.content, &section.hunks)?;
        let change = if source == target { "changed" } else { "moved" };
        self.report(target, change, (source != target).then_some(path), &applied);
        let executable = section.executable.1.or(now.executable);
        self.files[target].now = Some(NewState {
            content: applied.content,
            executable,
            origin: now.origin,
        });
        Ok(())
    }

    fn report(&mut self, number: usize, change: &'static str, from: Option<PathBuf>, applied: &Applied) {
        let path = self.files[number].path();
        let (added, removed) = (applied.added, applied.removed);
        self.told.push((
            number,
            PatchedFile {
                path,
                change,
                from,
                added,
                removed,
                hash: None,
            },
        ));
    }

    /// Builds the plan of the whole change.
    pub(super) fn plan(self) -> Result<PlannedChange, FilesError> {
        let mut paths = Vec::new();
        let (mut preview, mut cut_at) = (String::new(), None);
        for (number, file) in self.files.iter().enumerate() {
            match (&file.was, &file.now) {
                (_, Some(now)) if !file.is_kept(number, now) => paths.push((Access::Write, file.path())),
                (Some(_), None) => paths.push((Access::Remove, file.path())),
                (_, Some(_)) | (None, None) => {}
            }
            if cut_at.is_some() {
                continue;
            }
            let shown = self.shown(number, file);
            preview.push_str(&shown.text);
            let is_longer = preview.len() > PREVIEW.as_usize();
            cut_at = shown.cut_at().or(is_longer.then_some(PREVIEW));
        }
        let work = Work::new(self.files, self.told, self.context.cache.clone())?;
        Ok(PlannedChange {
            paths,
            preview,
            cut_at,
            directories: HashSet::new(),
            make: Box::new(move || work.make()),
        })
    }

    /// Returns the diff of a file.
    fn shown(&self, number: usize, file: &Staged) -> Diff {
        let (workspace, path) = (self.context.workspace, file.path());
        let content = |held: &'_ Option<LoadedFile>| held.as_ref().map_or(Vec::new(), |held| held.content.clone());
        match &file.now {
            None if file.was.is_none() => Diff::default(),
            None => {
                let names = Names::removed(workspace, &path);
                let text = diff::of_contents(&names, &content(&file.was), &[]);
                text.filter(|diff| !diff.text.is_empty()).unwrap_or_else(|| Diff {
                    text: format!("removed: {}\n", path.display()),
                    is_cut: false,
                })
            }
            Some(now) => {
                let origin = now.origin.map(|origin| &self.files[origin]);
                let names = if origin.is_some() {
                    Names::same(workspace, &path)
                } else {
                    Names::made(workspace, &path)
                };
                let was = origin.map_or(Vec::new(), |origin| content(&origin.was));
                let mut out = String::new();
                if let Some(origin) = origin.filter(|_| now.origin != Some(number)) {
                    out = format!("moved: {} to {}\n", origin.path().display(), path.display());
                }
                if let Some(executable) = now.executable {
                    out.push_str(&format!(
                        "{}: {}\n",
                        if executable { "may be run" } else { "may not be run" },
                        path.display()
                    ));
                }
                let diff = diff::of_contents(&names, &was, &now.content).unwrap_or_default();
                Diff {
                    text: out + &diff.text,
                    is_cut: diff.is_cut,
                }
            }
        }
    }
}

/// Applies hunks to a content in its own encoding.
fn applied(path: &Path, content: &[u8], hunks: &[Hunk]) -> Result<Applied, FilesError> {
    if hunks.is_empty() {
        return Ok(Applied {
            content: content.to_vec(),
            ..Applied::default()
        });
    }
    let no_text = |why: String| FilesError::NotText {
        path: path.to_path_buf(),
        why,
    };
    let encoding = Encoding::of(content).ok_or_else(|| no_text("it has NUL bytes where text has none".to_owned()))?;
    // Patches of git contain the byte-order mark in their lines; others do not.
    let shows_mark = hunks
        .iter()
        .flat_map(|hunk| &hunk.lines)
        .any(|line| line.text.starts_with('\u{feff}'));
    let mark = if shows_mark && encoding.is_utf8() {
        0
    } else {
        encoding.mark()
    };
    let (mark, bytes) = content.split_at(mark);
    let misfit = |Misfit { hunk, why, nearest }| FilesError::Misfit {
        path: path.to_path_buf(),
        hunk,
        why,
        nearest,
    };
    if encoding.is_utf8() {
        let mut applied = apply(bytes, hunks).map_err(misfit)?;
        if !mark.is_empty() {
            applied.content.splice(..0, mark.iter().copied());
        }
        return Ok(applied);
    }
    let text = encoding.decode(bytes);
    if encoding.encode(&text).ok().as_deref() != Some(bytes) {
        let why = format!("it is {} and has bytes that could not be written back", encoding.name());
        return Err(no_text(why));
    }
    let mut applied = apply(text.as_bytes(), hunks).map_err(misfit)?;
    let new = String::from_utf8(applied.content).expect("lines of a text and of a patch are text");
    let wrong = |why| FilesError::Argument { argument: "patch", why };
    let lacks = |lacking| wrong(edit::lacks(path, encoding, lacking));
    let encoded = encoding.encode(&new).map_err(lacks)?;
    if let Some(uncertain) = encoding.uncertain(bytes, &new) {
        return Err(wrong(edit::unsure(path, encoding, uncertain)));
    }
    applied.content = [mark, &encoded].concat();
    Ok(applied)
}
