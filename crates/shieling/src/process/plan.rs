//! What to start, in the terms of the operating system, and why it could not be started.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::supervised::Pipes;
use super::sys::Launch;
use crate::units::ByteCount;

/// The descriptor under which a program finds the script of its [`Plan`].
pub const SCRIPT_DESCRIPTOR: i32 = 3;

/// A program to start: its file, arguments, directory and whole environment.
///
/// It gets `/dev/null` as standard input, pipes as standard output and standard error, a session of
/// its own, default signals, no core dumps, and no other descriptor (but see [`Self::with_script`]).
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) program: PathBuf,
    pub(super) argv: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) file_size: Option<ByteCount>,
    pub(super) script: Option<String>,
}

impl Plan {
    /// Starts the file `program` in `cwd`, with `argv` (whose first element is the name that the
    /// program gets for itself) and no environment.
    pub fn new(
        program: impl Into<PathBuf>,
        argv: impl IntoIterator<Item = impl Into<OsString>>,
        cwd: impl Into<PathBuf>,
    ) -> Self {
        Self {
            program: program.into(),
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: cwd.into(),
            variables: BTreeMap::new(),
            file_size: None,
            script: None,
        }
    }

    /// The plan with this whole environment.
    #[must_use]
    pub fn with_variables(mut self, variables: BTreeMap<String, String>) -> Self {
        self.variables = variables;
        self
    }

    /// The plan with a limit on the size of every file written (`RLIMIT_FSIZE`; default none).
    #[must_use]
    pub fn with_file_size(mut self, limit: Option<ByteCount>) -> Self {
        self.file_size = limit;
        self
    }

    /// The plan with a text that the program can read as [`SCRIPT_DESCRIPTOR`], for what is too long
    /// to be an argument. It is a file in memory.
    #[must_use]
    pub fn with_script(mut self, script: String) -> Self {
        self.script = Some(script);
        self
    }

    /// The file that is started.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The plan as `posix_spawn` wants it.
    pub(super) fn launch(&self, pipes: &Pipes) -> Result<Launch, SpawnError> {
        let text =
            |what: &'static str, text: OsString| CString::new(text.into_vec()).map_err(|_| SpawnError::Nul { what });
        let argv = self
            .argv
            .iter()
            .map(|a| text("an argument", a.clone()))
            .collect::<Result<_, _>>()?;
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| text("the environment", format!("{name}={value}").into()))
            .collect::<Result<_, _>>()?;
        let program = text("the program's path", self.program.clone().into())?;
        Launch::new(
            program,
            argv,
            variables,
            pipes.stdout(),
            pipes.stderr(),
            pipes.script().map(|fd| (fd, SCRIPT_DESCRIPTOR)),
        )
        .map_err(|source| SpawnError::Supervisor {
            what: "preparing the start",
            source,
        })
    }

    pub(super) fn directory(&self) -> Result<CString, SpawnError> {
        CString::new(self.cwd.as_os_str().as_bytes()).map_err(|_| SpawnError::Nul {
            what: "the working directory",
        })
    }

    /// How many bytes the arguments and the environment take, as the kernel counts them.
    pub(super) fn size(&self) -> usize {
        let pointer = size_of::<usize>();
        let argv: usize = self.argv.iter().map(|a| a.len() + 1 + pointer).sum();
        let variables: usize = self
            .variables
            .iter()
            .map(|(n, v)| n.len() + v.len() + 2 + pointer)
            .sum();
        argv + variables
    }
}

/// Why nothing was started. Nothing is left running either.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The file, or the interpreter that its first line names, is not there.
    #[error("there is no program `{}`, or the interpreter that its first line names is missing", program.display())]
    Missing {
        /// The file.
        program: PathBuf,
    },
    /// The file is there and cannot be executed.
    #[error("`{}` cannot be executed", program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel limits arguments and environment together, and each of them alone to 128 KiB.
    #[error("`{}` cannot be given {bytes} bytes of arguments and environment; write the larger part to a file", program.display())]
    TooBig {
        /// The file.
        program: PathBuf,
        /// Arguments and environment together, in bytes.
        bytes: usize,
    },
    /// The working directory cannot be entered.
    #[error("cannot enter the working directory `{}`", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A limit could not be set, so the command was not started without it.
    #[error("cannot set the limits of `{}`", program.display())]
    Limit {
        /// The file.
        program: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The program was not started, for a reason of the system's.
    #[error("cannot start `{}`", program.display())]
    Program {
        /// The file.
        program: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// What no program can be given.
    #[error("{what} holds a NUL byte, which no program can be given")]
    Nul {
        /// Where it is.
        what: &'static str,
    },
    /// What stands beside the program ended before it could say whether the program started.
    #[error("contact to `{}` was lost as it started; it may be running", program.display())]
    Lost {
        /// The file.
        program: PathBuf,
    },
    /// What must stand beside the program could not be made.
    #[error("{what} failed")]
    Supervisor {
        /// What failed.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}
