//! The program: waits until the host says that all is settled, or is gone.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags};
use shieling_watch::{Watch, When};

use crate::log::{self, Beginning, Entry, OVER};
use crate::quarantine::Quarantine;

/// The read end of the pipe, and the log, as the host gives them.
const PIPE: &str = "/proc/self/fd/3";
const LOG: &str = "/proc/self/fd/4";

/// How long the end of the sandbox is waited for, which ends with its host.
const ENDING: Duration = Duration::from_secs(30);

/// Runs it. `None` if what it was given cannot be read.
pub fn run() -> Option<()> {
    // A signal to the host's group or terminal is not for this process.
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir("/");
    let open = |name| rustix::fs::open(name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let (pipe, told) = (open(PIPE).ok()?, open(LOG).ok()?);
    let entries = log::read(&told).ok()?;
    let beginning = entries.iter().find_map(|entry| match entry {
        Entry::Beginning(beginning) => Some(beginning.clone()),
        _ => None,
    })?;
    let mut roots = BTreeMap::new();
    for entry in entries {
        if let Entry::Root(number, root) = entry {
            roots.insert(number, root);
        }
    }
    if is_told(&pipe, &beginning) {
        return Some(());
    }
    wait_for(beginning.monitor);
    settle(&beginning, &roots, log::read(&told).ok()?);
    Some(())
}

/// Waits for the host's word or end. Whether it has said that all is settled.
fn is_told(pipe: &OwnedFd, beginning: &Beginning) -> bool {
    let host = Pid::from_raw(beginning.host);
    let alive = host.and_then(|host| rustix::process::pidfd_open(host, PidfdFlags::empty()).ok());
    // Otherwise the number may be another process's by now.
    let alive = alive.filter(|_| rustix::process::getppid() == host);
    loop {
        let mut fds = vec![PollFd::new(pipe, PollFlags::IN)];
        fds.extend(alive.as_ref().map(|alive| PollFd::new(alive, PollFlags::IN)));
        let at_once = Timespec::default();
        // A copy of the host may keep the pipe open: its own end is what counts.
        let _ = rustix::event::poll(&mut fds, alive.is_none().then_some(&at_once));
        let is_ready = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
        if is_ready(fds.first()) {
            return says_over(pipe);
        }
        if alive.is_none() || is_ready(fds.get(1)) {
            // It may have said so with its last breath.
            let mut fds = [PollFd::new(pipe, PollFlags::IN)];
            let _ = rustix::event::poll(&mut fds, Some(&at_once));
            return !fds[0].revents().is_empty() && says_over(pipe);
        }
    }
}

/// Reads the host's word.
fn says_over(pipe: &OwnedFd) -> bool {
    let mut byte = [0];
    matches!(rustix::io::read(pipe, &mut byte), Ok(1)) && byte == [OVER]
}

/// Waits until a process is gone.
fn wait_for(process: i32) {
    let Some(process) = Pid::from_raw(process) else { return };
    let Ok(process) = rustix::process::pidfd_open(process, PidfdFlags::empty()) else {
        return;
    };
    let until = Instant::now() + ENDING;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or_default();
        let mut fds = [PollFd::new(&process, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Judges what the host had not.
fn settle(beginning: &Beginning, roots: &BTreeMap<u32, Vec<u8>>, entries: Vec<Entry>) {
    let mut quarantine = Quarantine::new(beginning.store.clone());
    let mut is_settled = false;
    let mut trees: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::Command(text) => quarantine.name(&text),
            Entry::Settled(now) => is_settled = now,
            Entry::Tree(number, part, is_whole) => {
                let parts = trees.entry(number).or_default();
                if is_whole {
                    parts.clear();
                }
                parts.push(part);
            }
            Entry::Beginning(_) | Entry::Root(..) => {}
        }
    }
    if is_settled {
        return;
    }
    for (number, root) in roots {
        let parts: Vec<&[u8]> = trees.get(number).into_iter().flatten().map(Vec::as_slice).collect();
        if let Ok(mut watch) = Watch::resume(root, &parts) {
            let root = watch.root().to_path_buf();
            let _ = quarantine.settle(&root, |keep| watch.settle(When::Idle, true, keep));
        }
    }
}
