//! Why no program was started, and why there is no jail to start it in.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use shieling_jail::message::Refusal;

/// Why there is no jail. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JailError {
    /// It could not do what its plan says.
    #[error("{}", told(.0))]
    Refused(Refusal),
    /// Its program could not be started.
    #[error("the sandbox's program cannot be started: {what}")]
    Program {
        /// What failed.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Its program went, or was ended, before it answered.
    #[error("the sandbox's program ended before it could say whether it can do what it should")]
    Silent,
}

fn told(refusal: &Refusal) -> String {
    match refusal.errno {
        0 => refusal.doing.clone(),
        errno => format!("{}: {}", refusal.doing, Errno::from_raw_os_error(errno)),
    }
}

/// What is said where the kernel makes no more processes.
fn crowded(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(errno) if errno == Errno::AGAIN.raw_os_error() => {
            " (no more processes may be started here: end jobs and sessions that are not needed, or raise `--pids`)"
        }
        _ => "",
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
    /// There is nothing to start it in.
    #[error(transparent)]
    Jail(JailError),
    /// The environment could not be made as it was asked for.
    #[error(transparent)]
    Environment(Box<dyn std::error::Error + Send + Sync>),
    /// It has no terminals to start programs on.
    #[error("`{environment}` starts no program on a terminal")]
    NoTerminal {
        /// The environment's name.
        environment: String,
    },
    /// It writes to no program that runs.
    #[error("`{environment}` cannot write to a command that runs; give its input before it starts")]
    NoInput {
        /// The environment's name.
        environment: String,
    },
    /// The shell does not stay: it cannot load what a session needs, or ended while it did.
    #[error("no session can be kept in this shell: {why}; run commands each in a fresh process instead")]
    Session {
        /// What it said.
        why: String,
    },
    /// What must stand beside the program could not be made.
    #[error("{what} failed{}", crowded(source))]
    Supervisor {
        /// What failed.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}
