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
    "name_to_handle_at",
    "name_to_handle_at_works",
    "ioctl_50009401",
    "ioctl_5000940e",
    "ioctl_5000940f",
    "ioctl_50009417",
    "ioctl_50009418",
    "ioctl_5000943f",
    "ioctl_4008941a",
    "ioctl_c0c89420",
    "ioctl_4040bc10",
    "ioctl_4040bc11",
    "ioctl_subvolume_junk_above",
    "ioctl_encryption_policy",
    "ioctl_encryption_key",
    "ioctl_verity",
    "openat2",
    "openat2_new_file",
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
    "TIOCSETD",
    "TIOCSETD_junk_above",
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
        "socket_unix_protocol",
        "netlink_stream",
    ]);
    for family in [2, 10] {
        names.extend(
            (0..16)
                .filter(|kind| ![1, 2].contains(kind))
                .map(|kind| format!("socket_{family}_type_{kind}")),
        );
        for protocol in [1, 2, 33, 58, 132, 136, 143, 255, 256, 262] {
            names.extend([1, 2].map(|kind| format!("socket_{family}_{kind}_protocol_{protocol}")));
        }
        names.insert(format!("socket_{family}_tcp_as_datagram"));
        names.insert(format!("socket_{family}_protocol_junk_above"));
    }
    names.extend(
        (0..16)
            .filter(|kind| ![1, 2, 5].contains(kind))
            .map(|kind| format!("socket_unix_type_{kind}")),
    );
    // All that there are, but unix (1), IPv4 (2), IPv6 (10) and netlink (16).
    let families = (0..=46).filter(|family| ![1, 2, 10, 16].contains(family));
    names.extend(families.map(|family| format!("socket_{family}")));
    names.extend((1..=22).map(|protocol| format!("netlink_{protocol}")));
    names.extend([2, 10, 16, 30, 40].map(|family| format!("socketpair_{family}")));
    names
}

/// Every way to a mode, with every mode that must not be.
pub(super) fn set_id() -> BTreeSet<String> {
    let mut ways = vec![
        "fchmod",
        "fchmodat",
        "fchmodat2",
        "fchmodat2_empty",
        "openat",
        "openat_flags",
        "tmpfile",
        "mknodat",
        "directory",
    ];
    if cfg!(target_arch = "x86_64") {
        ways.extend(["chmod", "creat", "open", "mknod"]);
    }
    let mut names = set(&["file_capability", "file_capability_2"]);
    for way in ways {
        for mode in ["4755", "2755", "6755", "4000", "2000", "104755"] {
            names.extend(["", "_junk"].map(|junk| format!("{way}{junk}_{mode}")));
        }
    }
    names
}

pub(super) fn scheduling() -> BTreeSet<String> {
    let mut names = set(&["setpriority_user", "setpriority_user_number", "ioprio_set_user"]);
    for call in [
        "sched_setaffinity",
        "sched_setscheduler",
        "sched_setparam",
        "sched_setattr",
        "setpriority",
        "ioprio_set",
    ] {
        for number in 0..6 {
            names.extend(["", "_junk"].map(|junk| format!("{call}_{number}{junk}")));
        }
    }
    names
}
