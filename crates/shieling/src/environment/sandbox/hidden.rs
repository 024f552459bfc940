//! Hidden files: which files and directories of the workspace a policy hides, found before each
//! command, and which names have to be held so that they stay hidden. Decides nothing itself, hides and
//! holds nothing: it asks [`Hidden`] and gives lists.
//!
//! The first look walks the whole workspace. Later ones ask for the times of each directory and read
//! those again that changed, or that were read so shortly after a change that another in the same
//! tick of the clock would not show.
//!
//! What counts as hidden besides what is named:
//!
//! - the target of a hidden link, if it lies in the workspace and does not contain the link;
//! - every other name of a hidden file (hard links), also of a file in a hidden directory, but not of
//!   a link's target;
//! - a directory that cannot be read: who owns it can make it readable again, and a name in it that is
//!   known can be opened without reading the directory;
//! - a directory deeper than 200 levels or behind a path of 3,000 bytes: nothing in it can be named.
//!
//! What is hidden cannot be moved, since something lies over it. But a directory above it could be, and
//! the next sandbox would not know it by its new path. So the names are *held* that it depends on:
//!
//! - the directories above it that a pattern names, as [`Hidden::needs_above`] says;
//! - for a hidden link to something in the workspace, every directory above the two, and every link on the way.
//!
//! A held name can be neither renamed, exchanged nor removed; what is in the directory can.
//!
//! No link is followed: each directory is opened beneath the workspace, whatever is renamed meanwhile.
//! What appears during the look, or later, is found by the next. File systems whose listings give other
//! inode numbers than their files (some overlays) keep their hard links.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use shieling_jail::message::Hide;

use super::guard::{self, HINTS};
use super::place::below;
use super::steps::{LINKS, Steps};
use super::{Restrictions, refused, writable};
use crate::enforcement::Hidden;
use crate::outcome::{Hint, HintKind};

/// How many entries are looked at before a workspace is refused.
const MOST_ENTRIES: usize = 2_000_000;
/// How many names are held before a workspace is refused. Each is a mount.
const MOST_HELD: usize = 10_000;
/// What programs say where a name is held, in small letters.
const BUSY: &str = "resource busy";
const DEEPEST: usize = 200;
const LONGEST: usize = 3_000;
/// How many looks in a row must at first see every directory where the one before saw it; how many
/// there are before a workspace is refused; and how long one waits for the next after a move.
const FIRST_LOOKS: usize = 8;
const MOST_LOOKS: usize = 40;
const BETWEEN_LOOKS: std::time::Duration = std::time::Duration::from_millis(2);
/// Times are as fine as a tick of the kernel: at most 10 ms, and some file systems round.
const TICK_NS: i128 = 50_000_000;

/// The hidden files of a workspace, and what is known of its directories.
#[derive(Debug)]
pub(super) struct HiddenFiles {
    workspace: PathBuf,
    hidden: Arc<dyn Hidden>,
    most: usize,
    most_held: usize,
    tree: Directory,
    /// Hidden regular files by inode number, which a listing tells, with one hidden name of each.
    files: HashMap<u64, Vec<(File, PathBuf)>>,
    links: BTreeSet<PathBuf>,
    told: HashMap<PathBuf, Identity>,
    /// The names to hold, and what was last given to be held by each. None in a workspace that is read-only.
    held: Option<BTreeMap<PathBuf, Option<File>>>,
    /// Directories, absolute, in whose place another stands for commands, which keeps the names in it by itself.
    closed: BTreeSet<PathBuf>,
    /// The directories that the last look saw, and where.
    places: HashMap<File, u64>,
}

/// The hidden files cannot be told, so nothing may start: an incomplete list hides less than was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HiddenError {
    /// There are too many entries.
    #[error(
        "the workspace `{}` has more than {limit} entries, too many to find the hidden ones before each command; \
         hide none, or choose a smaller workspace", .workspace.display()
    )]
    TooMany {
        /// The workspace.
        workspace: PathBuf,
        /// How many there may be.
        limit: usize,
    },
    /// What is hidden depends on too many names.
    #[error(
        "what is hidden in the workspace `{}` depends on the names of more than {limit} directories, too many to \
         hold them; use patterns that name no directory (`*.pem` in place of `a/*.pem`), or hide less", .workspace.display()
    )]
    TooManyHeld {
        /// The workspace.
        workspace: PathBuf,
        /// How many there may be.
        limit: usize,
    },
    /// Something is moved about as fast as it is found.
    #[error(
        "hidden files of the workspace `{}` are moved about while they are to be hidden; try again once that is over", .workspace.display()
    )]
    Moving {
        /// The workspace.
        workspace: PathBuf,
    },
    /// A directory cannot be looked at.
    #[error("cannot look for hidden files in `{}`", .path.display())]
    Look {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<HiddenError> for io::Error {
    fn from(error: HiddenError) -> Self {
        let kind = match &error {
            HiddenError::TooMany { .. } | HiddenError::TooManyHeld { .. } => io::ErrorKind::QuotaExceeded,
            HiddenError::Moving { .. } => io::ErrorKind::ResourceBusy,
            HiddenError::Look { source, .. } => source.kind(),
        };
        io::Error::new(kind, error)
    }
}

/// A file, whatever its name.
type File = (u32, u32, u64);
/// A file, and when it came to be: a number is given again once it is free.
type Identity = (File, i64, u32);

/// The identity of no file, for what is to be told again.
const NO_FILE: Identity = ((0, 0, 0), 0, 0);

/// A directory that was read.
#[derive(Debug, Default)]
struct Directory {
    name: OsString,
    /// As it was when it was last read, if that was late enough after its last change.
    stamp: Option<Stamp>,
    /// Whether it, or one above it, is hidden.
    hidden: bool,
    entries: usize,
    children: Vec<Directory>,
}

type Stamp = (File, i128, i128);
/// What a change of a name means for what is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing that can be told from the name.
    None,
    /// It is hidden, and another file than was told.
    Hidden(PathBuf),
    /// Something hidden is reached by it: all has to be looked at.
    Above,
}

/// Something hidden, and how many of the directories above it keep it so by their names.
type Found = (PathBuf, Identity, usize);

impl HiddenFiles {
    /// Of each place in which commands write, whose top is then what patterns are relative to; nothing is
    /// looked at yet. None if nothing is hidden.
    pub(super) fn of_all(restrictions: &Restrictions, closed: &BTreeSet<PathBuf>) -> Vec<Self> {
        let directories = writable::directories(restrictions);
        directories
            .iter()
            .filter_map(|root| Some(Self::new(root, restrictions)?.with_closed(closed.clone())))
            .collect()
    }

    fn new(root: &Path, restrictions: &Restrictions) -> Option<Self> {
        Some(Self {
            workspace: root.to_path_buf(),
            hidden: restrictions.hidden.clone()?,
            most: MOST_ENTRIES,
            most_held: MOST_HELD,
            tree: Directory::default(),
            files: HashMap::new(),
            links: BTreeSet::new(),
            told: HashMap::new(),
            held: (!restrictions.readonly).then(BTreeMap::new),
            closed: BTreeSet::new(),
            places: HashMap::new(),
        })
    }

    /// With these directories, whose names nobody can change anyway.
    pub(super) fn with_closed(self, closed: BTreeSet<PathBuf>) -> Self {
        Self { closed, ..self }
    }

    /// The hidden files and directories that are new since the last look, by absolute paths: all of
    /// them at first, and nothing below one that was told. One that was replaced is told again.
    ///
    /// # Errors
    /// [`HiddenError`]: nothing may be started on what is known then.
    pub(super) fn refresh(&mut self) -> Result<Vec<PathBuf>, HiddenError> {
        if !self.places.is_empty() {
            // What was hidden stays so wherever it is moved to.
            return self.look().map(|(found, _)| found);
        }
        // A directory that is moved from where has not been looked to where has been is missed by a look.
        let mut new = Vec::new();
        let mut needed = FIRST_LOOKS;
        for _ in 0..MOST_LOOKS {
            let (found, settled) = self.look()?;
            new.extend(found);
            needed = if settled { needed - 1 } else { FIRST_LOOKS };
            if needed == 0 {
                return Ok(new);
            }
            if !settled {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
        Err(HiddenError::Moving {
            workspace: self.workspace.clone(),
        })
    }

    /// One look: what is new, and whether every directory is where it was.
    fn look(&mut self) -> Result<(Vec<PathBuf>, bool), HiddenError> {
        let root = self.root()?;
        let mut look = Look {
            root: root.as_fd(),
            hidden: &*self.hidden,
            files: &mut self.files,
            links: &mut self.links,
            found: Vec::new(),
            entries: 0,
            most: self.most,
            again: false,
            linked: false,
            places: HashMap::new(),
            restless: false,
        };
        let mut walked = look.walk(&mut self.tree);
        if walked.is_ok() && look.linked {
            // Other names of it may stand in directories that were read before it was known.
            look.again = true;
            look.entries = 0;
            look.places.clear();
            walked = look.walk(&mut self.tree);
        }
        let (mut found, entries) = (look.found, look.entries);
        let (places, restless) = (look.places, look.restless);
        let moved = |(directory, place): (&File, &u64)| places.get(directory).is_none_or(|now| now != place);
        let settled = !restless && !self.places.iter().any(moved);
        self.places = places;
        let over = entries > self.most || self.told.len() > self.most;
        if over || walked.is_err() || self.files.len() > 2 * entries + 1_000 {
            // What was found in a look that failed is found again by the next; and so files that are
            // long gone are forgotten.
            self.tree = Directory::default();
            self.files.clear();
        }
        if over {
            return Err(HiddenError::TooMany {
                workspace: self.workspace.clone(),
                limit: self.most,
            });
        }
        walked.map_err(|(path, error)| self.failed(path, error))?;
        found.extend(self.targets(root.as_fd()));
        Ok((self.tell(found, root.as_fd()), settled))
    }

    fn root(&self) -> Result<OwnedFd, HiddenError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, &self.workspace, flags, Mode::empty()).map_err(|error| self.failed("", error))
    }

    /// The names to hold that are new since the last call, or belong to something else than then; what lies
    /// deeper comes later.
    ///
    /// # Errors
    /// [`HiddenError`]: there are too many.
    pub(super) fn hold(&mut self) -> Result<Vec<Hide>, HiddenError> {
        let root = self.root()?;
        let Some(held) = &mut self.held else {
            return Ok(Vec::new());
        };
        if held.len() > self.most_held {
            held.retain(|path, _| status(root.as_fd(), path).is_ok());
        }
        if held.len() > self.most_held {
            return Err(HiddenError::TooManyHeld {
                workspace: self.workspace.clone(),
                limit: self.most_held,
            });
        }
        let mut new = Vec::new();
        for (path, was) in held {
            // Gone: then so is what it was held for, or it is told by another path.
            let Ok(stat) = status(root.as_fd(), path) else {
                continue;
            };
            let file @ (major, minor, inode) = file(&stat);
            if was.replace(file) != Some(file) {
                new.push(Hide {
                    target: self.workspace.join(path),
                    file: (rustix::fs::makedev(major, minor), inode),
                });
            }
        }
        Ok(new)
    }

    /// Has the names of so many directories above a path held.
    fn hold_above(&mut self, path: &Path, above: usize) {
        if let Some(held) = &mut self.held {
            let above = path.ancestors().skip(1).take(above);
            let named = above.filter(|name| !name.as_os_str().is_empty());
            for name in named.filter(|name| !self.closed.contains(&self.workspace.join(name))) {
                held.entry(name.to_path_buf()).or_insert(None);
            }
        }
    }

    /// Has everything held by which a link leads to where it does.
    fn hold_way(&mut self, link: &Path) {
        // What ends it is hidden too, and lies under a cover. A way that cannot be seen to its end leads nowhere.
        let steps: Vec<_> = Steps::to(&self.workspace.join(link), LINKS)
            .map_while(Result::ok)
            .collect();
        let last = steps.last().map(|last| &last.path);
        for step in steps.iter().filter(|step| step.is_link() || Some(&step.path) == last) {
            let is_link = step.is_link();
            let Ok(name) = step.path.strip_prefix(&self.workspace) else {
                continue;
            };
            self.hold_above(name, usize::MAX);
            if let Some(held) = self.held.as_mut().filter(|_| is_link) {
                held.entry(name.to_path_buf()).or_insert(None);
            }
        }
    }

    /// What was told, for who hides it: where it is, and which file it is.
    pub(super) fn told(&self) -> Vec<Hide> {
        let all = self.told.keys().map(|path| self.workspace.join(path));
        self.described(all)
    }

    /// The same of some paths that were told.
    pub(super) fn described(&self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<Hide> {
        let described = paths.into_iter().filter_map(|target| {
            let told = self.told.get(target.strip_prefix(&self.workspace).ok()?)?;
            let ((major, minor, inode), ..) = *told;
            let file = (rustix::fs::makedev(major, minor), inode);
            Some(Hide { target, file })
        });
        described.collect()
    }

    /// Has these told again, wherever they are found next: they were not there any more when they were
    /// to be hidden.
    pub(super) fn forget(&mut self, paths: &[PathBuf]) {
        for path in paths {
            if let Ok(path) = path.strip_prefix(&self.workspace) {
                self.told.remove(path);
                if let Some(was) = self.held.as_mut().and_then(|held| held.get_mut(path)) {
                    *was = None;
                }
            }
        }
        if !paths.is_empty() {
            self.look_anew();
        }
    }

    /// Has the next look look at everything, as the first one does. Directories are being moved, and one look could miss
    /// them.
    fn look_anew(&mut self) {
        self.tree = Directory::default();
        self.places.clear();
    }

    /// Has all below a path told again that was told, where it is there. The directories that lead to it stay known.
    pub(super) fn tell_again_below(&mut self, path: &Path) {
        let below = self.told.iter_mut().filter(|(told, _)| told.starts_with(path));
        below.for_each(|(_, identity)| *identity = NO_FILE);
        self.look_anew();
    }

    /// The top of what is looked at.
    pub(super) fn root_path(&self) -> &Path {
        &self.workspace
    }

    /// The directories, relative to the top, in which something hidden was told, and those above them.
    pub(super) fn leading(&self) -> BTreeSet<PathBuf> {
        let mut leading = BTreeSet::new();
        for path in self.told.keys() {
            for above in path.ancestors().skip(1) {
                if !leading.insert(above.to_path_buf()) {
                    break;
                }
            }
        }
        leading
    }

    /// Says what the change of a name means, an absolute path, by itself alone: who replaces a file makes its name that of
    /// another. `leading` is [`Self::leading`].
    pub(super) fn changed(&mut self, path: &Path, leading: &BTreeSet<PathBuf>) -> Change {
        let Ok(path) = path.strip_prefix(&self.workspace) else {
            return Change::None;
        };
        let is_told = self.told.contains_key(path);
        let may_hide = self.hidden.hides(path, false) || self.hidden.hides(path, true);
        if leading.contains(path) {
            // A file below may have lost its cover and have its name again.
            self.tell_again_below(path);
            return Change::Above;
        }
        if path.as_os_str().is_empty() || !(is_told || may_hide) {
            return Change::None;
        }
        let Some(stat) = self.root().ok().and_then(|root| status(root.as_fd(), path).ok()) else {
            return Change::None;
        };
        let identity = identity(&stat);
        // Also where it is the file that was told: its cover went with its name, which it has been given back.
        let kind = FileType::from_raw_mode(stat.stx_mode.into());
        let is_directory = kind == FileType::Directory;
        match kind {
            // Where it leads is hidden with it.
            FileType::Symlink => Change::Above,
            _ if self.hidden.hides(path, is_directory) => {
                let above = self.hidden.needs_above(path, is_directory);
                self.hold_above(path, above);
                self.told.insert(path.to_path_buf(), identity);
                Change::Hidden(self.workspace.join(path))
            }
            // By another name of it, or as what a link leads to.
            _ if is_told => Change::Above,
            _ => Change::None,
        }
    }

    fn failed(&self, path: impl AsRef<Path>, error: Errno) -> HiddenError {
        HiddenError::Look {
            path: self.workspace.join(path),
            source: error.into(),
        }
    }

    /// What hidden links lead to, as of now: a target may come later than its link.
    #[expect(clippy::disallowed_methods, reason = "where a hidden link leads is looked up here")]
    fn targets(&mut self, root: BorrowedFd<'_>) -> Vec<Found> {
        let (mut targets, mut ways) = (Vec::new(), Vec::new());
        self.links.retain(|link| {
            let path = self.workspace.join(link);
            if std::fs::read_link(&path).is_err() {
                return false;
            }
            if let Ok(real) = std::fs::canonicalize(&path)
                && below(&real, &self.workspace)
                && !path.starts_with(&real)
                && let Ok(target) = real.strip_prefix(&self.workspace)
                && let Ok(stat) = status(root, target)
            {
                targets.push((target.to_path_buf(), identity(&stat), 0));
                ways.push(link.clone());
            }
            true
        });
        for link in ways {
            self.hold_way(&link);
        }
        targets
    }

    /// Those that were not told, topmost only.
    fn tell(&mut self, mut found: Vec<Found>, root: BorrowedFd<'_>) -> Vec<PathBuf> {
        // An ancestor is shorter, so it is told before what is below it.
        found.sort_by(|a, b| {
            a.0.as_os_str()
                .len()
                .cmp(&b.0.as_os_str().len())
                .then_with(|| a.0.cmp(&b.0))
        });
        let mut new = Vec::new();
        for (path, identity, above) in found {
            // Told once and replaced since is another directory, which nothing lies over.
            let is_told = |above: &Path| {
                self.told
                    .get(above)
                    .is_some_and(|told| status(root, above).is_ok_and(|now| self::identity(&now) == *told))
            };
            let under = path.ancestors().skip(1).any(is_told);
            if under || self.told.get(&path) == Some(&identity) {
                continue;
            }
            self.hold_above(&path, above);
            new.push(self.workspace.join(&path));
            self.told.insert(path, identity);
        }
        new
    }
}

/// One look at the workspace.
struct Look<'a> {
    root: BorrowedFd<'a>,
    hidden: &'a dyn Hidden,
    files: &'a mut HashMap<u64, Vec<(File, PathBuf)>>,
    links: &'a mut BTreeSet<PathBuf>,
    found: Vec<Found>,
    entries: usize,
    most: usize,
    /// Whether every directory is read, whatever its times say.
    again: bool,
    /// Whether a hidden file came to be known that has several names.
    linked: bool,
    /// Each directory that was seen, and a hash of where.
    places: HashMap<File, u64>,
    /// Whether one was seen at two places, or was gone when it was come to.
    restless: bool,
}

type Failed = (PathBuf, Errno);

impl Look<'_> {
    fn walk(&mut self, tree: &mut Directory) -> Result<(), Failed> {
        self.visit(tree, &mut PathBuf::new(), 0).map(drop)
    }

    /// Looks at a directory and those in it; whether it is still there.
    fn visit(&mut self, directory: &mut Directory, path: &mut PathBuf, depth: usize) -> Result<bool, Failed> {
        let stat = match status(self.root, path) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if depth > 0 => return Ok(false),
            // A directory above it cannot be searched, and so is hidden.
            Err(Errno::ACCESS) if depth > 0 => return Ok(false),
            Err(error) => return Err((path.clone(), error)),
        };
        // What its times say holds only for the directory that was read, so a link put in its place,
        // or in the place of one above it, shows as a change; and opening it then follows none.
        if self.again || directory.stamp != Some(stamp(&stat)) {
            if !self.read(directory, path, depth)? {
                return Ok(false);
            }
        } else {
            self.seen(&stat, path);
        }
        self.entries += directory.entries;
        if self.entries > self.most {
            return Ok(true);
        }
        let mut index = 0;
        while index < directory.children.len() {
            path.push(&directory.children[index].name);
            let there = self.visit(&mut directory.children[index], path, depth + 1);
            path.pop();
            if there? {
                index += 1;
            } else {
                // It was listed a moment ago: what was in it may stand elsewhere now.
                self.restless = true;
                directory.children.swap_remove(index);
            }
        }
        Ok(true)
    }

    fn seen(&mut self, directory: &Statx, path: &Path) {
        let mut place = DefaultHasher::new();
        path.hash(&mut place);
        self.restless |= self.places.insert(file(directory), place.finish()).is_some();
    }

    fn read(&mut self, directory: &mut Directory, path: &Path, depth: usize) -> Result<bool, Failed> {
        let failed = |error| (path.to_path_buf(), error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let now = clock_gettime(ClockId::Realtime);
        let opened = rustix::fs::openat2(self.root, named(path), flags, Mode::empty(), beneath);
        let fd = match opened {
            Ok(fd) => fd,
            Err(Errno::ACCESS | Errno::PERM) if depth > 0 => return Ok(self.unreadable(directory, path)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::AGAIN) if depth > 0 => {
                return Ok(false);
            }
            Err(error) => return Err(failed(error)),
        };
        // Its times from before it is read: what changes meanwhile makes them differ the next time.
        // By the name `.`, which needs the right to search it.
        let stat = match status(fd.as_fd(), Path::new("")) {
            Err(Errno::ACCESS) if depth > 0 => return Ok(self.unreadable(directory, path)),
            stat => stat.map_err(failed)?,
        };
        // Of what is read, which may be another directory than stood here a moment ago.
        self.seen(&stat, path);
        let (file, modified, changed) = stamp(&stat);
        let settled = modified.max(changed) + TICK_NS < nanoseconds(now.tv_sec, now.tv_nsec);
        directory.stamp = settled.then_some((file, modified, changed));
        directory.entries = 0;

        let mut old: HashMap<OsString, Directory> = directory
            .children
            .drain(..)
            .map(|child| (child.name.clone(), child))
            .collect();
        let mut buffer = [MaybeUninit::uninit(); 32 * 1024];
        let mut entries = RawDir::new(&fd, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // Removed while it was read.
                Err(Errno::NOENT) if depth > 0 => return Ok(false),
                Err(error) => return Err(failed(error)),
            };
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            directory.entries += 1;
            if self.entries + directory.entries > self.most {
                break;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match rustix::fs::statx(&fd, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE) {
                    Ok(stat) => FileType::from_raw_mode(stat.stx_mode.into()),
                    Err(_) => continue,
                },
                kind => kind,
            };
            let full = path.join(name);
            let too_deep = kind == FileType::Directory && (depth >= DEEPEST || full.as_os_str().len() > LONGEST);
            let linked = kind == FileType::RegularFile && self.files.contains_key(&entry.ino());
            let hidden = directory.hidden || self.is_hidden(&fd, &full, name, kind, [too_deep, linked]);
            match kind {
                FileType::Directory if !too_deep => {
                    let mut child = old.remove(name).unwrap_or_default();
                    if child.hidden != hidden {
                        child = Directory::default();
                    }
                    child.hidden = hidden;
                    child.name = name.to_owned();
                    directory.children.push(child);
                }
                FileType::RegularFile if hidden => self.know(&fd, name, &full),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Hides a directory that cannot be looked into.
    fn unreadable(&mut self, directory: &mut Directory, path: &Path) -> bool {
        let Ok(stat) = status(self.root, path) else {
            return false;
        };
        let above = self.hidden.needs_above(path, true);
        self.found.push((path.to_path_buf(), identity(&stat), above));
        directory.children.clear();
        directory.entries = 0;
        true
    }

    /// Whether something in a directory that is not hidden is; if so, it is found.
    fn is_hidden(&mut self, fd: &OwnedFd, path: &Path, name: &OsStr, kind: FileType, otherwise: [bool; 2]) -> bool {
        let [too_deep, may_be_linked] = otherwise;
        let is_link = kind == FileType::Symlink;
        // A pattern for directories hides a link too: it may lead to one.
        let by_name = self.hidden.hides(path, kind == FileType::Directory) || is_link && self.hidden.hides(path, true);
        if !by_name && !too_deep && !may_be_linked {
            return false;
        }
        // Gone again otherwise.
        let Ok(stat) = status(fd.as_fd(), Path::new(name)) else {
            return false;
        };
        if !by_name && !too_deep && self.hidden_name(&stat).is_none() {
            return false;
        }
        if is_link {
            self.links.insert(path.to_path_buf());
        }
        // Another name of a hidden file is found by its number, whatever it is called.
        let above = match by_name || too_deep {
            true => self.hidden.needs_above(path, kind == FileType::Directory),
            false => 0,
        };
        self.found.push((path.to_path_buf(), identity(&stat), above));
        true
    }

    /// The name by which this file is hidden, if that still is a name of it.
    fn hidden_name(&self, stat: &Statx) -> Option<&Path> {
        let file = file(stat);
        let (_, name) = self.files.get(&file.2)?.iter().find(|(known, _)| *known == file)?;
        let same = status(self.root, name).is_ok_and(|stat| self::file(&stat) == file);
        same.then_some(name)
    }

    /// Remembers a hidden file, so that its other names are found.
    fn know(&mut self, fd: &OwnedFd, name: &OsStr, path: &Path) {
        let Ok(stat) = status(fd.as_fd(), Path::new(name)) else {
            return;
        };
        // A name that was found by its number is not hidden by itself, and so takes nobody's place.
        if self.hidden_name(&stat).is_none() {
            self.linked |= stat.stx_nlink > 1;
            let file = file(&stat);
            let known = self.files.entry(file.2).or_default();
            known.retain(|(other, _)| *other != file);
            known.push((file, path.to_path_buf()));
        }
    }
}

/// How a path relative to the workspace is named to the kernel.
pub(super) fn named(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

fn status(directory: BorrowedFd<'_>, path: &Path) -> Result<Statx, Errno> {
    let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    rustix::fs::statx(directory, named(path), AtFlags::SYMLINK_NOFOLLOW, mask)
}

fn file(stat: &Statx) -> File {
    (stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino)
}

fn identity(stat: &Statx) -> Identity {
    let has_birth = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    let time = if has_birth { stat.stx_btime } else { stat.stx_ctime };
    (file(stat), time.tv_sec, time.tv_nsec)
}

fn stamp(stat: &Statx) -> Stamp {
    let time = |time: rustix::fs::StatxTimestamp| nanoseconds(time.tv_sec, time.tv_nsec.into());
    (file(stat), time(stat.stx_mtime), time(stat.stx_ctime))
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}

/// What of an error output is due to a name that is held, or to a hidden file, which stays: a line that says "busy" and names it.
pub(super) fn explain(stderr: &str, held: &BTreeSet<PathBuf>, hidden: Option<&dyn Hidden>) -> Vec<Hint> {
    let hides = |path: &&Path| {
        path.is_relative() && path.file_name().is_some() && hidden.is_some_and(|hidden| hidden.hides(path, false))
    };
    let mut hints: Vec<Hint> = Vec::new();
    for line in stderr.lines().filter(|line| line.to_ascii_lowercase().contains(BUSY)) {
        // By its path, or by its name alone, as from the directory that it lies in.
        let named = held.iter().filter_map(|path| {
            let last = path.file_name().map_or(Path::new(""), Path::new);
            Some((
                guard::named(line, path, None).or_else(|| guard::named(line, last, None))?,
                path,
            ))
        });
        let named = named.max_by_key(|(much, path)| (*much, path.as_os_str().len()));
        let (path, because, instead) = if let Some((_, path)) = named {
            (
                path.as_path(),
                "cannot be renamed or removed: something lies in it, or is reached through it, that is hidden by a pattern for \
                 this path, and another path would show it",
                "move what is in it, or have a person rename it outside of the sandbox and adapt `--ignore`; a pattern that names \
                 no directory, such as `*.pem`, needs none to keep its name",
            )
        } else if let Some(path) = refused::quoted(line).map(Path::new).filter(hides) {
            (
                path,
                "is hidden by the policy: it can be neither moved nor removed, nor can a directory that holds it",
                "what else the command was to remove may be gone; have a person remove the rest outside of the sandbox",
            )
        } else {
            continue;
        };
        if hints.len() == HINTS || hints.iter().any(|hint| hint.path.as_deref() == Some(path)) {
            continue;
        }
        hints.push(Hint {
            kind: HintKind::Protected,
            because: format!("`{}` {because}", path.display()),
            instead: instead.to_owned(),
            path: Some(path.to_path_buf()),
        });
    }
    hints
}

#[cfg(test)]
mod tests;
