//! A place: a workspace, a home with secrets, and an outside that must not change; and a sandbox.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shieling::approval::{Answer, ApproverFn, Mode, Question, Scope};
use shieling::environment::{Environment as _, Restrictions, Sandbox, Shell};
use shieling::files::{FileRequest, FileResponse, WriteRequest};
use shieling::outcome::{Layer, Outcome, Status};
use shieling::policy::Policy;
use shieling::process::Streams;
use shieling::request::Command;
use shieling::session::{Pty, TerminalSize};
use shieling::{Shieling, enforcement_of};
use shieling_testkit::prerequisite;

use super::{Checked, Fail, Field, check, skip, wrong};

/// Where programs are, on the host and inside.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long a command may run that does not say: no command takes so long, however busy the machine is.
pub(crate) const LONGEST: Duration = Duration::from_secs(120);

/// Files of the host's home that hold the secret.
pub(crate) const KEYS: &[&str] = &[
    ".ssh/id_ed25519",
    ".cargo/credentials.toml",
    ".npmrc",
    ".netrc",
    ".git-credentials",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".kube/config",
    ".pypirc",
    ".bash_history",
    ".gnupg/private-keys-v1.d/key",
];

/// What is looked at again after the case.
pub(super) struct Watched {
    directory: PathBuf,
    before: String,
}

impl Watched {
    pub(super) fn new(directory: PathBuf) -> Checked<Self> {
        let before = snapshot(&directory)?;
        Ok(Self { directory, before })
    }

    pub(super) fn unchanged(&self) -> Checked {
        let now = snapshot(&self.directory)?;
        let missing: Vec<&str> = self
            .before
            .lines()
            .filter(|line| !now.lines().any(|l| l == *line))
            .collect();
        let new: Vec<&str> = now
            .lines()
            .filter(|line| !self.before.lines().any(|l| l == *line))
            .collect();
        check(missing.is_empty() && new.is_empty(), || {
            format!(
                "ESCAPED: `{}` changed: was {missing:?}, is {new:?}",
                self.directory.display()
            )
        })
    }
}

/// A place that is being made.
pub(crate) struct Making<'a> {
    field: &'a Field<'a>,
    /// The directory of all of it.
    pub(crate) root: PathBuf,
    secret: String,
    policy: Policy,
    restrictions: Restrictions,
}

impl<'a> Making<'a> {
    pub(super) fn new(field: &'a Field<'a>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = field.base.join(format!("place-{number}"));
        field.made.lock().expect("only pushed to").push(root.clone());
        // Never in any text that a command is given, so that an echo is no read.
        let secret = format!(
            "SECRET-{}-{number}",
            fs::read_to_string("/proc/sys/kernel/random/uuid")
                .expect("linux")
                .trim()
        );
        for directory in ["work", "home", "outside/directory"] {
            fs::create_dir_all(root.join(directory)).expect("the base can be written to");
        }
        for name in ["secret", "directory/secret", "canary"] {
            fs::write(root.join("outside").join(name), &secret).expect("written");
        }
        for key in KEYS {
            let path = root.join("home").join(key);
            fs::create_dir_all(path.parent().expect("below home")).expect("made");
            fs::write(path, &secret).expect("written");
        }
        let mut restrictions = Restrictions::new(root.join("work"), "/bin/bash");
        restrictions.path = PATH.to_owned();
        restrictions.home = Some(root.join("home"));
        restrictions.user_name = Some("escape".to_owned());
        restrictions.read = vec![field.tools.directory.clone()];
        Self {
            field,
            root,
            secret,
            policy: Policy::open(),
            restrictions,
        }
    }

    /// The directory that will be worked in.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The text that must not be read.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    /// A file in the workspace, made by the user.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        let path = self.root.join("work").join(name);
        fs::create_dir_all(path.parent().expect("below")).expect("made");
        fs::write(path, text).expect("written");
        self
    }

    /// A file in the workspace with the secret in it.
    pub(crate) fn secret_file(self, name: &str) -> Self {
        let secret = self.secret.clone();
        self.file(name, &secret)
    }

    /// Runs a text on the host, in the workspace, as the user would.
    pub(crate) fn host(self, text: &str) -> Checked<Self> {
        host(&self.root, text)?;
        Ok(self)
    }

    /// Nothing may be changed.
    pub(crate) fn readonly(mut self) -> Self {
        self.policy = self.policy.with_readonly();
        self
    }

    /// These do not exist.
    pub(crate) fn ignore(mut self, patterns: &[&str]) -> Self {
        self.policy = self.policy.with_ignore(patterns).expect("patterns");
        self
    }

    /// Nothing else can be executed.
    pub(crate) fn allow(mut self, programs: &[&str]) -> Self {
        self.policy = self.policy.with_allow(programs).expect("entries");
        self
    }

    /// Changes what is asked for beyond a policy.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Restrictions)) -> Self {
        change(&mut self.restrictions);
        self
    }

    /// The place, with its sandbox, which starts with the first command. From here on nothing outside
    /// may change; under readonly, nothing inside either.
    pub(crate) fn start(self) -> Checked<Place<'a>> {
        let mut watched = vec![
            Watched::new(self.root.join("outside"))?,
            Watched::new(self.root.join("home"))?,
        ];
        if self.policy.is_readonly() {
            watched.push(Watched::new(self.work())?);
        }
        self.field.watched.lock().expect("no panic").extend(watched);
        self.start_unwatched()
    }

    /// The same, where the home may change: the workspace lies in it.
    pub(crate) fn start_unwatched(self) -> Checked<Place<'a>> {
        let asked = enforcement_of(&self.policy, &self.restrictions.workspace);
        let restrictions = self.restrictions.enforcing(&asked)?;
        Place::over(self.field, self.root, self.secret, restrictions)
    }
}

/// A place with its sandbox.
pub(crate) struct Place<'a> {
    field: &'a Field<'a>,
    /// The directory of all of it.
    pub(crate) root: PathBuf,
    secret: String,
    restrictions: Restrictions,
    /// The sandbox, for what a command's text cannot ask.
    pub(crate) sandbox: Arc<Sandbox>,
    shieling: Shieling,
    /// How long a command may run.
    pub(crate) deadline: Duration,
}

impl<'a> Place<'a> {
    /// Another sandbox on the same place, under the same restrictions.
    pub(crate) fn beside(other: &Self) -> Checked<Self> {
        Self::over(
            other.field,
            other.root.clone(),
            other.secret.clone(),
            other.restrictions.clone(),
        )
    }

    /// Another sandbox on the same place, under changed restrictions.
    pub(crate) fn with(other: &Self, change: impl FnOnce(&mut Restrictions)) -> Checked<Self> {
        let mut restrictions = other.restrictions.clone();
        change(&mut restrictions);
        Self::over(other.field, other.root.clone(), other.secret.clone(), restrictions)
    }

    fn over(field: &'a Field<'a>, root: PathBuf, secret: String, restrictions: Restrictions) -> Checked<Self> {
        let shell = Shell::find(Some(&restrictions.shell))?;
        let sandbox = Arc::new(Sandbox::new(restrictions.clone(), shell));
        let work = restrictions.workspace.clone();
        // The policy is open, and whatever it asks is answered with yes: what holds, the kernel holds.
        let shieling = Shieling::builder(Arc::clone(&sandbox) as _, Policy::open(), &work)
            .approval(Mode::OnAsk)
            .approver(Arc::new(ApproverFn(|_: &Question| Answer::Yes(Scope::Once))))
            .build()?;
        Ok(Place {
            field,
            root,
            secret,
            restrictions,
            sandbox,
            shieling,
            deadline: LONGEST,
        })
    }

    /// The workspace.
    pub(crate) fn work(&self) -> PathBuf {
        self.restrictions.workspace.clone()
    }

    /// Why its sandbox does not start.
    pub(crate) fn start_error(&self) -> Checked<String> {
        self.field.attempted();
        match self.field.runtime.block_on(self.sandbox.start()) {
            Ok(_) => wrong(format!("it should not start: {:?}", self.restrictions)),
            Err(error) => Ok(error.to_string()),
        }
    }

    /// The text that must not be read.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    /// Runs a text on the host, in the workspace, as the user would.
    pub(crate) fn host(&self, text: &str) -> Checked<String> {
        host(&self.root, text)
    }

    /// The text as a command with the usual variables: `OUT`, `WORK`, `TOOLS` and a `PATH`.
    pub(crate) fn command(&self, text: &str) -> Checked<Command> {
        let variables = variables(&self.root, &self.field.tools.directory);
        Ok(Command::new(text, self.work())?
            .with_variables(variables)
            .with_deadline(self.deadline)?)
    }

    /// What becomes of a text, also if it does not run.
    pub(crate) fn answer(&self, text: &str) -> Checked<Outcome> {
        let command = self.command(text)?;
        Ok(self.field.runtime.block_on(self.shieling.run(command, None)))
    }

    /// Runs a text in the sandbox, whatever it gives. What it prints must not hold the secret. A text that is
    /// refused before it begins, since it would stop half-way, is run by another shell, which is not looked into:
    /// here the kernel is to refuse it.
    pub(crate) fn run(&self, text: &str) -> Checked<Outcome> {
        let mut outcome = self.answer(text)?;
        if outcome
            .denial
            .as_ref()
            .is_some_and(|denial| denial.layer == Layer::Environment)
        {
            let quoted = text.replace('\'', r"'\''");
            outcome = self.answer(&format!("bash -c '{quoted}'"))?;
        }
        let leaked = [&outcome.stdout, &outcome.stderr]
            .iter()
            .any(|out| out.contains(&self.secret));
        check(!leaked, || {
            format!("ESCAPED: the secret was read by `{text}`: {}", line(&outcome))
        })?;
        match outcome.status {
            Status::Denied | Status::NeedsApproval | Status::Failed | Status::RateLimited | Status::Lost => {
                wrong(format!("`{text}` was not run: {}", line(&outcome)))
            }
            _ => match missing_program(outcome.exit_code, &outcome.stderr) {
                Some(program) => skip(format!("`{program}` is not installed")),
                None => Ok(outcome),
            },
        }
    }

    /// The text must fail: its last program says so by its exit status.
    pub(crate) fn refused(&self, text: &str) -> Checked<Outcome> {
        self.field.attempted();
        let outcome = self.run(text)?;
        check(outcome.exit_code != Some(0), || {
            format!("`{text}` was not refused: {}", line(&outcome))
        })?;
        // By the refusal, and not since it could not run.
        check(
            !matches!(outcome.exit_code, Some(127)) && outcome.status != Status::TimedOut,
            || format!("`{text}` did not even run: {}", line(&outcome)),
        )?;
        Ok(outcome)
    }

    /// The text must fail and say this, such as the name of an errno.
    pub(crate) fn refused_with(&self, text: &str, says: &[&str]) -> Checked {
        let outcome = self.refused(text)?;
        check(
            says.iter()
                .any(|says| outcome.stdout.contains(says) || outcome.stderr.contains(says)),
            || format!("`{text}` was refused, but not with {says:?}: {}", line(&outcome)),
        )
    }

    /// The text is an attempt that may end as it likes: what it must not do is seen from outside.
    pub(crate) fn attempt(&self, text: &str) -> Checked<Outcome> {
        self.field.attempted();
        self.run(text)
    }

    /// Runs a text on a terminal of its own, whose output nobody reads.
    pub(crate) fn on_terminal(&self, text: &str) -> Checked<Outcome> {
        let command = self.command(text)?;
        self.field.runtime.block_on(async {
            let Pty { ours: _ours, theirs } = Pty::open_in(self.sandbox.terminals().await?, TerminalSize::default())?;
            let streams = || Ok(Streams::Terminal(theirs));
            Ok(self.shieling.run_with(command, streams, None).await)
        })
    }

    /// Runs a text in a shell that stays.
    pub(crate) fn in_session(&self, text: &str) -> Checked<Outcome> {
        let session = self.shieling.session("stays".parse()?);
        Ok(self.field.runtime.block_on(session.run(self.command(text)?)))
    }

    /// The text must succeed: a neighbour of what is refused. Gives what it prints.
    pub(crate) fn works(&self, text: &str) -> Checked<String> {
        let outcome = self.run(text)?;
        check(outcome.exit_code == Some(0), || {
            format!("`{text}` should work: {}", line(&outcome))
        })?;
        self.field.worked();
        Ok(outcome.stdout)
    }

    /// Writes a file as a file tool does.
    pub(crate) fn write(&self, name: &str, text: &str) -> Checked {
        let ask = FileRequest::Write(WriteRequest::new(self.work().join(name), text));
        let written = self.field.runtime.block_on(self.shieling.file(ask));
        written.map(drop).map_err(|error| Fail::Wrong(error.to_string()))
    }

    /// Writes a file as a file tool does, and gives what that says of its place.
    pub(crate) fn write_note(&self, name: &str, text: &str) -> Checked<Option<String>> {
        let ask = FileRequest::Write(WriteRequest::new(self.work().join(name), text));
        match self.field.runtime.block_on(self.shieling.file(ask)) {
            Ok(FileResponse::Write(written)) => Ok(written.note),
            Ok(answer) => wrong(format!("{answer:?}")),
            Err(error) => wrong(error.to_string()),
        }
    }

    /// A file tool must refuse this.
    pub(crate) fn refused_tool(&self, ask: FileRequest) -> Checked {
        self.field.attempted();
        let words = format!("{ask:?}");
        let done = self.field.runtime.block_on(self.shieling.file(ask));
        check(done.is_err(), || format!("{words} was not refused"))
    }

    /// Ends the sandbox and waits for it.
    pub(crate) fn close(&self) {
        self.field.runtime.block_on(self.sandbox.close());
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

fn variables(root: &Path, tools: &Path) -> BTreeMap<String, String> {
    let text = |path: &Path| path.display().to_string();
    [
        ("PATH", PATH.to_owned()),
        ("HOME", text(&root.join("home"))),
        ("LANG", "C".to_owned()),
        ("LC_ALL", "C".to_owned()),
        ("WORK", text(&root.join("work"))),
        ("OUT", text(&root.join("outside"))),
        ("TOOLS", text(tools)),
        ("GIT_AUTHOR_NAME", "e".to_owned()),
        ("GIT_AUTHOR_EMAIL", "e@e".to_owned()),
        ("GIT_COMMITTER_NAME", "e".to_owned()),
        ("GIT_COMMITTER_EMAIL", "e@e".to_owned()),
        ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn host(root: &Path, text: &str) -> Checked<String> {
    let done = std::process::Command::new("/bin/bash")
        .args(["-c", text])
        .current_dir(root.join("work"))
        .env_clear()
        .envs(variables(root, Path::new("/nonexistent")))
        // A home without the keys' start-up files, and with nothing that a test must keep.
        .env("HOME", "/nonexistent")
        .output()?;
    if !done.status.success() {
        if let Some(program) = missing_program(done.status.code(), &String::from_utf8_lossy(&done.stderr)) {
            return skip(format!("`{program}` is not installed"));
        }
        return Err(Fail::Wrong(format!(
            "setting up on the host failed: `{text}`: {}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        )));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The program that a text was to start and that this host does not have, by what shells say of it. One
/// that is installed and that a sandbox does not show is another matter.
fn missing_program(code: Option<i32>, stderr: &str) -> Option<String> {
    stderr.lines().find_map(|line| {
        let (name, is_path) = match line.strip_suffix(": command not found") {
            Some(head) => (head.rsplit(": ").next()?, false),
            None => (
                line.strip_suffix(": No such file or directory")?.rsplit(": ").next()?,
                true,
            ),
        };
        let name = match name.strip_prefix("/usr/bin/").or_else(|| name.strip_prefix("/bin/")) {
            Some(program) if code == Some(127) => program,
            _ if is_path => return None,
            _ => name,
        };
        let is_name = !name.is_empty() && !name.contains('/');
        (is_name && !prerequisite::is_installed(name)).then(|| name.to_owned())
    })
}

/// An outcome in one line.
pub(crate) fn line(outcome: &Outcome) -> String {
    let short = |text: &str| text.trim().chars().take(600).collect::<String>();
    let mut line = format!("{:?} {:?}", outcome.status, outcome.exit_code);
    for (name, text) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        if !text.is_empty() {
            let _ = write!(line, ", {name} `{}`", short(text));
        }
    }
    if let Some(error) = &outcome.error {
        let _ = write!(line, ", {error}");
    }
    line
}

/// All that a write could change below a directory, a line for each entry.
fn snapshot(directory: &Path) -> Checked<String> {
    let mut lines = Vec::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path)?;
        let content = if found.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
            String::new()
        } else if found.is_symlink() {
            fs::read_link(&path)?.display().to_string()
        } else if found.is_file() {
            String::from_utf8_lossy(&fs::read(&path)?).into_owned()
        } else {
            String::new()
        };
        let mut names = [0_u8; 512];
        let attributes = rustix::fs::llistxattr(&path, &mut names).unwrap_or(0);
        lines.push(format!(
            "{} {:o} {}:{} links {} rdev {} mtime {}.{} ctime {}.{} xattr {attributes} {content:?}",
            path.display(),
            found.permissions().mode(),
            found.uid(),
            found.gid(),
            found.nlink(),
            found.rdev(),
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        ));
    }
    lines.sort();
    Ok(lines.join("\n"))
}

/// A host of its own: starts a sandbox on this workspace and a text in it, says so, and waits.
pub(super) fn hold(work: PathBuf, text: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let shell = Shell::find(Some(Path::new("/bin/bash"))).expect("bash");
    let sandbox = Arc::new(Sandbox::new(Restrictions::new(&work, "/bin/bash"), shell));
    runtime.block_on(async {
        sandbox.start().await.expect("it starts");
        println!("ready");
        let shieling = Shieling::builder(Arc::clone(&sandbox) as _, Policy::open(), &work)
            .approval(Mode::Never)
            .build()
            .expect("it serves no other policy");
        let command = Command::new(text, &work)
            .expect("a text")
            .with_variables([("PATH".to_owned(), PATH.to_owned())].into());
        shieling.run(command, None).await;
    });
}
