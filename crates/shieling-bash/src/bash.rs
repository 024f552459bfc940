//! Bash from inside: its functions and variables, as its own loadable builtins use them. They have been
//! the same from bash 4.4 to 5.3; those that some builds lack are looked up by name.
#![allow(unsafe_code, reason = "bash is a C program, and this is its interface")]

use core::ffi::{CStr, c_char, c_int, c_void};

/// How bash describes a builtin.
#[repr(C)]
pub(crate) struct Builtin {
    pub(crate) name: *const c_char,
    pub(crate) function: Option<Function>,
    pub(crate) flags: c_int,
    pub(crate) long_doc: *const *const c_char,
    pub(crate) short_doc: *const c_char,
    pub(crate) handle: *mut c_char,
}

// SAFETY: it is only read, by bash's one thread.
unsafe impl Sync for Builtin {}

/// A builtin's function. Its argument is the list of its words.
pub(crate) type Function = unsafe extern "C" fn(*mut Words) -> c_int;

/// A list of words, which we do not look at.
#[repr(C)]
pub(crate) struct Words([u8; 0]);

pub(crate) const ENABLED: c_int = 1;

/// As `bash -c` reads its text (no history, lines counted from 1), but that the text stays ours and
/// that its last command does not take the shell's place.
pub(crate) const AS_A_COMMAND: c_int = 0x001 | 0x004 | 0x008 | 0x010 | 0x400;

/// Why bash jumps back to its top: the shell is to exit.
pub(crate) const EXIT: [c_int; 3] = [3, 5, 6];
/// A text has an error where bash reads ahead, as in `$(…)`; its reader stays as it was there.
pub(crate) const UNREADABLE: c_int = 1;
/// A command failed under `set -e`.
pub(crate) const ERREXIT: c_int = 4;

unsafe extern "C" {
    pub(crate) fn parse_and_execute(text: *mut c_char, from: *const c_char, flags: c_int) -> c_int;
    pub(crate) fn exit_shell(status: c_int) -> !;
    pub(crate) fn maybe_make_export_env();
    pub(crate) fn builtin_address_internal(name: *const c_char, disabled_too: c_int) -> *mut Builtin;
    pub(crate) fn clear_unwind_protect_list(flags: c_int);
    pub(crate) fn run_unwind_protects();
    fn find_variable(name: *const c_char) -> *const Variable;
    fn array_flush(array: *mut c_void);
    pub(crate) fn set_signal_handler(signal: c_int, handler: extern "C" fn(c_int)) -> *mut c_void;
    pub(crate) fn termsig_handler(signal: c_int);
    pub(crate) fn unbind_variable(name: *const c_char) -> c_int;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(crate) fn abort() -> !;

    pub(crate) static mut last_command_exit_value: c_int;
    pub(crate) static mut interrupt_state: c_int;
    pub(crate) static mut terminating_signal: c_int;
    pub(crate) static mut parse_and_execute_level: c_int;
    pub(crate) static mut export_env: *mut *mut c_char;
}

/// Has `child` called in every process that bash forks, and `parent` in bash itself after each fork, if its
/// C library can.
pub(crate) fn at_fork(parent: extern "C" fn(), child: extern "C" fn()) {
    type Handler = Option<extern "C" fn()>;
    // The other's place is a function that programs are linked with.
    let names = [c"__register_atfork", c"pthread_atfork"];
    // SAFETY: each name is a C string; null means all that is loaded.
    let find = |name: &CStr| unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    let Some(found) = names.into_iter().map(find).find(|found| !found.is_null()) else {
        return;
    };
    // SAFETY: both are functions that take these; the second takes no object.
    unsafe {
        let register: extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int = core::mem::transmute(found);
        register(None, Some(parent), Some(child), core::ptr::null_mut());
    }
}

/// The number of the DEBUG trap among bash's signals: after those of the system.
pub(crate) const DEBUG_TRAP: c_int = 65;
/// How many traps there are: the signals, `EXIT` as 0, `DEBUG`, `ERR` and `RETURN`.
const TRAPS: c_int = 68;

/// A function of bash's that takes nothing, if this build has it.
fn function(name: &CStr) -> Option<extern "C" fn()> {
    // SAFETY: the name is a C string; null means all that is loaded.
    let found = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    // SAFETY: each name that we ask for is such a function, if it is there at all.
    (!found.is_null()).then(|| unsafe { core::mem::transmute::<*mut c_void, extern "C" fn()>(found) })
}

/// A function of bash's that takes a number and gives one, if this build has it.
fn numbered(name: &CStr) -> Option<extern "C" fn(c_int) -> c_int> {
    // SAFETY: the name is a C string; null means all that is loaded.
    let found = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    // SAFETY: each name that we ask for takes an `int`; what it gives is looked at only where it gives one.
    (!found.is_null()).then(|| unsafe { core::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> c_int>(found) })
}

/// Has bash forget the children that it was starting or waiting for: otherwise it takes them for children
/// of its next command, waits for them, and tells their status as that command's.
pub(crate) fn forget_children() {
    for name in [c"unfreeze_jobs_list", c"cleanup_the_pipeline", c"restore_sigmask"] {
        if let Some(function) = function(name) {
            function();
        }
    }
    set(c"already_making_children", 0);
    set(c"pipeline_pgrp", 0);
    // SAFETY: each name is a C string; null means all that is loaded.
    let find = |name: &CStr| unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    // By this pipe, bash has the processes of a job under `set -m` wait for each other.
    let (pipe, close) = (find(c"pgrp_pipe"), find(c"sh_closepipe"));
    if !pipe.is_null() && !close.is_null() {
        // SAFETY: bash's two descriptors, and its function that closes those that are not negative.
        unsafe { core::mem::transmute::<*mut c_void, extern "C" fn(*mut c_void) -> c_int>(close)(pipe) };
    }
}

/// Has bash believe that none of its traps runs: one that does would not run again.
pub(crate) fn end_traps() {
    set(c"running_trap", 0);
    if let Some(clean) = numbered(c"run_trap_cleanup") {
        for trap in 0..TRAPS {
            clean(trap);
        }
    }
}

/// Has bash close its ends of the pipes of `<(…)` and `>(…)`, as it does after each command that it has read
/// itself: otherwise what reads from one waits for more.
pub(crate) fn close_substitutions() {
    if let Some(close) = function(c"unlink_fifo_list") {
        close();
    }
}

/// Has bash forget the jobs that have ended, whatever it would have said of them.
pub(crate) fn forget_ended_jobs() {
    // What it has listed as ended it forgets. The list itself goes nowhere.
    if let Some(list) = numbered(c"list_all_jobs") {
        list(0);
    }
    forget_output();
    tell_of_ended_jobs();
}

/// Has bash forget that its SIGCHLD trap is to run, for children that have ended by now.
pub(crate) fn forget_ended_children() {
    // SAFETY: the name is a C string; null means all that is loaded.
    let pending = unsafe { dlsym(core::ptr::null_mut(), c"pending_traps".as_ptr()) }.cast::<c_int>();
    if !pending.is_null() {
        // SAFETY: bash has a number here for each signal of the system.
        unsafe { *pending.add(CHILD) = 0 };
    }
}

/// SIGCHLD, on the systems that we are built for.
const CHILD: usize = 17;

/// Where bash tells whether a trap runs now, if this build can: asked for where nothing else may be called.
pub(crate) fn trap_in_progress() -> Option<extern "C" fn(c_int) -> c_int> {
    numbered(c"signal_in_progress")
}

/// Removes the DEBUG trap, as `trap - DEBUG` does.
pub(crate) fn remove_debug_trap() {
    if let Some(remove) = numbered(c"restore_default_signal") {
        remove(DEBUG_TRAP);
    }
}

/// Whether the DEBUG trap decides what runs: there is one, under `extdebug`.
pub(crate) fn debug_trap_decides() -> bool {
    get(c"debugging_mode").is_some_and(|on| on != 0)
        && numbered(c"signal_is_trapped").is_some_and(|trapped| trapped(DEBUG_TRAP) != 0)
}

/// Runs the DEBUG trap as before `command`. Gives what decides whether that runs: 0 if it does.
pub(crate) fn run_debug_trap(command: &CStr) -> c_int {
    // SAFETY: each name is a C string; null means all that is loaded.
    let find = |name: &CStr| unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    let (shown, allocate) = (
        find(c"the_printed_command_except_trap").cast::<*mut c_char>(),
        find(c"xmalloc"),
    );
    let Some(run) = numbered(c"run_debug_trap").filter(|_| !shown.is_null() && !allocate.is_null()) else {
        return 0;
    };
    let text = command.to_bytes_with_nul();
    // SAFETY: bash's variable for `BASH_COMMAND`, whose text it has allocated with this function, which
    // never gives null. What it held before is bash's own to free, or was freed by it: a few bytes.
    unsafe {
        let place = core::mem::transmute::<*mut c_void, extern "C" fn(usize) -> *mut c_void>(allocate)(text.len());
        core::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), text.len());
        *shown = place.cast();
    }
    // It takes nothing; a number too many is not looked at.
    run(0)
}

/// Has bash say what it has to say of jobs that have ended, and forget them, if this build can be asked to.
pub(crate) fn tell_of_ended_jobs() {
    // Bash's function of that name takes nothing, or from 5.3 on one number.
    if let Some(notify) = numbered(c"notify_and_cleanup") {
        notify(0);
    }
}

/// Sets one of bash's numbers, if this build has it.
pub(crate) fn set(name: &CStr, value: c_int) {
    // SAFETY: the name is a C string; null means all that is loaded.
    let found = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) }.cast::<c_int>();
    if !found.is_null() {
        // SAFETY: each name that we ask for is an `int` of bash's, if it is there at all.
        unsafe { *found = value };
    }
}

/// One of bash's numbers, if this build has it.
pub(crate) fn get(name: &CStr) -> Option<c_int> {
    // SAFETY: as above.
    let found = unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) }.cast::<c_int>();
    // SAFETY: as above.
    unsafe { found.as_ref() }.copied()
}

/// Forgets what a builtin of bash's has prepared to write and not written: what writes next is another.
pub(crate) fn forget_output() {
    // SAFETY: each name is a C string; null means all that is loaded.
    let find = |name: &CStr| unsafe { dlsym(core::ptr::null_mut(), name.as_ptr()) };
    let (stream, purge) = (find(c"stdout").cast::<*mut c_void>(), find(c"__fpurge"));
    if !stream.is_null() && !purge.is_null() {
        // SAFETY: a function of the C library's that takes a stream, and one of its streams.
        unsafe { core::mem::transmute::<*mut c_void, extern "C" fn(*mut c_void)>(purge)(*stream) };
    }
}

/// Has bash forget what it was reading, if this build can.
pub(crate) fn reset_parser() {
    if let Some(reset) = function(c"reset_parser") {
        reset();
    }
}

/// A variable of bash's, as far as we look into it.
#[repr(C)]
struct Variable {
    name: *const c_char,
    value: *mut c_void,
    _as_exported: *const c_char,
    _functions: [*const c_void; 2],
    attributes: c_int,
}

/// What the attributes of an array have.
const ARRAY: c_int = 4;

/// Empties an array of bash's, if it is there.
pub(crate) fn empty(name: &CStr) {
    // SAFETY: the name is a C string, and what it gives lives until the variable is unset.
    let found = unsafe { find_variable(name.as_ptr()).as_ref() };
    if let Some(found) = found.filter(|found| found.attributes & ARRAY != 0 && !found.value.is_null()) {
        // SAFETY: its attributes say that it is an array.
        unsafe { array_flush(found.value) };
    }
}
