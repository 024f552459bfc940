//! Starting a program with `posix_spawn`: without a copy of the host's memory, however large it is,
//! and without a moment in which another thread's child could inherit our descriptors.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;

/// Starts `program` with that one argument, no environment, `/dev/null` as its standard streams, and
/// copies of `fds` from descriptor 3 on. None of `fds` may be below 3 plus their number. It gets no
/// blocked and no ignored signal, and no other descriptor, as long as those are close-on-exec.
///
/// # Errors
/// That of the exec, or of making the process.
pub(in crate::process) fn spawn(program: &CStr, name: &CStr, fds: &[RawFd]) -> io::Result<i32> {
    let attributes = Attributes::new()?;
    let mut actions = Actions::new()?;
    for standard in 0..3 {
        actions.open_null(standard)?;
    }
    for (&from, to) in fds.iter().zip(3..) {
        actions.duplicate(from, to)?;
    }
    let argv = [name.as_ptr().cast_mut(), ptr::null_mut()];
    let variables = [ptr::null_mut()];
    let mut pid = 0;
    // SAFETY: all objects are initialised and outlive the call; both arrays end with null.
    check(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.as_ptr(),
            &raw const actions.0,
            &raw const attributes.0,
            argv.as_ptr(),
            variables.as_ptr(),
        )
    })?;
    Ok(pid)
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: initialises the object it is given.
        check(unsafe { libc::posix_spawnattr_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialised by the call above, which succeeded.
        let mut attributes = Self(unsafe { raw.assume_init() });
        let mut none = MaybeUninit::uninit();
        let mut all = MaybeUninit::uninit();
        let flags = libc::POSIX_SPAWN_SETSIGMASK as libc::c_short | libc::POSIX_SPAWN_SETSIGDEF as libc::c_short;
        // SAFETY: the sets are initialised before they are read, the attributes are initialised,
        // and none of the calls keeps a pointer.
        unsafe {
            libc::sigemptyset(none.as_mut_ptr());
            libc::sigfillset(all.as_mut_ptr());
            check(libc::posix_spawnattr_setsigmask(&raw mut attributes.0, none.as_ptr()))?;
            check(libc::posix_spawnattr_setsigdefault(&raw mut attributes.0, all.as_ptr()))?;
            check(libc::posix_spawnattr_setflags(&raw mut attributes.0, flags))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `new` and destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> io::Result<Self> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: initialises the object it is given.
        check(unsafe { libc::posix_spawn_file_actions_init(raw.as_mut_ptr()) })?;
        // SAFETY: initialised by the call above, which succeeded.
        Ok(Self(unsafe { raw.assume_init() }))
    }

    fn open_null(&mut self, to: RawFd) -> io::Result<()> {
        const NULL: &CStr = c"/dev/null";
        // SAFETY: initialised object; the path is copied by the call.
        check(unsafe { libc::posix_spawn_file_actions_addopen(&raw mut self.0, to, NULL.as_ptr(), libc::O_RDWR, 0) })
    }

    fn duplicate(&mut self, from: RawFd, to: RawFd) -> io::Result<()> {
        // SAFETY: initialised object and integers.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&raw mut self.0, from, to) })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised by `new` and destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(result))
    }
}
