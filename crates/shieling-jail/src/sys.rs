//! System calls that `rustix` does not offer, one per function, each with a safe signature. Decides
//! nothing. The only unsafe code of the program.
//!
//! The program has one thread, so that the copies which `fork` and `clone` make may allocate.
#![allow(
    unsafe_code,
    reason = "the one home of raw system calls; everything above is safe code"
)]

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::Pid;
use shieling_jail::message::Usage;

/// The two sides of a copied process.
pub(crate) enum Copied {
    /// The copy.
    Child,
    /// The original, with the copy's number in its own pid namespace.
    Parent(i32),
}

/// Copies this process, the copy in new namespaces; its end sends SIGCHLD.
///
/// `flags` are those of `clone` for namespaces (`CLONE_NEW*`), or zero for none.
pub(crate) fn copy(flags: i32) -> Result<Copied, Errno> {
    // The raw call, since libc's fork takes no flags. There are no atfork handlers to miss.
    // SAFETY: without CLONE_VM the copy has its own memory, and this process has no second thread
    // whose locks could be copied in a locked state.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(flags | libc::SIGCHLD),
            0_usize,
            0_usize,
            0_usize,
            0_usize,
        )
    };
    match i32::try_from(result) {
        Ok(0) => Ok(Copied::Child),
        Ok(pid @ 1..) => Ok(Copied::Parent(pid)),
        _ => Err(errno()),
    }
}

/// Copies this process. Its end sends no signal, and only who asks for such children (`__WCLONE`) waits for it.
pub(crate) fn copy_silently() -> Result<Copied, Errno> {
    // SAFETY: as in `copy`; callers have made sure that there is one thread.
    let result = unsafe { libc::syscall(libc::SYS_clone, 0_usize, 0_usize, 0_usize, 0_usize, 0_usize) };
    match i32::try_from(result) {
        Ok(0) => Ok(Copied::Child),
        Ok(pid @ 1..) => Ok(Copied::Parent(pid)),
        _ => Err(errno()),
    }
}

/// Whether this process has no second thread, as its list of them tells.
pub(crate) fn is_single_threaded() -> bool {
    // A link for `.`, one for `..`, and one for each thread.
    rustix::fs::stat(c"/proc/self/task").is_ok_and(|found| found.st_nlink == 3)
}

/// In a copied process, which reads neither any more: wipes the arguments and the variables that its original was
/// started with, and puts a name in their place.
pub(crate) fn forget_arguments(name: &CStr) -> Result<(), Errno> {
    // `arg_start`, `arg_end`, `env_start` and `env_end` of `proc(5)`: fields 48 to 51, where the third is the first
    // behind the name.
    const FIRST: usize = 48 - 3;
    let mut bytes = [0_u8; 2048];
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::open(c"/proc/self/stat", flags, rustix::fs::Mode::empty())?;
    let length = rustix::io::read(&file, &mut bytes)?;
    let text = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let fields = text
        .and_then(|text| Some(text.rsplit_once(')')?.1))
        .ok_or(Errno::BADMSG)?;
    let mut places = fields.split_ascii_whitespace().skip(FIRST).map(str::parse::<usize>);
    let mut place = || {
        places
            .next()
            .and_then(Result::ok)
            .filter(|&place| place != 0)
            .ok_or(Errno::BADMSG)
    };
    let (arguments, variables) = ((place()?, place()?), (place()?, place()?));
    for (start, end) in [arguments, variables] {
        let length = end.checked_sub(start).ok_or(Errno::BADMSG)?;
        // SAFETY: the kernel says that these bytes of our stack hold nothing but the strings. They stay strings, of no
        // characters, for whoever follows a pointer to one; there is one thread.
        unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(start), 0, length) };
    }
    let (start, end) = arguments;
    let name = name.to_bytes_with_nul();
    if name.len() <= end - start {
        // SAFETY: as above, and it fits in.
        unsafe { ptr::copy_nonoverlapping(name.as_ptr(), ptr::with_exposed_provenance_mut(start), name.len()) };
    }
    Ok(())
}

/// In a copied process, makes what an executed program would find: `orders` as [`ORDERS`](crate::ORDERS), `/dev/null` as
/// the standard streams, no other descriptor, no signal that is blocked, ignored or handled.
pub(crate) fn begin_anew(orders: OwnedFd) -> Result<(), Errno> {
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let null = rustix::fs::open(c"/dev/null", flags, rustix::fs::Mode::empty())?;
    // Out of the way of the numbers that are filled.
    let (null, orders) = (above(null)?, above(orders)?);
    for standard in 0..3 {
        put(null.as_fd(), standard)?;
    }
    put(orders.as_fd(), crate::ORDERS)?;
    // Both are closed with what the original had open.
    std::mem::forget((null, orders));
    close_from(crate::ORDERS + 1)?;
    for signal in 1..=64 {
        // SAFETY: SIG_DFL is a valid disposition; for the numbers that take none the call fails.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    default_signals();
    // As Rust has it where a program is executed: what nobody reads any more is an error.
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    Ok(())
}

fn above(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(&fd, crate::ORDERS + 1)
}

/// As [`copy`], the copy in this control group of v2 from its first instruction on (Linux 5.7), which takes no
/// lock that would have to wait for all processors.
pub(crate) fn copy_into(flags: i32, group: BorrowedFd<'_>) -> Result<Copied, Errno> {
    // `CLONE_INTO_CGROUP`, for which libc's type is too narrow.
    const INTO_CGROUP: u64 = 1 << 33;
    // SAFETY: all-zero is a valid clone_args.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = u64::from(flags.cast_unsigned()) | INTO_CGROUP;
    arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    arguments.cgroup = u64::from(group.as_raw_fd().cast_unsigned());
    // SAFETY: the kernel reads the arguments; and as above, without CLONE_VM the copy has its own memory.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    match i32::try_from(result) {
        Ok(0) => Ok(Copied::Child),
        Ok(pid @ 1..) => Ok(Copied::Parent(pid)),
        _ => Err(errno()),
    }
}

/// Copies this process, the copy with this number in its own pid namespace; its end sends SIGCHLD.
///
/// # Errors
/// `EEXIST` if the number is in use.
pub(crate) fn copy_as(number: i32) -> Result<Copied, Errno> {
    // SAFETY: all-zero is a valid clone_args.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    arguments.set_tid = ptr::from_ref(&number).expose_provenance() as u64;
    arguments.set_tid_size = 1;
    // SAFETY: the kernel reads the arguments and one number; and as above, without CLONE_VM the copy has its
    // own memory.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    match i32::try_from(result) {
        Ok(0) => Ok(Copied::Child),
        Ok(pid @ 1..) => Ok(Copied::Parent(pid)),
        _ => Err(errno()),
    }
}

/// The memory in which a process runs that [`borrow`] makes: 256 KiB, touched as needed.
const STACK: usize = 256 * 1024;

/// Runs `act` in a new process that borrows this one's memory, while this one waits until it has become
/// a program or has ended. What it writes to memory is seen here; nothing of it is copied.
///
/// Much faster than [`copy`] where all that follows is an exec. `act` ends by a successful
/// [`execute`] or by returning, and must drop nothing that is still needed here.
pub(crate) fn borrow(act: &mut dyn FnMut()) -> Result<i32, Errno> {
    extern "C" fn enter(argument: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is that of `borrow`'s own variable, which outlives this process's use of it.
        let act: &mut &mut dyn FnMut() = unsafe { &mut *argument.cast() };
        act();
        exit(127)
    }
    let mut stack = vec![0_u8; STACK];
    let mut act = act;
    // SAFETY: with CLONE_VFORK this process stands still until the new one has let go of its memory, so
    // that only one of them runs in it at any time; the new one has a stack of its own, which is freed
    // only after; and it runs nothing but `act`. The end of the stack is aligned below.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK);
        let top = top.sub(top.addr() % 16);
        libc::clone(
            enter,
            top.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut act).cast(),
        )
    };
    if pid < 0 { Err(errno()) } else { Ok(pid) }
}

/// Takes over a descriptor that this program was started with.
pub(crate) fn inherited(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: F_GETFD only asks; the result says whether the number is open.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, and nothing else in this program uses this number: `main` calls this once
    // for each number, before it opens anything.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: RawFd) -> Result<(), Errno> {
    // SAFETY: integers only. Callers do so only where nothing owns a descriptor from there on: at
    // the start of the program, and right before an exec.
    check(unsafe { libc::syscall(libc::SYS_close_range, first.unsigned_abs(), u32::MAX, 0) })
}

/// Has every descriptor from `first` on closed by the next exec.
pub(crate) fn close_on_exec_from(first: RawFd) -> Result<(), Errno> {
    // SAFETY: integers only, and nothing is closed by it.
    check(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first.unsigned_abs(),
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    })
}

/// Closes a descriptor whose owner is never dropped: that of a process which has been copied, in the
/// copy, which ends with [`exit`].
pub(crate) fn close_for_good(fd: BorrowedFd<'_>) {
    // SAFETY: nobody in this process uses it again, as said above.
    unsafe { libc::close(fd.as_raw_fd()) };
}

/// Ends this process at once.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: takes an integer and does not return.
    unsafe { libc::_exit(code) }
}

/// Puts a copy of `from` where `to` is, to be inherited by an exec.
pub(crate) fn put(from: BorrowedFd<'_>, to: RawFd) -> Result<(), Errno> {
    // SAFETY: integers only. Called right before an exec, where `to` belongs to nobody.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }.into())
}

/// Makes descriptor 0 the controlling terminal of this session.
pub(crate) fn take_terminal() -> Result<(), Errno> {
    // SAFETY: integers only.
    check(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }.into())
}

/// Replaces this process by a program. Returns only if that fails.
pub(crate) fn execute(program: &CStr, argv: &[&CStr], variables: &[&CStr]) -> Errno {
    let array = |strings: &[&CStr]| -> Vec<*const libc::c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, variables) = (array(argv), array(variables));
    // SAFETY: three valid strings and null-terminated arrays of valid strings, which live on.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), variables.as_ptr()) };
    errno()
}

/// Gives every signal its default meaning and lets all of them through, by an exec that follows: it resets what
/// is handled, this program was started with nothing ignored, and ignores since what is named here.
pub(crate) fn default_signals() {
    for signal in [libc::SIGPIPE, libc::SIGCHLD] {
        // SAFETY: SIG_DFL is a valid disposition.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let mut none = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before sigprocmask reads it.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

/// Sends a process a signal of any number. It may be gone.
pub(crate) fn signal(to: Pid, signal: i32) {
    // SAFETY: numbers, which the kernel checks.
    unsafe { libc::kill(to.as_raw_pid(), signal) };
}

/// Has the kernel reap this process's children.
pub(crate) fn ignore_children() {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Lets this process wait for its children again, whatever its parent did.
pub(crate) fn wait_for_children() {
    // SAFETY: SIG_DFL is a valid disposition.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Blocks SIGCHLD and gives a descriptor that is readable once a child has ended.
pub(crate) fn child_signals() -> Result<OwnedFd, Errno> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before anything reads it; SIG_DFL is valid.
    let fd = unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One look for an ended child.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reaped {
    /// This child has ended and is gone now.
    Ended {
        /// Its number.
        pid: i32,
        /// As `wait` gives it.
        status: i32,
        /// What it used.
        usage: Usage,
    },
    /// This child was stopped by a signal.
    Stopped {
        /// Its number.
        pid: i32,
    },
    /// There are children, and none of them has ended.
    NoneYet,
    /// There are no children at all.
    NoChildren,
}

/// Reaps one ended child, without waiting; or tells of one that was stopped, if wanted.
pub(crate) fn reap_any(stopped: bool) -> Reaped {
    let flags = libc::WNOHANG | libc::__WALL | if stopped { libc::WUNTRACED } else { 0 };
    loop {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are valid for the writes that wait4 makes.
        let pid = unsafe { libc::wait4(-1, &raw mut status, flags, usage.as_mut_ptr()) };
        match pid {
            0 => return Reaped::NoneYet,
            1.. if libc::WIFSTOPPED(status) => return Reaped::Stopped { pid },
            1.. => {
                // SAFETY: wait4 filled it, and before that it was zeroed, which is valid too.
                let usage = unsafe { usage.assume_init() };
                let us = |time: libc::timeval| {
                    u64::try_from(time.tv_sec)
                        .unwrap_or(0)
                        .saturating_mul(1_000_000)
                        .saturating_add(u64::try_from(time.tv_usec).unwrap_or(0))
                };
                let usage = Usage {
                    user_us: us(usage.ru_utime),
                    system_us: us(usage.ru_stime),
                    peak_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
                };
                return Reaped::Ended { pid, status, usage };
            }
            _ if errno() == Errno::INTR => {}
            _ => return Reaped::NoChildren,
        }
    }
}

/// The attributes that [`set_mount`] can switch on, from `linux/mount.h`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Switches attributes (`MOUNT_ATTR_*`) of a mount on, with those below it if `recursive`, and cuts
/// it off from what is mounted elsewhere.
pub(crate) fn set_mount(mount: BorrowedFd<'_>, attributes: MountAttrFlags, recursive: bool) -> Result<(), Errno> {
    change_mount(mount, attributes, MountAttrFlags::empty(), recursive)
}

/// As [`set_mount`], and switches others off, which the kernel refuses for what the host has switched on.
pub(crate) fn change_mount(
    mount: BorrowedFd<'_>,
    set: MountAttrFlags,
    clear: MountAttrFlags,
    recursive: bool,
) -> Result<(), Errno> {
    let attributes = MountAttributes {
        set: set.bits().into(),
        clear: clear.bits().into(),
        propagation: libc::MS_PRIVATE,
        userns: 0,
    };
    let recursive = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: an open descriptor, a valid empty string, and a struct of the size that is given.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    })
}

/// Has a mount that is not mounted anywhere yet show users and groups as this user namespace maps them, with
/// what is below it.
pub(crate) fn map_mount(mount: BorrowedFd<'_>, users: BorrowedFd<'_>) -> Result<(), Errno> {
    let attributes = MountAttributes {
        set: libc::MOUNT_ATTR_IDMAP,
        clear: 0,
        propagation: libc::MS_PRIVATE,
        userns: u64::from(users.as_raw_fd().cast_unsigned()),
    };
    // SAFETY: two open descriptors, a valid empty string, and a struct of the size that is given.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    })
}

/// Switches the loopback interface of this network namespace on.
pub(crate) fn loopback_up(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads a valid ifreq.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) }.into())
}

/// Leaves the session keyring that was inherited for an empty one of our own.
pub(crate) fn new_keyring() -> Result<(), Errno> {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: integers and a null pointer, which means a keyring without a name.
    check(unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, 0_usize) })
}

/// Leaves the cgroup namespace for a new one, whose root are the groups that this process is in.
pub(crate) fn own_groups() -> Result<(), Errno> {
    // SAFETY: a flag.
    check(unsafe { libc::unshare(libc::CLONE_NEWCGROUP) }.into())
}

/// Installs a seccomp filter on this process and all that it becomes and starts.
pub(crate) fn filter(program: &[libc::sock_filter]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::INVAL)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel reads `len` instructions from a slice of that length.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })
}

/// The version of Landlock that this kernel speaks.
///
/// # Errors
/// `ENOSYS` or `EOPNOTSUPP` where it speaks none.
pub(crate) fn landlock_version() -> Result<i64, Errno> {
    const VERSION: libc::c_long = 1;
    // SAFETY: a null pointer and size zero are what asking for the version takes.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0_usize, 0_usize, VERSION) };
    check(version).map(|()| version)
}

/// Calls any system call with these arguments and gives its error, for probing what a filter says.
pub(crate) fn probe_call(number: libc::c_long, arguments: [usize; 4]) -> Result<(), Errno> {
    let [a, b, c, d] = arguments;
    // SAFETY: callers give numbers only, none of them an address, so that the kernel can write
    // nothing of ours whatever the call is.
    check(unsafe { libc::syscall(number, a, b, c, d) })
}

/// Zeroed memory for `count` pairs of numbers. Pages cost memory only once they are written to. It
/// is never given back.
pub(crate) fn map_pairs(count: usize) -> Option<&'static mut [[i32; 2]]> {
    let length = count.checked_mul(size_of::<[i32; 2]>())?;
    // SAFETY: a new private anonymous mapping at a place of the kernel's choice touches nothing.
    let memory = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping is page-aligned, zeroed, `length` bytes long, only ours, and never unmapped.
    Some(unsafe { std::slice::from_raw_parts_mut(memory.cast(), count) })
}

fn check(result: libc::c_long) -> Result<(), Errno> {
    if result < 0 { Err(errno()) } else { Ok(()) }
}

/// The error of the last libc call.
fn errno() -> Errno {
    // SAFETY: libc promises a valid pointer to this thread's errno.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
