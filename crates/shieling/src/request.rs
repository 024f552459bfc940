//! What is asked: one command, or one operation on files, with everything that decides what it does.
//!
//! Built once at the edge and not changed afterwards: the policy judges exactly this value and the
//! environment starts, or the operation makes, exactly this value.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::units::ByteCount;

pub use file::{Access, FileOp, Operation, Touched};

/// What kind of thing is asked. A yes to one kind never covers another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestKind {
    /// A shell command.
    Command,
    /// An operation on files.
    Files,
}

/// Something that is judged, asked about and recorded before it happens.
pub trait Request {
    /// What kind of thing it is.
    fn kind(&self) -> RequestKind;

    /// How it reads.
    fn text(&self) -> &str;

    /// Where it happens.
    fn cwd(&self) -> &Path;

    /// The names of the variables that it gets.
    fn variable_names(&self) -> Vec<String>;

    /// The digest of everything that a yes to it is bound to. Two kinds never share one.
    fn digest(&self) -> Digest;

    /// The digest of all that decides what its text means, but the text.
    fn place(&self) -> Digest;

    /// What it would change, for whoever has to say yes, as far as that can be shown.
    fn change(&self) -> Option<&str>;

    /// How much of it is shown at most, where that is not all that it would change: nobody can say yes
    /// to it then.
    fn change_cut_at(&self) -> Option<ByteCount>;
}

/// The longest command text that is passed on, in bytes. The kernel refuses a single argument of
/// 128 KiB and more (`MAX_ARG_STRLEN`), so a longer text travels by another way than an argument.
pub const MAX_COMMAND_BYTES: usize = 1024 * 1024;

/// One shell command that is to be judged and run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    text: String,
    cwd: PathBuf,
    variables: BTreeMap<String, String>,
    deadline: Duration,
    grace: Duration,
    keep: ByteCount,
    file_size: Option<ByteCount>,
}

/// Why a command cannot even be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The text has no command in it.
    #[error("the command is empty")]
    Empty,
    /// A NUL byte cannot be passed to any program.
    #[error("the command holds a NUL byte at byte {at}, which no program can be given")]
    Nul {
        /// Where the byte stands.
        at: usize,
    },
    /// The text is beyond [`MAX_COMMAND_BYTES`].
    #[error("the command is {bytes} bytes long, the limit is {MAX_COMMAND_BYTES}; write it to a file and run that")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// A command that may take no time cannot run.
    #[error("a timeout of 0 leaves no time to run; give at least 1ms")]
    NoTime,
    /// Nothing of the output could be kept.
    #[error("an output limit of 0 keeps nothing; give at least 1 byte")]
    NoOutput,
    /// A relative directory would depend on who reads it.
    #[error("the working directory `{}` is not absolute", .0.display())]
    RelativeDirectory(PathBuf),
}

impl Command {
    /// A command in `cwd`, with the defaults: 60 s, 64 KiB kept of each stream, no variables.
    ///
    /// # Errors
    /// An empty text, a NUL, a text beyond [`MAX_COMMAND_BYTES`], a relative `cwd`.
    pub fn new(text: impl Into<String>, cwd: impl Into<PathBuf>) -> Result<Self, CommandError> {
        let (text, cwd) = (text.into(), cwd.into());
        if text.trim().is_empty() {
            return Err(CommandError::Empty);
        }
        if let Some(at) = text.find('\0') {
            return Err(CommandError::Nul { at });
        }
        if text.len() > MAX_COMMAND_BYTES {
            return Err(CommandError::TooLong { bytes: text.len() });
        }
        let command = Self {
            text,
            cwd: PathBuf::new(),
            variables: BTreeMap::new(),
            deadline: Duration::from_secs(60),
            grace: Duration::from_millis(500),
            keep: ByteCount::kib(64),
            file_size: None,
        };
        command.with_cwd(cwd)
    }

    /// The command in this directory.
    ///
    /// # Errors
    /// [`CommandError::RelativeDirectory`]: it is not absolute.
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Result<Self, CommandError> {
        self.cwd = cwd.into();
        if !self.cwd.is_absolute() {
            return Err(CommandError::RelativeDirectory(self.cwd));
        }
        Ok(self)
    }

    /// The command with this whole environment and no other variable.
    #[must_use]
    pub fn with_variables(mut self, variables: BTreeMap<String, String>) -> Self {
        self.variables = variables;
        self
    }

    /// The command in this directory, which is absolute, with this whole environment.
    #[must_use]
    pub(crate) fn with_place(mut self, cwd: PathBuf, variables: BTreeMap<String, String>) -> Self {
        self.cwd = cwd;
        self.variables = variables;
        self
    }

    /// The command with this much time, measured on the monotonic clock from its start.
    ///
    /// # Errors
    /// [`CommandError::NoTime`] for zero.
    pub fn with_deadline(mut self, deadline: Duration) -> Result<Self, CommandError> {
        if deadline.is_zero() {
            return Err(CommandError::NoTime);
        }
        self.deadline = deadline;
        Ok(self)
    }

    /// The command with this long between SIGTERM and SIGKILL once it must end (default 500 ms).
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The command with this much kept of each output stream, half head and half tail.
    ///
    /// # Errors
    /// [`CommandError::NoOutput`] for zero.
    pub fn with_output_kept(mut self, keep: ByteCount) -> Result<Self, CommandError> {
        if keep.get() == 0 {
            return Err(CommandError::NoOutput);
        }
        self.keep = keep;
        Ok(self)
    }

    /// The command with a limit on the size of any file it writes.
    #[must_use]
    pub fn with_file_size(mut self, limit: Option<ByteCount>) -> Self {
        self.file_size = limit;
        self
    }

    /// The shell text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it runs.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The whole environment of the child.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// How long it may run.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The time between SIGTERM and SIGKILL.
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// How much is kept of each stream.
    pub fn output_kept(&self) -> ByteCount {
        self.keep
    }

    /// The largest file it may write, if limited.
    pub fn file_size(&self) -> Option<ByteCount> {
        self.file_size
    }

    /// A digest of everything an approval is bound to: text, directory and environment.
    pub fn digest(&self) -> Digest {
        let mut fields = Fields::default();
        fields.add(self.text.as_bytes());
        self.add_place(&mut fields, |_| true);
        fields.digest()
    }

    fn add_place(&self, fields: &mut Fields, counts: impl Fn(&str) -> bool) {
        fields.add(self.cwd.as_os_str().as_encoded_bytes());
        for (name, value) in self.variables.iter().filter(|(name, _)| counts(name)) {
            fields.add(name.as_bytes());
            fields.add(value.as_bytes());
        }
    }
}

/// Variables that bash itself exports once it runs, about where it stands: a session's second command has
/// them and its first has not.
const KEPT_BY_BASH: [&str; 3] = ["OLDPWD", "PWD", "SHLVL"];

impl Request for Command {
    fn kind(&self) -> RequestKind {
        RequestKind::Command
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn variable_names(&self) -> Vec<String> {
        self.variables.keys().cloned().collect()
    }

    fn digest(&self) -> Digest {
        Self::digest(self)
    }

    fn place(&self) -> Digest {
        let mut fields = Fields::default();
        self.add_place(&mut fields, |name| !KEPT_BY_BASH.contains(&name));
        fields.digest()
    }

    fn change(&self) -> Option<&str> {
        None
    }

    fn change_cut_at(&self) -> Option<ByteCount> {
        None
    }
}

/// A digest over fields, of which each is told from the next by its length.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    /// Those of an operation on files. No field is so long, and so no command has the same.
    fn of_files() -> Self {
        let mut hasher = Sha256::new();
        hasher.update(u64::MAX.to_le_bytes());
        Self(hasher)
    }

    fn add(&mut self, field: &[u8]) {
        self.0.update((field.len() as u64).to_le_bytes());
        self.0.update(field);
    }

    fn digest(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// A SHA-256 digest, shown in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
