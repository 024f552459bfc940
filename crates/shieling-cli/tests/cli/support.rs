//! Runs the binary in a workspace, a home and an environment of its own.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

/// The variable with a copy of the binary for [`again_as_user`].
const COPY: &str = "SHIELING_TEST_BINARY";

/// The binary.
fn binary() -> PathBuf {
    std::env::var_os(COPY).map_or_else(|| env!("CARGO_BIN_EXE_shieling").into(), PathBuf::from)
}

/// Runs these tests again as an ordinary user, who may not be able to read the binary where cargo has put it.
pub(crate) fn again_as_user(tests: &[&str]) {
    shieling_testkit::again_as_user_with(tests, &[(COPY, binary())]);
}

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

    /// With this on its standard input.
    pub(crate) fn input(mut self, text: &str) -> Self {
        self.input = text.into();
        self
    }

    /// With this variable, besides `PATH`.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With the state directory where nobody can write: in the lesser tier commands share `/tmp`, in
    /// which tests have theirs, so that it would be refused.
    pub(crate) fn without_state(self) -> Self {
        self.variable("XDG_STATE_HOME", "/proc/shieling")
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

    /// Another process of the same place.
    pub(crate) fn command_of(&self, args: impl IntoIterator<Item = String>) -> Command {
        let words: Vec<OsString> = args.into_iter().map(OsString::from).collect();
        self.command_with(&words)
    }

    fn command_with(&self, args: &[OsString]) -> Command {
        let mut command = Command::new(binary());
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

    /// The process to be, started by one of the scripts beside this file.
    pub(crate) fn command_through(&self, script: &str, arguments: &[&str]) -> Command {
        self.command_by("python3".as_ref(), script, arguments)
    }

    /// Another process of the same place, with other arguments, on a terminal of its own on which these
    /// steps are taken (see `terminal.py`).
    pub(crate) fn beside(&self, args: &[&str], steps: &Value) -> Child {
        let words: Vec<OsString> = args.iter().map(OsString::from).collect();
        on_terminal(&self.command_with(&words), steps)
    }

    /// What came of it on a terminal of its own, of 33 lines of 101 characters, on which these steps were
    /// taken.
    pub(crate) fn typed(&self, steps: &Value) -> Value {
        told(on_terminal(&self.command(), steps))
    }

    /// The process to be, started by one of the scripts beside this file, which this Python runs.
    pub(crate) fn command_by(&self, python: &OsStr, script: &str, arguments: &[&str]) -> Command {
        by_script(python, script, arguments, &self.command())
    }

    /// Runs it to its end, started by one of the scripts beside this file.
    pub(crate) fn run_through(&self, script: &str, arguments: &[&str]) -> Ran {
        let mut command = self.command_through(script, arguments);
        self.ran(&command.stdin(Stdio::null()).output().expect("python3 is there"))
    }

    /// What came of a process of this place.
    pub(crate) fn ran(&self, output: &Output) -> Ran {
        Ran {
            exit: output.status.code(),
            stdout: self.filtered(&output.stdout),
            stderr: self.filtered(&output.stderr),
        }
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
        let mut input = child.stdin.take().expect("piped above");
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // It may not read its input, which is no error.
                let _ = input.write_all(&self.input);
            });
            child.wait_with_output().expect("it can be waited for")
        });
        self.ran(&output)
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

impl Ran {
    /// The outcome object on its standard output.
    pub(crate) fn outcome(&self) -> serde_json::Value {
        let text = self.stdout.replace("[DURATION]", "0");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("no outcome: {error}: {self}"))
    }
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

/// That process, started by one of the scripts beside this file, which this Python runs.
fn by_script(python: &OsStr, script: &str, arguments: &[&str], plain: &Command) -> Command {
    let mut command = Command::new(python);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli").join(script))
        .args(arguments)
        .arg(plain.get_program())
        .args(plain.get_args())
        .env_clear();
    if let Some(directory) = plain.get_current_dir() {
        command.current_dir(directory);
    }
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// That process on a terminal of its own, on which these steps are taken.
fn on_terminal(plain: &Command, steps: &Value) -> Child {
    let mut child = by_script("python3".as_ref(), "terminal.py", &[], plain)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there, which gives the test a terminal");
    let mut stdin = child.stdin.take().expect("piped above");
    stdin
        .write_all(steps.to_string().as_bytes())
        .expect("it reads its steps");
    child
}

/// Starts it, and waits for the first line that its command prints.
pub(crate) fn begun(mut command: Command) -> (Child, BufReader<ChildStdout>, String) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a text");
    (child, stdout, line)
}

/// What came of a process on a terminal, all of whose steps were taken, and which gave it back as it was.
pub(crate) fn told(child: Child) -> Value {
    let output = child.wait_with_output().expect("it can be waited for");
    let told: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(
        (&told["missed"], &told["restored"]),
        (&Value::Null, &json!(true)),
        "{told}"
    );
    told
}
