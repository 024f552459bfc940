//! Hidden files that git tracks. A cover stands in the place of each, and `git add -A` records the cover: whether that
//! has happened is read from git's index after a command. Changes nothing.
#![expect(clippy::disallowed_methods, reason = "git's own index is read here")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling_gate::index;

use super::{Restrictions, repository};
use crate::enforcement::Hidden;
use crate::outcome::{Hint, HintKind};

/// A larger index is not read.
const LONGEST: u64 = 256 << 20;
/// How many paths one hint names.
const NAMED: usize = 8;

/// The hidden files in the index of the workspace's repository.
#[derive(Debug)]
pub(super) struct Tracked {
    workspace: PathBuf,
    hidden: Arc<dyn Hidden>,
    index: PathBuf,
    /// The index at the last look.
    seen: Option<Stamp>,
    /// The hidden files in it before commands changed it, and whether each is a link.
    before: BTreeMap<PathBuf, bool>,
}

/// What tells one state of a file from another.
type Stamp = (u64, u64, i64, i64);

impl Tracked {
    /// Those of these restrictions; nothing where nothing is hidden, or no repository can be written.
    pub(super) fn of(restrictions: &Restrictions) -> Option<Self> {
        let hidden = restrictions.hidden.as_ref().filter(|_| !restrictions.readonly)?;
        let workspace = &restrictions.workspace;
        let git = workspace.join(".git");
        let git = match fs::symlink_metadata(&git).ok()?.is_dir() {
            true => git,
            false => {
                let text = repository::small(&git)?;
                let linked = fs::canonicalize(workspace.join(text.strip_prefix("gitdir:")?.trim())).ok()?;
                linked
                    .starts_with(restrictions.repository.as_ref()?)
                    .then_some(linked)?
            }
        };
        Some(Self {
            workspace: workspace.clone(),
            hidden: Arc::clone(hidden),
            index: git.join("index"),
            seen: None,
            before: BTreeMap::new(),
        })
    }

    /// Looks before a command: what has changed since the last one was not changed by a command.
    pub(super) fn look(&mut self) {
        if let Some((stamp, found)) = self.changed() {
            self.seen = Some(stamp);
            self.before = found;
        }
    }

    /// What the index says since a command of files that are there and hidden; nothing if it was not changed.
    pub(super) fn explain(&mut self) -> Option<Hint> {
        let (stamp, found) = self.changed()?;
        self.seen = Some(stamp);
        let is_there =
            |path: &Path| fs::symlink_metadata(self.workspace.join(path)).is_ok_and(|found| !found.is_symlink());
        let links = found.iter().filter(|(_, is_link)| **is_link).map(|(path, _)| path);
        let gone = self.before.keys().filter(|path| !found.contains_key(*path));
        let spoiled: Vec<String> = links
            .chain(gone)
            .filter(|path| is_there(path))
            .take(NAMED)
            .map(|path| path.display().to_string())
            .collect();
        let first = spoiled.first()?;
        let all = spoiled.join("`, `");
        Some(Hint {
            kind: HintKind::NotShown,
            path: Some(PathBuf::from(first)),
            because: format!(
                "git's index now has `{all}` as a link or not at all. It is hidden, and something else stands in its \
                 place: if that was staged, a commit makes git replace or remove the user's own file later"
            ),
            instead: "take it back with `git reset -q` (which unstages everything and keeps the files) before a commit, \
                      and with `git reset -q HEAD~1` (which undoes that commit and keeps the files) after one, and stage \
                      files by name, without `git add -A` and `git commit -a`"
                .to_owned(),
        })
    }

    /// The index if it has changed since the last look, with the hidden files in it.
    fn changed(&self) -> Option<(Stamp, BTreeMap<PathBuf, bool>)> {
        // Commands write here: no link is followed, and no pipe is waited for.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).expect("open's flags fit into an int");
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.index)
            .ok()?;
        let found = file
            .metadata()
            .ok()
            .filter(|found| found.is_file() && found.len() <= LONGEST)?;
        let stamp = (found.ino(), found.len(), found.mtime(), found.mtime_nsec());
        if self.seen == Some(stamp) {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).ok()?;
        let tracked = index::tracked(&bytes)?.into_iter();
        let found = tracked.map(|one| (PathBuf::from(OsStr::from_bytes(&one.path)), one.is_link()));
        Some((stamp, found.filter(|(path, _)| self.is_hidden(path)).collect()))
    }

    fn is_hidden(&self, path: &Path) -> bool {
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        self.hidden.hides(path, false) || above.into_iter().any(|above| self.hidden.hides(above, true))
    }
}
