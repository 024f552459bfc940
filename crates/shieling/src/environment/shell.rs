//! The shell that reads a command's text: which one, and how the text reaches it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{End, Jail, Limits, Plan, SCRIPT_DESCRIPTOR, SpawnError, Streams, run_to_end};
use crate::request::Command;

/// Where a shell is looked for if nobody names one.
const USUAL: [&str; 4] = ["/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"];

/// A longer text does not fit into one argument (128 KiB with its end), with some room to spare.
const LONGEST_ARGUMENT: usize = 100 * 1024;

/// How long bash may take to read a text.
const READING: Duration = Duration::from_secs(5);

/// A shell of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    program: PathBuf,
    bash: bool,
}

/// No shell was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no shell to run commands with: none of {} can be executed; install bash, or name a shell by its absolute path", list(.tried))]
pub struct NoShell {
    /// Where it was looked for.
    pub tried: Vec<PathBuf>,
}

fn list(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| format!("`{}`", path.display()))
        .collect::<Vec<_>>()
        .join(", ")
}

impl Shell {
    /// The shell that was `chosen`, or the first of `/bin/bash`, `/usr/bin/bash`, `/bin/sh` and
    /// `/usr/bin/sh` that can be executed. A choice that cannot be executed is an error: nothing
    /// else is taken in its place.
    ///
    /// # Errors
    /// [`NoShell`] says where it was looked for and what to do.
    pub fn find(chosen: Option<&Path>) -> Result<Self, NoShell> {
        let candidates: Vec<PathBuf> = match chosen {
            Some(path) => vec![path.to_path_buf()],
            None => USUAL.iter().map(PathBuf::from).collect(),
        };
        Self::first_of(candidates)
    }

    /// The first of these that can be executed, by absolute paths.
    ///
    /// # Errors
    /// [`NoShell`] says where it was looked for and what to do.
    pub fn first_of(candidates: Vec<PathBuf>) -> Result<Self, NoShell> {
        match candidates.iter().find(|path| path.is_absolute() && executable(path)) {
            Some(program) => Ok(Self {
                program: program.clone(),
                bash: name_of(program) == "bash",
            }),
            None => Err(NoShell { tried: candidates }),
        }
    }

    /// Its file.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether it is bash, which reads no start-up files here.
    pub fn is_bash(&self) -> bool {
        self.bash
    }

    /// How it runs a command: `bash --noprofile --norc -c TEXT`, or `sh -c TEXT`.
    ///
    /// A text beyond 100 KiB is read from memory by a short text of ours instead. It runs as under
    /// `-c`: `$0`, line numbers, standard input and descriptors are the same. What differs is
    /// `$BASH_EXECUTION_STRING`, and in a shell other than bash that `return` is allowed at its top.
    pub fn plan(&self, command: &Command) -> Plan {
        let mut argv = vec![name_of(&self.program)];
        if self.bash {
            argv.extend(["--noprofile".to_owned(), "--norc".to_owned()]);
        }
        // A text that starts with a dash is a text, and no option of the shell.
        argv.extend(["-c".to_owned(), "--".to_owned()]);
        let text = command.text();
        let long = text.len() > LONGEST_ARGUMENT;
        let fd = SCRIPT_DESCRIPTOR;
        let close = format!("exec {fd}<&-;");
        argv.push(match (long, self.bash) {
            (false, _) => text.to_owned(),
            // The text is read whole before any of it runs, and its first step closes the descriptor.
            (true, true) => format!("eval \"{close}$(</dev/fd/{fd})\""),
            (true, false) => format!(". /dev/fd/{fd}"),
        });
        let plan = Plan::new(&self.program, argv, command.cwd())
            .with_variables(command.variables().clone())
            .with_file_size(command.file_size());
        match (long, self.bash) {
            (false, _) => plan,
            (true, true) => plan.with_script(text.to_owned()),
            (true, false) => plan.with_script(format!("{close}{text}")),
        }
    }
}

impl Shell {
    /// Whether shells can stay, which takes bash.
    ///
    /// # Errors
    /// [`SpawnError::Session`]: it is another one.
    pub(super) fn can_stay(&self) -> Result<(), SpawnError> {
        if self.bash {
            return Ok(());
        }
        let why = format!(
            "it takes bash, and the shell here is `{}`: commands run one by one, each with `{} -c`",
            self.program.display(),
            name_of(&self.program)
        );
        Err(SpawnError::Session { why })
    }

    /// How bash reads a text and runs nothing of it (`-n`), with no variable that could have it read more.
    fn reading(&self, command: &Command) -> Plan {
        let mut argv = vec![name_of(&self.program)];
        argv.extend(["--noprofile", "--norc", "-n"].map(str::to_owned));
        let text = command.text();
        if text.len() > LONGEST_ARGUMENT {
            argv.push(format!("/dev/fd/{SCRIPT_DESCRIPTOR}"));
            return Plan::new(&self.program, argv, command.cwd()).with_script(text.to_owned());
        }
        argv.extend(["-c".to_owned(), "--".to_owned(), text.to_owned()]);
        Plan::new(&self.program, argv, command.cwd())
    }

    /// What bash says of a text that it cannot read, and its exit code.
    pub(super) async fn syntax_check(&self, jail: &Jail, command: &Command) -> Option<(i32, String)> {
        if !self.bash {
            return None;
        }
        let process = jail.spawn(&self.reading(command), Streams::Output).await.ok()?;
        let limits = Limits {
            deadline: READING,
            ..Limits::of(command)
        };
        let read = run_to_end(process, &limits, None, None).await;
        match read.end {
            End::Exited(code) if code != 0 => Some((code, read.stderr.text())),
            _ => None,
        }
    }
}

fn name_of(program: &Path) -> String {
    program
        .file_name()
        .map_or_else(|| "sh".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[allow(
    clippy::disallowed_methods,
    reason = "whether a shell is there is a question to this host"
)]
pub(super) fn executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_shell_is_named_and_nothing_is_taken_in_its_place() {
        let error = Shell::find(Some(Path::new("/no/such/shell"))).expect_err("it is not there");
        assert_eq!(
            error.to_string(),
            "no shell to run commands with: none of `/no/such/shell` can be executed; \
             install bash, or name a shell by its absolute path"
        );
        assert!(
            Shell::find(Some(Path::new("bash"))).is_err(),
            "a relative path depends on who reads it"
        );
        assert!(Shell::find(Some(Path::new("/etc/passwd"))).is_err(), "not executable");
    }
}
