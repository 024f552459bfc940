//! How a step that fails becomes a refusal: which layer, what was being done, and what the kernel
//! said.

use rustix::io::Errno;
use shieling_jail::message::{Layer, Refusal};

/// A step's result.
pub(crate) type Step<T = ()> = Result<T, Refusal>;

/// Says what was being done when something failed.
pub(crate) trait While<T> {
    /// Turns a failure into a refusal.
    fn or_refuse(self, layer: Layer, doing: impl FnOnce() -> String) -> Step<T>;
}

impl<T> While<T> for Result<T, Errno> {
    fn or_refuse(self, layer: Layer, doing: impl FnOnce() -> String) -> Step<T> {
        self.map_err(|errno| Refusal {
            layer,
            doing: doing(),
            errno: errno.raw_os_error(),
        })
    }
}

/// A refusal without an error of the kernel's.
pub(crate) fn refuse<T>(layer: Layer, doing: impl Into<String>) -> Step<T> {
    Err(Refusal {
        layer,
        doing: doing.into(),
        errno: 0,
    })
}
