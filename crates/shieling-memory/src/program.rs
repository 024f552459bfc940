//! Programs as Rust functions: in addition to those of memory, for missing ones, or in place of its bash.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use shieling::environment::Later;

/// A call of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCall {
    /// The name and the arguments. For [`Handler::Whole`], the whole text as the only element.
    pub argv: Vec<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The exported variables.
    pub variables: BTreeMap<String, String>,
    /// Standard input, if it is a pipe, a file or a here-document. Input of the text itself is not passed on: use
    /// `cat | program`. [`Handler::Whole`] receives all of it.
    pub input: Vec<u8>,
}

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramOutput {
    /// The standard output.
    pub stdout: Vec<u8>,
    /// The standard error.
    pub stderr: Vec<u8>,
    /// The exit status, of which a shell sees the lowest 8 bits.
    pub exit_code: i32,
}

impl ProgramOutput {
    /// Success, with this output.
    #[must_use]
    pub fn ok(stdout: impl Into<Vec<u8>>) -> Self {
        Self {
            stdout: stdout.into(),
            ..Self::default()
        }
    }

    /// Failure, with this status and message.
    #[must_use]
    pub fn failed(exit_code: i32, stderr: impl Into<Vec<u8>>) -> Self {
        Self {
            stderr: stderr.into(),
            exit_code,
            ..Self::default()
        }
    }
}

/// A program as a Rust function. An `async` closure that takes a [`ProgramCall`] and returns an [`ProgramOutput`] implements it.
///
/// It runs on a thread of the memory, which it may block. When its command is interrupted, its future is dropped at
/// the next await.
pub trait Program: Send + Sync {
    /// Performs a call.
    fn call(&self, call: ProgramCall) -> Later<'_, ProgramOutput>;
}

impl<F, T> Program for F
where
    F: Fn(ProgramCall) -> T + Send + Sync,
    T: Future<Output = ProgramOutput> + Send + 'static,
{
    fn call(&self, call: ProgramCall) -> Later<'_, ProgramOutput> {
        Box::pin(self(call))
    }
}

/// Performs commands in place of memory.
#[derive(Clone)]
pub enum Handler {
    /// Handles every program that the bash of the memory does not have.
    Unknown(Arc<dyn Program>),
    /// Handles whole texts. No bash is used.
    Whole(Arc<dyn Program>),
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unknown(_) => "Unknown",
            Self::Whole(_) => "Whole",
        })
    }
}
