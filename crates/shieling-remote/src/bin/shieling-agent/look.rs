//! What the place says of itself, for whoever compares it with what was asked.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};

/// How much of a file is told.
const MOST: usize = 64 * 1024;

/// A file with its text, or a namespace with its name, if it is there. What is not UTF-8 is replaced.
pub(crate) fn shown(path: &Path) -> Option<(String, String)> {
    if path.starts_with("/proc/self/ns") {
        let name = rustix::fs::readlink(path, Vec::new()).ok()?;
        return Some((path.to_str()?.to_owned(), name.to_string_lossy().into_owned()));
    }
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty()).ok()?;
    let mut text = vec![0; MOST];
    let mut filled = 0;
    while let Some(rest) = text.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::io::read(&file, rest).ok()? {
            0 => break,
            read => filled += read,
        }
    }
    text.truncate(filled);
    Some((path.to_str()?.to_owned(), String::from_utf8_lossy(&text).into_owned()))
}

/// Whether files can be made in a directory.
pub(crate) fn is_writable(path: &Path) -> bool {
    rustix::fs::accessat(CWD, path, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// How many processes of the container's control group were killed for its memory.
pub(crate) fn kills() -> u64 {
    let files = [
        "/sys/fs/cgroup/memory.events",
        "/sys/fs/cgroup/memory/memory.oom_control",
    ];
    let text = files.into_iter().find_map(|path| shown(Path::new(path)));
    let count = text
        .as_ref()
        .and_then(|(_, text)| text.lines().find_map(|line| line.strip_prefix("oom_kill ")));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Removes the file that this program is, and its directory if that holds nothing else.
pub(crate) fn remove_itself() {
    let Ok(own) = rustix::fs::readlink("/proc/self/exe", Vec::new()) else {
        return;
    };
    let own = PathBuf::from(OsString::from_vec(own.into_bytes()));
    // Its user may not be allowed to; whoever put it there then removes it at the end.
    let _ = rustix::fs::unlink(&own);
    if let Some(directory) = own.parent() {
        // Only an empty one is.
        let _ = rustix::fs::rmdir(directory);
    }
}
