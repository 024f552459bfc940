//! Compares what a container was asked to be with what it is: as its files tell from inside, and as the engine's
//! inspection tells where a runtime shows nothing inside.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use shieling::outcome::Confinement;

use crate::error::ContainerError;
use crate::isolation::Mount;
use crate::options::{Options, Reach};

/// The files that the agent shows, which say what is in force.
pub(crate) const FILES: [&str; 15] = [
    STATUS,
    PROCESSES,
    MEMORY,
    MOUNTS,
    DEVICES,
    USERS,
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory.swap.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
    "/sys/fs/cgroup/pids.max",
    "/sys/fs/cgroup/pids/pids.max",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
];
const STATUS: &str = "/proc/self/status";
const MOUNTS: &str = "/proc/self/mountinfo";
const DEVICES: &str = "/proc/self/net/dev";
const USERS: &str = "/proc/self/uid_map";
const PROCESSES: &str = "/proc/self/ns/pid";
const MEMORY: &str = "/proc/self/ns/ipc";
/// What the kernel calls the namespaces that it starts with.
const FIRST: [&str; 2] = ["pid:[4026531836]", "ipc:[4026531839]"];

/// What the files inside say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inside(pub(crate) BTreeMap<String, String>);

impl Inside {
    fn file(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.file(path)?.trim().parse().ok()
    }

    fn status(&self, name: &str) -> Option<&str> {
        let mut lines = self.file(STATUS)?.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    }

    /// The user and the group of the agent.
    pub(crate) fn user(&self) -> Option<(u32, u32)> {
        let first = |name| self.status(name)?.split_whitespace().next()?.parse().ok();
        Some((first("Uid")?, first("Gid")?))
    }

    /// Whether a set of capabilities is empty; nothing if that is not told.
    fn has_none(&self, set: &str) -> Option<bool> {
        Some(u64::from_str_radix(self.status(set)?, 16).ok()? == 0)
    }

    /// Mounts: where, with which options of the mount.
    fn mounts(&self) -> impl Iterator<Item = (String, &str)> {
        self.file(MOUNTS).unwrap_or_default().lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(4);
            Some((unescaped(fields.next()?), fields.next()?))
        })
    }

    /// Whether what is mounted there last cannot be written.
    fn is_readonly(&self, target: &Path) -> Option<bool> {
        let target = target.to_str()?;
        let last = self.mounts().filter(|(at, _)| at == target).last()?;
        Some(last.1.split(',').any(|option| option == "ro"))
    }

    /// A limit on memory in force, that of swap with it: the lower file wins, unlimited is none.
    fn memory(&self) -> Option<u64> {
        match self.number("/sys/fs/cgroup/memory.max") {
            // Without a file there is no swap that would be counted.
            Some(most) => match self.file("/sys/fs/cgroup/memory.swap.max") {
                Some(swap) => Some(most + swap.trim().parse::<u64>().ok()?),
                None => Some(most),
            },
            None => {
                let most = self.number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
                let with_swap = self.number("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes");
                // Without a limit it is as large as numbers are there.
                with_swap.or(most).filter(|most| *most < 1 << 60)
            }
        }
    }

    fn pids(&self) -> Option<u64> {
        let v2 = self.number("/sys/fs/cgroup/pids.max");
        v2.or_else(|| self.number("/sys/fs/cgroup/pids/pids.max"))
    }

    fn cpu_thousandths(&self) -> Option<u64> {
        let of = |quota: u64, period: u64| (quota * 1000).checked_div(period);
        if let Some(most) = self.file("/sys/fs/cgroup/cpu.max") {
            let (quota, period) = most.trim().split_once(' ')?;
            return of(quota.parse().ok()?, period.parse().ok()?);
        }
        of(
            self.number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")?,
            self.number("/sys/fs/cgroup/cpu/cpu.cfs_period_us")?,
        )
    }

    /// The devices of its network besides the loopback; nothing if that cannot be seen.
    fn devices(&self) -> Option<Vec<&str>> {
        let lines = self.file(DEVICES)?.lines();
        let names = lines.filter_map(|line| Some(line.split_once(':')?.0.trim()));
        Some(names.filter(|device| *device != "lo").collect())
    }

    /// Whether the container has control groups to look at.
    fn shows_groups(&self) -> bool {
        self.0.keys().any(|path| path.starts_with("/sys/fs/cgroup/"))
    }
}

/// What of the network is reached, as the engine tells and as the devices inside are: `none`, `host`, or which one.
pub(crate) fn network(inside: &Inside, inspected: &Value) -> String {
    let mode = inspected["HostConfig"]["NetworkMode"].as_str().unwrap_or_default();
    match (mode, inside.devices()) {
        ("none", Some(others)) if others.is_empty() => "none".to_owned(),
        ("none", Some(others)) => format!("that of {}", others.join(", ")),
        ("none" | "", _) => "not known".to_owned(),
        ("host", _) => "host".to_owned(),
        (mode, _) => format!("`{mode}` of the engine's"),
    }
}

/// Whether what an engine tells of a namespace is that the container has its own.
fn is_own(mode: &str, told: &str) -> bool {
    match mode {
        // With nothing said, Docker's is private, and shared memory was the host's before there was a word for it.
        "PidMode" => matches!(told, "" | "private"),
        _ => matches!(told, "private" | "shareable" | "none"),
    }
}

/// A mount in words.
fn mount_state(readonly: Option<bool>) -> String {
    match readonly {
        Some(true) => "one that cannot be written",
        Some(false) => "one that can be written",
        None => "no mount that can be seen",
    }
    .to_owned()
}

/// A path as `mountinfo` writes it, with blanks as octal numbers.
fn unescaped(path: &str) -> String {
    ["\\040 ", "\\011\t", "\\012\n", "\\134\\"]
        .iter()
        .fold(path.to_owned(), |path, pair| {
            let (written, meant) = pair.split_at(4);
            path.replace(written, meant)
        })
}

/// What is to hold.
pub(crate) struct Asked<'a> {
    pub(crate) options: &'a Options,
    pub(crate) mounts: &'a [Mount],
    pub(crate) user: Option<&'a str>,
    pub(crate) readonly: bool,
}

/// The layers in force, by their names.
///
/// # Errors
/// [`ContainerError::NotApplied`]: the first that was asked for and is not in force, or cannot be seen to be.
pub(crate) fn compare(asked: &Asked<'_>, inside: &Inside, inspected: &Value) -> Result<Confinement, ContainerError> {
    let options = asked.options;
    let host = &inspected["HostConfig"];
    let must = |what: &'static str, asked: &str, holds: bool, found: String| {
        if holds {
            return Ok(());
        }
        Err(ContainerError::NotApplied {
            what,
            asked: asked.to_owned(),
            found,
        })
    };
    let shown = |value: Option<&str>| value.unwrap_or("nothing that can be seen").to_owned();

    // Engines can be configured to share these where nobody asks for it, and Podman tells of one that it shares that it
    // is the container's own.
    let mut enforced = Vec::new();
    for (name, what, mode, link) in [
        ("pid", "processes of its own", "PidMode", PROCESSES),
        ("ipc", "shared memory of its own", "IpcMode", MEMORY),
    ] {
        let told = host[mode].as_str();
        let is_first = inside.file(link).map(|name| FIRST.contains(&name));
        // Another runtime may have a kernel of its own, whose first namespace that is.
        let is_seen = options.runtime.is_some() || is_first == Some(false);
        let own = is_seen && told.is_some_and(|told| is_own(mode, told));
        let found = if is_first == Some(true) { Some("host") } else { told };
        must(what, "private", own || !options.is_own(), shown(found))?;
        if own {
            enforced.push(name.to_owned());
        }
    }
    // No engine makes a container without; seen is that it has a root of its own.
    if inside.mounts().any(|(at, _)| at == "/") {
        enforced.push("mount".to_owned());
    }

    let user = inside.user();
    if let Some(asked) = asked.user {
        let found = user.map(|(uid, gid)| format!("{uid}:{gid}"));
        must(
            "the user",
            asked,
            found.as_deref() == Some(asked),
            shown(found.as_deref()),
        )?;
    }
    if user.is_some_and(|(uid, _)| uid != 0) {
        enforced.push("user".to_owned());
    }
    let users = inside
        .file(USERS)
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>();
    if !users.is_empty() && users[..] != ["0", "0", "4294967295"] {
        enforced.push("user.namespace".to_owned());
    }
    if options.is_hardened() {
        for set in ["CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd"] {
            let holds = inside.has_none(set) == Some(true) || !options.capabilities.is_empty();
            must("the loss of capabilities", "none", holds, shown(inside.status(set)))?;
        }
        let new = inside.status("NoNewPrivs");
        must("no new privileges", "1", new == Some("1"), shown(new))?;
        let root = inside.is_readonly(Path::new("/"));
        must("the read-only root", "ro", root == Some(true), mount_state(root))?;
        let seccomp = inside.status("Seccomp");
        must("the filter of system calls", "2", seccomp == Some("2"), shown(seccomp))?;
    }
    for (name, holds) in [
        ("capabilities", inside.has_none("CapBnd") == Some(true)),
        ("no_new_privileges", inside.status("NoNewPrivs") == Some("1")),
        ("root.readonly", inside.is_readonly(Path::new("/")) == Some(true)),
        ("seccomp", inside.status("Seccomp") == Some("2")),
    ] {
        if holds {
            enforced.push(name.to_owned());
        }
    }

    let others = inside.devices();
    if options.network == Reach::None && options.is_own() {
        let found = others.as_ref().map(|others| others.join(", "));
        let closed = others.as_ref().is_some_and(Vec::is_empty);
        must("the closed network", "none", closed, shown(found.as_deref()))?;
    }
    if network(inside, inspected) == "none" {
        enforced.push("network".to_owned());
    }

    for mount in asked.mounts {
        if !(mount.readonly || asked.readonly) {
            continue;
        }
        let target = mount.target.display().to_string();
        let found = inside.is_readonly(&mount.target);
        must("a read-only mount", &target, found == Some(true), mount_state(found))?;
        let below = inside.mounts().find(|(at, options)| {
            at.strip_prefix(&target).is_some_and(|rest| rest.starts_with('/'))
                && !options.split(',').any(|one| one == "ro")
        });
        let found = below.as_ref().map(|(at, _)| format!("`{at}` can be written"));
        must("a read-only mount", &target, below.is_none(), shown(found.as_deref()))?;
    }
    let workspace = asked.mounts.first().filter(|_| options.mounted_workspace().is_some());
    if workspace.is_some_and(|workspace| workspace.readonly || asked.readonly) {
        enforced.push("workspace.readonly".to_owned());
    }

    // A runtime with a kernel of its own shows no groups inside; the engine has them outside.
    let elsewhere = options.runtime.is_some() && !inside.shows_groups();
    let limit = |what, asked: Option<u64>, found: Option<u64>, inspected: &Value, exact: bool| {
        let Some(asked) = asked.filter(|_| options.is_own()) else {
            return Ok::<bool, ContainerError>(false);
        };
        let found = if elsewhere { inspected.as_u64() } else { found };
        // Memory is limited in pages.
        let holds = found.is_some_and(|found| found == asked || !exact && found <= asked && found + 65_536 > asked);
        must(
            what,
            &asked.to_string(),
            holds,
            shown(found.map(|n| n.to_string()).as_deref()),
        )?;
        Ok(true)
    };
    let memory = limit(
        "the limit on memory",
        options.memory_limit(),
        inside.memory(),
        &host["Memory"],
        false,
    )?;
    let pids = limit(
        "the limit on processes",
        options.pids_limit(),
        inside.pids(),
        &host["PidsLimit"],
        true,
    )?;
    let cpus = options.cpu_thousandths.map(u64::from);
    let found = inside.cpu_thousandths();
    let by_engine = Value::from(host["NanoCpus"].as_u64().map(|nano| nano / 1_000_000));
    let cpu = limit("the limit on processors", cpus, found, &by_engine, true)?;
    for (name, holds) in [("cgroup.memory", memory), ("cgroup.pids", pids), ("cgroup.cpu", cpu)] {
        if holds {
            enforced.push(name.to_owned());
        }
    }
    Ok(Confinement {
        enforced,
        missing: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it looks inside of a hardened container, with the last lines in place of those of the same file.
    fn inside(changes: &[(&str, &str)]) -> Inside {
        let mut files: BTreeMap<String, String> = [
            (
                STATUS,
                "Name:\tagent\nUid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nCapInh:\t0\nCapPrm:\t0\n\
                 CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0\nNoNewPrivs:\t1\nSeccomp:\t2\n",
            ),
            (
                MOUNTS,
                "724 81 0:146 / / ro,relatime master:2 - overlay overlay rw\n\
                 863 724 254:0 /a\\040b /workspace ro,relatime - ext4 /dev/vda rw\n",
            ),
            (DEVICES, "Inter-|\n face |\n    lo:  0 0\n"),
            (USERS, "         0          0 4294967295\n"),
            (PROCESSES, "pid:[4026532255]"),
            (MEMORY, "ipc:[4026532254]"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
            ("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "536870912\n"),
            ("/sys/fs/cgroup/pids/pids.max", "256\n"),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into();
        for (path, text) in changes {
            files.insert((*path).to_owned(), (*text).to_owned());
        }
        Inside(files)
    }

    fn compared(inside: &Inside) -> Result<Confinement, ContainerError> {
        let mut options = Options::image("x");
        options.workspace = Some("/a b".into());
        let mounts = [Mount {
            source: "/a b".into(),
            target: "/workspace".into(),
            readonly: true,
        }];
        let asked = Asked {
            options: &options,
            mounts: &mounts,
            user: Some("65534:65534"),
            readonly: false,
        };
        compare(&asked, inside, &told("private"))
    }

    /// What the engine tells of a container without a network.
    fn told(mode: &str) -> Value {
        serde_json::json!({ "HostConfig": { "PidMode": mode, "IpcMode": mode, "NetworkMode": "none" } })
    }

    #[test]
    fn of_a_container_that_shares_the_hosts_namespaces_nothing_else_is_told() {
        let options = Options::attached("x");
        let asked = Asked {
            options: &options,
            mounts: &[],
            user: None,
            readonly: false,
        };
        let shares = serde_json::json!({
            "HostConfig": { "PidMode": "host", "IpcMode": "host", "NetworkMode": "host" }
        });
        let devices = inside(&[(DEVICES, "lo: 0\neth0: 0\n")]);
        let found = compare(&asked, &devices, &shares).unwrap().enforced;
        for layer in ["pid", "ipc", "network"] {
            assert!(!found.iter().any(|one| one == layer), "{found:?}");
        }
        assert_eq!(network(&devices, &shares), "host");
        // Whatever the engine says of it.
        let first = inside(&[(PROCESSES, "pid:[4026531836]"), (MEMORY, "ipc:[4026531839]")]);
        let found = compare(&asked, &first, &told("private")).unwrap().enforced;
        assert!(!found.iter().any(|one| one == "pid" || one == "ipc"), "{found:?}");
        let found = compare(&asked, &inside(&[]), &told("private")).unwrap().enforced;
        for layer in ["pid", "ipc", "network"] {
            assert!(found.iter().any(|one| one == layer), "{found:?}");
        }
        assert_eq!(network(&devices, &told("private")), "that of eth0");
        assert_eq!(network(&devices, &Value::Null), "not known");
        // What nobody told is not in force, and for one of ours that is an error.
        let ours = Options::image("x");
        let asked = Asked {
            options: &ours,
            ..asked
        };
        let error = compare(&asked, &inside(&[]), &shares).unwrap_err().to_string();
        assert!(
            error.contains("processes of its own: asked for private, in force is host"),
            "{error}"
        );
    }

    #[test]
    fn a_hardened_container_has_all_of_its_layers() {
        let found = compared(&inside(&[])).unwrap();
        let layers = [
            "pid",
            "ipc",
            "mount",
            "user",
            "capabilities",
            "no_new_privileges",
            "root.readonly",
            "seccomp",
            "network",
            "workspace.readonly",
            "cgroup.memory",
            "cgroup.pids",
        ];
        assert_eq!(found.enforced, layers);
    }

    #[test]
    fn whatever_is_not_in_force_is_named() {
        let status = |from: &str, to: &str| inside(&[]).0[STATUS].replace(from, to);
        let second = "\n870 863 8:1 / /workspace/data rw,relatime - ext4 /dev/sdb rw\n";
        let below = format!("{}{second}", inside(&[]).0[MOUNTS].trim_end());
        let cases: [(&str, String, &str); 10] = [
            (STATUS, status("Uid:\t65534", "Uid:\t0"), "the user"),
            (
                STATUS,
                status("CapBnd:\t0000", "CapBnd:\ta804"),
                "the loss of capabilities",
            ),
            (STATUS, status("NoNewPrivs:\t1", "NoNewPrivs:\t0"), "no new privileges"),
            (
                STATUS,
                status("Seccomp:\t2", "Seccomp:\t0"),
                "the filter of system calls",
            ),
            (
                MOUNTS,
                inside(&[]).0[MOUNTS].replace("/ / ro", "/ / rw"),
                "the read-only root",
            ),
            (
                MOUNTS,
                inside(&[]).0[MOUNTS].replace("workspace ro", "workspace rw"),
                "a read-only mount",
            ),
            (MOUNTS, below, "a read-only mount"),
            (DEVICES, "lo: 0\neth0: 0\n".to_owned(), "the closed network"),
            (
                "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
                "9223372036854771712".to_owned(),
                "the limit on memory",
            ),
            (
                "/sys/fs/cgroup/pids/pids.max",
                "max".to_owned(),
                "the limit on processes",
            ),
        ];
        for (path, text, expected) in cases {
            match compared(&inside(&[(path, &text)])) {
                Err(ContainerError::NotApplied { what, .. }) => assert_eq!(what, expected, "{text}"),
                other => panic!("{expected}: {other:?}"),
            }
        }
    }

    #[test]
    fn limits_of_the_second_version_of_control_groups_are_read() {
        let mut files = inside(&[
            ("/sys/fs/cgroup/memory.max", "536870912\n"),
            ("/sys/fs/cgroup/memory.swap.max", "0\n"),
            ("/sys/fs/cgroup/pids.max", "256\n"),
            ("/sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ]);
        files
            .0
            .retain(|path, _| !path.contains("cgroup/memory/") && !path.contains("cgroup/pids/"));
        assert!(compared(&files).is_ok());
        assert_eq!(files.cpu_thousandths(), Some(1500));
        files
            .0
            .insert("/sys/fs/cgroup/memory.max".to_owned(), "max\n".to_owned());
        assert!(compared(&files).is_err());
    }
}
