//! Snapshots of a job, from which the changes that a person made are described. What cannot be observed reliably is
//! left out.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The largest number of entries of the workspace. In a larger one, changed files are not described.
const LOOKED_AT: usize = 4_096;

/// The largest number of file names in a description.
const TOLD: usize = 20;

/// The version of a file: inode, size, and the times of the last changes of content and status.
type Version = (u64, u64, [i64; 4]);

/// The state of a job at one time.
#[derive(Debug, Default)]
pub(crate) struct JobSnapshot {
    /// The number of bytes that the job has written.
    pub(super) written: u64,
    /// The working directory of the main process, if it has a process id on this host.
    cwd: Option<PathBuf>,
    /// The entries of the workspace's top directory.
    files: Option<BTreeMap<PathBuf, Version>>,
}

impl JobSnapshot {
    /// Takes a snapshot.
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

    /// Describes the changes since an earlier snapshot, one sentence each.
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
            changed.extend(describe_names("changed in the workspace", &touched));
            changed.extend(describe_names("gone from the workspace", &gone.collect::<Vec<_>>()));
        }
        changed
    }
}

fn describe_names(what: &str, names: &[&PathBuf]) -> Option<String> {
    let shown: Vec<String> = names.iter().take(TOLD).map(|name| name.display().to_string()).collect();
    let more = names.len().saturating_sub(TOLD);
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    (!names.is_empty()).then(|| format!("{what}: {}{more}", shown.join(", ")))
}

/// Returns the entries of a directory; `None` if there are too many, or if it cannot be read.
#[allow(
    clippy::disallowed_methods,
    reason = "a directory is looked at, and nothing is opened"
)]
fn files(directory: &Path) -> Option<BTreeMap<PathBuf, Version>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).ok()? {
        let entry = entry.ok()?;
        // The entry was removed after it was listed.
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
        let before = JobSnapshot::of(0, me, place.path());
        assert_eq!(
            JobSnapshot::of(0, me, place.path()).since(&before),
            Vec::<String>::new()
        );
        write("written", "longer than it was");
        write("new", "");
        fs::remove_file(place.path().join("gone")).expect("removed");
        let told = JobSnapshot::of(0, me, place.path()).since(&before);
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
        let told = JobSnapshot::of(0, me, place.path()).since(&before);
        assert!(
            told[0].ends_with("many19, and 12 more") || told[0].ends_with(", and 12 more"),
            "{told:?}"
        );

        let elsewhere = JobSnapshot {
            cwd: Some("/elsewhere".into()),
            ..JobSnapshot::of(0, None, Path::new("/nowhere"))
        };
        let here = JobSnapshot {
            cwd: Some("/here".into()),
            ..JobSnapshot::default()
        };
        assert_eq!(
            here.since(&elsewhere),
            ["it stands in /here now, and not in /elsewhere"]
        );
        assert_eq!(here.since(&before)[1..], Vec::<String>::new());
        assert_eq!(JobSnapshot::default().since(&before), Vec::<String>::new());
    }
}
