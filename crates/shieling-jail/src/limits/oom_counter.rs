//! How many processes of a sandbox were killed for memory. Counts; kills nobody.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Told by the kernel or by the watch. Works after a fork, in whatever namespace.
#[derive(Debug, Clone)]
pub(crate) struct OomCounter(Source);

#[derive(Debug, Clone)]
enum Source {
    /// No limit on memory.
    Never,
    /// The group's own count, opened before the sandbox can no longer see it.
    Group(Rc<File>),
    /// Ours, in memory that parents share with what they fork.
    Watch(&'static AtomicU64),
}

impl OomCounter {
    pub(super) fn never() -> Self {
        Self(Source::Never)
    }

    pub(super) fn group(file: File) -> Self {
        Self(Source::Group(Rc::new(file)))
    }

    pub(super) fn watch() -> rustix::io::Result<Self> {
        Ok(Self(Source::Watch(shared()?)))
    }

    /// How many were killed since the sandbox began.
    pub(crate) fn count(&self) -> u64 {
        match &self.0 {
            Source::Never => 0,
            Source::Watch(count) => count.load(Ordering::Relaxed),
            Source::Group(file) => {
                let mut text = [0; 1024];
                let length = file.read_at(&mut text, 0).unwrap_or(0);
                let text = String::from_utf8_lossy(&text[..length]);
                let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
                line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
            }
        }
    }

    pub(super) fn add(&self) {
        if let Source::Watch(count) = &self.0 {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The last one that was counted was not killed after all.
    pub(super) fn take_back(&self) {
        if let Source::Watch(count) = &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A count that stays one across forks, for as long as the process lives.
#[allow(
    unsafe_code,
    reason = "shared memory is made by a system call and used through a pointer"
)]
fn shared() -> rustix::io::Result<&'static AtomicU64> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
    // SAFETY: a new mapping at a place of the kernel's choice touches no memory that is in use.
    let page = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            size_of::<AtomicU64>(),
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
        )
    }?;
    // SAFETY: it is a page, so aligned and large enough; zeroed, which is a valid count; never
    // unmapped; and reached through this reference alone, in each process that shares it.
    Ok(unsafe { &*page.cast::<AtomicU64>() })
}
