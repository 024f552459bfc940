//! `/sys/fs/cgroup`: the sandbox's own control groups, read-only, so that language runtimes find the limits.
//!
//! Nothing of the host's groups: the cgroup namespace begins with the sandbox's own. A hierarchy in which it has none
//! lies under an empty directory.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{FileType, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, fsconfig_create, fsconfig_set_flag, fsmount, fsopen};
use shieling_jail::message::Layer;

use super::mount::{NODEV, NOEXEC, NOSUID, RDONLY, attach, copy_of};
use super::root::View;
use crate::limits::Hierarchy;
use crate::refusal::{Step, While as _};
use crate::sys;

/// Where programs look for them.
const PLACE: &str = "/sys/fs/cgroup";
/// In it, where those hierarchies are that the sandbox has no group in.
const UNLIMITED: &str = "unlimited";

impl View {
    /// Shows the groups that this process is in, unless the plan has put something else there.
    pub(crate) fn show_groups(&mut self, hierarchies: &[Hierarchy]) -> Step {
        let place = Path::new(PLACE);
        let doing = || format!("showing `{PLACE}`");
        let found = self.resolve(place, rustix::fs::OFlags::empty(), ResolveFlags::IN_ROOT);
        if hierarchies.is_empty() || !matches!(found, Ok(None)) {
            return Ok(());
        }
        let unlimited = place.join(UNLIMITED);
        let mut covered = None;
        for hierarchy in hierarchies {
            let Ok(mount) = mount(hierarchy) else {
                // Runtimes do not find the limits, which hold all the same.
                self.no_groups = true;
                break;
            };
            let target = match hierarchy.own {
                true => place.join(&hierarchy.controllers),
                false => unlimited.clone(),
            };
            let at = self
                .place(&target, FileType::Directory)
                .or_refuse(Layer::Mount, doing)?;
            self.attach(&mount, &at, &target).or_refuse(Layer::Mount, doing)?;
            if !hierarchy.own {
                covered = Some(at);
            }
        }
        // All that are in this place lie under what is mounted there last.
        covered.map_or(Ok(()), |at| self.cover_groups(&at).or_refuse(Layer::Mount, doing))
    }

    /// Whether they could not be shown.
    pub(crate) fn has_no_groups(&self) -> bool {
        self.no_groups
    }

    fn cover_groups(&self, at: &OwnedFd) -> Result<(), Errno> {
        let cover = copy_of(self.covers.directory.as_fd())?;
        sys::set_mount(cover.as_fd(), RDONLY | NOSUID | NODEV | NOEXEC, false)?;
        attach(&cover, at)
    }
}

fn mount(hierarchy: &Hierarchy) -> Result<OwnedFd, Errno> {
    let controllers = hierarchy.controllers.split(',').filter(|one| !one.is_empty());
    let kind = match hierarchy.controllers.is_empty() {
        true => c"cgroup2",
        false => c"cgroup",
    };
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for controller in controllers {
        fsconfig_set_flag(&context, controller)?;
    }
    fsconfig_create(&context)?;
    let attributes = RDONLY | NOSUID | NODEV | NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
