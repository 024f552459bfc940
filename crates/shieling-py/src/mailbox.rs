//! How an event loop is told that something has become of a call: by a descriptor that it watches, and a list of
//! numbers. It is told from other threads, without Python's lock.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};

/// What the threads of the runtime write to.
pub(crate) struct Letterbox {
    descriptor: OwnedFd,
    numbers: Mutex<Vec<u64>>,
}

impl Letterbox {
    /// Tells the loop of the call with this number.
    pub(crate) fn tell(&self, number: u64) {
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.push(number);
        if numbers.len() == 1 {
            // It cannot be full: it is emptied before the numbers are taken.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }
}

/// The mailbox of one event loop.
#[pyclass(frozen, module = "shieling._native")]
pub(crate) struct Mailbox(pub(crate) Arc<Letterbox>);

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Self> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| PyOSError::new_err(format!("no event descriptor could be made: {error}")))?;
        Ok(Self(Arc::new(Letterbox {
            descriptor,
            numbers: Mutex::default(),
        })))
    }

    /// The descriptor that becomes readable.
    fn fileno(&self) -> i32 {
        self.0.descriptor.as_raw_fd()
    }

    /// The numbers of the calls of which something has become.
    fn drain(&self) -> Vec<u64> {
        let _ = rustix::io::read(&self.0.descriptor, &mut [0_u8; 8]);
        std::mem::take(&mut *self.0.numbers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
