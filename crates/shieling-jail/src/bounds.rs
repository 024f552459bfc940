//! What the processes of the jail's user namespace may have at most, as the kernel itself counts it: no
//! further namespace, whatever the filter of system calls would let through, and a part only of what the
//! user may watch of files on this host.

use std::os::fd::BorrowedFd;

use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

/// What is counted for the user too, and where this host says how much that may be.
const SHARED: [(&str, &str); 2] = [
    ("max_inotify_instances", "sys/fs/inotify/max_user_instances"),
    ("max_inotify_watches", "sys/fs/inotify/max_user_watches"),
];

/// Mounts that are not in their place yet count as a mount namespace, and pid 1 goes on making some, to
/// hide what appears. Whoever makes a real one needs a capability, and so another user namespace first.
const MOUNT: &[u8] = b"max_mnt_namespaces";
const MOUNTS: &str = "8";

/// Pid 1 makes the one there is, once it is in its control groups.
const GROUPS: &[u8] = b"max_cgroup_namespaces";

/// Sets them, through the jail's own `/proc`, which can still be written to.
pub(crate) fn set(proc: BorrowedFd<'_>) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(proc, c"sys/user", flags, Mode::empty())?;
    // By the form of their names, so that those of a newer kernel are among them.
    for entry in Dir::read_from(&directory)? {
        let name = entry?.file_name().to_owned();
        let bytes = name.to_bytes();
        if bytes.starts_with(b"max_") && bytes.ends_with(b"_namespaces") {
            let most = match bytes {
                MOUNT => MOUNTS,
                GROUPS => "1",
                _ => "0",
            };
            write(&directory, &name, most)?;
        }
    }
    for (name, of_the_user) in SHARED {
        // Half of it, so that programs outside can go on watching.
        let half = number(proc, of_the_user)? / 2;
        write(&directory, name, &half.max(1).to_string())?;
    }
    Ok(())
}

/// Opens the ports below 1024 of this network namespace to whoever has no capability there.
pub(crate) fn open_low_ports(proc: BorrowedFd<'_>) -> Result<(), Errno> {
    write(proc, c"sys/net/ipv4/ip_unprivileged_port_start", "0")
}

fn number(proc: BorrowedFd<'_>, path: &str) -> Result<u64, Errno> {
    let file = rustix::fs::openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = [0_u8; 32];
    let count = rustix::io::read(&file, &mut bytes)?;
    let text = bytes.get(..count).and_then(|bytes| str::from_utf8(bytes).ok());
    text.and_then(|text| text.trim().parse().ok()).ok_or(Errno::BADMSG)
}

fn write(directory: impl std::os::fd::AsFd, name: impl rustix::path::Arg, text: &str) -> Result<(), Errno> {
    let file = rustix::fs::openat(directory, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}
