//! Which processes descend from the monitor of a jail, as the kernel lists them outside of it.

use std::io;

use rustix::fs::{Mode, OFlags};

/// Whether the supervisors below a jail's monitor have one process each at most, and that has one thread and no child.
///
/// # Errors
/// If it cannot be seen: the kernel lists no children, or a process went meanwhile.
pub(super) fn is_idle(monitor: i32) -> io::Result<bool> {
    for server in children(monitor)? {
        for supervisor in children(server)? {
            let shells = children(supervisor)?;
            if shells.len() > 1 {
                return Ok(false);
            }
            for shell in shells {
                if !children(shell)?.is_empty() || threads(shell)? > 1 {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// The children of a process's first thread.
fn children(process: i32) -> io::Result<Vec<i32>> {
    let list = read(&format!("/proc/{process}/task/{process}/children"))?;
    Ok(list
        .split_ascii_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect())
}

fn threads(process: i32) -> io::Result<u64> {
    let stat = read(&format!("/proc/{process}/stat"))?;
    // After its name, which can hold anything.
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let count = fields.split(' ').nth(17).and_then(|count| count.parse().ok());
    count.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn read(path: &str) -> io::Result<String> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::read_to_string(std::fs::File::from(file))
}
