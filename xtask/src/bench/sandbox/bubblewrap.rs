//! Bubblewrap, told to show what a sandbox of ours shows: it is asked what is mounted in it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::subject::{Caller, Place};

/// What a sandbox is asked: its mounts, and then the names in its root and its `/etc`.
const WHAT_IS_SEEN: &str = "cat /proc/self/mountinfo; echo; printf '%s\\n' /* /etc/*";

/// `bwrap` with the view of a sandbox.
pub(in crate::bench) struct Same<'a> {
    arguments: Vec<String>,
    caller: &'a Caller,
}

impl<'a> Same<'a> {
    /// With what is seen at this place.
    ///
    /// # Errors
    /// It is not there, or does not run a command with that view.
    pub(in crate::bench) fn new(place: &Place<'_>, caller: &'a Caller) -> anyhow::Result<Self> {
        let outcome = place.run(WHAT_IS_SEEN)?;
        let arguments = arguments(&outcome.stdout, caller)?;
        let same = Self { arguments, caller };
        let proof = format!("test ! -e /etc/shadow -a -w {} && exit 7", caller.workspace.display());
        let output = same.command(&proof).output().context("`bwrap` cannot be started")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(7),
            "it did not run a command: {}",
            error.trim()
        );
        Ok(same)
    }

    pub(in crate::bench) fn command(&self, text: &str) -> Command {
        let mut command = Command::new("bwrap");
        command
            .args(&self.arguments)
            .args(["--", "/bin/bash", "--noprofile", "--norc", "-c", text])
            .env_clear()
            .envs(self.caller.variables())
            .current_dir(&self.caller.workspace)
            .stdin(Stdio::null());
        command
    }
}

/// The options that make the same view.
fn arguments(seen: &str, caller: &Caller) -> anyhow::Result<Vec<String>> {
    let options = "--unshare-all --die-with-parent --new-session --cap-drop ALL";
    let mut arguments: Vec<String> = options.split(' ').map(str::to_owned).collect();
    let mut add = |words: &[&str]| arguments.extend(words.iter().map(|&word| word.to_owned()));
    let (mounts, names) = seen.split_once("\n\n").context("it tells its mounts and its names")?;
    // Where a mount is, and what kind of file system.
    let mounts: Vec<(&str, &str)> = mounts
        .lines()
        .filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            Some((mount.split(' ').nth(4)?, kind.split(' ').next()?))
        })
        .collect();
    let own = [Path::new("/tmp"), Path::new("/run"), &caller.home];
    for &(at, kind) in &mounts {
        let path = Path::new(at);
        if at == "/" || path.starts_with("/dev") || path.starts_with("/proc") {
            // Made by one option each, below; the root is made by itself.
        } else if path == caller.workspace {
            add(&["--bind", at, at]);
        } else if kind == "tmpfs" && own.contains(&path) {
            add(&["--tmpfs", at]);
        } else if path.exists() {
            add(&["--ro-bind", at, at]);
        }
    }
    add(&["--proc", "/proc", "--dev", "/dev"]);
    for name in names.lines() {
        let Ok(found) = fs::symlink_metadata(name) else {
            continue;
        };
        if mounts.iter().any(|(at, _)| *at == name) {
            continue;
        }
        if found.is_symlink() {
            let to = fs::read_link(name)?;
            add(&["--symlink", &to.to_string_lossy(), name]);
        } else if found.is_file() {
            // A file of our own making, such as `/etc/passwd`: the host's is as good here.
            add(&["--ro-bind", name, name]);
        }
    }
    Ok(arguments)
}
