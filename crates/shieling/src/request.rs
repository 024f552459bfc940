//! Requests: a command or a file operation, with everything that determines its effect.
//!
//! A request is built once at the edge and not changed afterwards: the policy judges exactly the value that the
//! environment starts or the operation performs.

mod connect;
mod file;
mod operation;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::units::ByteCount;

pub use connect::Connect;
pub use file::{Access, FileOp, Touched};
pub use operation::Operation;

/// The kind of a request. An approval of one kind never covers the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestKind {
    /// A shell command.
    Command,
    /// A file operation.
    Files,
    /// A connection to a host.
    Network,
}

/// Something that is judged, approved and recorded before it happens.
pub trait Request {
    /// Returns the kind of the request.
    fn kind(&self) -> RequestKind;

    /// Returns the text of the request.
    fn text(&self) -> &str;

    /// Returns the working directory.
    fn cwd(&self) -> &Path;

    /// Returns the names of the environment variables. By default there are none.
    fn variable_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the digest of everything that an approval is bound to. The kinds never share a digest.
    fn digest(&self) -> Digest;

    /// Returns the digest of everything except the text that determines its meaning.
    fn place(&self) -> Digest;

    /// Returns the change that it would make, for an approver, as far as it can be shown. By default it makes none.
    fn change(&self) -> Option<&str> {
        None
    }

    /// Returns the bound at which the change was cut, if it was. A cut change cannot be approved.
    fn change_cut_at(&self) -> Option<ByteCount> {
        None
    }

    /// Returns the kind of a file operation.
    fn operation(&self) -> Option<Operation> {
        None
    }
}

/// The longest command text in bytes. The kernel refuses a single argument of 128 KiB or more (`MAX_ARG_STRLEN`), so
/// longer texts are passed in another way.
pub const MAX_COMMAND_BYTES: usize = 1024 * 1024;

/// A shell command that is to be judged and run.
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

/// An invalid command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The text contains no command.
    #[error("the command is empty")]
    Empty,
    /// The text contains a NUL byte, which cannot be passed to a program.
    #[error("the command holds a NUL byte at byte {at}, which no program can be given")]
    Nul {
        /// The position of the byte.
        at: usize,
    },
    /// The text is longer than [`MAX_COMMAND_BYTES`].
    #[error("the command is {bytes} bytes long, the limit is {MAX_COMMAND_BYTES}; write it to a file and run that")]
    TooLong {
        /// The length of the text in bytes.
        bytes: usize,
    },
    /// The deadline is zero.
    #[error("a timeout of 0 leaves no time to run; give at least 1ms")]
    NoTime,
    /// The output limit is zero.
    #[error("an output limit of 0 keeps nothing; give at least 1 byte")]
    NoOutput,
    /// The working directory is relative, so its meaning would depend on the reader.
    #[error("the working directory `{}` is not absolute", .0.display())]
    RelativeDirectory(PathBuf),
}

impl Command {
    /// Creates a command that runs in `cwd`, with a deadline of 60 s, 64 KiB kept of each stream, and no variables.
    ///
    /// # Errors
    /// If the text is empty, contains a NUL or is longer than [`MAX_COMMAND_BYTES`], or `cwd` is relative.
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

    /// Sets the working directory.
    ///
    /// # Errors
    /// [`CommandError::RelativeDirectory`] if it is not absolute.
    pub fn with_cwd(mut self, cwd: impl Into<PathBuf>) -> Result<Self, CommandError> {
        self.cwd = cwd.into();
        if !self.cwd.is_absolute() {
            return Err(CommandError::RelativeDirectory(self.cwd));
        }
        Ok(self)
    }

    /// Sets the whole environment of the command.
    #[must_use]
    pub fn with_variables(mut self, variables: BTreeMap<String, String>) -> Self {
        self.variables = variables;
        self
    }

    /// Sets the working directory, which must be absolute, and the whole environment.
    #[must_use]
    pub(crate) fn with_place(mut self, cwd: PathBuf, variables: BTreeMap<String, String>) -> Self {
        self.cwd = cwd;
        self.variables = variables;
        self
    }

    /// Sets the deadline, measured on the monotonic clock from the start.
    ///
    /// # Errors
    /// [`CommandError::NoTime`] if it is zero.
    pub fn with_deadline(mut self, deadline: Duration) -> Result<Self, CommandError> {
        if deadline.is_zero() {
            return Err(CommandError::NoTime);
        }
        self.deadline = deadline;
        Ok(self)
    }

    /// Sets the time between SIGTERM and SIGKILL when the command has to be ended (default: 500 ms).
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how much is kept of each output stream: half of it the head, half the tail.
    ///
    /// # Errors
    /// [`CommandError::NoOutput`] if it is zero.
    pub fn with_output_kept(mut self, keep: ByteCount) -> Result<Self, CommandError> {
        if keep.get() == 0 {
            return Err(CommandError::NoOutput);
        }
        self.keep = keep;
        Ok(self)
    }

    /// Sets a limit for the size of files that the command writes.
    #[must_use]
    pub fn with_file_size(mut self, limit: Option<ByteCount>) -> Self {
        self.file_size = limit;
        self
    }

    /// Returns the shell text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the working directory.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns the whole environment.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Returns the deadline.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Returns the time between SIGTERM and SIGKILL.
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// Returns how much is kept of each output stream.
    pub fn output_kept(&self) -> ByteCount {
        self.keep
    }

    /// Returns the largest file that it may write, if limited.
    pub fn file_size(&self) -> Option<ByteCount> {
        self.file_size
    }

    /// Returns the digest of everything that an approval is bound to: text, directory and environment.
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

/// Variables about the directory that bash exports itself. They are set for a session's second command, but not for
/// its first.
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
}

/// A digest of fields, which are separated by their lengths.
#[derive(Default)]
struct Fields(Sha256);

impl Fields {
    /// Begins the digest of a file operation. Its first value is longer than any field, so that no command has the
    /// same digest.
    fn of_files() -> Self {
        let mut hasher = Sha256::new();
        hasher.update(u64::MAX.to_le_bytes());
        Self(hasher)
    }

    /// Begins the digest of a connection. Its first value is that of no command and no file operation.
    fn of_network() -> Self {
        let mut hasher = Sha256::new();
        hasher.update((u64::MAX - 1).to_le_bytes());
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

/// A SHA-256 digest. Its text form is hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Returns the digest of these bytes.
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
