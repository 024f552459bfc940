//! Which calls must be refused, by the names that the helper program prints.

use std::collections::BTreeSet;

pub(super) const FILES: &[&str] = &[
    "mount",
    "mount_bind",
    "umount2",
    "pivot_root",
    "chroot",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "statmount",
    "listmount",
    "open_tree_attr",
    "open_by_handle_at",
];

pub(super) const KERNEL: &[&str] = &[
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "fanotify_init",
    "keyctl",
    "add_key",
    "request_key",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "clock_settime",
    "clock_adjtime",
    "settimeofday",
    "adjtimex",
    "sethostname",
    "setdomainname",
    "swapon",
    "swapoff",
    "syslog",
    "acct",
    "quotactl",
    "quotactl_fd",
    "vhangup",
    "lsm_set_self_attr",
    "prlimit_of_another",
];

#[cfg(target_arch = "x86_64")]
pub(super) const PROCESSOR: &[&str] = &[
    "modify_ldt",
    "iopl",
    "ioperm",
    "uselib",
    "_sysctl",
    "nfsservctl",
    "create_module",
    "get_kernel_syms",
    "query_module",
    "x32_getpid",
    "x32_open",
    "x32_unshare",
    "x32_io_uring_setup",
    "x32_execve",
    "i386_getpid",
    "i386_unshare",
    "i386_socketcall_vsock",
    "i386_keyctl",
    "i386_open",
];

pub(super) const TERMINAL: &[&str] = &[
    "TIOCSTI",
    "TIOCSTI_junk_above",
    "TIOCSTI_all_above",
    "TIOCLINUX",
    "TIOCLINUX_junk_above",
];

pub(super) fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

pub(super) fn namespaces() -> BTreeSet<String> {
    let mut names = set(&[
        "unshare_everything",
        "unshare_NEWUSER_junk_above",
        "unshare_NEWUSER_among_others",
        "clone3",
        "setns",
        "setns_pidfd",
    ]);
    for flag in ["TIME", "NS", "CGROUP", "UTS", "IPC", "USER", "PID", "NET"] {
        for how in ["clone_NEW", "unshare_NEW", "clone_NEWUSER_NEW", "clone3_NEW"] {
            names.insert(format!("{how}{flag}"));
        }
    }
    for file in ["mnt", "user", "pid", "net", "ipc", "uts", "cgroup", "time"] {
        names.insert(format!("setns_{file}"));
    }
    names
}

pub(super) fn sockets() -> BTreeSet<String> {
    let mut names = set(&[
        "socket_vsock_stream",
        "socket_vsock_junk_above",
        "socket_alg",
        "socket_packet_raw",
        "socket_negative",
    ]);
    // All that there are, but unix (1), IPv4 (2), IPv6 (10) and netlink (16).
    let families = (0..=46).filter(|family| ![1, 2, 10, 16].contains(family));
    names.extend(families.map(|family| format!("socket_{family}")));
    names.extend((1..=22).map(|protocol| format!("netlink_{protocol}")));
    names.extend([2, 10, 16, 30, 40].map(|family| format!("socketpair_{family}")));
    names
}
