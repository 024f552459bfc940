//! Why there was no space: how much the private directories hold, and whether the disk of the workspace is full. Knows
//! the words of programs, and looks at nothing but the free space of disks.

use std::path::{Path, PathBuf};

use super::{Restrictions, place, places, writable};
use crate::outcome::{Hint, HintKind, Outcome};
use crate::units::ByteCount;

/// What programs say where a disk, or a directory in memory, takes no more.
const SAID: [&str; 3] = ["No space left on device", "ENOSPC", "Disk quota exceeded"];

/// A disk with less than this left is called full.
const LITTLE: ByteCount = ByteCount::mib(16);

/// A directory of the sandbox's own, in memory.
struct Private {
    path: PathBuf,
    bytes: ByteCount,
    /// How many files it holds, where that is limited.
    files: Option<u64>,
}

/// What explains the words of a program that found no space; nothing if none did.
pub(super) fn explain(restrictions: &Restrictions, outcome: &Outcome) -> Option<Hint> {
    // Where both streams are one, as in `2>&1`, what failed says it on standard output.
    let stdout = Some(&outcome.stdout).filter(|_| outcome.exit_code != Some(0));
    let mut lines = [Some(&outcome.stderr), stdout]
        .into_iter()
        .flatten()
        .flat_map(|text| text.lines())
        // The kernel says the same where a program watches more files than a user may.
        .filter(|line| !line.to_ascii_lowercase().contains("watch") && !line.contains("inotify"));
    let (line, said) = lines.find_map(|line| Some((line, SAID.into_iter().find(|said| line.contains(said))?)))?;
    // `cat: write error` names no file: a word counts as one only if it is a whole path.
    let named = places::named(line, said, Path::new("/")).filter(|path| line.contains(&*path.to_string_lossy()));
    let private = private(restrictions);
    let roots = writable::roots(restrictions);
    let below = |path: &Path, top: &Path| path.starts_with(top);
    let place = named
        .as_deref()
        .and_then(|path| private.iter().find(|place| below(path, &place.path)));
    let on_disk = named
        .as_deref()
        .filter(|path| roots.iter().any(|root| below(path, root)));
    let disk = on_disk.unwrap_or(&restrictions.workspace);
    let free = free(disk);
    let is_full = free.is_some_and(|free| free < LITTLE);
    if on_disk.is_none() && !private.is_empty() && (place.is_some() || !is_full) {
        let held = place.map_or_else(
            || {
                let all: Vec<String> = private.iter().map(described).collect();
                format!("the private directories are in memory, and bounded: {}", all.join(", "))
            },
            |place| format!("a private directory is full, which is in memory: {}", described(place)),
        );
        let elsewhere = match restrictions.readonly {
            true => String::new(),
            false => format!(
                ", or put large files below `{}`, as with `TMPDIR`",
                restrictions.workspace.display()
            ),
        };
        return Some(Hint {
            kind: HintKind::NoSpace,
            path: named,
            because: held,
            instead: format!("remove what is no longer needed from it{elsewhere}"),
        });
    }
    let because = match free {
        Some(free) if is_full => format!("the disk of `{}` is full: {free} of it are free", disk.display()),
        Some(free) => format!(
            "the disk of `{}` takes no more, although {free} are free: a quota, or the number of files, is used up",
            disk.display()
        ),
        None => format!("the disk of `{}` takes no more", disk.display()),
    };
    Some(Hint {
        kind: HintKind::NoSpace,
        path: named,
        because,
        instead: "remove what is no longer needed, or a person can make room on this disk".to_owned(),
    })
}

/// The directories in memory, the inner ones first.
fn private(restrictions: &Restrictions) -> Vec<Private> {
    if restrictions.isolation != shieling_jail::plan::Isolation::Full {
        return Vec::new();
    }
    let sizes = restrictions.sizes;
    let roots = writable::roots(restrictions);
    let one = |path: &Path, bytes, files| Private {
        path: path.to_path_buf(),
        bytes: ByteCount::bytes(bytes),
        files,
    };
    let home = place::home(restrictions);
    let mut all = vec![
        one(Path::new("/tmp"), sizes.tmp, Some(sizes.files)),
        one(Path::new("/var/tmp"), sizes.tmp, Some(sizes.files)),
        one(Path::new("/dev/shm"), sizes.shm, None),
        one(Path::new("/run"), sizes.run, Some(sizes.files / 10)),
    ];
    if restrictions.kept_home.is_none() && all.iter().all(|place| *place.path != *home) {
        all.insert(0, one(&home, sizes.home, Some(sizes.files)));
    }
    all.retain(|place| {
        !restrictions.read.contains(&place.path) && !roots.iter().any(|root| place.path.starts_with(root))
    });
    all
}

fn described(place: &Private) -> String {
    let path = place.path.display();
    match place.files {
        Some(files) => format!("`{path}` holds {} in {files} files", place.bytes),
        None => format!("`{path}` holds {}", place.bytes),
    }
}

/// How much can be written on the disk of a path, or of what is nearest above it.
fn free(path: &Path) -> Option<ByteCount> {
    let found = path.ancestors().find_map(|path| rustix::fs::statvfs(path).ok())?;
    Some(ByteCount::bytes(found.f_bavail.saturating_mul(found.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Status;

    fn told(stderr: &str, restrictions: &Restrictions) -> Option<Hint> {
        let outcome = Outcome {
            exit_code: Some(1),
            stderr: stderr.to_owned(),
            ..Outcome::blank(Status::Exited, "/usr/w", "sandbox")
        };
        explain(restrictions, &outcome)
    }

    #[test]
    fn a_full_directory_in_memory_is_told_with_what_it_holds() {
        let restrictions = Restrictions::new("/usr/w", "/bin/bash");
        for (said, path) in [
            ("dd: error writing '/tmp/x': No space left on device", Some("/tmp/x")),
            ("bash: line 1: /tmp/a/b: No space left on device", Some("/tmp/a/b")),
            ("OSError: [Errno 28] No space left on device: '/tmp/x'", Some("/tmp/x")),
            ("cat: write error: No space left on device", None),
            ("Error: ENOSPC: no space left on device, write", None),
        ] {
            let hint = told(&format!("first\n{said}\nlast"), &restrictions).expect(said);
            assert_eq!(
                (hint.kind, hint.path.as_deref()),
                (HintKind::NoSpace, path.map(Path::new)),
                "{said}"
            );
            assert!(hint.because.contains("`/tmp` holds 1 GiB in 200000 files"), "{hint:?}");
            assert_eq!(hint.because.contains("/dev/shm"), path.is_none(), "{hint:?}");
            assert!(hint.instead.contains("below `/usr/w`"), "{hint:?}");
        }
        assert_eq!(told("no space", &restrictions), None);
    }

    #[test]
    fn what_is_written_to_the_workspace_is_a_matter_of_its_disk() {
        for restrictions in [
            Restrictions::new("/usr/w", "/bin/bash"),
            Restrictions::new("/tmp/w", "/bin/bash"),
        ] {
            let path = restrictions.workspace.join("x");
            let said = format!("dd: error writing '{}': No space left on device", path.display());
            let hint = told(&said, &restrictions).expect("it is told");
            assert!(hint.because.starts_with("the disk of "), "{hint:?}");
            assert_eq!(hint.path, Some(path));
        }
    }
}
