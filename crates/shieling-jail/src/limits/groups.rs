//! Control groups: where this process may make one, and those that it made for one sandbox.
//!
//! Refuses to make one anywhere but below the caller's own group or, on v2, beside it: there a group
//! that has processes can give its children no controllers, and one that systemd delegates to a user
//! stands in a slice that is the user's too. Where a controller has to be enabled for that, it is, for
//! all groups of the slice.
//!
//! The limits of v2 were tried against a tree of plain files only: the machines that this was written
//! on keep their controllers in v1.

#![expect(clippy::disallowed_methods, reason = "control groups are made and found in files")]

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::process::{Pid, test_kill_process};

use super::group::{Controller, Group, Version, Why, write};
use super::shown::{self, Hierarchy};

/// How the names of our groups begin; the monitor's number and that of its namespace of processes follow.
const PREFIX: &str = "shieling-";
/// How many groups of monitors that died are cleared away at once.
const LEFTOVERS: usize = 16;

/// Where files are looked for, and how a group is made: tests have neither root nor real groups.
pub(super) struct Host {
    /// `/`.
    pub(super) root: PathBuf,
    /// `mkdir`; the kernel fills it.
    pub(super) make: fn(&Path) -> io::Result<()>,
}

/// The groups of one sandbox, and why a controller has none.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) made: Vec<Group>,
    /// What of them a sandbox is shown.
    pub(super) shown: Vec<Hierarchy>,
    without: Vec<(Controller, Why)>,
}

impl Groups {
    /// Makes the groups that `wanted` needs: one for each hierarchy of v1, one for all of v2.
    pub(super) fn make(host: &Host, wanted: &[Controller], name: &str) -> Self {
        let mut groups = Self::default();
        if wanted.is_empty() {
            return groups;
        }
        let read = |path: &str| fs::read_to_string(host.root.join(path)).unwrap_or_default();
        let (own, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
        let mut unified = Vec::new();
        for &controller in wanted {
            // `ID:CONTROLLERS:PATH`; a controller is in one hierarchy at a time, so v1 means not v2.
            let path = own.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                let has = controllers.split(',').any(|one| one == controller.name());
                has.then_some(path)
            });
            match path.map(|path| mounted(host, &mounts, path, Some(controller)).ok_or(path)) {
                None => unified.push(controller),
                Some(Ok(parent)) => groups.add(host, Version::One, &parent.join(name), &[controller]),
                Some(Err(path)) => {
                    let what = format!(
                        "the caller's control group `{path}` for {} is mounted nowhere",
                        controller.name()
                    );
                    groups.lack(&[controller], &Why::none(what));
                }
            }
        }
        let path = own.lines().find_map(|line| line.strip_prefix("0::"));
        match path.and_then(|path| mounted(host, &mounts, path, None)) {
            _ if unified.is_empty() => {}
            Some(below) => groups.unify(host, &below, &unified, name),
            None => groups.lack(
                &unified,
                &Why::none("no control groups that can be used are mounted".to_owned()),
            ),
        }
        groups.shown = shown::of(&own, &groups.made);
        groups
    }

    /// One group of v2, where most of `wanted` can be had.
    fn unify(&mut self, host: &Host, own: &Path, wanted: &[Controller], name: &str) {
        // Of two that give the same the last is taken. Above the mount there is no such file.
        let places = own.parent().into_iter().chain([own]);
        // To move a process takes this file of the nearest group above both.
        let usable = places.filter(|place| {
            fs::OpenOptions::new()
                .write(true)
                .open(place.join("cgroup.procs"))
                .is_ok()
        });
        let given = usable.map(|place| (place, enabled(place, wanted)));
        let best = given.max_by_key(|(_, held)| held.len());
        let (place, held) = best.unwrap_or((own, Vec::new()));
        let (held, rest): (Vec<_>, Vec<_>) = wanted.iter().partition(|one| held.contains(one));
        let why =
            "neither the control group `OWN` nor the one above it can be written to and gives this to its children";
        self.lack(&rest, &Why::none(why.replace("OWN", &own.display().to_string())));
        if !held.is_empty() {
            self.add(host, Version::Two, &place.join(name), &held);
        }
    }

    fn add(&mut self, host: &Host, version: Version, directory: &Path, controllers: &[Controller]) {
        // Hierarchies of v1 may hold several controllers, as `cpu,cpuacct` does.
        if let Some(group) = self.made.iter_mut().find(|group| group.directory == directory) {
            return group.controllers.extend(controllers);
        }
        match (host.make)(directory) {
            Ok(()) => self.made.push(Group {
                directory: directory.to_owned(),
                version,
                controllers: controllers.to_vec(),
            }),
            Err(error) => self.lack(controllers, &Why::at("to make the control group", directory, &error)),
        }
    }

    fn lack(&mut self, controllers: &[Controller], why: &Why) {
        self.without
            .extend(controllers.iter().map(|&controller| (controller, why.clone())));
    }

    /// The group that limits this, or why there is none.
    pub(super) fn of(&self, controller: Controller) -> Result<&Group, Why> {
        let group = self.made.iter().find(|group| group.controllers.contains(&controller));
        group.ok_or_else(|| {
            let without = self.without.iter().find(|(lacking, _)| *lacking == controller);
            without.map_or_else(|| Why::none("it was not asked for".to_owned()), |(_, why)| why.clone())
        })
    }

    /// Removes what was made, and what monitors that died left beside it.
    pub(super) fn remove(&self) {
        for group in &self.made {
            group.remove();
            group.directory.parent().into_iter().for_each(clear);
        }
    }
}

/// Whether the controllers that can be used here are in v2, where a process is best cloned into its group.
pub(super) fn in_v2(host: &Host) -> bool {
    let own = fs::read_to_string(host.root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = |line: &str| {
        let controllers = line.split(':').nth(1).unwrap_or_default();
        controllers
            .split(',')
            .any(|one| matches!(one, "memory" | "pids" | "cpu"))
    };
    own.lines().any(|line| line.starts_with("0::")) && !own.lines().any(limits)
}

/// Which of these controllers the children of a group of v2 have, once those that can be are enabled.
/// The kernel refuses that where a group has processes of its own, unless it is the root.
fn enabled(place: &Path, wanted: &[Controller]) -> Vec<Controller> {
    let control = place.join("cgroup.subtree_control");
    let has = |one: Controller| {
        let text = fs::read_to_string(&control).unwrap_or_default();
        text.split_whitespace().any(|word| word == one.name())
    };
    let mut held = wanted.to_vec();
    held.retain(|&one| has(one) || write(&control, &format!("+{}", one.name())).is_ok() && has(one));
    held
}

/// The directory of the caller's own group: of the hierarchy of v1 that has `controller`, or of v2.
fn mounted(host: &Host, mounts: &str, path: &str, controller: Option<Controller>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        // `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS … - TYPE SOURCE SUPER-OPTIONS`
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        let fits = match controller {
            Some(one) => kind == "cgroup" && options.split(',').any(|option| option == one.name()),
            None => kind == "cgroup2",
        };
        // A container sees a part of the tree, which may not be the one that it is in.
        let inside = Path::new(path).strip_prefix(root).ok()?;
        let climbs = inside.components().any(|part| part == Component::ParentDir);
        (fits && !climbs).then(|| host.root.join(point.trim_start_matches('/')).join(inside))
    })
}

/// Removes empty groups of monitors that are no more. Done when a sandbox ends, to keep starts short.
///
/// Containers can share a tree of groups and not their processes: what a number means in another namespace cannot be
/// known, and a group that was just made is empty as well.
fn clear(parent: &Path) {
    let Some(namespace) = namespace() else { return };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let dead = entries.filter(|entry| {
        let name = entry.file_name();
        let mut parts = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .unwrap_or_default()
            .split('-');
        let monitor = parts.next().and_then(|number| Pid::from_raw(number.parse().ok()?));
        parts.next() == Some(namespace.as_str())
            && monitor.is_some_and(|monitor| test_kill_process(monitor) == Err(rustix::io::Errno::SRCH))
    });
    for entry in dead.take(LEFTOVERS) {
        // One that still has processes stays: `EBUSY`.
        let _ = fs::remove_dir(entry.path());
    }
}

/// A name for the groups of this process's sandbox, new each time.
pub(super) fn name() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let monitor = rustix::process::getpid().as_raw_nonzero();
    let namespace = namespace().unwrap_or_default();
    format!("{PREFIX}{monitor}-{namespace}-{:x}{:09}", now.tv_sec, now.tv_nsec)
}

/// The number of the namespace in which the numbers of processes are ours.
pub(super) fn namespace() -> Option<String> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    let number = link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?;
    Some(number.to_owned())
}
