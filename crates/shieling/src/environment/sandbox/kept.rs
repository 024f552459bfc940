//! A home that is kept between sandboxes: a directory of the host that commands write, and in which other
//! things are to be shown (a toolchain, the workspace). Makes the places for these.
//!
//! Commands have written it, and may write it meanwhile from another sandbox. So it is reached by a held
//! directory, beneath it, and no link in it is followed; what they have laid in the way is refused by name.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use shieling_jail::plan::Entry;

use super::ViewError;
use super::place::below;

const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Makes the places, in the kept home, of what is shown in it. What is shown in something that is itself
/// shown there has its place in that.
///
/// # Errors
/// [`ViewError::KeptHome`]: it is no directory of the user's alone, or something else is in the way.
pub(super) fn prepare(kept: &Path, home: &Path, entries: &[Entry]) -> Result<(), ViewError> {
    let failed = |path: PathBuf, source: Errno| ViewError::KeptHome {
        path,
        source: source.into(),
    };
    let root = rustix::fs::openat2(CWD, kept, DIRECTORY, Mode::empty(), ResolveFlags::NO_SYMLINKS)
        .map_err(|errno| failed(kept.to_path_buf(), errno))?;
    let found = rustix::fs::fstat(&root).map_err(|errno| failed(kept.to_path_buf(), errno))?;
    if found.st_uid != rustix::process::geteuid().as_raw() || found.st_mode & 0o077 != 0 {
        return Err(failed(kept.to_path_buf(), Errno::PERM));
    }
    for (number, entry) in entries.iter().enumerate() {
        let target = entry.target();
        let Ok(inside) = target.strip_prefix(home) else {
            continue;
        };
        let shown_in = |other: &Entry| below(other.target(), home) && below(target, other.target());
        if inside.as_os_str().is_empty() || entries[..number].iter().any(shown_in) {
            continue;
        }
        let Some(kind) = kind_of(entry) else { continue };
        make(&root, inside, kind).map_err(|errno| failed(kept.join(inside), errno))?;
    }
    Ok(())
}

/// What an entry needs a place for; nothing where it needs none.
fn kind_of(entry: &Entry) -> Option<FileType> {
    match entry {
        Entry::Bind { source, .. }
        | Entry::Layered { source, .. }
        | Entry::Staged { source, .. }
        | Entry::Listed { target: source, .. } => {
            let found = rustix::fs::stat(source).ok()?;
            Some(match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => FileType::Directory,
                _ => FileType::RegularFile,
            })
        }
        Entry::Temporary { .. } | Entry::Directory { .. } | Entry::Proc { .. } | Entry::Dev { .. } => {
            Some(FileType::Directory)
        }
        Entry::File { .. }
        | Entry::Over { .. }
        | Entry::Link { .. }
        | Entry::Hide { .. }
        | Entry::Again { .. }
        | Entry::Unseen { .. }
        | Entry::Protect { .. } => None,
    }
}

fn make(root: &OwnedFd, inside: &Path, kind: FileType) -> Result<(), Errno> {
    let mut here = rustix::fs::openat(root, c".", DIRECTORY, Mode::empty())?;
    let names: Vec<_> = inside.iter().collect();
    for (number, name) in names.iter().enumerate() {
        let name = Path::new(name);
        if number + 1 == names.len() && kind != FileType::Directory {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = match rustix::fs::openat(&here, name, flags, Mode::empty()) {
                Err(Errno::NOENT) => {
                    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                    rustix::fs::openat(&here, name, flags, Mode::from_raw_mode(0o600))?
                }
                found => found?,
            };
            let is = FileType::from_raw_mode(rustix::fs::fstat(found.as_fd())?.st_mode);
            return if is == FileType::RegularFile {
                Ok(())
            } else {
                Err(Errno::EXIST)
            };
        }
        match rustix::fs::mkdirat(&here, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        here = rustix::fs::openat(&here, name, DIRECTORY, Mode::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make what is found")]

    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::super::place::shown;
    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().expect("a directory");
        let at = place.path().canonicalize().expect("it is there");
        fs::create_dir_all(at.join("kept")).expect("made");
        fs::set_permissions(at.join("kept"), fs::Permissions::from_mode(0o700)).expect("set");
        (place, at)
    }

    fn to_be_shown(source: &Path, target: &str) -> Entry {
        Entry::Bind {
            source: source.to_path_buf(),
            target: target.into(),
            writable: false,
            executable: false,
            optional: false,
        }
    }

    #[test]
    fn what_is_shown_has_a_place_and_nothing_else_does() {
        let (_place, at) = place();
        fs::write(at.join("file"), "").expect("written");
        let entries = [
            to_be_shown(&at, "/h"),
            to_be_shown(&at, "/h/src/ws"),
            to_be_shown(&at, "/h/src/ws/deeper"),
            to_be_shown(&at.join("file"), "/h/.cargo/config.toml"),
            shown("/nonexistent", false),
            to_be_shown(&at.join("absent"), "/h/absent"),
        ];
        for _ in 0..2 {
            prepare(&at.join("kept"), Path::new("/h"), &entries).expect("it is free");
        }
        assert!(at.join("kept/src/ws").is_dir() && at.join("kept/.cargo/config.toml").is_file());
        assert!(!at.join("kept/src/ws/deeper").exists() && !at.join("kept/absent").exists());
    }

    #[test]
    fn what_a_command_laid_in_the_way_leads_nowhere() {
        let (_place, at) = place();
        let (kept, outside) = (at.join("kept"), at.join("outside"));
        fs::create_dir(&outside).expect("made");
        symlink(&outside, kept.join("src")).expect("linked");
        let entries = [to_be_shown(&at, "/h/src/ws")];
        let refused = prepare(&kept, Path::new("/h"), &entries)
            .expect_err("a link is in the way")
            .to_string();
        assert!(refused.contains("src/ws"), "{refused}");
        assert_eq!(fs::read_dir(&outside).expect("listed").count(), 0);
        fs::remove_file(kept.join("src")).expect("removed");
        symlink(&kept, at.join("link")).expect("linked");
        assert!(
            prepare(&at.join("link"), Path::new("/h"), &entries).is_err(),
            "by a link"
        );
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o755)).expect("set");
        assert!(prepare(&kept, Path::new("/h"), &entries).is_err(), "others can read it");
    }
}
