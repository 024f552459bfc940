//! Runs the binary in a workspace, a home and an environment of its own.

use std::ffi::OsString;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An invocation to be.
pub(crate) struct Shieling {
    place: tempfile::TempDir,
    args: Vec<OsString>,
    variables: Vec<(String, String)>,
    input: Vec<u8>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Shieling {
    /// In an empty workspace that is also the current directory.
    pub(crate) fn in_workspace() -> Self {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        for directory in ["work", "home", "config/shieling", "state"] {
            std::fs::create_dir_all(place.path().join(directory)).expect("a directory can be made");
        }
        Self {
            place,
            args: Vec::new(),
            variables: Vec::new(),
            input: Vec::new(),
        }
    }

    /// With these arguments after those before.
    pub(crate) fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// With this file in the workspace.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        self.write(&self.workspace().join(path), text);
        self
    }

    /// With this `shieling.toml` of the user.
    pub(crate) fn user_config(self, text: &str) -> Self {
        self.write(&self.place.path().join("config/shieling/shieling.toml"), text);
        self
    }

    /// With this variable, besides `PATH`.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The workspace.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.place.path().join("work")
    }

    fn write(&self, path: &Path, text: &str) {
        std::fs::write(path, text).expect("a file can be written");
    }

    /// The process to be, with nothing of this one's environment but `PATH`.
    pub(crate) fn command(&self) -> Command {
        self.command_with(&self.args)
    }

    fn command_with(&self, args: &[OsString]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shieling"));
        command
            .args(args)
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.place.path().join("home"))
            .env("XDG_CONFIG_HOME", self.place.path().join("config"))
            .env("XDG_STATE_HOME", self.place.path().join("state"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Bash in the workspace, to prepare it.
    pub(crate) fn in_bash(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command
            .args(["-c", script])
            .current_dir(self.workspace())
            .env("HOME", self.place.path().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    /// Runs it once more in the same place, with other arguments.
    pub(crate) fn again<T: Into<OsString>>(&self, args: impl IntoIterator<Item = T>) -> Ran {
        self.run_with(&args.into_iter().map(Into::into).collect::<Vec<_>>())
    }

    /// Runs it to its end.
    pub(crate) fn run(&self) -> Ran {
        self.run_with(&self.args)
    }

    fn run_with(&self, args: &[OsString]) -> Ran {
        let mut child = self
            .command_with(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built by cargo");
        // It may not read its input, which is no error.
        let _ = child.stdin.take().expect("piped above").write_all(&self.input);
        let output = child.wait_with_output().expect("it can be waited for");
        Ran {
            exit: output.status.code(),
            stdout: self.filtered(&output.stdout),
            stderr: self.filtered(&output.stderr),
        }
    }

    /// The text, with what differs from run to run replaced.
    fn filtered(&self, bytes: &[u8]) -> String {
        let place = self.place.path().canonicalize().expect("it is there");
        let text = String::from_utf8_lossy(bytes);
        let text = text.replace(&*place.to_string_lossy(), "[PLACE]");
        durations(&text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]"))
    }
}

/// Replaces `"duration_ms":12.3` and `ran 1.2 s`, which differ from run to run.
fn durations(text: &str) -> String {
    let mut new = String::new();
    let mut rest = text;
    while let Some((at, mark)) = ["\"duration_ms\":", " ran "]
        .iter()
        .filter_map(|mark| Some((rest.find(mark)?, *mark)))
        .min()
    {
        let (before, after) = rest.split_at(at + mark.len());
        let number = after
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(after.len());
        new.push_str(before);
        new.push_str(if number > 0 { "[DURATION]" } else { "" });
        rest = &after[number..];
    }
    new + rest
}

impl fmt::Display for Ran {
    /// The whole transcript, for a snapshot.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exit = self.exit.map_or_else(|| "none".to_owned(), |code| code.to_string());
        writeln!(f, "exit: {exit}")?;
        let newline = if self.stdout.is_empty() || self.stdout.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        write!(f, "--- stdout\n{}{newline}", self.stdout)?;
        write!(f, "--- stderr\n{}", self.stderr)
    }
}
