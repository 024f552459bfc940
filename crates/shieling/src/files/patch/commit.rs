//! Changes several files, or none: if a step fails, the earlier ones are undone.
//!
//! ```text
//! make room ─► move ─► put ─► remove          each step records how to undo it
//!                  └──a step fails──► undo in reverse order ──► the error, and what could not be undone
//! ```
//!
//! A file is changed only if it is still in the state that the plan was made from, and a change is undone only if
//! nothing else has changed the file since.

use super::staged::{NewState, Staged};
use crate::environment::{Expect, FileError, Stamp};
use crate::files::resolve::{self, stamp};
use crate::files::{ContentCache, FileResponse, FilesError, PatchResponse, PatchedFile, hash};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Removes a file.
    Remove(usize),
    /// Moves the first file to the path of the second.
    Move(usize, usize),
    /// Writes the content and the mode of a file.
    Put(usize),
}

/// The steps of a patch.
pub(super) struct Work {
    files: Vec<Staged>,
    told: Vec<(usize, PatchedFile)>,
    cache: ContentCache,
    steps: Vec<Step>,
}

/// How to undo a step.
enum Undo {
    /// Writes a removed file back, with its permissions and times.
    Restore(usize),
    /// Moves a file back.
    Back(usize, usize),
    /// Writes the old content of a file, with its permissions and times.
    Rewrite {
        file: usize,
        origin: usize,
        /// Its state after the change. `None` if it could not be read: the file is then left as it is and reported.
        stamp: Option<Stamp>,
    },
    /// Removes a new file.
    Unmake {
        file: usize,
        /// As in [`Self::Rewrite`].
        stamp: Option<Stamp>,
    },
    /// Restores the permissions of a file.
    Mode { file: usize, mode: u32 },
}

impl Work {
    /// Finds an order in which the steps are possible.
    ///
    /// # Errors
    /// [`FilesError::Argument`] if files are moved in a circle.
    pub(super) fn new(
        files: Vec<Staged>,
        told: Vec<(usize, PatchedFile)>,
        cache: ContentCache,
    ) -> Result<Self, FilesError> {
        let mut moves: Vec<(usize, usize)> = Vec::new();
        let (mut puts, mut stays) = (Vec::new(), vec![false; files.len()]);
        for (number, file) in files.iter().enumerate() {
            let Some(now) = &file.now else { continue };
            match now.origin {
                Some(origin) if origin != number => moves.push((origin, number)),
                Some(_) | None => {}
            }
            stays[now.origin.unwrap_or(number)] = true;
            if !file.is_kept(number, now) {
                puts.push(Step::Put(number));
            }
        }
        let gone = |number: usize| files[number].was.is_some() && files[number].now.is_none() && !stays[number];
        let mut steps = Vec::new();
        let is_target = |number: usize| moves.iter().any(|(_, to)| *to == number);
        // A file that is replaced by a moved one has to be removed first.
        let room = (0..files.len()).filter(|number| is_target(*number) && files[*number].was.is_some());
        steps.extend(
            room.filter(|number| !moves.iter().any(|(from, _)| from == number))
                .map(Step::Remove),
        );
        while !moves.is_empty() {
            let occupied = |number: usize| moves.iter().any(|(from, _)| *from == number);
            let Some(next) = moves.iter().position(|(_, to)| !occupied(*to)) else {
                let why = "its files are to be moved in a circle: move one of them by itself first".to_owned();
                return Err(FilesError::Argument { argument: "patch", why });
            };
            let (from, to) = moves.remove(next);
            steps.push(Step::Move(from, to));
        }
        steps.extend(puts);
        steps.extend((0..files.len()).filter(|number| gone(*number)).map(Step::Remove));
        Ok(Self {
            files,
            told,
            cache,
            steps,
        })
    }

    /// Performs the steps.
    ///
    /// # Errors
    /// The error of the first step that failed; [`FilesError::Fault`] if something could not be undone.
    pub(super) fn make(self) -> Result<FileResponse, FilesError> {
        let mut done = Vec::new();
        for step in &self.steps {
            if let Err(error) = self.step(*step, &mut done) {
                return Err(self.undo(done, error));
            }
        }
        let mut told = Vec::with_capacity(self.told.len());
        for (number, mut file) in self.told {
            let staged = &self.files[number];
            if let Some(now) = &staged.now {
                let hash = hash::written(staged.write_target.as_ref(), &now.content);
                self.cache.insert(&hash, &now.content);
                file.hash = Some(hash);
            }
            told.push(file);
        }
        Ok(FileResponse::Patch(PatchResponse {
            files: told,
            note: None,
        }))
    }

    fn step(&self, step: Step, done: &mut Vec<Undo>) -> Result<(), FileError> {
        match step {
            Step::Remove(file) => {
                self.check(file)?;
                self.files[file].write_target.remove(false)?;
                done.push(Undo::Restore(file));
            }
            Step::Move(from, to) => {
                self.check(from)?;
                self.files[from]
                    .write_target
                    .rename(self.files[to].write_target.as_ref(), false)?;
                done.push(Undo::Back(from, to));
            }
            Step::Put(file) => {
                let Some(now) = &self.files[file].now else {
                    return Ok(());
                };
                self.put(file, now, done)?;
            }
        }
        Ok(())
    }

    /// Writes the content and the mode of a file.
    fn put(&self, file: usize, now: &NewState, done: &mut Vec<Undo>) -> Result<(), FileError> {
        let write_target = self.files[file].write_target.as_ref();
        // The file at this path now: its own, one that was moved here, or none.
        let origin = now.origin.or(self.files[file].was.is_some().then_some(file));
        let held = origin.and_then(|origin| self.files[origin].was.as_ref().map(|held| (origin, held)));
        let Some((origin, held)) = held else {
            write_target.replace(&now.content, now.executable == Some(true), Expect::Nothing)?;
            // The change is made, even if the file cannot be read afterwards.
            let after = stamp(write_target);
            done.push(Undo::Unmake {
                file,
                stamp: after.as_ref().ok().copied(),
            });
            return after.map(|_| ());
        };
        let mut expected = if origin == file {
            held.meta.stamp
        } else {
            stamp(write_target)?
        };
        // The mode first: its undo changes the state that the undo of the content expects.
        if self.files[origin].changes_mode(now)
            && let Some(executable) = now.executable
        {
            resolve::check(write_target, expected)?;
            write_target.set_mode(runnable(held.meta.mode, executable))?;
            done.push(Undo::Mode {
                file,
                mode: held.meta.mode,
            });
            expected = stamp(write_target)?;
        }
        if held.content != now.content {
            write_target.replace(&now.content, false, Expect::Stamp(expected))?;
            let after = stamp(write_target);
            done.push(Undo::Rewrite {
                file,
                origin,
                stamp: after.as_ref().ok().copied(),
            });
            after?;
        }
        Ok(())
    }

    /// Checks that a file is unchanged since the plan.
    fn check(&self, file: usize) -> Result<(), FileError> {
        let staged = &self.files[file];
        match &staged.was {
            Some(held) => resolve::check(staged.write_target.as_ref(), held.meta.stamp),
            None => Err(FileError::Changed(staged.path())),
        }
    }

    /// Undoes the steps. Returns the original error, with what could not be undone.
    fn undo(&self, done: Vec<Undo>, error: FileError) -> FilesError {
        let mut left = Vec::new();
        for undo in done.into_iter().rev() {
            if let Err((file, why)) = self.undo_one(&undo) {
                left.push(format!(
                    "`{}` could not be put back as it was: {why}",
                    self.files[file].path().display()
                ));
            }
        }
        if left.is_empty() {
            return error.into();
        }
        FilesError::Fault(format!("{error}; {}", left.join("; ")))
    }

    fn undo_one(&self, undo: &Undo) -> Result<(), (usize, FileError)> {
        let write_target = |file: usize| self.files[file].write_target.as_ref();
        let held = |file: usize| self.files[file].was.as_ref();
        let known =
            |file: usize, stamp: Option<Stamp>| stamp.ok_or_else(|| FileError::Changed(self.files[file].path()));
        match *undo {
            Undo::Restore(file) => match held(file) {
                Some(held) => write_target(file).restore(&held.content, &held.meta, Expect::Nothing),
                None => Ok(()),
            }
            .map_err(|error| (file, error)),
            Undo::Back(from, to) => write_target(to)
                .rename(write_target(from), false)
                .map_err(|error| (from, error)),
            Undo::Rewrite { file, origin, stamp } => match held(origin) {
                Some(held) => known(file, stamp)
                    .and_then(|stamp| write_target(file).restore(&held.content, &held.meta, Expect::Stamp(stamp))),
                None => Ok(()),
            }
            .map_err(|error| (file, error)),
            Undo::Unmake { file, stamp } => known(file, stamp)
                .and_then(|stamp| resolve::check(write_target(file), stamp))
                .and_then(|()| write_target(file).remove(false))
                .map_err(|error| (file, error)),
            Undo::Mode { file, mode } => write_target(file).set_mode(mode).map_err(|error| (file, error)),
        }
    }
}

/// Returns permissions in which everyone who may read a file may execute it, or no one may.
fn runnable(mode: u32, executable: bool) -> u32 {
    let bare = mode & 0o666;
    if executable { bare | (bare & 0o444) >> 2 } else { bare }
}
