//! The state of the workspace that a set's changes were made from, to tell what somebody else changed meanwhile.
//!
//! While commands run nothing is recorded: a file that changed in the workspace before it was copied into the layer is
//! what the command saw, and the layer's file system says when that was. What waits gets a record of each path, and a
//! copy of each text for a later three-way merge.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::header::{Header, path_bytes};
use crate::node::{Kind, Node, Time};
use crate::plan::{Reader, Writer};
use crate::scan::{Action, Change, Found};

/// The name of the records in a set, and of the directory with copies.
const RECORDS: &str = "base";
const COPIES: &str = "base.d";

/// Bytes of a text up to which a copy is kept.
const COPIED: u64 = 512 * 1024;
/// Lines of a text up to which it is merged.
const LINES: usize = 10_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    #[serde(with = "path_bytes")]
    path: PathBuf,
    base: Base,
}

/// What was at a path. `None`: nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Base {
    node: Option<Node>,
    /// The name of a copy of its content.
    copy: Option<u64>,
    /// Whether it had changed already, so that nobody knows what the command saw.
    is_unknown: bool,
}

/// The recorded states of a set.
#[derive(Debug)]
pub(crate) struct Bases {
    since: Time,
    /// When a part of the set was committed last, by which directories changed too.
    parted: Time,
    /// The states that are known of a path, the last one last: another one where a part of the set was committed.
    records: HashMap<PathBuf, Vec<Base>>,
    copies: Option<Directory>,
}

impl Bases {
    pub(crate) fn load(set: &Directory, header: &Header) -> Result<Self, ChangesError> {
        let mut records: HashMap<_, Vec<Base>> = HashMap::new();
        if let Some(mut reader) = Reader::open(set, RECORDS)? {
            while let Some(record) = reader.next::<Record>()? {
                records.entry(record.path).or_default().push(record.base);
            }
        }
        let copies = set.beneath(Path::new(COPIES)).doing("open", COPIES)?;
        Ok(Self {
            since: header.since,
            parted: header.parted.unwrap_or(Time::MIN),
            records,
            copies,
        })
    }

    /// The mode that was recorded of a path, 0 of what was not there; nothing if it was not recorded.
    pub(crate) fn recorded_mode(&self, path: &Path) -> Option<u32> {
        let base = self.last(path)?;
        Some(base.node.as_ref().map_or(0, |node| node.mode))
    }

    /// The state of a path that was recorded last.
    fn last(&self, path: &Path) -> Option<&Base> {
        self.records.get(path)?.last()
    }

    /// Whether somebody else gave a directory the mode that it has in the workspace, and commands left it as it was.
    pub(crate) fn keeps_mode(&self, change: &Change) -> bool {
        let (Some(old), Some(new)) = (&change.old, &change.new) else {
            return false;
        };
        if !old.is_directory() || !new.is_directory() || old.mode == new.mode {
            return false;
        }
        match self.last(&change.path).and_then(|base| base.node.as_ref()) {
            Some(base) => base.mode == new.mode,
            // The layer's was made with the mode of that moment. Entries that come and go set both times alike.
            None => old.changed >= new.born.unwrap_or(self.since).max(self.parted) && old.changed > old.modified,
        }
    }

    /// Whether the workspace's side of a change is another than the one that the change was made from.
    pub(crate) fn has_moved(&self, found: &Found<'_>) -> Result<bool, ChangesError> {
        let Change { path, action, old, new } = found.change;
        // That others change what is in a directory is no change of the directory: of one that is gone, all that was in
        // it is compared by itself.
        if let Some(old) = old.as_ref().filter(|old| old.is_directory()) {
            return Ok(match self.last(path) {
                Some(base) => match base.node.as_ref().filter(|node| node.is_directory()) {
                    Some(base) => new
                        .as_ref()
                        .is_some_and(|new| new.is_directory() && merged(base.mode, old.mode, new.mode).is_none()),
                    None => true,
                },
                // One that is gone may have been moved there meanwhile, with all that is in it.
                None if new.is_none() => old.changed > self.since.max(self.parted),
                None => old.born.is_some_and(|born| born > self.since),
            });
        }
        // Both sides made the same of it.
        if action == &Action::Touched {
            return Ok(false);
        }
        if let Some(bases) = self.records.get(path) {
            for base in bases {
                let is_same = match (&base.node, old) {
                    _ if base.is_unknown => false,
                    (None, None) => true,
                    (Some(base), Some(old)) if base.is_untouched(old) => true,
                    (Some(node), Some(old)) if node.kind == old.kind && node.mode == old.mode => {
                        !self.differs_from_copy(base, found)?
                    }
                    _ => false,
                };
                if is_same {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        // If the user deleted what a command then wrote, it comes back; nothing of the user's is lost by that.
        let Some(old) = old else { return Ok(false) };
        let born = new.as_ref().and_then(|new| new.born);
        Ok(match born {
            Some(born) if born > self.since => old.changed >= born,
            _ => old.changed > self.since,
        })
    }

    fn differs_from_copy(&self, base: &Base, found: &Found<'_>) -> Result<bool, ChangesError> {
        let (Some(copy), Some(copies), Some(workspace)) = (base.copy, &self.copies, found.workspace) else {
            return Ok(true);
        };
        let doing = ("read", &found.change.path);
        let before = copies.read_some(copy.to_string(), COPIED).doing(doing.0, doing.1)?;
        let now = workspace.read_some(found.name, COPIED + 1).doing(doing.0, doing.1)?;
        Ok(before != now)
    }

    /// Records paths anew that were recorded and have been committed since.
    pub(crate) fn replace<'p>(
        &self,
        set: &Directory,
        workspace: &Directory,
        paths: impl Iterator<Item = &'p Path>,
    ) -> Result<(), ChangesError> {
        if self.records.is_empty() {
            return Ok(());
        }
        let mut writer = Writer::append(set, RECORDS)?;
        for path in paths.filter(|path| self.records.contains_key(*path)) {
            writer.write(&Record {
                path: path.to_path_buf(),
                base: Base {
                    node: workspace.look_beneath(path).doing("look at", path)?,
                    copy: None,
                    is_unknown: false,
                },
            })?;
        }
        writer.finish()
    }

    /// Merges a text that both sides changed, and its mode. `None` if that is not possible without a conflict.
    pub(crate) fn merge(&self, found: &Found<'_>) -> Result<Option<Merged>, ChangesError> {
        let Change { path, old, new, .. } = found.change;
        let is_file = |node: &Option<Node>| {
            node.as_ref()
                .is_some_and(|node| node.kind == Kind::File && node.size <= COPIED)
        };
        let (true, true, Some(upper), Some(workspace)) = (is_file(old), is_file(new), found.upper, found.workspace)
        else {
            return Ok(None);
        };
        let (Some(base), Some(old), Some(new)) = (self.last(path), old, new) else {
            return Ok(None);
        };
        let mode = base
            .node
            .as_ref()
            .and_then(|base| merged(base.mode, old.mode, new.mode));
        let (Some(mode), Some(copy), Some(copies)) = (mode, base.copy, &self.copies) else {
            return Ok(None);
        };
        let base = copies.read_some(copy.to_string(), COPIED).doing("read", path)?;
        let ours = workspace.read_some(found.name, COPIED + 1).doing("read", path)?;
        let theirs = upper.read_some(found.name, COPIED + 1).doing("read", path)?;
        let is_text = |bytes: &[u8]| {
            bytes.len() as u64 <= COPIED
                && !bytes.contains(&0)
                && bytes.iter().filter(|byte| **byte == b'\n').count() <= LINES
        };
        if ![&base, &ours, &theirs].into_iter().all(|bytes| is_text(bytes)) {
            return Ok(None);
        }
        let text = diffy::merge_bytes(&base, &ours, &theirs).ok();
        Ok(text.map(|text| Merged { text, mode }))
    }

    /// What both sides did, in words.
    pub(crate) fn tell(&self, found: &Found<'_>) -> String {
        let Change { action, old, .. } = found.change;
        let theirs = match action {
            Action::Added | Action::Modified | Action::Touched => "a command wrote it",
            Action::Deleted => "a command deleted it",
        };
        let was = self.last(&found.change.path).map(|base| base.node.is_some());
        let ours = match (old, was) {
            (None, _) => "it was deleted in the workspace meanwhile",
            (Some(_), Some(false)) => "it was created in the workspace meanwhile",
            (Some(_), _) => "it changed in the workspace meanwhile",
        };
        format!("{theirs}, and {ours}")
    }
}

/// A file that both sides changed, merged.
pub(crate) struct Merged {
    pub(crate) text: Vec<u8>,
    pub(crate) mode: u32,
}

/// What two sides made of a mode; nothing if each made something else of it.
fn merged(base: u32, ours: u32, theirs: u32) -> Option<u32> {
    match () {
        () if theirs == base => Some(ours),
        () if ours == base || ours == theirs => Some(theirs),
        () => None,
    }
}

/// Records what a workspace was when it was copied, entry by entry.
#[derive(Debug)]
pub struct CopyRecorder(Writer);

impl CopyRecorder {
    pub(crate) fn new(set: &Directory) -> Result<Self, ChangesError> {
        Writer::append(set, RECORDS).map(Self)
    }

    /// Records a path, relative to the workspace, as it was before it was read. `None`: nothing was there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record(&mut self, path: &Path, node: Option<Node>) -> Result<(), ChangesError> {
        self.0.write(&Record {
            path: path.to_path_buf(),
            base: Base {
                node,
                copy: None,
                is_unknown: false,
            },
        })
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> Result<(), ChangesError> {
        self.0.finish()
    }
}

/// Records the states of the paths that are not recorded yet.
pub(crate) struct Recorder<'b> {
    bases: &'b Bases,
    writer: Writer,
    copies: Directory,
    number: u64,
}

impl<'b> Recorder<'b> {
    pub(crate) fn new(set: &Directory, bases: &'b Bases) -> Result<Self, ChangesError> {
        let number = bases.records.values().flatten().filter_map(|base| base.copy).max();
        Ok(Self {
            bases,
            writer: Writer::append(set, RECORDS)?,
            copies: set.make_all(Path::new(COPIES)).doing("create", COPIES)?,
            number: number.map_or(0, |number| number + 1),
        })
    }

    pub(crate) fn record(&mut self, found: &Found<'_>, has_moved: bool) -> Result<(), ChangesError> {
        let change = found.change;
        if self.bases.records.contains_key(&change.path) {
            return Ok(());
        }
        let mut copy = None;
        if let (Some(old), Some(workspace), false) = (&change.old, found.workspace, has_moved)
            && old.kind == Kind::File
            && old.size <= COPIED
            && change.action != Action::Deleted
        {
            let name = self.number.to_string();
            self.copies.unlink_if_there(&name).doing("remove", &name)?;
            workspace
                .copy(found.name, old, &self.copies, name.as_ref())
                .doing("copy", &change.path)?;
            copy = Some(self.number);
            self.number += 1;
        }
        self.writer.write(&Record {
            path: change.path.clone(),
            base: Base {
                node: change.old.clone(),
                copy,
                is_unknown: has_moved,
            },
        })
    }

    pub(crate) fn finish(self) -> Result<(), ChangesError> {
        self.writer.finish()
    }
}

/// Forgets all records.
pub(crate) fn forget(set: &Directory) -> Result<(), ChangesError> {
    set.unlink_if_there(RECORDS).doing("remove", RECORDS)?;
    set.remove(COPIES).doing("remove", COPIES)
}
