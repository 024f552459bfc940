//! Why a view cannot be made.

use std::io;
use std::path::{Path, PathBuf};

/// A view that cannot be made of what is asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// The workspace would lie over the system.
    #[error(
        "the workspace `{}` would lie over `{}`, which the sandbox needs for itself; choose a directory below it, or of your own",
        .workspace.display(), .system
    )]
    WorkspaceIsSystem {
        /// The workspace.
        workspace: PathBuf,
        /// What it would lie over.
        system: &'static str,
    },
    /// The workspace is a home, or holds one, and nobody asked for that.
    #[error(
        "the workspace `{}` {}, where files that start by themselves and credentials stand; \
         choose a project directory, or allow it with `--allow-home`: nothing can then be made or replaced at the home's top, \
         what begins with a dot is read-only, and all of it can be read",
        .workspace.display(), is_or_holds(.workspace, .home)
    )]
    WorkspaceIsHome {
        /// The workspace.
        workspace: PathBuf,
        /// The home.
        home: PathBuf,
    },
    /// The workspace is a part of a home that is not worked in as such.
    #[error(
        "the workspace `{}` is `{}` of the home directory `{}`, where files that start by themselves and credentials \
         stand; choose a project directory, or allow it with `{}`",
        .workspace.display(), .name.display(), .home.display(), part_cure(*.starts, *.readonly)
    )]
    WorkspaceIsInHome {
        /// The workspace.
        workspace: PathBuf,
        /// The home.
        home: PathBuf,
        /// The name in the home by which the workspace is reached.
        name: PathBuf,
        /// Whether something there is known to start by itself.
        starts: bool,
        /// Whether nothing was to be changed.
        readonly: bool,
    },
    /// What is in the workspace cannot be seen, and so not be protected.
    #[error(
        "cannot see what tools of yours run code from in `{}`: {why}; {}choose another workspace", .path.display(), way_in(.path)
    )]
    Closed {
        /// What cannot be read or searched.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// The workspace is a home, or holds one, where names cannot be held.
    #[error(
        "the workspace `{}` {}, and `--isolation landlock` cannot keep files that start by themselves from being \
         made in it; choose a project directory, `--readonly`, or full isolation with `--allow-home`",
        .workspace.display(), is_or_holds(.workspace, .home)
    )]
    HomeNotHeld {
        /// The workspace.
        workspace: PathBuf,
        /// The home.
        home: PathBuf,
    },
    /// A home has too many entries for each to be shown by itself.
    #[error(
        "`{}` is part of a home with more than {most} entries, each of which is shown by itself under `--allow-home`; \
         choose a project directory", .directory.display()
    )]
    HomeTooLarge {
        /// Where they were counted.
        directory: PathBuf,
        /// How many there may be.
        most: usize,
    },
    /// A home cannot be listed.
    #[error("`{}` is part of a home and cannot be listed; choose a project directory", .directory.display())]
    HomeUnreadable {
        /// Which directory of it.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The workspace is no absolute path without links and `..`, or no directory.
    #[error("the workspace `{}` is not a directory by its absolute path without `..`", .workspace.display())]
    NoWorkspace {
        /// The workspace.
        workspace: PathBuf,
    },
    /// Everything was asked to be readable.
    #[error("`--read {}` would show the whole host, with every key on it; name the directories that are needed", .path.display())]
    ReadsEverything {
        /// What was asked for.
        path: PathBuf,
    },
    /// The host's processes or devices were asked to be readable.
    #[error("`--read {}` is refused: the sandbox has a `{}` of its own, and this host's shows other processes and devices", .path.display(), .system)]
    ReadsSystem {
        /// What was asked for.
        path: PathBuf,
        /// Where it lies.
        system: &'static str,
    },
    /// What was asked to be readable is not there, or not by an absolute path.
    #[error("`--read {}`: it cannot be shown; name something that is there, by its absolute path", .path.display())]
    NotReadable {
        /// What was asked for.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was asked to be readable is reached by a link that lies in the workspace.
    #[error(
        "`--read {}` leads out of the workspace by a link in it, which a command can have laid; name `{}` itself",
        .path.display(), .real.display()
    )]
    ReadsThroughWorkspace {
        /// What was asked for.
        path: PathBuf,
        /// Where it leads.
        real: PathBuf,
    },
    /// What was named as the repository of the workspace is no git directory that could be shown.
    #[error("`{}` cannot be shown as the workspace's repository: it is no git directory by its absolute path, outside of the workspace", .path.display())]
    NotARepository {
        /// What was named.
        path: PathBuf,
    },
    /// What was asked to be writable is not made so.
    #[error("`--write {}` is refused: {because}; {instead}", .path.display())]
    NotWritable {
        /// What was asked for.
        path: PathBuf,
        /// Why.
        because: String,
        /// What to do.
        instead: &'static str,
    },
    /// A kept home cannot be used.
    #[error(
        "the kept home cannot be used: `{}` is no plain file or directory of yours alone, and something is to be \
         shown there; look at it and move it away, or leave `--home persistent` out", .path.display()
    )]
    KeptHome {
        /// Where, on the host.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A kept home would hold nothing.
    #[error("`--home persistent` cannot hold here: {because}; leave it out")]
    NoKeptHome {
        /// Why.
        because: &'static str,
    },
    /// More is to be protected than is looked after. What is beyond the bound would not be protected.
    #[error(
        "cannot protect all that tools of yours run code from: `{}` has more than {bound} {what}; choose a smaller \
         workspace with `--workspace DIR`, or start with `--open-protected`, which protects none of it",
        .place.display()
    )]
    Exceeded {
        /// Where there is so much.
        place: PathBuf,
        /// Of what.
        what: &'static str,
        /// How many there may be.
        bound: usize,
    },
    /// A directory in which names are protected cannot be held.
    #[error("cannot look after the protected names in `{}`", .path.display())]
    NotHeld {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// This host's `/etc` cannot be listed.
    #[error("cannot list this host's `/etc`, of which the sandbox shows a part")]
    Etc(#[source] io::Error),
}

pub(super) fn is_or_holds(workspace: &Path, home: &Path) -> String {
    if workspace == home {
        "is a home directory".to_owned()
    } else if workspace.starts_with(home) {
        format!("is a part of the home directory `{}`", home.display())
    } else {
        format!("holds the home directory `{}`", home.display())
    }
}

/// What opens a part of a home: what starts by itself stays read-only until that is opened too.
fn part_cure(starts: bool, readonly: bool) -> &'static str {
    match starts && !readonly {
        true => "--allow-home --open-protected",
        false => "--allow-home",
    }
}

/// How its user can be let into what is closed to them, if it is theirs.
fn way_in(path: &Path) -> String {
    let uid = rustix::process::geteuid().as_raw();
    match rustix::fs::lstat(path) {
        Ok(found) if found.st_uid != uid => format!("it belongs to another user ({}), so ", found.st_uid),
        _ => format!("let its owner in with `chmod u+rwX {}`, or ", path.display()),
    }
}
