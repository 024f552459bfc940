//! How a job stands at one moment, so that afterwards it can be told what a person has changed. Tells what
//! was seen, and says nothing where that would be a guess.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most entries of the workspace that are looked at; in a larger one, nothing is said of files.
const LOOKED_AT: usize = 4_096;

/// The most names that are told.
const TOLD: usize = 20;

/// What tells one version of a file from another: number, size, and when it and its contents changed.
type Version = (u64, u64, [i64; 4]);

/// A moment of a job.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    /// How much it had written.
    pub(super) written: u64,
    /// Where its main process stood, if it has a number on this host.
    cwd: Option<PathBuf>,
    /// What lay in the workspace itself.
    files: Option<BTreeMap<PathBuf, Version>>,
}

impl Moment {
    /// This one.
    #[allow(
        clippy::disallowed_methods,
        reason = "a directory is looked at, and nothing is opened"
    )]
    pub(super) fn of(written: u64, pid: Option<u32>, workspace: &Path) -> Self {
        Self {
            written,
            cwd: pid.and_then(|pid| fs::read_link(format!("/proc/{pid}/cwd")).ok()),
            files: files(workspace),
        }
    }

    /// What is different from one before, in sentences.
    pub(super) fn since(&self, before: &Self) -> Vec<String> {
        let mut changed = Vec::new();
        if let (Some(old), Some(new)) = (&before.cwd, &self.cwd)
            && old != new
        {
            changed.push(format!(
                "it stands in {} now, and not in {}",
                new.display(),
                old.display()
            ));
        }
        if let (Some(old), Some(new)) = (&before.files, &self.files) {
            let touched = new.iter().filter(|(name, version)| old.get(*name) != Some(version));
            let gone = old.keys().filter(|name| !new.contains_key(*name));
            let touched: Vec<&PathBuf> = touched.map(|(name, _)| name).collect();
            changed.extend(told("changed in the workspace", &touched));
            changed.extend(told("gone from the workspace", &gone.collect::<Vec<_>>()));
        }
        changed
    }
}

fn told(what: &str, names: &[&PathBuf]) -> Option<String> {
    let shown: Vec<String> = names.iter().take(TOLD).map(|name| name.display().to_string()).collect();
    let more = names.len().saturating_sub(TOLD);
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    (!names.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
}

/// The entries of a directory; none if they are too many, or cannot be read.
#[allow(
    clippy::disallowed_methods,
    reason = "a directory is looked at, and nothing is opened"
)]
fn files(directory: &Path) -> Option<BTreeMap<PathBuf, Version>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).ok()? {
        let entry = entry.ok()?;
        // One that goes at this moment is not there.
        let Ok(seen) = entry.metadata() else { continue };
        if files.len() == LOOKED_AT {
            return None;
        }
        let times = [seen.mtime(), seen.mtime_nsec(), seen.ctime(), seen.ctime_nsec()];
        files.insert(entry.file_name().into(), (seen.ino(), seen.size(), times));
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test changes files")]
    fn what_changed_is_told_up_to_a_bound_and_what_is_not_known_is_not_told() {
        let place = tempfile::tempdir().expect("a directory can be made");
        let write = |name: &str, text: &str| fs::write(place.path().join(name), text).expect("written");
        for name in ["kept", "written", "gone"] {
            write(name, name);
        }
        let me = Some(std::process::id());
        let before = Moment::of(0, me, place.path());
        assert_eq!(Moment::of(0, me, place.path()).since(&before), Vec::<String>::new());
        write("written", "longer than it was");
        write("new", "");
        fs::remove_file(place.path().join("gone")).expect("removed");
        let told = Moment::of(0, me, place.path()).since(&before);
        assert_eq!(
            told,
            [
                "changed in the workspace: new, written",
                "gone from the workspace: gone"
            ]
        );

        for number in 0..30 {
            write(&format!("many{number:02}"), "");
        }
        let told = Moment::of(0, me, place.path()).since(&before);
        assert!(
            told[0].ends_with("many19, and 12 more") || told[0].ends_with(", and 12 more"),
            "{told:?}"
        );

        let elsewhere = Moment {
            cwd: Some("/elsewhere".into()),
            ..Moment::of(0, None, Path::new("/nowhere"))
        };
        let here = Moment {
            cwd: Some("/here".into()),
            ..Moment::default()
        };
        assert_eq!(
            here.since(&elsewhere),
            ["it stands in /here now, and not in /elsewhere"]
        );
        assert_eq!(here.since(&before)[1..], Vec::<String>::new());
        assert_eq!(Moment::default().since(&before), Vec::<String>::new());
    }
}
