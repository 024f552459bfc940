//! Puts content where a name is: whole, at once, in the directory that is held.
//!
//! ```text
//! look at what is there ─► write a file of another name beside it ─► give that the name
//!        │ writable? expected?        where the directory was judged to be?│ nothing: if nothing is there
//!        ▼                                                                │ something: exchange, look at what
//!     refused, nothing changed                                            ▼  came out, else exchange back
//!                                            still where it was judged to be? else taken back
//! ```
//!
//! The new file is another file: a hard link keeps the old one, who has that open reads the old one, and
//! attributes beyond mode, owner and group (access lists, `user.*`) are those of a new file. In return
//! nobody ever sees half of it, and nothing is written through any link. Set-user-id, set-group-id are
//! never given. It is not forced to the disk: after a loss of power, either content may be there.

use rustix::fs::{Access, AtFlags, CWD, Gid, Mode, Uid};
use rustix::io::Errno;

use super::super::{Expect, FileError, Kind};
use super::error::refused;
use super::stat::{Stat, hold};
use super::temporary::Temporary;
use super::view::own_link;
use super::write_target::{Given, HostWriteTarget};

impl HostWriteTarget {
    /// Puts content at the name.
    pub(super) fn write(&self, content: &[u8], given: Given<'_>, expect: Expect) -> Result<(), FileError> {
        let made = self.make_directories()?;
        let before = match self.held(&made.directory)? {
            Some((file, stat)) => {
                self.check_replaceable(&stat)?;
                // As every way to write to it would: a file that is read-only is not replaced either.
                if stat.kind() == Kind::File {
                    rustix::fs::accessat(CWD, own_link(&file), Access::WRITE_OK, AtFlags::EACCESS)
                        .map_err(self.said("write"))?;
                }
                Some(stat)
            }
            None => None,
        };
        let as_expected = match (expect, &before) {
            (Expect::Any, _) | (Expect::Nothing, None) => true,
            (Expect::Stamp(stamp), Some(stat)) => stat.stamp() == stamp,
            (Expect::Nothing, Some(_)) | (Expect::Stamp(_), None) => false,
        };
        if !as_expected {
            return Err(FileError::Changed(self.path.clone()));
        }
        let new = self.prepare(&made.directory, content, given, before.as_ref())?;
        self.check_place(&made.directory)?;
        match &before {
            Some(before) => self.exchange(&made.directory, &new, before)?,
            None => self.give_name(&made.directory, &new)?,
        }
        drop(new);
        made.keep();
        Ok(())
    }

    /// Whether what stands here can be replaced by a file.
    fn check_replaceable(&self, stat: &Stat) -> Result<(), FileError> {
        self.check_free(stat)?;
        let path = self.path.clone();
        match stat.kind() {
            Kind::File => Ok(()),
            Kind::Link => match self.links {
                super::super::Links::Keep => Ok(()),
                // It was not there when the path was judged.
                super::super::Links::Follow => Err(FileError::Changed(path)),
            },
            Kind::Directory => Err(FileError::IsDirectory(path)),
            kind @ (Kind::Fifo | Kind::Socket | Kind::Device) => Err(FileError::Special { path, kind }),
        }
    }

    /// The new file, complete but for its name.
    fn prepare<'a>(
        &self,
        directory: &'a rustix::fd::OwnedFd,
        content: &[u8],
        given: Given<'_>,
        before: Option<&Stat>,
    ) -> Result<Temporary<'a>, FileError> {
        let before = before.filter(|stat| stat.kind() == Kind::File);
        let said = self.said("write");
        let kept = match given {
            Given::Plain | Given::Executable => before.map(|before| before.mode() & 0o1777),
            Given::Was(was) => Some(was.mode & 0o1777),
        };
        let mode = match (kept, given) {
            // Until it has its owner, nobody else's.
            (Some(_), _) => 0o600,
            (None, Given::Executable) => 0o777,
            (None, Given::Plain | Given::Was(_)) => 0o666,
        };
        let new = Temporary::create(directory, mode).map_err(&said)?;
        new.write(content).map_err(&said)?;
        if let Some(before) = before {
            let stat = Stat::at(new.file()).map_err(&said)?;
            if stat.owner() != before.owner() {
                self.give(&new, before);
            }
        }
        if let Some(kept) = kept {
            // After the owner, since a change of that takes permissions away.
            rustix::fs::fchmod(new.file(), Mode::from_raw_mode(kept)).map_err(&said)?;
        }
        if let Given::Was(was) = given {
            new.set_modified(was.modified).map_err(&said)?;
        }
        Ok(new)
    }

    /// Gives the new file the owner of the old one, or only its group, as far as this process may.
    fn give(&self, new: &Temporary<'_>, before: &Stat) {
        let (user, group) = before.owner();
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        if rustix::fs::fchown(new.file(), user, group).is_err() {
            let _ = rustix::fs::fchown(new.file(), None, group);
        }
    }

    /// Gives the new file a name that nothing has. If the directory was moved away meanwhile, it has lost
    /// that name again when this returns; whoever has replaced it there by then keeps what is his.
    fn give_name(&self, directory: &rustix::fd::OwnedFd, new: &Temporary<'_>) -> Result<(), FileError> {
        new.become_named(&self.name, false).map_err(|errno| match errno {
            Errno::EXIST => FileError::Changed(self.path.clone()),
            errno => self.said("write")(errno),
        })?;
        let Err(moved) = self.check_place(directory) else {
            return Ok(());
        };
        let back = match new.take_back(&self.name) {
            // It is gone already.
            Err(Errno::NOENT) => return Err(moved),
            back => back.and_then(|()| hold(directory, new.name())),
        };
        let back = back.map_err(self.said("take back"))?;
        let ours = Stat::at(new.file()).map_err(self.said("look at"))?.identity();
        if back.is_some_and(|(_, stat)| stat.identity() != ours) {
            match new.become_named(&self.name, false) {
                // Replaced once more meanwhile: the newest has the name.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.said("give its name back to")(errno)),
            }
        }
        Err(moved)
    }

    /// Gives the new file the name of a file that is still as it was. If it is another one by now, or the
    /// directory was moved away, that one has its name back when this returns; the new content was to be
    /// seen for a moment.
    fn exchange(&self, directory: &rustix::fd::OwnedFd, new: &Temporary<'_>, before: &Stat) -> Result<(), FileError> {
        let changed = || FileError::Changed(self.path.clone());
        let _alone = self.view.replacing();
        let said = |errno| match errno {
            Errno::NOENT => changed(),
            errno => refused(errno, "write", &self.path),
        };
        match new.exchange(&self.name) {
            Ok(()) => {}
            // A file system that cannot: what was compared a moment ago has to do.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return new.become_named(&self.name, true).map_err(said);
            }
            Err(errno) => return Err(said(errno)),
        }
        let out = || hold(directory, new.name()).map_err(self.said("look at"));
        let is_before = |found: &Option<(_, Stat)>| {
            found
                .as_ref()
                .is_some_and(|(_, stat)| stat.content() == before.content())
        };
        let found = match out() {
            Ok(found) => found,
            // The old file must not go with the temporary one while nothing is said to have changed. If
            // it cannot have its name back, the new content has it, and that is what is said.
            Err(error) => return new.exchange(&self.name).map_or(Ok(()), |()| Err(error)),
        };
        let place = self.check_place(directory);
        if is_before(&found) && place.is_ok() {
            return Ok(());
        }
        // Whoever came in between has its name back.
        new.exchange(&self.name).map_err(said)?;
        let ours = Stat::at(new.file()).map_err(self.said("look at"))?.identity();
        let back = out()?.is_some_and(|(_, stat)| stat.identity() == ours);
        if !back {
            // It was replaced once more meanwhile, by what came out now: the newest has the name.
            new.exchange(&self.name).map_err(said)?;
        }
        Err(changed())
    }
}
