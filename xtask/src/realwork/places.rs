//! Where the work is done: what is fetched, the namespace, a workspace and a home for each user, and the two ways to
//! run a text. Everything stands below one directory, which is removed at the end but for the sources.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use shieling_testkit::prerequisite;

use super::data::{Project, Source, Steps, missing};
use super::{fresh, within};

/// Where the directory of the work is seen in the namespace.
pub(super) const SHORT: &str = "/srv";

/// Who is nobody else.
const USER: u32 = 47_112;

/// How long one text may take.
const LONGEST: Duration = Duration::from_secs(480);

/// How long a source may take, with the network's delays and what is built of it.
const LONGEST_FETCH: Duration = Duration::from_secs(600);

/// As whom something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Account {
    Root,
    /// A user without power, chosen by root.
    Other,
    /// The user who started us.
    Own,
}

impl Account {
    pub(super) fn all() -> Vec<Self> {
        match is_root() {
            true => vec![Self::Root, Self::Other],
            false => vec![Self::Own],
        }
    }

    /// Whose files are to be its, where root can say so.
    fn number(self) -> Option<u32> {
        match self {
            Self::Root => Some(0),
            Self::Other => Some(USER),
            Self::Own => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Other | Self::Own => "user",
        }
    }
}

pub(super) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// In which way a text runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Outside,
    Inside,
}

/// How a text ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    /// As a shell says it: 128 and the signal's number for a signal.
    pub(super) status: i32,
    pub(super) stdout: String,
    stderr: String,
    pub(super) took: Duration,
}

impl Ended {
    pub(super) fn told(&self) -> String {
        let last = |text: &str| {
            let from = text.len().saturating_sub(600);
            text[text.ceil_char_boundary(from)..].trim_end().to_owned()
        };
        format!("exit {}\n{}\n{}", self.status, last(&self.stdout), last(&self.stderr))
    }
}

/// Fetches what is not there yet. What cannot be fetched is missing, as a program is.
pub(super) fn fetch(steps: &Steps, base: &Path) -> anyhow::Result<()> {
    for source in &steps.sources {
        let kept = base.join("sources").join(&source.name);
        let stamp = base.join("sources").join(format!("{}.fetch", source.name));
        if kept.exists() && fs::read_to_string(&stamp).is_ok_and(|text| text == source.fetch) {
            continue;
        }
        let lacking = missing(source.needs.iter());
        if !lacking.is_empty() {
            prerequisite::skip(format!("{}: {}", source.name, lacking.join(", ")));
            continue;
        }
        println!("fetching {}", source.name);
        if let Err(error) = fetched(source, base) {
            prerequisite::skip(format!("the source `{}`: {error:#}", source.name));
            continue;
        }
        let _ = fs::remove_dir_all(&kept);
        fs::rename(base.join("fetching"), &kept)?;
        fs::write(&stamp, &source.fetch)?;
    }
    Ok(())
}

fn fetched(source: &Source, base: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(base.join("sources"))?;
    let directory = fresh(base.join("fetching"))?;
    let mut command = Command::new("bash");
    command
        .args(["-euc", &source.fetch])
        .current_dir(&directory)
        .stdin(Stdio::null());
    match within(&mut command, LONGEST_FETCH)? {
        Some(status) if status.success() => Ok(()),
        _ => bail!("it could not be fetched"),
    }
}

/// Makes the directory ready, with the program in it.
pub(super) fn begin(base: &Path, program: &Path) -> anyhow::Result<()> {
    fresh(base.join("run"))?;
    fs::create_dir_all(base.join("rust"))?;
    if is_root() {
        let known = fs::read_to_string("/etc/passwd")?;
        fs::write(
            base.join("run/passwd"),
            format!("{known}worker:x:{USER}:{USER}::/nonexistent:/bin/bash\n"),
        )?;
    }
    fs::copy(program, base.join("run/shieling")).context("shieling was not built")?;
    for open in [base.to_path_buf(), base.join("run"), base.join("run/shieling")] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Removes all but the sources.
pub(super) fn end(base: &Path) -> anyhow::Result<()> {
    fs::remove_dir_all(base.join("run"))?;
    Ok(())
}

/// Starts us again where the directory has a short path, below which the Rust toolchain stands as well.
pub(super) fn in_namespace(base: &Path, names: &[String]) -> anyhow::Result<ExitCode> {
    const MOUNT: &str = "mount --bind \"$2\" \"$1/rust\" && mount --bind \"$1/run/passwd\" /etc/passwd && \
                         mount --rbind \"$1\" \"$3\" && shift 3 && exec \"$@\"";
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8(sysroot.stdout)?;
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", MOUNT, "sh"])
        .args([base.as_os_str(), sysroot.trim().as_ref(), SHORT.as_ref()])
        .arg(std::env::current_exe()?)
        .args(["realwork", "--inside"])
        .args(names)
        .status()
        .context("unshare is needed")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A project's workspace, with a home beside it.
pub(super) struct Workspace {
    account: Account,
    work: PathBuf,
    home: PathBuf,
    base: PathBuf,
}

impl Workspace {
    /// A fresh one, at the same path each time, with its sources, prepared.
    pub(super) fn make(project: &Project, account: Account, base: &Path) -> anyhow::Result<Self> {
        let place = fresh(base.join("run").join(account.name()).join(&project.name))?;
        let made = Self {
            account,
            work: fresh(place.join("work"))?,
            home: fresh(place.join("home"))?,
            base: base.to_path_buf(),
        };
        for source in &project.sources {
            let (directory, name) = source.split_once(':').unwrap_or((source, "."));
            let mut copy = Command::new("cp");
            let from = base.join("sources").join(directory).join(".");
            let to = made.work.join(name);
            fs::create_dir_all(&to)?;
            if !copy.arg("-a").args([from, to]).status()?.success() {
                bail!("the source `{source}` cannot be copied");
            }
        }
        // What a person has who works here.
        let config = "[user]\n\tname = Worker\n\temail = worker@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(made.home.join(".gitconfig"), config)?;
        // Archives bring the numbers of whoever made them.
        if let Some(user) = account.number() {
            let mut own = Command::new("chown");
            own.args(["-R", &format!("{user}:{user}")]).arg(&place);
            if !own.status()?.success() {
                bail!("the workspace of `{}` cannot be given away", project.name);
            }
        }
        if !project.prepare.is_empty() {
            let ended = made.run(Place::Outside, &[], &format!("set -e\n{}", project.prepare))?;
            if ended.status != 0 {
                bail!("it could not be prepared: {}", ended.told());
            }
        }
        Ok(made)
    }

    /// Runs a text. Its output goes to files, so that nothing that it leaves behind keeps us waiting.
    pub(super) fn run(&self, place: Place, options: &[String], text: &str) -> anyhow::Result<Ended> {
        let mut command = match place {
            Place::Outside => Command::new("bash"),
            Place::Inside => Command::new(self.base.join("run/shieling")),
        };
        match place {
            Place::Outside => command.args(["-c", text]),
            Place::Inside => command.arg("exec").args(options).args(["--", text]),
        };
        let said = tempfile::tempdir()?;
        let (out, err) = (said.path().join("out"), said.path().join("err"));
        command
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", self.path())
            .env("HOME", &self.home)
            .env("USER", self.user())
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .stdin(Stdio::null())
            .stdout(fs::File::create(&out)?)
            .stderr(fs::File::create(&err)?)
            .process_group(0);
        if self.account == Account::Other {
            command.uid(USER).gid(USER);
        }
        let start = Instant::now();
        let status = self.ended(&mut command)?;
        let read =
            |path: &Path| -> anyhow::Result<String> { Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned()) };
        Ok(Ended {
            status,
            stdout: read(&out)?,
            stderr: read(&err)?,
            took: start.elapsed(),
        })
    }

    /// Waits for its end, and ends what it left in its group.
    fn ended(&self, command: &mut Command) -> anyhow::Result<i32> {
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let group = format!("-{}", child.id());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status
                    .code()
                    .or_else(|| status.signal().map(|signal| 128 + signal))
                    .unwrap_or(-1);
            }
            if start.elapsed() > LONGEST {
                break 124;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // Nobody is in it, as a rule.
        let mut kill = Command::new("kill");
        kill.args(["-KILL", "--", &group]).stderr(Stdio::null());
        kill.status()?;
        child.wait()?;
        Ok(status)
    }

    fn user(&self) -> String {
        match self.account {
            Account::Own => std::env::var("USER").unwrap_or_default(),
            Account::Root => "root".to_owned(),
            Account::Other => "worker".to_owned(),
        }
    }

    /// The toolchain of Rust, which stands below the base in the namespace, and what is installed.
    fn path(&self) -> String {
        match self.account {
            Account::Own => std::env::var("PATH").unwrap_or_default(),
            Account::Root | Account::Other => format!("{}/rust/bin:/usr/local/bin:/usr/bin:/bin", self.base.display()),
        }
    }
}
