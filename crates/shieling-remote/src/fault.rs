//! Why something was not done, on its way from one side to the other: the same error arrives.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use shieling::environment::{EnforceError, FileError, Kind};
use shieling::outcome::with_causes;
use shieling::process::{ShellError, SpawnError};

use crate::wire_path::WirePath;

/// How many different words of the other side are kept for as long as this process lives.
const MOST_WORDS: usize = 256;
/// The longest of them, in bytes.
const LONGEST_WORD: usize = 200;

/// Words that an error holds for good. There are few of them, and few are taken from a side that sends many.
pub(crate) fn word(text: &str) -> &'static str {
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    match words.get(text) {
        Some(word) => word,
        None if words.len() < MOST_WORDS && text.len() <= LONGEST_WORD => {
            let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
            words.insert(kept);
            kept
        }
        None => "something on the other side",
    }
}

/// What a system said.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SystemFault {
    code: Option<i32>,
    text: String,
}

impl SystemFault {
    fn of(error: &io::Error) -> Self {
        Self {
            code: error.raw_os_error(),
            text: error.to_string(),
        }
    }

    fn error(self) -> io::Error {
        match self.code {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::other(self.text),
        }
    }
}

/// Why a policy is not served.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum EnforceFault {
    Bound(String, String, String),
    Workspace(String, WirePath, WirePath),
    Unsupported(String, String),
}

impl EnforceFault {
    pub(crate) fn of(error: &EnforceError) -> Self {
        match error {
            EnforceError::Bound { environment, why, cure } => {
                Self::Bound(environment.clone(), (*why).to_owned(), (*cure).to_owned())
            }
            EnforceError::Workspace {
                environment,
                asked,
                has,
            } => Self::Workspace(environment.clone(), WirePath::of(asked), WirePath::of(has)),
            EnforceError::Unsupported { environment, why } => Self::Unsupported(environment.clone(), (*why).to_owned()),
            other => Self::Unsupported(String::new(), other.to_string()),
        }
    }

    pub(crate) fn error(self) -> EnforceError {
        match self {
            Self::Bound(environment, why, cure) => EnforceError::Bound {
                environment,
                why: word(&why),
                cure: word(&cure),
            },
            Self::Workspace(environment, asked, has) => EnforceError::Workspace {
                environment,
                asked: asked.path(),
                has: has.path(),
            },
            Self::Unsupported(environment, why) => EnforceError::Unsupported {
                environment,
                why: word(&why),
            },
        }
    }
}

/// Why nothing was started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SpawnFault {
    Missing(WirePath),
    NotExecutable(WirePath, SystemFault),
    TooBig(WirePath, u64),
    Directory(WirePath, SystemFault),
    Limit(WirePath, SystemFault),
    Program(WirePath, SystemFault),
    Nul(String),
    Lost(WirePath),
    NoTerminal(String),
    NoInput(String),
    Session(String),
    Supervisor(String, SystemFault),
    Environment(String),
}

impl SpawnFault {
    pub(crate) fn of(error: &SpawnError) -> Self {
        match error {
            SpawnError::Missing { program } => Self::Missing(WirePath::of(program)),
            SpawnError::NotExecutable { program, source } => {
                Self::NotExecutable(WirePath::of(program), SystemFault::of(source))
            }
            SpawnError::TooBig { program, bytes } => Self::TooBig(WirePath::of(program), *bytes as u64),
            SpawnError::Directory { path, source } => Self::Directory(WirePath::of(path), SystemFault::of(source)),
            SpawnError::Limit { program, source } => Self::Limit(WirePath::of(program), SystemFault::of(source)),
            SpawnError::Program { program, source } => Self::Program(WirePath::of(program), SystemFault::of(source)),
            SpawnError::Nul { what } => Self::Nul((*what).to_owned()),
            SpawnError::Lost { program } => Self::Lost(WirePath::of(program)),
            SpawnError::NoTerminal { environment } => Self::NoTerminal(environment.clone()),
            SpawnError::NoInput { environment } => Self::NoInput(environment.clone()),
            SpawnError::Session { why } => Self::Session(why.clone()),
            SpawnError::Supervisor { what, source } => Self::Supervisor((*what).to_owned(), SystemFault::of(source)),
            other => Self::Environment(with_causes(other)),
        }
    }

    pub(crate) fn error(self) -> SpawnError {
        match self {
            Self::Missing(program) => SpawnError::Missing {
                program: program.path(),
            },
            Self::NotExecutable(program, source) => SpawnError::NotExecutable {
                program: program.path(),
                source: source.error(),
            },
            Self::TooBig(program, bytes) => SpawnError::TooBig {
                program: program.path(),
                bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            },
            Self::Directory(path, source) => SpawnError::Directory {
                path: path.path(),
                source: source.error(),
            },
            Self::Limit(program, source) => SpawnError::Limit {
                program: program.path(),
                source: source.error(),
            },
            Self::Program(program, source) => SpawnError::Program {
                program: program.path(),
                source: source.error(),
            },
            Self::Nul(what) => SpawnError::Nul { what: word(&what) },
            Self::Lost(program) => SpawnError::Lost {
                program: program.path(),
            },
            Self::NoTerminal(environment) => SpawnError::NoTerminal { environment },
            Self::NoInput(environment) => SpawnError::NoInput { environment },
            Self::Session(why) => SpawnError::Session { why },
            Self::Supervisor(what, source) => SpawnError::Supervisor {
                what: word(&what),
                source: source.error(),
            },
            Self::Environment(why) => SpawnError::Environment(why.into()),
        }
    }
}

/// Why a shell took no text.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ShellFault {
    Ended,
    Stuck,
    Order(String, i32),
}

impl ShellFault {
    pub(crate) fn of(error: &ShellError) -> Self {
        match error {
            ShellError::Stuck => Self::Stuck,
            ShellError::Order { what, errno } => Self::Order((*what).to_owned(), errno.raw_os_error()),
            _ => Self::Ended,
        }
    }

    pub(crate) fn error(self) -> ShellError {
        match self {
            Self::Ended => ShellError::Ended,
            Self::Stuck => ShellError::Stuck,
            // Zero and what is negative is no error of any system.
            Self::Order(what, code) => ShellError::Order {
                what: word(&what),
                errno: if (1..4096).contains(&code) {
                    Errno::from_raw_os_error(code)
                } else {
                    Errno::IO
                },
            },
        }
    }
}

/// Why nothing could be done with a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FileFault {
    NotFound(WirePath),
    Outside(WirePath, String),
    IsDirectory(WirePath),
    NotADirectory(WirePath),
    Special(WirePath, Kind),
    Exists(WirePath),
    NotEmpty(WirePath),
    LinkLoop(WirePath),
    Fixed(WirePath),
    ReadOnly(WirePath),
    Permission(WirePath),
    Changed(WirePath),
    BadPath(WirePath, String),
    Full(WirePath, String),
    Unsupported(String),
    Io(String, WirePath, SystemFault),
}

impl FileFault {
    pub(crate) fn of(error: &FileError) -> Self {
        let path = |path: &PathBuf| WirePath::of(path);
        match error {
            FileError::NotFound(at) => Self::NotFound(path(at)),
            FileError::Outside { path: at, within } => Self::Outside(path(at), (*within).to_owned()),
            FileError::IsDirectory(at) => Self::IsDirectory(path(at)),
            FileError::NotADirectory(at) => Self::NotADirectory(path(at)),
            FileError::Special { path: at, kind } => Self::Special(path(at), *kind),
            FileError::Exists(at) => Self::Exists(path(at)),
            FileError::NotEmpty(at) => Self::NotEmpty(path(at)),
            FileError::LinkLoop(at) => Self::LinkLoop(path(at)),
            FileError::Fixed(at) => Self::Fixed(path(at)),
            FileError::ReadOnly(at) => Self::ReadOnly(path(at)),
            FileError::Permission(at) => Self::Permission(path(at)),
            FileError::Changed(at) => Self::Changed(path(at)),
            FileError::BadPath { path: at, why } => Self::BadPath(path(at), (*why).to_owned()),
            FileError::Full { path: at, why } => Self::Full(path(at), why.clone()),
            FileError::Unsupported(what) => Self::Unsupported((*what).to_owned()),
            FileError::Io {
                doing,
                path: at,
                source,
            } => Self::Io((*doing).to_owned(), path(at), SystemFault::of(source)),
            other => Self::Unsupported(with_causes(other)),
        }
    }

    pub(crate) fn error(self) -> FileError {
        match self {
            Self::NotFound(at) => FileError::NotFound(at.path()),
            Self::Outside(at, within) => FileError::Outside {
                path: at.path(),
                within: word(&within),
            },
            Self::IsDirectory(at) => FileError::IsDirectory(at.path()),
            Self::NotADirectory(at) => FileError::NotADirectory(at.path()),
            Self::Special(at, kind) => FileError::Special { path: at.path(), kind },
            Self::Exists(at) => FileError::Exists(at.path()),
            Self::NotEmpty(at) => FileError::NotEmpty(at.path()),
            Self::LinkLoop(at) => FileError::LinkLoop(at.path()),
            Self::Fixed(at) => FileError::Fixed(at.path()),
            Self::ReadOnly(at) => FileError::ReadOnly(at.path()),
            Self::Permission(at) => FileError::Permission(at.path()),
            Self::Changed(at) => FileError::Changed(at.path()),
            Self::BadPath(at, why) => FileError::BadPath {
                path: at.path(),
                why: word(&why),
            },
            Self::Full(at, why) => FileError::Full { path: at.path(), why },
            Self::Unsupported(what) => FileError::Unsupported(word(&what)),
            Self::Io(doing, at, source) => FileError::Io {
                doing: word(&doing),
                path: at.path(),
                source: source.error(),
            },
        }
    }
}
