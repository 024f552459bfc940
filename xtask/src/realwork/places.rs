//! Where the work is done: what is fetched, the namespace, a workspace and a home for each user, and the two ways to
//! run a text. Everything stands below one directory, which is removed at the end but for the sources.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use shieling_testkit::prerequisite;

use super::account::{Account, USER, is_root};
use super::data::{Project, Source, Steps, missing};

/// How many projects are worked on at once.
pub(super) const AT_ONCE: usize = 2;

/// Where the directory of the work is seen in the namespace.
pub(super) const SHORT: &str = "/srv";

/// How long one text may take.
const LONGEST: Duration = Duration::from_secs(480);

/// How long one attempt to fetch a source may take, with what is built of it.
const LONGEST_FETCH: Duration = Duration::from_secs(420);

/// How often a source is tried.
const ATTEMPTS: u32 = 3;

/// Names the directory in which sources are kept, instead of one in the target directory.
const SOURCES: &str = "SHIELING_REALWORK_SOURCES";

/// Where the distribution's programs are found, as all but the Rust toolchain is.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

/// A directory that is new, whatever stood there.
pub(super) fn fresh(path: PathBuf) -> anyhow::Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

/// In which way a text runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Outside,
    Inside,
    /// Inside, where changes are committed after each text.
    Staged,
}

impl Place {
    /// What it is called behind a step's name.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Outside | Self::Inside => "",
            Self::Staged => ", with `--changes commit`",
        }
    }
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

/// The directory in which sources are kept from run to run.
pub(super) fn sources(base: &Path) -> anyhow::Result<PathBuf> {
    let named = std::env::var_os(SOURCES).filter(|named| !named.is_empty());
    let path = named.map_or_else(|| base.join("sources"), PathBuf::from);
    fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path.canonicalize()?)
}

/// Fetches the sources that these projects need and that are not there yet. A source that cannot be fetched is
/// missing, as a program is.
pub(super) fn fetch(steps: &Steps, names: &[String], kept: &Path) -> anyhow::Result<()> {
    println!("sources are kept in {} ({SOURCES} names another place)", kept.display());
    let mut wanted = Vec::new();
    for source in &steps.sources {
        let stamp = kept.join(format!("{}.fetch", source.name));
        let needed = steps.chosen(names).any(|project| project.uses(&source.name));
        let there =
            kept.join(&source.name).exists() && fs::read_to_string(&stamp).is_ok_and(|text| text == source.fetch);
        if !needed || there {
            continue;
        }
        let lacking = missing(source.needs.iter());
        match lacking.is_empty() {
            true => wanted.push((source, stamp)),
            false => prerequisite::skip(format!("{}: {}", source.name, lacking.join(", "))),
        }
    }
    let queue = Mutex::new(wanted.iter());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("nobody panics with it").next();
                    let Some((source, stamp)) = next else { break };
                    if let Err(error) = fetched(source, kept, stamp) {
                        let why = format!("the source `{}`: {error:#}", source.name);
                        failed.lock().expect("nobody panics with it").push(why);
                    }
                }
            });
        }
    });
    for why in failed.into_inner().expect("nobody panics with it") {
        prerequisite::skip(why);
    }
    Ok(())
}

/// Fetches one source, with as many attempts as it may have.
fn fetched(source: &Source, kept: &Path, stamp: &Path) -> anyhow::Result<()> {
    let start = Instant::now();
    let partial = kept.join(format!("{}.partial", source.name));
    let path = std::env::var("PATH").unwrap_or_default();
    for attempt in 1..=ATTEMPTS {
        let mut command = Command::new("bash");
        command
            .args(["-euo", "pipefail", "-c", &source.fetch])
            .current_dir(fresh(partial.clone())?)
            // What is fetched is used with the distribution's programs.
            .env("PATH", format!("{SYSTEM}:{path}"))
            .stdin(Stdio::null())
            .process_group(0);
        let ended = ended(&mut command, LONGEST_FETCH)?;
        if ended != 0 {
            println!(
                "fetching {}: attempt {attempt} of {ATTEMPTS} ended with {ended}",
                source.name
            );
            std::thread::sleep(Duration::from_secs(5 * u64::from(attempt)));
            continue;
        }
        let mut open = Command::new("chmod");
        if !open.args(["-R", "a+rX"]).arg(&partial).status()?.success() {
            bail!("it cannot be made readable");
        }
        let whole = fresh(kept.join(&source.name))?;
        fs::rename(&partial, &whole)?;
        fs::write(stamp, &source.fetch)?;
        println!("fetched {} ({:.1} s)", source.name, start.elapsed().as_secs_f64());
        return Ok(());
    }
    bail!("it could not be fetched")
}

/// Makes the directory ready, with the program in it.
pub(super) fn begin(base: &Path, program: &Path) -> anyhow::Result<()> {
    fresh(base.join("run"))?;
    for place in ["rust", "sources"] {
        fs::create_dir_all(base.join(place))?;
    }
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

/// Removes what was worked on.
pub(super) fn end(base: &Path) -> anyhow::Result<()> {
    fs::remove_dir_all(base.join("run"))?;
    Ok(())
}

/// Starts us again where the directory has a short path, below which the sources and the Rust toolchain stand as well.
pub(super) fn in_namespace(base: &Path, sources: &Path, names: &[String]) -> anyhow::Result<ExitCode> {
    const MOUNT: &str = "mount --bind \"$2\" \"$1/rust\" && mount --bind \"$3\" \"$1/sources\" && \
                         mount --bind \"$1/run/passwd\" /etc/passwd && mount --rbind \"$1\" \"$4\" && shift 4 && exec \"$@\"";
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = String::from_utf8(sysroot.stdout)?;
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", MOUNT, "sh"])
        .args([
            base.as_os_str(),
            sysroot.trim().as_ref(),
            sources.as_os_str(),
            SHORT.as_ref(),
        ])
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

/// A project, prepared once. Its workspaces are copies, and stand one after another at the path where it was prepared,
/// which what was prepared may hold.
pub(super) struct Prepared<'a> {
    project: &'a Project,
    base: &'a Path,
    place: PathBuf,
    kept: PathBuf,
}

impl<'a> Prepared<'a> {
    pub(super) fn make(project: &'a Project, base: &'a Path, sources: &Path) -> anyhow::Result<Self> {
        let own = fresh(base.join("run").join(&project.name))?;
        let prepared = Self {
            project,
            base,
            place: own.join("place"),
            kept: own.join("kept"),
        };
        let account = Account::all().remove(0);
        let workspace = prepared.at(account);
        fresh(workspace.work.clone())?;
        fresh(workspace.home.clone())?;
        for source in &project.sources {
            let (directory, name) = source.split_once(':').unwrap_or((source, "."));
            let to = match name.strip_prefix("~/") {
                Some(name) => workspace.home.join(name),
                None => workspace.work.join(name),
            };
            fs::create_dir_all(&to)?;
            copy(&sources.join(directory).join("."), &to)?;
        }
        // What a person has who works here.
        let config = "[user]\n\tname = Worker\n\temail = worker@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(workspace.home.join(".gitconfig"), config)?;
        for cache in &project.caches {
            let (directory, name) = cache.split_once(':').context("a cache is `SOURCE:PATH-IN-THE-HOME`")?;
            let link = workspace.home.join(name);
            fs::create_dir_all(link.parent().context("it is below the home")?)?;
            std::os::unix::fs::symlink(sources.join(directory), link)?;
        }
        if let Some(user) = account.number() {
            own_all(&prepared.place, user)?;
        }
        if !project.prepare.is_empty() {
            let text = format!("set -e\n{}", project.prepare);
            let ended = workspace.run(Place::Outside, &[], &text)?;
            if ended.status != 0 {
                bail!("it could not be prepared: {}", ended.told());
            }
        }
        fs::rename(&prepared.place, &prepared.kept)?;
        Ok(prepared)
    }

    fn at(&self, account: Account) -> Workspace {
        Workspace {
            account,
            work: self.place.join("work"),
            home: self.place.join("home"),
            base: self.base.to_path_buf(),
        }
    }

    /// A fresh workspace, as it was prepared, of this user.
    pub(super) fn workspace(&self, account: Account) -> anyhow::Result<Workspace> {
        copy(&self.kept.join("."), &fresh(self.place.clone())?)?;
        if let Some(user) = account.number() {
            own_all(&self.place, user).with_context(|| format!("`{}`", self.project.name))?;
        }
        Ok(self.at(account))
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut copy = Command::new("cp");
    if !copy.args(["-a", "--reflink=auto"]).args([from, to]).status()?.success() {
        bail!("{} cannot be copied", from.display());
    }
    Ok(())
}

/// Gives all of a directory to a user. Archives bring the numbers of whoever made them.
fn own_all(path: &Path, user: u32) -> anyhow::Result<()> {
    let mut own = Command::new("chown");
    if !own
        .args(["-R", &format!("{user}:{user}")])
        .arg(path)
        .status()?
        .success()
    {
        bail!("{} cannot be given away", path.display());
    }
    Ok(())
}

/// Waits for the end of a command that leads a group of its own, and ends what it left in it: its status as a shell says it,
/// 124 if it took longer than this.
fn ended(command: &mut Command, longest: Duration) -> anyhow::Result<i32> {
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
        if start.elapsed() > longest {
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

/// A project's workspace, with a home beside it.
pub(super) struct Workspace {
    account: Account,
    work: PathBuf,
    home: PathBuf,
    base: PathBuf,
}

impl Workspace {
    /// Runs a text. Its output goes to files, so that nothing that it leaves behind keeps us waiting.
    pub(super) fn run(&self, place: Place, options: &[String], text: &str) -> anyhow::Result<Ended> {
        let mut command = match place {
            Place::Outside => Command::new("bash"),
            Place::Inside | Place::Staged => Command::new(self.base.join("run/shieling")),
        };
        let staged: &[&str] = match place {
            Place::Outside | Place::Inside => &[],
            Place::Staged => &["--changes", "commit"],
        };
        match place {
            Place::Outside => command.args(["-c", text]),
            Place::Inside | Place::Staged => command.arg("exec").args(options).args(staged).args(["--", text]),
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
        let status = ended(&mut command, LONGEST)?;
        let read =
            |path: &Path| -> anyhow::Result<String> { Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned()) };
        Ok(Ended {
            status,
            stdout: read(&out)?,
            stderr: read(&err)?,
            took: start.elapsed(),
        })
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
            Account::Root | Account::Other => format!("{}/rust/bin:{SYSTEM}", self.base.display()),
        }
    }
}
