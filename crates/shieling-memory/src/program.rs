//! Programs that are Rust functions: beside those that memory has, for those that it does not have, or
//! in the place of its bash.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use shieling::environment::Later;

/// One call of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its name and its arguments. For [`Handler::Whole`], the whole text as the only one.
    pub argv: Vec<String>,
    /// Where the shell stands.
    pub cwd: PathBuf,
    /// What the shell exports.
    pub variables: BTreeMap<String, String>,
    /// All of its standard input, where that is a pipe, a file or a here-document. What arrives at the text
    /// itself while that runs is not: `cat | program` hands it over, and [`Handler::Whole`] gets all of it.
    pub input: Vec<u8>,
}

/// What a program answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
    /// Its status, of which a shell sees the last 8 bits.
    pub exit_code: i32,
}

impl Answer {
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

/// A program as a Rust function. An `async` closure from [`Call`] to [`Answer`] is one.
///
/// It runs on a thread of the memory, which it may block. It is dropped when its command is broken off,
/// where it waits for something.
pub trait Program: Send + Sync {
    /// Answers one call.
    fn call(&self, call: Call) -> Later<'_, Answer>;
}

impl<F, T> Program for F
where
    F: Fn(Call) -> T + Send + Sync,
    T: Future<Output = Answer> + Send + 'static,
{
    fn call(&self, call: Call) -> Later<'_, Answer> {
        Box::pin(self(call))
    }
}

/// Who answers for commands.
#[derive(Clone)]
pub enum Handler {
    /// The bash of the memory; this for every program that it does not have.
    Unknown(Arc<dyn Program>),
    /// This, with the whole text, and no bash.
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
