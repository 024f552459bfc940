//! Shows a directory of another user of the host as this user's own, by a mount that maps users: what is made in
//! it becomes the other user's. For root, who has all users outside and only itself in a jail.
//!
//! Done by the monitor, which alone has the host's capabilities, on copies of the mounts; nothing of the host
//! itself changes. Refuses what this file system cannot do, with the cure.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, WaitOptions};
use shieling_jail::message::Layer;
use shieling_jail::plan::Foreign;

use crate::refusal::{Step, refuse};
use crate::sys::{self, Copied};
use crate::view;

/// How many there may be: each is a descriptor in one message.
const MOST: usize = 5;

/// A copy of each, in order. One that can be shown as it is where it has to, is.
pub(crate) fn mounts(foreign: &[Foreign]) -> Step<Vec<OwnedFd>> {
    if foreign.len() > MOST {
        return refuse(
            Layer::Start,
            format!(
                "{} directories of other users are to be shown, of at most {MOST}",
                foreign.len()
            ),
        );
    }
    foreign.iter().map(mount).collect()
}

/// What [`mounts`] gave, by the places that it shows.
pub(crate) fn shown(foreign: &[Foreign], mounts: Vec<OwnedFd>) -> Vec<(PathBuf, OwnedFd)> {
    let places = foreign.iter().map(|one| one.source.clone());
    places.zip(mounts).collect()
}

fn mount(foreign: &Foreign) -> Step<OwnedFd> {
    let copy = || view::open_source(&foreign.source, false);
    let mapped = copy().and_then(|copy| {
        sys::map_mount(copy.as_fd(), users(foreign)?.as_fd())?;
        Ok(copy)
    });
    let shown = match mapped {
        Err(_) if !foreign.needed => copy(),
        mapped => mapped,
    };
    shown.or_else(|errno| {
        let (place, user, group) = (foreign.source.display(), foreign.user, foreign.group);
        refuse(
            Layer::Mount,
            format!(
                "showing `{place}`, which belongs to user {user}, as root's own: {errno}; root has no power over \
                 other users' files in a sandbox, so run shieling as that user (`setpriv --reuid {user} --regid \
                 {group} --init-groups`), or make the directory root's (`chown`)"
            ),
        )
    })
}

/// A user namespace in which the owner is this user.
fn users(foreign: &Foreign) -> Result<OwnedFd, Errno> {
    let (waits, held) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    match sys::copy(libc::CLONE_NEWUSER)? {
        Copied::Child => {
            sys::close_for_good(held.as_fd());
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            let _ = rustix::io::read(&waits, &mut [0_u8; 1]);
            sys::exit(0)
        }
        Copied::Parent(number) => {
            let write = |file: &str, text: String| {
                let path = format!("/proc/{number}/{file}");
                let file = rustix::fs::openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
                rustix::io::write(&file, text.as_bytes()).map(drop)
            };
            let user = rustix::process::geteuid().as_raw();
            let group = rustix::process::getegid().as_raw();
            let made = write("uid_map", format!("{} {user} 1", foreign.user))
                .and_then(|()| write("gid_map", format!("{} {group} 1", foreign.group)))
                .and_then(|()| {
                    let path = format!("/proc/{number}/ns/user");
                    rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                });
            if let Some(number) = Pid::from_raw(number) {
                let _ = rustix::process::kill_process(number, Signal::KILL);
                let _ = rustix::process::waitpid(Some(number), WaitOptions::empty());
            }
            made
        }
    }
}
