//! An in-memory implementation of `Files` for tests, which can fail on request.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::UNIX_EPOCH;

use super::{AccessFilter, ContentCache, Context, FileResponse, FilesError, PlannedChange, QueryMeta};
use crate::environment::{Content, Entry, Expect, FileError, Files, Kind, Links, Meta, Node, Stamp, WriteTarget};

/// Generates the byte at an offset of a content that is not stored.
pub(super) type Made = fn(u64) -> u8;

#[derive(Clone)]
enum FakeEntry {
    File {
        content: Arc<Vec<u8>>,
        mode: u32,
        state: u64,
    },
    Large {
        size: u64,
        byte: Made,
    },
    Directory,
    Link(PathBuf),
    Other(Kind),
}

#[derive(Default)]
struct State {
    things: BTreeMap<PathBuf, FakeEntry>,
    ticks: u64,
    /// Paths at which the next change fails.
    broken: Vec<PathBuf>,
    /// Paths at which the change after the next one fails.
    later: Vec<PathBuf>,
    /// Called before each read of a file.
    at_read: Option<fn(&mut Vec<u8>)>,
    /// The size of the largest read.
    widest: usize,
}

/// The files. Clones share them.
#[derive(Clone, Default)]
pub(super) struct FakeFiles(Arc<Mutex<State>>);

/// The context of a test: these files, an access check that hides `.env` and forbids `forbidden`, and a cache.
#[derive(Clone, Default)]
pub(super) struct FakeWorkspace {
    pub(super) files: FakeFiles,
    pub(super) cache: ContentCache,
}

impl AccessFilter for FakeWorkspace {
    fn hides(&self, path: &Path, _is_directory: bool) -> bool {
        path.components().any(|part| part.as_os_str() == ".env")
    }

    fn reads(&self, path: &Path, _: QueryMeta<'_>) -> Result<(), FilesError> {
        if path.ends_with("forbidden") {
            Err(FileError::Permission(path.to_path_buf()).into())
        } else {
            Ok(())
        }
    }
}

impl FakeWorkspace {
    pub(super) fn context(&self) -> Context<'_> {
        Context {
            files: &self.files,
            access: self,
            cache: &self.cache,
            workspace: Path::new("/w"),
        }
    }

    /// Creates a workspace with these files.
    pub(super) fn with(files: &[(&str, &[u8])]) -> Self {
        let world = Self::default();
        for (name, content) in files {
            world.files.put(name, content);
        }
        world
    }
}

/// Makes a planned change.
pub(super) fn make(planned: Result<PlannedChange, FilesError>) -> Result<FileResponse, FilesError> {
    (planned?.make)()
}

impl FakeFiles {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn set(&self, name: &str, thing: FakeEntry) {
        let path = Path::new("/w").join(name);
        let mut state = self.state();
        for parent in path.ancestors().skip(1) {
            state.things.entry(parent.to_path_buf()).or_insert(FakeEntry::Directory);
        }
        state.things.insert(path, thing);
    }

    pub(super) fn put(&self, name: &str, content: &[u8]) {
        self.put_mode(name, content, 0o644);
    }

    pub(super) fn put_mode(&self, name: &str, content: &[u8], mode: u32) {
        let state = self.state().tick();
        self.set(
            name,
            FakeEntry::File {
                content: Arc::new(content.to_vec()),
                mode,
                state,
            },
        );
    }

    pub(super) fn put_large(&self, name: &str, size: u64, byte: Made) {
        self.set(name, FakeEntry::Large { size, byte });
    }

    pub(super) fn link(&self, name: &str, target: &str) {
        self.set(name, FakeEntry::Link(target.into()));
    }

    pub(super) fn other(&self, name: &str, kind: Kind) {
        self.set(name, FakeEntry::Other(kind));
    }

    pub(super) fn directory(&self, name: &str) {
        self.set(name, FakeEntry::Directory);
    }

    /// Makes the next change of this file fail.
    pub(super) fn break_at(&self, name: &str) {
        self.state().broken.push(Path::new("/w").join(name));
    }

    /// Makes the change of this file after the next one fail.
    pub(super) fn break_later(&self, name: &str) {
        self.state().later.push(Path::new("/w").join(name));
    }

    pub(super) fn at_read(&self, change: fn(&mut Vec<u8>)) {
        self.state().at_read = Some(change);
    }

    pub(super) fn widest(&self) -> usize {
        self.state().widest
    }

    pub(super) fn content(&self, name: &str) -> Option<Vec<u8>> {
        match self.state().things.get(&Path::new("/w").join(name))? {
            FakeEntry::File { content, .. } => Some(content.to_vec()),
            _ => None,
        }
    }

    pub(super) fn mode(&self, name: &str) -> Option<u32> {
        match self.state().things.get(&Path::new("/w").join(name))? {
            FakeEntry::File { mode, .. } => Some(*mode),
            _ => None,
        }
    }

    /// Returns every file with its content.
    pub(super) fn all(&self) -> Vec<(String, Vec<u8>)> {
        let state = self.state();
        let files = state.things.iter().filter_map(|(path, thing)| match thing {
            FakeEntry::File { content, .. } => {
                Some((path.strip_prefix("/w").ok()?.display().to_string(), content.to_vec()))
            }
            _ => None,
        });
        files.collect()
    }

    /// Resolves the links in the existing part of a path.
    fn resolve(&self, path: &Path, links: Links) -> Result<PathBuf, FileError> {
        let state = self.state();
        let (mut at, mut todo, mut hops) = (PathBuf::from("/"), path.to_path_buf(), 0);
        'again: loop {
            let parts: Vec<_> = todo.components().map(|part| part.as_os_str().to_owned()).collect();
            for (number, part) in parts.iter().enumerate() {
                match Path::new(part).components().next() {
                    Some(Component::RootDir) => at = PathBuf::from("/"),
                    Some(Component::ParentDir) => drop(at.pop()),
                    Some(Component::Normal(name)) => at.push(name),
                    _ => {}
                }
                let last = number + 1 == parts.len();
                match state.things.get(&at) {
                    Some(FakeEntry::Link(target)) if !last || links == Links::Follow => {
                        hops += 1;
                        if hops > 20 {
                            return Err(FileError::LinkLoop(path.to_path_buf()));
                        }
                        at.pop();
                        let mut rest = target.clone();
                        rest.extend(&parts[number + 1..]);
                        todo = rest;
                        continue 'again;
                    }
                    Some(FakeEntry::File { .. } | FakeEntry::Large { .. }) if !last => {
                        return Err(FileError::NotADirectory(at));
                    }
                    _ => {}
                }
            }
            return Ok(at);
        }
    }

    fn handle(&self, path: PathBuf) -> Handle {
        Handle {
            files: self.clone(),
            path,
        }
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    fn check(&mut self, path: &Path) -> Result<(), FileError> {
        match self.broken.iter().position(|broken| broken == path) {
            Some(at) => {
                self.broken.remove(at);
                Err(FileError::Full {
                    path: path.to_path_buf(),
                    why: "the test says so".to_owned(),
                })
            }
            None => {
                let later: Vec<PathBuf> = self.later.extract_if(.., |later| later == path).collect();
                self.broken.extend(later);
                Ok(())
            }
        }
    }
}

struct Handle {
    files: FakeFiles,
    path: PathBuf,
}

impl Handle {
    fn thing(&self) -> Result<FakeEntry, FileError> {
        let state = self.files.state();
        state
            .things
            .get(&self.path)
            .cloned()
            .ok_or_else(|| FileError::NotFound(self.path.clone()))
    }
}

fn meta(thing: &FakeEntry) -> Meta {
    let (kind, size, mode, state) = match thing {
        FakeEntry::File { content, mode, state } => (Kind::File, content.len() as u64, *mode, *state),
        FakeEntry::Large { size, .. } => (Kind::File, *size, 0o644, 0),
        FakeEntry::Directory => (Kind::Directory, 0, 0o755, 0),
        FakeEntry::Link(_) => (Kind::Link, 0, 0o777, 0),
        FakeEntry::Other(kind) => (*kind, 0, 0o644, 0),
    };
    Meta {
        kind,
        size,
        mode,
        modified: UNIX_EPOCH,
        names: 1,
        stamp: Stamp([state, size, 0, 0, 0, 0]),
    }
}

impl Node for Handle {
    fn path(&self) -> &Path {
        &self.path
    }

    fn meta(&self) -> Result<Meta, FileError> {
        Ok(meta(&self.thing()?))
    }

    fn open(&self) -> Result<Box<dyn Content>, FileError> {
        match self.thing()? {
            FakeEntry::File { .. } | FakeEntry::Large { .. } => Ok(Box::new(self.files.handle(self.path.clone()))),
            FakeEntry::Directory => Err(FileError::IsDirectory(self.path.clone())),
            FakeEntry::Link(_) => Err(FileError::NotFound(self.path.clone())),
            FakeEntry::Other(kind) => Err(FileError::Special {
                path: self.path.clone(),
                kind,
            }),
        }
    }

    fn entries(&self) -> Result<Vec<Entry>, FileError> {
        let FakeEntry::Directory = self.thing()? else {
            return Err(FileError::NotADirectory(self.path.clone()));
        };
        let state = self.files.state();
        let children = state
            .things
            .iter()
            .filter(|(path, _)| path.parent() == Some(&self.path));
        let entry = |(path, thing): (&PathBuf, &FakeEntry)| Entry {
            name: path.file_name().map(OsStr::to_owned).unwrap_or_else(OsString::new),
            kind: meta(thing).kind,
        };
        Ok(children.map(entry).collect())
    }

    fn child(&self, name: &OsStr) -> Result<Box<dyn Node>, FileError> {
        let child = self.files.handle(self.path.join(name));
        child.thing()?;
        Ok(Box::new(child))
    }

    fn target(&self) -> Result<PathBuf, FileError> {
        match self.thing()? {
            FakeEntry::Link(target) => Ok(target),
            _ => Err(FileError::Unsupported("no link")),
        }
    }
}

impl Content for Handle {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        let mut state = self.files.state();
        state.widest = state.widest.max(into.len());
        let (change, tick) = (state.at_read, state.tick());
        match state.things.get_mut(&self.path) {
            Some(FakeEntry::File { content, state, .. }) => {
                if let Some(change) = change {
                    change(Arc::make_mut(content));
                    *state = tick;
                }
                let rest = content.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
                let most = rest.len().min(into.len());
                into[..most].copy_from_slice(&rest[..most]);
                Ok(most)
            }
            Some(FakeEntry::Large { size, byte }) => {
                let most = into.len().min(usize::try_from(size.saturating_sub(offset)).unwrap());
                (offset..)
                    .zip(&mut into[..most])
                    .for_each(|(at, slot)| *slot = byte(at));
                Ok(most)
            }
            _ => Err(FileError::NotFound(self.path.clone())),
        }
    }

    fn meta(&self) -> Result<Meta, FileError> {
        Node::meta(self)
    }
}

impl WriteTarget for Handle {
    fn path(&self) -> &Path {
        &self.path
    }

    fn current(&self) -> Result<Option<Box<dyn Node>>, FileError> {
        let there = self.thing().is_ok();
        Ok(there.then(|| Box::new(self.files.handle(self.path.clone())) as Box<dyn Node>))
    }

    fn replace(&self, content: &[u8], executable: bool, expect: Expect) -> Result<(), FileError> {
        let mut state = self.files.state();
        state.check(&self.path)?;
        let there = state
            .things
            .get(&self.path)
            .map(|thing| (meta(thing).stamp, meta(thing).mode));
        let fits = match (expect, there) {
            (Expect::Any, _) | (Expect::Nothing, None) => true,
            (Expect::Stamp(stamp), Some((now, _))) => stamp == now,
            (Expect::Stamp(_), None) | (Expect::Nothing, Some(_)) => false,
        };
        if !fits {
            return Err(FileError::Changed(self.path.clone()));
        }
        for parent in self.path.ancestors().skip(1) {
            state.things.entry(parent.to_path_buf()).or_insert(FakeEntry::Directory);
        }
        let mode = there.map_or(if executable { 0o755 } else { 0o644 }, |(_, mode)| mode);
        let tick = state.tick();
        state.things.insert(
            self.path.clone(),
            FakeEntry::File {
                content: Arc::new(content.to_vec()),
                mode,
                state: tick,
            },
        );
        Ok(())
    }

    fn set_mode(&self, given: u32) -> Result<(), FileError> {
        let mut files = self.files.state();
        files.check(&self.path)?;
        let tick = files.tick();
        match files.things.get_mut(&self.path) {
            Some(FakeEntry::File { mode, state, .. }) => {
                (*mode, *state) = (given & 0o777, tick);
                Ok(())
            }
            _ => Err(FileError::NotFound(self.path.clone())),
        }
    }

    fn remove(&self, recursive: bool) -> Result<(), FileError> {
        let mut state = self.files.state();
        state.check(&self.path)?;
        let inner = |path: &PathBuf| path.starts_with(&self.path) && *path != self.path;
        if !recursive && state.things.keys().any(inner) {
            return Err(FileError::NotEmpty(self.path.clone()));
        }
        let before = state.things.len();
        state.things.retain(|path, _| !path.starts_with(&self.path));
        if state.things.len() == before {
            Err(FileError::NotFound(self.path.clone()))
        } else {
            Ok(())
        }
    }

    fn rename(&self, to: &dyn WriteTarget, replace: bool) -> Result<(), FileError> {
        let mut state = self.files.state();
        state.check(to.path())?;
        if !replace && state.things.contains_key(to.path()) {
            return Err(FileError::Exists(to.path().to_path_buf()));
        }
        let moved: Vec<PathBuf> = state
            .things
            .keys()
            .filter(|path| path.starts_with(&self.path))
            .cloned()
            .collect();
        for parent in to.path().ancestors().skip(1) {
            state.things.entry(parent.to_path_buf()).or_insert(FakeEntry::Directory);
        }
        for path in moved {
            let thing = state.things.remove(&path).unwrap();
            let inner = path.strip_prefix(&self.path).unwrap();
            let place = if inner.as_os_str().is_empty() {
                to.path().to_path_buf()
            } else {
                to.path().join(inner)
            };
            state.things.insert(place, thing);
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Files for FakeFiles {
    fn node(&self, path: &Path, links: Links) -> Result<Box<dyn Node>, FileError> {
        let handle = self.handle(self.resolve(path, links)?);
        handle.thing().map_err(|_| FileError::NotFound(path.to_path_buf()))?;
        if !handle.path.starts_with("/w") && handle.path != Path::new("/") {
            return Err(FileError::Outside {
                path: path.to_path_buf(),
                within: "the workspace",
            });
        }
        Ok(Box::new(handle))
    }

    fn write_target(&self, path: &Path, links: Links) -> Result<Box<dyn WriteTarget>, FileError> {
        let mut place = self.resolve(path, links)?;
        if !self.state().things.contains_key(&place) && links == Links::Follow {
            // A dangling link is the file itself.
            let kept = self.resolve(path, Links::Keep)?;
            if self.state().things.contains_key(&kept) {
                place = kept;
            }
        }
        if !place.starts_with("/w") {
            return Err(FileError::Outside {
                path: path.to_path_buf(),
                within: "the workspace",
            });
        }
        Ok(Box::new(self.handle(place)))
    }
}
