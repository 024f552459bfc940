//! The environment that is served here, and what is told of the place.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling::environment::{Environment, Local, Restrictions, Sandbox, Shell, Variables};
use shieling_remote::Surroundings;
use shieling_remote::agent::{Setup, Wanted};

use crate::look;

/// Opens what the setup asks for, or says why that cannot be had here.
pub(crate) async fn open(setup: &Setup) -> Result<(Arc<dyn Environment>, Surroundings), String> {
    let nothing = Variables {
        pass: &[],
        set: &[],
        terminal: false,
    };
    let variables = nothing.build(std::env::vars_os()).map_err(|error| error.to_string())?;
    let home = variables
        .get("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute());
    let workspace = workspace(setup.workspace.as_deref(), home.as_deref())?;
    let shell = Shell::find(setup.shell.as_deref()).map_err(|error| error.to_string())?;
    let restrictions = || {
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
        restrictions.user_name = variables.get("USER").or_else(|| variables.get("LOGNAME")).cloned();
        restrictions
    };
    let mut unconfined = None;
    let environment: Arc<dyn Environment> = match setup.environment {
        Wanted::Local => Arc::new(Local::new(shell.clone()).with_workspace(&workspace)),
        Wanted::Sandbox | Wanted::Auto => {
            // What it takes is tried in one that goes again: the other takes its policy before it starts.
            let tried = Sandbox::new(restrictions(), shell.clone());
            let started = tried.start().await;
            tried.close().await;
            match (started, setup.environment) {
                (Ok(_), _) => Arc::new(Sandbox::new(restrictions(), shell.clone())),
                (Err(error), Wanted::Auto) => {
                    unconfined = Some(whole(&error));
                    Arc::new(Local::new(shell.clone()).with_workspace(&workspace))
                }
                (Err(error), _) => return Err(format!("no sandbox can be had here: {}", whole(&error))),
            }
        }
    };
    let surroundings = Surroundings {
        workspace,
        shell: shell.program().to_owned(),
        variables,
        unconfined,
        shown: setup.show.iter().filter_map(|path| look::shown(path)).collect(),
        unwritable: setup.try_write.iter().filter(|path| !look::is_writable(path)).cloned().collect(),
        removed_itself: setup.remove_itself && look::remove_itself(),
    };
    Ok((environment, surroundings))
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
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let opened = rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).map_err(failed)?;
    let real = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&opened));
    let real = rustix::fs::readlink(real, Vec::new()).map_err(failed)?;
    Ok(PathBuf::from(
        <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(real.into_bytes()),
    ))
}

/// An error and all of its causes.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
