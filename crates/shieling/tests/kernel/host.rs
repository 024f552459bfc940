//! The host around the sandboxes, as far as the texts of the corpora try to reach it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Instant, SystemTime};

use crate::cases::Case;
use crate::snapshot::Snapshot;

/// Settings of the host, whose content counts and whose times say nothing.
const SETTINGS: [&str; 2] = ["/proc/sys/kernel/hostname", "/sys/class/net/lo/flags"];

/// Places of the host that some text names or whose change some text asks for.
const PLACES: [&str; 9] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/crontab",
    "/etc/gitconfig",
    "/etc/hostname",
    "/var/spool/cron",
    "/var/spool/at",
    "/dev/shm/f",
    "/private",
];

/// The host as it was, and a process on it that the texts would end if they could.
pub(crate) struct Host {
    places: Vec<(PathBuf, Snapshot)>,
    settings: [String; 2],
    victim: Child,
    scheduling: Option<String>,
    clock: (SystemTime, Instant),
}

impl Host {
    /// Looks at it. The victim is called as one that texts name.
    pub(crate) fn new(cases: &[Case], base: &Path) -> Self {
        let program = base.join("node");
        // By another process: what other tests fork at this moment would keep our descriptor open for writing, and a
        // program cannot be executed then.
        let copied = Command::new("cp").arg("/usr/bin/sleep").arg(&program).status();
        assert!(copied.is_ok_and(|status| status.success()), "sleep can be copied");
        let victim = Command::new(&program)
            .arg("1000")
            .spawn()
            .expect("a copy of sleep starts");
        let mut paths: BTreeSet<PathBuf> = PLACES.iter().map(PathBuf::from).collect();
        for case in cases {
            paths.extend(temporary_names(&case.text).map(PathBuf::from));
        }
        let seen = |path: PathBuf| {
            let snapshot = Snapshot::of(&path);
            (path, snapshot)
        };
        Self {
            places: paths.into_iter().map(seen).collect(),
            settings: settings(),
            scheduling: scheduling(victim.id()),
            victim,
            clock: (SystemTime::now(), Instant::now()),
        }
    }

    /// What has changed since.
    pub(crate) fn changes(&mut self) -> Vec<String> {
        let mut changes = Vec::new();
        for (path, before) in &self.places {
            for change in before.difference(&Snapshot::of(path)) {
                changes.push(format!("host {}{change}", path.display()));
            }
        }
        if settings() != self.settings {
            changes.push(format!(
                "host: {SETTINGS:?} are {:?}, were {:?}",
                settings(),
                self.settings
            ));
        }
        if !matches!(self.victim.try_wait(), Ok(None)) {
            changes.push("host: a process was ended".to_owned());
        } else if scheduling(self.victim.id()) != self.scheduling {
            changes.push("host: a process has another priority".to_owned());
        }
        let passed = self.clock.0.elapsed().map_or(-1.0, |time| time.as_secs_f64());
        if (passed - self.clock.1.elapsed().as_secs_f64()).abs() > 30.0 {
            changes.push("host: the clock was set".to_owned());
        }
        changes
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Only ours, and it may be gone already.
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn settings() -> [String; 2] {
    SETTINGS.map(|path| fs::read_to_string(path).unwrap_or_default())
}

/// The state, priority and nice value of a process.
fn scheduling(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    // Stopped is a change too, sleeping or running is none.
    let stopped = fields.first().is_some_and(|state| *state == "T");
    Some(format!("{stopped} {} {}", fields.get(15)?, fields.get(16)?))
}

/// The names directly in `/tmp` that a text spells.
fn temporary_names(text: &str) -> impl Iterator<Item = String> {
    text.match_indices("/tmp/").filter_map(|(at, start)| {
        let rest = &text[at + start.len()..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
            .unwrap_or(rest.len());
        (end > 0).then(|| format!("/tmp/{}", &rest[..end]))
    })
}

/// Processes that still work in a directory.
pub(crate) fn working_in(directory: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("proc is mounted");
    processes
        .flatten()
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory)))
        .map(|entry| {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            format!("{} ({})", entry.file_name().display(), name.trim())
        })
        .collect()
}

#[test]
fn a_change_of_the_host_is_seen() {
    let (folder, file) = (
        tempfile::tempdir().expect("a temporary directory"),
        format!("/tmp/seen{}", std::process::id()),
    );
    let mut case = crate::share::attacks("readonly").swap_remove(0);
    case.text = format!("echo x > {file}");
    let mut host = Host::new(&[case], folder.path());
    assert_eq!(host.changes(), Vec::<String>::new());
    fs::write(&file, "x").expect("anybody may write there");
    assert_eq!(host.changes(), [format!("host {file}: new")]);
    fs::remove_file(&file).expect("our own file");
    assert_eq!(working_in(folder.path()), Vec::<String>::new());
    host.victim.kill().expect("our own process");
    host.victim.wait().expect("our own process");
    assert_eq!(host.changes(), ["host: a process was ended"]);
}
