//! Tries from inside, bound as a command is, whether what was built holds. What is not probed is not
//! said to hold.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrV4, SocketFlags, SocketType};
use rustix::process::{Pid, WaitOptions};
use shieling_jail::plan::{Gateway, Isolation, Plan, Probe};

use crate::confine::Binding;
use crate::numbers::RESERVED;
use crate::sys;

/// A name that nobody has: of this program, and random enough for two of them.
const NAME: &str = ".shieling-probe";

/// Probes a plan that is in force, in a process that is confined as a command is; called by a
/// supervisor, which is confined but for Landlock. What does not hold, in words.
pub(crate) fn probe(plan: &Plan, binding: Binding<'_>) -> Result<(), String> {
    let mut found = Err("a probe from inside was ended before it could answer".to_owned());
    let pid = sys::borrow(&mut || found = inside(plan, binding));
    let pid = pid.map_err(|errno| format!("a probe from inside could not be started: {errno}"))?;
    let _ = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty());
    found
}

fn inside(plan: &Plan, binding: Binding<'_>) -> Result<(), String> {
    binding
        .bind_command(None)
        .map_err(|errno| format!("a process could not confine itself: {errno}"))?;
    capabilities()?;
    filtered(plan)?;
    // Of its own pid namespace, whose first processes are the jail's and this.
    let number = rustix::process::getpid().as_raw_pid().cast_unsigned();
    if plan.isolation == Isolation::Full && number > RESERVED.end + 16 {
        return Err("the processes of the host can be seen".to_owned());
    }
    plan.probes.iter().try_for_each(|probe| one(probe, plan))
}

/// One call of each kind. Without the filter, the kernel would complain of a null pointer, a descriptor or
/// something else that is wrong with it.
fn filtered(plan: &Plan) -> Result<(), String> {
    const NOWHERE: usize = usize::MAX;
    const SUBVOLUME: usize = 0x5000_940e;
    const LINE_DISCIPLINE: usize = 0x5423;
    const SCTP: usize = 132;
    let making = (libc::O_CREAT | libc::O_WRONLY).cast_unsigned() as usize;
    let mut calls = vec![
        ("io_uring", libc::SYS_io_uring_setup, [1, 0, 0, 0]),
        (
            "files named by a handle",
            libc::SYS_name_to_handle_at,
            [NOWHERE, 0, 0, 0],
        ),
        ("a set-user-ID mode", libc::SYS_fchmod, [NOWHERE, 0o4755, 0, 0]),
        ("a set-group-ID mode", libc::SYS_fchmodat, [NOWHERE, 0, 0o2755, 0]),
        (
            "a new file with a set-user-ID mode",
            libc::SYS_openat,
            [NOWHERE, 0, making, 0o4644],
        ),
        ("a new subvolume", libc::SYS_ioctl, [NOWHERE, SUBVOLUME, 0, 0]),
        ("a line discipline", libc::SYS_ioctl, [NOWHERE, LINE_DISCIPLINE, 0, 0]),
        ("an odd socket", libc::SYS_socket, [2, 1, SCTP, 0]),
        ("pid 1's processors", libc::SYS_sched_setaffinity, [1, 0, 0, 0]),
    ];
    if plan.isolation == Isolation::Landlock {
        calls.push(("a local socket", libc::SYS_socket, [1, 1, 0, 0]));
    }
    let passed = calls
        .into_iter()
        .find(|(_, call, arguments)| sys::probe_call(*call, *arguments) != Err(Errno::PERM));
    match passed {
        None => Ok(()),
        Some((name, ..)) => Err(format!("the system call filter lets through: {name}")),
    }
}

fn capabilities() -> Result<(), String> {
    let held = rustix::thread::capabilities(None).map_err(|errno| format!("capabilities cannot be read: {errno}"))?;
    if !(held.effective | held.permitted | held.inheritable).is_empty() {
        return Err("capabilities are left".to_owned());
    }
    match rustix::thread::no_new_privs() {
        Ok(true) => Ok(()),
        _ => Err("privileges can be gained by executing a file".to_owned()),
    }
}

fn one(probe: &Probe, plan: &Plan) -> Result<(), String> {
    match probe {
        Probe::NoWrite(directory) => match make(directory) {
            Err(Errno::ROFS | Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::NOTDIR) => Ok(()),
            Err(errno) => Err(format!(
                "whether `{}` can be written to is not clear: {errno}",
                directory.display()
            )),
            Ok(()) => Err(format!("a file could be made in `{}`", directory.display())),
        },
        Probe::Write(directory) => make(directory)
            .map_err(|errno| format!("no file can be made in `{}`: {errno}", directory.display()))
            .and_then(|()| devices(directory)),
        Probe::Hidden(path) => {
            if hidden(path) {
                Ok(())
            } else {
                Err(format!("`{}` can be seen", path.display()))
            }
        }
        Probe::NoConnect => connect(plan.gateway.as_ref()),
    }
}

/// Makes a file, and removes it.
fn make(directory: &Path) -> Result<(), Errno> {
    let name = directory.join(format!(
        "{NAME}-{}",
        rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_nsec
    ));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::open(&name, flags, Mode::from_raw_mode(0o600)).map(drop)?;
    rustix::fs::unlink(&name)
}

/// Nobody may make devices. The kernel asks Landlock first, which says another error than it does
/// itself for want of a capability: that is how Landlock is seen to be in force.
fn devices(directory: &Path) -> Result<(), String> {
    let name = directory.join(NAME);
    match rustix::fs::mknodat(CWD, &name, FileType::CharacterDevice, Mode::from_raw_mode(0o600), 0x103) {
        Err(Errno::ACCESS) => Ok(()),
        Err(errno) => Err(format!("Landlock does not answer: {errno}")),
        Ok(()) => {
            let _ = rustix::fs::unlink(&name);
            Err("a device could be made".to_owned())
        }
    }
}

fn hidden(path: &Path) -> bool {
    match rustix::fs::statat(CWD, path, AtFlags::empty()) {
        Err(_) => true,
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            match rustix::fs::open(path, flags, Mode::empty()).and_then(rustix::fs::Dir::new) {
                Ok(entries) => entries
                    .flatten()
                    .all(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")),
                Err(_) => true,
            }
        }
        Ok(_) => false,
    }
}

/// Addresses for documentation, where nobody is.
const NOBODY: [Ipv4Addr; 3] = [
    Ipv4Addr::new(192, 0, 2, 1),
    Ipv4Addr::new(198, 51, 100, 1),
    Ipv4Addr::new(203, 0, 113, 1),
];

/// Whether an address is in a network.
fn is_in(address: Ipv4Addr, (network, bits): &(IpAddr, u8)) -> bool {
    let IpAddr::V4(network) = network else { return false };
    let mask = u32::MAX
        .checked_shl(32_u32.saturating_sub(u32::from(*bits)))
        .unwrap_or(0);
    u32::from(address) & mask == u32::from(*network) & mask
}

/// With a way out, the attempt would be under way. One that leads to the host's gateway is none.
fn connect(gateway: Option<&Gateway>) -> Result<(), String> {
    let routes = gateway.map_or(&[][..], |gateway| &gateway.routes);
    let mut nobody = NOBODY.into_iter();
    let Some(nobody) = nobody.find(|address| !routes.iter().any(|route| is_in(*address, route))) else {
        return Ok(());
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let Ok(socket) = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None) else {
        return Ok(());
    };
    match rustix::net::connect(&socket, &SocketAddrV4::new(nobody, 9)) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::AGAIN | Errno::TIMEDOUT | Errno::CONNREFUSED) => {
            Err("a connection to another host could be begun".to_owned())
        }
        Err(_) => Ok(()),
    }
}
