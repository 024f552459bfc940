//! What earlier starts have left that were killed before the program could remove itself. Only what is provably of such
//! a start is removed: by its name, its owner, its age, and its content, which is the beginning of this program.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};

/// Where a start may have put the program.
const PLACES: [&str; 5] = ["/", "/tmp", "/var/tmp", "/run", "/dev/shm"];
/// How old it has to be: a start that is under way takes less.
const OLD: Duration = Duration::from_secs(5 * 60);

/// Removes it. What cannot be looked at, or not be removed, stays.
pub(crate) fn sweep() {
    let program = rustix::fs::open("/proc/self/exe", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let Ok(program) = program else {
        return;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    for place in PLACES {
        sweep_in(Path::new(place), &program, now.saturating_sub(OLD));
    }
}

const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK);

fn sweep_in(place: &Path, program: &OwnedFd, before: Duration) {
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(place) = rustix::fs::openat(CWD, place, directory, Mode::empty()) else {
        return;
    };
    for name in names(&place) {
        if is_of_a_start(&name) {
            remove(&place, &name, program, before);
        }
    }
}

fn names(directory: impl AsFd) -> Vec<Vec<u8>> {
    let Ok(entries) = Dir::read_from(directory) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_bytes().to_vec());
    names.filter(|name| name != b"." && name != b"..").collect()
}

/// Whether a name is `.shieling-PID-NUMBER`.
fn is_of_a_start(name: &[u8]) -> bool {
    let Some(numbers) = name.strip_prefix(b".shieling-") else {
        return false;
    };
    let parts: Vec<&[u8]> = numbers.split(|byte| *byte == b'-').collect();
    parts.len() == 2
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
}

fn remove(place: &OwnedFd, name: &[u8], program: &OwnedFd, before: Duration) {
    let Ok(directory) = rustix::fs::openat(place, name, READ | OFlags::DIRECTORY, Mode::empty()) else {
        return;
    };
    let is_ours = |stat: &Stat| stat.st_uid == 0 && u64::try_from(stat.st_mtime).is_ok_and(|at| at < before.as_secs());
    if !rustix::fs::fstat(&directory).is_ok_and(|stat| is_ours(&stat)) {
        return;
    }
    match names(&directory).as_slice() {
        [] => {}
        [only] if only == b"agent" => {
            let Ok(file) = rustix::fs::openat(&directory, "agent", READ, Mode::empty()) else {
                return;
            };
            let is_plain = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            let found = rustix::fs::fstat(&file).is_ok_and(|stat| is_ours(&stat) && is_plain(&stat));
            if !found || !begins(program, &file) || rustix::fs::unlinkat(&directory, "agent", AtFlags::empty()).is_err()
            {
                return;
            }
        }
        _ => return,
    }
    // Something may have been put into it meanwhile.
    let _ = rustix::fs::unlinkat(place, name, AtFlags::REMOVEDIR);
}

/// Whether a program begins with all that a file holds, which may have been cut off as it was written.
fn begins(program: &OwnedFd, file: &OwnedFd) -> bool {
    let (mut ours, mut theirs, mut at) = (vec![0; 64 * 1024], vec![0; 64 * 1024], 0);
    loop {
        let Ok(read) = rustix::io::pread(file, &mut theirs[..], at) else {
            return false;
        };
        if read == 0 {
            return true;
        }
        let mut filled = 0;
        while filled < read {
            match rustix::io::pread(program, &mut ours[filled..read], at + filled as u64) {
                Ok(more @ 1..) => filled += more,
                Ok(0) | Err(_) => return false,
            }
        }
        if ours.get(..read) != theirs.get(..read) {
            return false;
        }
        at += read as u64;
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "what a start leaves is made here")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_a_start_has_left_is_removed() {
        if !rustix::process::geteuid().is_root() {
            shieling_testkit::prerequisite::skip("what starts leave belongs to root");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..200_000_u32).map(|at| (at / 7) as u8).collect();
        fs::write(place.path().join("program"), &content).unwrap();
        let program = rustix::fs::open(place.path().join("program"), READ, Mode::empty()).unwrap();
        let make = |name: &str, file: &str, content: &[u8]| {
            let directory = place.path().join(name);
            fs::create_dir(&directory).unwrap();
            if !file.is_empty() {
                fs::write(directory.join(file), content).unwrap();
            }
        };
        for (name, content) in [
            (".shieling-1-0", &content[..]),
            (".shieling-12-3", &content[..70_000]),
            (".shieling-2-0", b""),
        ] {
            make(name, "agent", content);
        }
        make(".shieling-3-0", "", b"");
        let longer = [&content[..], b"x"].concat();
        let kept: [(&str, &str, &[u8]); 6] = [
            (".shieling-4-0", "agent", b"something else"),
            (".shieling-5-0", "other", &content),
            (".shieling-6-0", "agent", &longer),
            (".shieling-7", "agent", &content),
            (".shieling-7-a", "agent", &content),
            ("shieling-8-0", "agent", &content),
        ];
        for (name, file, content) in kept {
            make(name, file, content);
        }
        make(".shieling-9-0", "agent", &content);
        std::os::unix::fs::chown(place.path().join(".shieling-9-0/agent"), Some(1234), None).unwrap();
        make("target", "agent", &content);
        std::os::unix::fs::symlink("target", place.path().join(".shieling-10-0")).unwrap();
        let here = || {
            let mut names: Vec<String> = fs::read_dir(place.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let all = here();
        // A start that is under way.
        sweep_in(place.path(), &program, Duration::from_secs(1));
        assert_eq!(here(), all);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        sweep_in(place.path(), &program, now + OLD);
        let mut expected: Vec<&str> = kept.iter().map(|(name, ..)| *name).collect();
        expected.extend([".shieling-9-0", ".shieling-10-0", "program", "target"]);
        expected.sort_unstable();
        assert_eq!(here(), expected);
    }
}
