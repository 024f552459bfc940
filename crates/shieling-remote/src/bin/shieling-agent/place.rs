//! The environment that is served here, and what is told of the place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use shieling::environment::{
    Environment, Isolation, Local, Restrictions, Sandbox, SandboxError, Shell, Variables, toolchain_variables,
};
use shieling::outcome::with_causes;
use shieling::process::{JailError, JailLayer};
use shieling_remote::Surroundings;
use shieling_remote::agent::{Setup, Wanted};

use crate::look;

/// Opens what the setup asks for, or says why that cannot be had here.
pub(crate) async fn open(setup: &Setup) -> Result<(Arc<dyn Environment>, Surroundings), String> {
    // What there is only where there is no terminal, the near side adds.
    let nothing = Variables {
        pass: &[],
        set: &[],
        terminal: true,
    };
    let mut variables = nothing.build(std::env::vars_os()).map_err(|error| error.to_string())?;
    let home = variables
        .get("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute());
    let workspace = workspace(setup.workspace.as_deref(), home.as_deref())?;
    let found = match &setup.shell {
        Some(_) => Shell::find(setup.shell.as_deref()),
        None => Shell::first_of(usual(&variables)),
    };
    let shell = match found {
        Ok(shell) => Some(shell),
        Err(error) if setup.shell.is_some() => return Err(error.to_string()),
        Err(_) => None,
    };
    let local = || {
        let local = match &shell {
            Some(shell) => Local::new(shell.clone()),
            None => Local::without_shell(),
        };
        // Where this program shares a limit with commands, it is to outlive them, and to tell why they ended.
        if setup.watch_memory {
            local.killed_first()
        } else {
            local
        }
    };
    let restrictions = |shell: &Shell| {
        let mut restrictions = Restrictions::new(&workspace, shell.program());
        restrictions.network = setup.network;
        restrictions.isolation = setup.isolation;
        restrictions.read.clone_from(&setup.read);
        restrictions.write.clone_from(&setup.write);
        restrictions.limits = setup.limits;
        restrictions.open_protected = setup.open_protected;
        restrictions.allow_home = setup.allow_home;
        restrictions.path = variables.get("PATH").cloned().unwrap_or_default();
        restrictions.home.clone_from(&home);
        restrictions.roots = roots();
        restrictions.own = own();
        restrictions.user_name = variables.get("USER").or_else(|| variables.get("LOGNAME")).cloned();
        restrictions
    };
    let mut unconfined = None;
    let environment: Arc<dyn Environment> = match setup.environment {
        Wanted::Local => Arc::new(local().with_workspace(&workspace)),
        Wanted::Sandbox | Wanted::Auto => match &shell {
            None if setup.environment == Wanted::Sandbox => return Err(NO_SHELL.to_owned()),
            None => {
                unconfined = Some(NO_SHELL.to_owned());
                Arc::new(local().with_workspace(&workspace))
            }
            Some(shell) => {
                // What it takes is tried in one that goes again: the other takes its policy before it starts.
                let tried = Sandbox::new(restrictions(shell), shell.clone());
                let started = tried.start().await;
                tried.close().await;
                match (started, setup.environment) {
                    (Ok(_), _) => {
                        let sandbox = Sandbox::new(restrictions(shell), shell.clone());
                        let home = sandbox.home().to_string_lossy().into_owned();
                        if setup.isolation == Isolation::Full {
                            // Its own, with the user's name and address.
                            variables.insert("GIT_CONFIG_SYSTEM".to_owned(), "/etc/gitconfig".to_owned());
                        }
                        variables.insert("HOME".to_owned(), home);
                        Arc::new(sandbox)
                    }
                    // A kernel that cannot, and not a wish that no sandbox would grant.
                    (Err(error @ SandboxError::Jail(_)), Wanted::Auto) => {
                        let empty = |directory: &Path| {
                            let mut empty = Restrictions::new(directory, shell.program());
                            empty.network = setup.network;
                            empty.isolation = setup.isolation;
                            empty
                        };
                        unconfined = Some(incapable(&with_causes(&error), shell, empty).await?);
                        Arc::new(local().with_workspace(&workspace))
                    }
                    (Err(error), _) => return Err(format!("no sandbox can be had here: {}", with_causes(&error))),
                }
            }
        },
    };
    let surroundings = Surroundings {
        workspace,
        shell: shell.map(|shell| shell.program().to_owned()).unwrap_or_default(),
        variables,
        unconfined,
        shown: setup.show.iter().filter_map(|path| look::shown(path)).collect(),
        unwritable: setup
            .try_write
            .iter()
            .filter(|path| !look::is_writable(path))
            .cloned()
            .collect(),
        system: shieling::environment::kernel(),
        os_release: os_release(),
    };
    Ok((environment, surroundings))
}

/// Why this machine can have no sandbox at all, seen by one over an empty directory.
///
/// A command can leave a workspace over which no sandbox can be made, and processes can be short for a moment. Neither
/// may take the sandbox from the next session.
///
/// # Errors
/// What to tell where such a sandbox works, or where it was not seen whether one would.
async fn incapable(error: &str, shell: &Shell, restrictions: impl Fn(&Path) -> Restrictions) -> Result<String, String> {
    let unseen = |why: &str| {
        format!(
            "no sandbox can be had here now: {error}; nothing runs without one, since {why}; instead: mend that on that \
             machine, and try again"
        )
    };
    let Some(empty) = Empty::make() else {
        return Err(unseen(
            "no empty directory can be made in which another one could be tried",
        ));
    };
    let reference = Sandbox::new(restrictions(&empty.0), shell.clone());
    let started = reference.start().await;
    reference.close().await;
    match started {
        Ok(_) => Err(format!(
            "no sandbox can be had over this workspace or with these options: {error}; this machine can have sandboxes, \
             so nothing runs without one; instead: log in as the owner of what is named, or let this user in with \
             `chmod u+rwX`, or choose another workspace"
        )),
        Err(SandboxError::Jail(without)) if is_lasting(&without) => Ok(with_causes(&without)),
        Err(without) => Err(unseen(&format!("that may be over soon ({})", with_causes(&without)))),
    }
}

/// Whether a jail fails for what the machine is, and not for what it is short of at the moment.
fn is_lasting(error: &JailError) -> bool {
    let passes = |errno: i32| {
        let errno = Errno::from_raw_os_error(errno);
        [
            Errno::AGAIN,
            Errno::NOMEM,
            Errno::MFILE,
            Errno::NFILE,
            Errno::INTR,
            Errno::IO,
            Errno::DQUOT,
        ]
        .contains(&errno)
    };
    match error {
        // `user.max_user_namespaces=0` is told as a lack of space.
        JailError::Refused(refusal) if refusal.errno == Errno::NOSPC.raw_os_error() => refusal.layer == JailLayer::User,
        JailError::Refused(refusal) => !passes(refusal.errno),
        JailError::Program { source, .. } => source.raw_os_error().is_some_and(|errno| !passes(errno)),
        // It was ended from outside.
        _ => false,
    }
}

/// An empty directory, removed when dropped.
struct Empty(PathBuf);

impl Empty {
    fn make() -> Option<Self> {
        let name = format!("shieling-empty-{}", std::process::id());
        let places = ["/tmp", "/var/tmp", "/dev/shm", "/run"].map(|place| Path::new(place).join(&name));
        let made = places
            .into_iter()
            .find(|path| rustix::fs::mkdir(path, Mode::RWXU).is_ok())?;
        Some(Self(made))
    }
}

impl Drop for Empty {
    fn drop(&mut self) {
        // It stays if something was put into it meanwhile.
        let _ = rustix::fs::rmdir(&self.0);
    }
}

/// Why there is no sandbox where no shell is.
const NO_SHELL: &str = "a sandbox runs commands by a shell, and there is none here";

/// Where a shell is looked for: bash wherever it is, before any other.
fn usual(variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let path = variables.get("PATH").map_or("", String::as_str);
    let named = path.split(':').map(|place| Path::new(place).join("bash"));
    let all = ["/bin/bash", "/usr/bin/bash"]
        .map(PathBuf::from)
        .into_iter()
        .chain(named);
    all.chain(["/bin/sh", "/usr/bin/sh", "/busybox/sh"].map(PathBuf::from))
        .collect()
}

/// Where toolchains stand that say so by a variable.
fn roots() -> BTreeMap<String, PathBuf> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from)?;
        path.is_absolute().then(|| (name.to_owned(), path))
    };
    toolchain_variables().filter_map(absolute).collect()
}

/// The directory that this program was sent to, if it was: no command is to change it.
fn own() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let sent = program.filter(|program| {
        let name = program.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("agent-"))
    });
    sent.and_then(|program| Some(program.parent()?.to_owned()))
        .into_iter()
        .collect()
}

/// What the system says of itself; nothing if it does not.
fn os_release() -> String {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut text = vec![0; 4096];
    let file = rustix::fs::open("/etc/os-release", flags, Mode::empty());
    let read = file.and_then(|file| rustix::io::read(file, &mut text[..])).unwrap_or(0);
    text.truncate(read);
    String::from_utf8_lossy(&text).into_owned()
}

/// The directory that is worked in, without links; relative ones begin at the home, which is it without one.
fn workspace(asked: Option<&Path>, home: Option<&Path>) -> Result<PathBuf, String> {
    let home = || home.ok_or("the workspace is relative to a home, and HOME is not set here");
    let path = match asked {
        Some(path) if path.is_absolute() => path.to_owned(),
        Some(path) => home()?.join(path),
        None => home()?.to_owned(),
    };
    let failed = |errno| format!("the workspace `{}` cannot be opened: {errno}", path.display());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&path, flags, Mode::empty()).map_err(failed)?;
    let real = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&opened));
    let real = rustix::fs::readlink(real, Vec::new()).map_err(failed)?;
    Ok(PathBuf::from(
        <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(real.into_bytes()),
    ))
}
