//! What a sandbox is shown of its control groups, so that language runtimes find its limits: the JVM, .NET, Node,
//! Go and Python read `memory.max` or `memory.limit_in_bytes` below `/sys/fs/cgroup`.
//!
//! Only groups of the sandbox's own are shown. The JVM looks for the limit on memory only where the hierarchies
//! of [`READ`] are all mounted; those in which there is no group of the sandbox are mounted under an empty directory.

use serde::{Deserialize, Serialize};

use super::group::{Controller, Group, Version};

/// The controllers of v1 without which the JVM (17 to 25) takes nothing for a container.
const READ: [&str; 4] = ["memory", "cpu", "cpuacct", "cpuset"];

/// A hierarchy of control groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hierarchy {
    /// Its controllers, such as `cpu,cpuacct`; none for v2.
    pub(crate) controllers: String,
    /// Whether pid 1 is in a group of the sandbox's own in it.
    pub(crate) own: bool,
}

/// From the monitor's `/proc/self/cgroup`, and the groups that were made: nothing where none of them limits what
/// runtimes look for.
pub(super) fn of(own: &str, made: &[Group]) -> Vec<Hierarchy> {
    let limits = |group: &Group| {
        let looked_for = [Controller::Memory, Controller::Cpu];
        looked_for.iter().any(|one| group.controllers.contains(one))
    };
    let (first, second): (Vec<_>, Vec<_>) = made
        .iter()
        .filter(|group| limits(group))
        .partition(|group| group.version == Version::One);
    if first.is_empty() {
        let unified = second.first().map(|_| Hierarchy {
            controllers: String::new(),
            own: true,
        });
        return unified.into_iter().collect();
    }
    let hierarchies = own.lines().filter_map(|line| {
        let controllers = line.split(':').nth(1)?;
        let has = |name: &str| controllers.split(',').any(|one| one == name);
        READ.into_iter().any(has).then(|| Hierarchy {
            controllers: controllers.to_owned(),
            own: first
                .iter()
                .flat_map(|group| &group.controllers)
                .any(|one| has(one.name())),
        })
    });
    hierarchies.collect()
}
