//! What of this host may explain that a layer of the sandbox is missing, and how to change that.
//!
//! Looked up in files that are named below, never tried: that is the jail's own work. The table of
//! causes is the same for a command that could not start and for `shieling doctor`.

use std::path::Path;

use rustix::io::Errno;
use serde::Serialize;
use shieling::process::{JailLayer as Layer, JailRefusal};

use crate::config::files;

/// What was looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Host {
    /// The kernel's version, from `/proc/sys/kernel/osrelease`.
    pub(crate) kernel: String,
    /// Where this process is, if not on a host of its own.
    pub(crate) within: Option<Within>,
    /// `/proc/sys/kernel/apparmor_restrict_unprivileged_userns`.
    pub(crate) apparmor_restricts_user_namespaces: Option<bool>,
    /// `/proc/sys/kernel/unprivileged_userns_clone`.
    pub(crate) unprivileged_user_namespaces: Option<bool>,
    /// `/proc/sys/user/max_user_namespaces`.
    pub(crate) most_user_namespaces: Option<u64>,
    /// Whether a filter of system calls is around this process already, from `/proc/self/status`.
    pub(crate) filtered: bool,
    /// Whether this process is root's.
    pub(crate) root: bool,
}

/// What a process may be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Within {
    /// A container of Docker.
    Docker,
    /// A container of Podman.
    Podman,
    /// A pod of Kubernetes.
    Kubernetes,
    /// A container of something else.
    Container,
    /// gVisor, which is a kernel of its own.
    Gvisor,
    /// Version 1 of the Windows Subsystem for Linux, which has no Linux kernel.
    Wsl1,
    /// Version 2 of it, which has one.
    Wsl2,
}

/// Why a layer may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Cause {
    /// A name for programs.
    pub(crate) cause: &'static str,
    /// The fact.
    pub(crate) because: String,
    /// What changes it.
    pub(crate) fix: String,
}

impl Host {
    /// Looks at the files below `root`, which is `/` but in tests.
    pub(crate) fn look(root: &Path) -> Self {
        let text = |path: &str| {
            let read = files::read(&root.join(path), files::Links::Follow);
            read.ok().flatten().map(|text| text.trim().to_owned())
        };
        let number = |path: &str| text(path)?.parse::<u64>().ok();
        let kernel = text("proc/sys/kernel/osrelease").unwrap_or_default();
        let status = text("proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().nth(1).map(str::to_owned)
        };
        Self {
            within: within(&kernel, text),
            apparmor_restricts_user_namespaces: number("proc/sys/kernel/apparmor_restrict_unprivileged_userns")
                .map(|n| n != 0),
            unprivileged_user_namespaces: number("proc/sys/kernel/unprivileged_userns_clone").map(|n| n != 0),
            most_user_namespaces: number("proc/sys/user/max_user_namespaces"),
            filtered: status.lines().any(|line| {
                let mode = line.strip_prefix("Seccomp:").map(str::trim);
                mode.is_some_and(|mode| mode != "0")
            }),
            root: field("Uid:").as_deref() == Some("0"),
            kernel,
        }
    }

    /// Whether the kernel is older than this version; no if it does not say.
    fn is_before(&self, major: u32, minor: u32) -> bool {
        let mut numbers = self.kernel.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(a)), Some(Ok(b))) => (a, b) < (major, minor),
            _ => false,
        }
    }

    /// What may explain that a layer is missing, the likeliest first. Facts, of which any may be the
    /// cause: nothing of it was tried.
    pub(crate) fn causes(&self, refused: &JailRefusal) -> Vec<Cause> {
        // Who forbids something says so with one of these; anything else has its cause elsewhere.
        let forbidden = [
            Errno::PERM,
            Errno::ACCESS,
            Errno::NOSYS,
            Errno::INVAL,
            Errno::NOSPC,
            Errno::OPNOTSUPP,
        ];
        let by_kernel = refused.errno == 0 || forbidden.contains(&Errno::from_raw_os_error(refused.errno));
        match refused.layer {
            _ if !by_kernel => Vec::new(),
            Layer::User | Layer::Pid | Layer::Network | Layer::Other => {
                let mut causes = self.namespaces(refused);
                if refused.errno == Errno::INVAL.raw_os_error() {
                    causes.push(cause(
                        "kernel-without-namespaces",
                        "a kernel says so where it was built without one of the kinds of namespaces",
                        "start a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS, CONFIG_UTS_NS \
                         and CONFIG_CGROUPS",
                    ));
                }
                causes
            }
            Layer::Mount => self.mounts(refused),
            Layer::Landlock => self.landlock(refused),
            Layer::Seccomp | Layer::Capabilities | Layer::Probe => self.surrounded(refused).into_iter().collect(),
            Layer::Limits => vec![cause(
                "no-delegated-cgroup",
                "such a limit needs a control group, and only root, or a user to whom one was delegated, can make one",
                "start it in one of its own: `systemd-run --user --scope -p Delegate=yes shieling …`; or leave the \
                 limit out",
            )],
            Layer::Start => Vec::new(),
        }
    }

    fn namespaces(&self, refused: &JailRefusal) -> Vec<Cause> {
        let mut causes = Vec::new();
        if self.most_user_namespaces == Some(0) {
            causes.push(cause(
                "sysctl-max-user-namespaces",
                "this host allows no user namespaces (user.max_user_namespaces is 0)",
                "sudo sysctl -w user.max_user_namespaces=15000; a line in /etc/sysctl.d keeps it",
            ));
        }
        if self.unprivileged_user_namespaces == Some(false) && !self.root {
            causes.push(cause(
                "sysctl-userns-clone",
                "this host leaves user namespaces to root (kernel.unprivileged_userns_clone is 0)",
                "sudo sysctl -w kernel.unprivileged_userns_clone=1; a line in /etc/sysctl.d keeps it",
            ));
        }
        causes.extend(self.apparmor());
        causes.extend(self.surrounded(refused));
        causes
    }

    fn apparmor(&self) -> Option<Cause> {
        (self.apparmor_restricts_user_namespaces == Some(true) && !self.root).then(|| {
            cause(
                "apparmor",
                "this host's AppArmor takes all rights from user namespaces of ordinary users, as Ubuntu's does since \
                 23.10 (kernel.apparmor_restrict_unprivileged_userns is 1)",
                "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; a line in /etc/sysctl.d keeps it",
            )
        })
    }

    fn mounts(&self, refused: &JailRefusal) -> Vec<Cause> {
        let mut causes: Vec<_> = self.apparmor().into_iter().collect();
        if self.is_before(5, 12) {
            causes.push(self.old("5.12", "the calls that make mounts without names in the file system"));
        }
        causes.extend(self.surrounded(refused));
        causes
    }

    fn landlock(&self, refused: &JailRefusal) -> Vec<Cause> {
        let mut causes = Vec::new();
        if self.is_before(5, 19) {
            causes.push(self.old("5.19", "the version of Landlock that is needed"));
        } else if refused.doing.contains("without a pid and network namespace") {
            causes.push(self.old("6.12", "the version of Landlock that is needed without namespaces"));
        } else if matches!(self.within, Some(Within::Wsl2)) {
            causes.push(cause(
                "wsl-without-landlock",
                "kernels of WSL 2 have come without Landlock, or with it switched off",
                "`wsl --update` in Windows; or add `kernelCommandLine = lsm=landlock,lockdown,yama,integrity,bpf` to \
                 .wslconfig and `wsl --shutdown`",
            ));
        } else if !matches!(self.within, Some(Within::Gvisor | Within::Wsl1)) {
            causes.push(cause(
                "landlock-off",
                "this kernel is new enough, so it was built or started without Landlock, unless something around this \
                 process hides it",
                "add `landlock` to the list in the kernel's parameter `lsm=` (as it stands in \
                 /sys/kernel/security/lsm) and start anew",
            ));
        }
        causes.extend(self.surrounded(refused));
        causes
    }

    fn old(&self, needed: &str, what: &str) -> Cause {
        cause(
            "old-kernel",
            &format!("this kernel is {}, and {what} came with {needed}", self.kernel),
            &format!("start a kernel of version {needed} or newer"),
        )
    }

    /// Something around this process that refuses calls, or is no Linux.
    fn surrounded(&self, refused: &JailRefusal) -> Option<Cause> {
        // A profile of AppArmor leaves no such trace, and forbids.
        let forbidden = [Errno::PERM, Errno::ACCESS]
            .map(Errno::raw_os_error)
            .contains(&refused.errno);
        let inside = |cause: Cause| (self.filtered || forbidden).then_some(cause);
        let filtered = |cause: Cause| self.filtered.then_some(cause);
        match self.within {
            Some(Within::Gvisor) => Some(cause(
                "gvisor",
                "gVisor is a kernel of its own, with parts of Linux only; it isolates by itself",
                "run this container with `runc` instead, or rely on gVisor and use `--env local`",
            )),
            Some(Within::Wsl1) => Some(cause(
                "wsl-1",
                "WSL 1 has no Linux kernel",
                "convert it to WSL 2: `wsl --set-version NAME 2` in Windows",
            )),
            Some(Within::Kubernetes) => inside(cause(
                "kubernetes",
                "this is a pod, whose runtime refuses new namespaces and mounts of /proc unless told otherwise",
                "give the pod `hostUsers: false` and its container `securityContext: {seccompProfile: {type: \
                 Unconfined}, appArmorProfile: {type: Unconfined}, procMount: Unmasked}`",
            )),
            Some(Within::Docker) => inside(cause(
                "docker",
                "this is a container of Docker, whose default profile refuses new namespaces and mounts of /proc",
                "`docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt \
                 systempaths=unconfined …`",
            )),
            Some(Within::Podman) => inside(cause(
                "podman",
                "this is a container of Podman, whose default profile refuses mounts and masks parts of /proc",
                "`podman run --security-opt seccomp=unconfined --security-opt unmask=ALL …`",
            )),
            Some(Within::Container) => filtered(cause(
                "container",
                "this is a container, and a filter of system calls is around it (/proc/self/status says so)",
                "start the container without that filter, and with all of /proc",
            )),
            Some(Within::Wsl2) | None => filtered(cause(
                "surrounding-filter",
                "a filter of system calls is around this process already (/proc/self/status says so), and may refuse \
                 what the sandbox needs",
                "start shieling outside of it: not in another sandbox, nor in a service with `SystemCallFilter=` or \
                 `RestrictNamespaces=`",
            )),
        }
    }
}

fn cause(cause: &'static str, because: &str, fix: &str) -> Cause {
    Cause {
        cause,
        because: because.to_owned(),
        fix: fix.to_owned(),
    }
}

fn within(kernel: &str, text: impl Fn(&str) -> Option<String>) -> Option<Within> {
    let there = |path| text(path).is_some();
    let groups = text("proc/1/cgroup")
        .or_else(|| text("proc/self/cgroup"))
        .unwrap_or_default();
    let version = text("proc/version").unwrap_or_default().to_lowercase();
    let release = kernel.to_lowercase();
    if version.contains("gvisor") || release.contains("gvisor") || there("proc/sentry-meminfo") {
        Some(Within::Gvisor)
    } else if groups.contains("kubepods") || there("var/run/secrets/kubernetes.io/serviceaccount/namespace") {
        Some(Within::Kubernetes)
    } else if there("run/.containerenv") || groups.contains("libpod") {
        Some(Within::Podman)
    } else if there(".dockerenv") || groups.contains("/docker") {
        Some(Within::Docker)
    } else if groups.contains("/lxc") || groups.contains("containerd") {
        Some(Within::Container)
    } else if release.contains("microsoft") {
        // Version 1 names the version of Linux that it imitates; version 2 names itself.
        let second = release.contains("microsoft-standard") || release.contains("wsl2");
        Some(if second { Within::Wsl2 } else { Within::Wsl1 })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(layer: Layer, errno: Errno) -> JailRefusal {
        JailRefusal {
            layer,
            doing: String::new(),
            errno: errno.raw_os_error(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "tests place the files that are looked up")]
    fn host(files: &[(&str, &str)]) -> Host {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Host::look(root.path())
    }

    const USER: (&str, &str) = ("proc/self/status", "Name:\tx\nUid:\t1000\t1000\nSeccomp:\t0\n");
    const FILTERED: (&str, &str) = ("proc/self/status", "Uid:\t0\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n");

    #[test]
    fn each_host_has_its_cause_and_its_neighbour_has_not() {
        let kernel = |version| ("proc/sys/kernel/osrelease", version);
        let apparmor = |value| ("proc/sys/kernel/apparmor_restrict_unprivileged_userns", value);
        let clone = |value| ("proc/sys/kernel/unprivileged_userns_clone", value);
        let most = |value| ("proc/sys/user/max_user_namespaces", value);
        for (files, layer, errno, expected) in [
            (
                &[USER, apparmor("1\n")][..],
                Layer::User,
                Errno::PERM,
                &["apparmor"][..],
            ),
            (&[USER, apparmor("1")], Layer::Mount, Errno::ACCESS, &["apparmor"]),
            (&[USER, apparmor("0")], Layer::User, Errno::PERM, &[]),
            (&[USER, clone("0")], Layer::User, Errno::PERM, &["sysctl-userns-clone"]),
            (
                &[("proc/self/status", "Uid:\t0\t0\n"), clone("0")],
                Layer::User,
                Errno::PERM,
                &[],
            ),
            (
                &[USER, most("0")],
                Layer::User,
                Errno::NOSPC,
                &["sysctl-max-user-namespaces"],
            ),
            (&[USER, most("9")], Layer::User, Errno::NOSPC, &[]),
            (&[USER], Layer::User, Errno::INVAL, &["kernel-without-namespaces"]),
            (&[FILTERED], Layer::User, Errno::PERM, &["surrounding-filter"]),
            (&[FILTERED, (".dockerenv", "")], Layer::User, Errno::PERM, &["docker"]),
            (&[USER, (".dockerenv", "")], Layer::Mount, Errno::ACCESS, &["docker"]),
            (&[USER, (".dockerenv", "")], Layer::Mount, Errno::XDEV, &[]),
            (
                &[FILTERED, ("run/.containerenv", "")],
                Layer::Mount,
                Errno::PERM,
                &["podman"],
            ),
            (
                &[FILTERED, ("proc/1/cgroup", "0::/kubepods.slice/x")],
                Layer::User,
                Errno::PERM,
                &["kubernetes"],
            ),
            (
                &[FILTERED, ("proc/1/cgroup", "0::/lxc/x")],
                Layer::User,
                Errno::PERM,
                &["container"],
            ),
            (
                &[("proc/version", "Linux version 4.4.0 (gVisor)")],
                Layer::Landlock,
                Errno::NOSYS,
                &["gvisor"],
            ),
            (
                &[USER, kernel("4.4.0-19041-Microsoft")],
                Layer::User,
                Errno::INVAL,
                &["wsl-1", "kernel-without-namespaces"],
            ),
            (
                &[USER, kernel("6.6.87.2-microsoft-standard-WSL2")],
                Layer::Landlock,
                Errno::OPNOTSUPP,
                &["wsl-without-landlock"],
            ),
            (
                &[USER, kernel("5.10.0-8-amd64")],
                Layer::Landlock,
                Errno::NOSYS,
                &["old-kernel"],
            ),
            (
                &[USER, kernel("6.1.0-8-amd64")],
                Layer::Landlock,
                Errno::NOSYS,
                &["landlock-off"],
            ),
            (
                &[USER, kernel("5.4.0-8-amd64")],
                Layer::Mount,
                Errno::NOSYS,
                &["old-kernel"],
            ),
            (&[USER], Layer::Limits, Errno::ACCESS, &["no-delegated-cgroup"]),
            (&[USER], Layer::Start, Errno::PERM, &[]),
        ] {
            let causes = host(files).causes(&refused(layer, errno));
            let names: Vec<_> = causes.iter().map(|cause| cause.cause).collect();
            assert_eq!(names, expected, "{files:?} {layer:?} {errno:?}");
        }
    }
}
