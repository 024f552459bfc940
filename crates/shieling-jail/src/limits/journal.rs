//! The journal of processes that were killed for memory: a file in memory that the host reads. Written by
//! pid 1 alone; no command ever has it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::MemfdFlags;
use rustix::io::Result;
use shieling_jail::message::Killed;

/// The journal of one sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Journal(Rc<OwnedFd>);

impl Journal {
    /// An empty one.
    pub(crate) fn new() -> Result<Self> {
        let file = rustix::fs::memfd_create(c"journal", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, Killed::place(Killed::KEPT - 1) + Killed::SIZE as u64)?;
        Ok(Self(Rc::new(file)))
    }

    /// Adds one. What cannot be written is not known of; the count of kills is kept elsewhere.
    pub(super) fn add(&self, killed: &Killed) {
        let Some(number) = self.count() else { return };
        // Counted only once it stands there.
        let _ = rustix::io::pwrite(&*self.0, &killed.encode(), Killed::place(number));
        self.set_count(number + 1);
    }

    /// Removes the last one.
    pub(super) fn take_back(&self) {
        if let Some(last) = self.count().and_then(|count| count.checked_sub(1)) {
            self.set_count(last);
        }
    }

    fn count(&self) -> Option<u64> {
        let mut count = [0; 8];
        (rustix::io::pread(&*self.0, &mut count, 0) == Ok(8)).then(|| u64::from_le_bytes(count))
    }

    fn set_count(&self, count: u64) {
        let _ = rustix::io::pwrite(&*self.0, &count.to_le_bytes(), 0);
    }
}

impl AsFd for Journal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
