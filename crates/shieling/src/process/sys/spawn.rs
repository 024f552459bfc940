//! Starting a program with `posix_spawn`, prepared beforehand so that the start allocates nothing.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;

use rustix::io::Errno;

/// Everything `posix_spawn` needs, laid out in memory.
///
/// The program gets a session of its own, no blocked and no ignored signal, `/dev/null` as standard
/// input, and no descriptor that was not named here (the others must be close-on-exec or closed).
pub(in crate::process) struct Launch {
    program: CString,
    argv: Vec<CString>,
    variables: Vec<CString>,
    attributes: Attributes,
    actions: Actions,
}

impl Launch {
    /// Prepares a start. `argv` begins with the program's own name for itself.
    ///
    /// # Errors
    /// No memory.
    pub(in crate::process) fn new(
        program: CString,
        argv: Vec<CString>,
        variables: Vec<CString>,
        stdout: RawFd,
        stderr: RawFd,
        extra: Option<(RawFd, RawFd)>,
    ) -> io::Result<Self> {
        let mut actions = Actions::new()?;
        actions.open_null(0)?;
        actions.duplicate(stdout, 1)?;
        actions.duplicate(stderr, 2)?;
        // Last, since it may land on one of the two above.
        if let Some((from, to)) = extra {
            actions.duplicate(from, to)?;
        }
        Ok(Self {
            program,
            argv,
            variables,
            attributes: Attributes::new()?,
            actions,
        })
    }

    /// The arrays of pointers that [`Self::start`] takes.
    pub(in crate::process) fn pointers(&self) -> Pointers<'_> {
        let array = |strings: &[CString]| -> Vec<*mut libc::c_char> {
            strings
                .iter()
                .map(|s| s.as_ptr().cast_mut())
                .chain([ptr::null_mut()])
                .collect()
        };
        Pointers {
            launch: self,
            argv: array(&self.argv),
            variables: array(&self.variables),
        }
    }
}

/// A [`Launch`] with its pointer arrays, ready to go.
pub(in crate::process) struct Pointers<'launch> {
    launch: &'launch Launch,
    argv: Vec<*mut libc::c_char>,
    variables: Vec<*mut libc::c_char>,
}

impl Pointers<'_> {
    /// Starts the program and returns its pid once the exec has succeeded. Allocates nothing.
    ///
    /// # Errors
    /// That of the exec, or of making the process.
    pub(in crate::process) fn start(&self) -> Result<i32, Errno> {
        let mut pid = 0;
        // SAFETY: all objects are initialised and outlive the call; both arrays end with null and
        // their strings are owned by the borrowed launch.
        let result = unsafe {
            libc::posix_spawn(
                &raw mut pid,
                self.launch.program.as_ptr(),
                &raw const self.launch.actions.0,
                &raw const self.launch.attributes.0,
                self.argv.as_ptr(),
                self.variables.as_ptr(),
            )
        };
        if result == 0 {
            Ok(pid)
        } else {
            Err(Errno::from_raw_os_error(result))
        }
    }
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
        let flags = libc::POSIX_SPAWN_SETSIGMASK as libc::c_short
            | libc::POSIX_SPAWN_SETSIGDEF as libc::c_short
            | libc::POSIX_SPAWN_SETSID;
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
        check(unsafe { libc::posix_spawn_file_actions_addopen(&raw mut self.0, to, NULL.as_ptr(), libc::O_RDONLY, 0) })
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
