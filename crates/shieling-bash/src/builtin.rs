//! The builtin: a loop that never returns. Takes a command, runs it, says how it ended.
#![allow(unsafe_code, reason = "it is called by a C program, and calls it")]

use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};

use rustix::cmsg_space;
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::aftermath;
use crate::bash::{self, Builtin, Words};
use crate::guarded::guarded;
use crate::hook;
use crate::message::{BREAK_OFF, BrokenOff, GIVEN_UP, KEY, Kind, LIBRARY, LONGEST_TEXT, ORDER, read_order};
use crate::state;

/// The socket is put just below this number, or just below what may be opened at all, if that is less:
/// a script that closes descriptors one by one, up to what it is allowed, does not come so far.
const HIGH: u64 = 4_096;
/// What the shell exits with if its host is gone.
const HOST_GONE: c_int = 129;

struct Documentation([*const c_char; 2]);
// SAFETY: it is constant.
unsafe impl Sync for Documentation {}
static LONG: Documentation = Documentation([SHORT.as_ptr(), core::ptr::null()]);
const SHORT: &core::ffi::CStr = c"takes commands from a host";

/// Where bash finds us. It writes into it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "bash looks for this name")]
static mut shieling_struct: Builtin = Builtin {
    name: c"shieling".as_ptr(),
    function: Some(serve),
    flags: bash::ENABLED,
    long_doc: LONG.0.as_ptr(),
    short_doc: SHORT.as_ptr(),
    handle: core::ptr::null_mut(),
};

/// When the shell exits, however it came to that, it says how it stands. What it forks does not.
extern "C" fn leave() {
    // The host may be gone; there is nobody else to tell.
    // SAFETY: a number of bash's.
    let _ = state::report(Kind::Leaving, unsafe { bash::last_command_exit_value }, BrokenOff::No);
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = leave;

unsafe extern "C" {
    fn execve(program: *const c_char, arguments: *const *const c_char, variables: *const *const c_char) -> c_int;
}

/// `exec` leaves no time afterwards, so it is told before.
unsafe extern "C" fn before_execve(
    program: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> c_int {
    leave();
    // SAFETY: as bash calls it.
    unsafe { execve(program, arguments, variables) }
}

/// Whoever is forked is no shell of the host's, and can neither speak nor listen for it. What a command
/// starts after it was told to end does not begin.
extern "C" fn forked() {
    state::end();
    if BROKEN_OFF.load(Ordering::Relaxed) {
        // SAFETY: ends this process; nothing of it has run yet.
        unsafe { _exit(TERMINATED) }
    }
}

/// Bash forgets at the end of a trap that it was interrupted in it, and goes on with the command.
extern "C" fn has_forked() {
    if RUNS.load(Ordering::Relaxed) && BROKEN_OFF.load(Ordering::Relaxed) {
        // SAFETY: as in the handler of the signal.
        unsafe { bash::interrupt_state = 1 };
    }
}

unsafe extern "C" {
    fn _exit(status: c_int) -> !;
}

/// What a process exits with that was to end before it began: as one that SIGTERM has ended.
const TERMINATED: c_int = 143;

/// Fewer descriptors than these are so few that those of a command may find no place.
const FEW: u64 = 16;

/// With fewer than these no command can be given what it writes to.
const TOO_FEW: u64 = 3;

/// Whether something of a command runs: bash can give up nothing else, and jumps to nowhere if it tries.
static RUNS: AtomicBool = AtomicBool::new(false);
/// Whether what runs was told to end.
static BROKEN_OFF: AtomicBool = AtomicBool::new(false);
/// Whether that was while the DEBUG trap ran.
static IN_DEBUG_TRAP: AtomicBool = AtomicBool::new(false);
/// Bash's function that says whether a trap runs, looked up before a signal needs it.
static mut IN_PROGRESS: Option<extern "C" fn(c_int) -> c_int> = None;
/// Whether the command before was told to end: its processes may have ended since.
static LEAVES_ENDED: AtomicBool = AtomicBool::new(false);

/// Which low numbers were not in use when the command began.
static UNUSED: AtomicU8 = AtomicU8::new(0);

/// `/dev/null`, for [`break_off`]; -1 before it is open.
static NULL: AtomicI32 = AtomicI32::new(-1);

/// Has bash give up what it runs at the next point where that is safe, as after `C-c`. What comes between two
/// commands is lost: it was meant for the one before, or its sender sees that the next one goes on. From now on
/// bash itself says nothing: "Terminated", of a process that ends with the command, is no output of the command.
extern "C" fn break_off(_signal: c_int) {
    if !RUNS.load(Ordering::Relaxed) {
        return;
    }
    BROKEN_OFF.store(true, Ordering::Relaxed);
    // SAFETY: written once, before this can be called; it only looks at a number.
    if unsafe { IN_PROGRESS }.is_some_and(|in_progress| in_progress(bash::DEBUG_TRAP) != 0) {
        IN_DEBUG_TRAP.store(true, Ordering::Relaxed);
    }
    let null = NULL.load(Ordering::Relaxed);
    if null >= 0 {
        // SAFETY: it stays open for as long as the shell runs.
        put(unsafe { BorrowedFd::borrow_raw(null) }, 2);
    }
    // SAFETY: bash's own handler sets it in the same way.
    unsafe { bash::interrupt_state = 1 };
}

unsafe extern "C" fn serve(_words: *mut Words) -> c_int {
    let Some((socket, null)) = prepare() else {
        return 1;
    };
    loop {
        let Ok(order) = receive(&socket) else {
            // SAFETY: bash's way to end.
            unsafe { bash::exit_shell(HOST_GONE) }
        };
        order.run(&null);
    }
}

/// Takes everything into its place. Nothing if that is impossible.
fn prepare() -> Option<(OwnedFd, OwnedFd)> {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(HIGH).min(HIGH);
    let high = i32::try_from(most.checked_sub(4)?).ok()?;
    let beyond = limit.current.is_some_and(|current| current < most);
    if beyond {
        // Until they are there; what is open stays so.
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(most),
                ..limit
            },
        )
        .ok()?;
    }
    // SAFETY: the shell was started with the socket as its standard input, and nothing else owns it.
    let given = unsafe { BorrowedFd::borrow_raw(0) };
    let socket = rustix::io::fcntl_dupfd_cloexec(given, high).ok()?;
    let null = rustix::fs::openat(CWD, c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let null = rustix::io::fcntl_dupfd_cloexec(null, high).ok()?;
    NULL.store(null.as_raw_fd(), Ordering::Relaxed);
    if beyond {
        setrlimit(Resource::Nofile, limit).ok()?;
    }
    for number in 0..3 {
        put(null.as_fd(), number);
    }
    // SAFETY: bash has loaded us from it, and nothing else owns it.
    drop(unsafe { OwnedFd::from_raw_fd(LIBRARY) });

    let mut key = [0; KEY];
    match rustix::net::recv(&socket, &mut key[..], RecvFlags::empty()) {
        Ok((_, KEY)) => {}
        _ => return None,
    }
    // We never return, so that nothing below is to be unwound when bash gives a command up. What we
    // were started with is not what runs.
    // SAFETY: numbers and functions of bash's, which has one thread.
    unsafe {
        bash::clear_unwind_protect_list(0);
        bash::parse_and_execute_level = 0;
        bash::unbind_variable(c"BASH_EXECUTION_STRING".as_ptr());
        IN_PROGRESS = bash::trap_in_progress();
        let ours = bash::builtin_address_internal(c"shieling".as_ptr(), 1);
        if let Some(ours) = ours.as_mut() {
            // It is nobody's to call, and not to be seen.
            ours.function = None;
            ours.flags = 0;
        }
    }
    hook::execve(before_execve);
    bash::at_fork(has_forked, forked);
    for name in [
        c"startup_state",
        c"want_pending_command",
        c"executing_builtin",
        c"executing_list",
    ] {
        bash::set(name, 0);
    }
    // Before the host can give anything up: unheard, the signal ends the shell.
    hear_break_off();
    let number = socket.as_fd();
    state::begin(rustix::fd::AsRawFd::as_raw_fd(&number), key);
    state::report(Kind::Done, 0, BrokenOff::No).ok()?;
    Some((socket, null))
}

/// Makes `number` a copy of `fd`, open in programs that are started.
fn put(fd: BorrowedFd<'_>, number: i32) {
    // SAFETY: standard descriptors belong to nobody in this process.
    let mut place = unsafe { OwnedFd::from_raw_fd(number) };
    // If it fails, the command finds what was there: `/dev/null`.
    let _ = rustix::io::dup2(fd, &mut place);
    let _ = place.into_raw_fd();
}

/// A standard descriptor.
fn standard(number: i32) -> BorrowedFd<'static> {
    // SAFETY: it was put there, and stays for the command.
    unsafe { BorrowedFd::borrow_raw(number) }
}

/// A command, with its place to write to.
struct Order {
    number: u64,
    /// In [`TEXT`], or mapped.
    mapped: Option<(*mut c_void, usize)>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// The text of a command that came with its message, and a NUL.
static mut TEXT: [u8; ORDER + LONGEST_TEXT + 1] = [0; ORDER + LONGEST_TEXT + 1];

/// The next command.
fn receive(socket: &OwnedFd) -> Result<Order, Errno> {
    // SAFETY: bash has one thread, and no command runs that would read its text.
    let text = unsafe { (&raw mut TEXT).as_mut() }.ok_or(Errno::FAULT)?;
    let mut fds: [Option<OwnedFd>; 3] = [None, None, None];
    if getrlimit(Resource::Nofile).current.is_some_and(|most| most < FEW) {
        // There may be no other numbers for what comes.
        for number in 0..3 {
            // SAFETY: standard descriptors belong to nobody in this process.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
    let length = loop {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let room = text.len() - 1;
        let place = text.get_mut(..room).ok_or(Errno::MSGSIZE)?;
        let mut place = [rustix::io::IoSliceMut::new(place)];
        match recvmsg(socket, &mut place, &mut with, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => {
                for each in with.drain() {
                    if let RecvAncillaryMessage::ScmRights(rights) = each {
                        for (slot, fd) in fds.iter_mut().zip(rights) {
                            *slot = Some(fd);
                        }
                    }
                }
                // That a command was given up which is over by now says nothing.
                if message.bytes != GIVEN_UP {
                    break message.bytes;
                }
            }
            Err(Errno::INTR) => {
                // SAFETY: what bash itself does at such a point.
                unsafe {
                    if bash::terminating_signal != 0 {
                        bash::termsig_handler(bash::terminating_signal);
                    }
                }
            }
            Err(errno) => return Err(errno),
        }
    };
    let (number, in_file) = read_order(text).filter(|_| length >= ORDER).ok_or(Errno::PIPE)?;
    *text.get_mut(length).ok_or(Errno::MSGSIZE)? = 0;
    let [Some(stdout), Some(stderr), file] = fds else {
        return Err(Errno::BADMSG);
    };
    let mapped = match file {
        Some(file) => {
            let length = usize::try_from(in_file).map_err(|_| Errno::MSGSIZE)? + 1;
            let (read, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
            // SAFETY: a new mapping, which ends with the command.
            let place = unsafe { mmap(core::ptr::null_mut(), length, read, private, &file, 0) }?;
            Some((place, length))
        }
        None => None,
    };
    Ok(Order {
        number,
        mapped,
        stdout,
        stderr,
    })
}

/// What parse_and_execute returned.
static mut RESULT: c_int = 0;

extern "C" fn execute(text: *mut c_void) {
    // Asked once the signal is heard, and the host sends the message before the signal: whenever the command is
    // given up, one of the two is seen.
    if state::is_given_up() {
        BROKEN_OFF.store(true, Ordering::Relaxed);
        // SAFETY: bash has one thread.
        unsafe { RESULT = TERMINATED };
        return;
    }
    // SAFETY: a C string that lives until the next command.
    unsafe { RESULT = bash::parse_and_execute(text.cast(), c"-c".as_ptr(), bash::AS_A_COMMAND) };
}

extern "C" fn probe(_: *mut c_void) {
    // SAFETY: bash has one thread.
    unsafe { VERDICT = bash::run_debug_trap(c"trap - DEBUG") };
}

/// What the DEBUG trap says of [`probe`].
static mut VERDICT: c_int = 0;

impl Order {
    fn run(self, null: &OwnedFd) {
        settle();
        // In this order, since they may have come under these very numbers, in their own order.
        put(self.stderr.as_fd(), 2);
        put(self.stdout.as_fd(), 1);
        put(null.as_fd(), 0);
        let outputs = [aftermath::file(standard(1)), aftermath::file(standard(2))];
        for fd in [self.stdout, self.stderr] {
            if fd.as_raw_fd() < 3 {
                let _ = fd.into_raw_fd();
            }
        }
        UNUSED.store(aftermath::unused(), Ordering::Relaxed);
        state::about(self.number);
        let text = match self.mapped {
            Some((place, _)) => place,
            // SAFETY: what follows the numbers, up to the NUL.
            None => unsafe { (&raw mut TEXT).cast::<u8>().add(ORDER) }.cast(),
        };
        bash::set(c"indirection_level", 0);
        // `set -n` is ignored where a shell takes commands one by one: nothing would ever run again.
        bash::set(c"read_but_dont_execute", 0);
        // After an error in a `$(…)`, bash 5.2 goes on to read before the beginning of its line.
        bash::reset_parser();
        bash::set(c"shell_eof_token", 0);
        let reading = aftermath::Reading::now();
        let code = interruptible(execute, text);
        let told = BROKEN_OFF.swap(false, Ordering::Relaxed);
        if code != 0 {
            // SAFETY: bash has jumped here, and what it has left stands above this frame.
            unsafe {
                RESULT = bash::last_command_exit_value;
                aftermath::unwind(code, &reading, &outputs);
            }
            if !told && bash::EXIT.contains(&code) {
                // SAFETY: a number of bash's.
                exit(unsafe { bash::last_command_exit_value })
            }
        }
        bash::close_substitutions();
        // Of those that have ended by now it is.
        bash::tell_of_ended_jobs();
        for number in 0..3 {
            put(null.as_fd(), number);
        }
        if let Some((place, length)) = self.mapped {
            // SAFETY: mapped for this command, and bash keeps no part of a text.
            let _ = unsafe { munmap(place, length) };
        }
        let removed = remove_debug_trap(&outputs);
        // Also while the trap was looked at.
        let told = told || BROKEN_OFF.load(Ordering::Relaxed);
        LEAVES_ENDED.store(told, Ordering::Relaxed);
        let broken_off = match (removed, told) {
            (true, told) => BrokenOff::DebugTrapRemoved { told },
            (false, true) => BrokenOff::Yes,
            (false, false) => BrokenOff::No,
        };
        // SAFETY: as above.
        let status = unsafe { RESULT };
        if getrlimit(Resource::Nofile).current.is_some_and(|most| most < TOO_FEW) {
            // The next command could not be begun: it gets a shell that can.
            exit(status)
        }
        if state::report(Kind::Done, status, broken_off).is_err() {
            // SAFETY: bash's way to end: nobody hears us any more.
            unsafe { bash::exit_shell(HOST_GONE) }
        }
    }
}

extern "C" fn run_exit(_: *mut c_void) {
    // SAFETY: bash's way to end; it runs the EXIT trap, and we say that it leaves.
    unsafe { bash::exit_shell(RESULT) }
}

/// Ends the shell. Its EXIT trap is the command's.
fn exit(status: c_int) -> ! {
    // SAFETY: bash has one thread.
    unsafe { RESULT = status };
    interruptible(run_exit, core::ptr::null_mut());
    // SAFETY: as above. A trap that was given up does not run again.
    unsafe { bash::exit_shell(status) }
}

/// Calls `function` as [`guarded`] does, and has bash give it up if it is told to. Nothing else is.
fn interruptible(function: extern "C" fn(*mut c_void), argument: *mut c_void) -> c_int {
    RUNS.store(true, Ordering::Relaxed);
    let code = guarded(function, argument);
    RUNS.store(false, Ordering::Relaxed);
    // What has come too late for bash to see must not have it jump from where it cleans up.
    // SAFETY: a number of bash's.
    unsafe { bash::interrupt_state = 0 };
    code
}

/// Has the signal lead to [`break_off`].
fn hear_break_off() {
    // SAFETY: a function of bash's.
    unsafe { bash::set_signal_handler(BREAK_OFF, break_off) };
}

/// Takes out of bash what the command before has left, while nothing that is said can be heard.
fn settle() {
    // A trap on our signal holds for as long as the command that has set it.
    hear_break_off();
    BROKEN_OFF.store(false, Ordering::Relaxed);
    IN_DEBUG_TRAP.store(false, Ordering::Relaxed);
    // Whoever was killed is no running child any more, but the signal that says so may still be on its
    // way; bash looks for all of them at any such signal.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::CHILD);
    // What bash has to say of jobs that have ended since is not part of the next command's output.
    bash::tell_of_ended_jobs();
    if LEAVES_ENDED.swap(false, Ordering::Relaxed) {
        // They were ended with the command that was broken off, and are no jobs of the session.
        bash::forget_ended_jobs();
        bash::forget_ended_children();
        aftermath::close_dead_pipes(UNUSED.load(Ordering::Relaxed));
    }
}

/// Removes the DEBUG trap if it keeps every command from running, also `trap - DEBUG`: it was what ran when
/// the command was told to end, or under `extdebug` it says that such a command is not to run.
fn remove_debug_trap(outputs: &[aftermath::File; 2]) -> bool {
    let mut removed = IN_DEBUG_TRAP.load(Ordering::Relaxed);
    if !removed && bash::debug_trap_decides() {
        // SAFETY: bash has one thread.
        unsafe { VERDICT = 0 };
        let reading = aftermath::Reading::now();
        let code = interruptible(probe, core::ptr::null_mut());
        if code != 0 {
            // SAFETY: bash has jumped here, and what it has left stands above this frame.
            unsafe { aftermath::unwind(code, &reading, outputs) };
        }
        // SAFETY: as above.
        removed = code != 0 || unsafe { VERDICT } != 0;
    }
    if removed {
        bash::remove_debug_trap();
    }
    removed
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the shell; its host sees that.
    unsafe { bash::abort() }
}
