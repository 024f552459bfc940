//! What a sandbox is asked to be, from the options and the caller's surroundings; and which files of
//! ours must not be seen in it. Starts nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use shieling::changes::Mode;
use shieling::environment::{self, Restrictions, Staging};
use shieling::policy::Policy;

use crate::config::{Printable, files, reason};
use crate::options::{Changes, EnvironmentName, Isolation, Network};
use crate::plan::Plan;
use crate::repository::{self, Repository};
use crate::state;
use crate::words::Failure;

/// Who asks, as far as it decides what is seen in a sandbox.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    /// Where the command will look for programs.
    pub(crate) path: String,
    /// The home.
    pub(crate) home: Option<PathBuf>,
    /// The name.
    pub(crate) name: Option<String>,
    /// Where Shieling keeps outputs.
    pub(crate) state: Option<PathBuf>,
    /// Toolchains that are not at their usual place.
    pub(crate) roots: BTreeMap<String, PathBuf>,
}

impl Caller {
    /// The caller of this process, whose commands get these variables.
    pub(crate) fn of_this_process(variables: &BTreeMap<String, String>, state: Option<PathBuf>) -> Self {
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let named = |name: &str| Some((name.to_owned(), absolute(name)?));
        Self {
            path: variables.get("PATH").cloned().unwrap_or_default(),
            home: absolute("HOME"),
            state,
            name: name(rustix::process::geteuid().as_raw()).or_else(|| std::env::var("USER").ok()),
            roots: environment::toolchain_variables().filter_map(named).collect(),
        }
    }
}

/// The name of a user, as this host's own list has it.
fn name(user: u32) -> Option<String> {
    let list = files::read(Path::new("/etc/passwd"), files::Links::Follow).ok()??;
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(user)).then(|| name.to_owned())
    })
}

/// What the sandbox is asked to be.
pub(crate) fn restrictions(
    plan: &Plan,
    policy: &Policy,
    caller: &Caller,
    shell: &Path,
) -> Result<Restrictions, Failure> {
    if plan.isolation == Isolation::Landlock && !policy.hidden().is_empty() {
        return Err(
            Failure::new("`--ignore` cannot be enforced with `--isolation landlock`; nothing was started")
                .with(
                    "because",
                    "files can only be hidden in a view of their own, and this isolation does without one",
                )
                .with("instead", "leave one of them out"),
        );
    }
    let mut restrictions = Restrictions::new(&plan.workspace, shell);
    restrictions.network = match plan.network {
        Network::None => environment::Network::None,
        Network::Loopback => environment::Network::Loopback,
        Network::Host => environment::Network::Host,
    };
    restrictions.read = plan.read.iter().map(|path| clean(path)).collect::<Result<_, _>>()?;
    for path in &plan.write {
        let real = writable(path)?;
        // By the name it was given it is seen as well, as what is only read is.
        let given: PathBuf = path.components().collect();
        if real != given && given.components().all(|part| part != std::path::Component::ParentDir) {
            restrictions.read.push(given);
        }
        restrictions.write.push(real);
    }
    restrictions.path = caller.path.clone();
    restrictions.home = caller.home.clone();
    restrictions.user_name = caller.name.clone();
    restrictions.roots = caller.roots.clone();
    restrictions.limits = plan.limits;
    restrictions.isolation = match plan.isolation {
        Isolation::Full => environment::Isolation::Full,
        Isolation::Landlock => environment::Isolation::Landlock,
    };
    if let Some(mode) = staging_mode(plan.changes) {
        let sets = change_sets(caller.state.as_deref(), "--changes direct")?;
        restrictions.staging = Some(Staging::new(mode, sets));
    }
    restrictions.open_protected = plan.open_protected;
    restrictions.allow_home = plan.allow_home;
    restrictions.fixed = plan.fixed.clone();
    restrictions.once = plan.once;
    // Hidden where it stands, so it has to.
    let state = caller.state.clone().filter(|state| files::make(state));
    for root in &restrictions.write {
        // Commands can lay a `.git` file below it, for whoever works there later.
        let _recorded = repository::find(root, state.as_deref());
    }
    match repository::find(&plan.workspace, state.as_deref()) {
        Repository::None => {}
        Repository::Shown(git) => restrictions.repository = Some(git),
        Repository::NotKnown(git) if plan.read.iter().chain(&plan.write).any(|shown| git.starts_with(shown)) => {}
        Repository::NotKnown(git) => not_shown(&plan.workspace, &git)?,
    }
    if plan.keeps_home {
        restrictions.kept_home = Some(kept_home(&plan.workspace, state.as_deref())?);
    }
    let state = state.and_then(|state| files::canonical(&state).ok());
    restrictions.held_back = state.as_deref().map(state::change_sets);
    restrictions.own = state.into_iter().collect();
    Ok(restrictions)
}

fn staging_mode(changes: Changes) -> Option<Mode> {
    match changes {
        Changes::Direct => None,
        Changes::Commit => Some(Mode::Commit),
        Changes::Review => Some(Mode::Review),
        Changes::Discard => Some(Mode::Discard),
    }
}

/// The directory that change sets are kept in, which `instead` does without.
pub(crate) fn change_sets(state: Option<&Path>, instead: &str) -> Result<PathBuf, Failure> {
    let nowhere = |why: String| {
        Failure::new(format!(
            "there is no place to keep change sets in: {why}; nothing was started"
        ))
        .with("instead", format!("use `{instead}`, or set XDG_STATE_HOME"))
    };
    let state = state
        .filter(|state| files::make(state))
        .ok_or_else(|| nowhere("neither XDG_STATE_HOME nor HOME is set, or it cannot be written".to_owned()))?;
    let state = files::canonical(state).map_err(|error| nowhere(reason(&error)))?;
    Ok(state::change_sets(&state))
}

/// Where a path that is to be writable really is.
fn writable(path: &Path) -> Result<PathBuf, Failure> {
    files::canonical(path).map_err(|error| {
        Failure::new(format!(
            "`--write {}` is refused: {}; nothing was started",
            Printable(path),
            reason(&error)
        ))
        .with("because", "what is not there cannot be made writable")
        .with(
            "instead",
            "make it first, outside of the sandbox, or name the directory above it",
        )
    })
}

/// The directory that is the home of this workspace's commands, made if it is not there.
fn kept_home(workspace: &Path, state: Option<&Path>) -> Result<PathBuf, Failure> {
    let nowhere = |why: String| {
        Failure::new(format!(
            "there is no place to keep a home in: {why}; nothing was started"
        ))
        .with("instead", "leave `--home persistent` out, or set XDG_STATE_HOME")
    };
    let state =
        state.ok_or_else(|| nowhere("neither XDG_STATE_HOME nor HOME is set, or it cannot be written".to_owned()))?;
    let homes = state.join("homes");
    let home = homes.join(files::name_of(workspace));
    for directory in [&homes, &home] {
        files::private(directory)
            .map_err(|error| nowhere(format!("`{}`: {}", Printable(directory), reason(&error))))?;
    }
    files::canonical(&home).map_err(|error| nowhere(reason(&error)))
}

/// Tells that git will not work in the sandbox, and why.
fn not_shown(workspace: &Path, git: &Path) -> Result<(), Failure> {
    let (workspace, git) = (Printable(workspace), Printable(git));
    crate::print::write_all(
        std::io::stderr().lock(),
        &format!(
            "note: `{workspace}/.git` leads to `{git}`, which is not shown\n\
             because  a command can have written that file: it was not known before the first command ran there\n\
             instead  if it is yours, show it with `--read {git}`\n"
        ),
    )
}

/// An absolute path without `.` and `..`, which the options may hold: by the file system if there is
/// a `..`, since what that means depends on links.
fn clean(path: &Path) -> Result<PathBuf, Failure> {
    if path.components().any(|part| part == std::path::Component::ParentDir) {
        return files::canonical(path).map_err(|error| {
            Failure::new(format!(
                "`--read {}` cannot be shown: {}; nothing was started",
                Printable(path),
                reason(&error)
            ))
        });
    }
    Ok(path.components().collect())
}

/// Refuses files of ours that a command in the sandbox could see or change, where they cannot be hidden.
pub(crate) fn keep_out(plan: &Plan, state: Option<&Path>) -> Result<(), Failure> {
    if plan.env != EnvironmentName::Sandbox {
        return Ok(());
    }
    if let Some(audit) = &plan.audit
        && let Some(mount) = mount_of(plan, audit)
    {
        return Err(Failure::new(format!(
            "the audit file `{}` would be inside the sandbox, in `{}`; nothing was started",
            Printable(audit),
            Printable(mount)
        ))
        .with("because", "a command could read or rewrite the record of what it did")
        .with(
            "instead",
            "give `--audit` a file outside the workspace and outside every `--read` and `--write` path",
        ));
    }
    // A view of its own hides that directory, which is made before for that.
    if plan.isolation == Isolation::Full {
        return Ok(());
    }
    if let Some(state) = state
        && let Some(mount) = mount_of(plan, state)
    {
        return Err(Failure::new(format!(
            "shieling's own directory `{}` would be inside the sandbox, in `{}`; nothing was started",
            Printable(state),
            Printable(mount)
        ))
        .with(
            "because",
            "a command could read or rewrite the outputs that are kept there",
        )
        .with(
            "instead",
            "choose a directory below it with `--workspace DIR`, or keep that directory elsewhere with \
             XDG_STATE_HOME=DIR",
        ));
    }
    Ok(())
}

/// The path without steps into the workspace and out of it again, as in `../audit.jsonl`: the workspace
/// itself nobody in it can replace.
fn outward(path: &Path, workspace: &Path) -> PathBuf {
    let (mut path, mut root) = (path.to_owned(), Some(workspace));
    while let Some(directory) = root
        && let Ok(rest) = path.strip_prefix(directory)
        && let Ok(rest) = rest.strip_prefix("..")
    {
        root = directory.parent();
        path = root.unwrap_or(directory).join(rest);
    }
    path
}

/// The directory of the host, seen in the sandbox, that decides what this path names.
fn mount_of<'a>(plan: &'a Plan, path: &Path) -> Option<&'a Path> {
    let path = &outward(path, &plan.workspace);
    let shown = plan.read.iter().chain(&plan.write);
    let mut seen = shown.map(PathBuf::as_path).chain([plan.workspace.as_path()]);
    seen.find(|mount| files::leads_through(path, &files::canonical(mount).unwrap_or_else(|_| mount.to_path_buf())))
}
