//! The native module of the Python package: the library behind calls that Python waits for.
//!
//! No thread of ours ever touches Python. A call is a task of one runtime; what becomes of it is kept as plain data
//! ([`call`]), and taken by the Python thread that waits, or by the event loop that a descriptor wakes. So nothing
//! here can wait for the interpreter's lock, be in its way when it exits, or call into an event loop that is gone.
//! The policy, the options and the command are those of the other crates; this one decides nothing.

mod runtime;
mod call;
mod caller;
mod mailbox;
mod approver;
mod answer;
mod opened;
mod process;

use std::ffi::OsString;

use pyo3::prelude::*;

/// What `shieling._native` holds.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::approver::Asked;
    #[pymodule_export]
    use super::call::Call;
    #[pymodule_export]
    use super::mailbox::Mailbox;
    #[pymodule_export]
    use super::opened::{Core, open, output};
    #[pymodule_export]
    use super::process::Process;
    #[pymodule_export]
    use super::runtime::shutdown;

    /// The version of the package.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// The command `shieling` with these words, of which the first is its own name. Gives the exit status.
    #[pyfunction]
    fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
        py.detach(|| shieling_cli::main(&words))
    }
}
