//! The program `shieling-settle`, which the library carries in itself: it goes on where this process is killed, and judges what
//! commands left in a watched workspace.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::process::{Pid, WaitOptions};
use shieling_settle::{Log, OVER};

use super::memory::{self, above_standard};
use super::{pipes, sys};

/// The program, of this very version.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shieling-settle"));

/// The way to tell the program that all is settled.
#[derive(Debug)]
pub(crate) struct Settler {
    pipe: OwnedFd,
    /// Whose it is: a copy of this process has nothing to say.
    host: u32,
    /// Whether it is to judge what is left.
    is_left: bool,
}

/// The program, before it is started.
#[derive(Debug)]
pub(crate) struct Start {
    pipe: OwnedFd,
    log: OwnedFd,
}

/// The process that runs it.
#[derive(Debug)]
pub(crate) struct Started(Option<Pid>);

impl Settler {
    /// The way to a program that is to read this log.
    ///
    /// # Errors
    /// No more descriptors.
    pub(crate) fn new(log: &Log) -> io::Result<(Self, Start)> {
        let (read, write) = pipes::pipe()?;
        let start = Start {
            pipe: above_standard(read)?,
            log: above_standard(log.file().try_clone()?)?,
        };
        let settler = Self {
            pipe: write,
            host: std::process::id(),
            is_left: false,
        };
        Ok((settler, start))
    }

    /// Leaves it to the program to judge once nothing of the sandbox runs any more.
    pub(crate) fn leave(mut self) {
        self.is_left = true;
    }
}

impl Drop for Settler {
    /// Says that all is settled, unless that is left to the program.
    fn drop(&mut self) {
        if self.host == std::process::id() && !self.is_left {
            let _ = rustix::io::write(&self.pipe, &[OVER]);
        }
    }
}

impl Start {
    /// Starts it.
    ///
    /// # Errors
    /// That of making the process.
    pub(crate) fn start(self) -> io::Result<Started> {
        let program = memory::program("shieling-settle", PROGRAM)?;
        let path = CString::new(format!("/proc/self/fd/{}", program.as_raw_fd()))?;
        let fds = [self.pipe.as_raw_fd(), self.log.as_raw_fd()];
        let pid = sys::spawn(&path, c"shieling-settle", &fds)?;
        Ok(Started(Pid::from_raw(pid)))
    }
}

impl Drop for Started {
    /// Waits for its end, which comes with the word that all is settled.
    fn drop(&mut self) {
        // Somebody may have reaped it for us, which is as good.
        let _ = rustix::process::waitpid(self.0, WaitOptions::empty());
    }
}
