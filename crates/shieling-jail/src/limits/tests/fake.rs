//! Where groups are looked for and what is written to them, against trees of plain files. What a
//! kernel would refuse is not seen here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use shieling_jail::message::{Layer, Refusal};
use shieling_jail::plan::{Isolation, Limits};

use super::kills;
use crate::limits::groups::Host;
use crate::limits::{Enforcement, prepare_on};

const NAME: &str = "shieling-1-a";
const MIB: u64 = 1 << 20;
const V1: &str = "4:memory:/\n8:pids:/\n1:cpu,cpuacct:/\n0::/\n";
const V1_MOUNTS: &str = "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
    35 31 0:32 / /cg/memory rw shared:9 - cgroup cgroup rw,memory\n\
    40 31 0:37 / /cg/pids rw - cgroup cgroup rw,pids\n\
    41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";
const V2_MOUNTS: &str = "41 31 0:38 / /cg rw - cgroup2 cgroup2 rw,nsdelegate\n";

fn limits() -> Limits {
    Limits {
        memory: Some(64 * MIB),
        pids: Some(20),
        cpu_thousandths: Some(1500),
        open_files: None,
    }
}

/// A host in a directory of its own, which goes when the test does.
struct Tree(Host);

impl Tree {
    fn new(own: &str, mounts: &str, user: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("shieling-limits-{}-{number}", std::process::id()));
        let tree = Self(Host { root, make });
        tree.file("proc/self/cgroup", own);
        tree.file("proc/self/mountinfo", mounts);
        tree.file("proc/self/uid_map", user);
        tree.file("proc/swaps", "Filename Type Size Used Priority\n");
        tree
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.root.join(path);
        fs::create_dir_all(path.parent().expect("it is below the root")).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A group of v2 that gives its children these controllers.
    fn group(&self, path: &str, gives: &str) {
        self.file(&format!("{path}/cgroup.procs"), "");
        self.file(&format!("{path}/cgroup.subtree_control"), gives);
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.0.root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn prepare(&self, limits: &Limits, isolation: Isolation) -> Result<Enforcement, Refusal> {
        prepare_on(&self.0, limits, isolation, NAME)
    }

    fn full(&self) -> Result<Enforcement, Refusal> {
        self.prepare(&limits(), Isolation::Full)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.root);
    }
}

/// As the kernel does, with the files of both versions.
fn make(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    for file in [
        "cgroup.procs",
        "tasks",
        "memory.limit_in_bytes",
        "memory.memsw.limit_in_bytes",
        "memory.max",
        "memory.swap.max",
        "memory.oom.group",
        "pids.max",
        "cpu.cfs_quota_us",
        "cpu.cfs_period_us",
        "cpu.max",
    ] {
        fs::write(path.join(file), "")?;
    }
    fs::write(
        path.join("memory.oom_control"),
        "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
    )?;
    fs::write(
        path.join("memory.events"),
        "low 0\noom 9\noom_kill 5\noom_group_kill 7\n",
    )
}

/// A `uid_map` in which whoever runs the tests is this user outside.
fn map(outside: u32) -> String {
    format!("{} {outside} 1\n", rustix::process::geteuid().as_raw())
}

const IN_GROUPS: [&str; 4] = ["cgroup.memory", "cgroup.pids", "cgroup.cpu", "rlimit.core"];

#[test]
fn v1_gets_one_group_in_each_hierarchy_and_tells_what_it_reads_back() {
    let tree = Tree::new(V1, V1_MOUNTS, &map(0));
    for hierarchy in ["memory", "pids", "cpu"] {
        fs::create_dir_all(tree.0.root.join("cg").join(hierarchy)).unwrap();
    }
    let enforcement = tree.full().unwrap();
    assert_eq!(enforcement.held().effective, limits());
    assert_eq!(enforcement.enforced(), IN_GROUPS);
    assert!(enforcement.missing().is_empty());
    assert_eq!(enforcement.entrances().count(), 3);
    assert_eq!(kills(&enforcement).count(), 3);
    let read = |file: &str| tree.text(&format!("cg/{}/{NAME}/{file}", file.split('.').next().unwrap()));
    assert_eq!(read("memory.limit_in_bytes"), "67108864");
    assert_eq!(read("memory.memsw.limit_in_bytes"), "67108864");
    assert_eq!(read("pids.max"), "23", "20, pid 1, a supervisor and the next one");
    assert_eq!(
        (read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")),
        ("150000".into(), "100000".into())
    );
    assert_eq!(enforcement.groups.made.len(), 3);
    enforcement
        .groups
        .made
        .iter()
        .try_for_each(|group| group.attach(77))
        .unwrap();
    assert_eq!(
        (read("memory.limit_in_bytes"), read("pids.max")),
        ("67108864".into(), "23".into())
    );
    for hierarchy in ["memory", "pids", "cpu"] {
        assert_eq!(tree.text(&format!("cg/{hierarchy}/{NAME}/cgroup.procs")), "77");
    }
}

#[test]
fn in_a_container_whose_part_of_the_tree_is_mounted_the_group_is_made_there() {
    let mounts = "35 31 0:32 /docker/ab /cg/memory rw - cgroup cgroup rw,memory\n";
    let tree = Tree::new("4:memory:/docker/ab/sub\n", mounts, &map(0));
    fs::create_dir_all(tree.0.root.join("cg/memory/sub")).unwrap();
    let only = Limits {
        memory: Some(MIB),
        ..Limits::default()
    };
    let held = tree.prepare(&only, Isolation::Landlock).unwrap();
    assert_eq!(held.enforced(), ["cgroup.memory", "rlimit.core"]);
    assert_eq!(
        tree.text(&format!("cg/memory/sub/{NAME}/memory.limit_in_bytes")),
        "1048576"
    );

    // The tree of another container: ours is not in it, and climbing out of it is no way either.
    for own in ["4:memory:/docker/cd\n", "4:memory:/docker/ab/../cd\n"] {
        let tree = Tree::new(own, mounts, &map(0));
        fs::create_dir_all(tree.0.root.join("cg/cd")).unwrap();
        let refused = tree.prepare(&only, Isolation::Landlock).unwrap_err();
        assert!(refused.doing.contains("is mounted nowhere"), "{refused:?}");
    }
}

#[test]
fn hierarchies_that_share_a_mount_share_a_group() {
    let mounts = "35 31 0:32 / /cg/all rw - cgroup cgroup rw,memory,pids,cpu\n";
    let tree = Tree::new("4:memory,pids,cpu:/\n", mounts, &map(0));
    fs::create_dir_all(tree.0.root.join("cg/all")).unwrap();
    let enforcement = tree.full().unwrap();
    assert_eq!(enforcement.enforced(), IN_GROUPS);
    assert_eq!(enforcement.groups.made.len(), 1);
}

#[test]
fn on_a_hybrid_host_each_controller_is_used_where_it_is() {
    let mounts = "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n\
        41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";
    let tree = Tree::new("4:memory:/\n0::/user\n", mounts, &map(0));
    fs::create_dir_all(tree.0.root.join("cg/memory")).unwrap();
    tree.group("cg/unified/user", "pids cpu");
    let enforcement = tree.full().unwrap();
    assert_eq!(enforcement.enforced(), IN_GROUPS);
    assert_eq!(
        tree.text(&format!("cg/memory/{NAME}/memory.limit_in_bytes")),
        "67108864"
    );
    assert_eq!(tree.text(&format!("cg/unified/user/{NAME}/pids.max")), "23");
}

#[test]
fn v2_puts_the_group_below_its_own_where_that_gives_controllers() {
    let tree = Tree::new("0::/mine\n", V2_MOUNTS, &map(0));
    tree.group("cg", "");
    tree.group("cg/mine", "cpu memory pids");
    let enforcement = tree.full().unwrap();
    assert_eq!(
        (enforcement.held().effective, enforcement.enforced()),
        (limits(), IN_GROUPS.map(str::to_owned).to_vec())
    );
    assert_eq!(kills(&enforcement).count(), 5);
    assert_eq!(enforcement.entrances().count(), 0, "it is moved by another process");
    let read = |file: &str| tree.text(&format!("cg/mine/{NAME}/{file}"));
    let expected = [
        ("memory.max", "67108864"),
        ("memory.swap.max", "0"),
        ("memory.oom.group", "0"),
        ("pids.max", "23"),
        ("cpu.max", "150000 100000"),
    ];
    for (file, text) in expected {
        assert_eq!(read(file), text, "{file}");
    }
}

#[test]
fn v2_puts_it_beside_a_group_whose_own_processes_forbid_children_with_controllers() {
    let tree = Tree::new("0::/app.slice/run.scope\n", V2_MOUNTS, &map(1000));
    tree.group("cg/app.slice", "cpu memory pids");
    // Plain files take what is written, and do not add to what they read: it stays without.
    tree.group("cg/app.slice/run.scope", "");
    assert_eq!(tree.full().unwrap().enforced(), IN_GROUPS);
    assert_eq!(tree.text(&format!("cg/app.slice/{NAME}/pids.max")), "23");
    assert!(!tree.0.root.join("cg/app.slice/run.scope").join(NAME).exists());
}

#[test]
fn v2_that_delegates_some_controllers_is_used_for_those() {
    let tree = Tree::new("0::/a/b\n", V2_MOUNTS, &map(1000));
    // With room before it for the `+memory` that a kernel would not take.
    tree.group("cg/a", "        pids");
    tree.group("cg/a/b", "");
    let two = Limits {
        cpu_thousandths: None,
        ..limits()
    };
    let enforcement = tree.prepare(&two, Isolation::Full).unwrap();
    assert_eq!(enforcement.enforced(), ["watch.memory", "cgroup.pids", "rlimit.core"]);
    let refused = tree.prepare(&limits(), Isolation::Full).unwrap_err();
    assert!(refused.doing.starts_with("to limit processor time: "), "{refused:?}");
}

#[test]
fn without_groups_an_ordinary_user_gets_a_resource_limit_and_a_watch() {
    let tree = Tree::new("", "", &map(1000));
    let two = Limits {
        cpu_thousandths: None,
        open_files: Some(256),
        ..limits()
    };
    let enforcement = tree.prepare(&two, Isolation::Full).unwrap();
    assert_eq!(
        enforcement.enforced(),
        ["watch.memory", "rlimit.pids", "rlimit.open_files", "rlimit.core"]
    );
    assert_eq!(enforcement.held().effective, two);
    assert_eq!(enforcement.entrances().count(), 0, "there is nothing to enter");
    assert_eq!(kills(&enforcement).count(), 0);
}

#[test]
fn what_nothing_can_hold_is_refused_with_the_reason() {
    let limit = |memory, pids, cpu_thousandths, open_files| Limits {
        memory,
        pids,
        cpu_thousandths,
        open_files,
    };
    let (user, root, unknown) = (map(1000), map(0), String::new());
    let cases = [
        (
            limit(None, Some(9), None, None),
            Isolation::Full,
            &root,
            "RLIMIT_NPROC does not bind root",
        ),
        (
            limit(None, Some(9), None, None),
            Isolation::Full,
            &unknown,
            "RLIMIT_NPROC does not bind root",
        ),
        (
            limit(None, Some(9), None, None),
            Isolation::Landlock,
            &user,
            "every process of the user",
        ),
        (
            limit(Some(MIB), None, None, None),
            Isolation::Landlock,
            &user,
            "pid namespace",
        ),
        (
            limit(None, None, Some(1), None),
            Isolation::Full,
            &user,
            "nothing else can limit it",
        ),
        (limit(None, None, None, Some(63)), Isolation::Full, &user, "need 64"),
    ];
    for (limits, isolation, map, because) in cases {
        let refused = Tree::new("0::/\n", "", map).prepare(&limits, isolation).unwrap_err();
        assert_eq!(refused.layer, Layer::Limits);
        assert!(refused.doing.contains(because), "{refused:?}");
    }
}

#[test]
fn a_refusal_names_the_directory_that_could_not_be_made() {
    let mut tree = Tree::new(V1, V1_MOUNTS, &map(0));
    tree.0.make = |_| Err(io::Error::from_raw_os_error(libc::EROFS));
    let refused = tree.full().unwrap_err();
    assert_eq!(refused.errno, libc::EROFS);
    assert!(
        refused
            .doing
            .contains(&format!("/cg/pids/{NAME}`: Read-only file system")),
        "{refused:?}"
    );
}

#[test]
fn a_directory_without_control_files_is_no_group_and_nothing_is_left_in_it() {
    let mut tree = Tree::new(V1, V1_MOUNTS, &map(0));
    tree.0.make = |path| fs::create_dir_all(path);
    let refused = tree.full().unwrap_err();
    assert!(
        refused.doing.contains("to limit memory: to write `67108864` to") && refused.errno == libc::ENOENT,
        "{refused:?}"
    );
    for hierarchy in ["memory", "pids", "cpu"] {
        assert_eq!(fs::read_dir(tree.0.root.join("cg").join(hierarchy)).unwrap().count(), 0);
    }
}

#[test]
fn a_kernel_that_takes_another_limit_than_asked_is_not_believed() {
    let mut tree = Tree::new(V1, V1_MOUNTS, &map(0));
    tree.0.make = |path| {
        fs::create_dir_all(path.parent().unwrap())?;
        make(path)?;
        // What is written covers the first two digits.
        fs::write(path.join("pids.max"), "99999")
    };
    let refused = tree.full().unwrap_err();
    assert!(
        refused.doing.contains("pids.max` reads `23999` after it was written"),
        "{refused:?}"
    );
}

#[test]
fn swap_that_adds_to_the_memory_is_told() {
    let mounts = "35 31 0:32 / /cg rw - cgroup cgroup rw,memory\n";
    let only = Limits {
        memory: Some(MIB),
        ..Limits::default()
    };
    for (swaps, missing) in [
        ("head\n/dev/sda2 partition 1 0 -2\n", vec!["cgroup.memory.swap"]),
        ("head\n", vec![]),
    ] {
        let mut tree = Tree::new("4:memory:/\n", mounts, &map(0));
        tree.0.make = |path: &Path| {
            fs::create_dir_all(path.parent().unwrap())?;
            make(path)?;
            fs::remove_file(path.join("memory.memsw.limit_in_bytes"))
        };
        tree.file("proc/swaps", swaps);
        let enforcement = tree.prepare(&only, Isolation::Full).unwrap();
        assert_eq!(enforcement.missing(), missing);
        assert_eq!(enforcement.held().effective, only);
    }
}

#[test]
fn a_small_share_of_a_processor_gets_a_period_that_the_kernel_takes() {
    let tree = Tree::new(V1, V1_MOUNTS, &map(0));
    fs::create_dir_all(tree.0.root.join("cg/cpu")).unwrap();
    let one = Limits {
        cpu_thousandths: Some(1),
        ..Limits::default()
    };
    assert_eq!(tree.prepare(&one, Isolation::Full).unwrap().held().effective, one);
    let read = |file: &str| tree.text(&PathBuf::from("cg/cpu").join(NAME).join(file).to_string_lossy());
    assert_eq!(
        (read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")),
        ("1000".into(), "1000000".into())
    );
}
