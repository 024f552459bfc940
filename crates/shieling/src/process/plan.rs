//! What to start, in the terms of the operating system.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use shieling_bash::message::{LIBRARY, NAME};
use shieling_jail::plan::Request;

use super::error::SpawnError;
use crate::units::ByteCount;

/// The descriptor under which a program finds the script of its [`Plan`].
pub const SCRIPT_DESCRIPTOR: i32 = shieling_jail::SCRIPT;

/// What stands at the standard streams of a program.
#[derive(Debug)]
pub enum Streams {
    /// An end of file, and two pipes that its [`Process`](super::Process) is read from.
    Output,
    /// A pipe that is written to ([`Process::take_input`](super::Process::take_input)), and two pipes.
    Input,
    /// This as standard input, and two pipes.
    Given(OwnedFd),
    /// A terminal, as all three and as the controlling one of the program's session. The process
    /// itself gives no output.
    Terminal(OwnedFd),
}

/// A program to start: its file, arguments, directory and whole environment.
///
/// It gets [`Streams`], a session of its own, default signals, no core dumps, and no other descriptor
/// (but see [`Self::with_script`]).
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) program: PathBuf,
    pub(super) argv: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) file_size: Option<ByteCount>,
    pub(super) script: Option<String>,
    pub(super) builtin: bool,
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
            builtin: false,
        }
    }

    /// The plan with this whole environment.
    #[must_use]
    pub fn with_variables(mut self, variables: BTreeMap<String, String>) -> Self {
        self.variables = variables;
        self
    }

    /// The plan with one more variable, unless its environment has it.
    #[must_use]
    pub(crate) fn with_variable_unless_set(mut self, name: &str, value: &str) -> Self {
        self.variables
            .entry(name.to_owned())
            .or_insert_with(|| value.to_owned());
        self
    }

    /// The plan with this variable, whatever the command has.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
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

    /// The plan of a bash that stays: it takes its commands over its standard input.
    ///
    /// What would run, or have options set, before it has loaded what it takes them with, is kept from
    /// it until then: `BASH_ENV` is set again, and is read by those that it starts; exported options and
    /// functions named like what loads are not taken over.
    pub(super) fn of_a_shell(mut self) -> Self {
        let mut load = String::new();
        if let Some(file) = self.variables.remove("BASH_ENV") {
            load = format!("export BASH_ENV='{}'\n", file.replace('\'', "'\\''"));
        }
        for name in ["SHELLOPTS", "BASHOPTS"] {
            self.variables.remove(name);
        }
        for name in ["export", "enable", NAME] {
            self.variables.remove(&format!("BASH_FUNC_{name}%%"));
        }
        load.push_str(&format!("enable -f /proc/self/fd/{LIBRARY} {NAME}\n{NAME}"));
        let name = self.argv.first().cloned().unwrap_or_else(|| "bash".into());
        let options = ["--noprofile", "--norc", "-O", "expand_aliases", "-c", &load].map(OsString::from);
        Self {
            argv: std::iter::once(name).chain(options).collect(),
            script: None,
            builtin: true,
            ..self
        }
    }

    /// The file that is started.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The plan as the jail's program takes it.
    pub(super) fn request(&self) -> Result<Request, SpawnError> {
        let text = |what: &'static str, text: &[u8]| {
            if text.contains(&0) {
                Err(SpawnError::Nul { what })
            } else {
                Ok(text.to_vec())
            }
        };
        let argv = self.argv.iter().map(|a| text("an argument", a.as_bytes()));
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| text("the environment", format!("{name}={value}").as_bytes()));
        Ok(Request {
            program: text("the program's path", self.program.as_os_str().as_bytes())?,
            argv: argv.collect::<Result<_, _>>()?,
            variables: variables.collect::<Result<_, _>>()?,
            directory: text("the working directory", self.cwd.as_os_str().as_bytes())?,
            file_size: self.file_size.map(ByteCount::get),
            terminal: false,
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
