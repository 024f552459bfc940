//! The files that the command line reads: configuration and policies. The only place in this crate
//! that opens any.
//!
//! Every read is bounded and takes regular files only: a workspace is somebody else's, and a FIFO
//! or a device under the expected name would otherwise hang the command or fill the memory.
#![expect(
    clippy::disallowed_methods,
    reason = "the command line's files are opened here and nowhere else"
)]

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

pub(crate) use shieling::environment::leads_through;

use rustix::fs::OFlags;
use shieling::request::Digest;

/// The longest configuration or policy file that is read, in bytes.
const LONGEST: u64 = 1024 * 1024;

/// Whether the last part of a path may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// For files of the user, who may keep them elsewhere.
    Follow,
    /// For files of the workspace, which could point to a file whose lines an error would show.
    Refuse,
}

/// Makes a directory for this user alone, if it is not there. Whether it is there now.
pub(crate) fn make(directory: &Path) -> bool {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.is_ok()
}

/// A name for a workspace in a directory of ours: its last name for people, and a digest of its whole path.
pub(crate) fn name_of(workspace: &Path) -> String {
    let last = workspace.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = last.chars().map(|c| if plain(c) { c } else { '_' }).take(40).collect();
    let digest = Digest::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    let digest: String = digest.chars().take(16).collect();
    format!("{name}-{digest}")
}

/// Makes a directory for this user alone, or sees that it is.
///
/// # Errors
/// It is a link, somebody else's, or cannot be made.
pub(crate) fn private(directory: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let found = directory.symlink_metadata()?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to somebody else, or is a link"));
    }
    if found.mode() & 0o077 != 0 {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// The sockets in a directory whose names have our form, at most 1,000 of them; none if there is no
/// directory.
pub(crate) fn sockets(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let ours = entries.flatten().take(1_000).filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let parts = name.strip_suffix(".sock").and_then(|name| name.split_once('-'));
        let form = parts.is_some_and(|(pid, random)| {
            pid.parse::<u32>().is_ok() && random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        form && entry.file_type().is_ok_and(|kind| kind.is_socket())
    });
    let mut paths: Vec<PathBuf> = ours.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Takes away a socket of ours. One that stays behind is taken away by the next server.
pub(crate) fn remove_socket(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Whether a process is a command's that Shieling has started, or was started by one: a supervisor stands
/// above it, whatever it did to leave. One that is gone counts as such.
pub(crate) fn is_supervised(process: rustix::process::Pid) -> bool {
    let mut pid = process.as_raw_nonzero().get();
    // As many steps as there can be processes.
    for _ in 0..10_000 {
        let Ok(Some(status)) = read(Path::new(&format!("/proc/{pid}/status")), Links::Follow) else {
            return true;
        };
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let parent = field("PPid:").and_then(|parent| parent.parse().ok());
        match (field("Name:"), parent) {
            (Some("shieling-jail") | None, _) | (_, None) => return true,
            (Some(_), Some(0 | 1)) => return false,
            (Some(_), Some(parent)) => pid = parent,
        }
    }
    true
}

/// The text of a file, or `None` if there is no such file.
///
/// # Errors
/// What is not a regular file, longer than 1 MiB, not UTF-8, or cannot be read.
pub(crate) fn read(path: &Path, links: Links) -> io::Result<Option<String>> {
    let mut flags = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(io::Error::other(
                "it is a symbolic link, which is not followed in a workspace",
            ));
        }
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(Some(text))
}

/// What keeps a path from being reached or read, if its permissions do: a directory above it, or the file itself.
pub(crate) fn closed(path: &Path) -> Option<PathBuf> {
    let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    if std::fs::symlink_metadata(path).is_err_and(denied) {
        let above = path
            .ancestors()
            .skip(1)
            .find(|above| std::fs::symlink_metadata(above).is_ok());
        return above.map(Path::to_path_buf);
    }
    std::fs::File::open(path).is_err_and(denied).then(|| path.to_path_buf())
}

/// Opens a log for reading. It may be large, and may be a pipe.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// The directory's path without symbolic links.
///
/// # Errors
/// What does not exist, cannot be reached, or is not a directory.
pub(crate) fn directory(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    if !path.metadata()?.is_dir() {
        return Err(io::Error::other("it is not a directory"));
    }
    Ok(path)
}

/// The path without symbolic links, as far as it exists.
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// A directory, by what no rename changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Identity {
    device: u64,
    file: u64,
    /// When it was made, in nanoseconds since 1970, where the file system keeps that: numbers come again.
    born_ns: Option<u128>,
}

/// What a path, without following a link at its end, is.
///
/// # Errors
/// It is not there, or cannot be looked at.
pub(crate) fn identity(path: &Path) -> io::Result<Identity> {
    let found = path.symlink_metadata()?;
    let born = found.created().ok();
    let born = born.and_then(|born| born.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(Identity {
        device: found.dev(),
        file: found.ino(),
        born_ns: born.map(|born| born.as_nanos()),
    })
}

/// Puts a file of ours with this text in the place of the one that may be there, in one step.
///
/// # Errors
/// It cannot be written; what was there is there.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// The names in a directory of ours, `most` at most.
pub(crate) fn names(directory: &Path, most: usize) -> Vec<OsString> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.take(most).map(|entry| entry.file_name()).collect()
}

/// Removes a file of ours.
pub(crate) fn forget(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Whether this is a file that its owner may execute.
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The first executable of this name in the absolute directories of a `PATH`.
pub(crate) fn on_path(name: &Path, path: &OsStr) -> Option<PathBuf> {
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories
        .map(|directory| directory.join(name))
        .find(|program| is_executable(program))
}

/// The terminal that the person sits at, whatever the standard streams are.
pub(crate) fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// An empty directory of ours, gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one where temporary files go.
    ///
    /// # Errors
    /// There is no such place, or nothing can be made there.
    pub(crate) fn new() -> io::Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    fn below(place: &Path) -> io::Result<Self> {
        let place = place.canonicalize()?;
        let mut last = io::Error::other("every name is taken");
        for _ in 0..100 {
            // Where everybody can make files, nobody can guess this name, and so nobody can take it before.
            let mut random = [0; 16];
            rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
            let path = place.join(format!("shieling-{:032x}", u128::from_ne_bytes(random)));
            // Not there before, and nobody else's.
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Its path, without symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An empty directory that stays behind does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_no_error() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(read(&place.path().join("none"), Links::Refuse).unwrap(), None);
    }

    #[test]
    fn a_fifo_or_a_directory_is_refused_and_does_not_hang() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(read(&fifo, Links::Refuse).is_err());
        assert!(read(place.path(), Links::Refuse).is_err());
    }

    #[test]
    fn a_link_is_followed_for_the_user_and_not_in_a_workspace() {
        let place = tempfile::tempdir().unwrap();
        let (file, link) = (place.path().join("file"), place.path().join("link"));
        std::fs::write(&file, "secret").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link, Links::Follow).unwrap().as_deref(), Some("secret"));
        assert!(
            read(&link, Links::Refuse)
                .unwrap_err()
                .to_string()
                .contains("symbolic link")
        );
    }

    #[test]
    fn another_user_can_take_no_name_before_we_do() {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
        let name = |scratch: &Scratch| scratch.path().file_name().unwrap().to_string_lossy().into_owned();
        let (one, two) = (
            Scratch::below(place.path()).unwrap(),
            Scratch::below(place.path()).unwrap(),
        );
        for scratch in [&one, &two] {
            assert_eq!(scratch.path().metadata().unwrap().mode() & 0o777, 0o700);
            let (_, random) = name(scratch)
                .split_once('-')
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .unwrap();
            assert!(
                random.len() == 32 && !random.contains(&std::process::id().to_string()),
                "{random}"
            );
        }
        assert_ne!(name(&one), name(&two));
    }

    #[test]
    fn every_step_on_the_way_counts() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        std::fs::create_dir_all(root.join("work")).unwrap();
        std::fs::create_dir_all(root.join("mine")).unwrap();
        std::fs::write(root.join("mine/file"), "").unwrap();
        std::fs::write(root.join("work/file"), "").unwrap();
        link("../mine", "work/out");
        link("work/out", "chain");
        link("work/file", "into");
        link("mine", "beside");
        link("loop", "loop");
        for (path, through) in [
            ("work/file", true),
            ("work/absent", true),
            ("work/out/file", true),
            ("chain/file", true),
            ("into", true),
            ("mine/../work/file", true),
            ("loop/file", true),
            ("mine/file", false),
            ("beside/file", false),
            ("work2/file", false),
            ("absent/file", false),
        ] {
            assert_eq!(leads_through(&root.join(path), &root.join("work")), through, "{path}");
        }
        assert!(
            leads_through(Path::new("/etc/passwd"), Path::new("/")),
            "a workspace that is everything"
        );
    }

    #[test]
    fn what_keeps_a_file_from_being_read_is_named_as_an_ordinary_user() {
        shieling_testkit::again_as_user(&[
            "--exact",
            "config::files::tests::what_keeps_a_file_from_being_read_is_named",
        ]);
    }

    #[test]
    fn what_keeps_a_file_from_being_read_is_named() {
        let place = tempfile::tempdir().unwrap();
        let (directory, file) = (place.path().join("work"), place.path().join("work/file"));
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(&file, "").unwrap();
        let shut = |path: &Path, mode| {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap()
        };
        assert_eq!(closed(&file), None);
        assert_eq!(closed(&directory.join("absent")), None);
        if rustix::process::geteuid().is_root() {
            // Nothing is closed to it.
            return;
        }
        shut(&file, 0o000);
        assert_eq!(closed(&file), Some(file.clone()));
        shut(&directory, 0o000);
        assert_eq!(closed(&file), Some(directory.clone()));
        assert_eq!(closed(&directory.join("absent")), Some(directory.clone()));
        shut(&directory, 0o700);
    }

    #[test]
    fn a_long_file_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, vec![b'#'; 1024 * 1024 + 1]).unwrap();
        assert!(read(&file, Links::Follow).unwrap_err().to_string().contains("1 MiB"));
    }
}
