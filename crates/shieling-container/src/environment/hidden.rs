//! What a policy hides of a workspace that is copied: by its paths, and other names of the same files.
#![expect(
    clippy::disallowed_methods,
    reason = "the workspace is looked through before it is copied"
)]

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling::environment::Hidden;
use shieling_remote::Hides;

/// A file or directory, by its inode.
type Identity = (u32, u32, u64);

/// Looks through a workspace, without links, and returns what is left out of its copy: what is hidden, other hard links
/// of it, and what in the workspace hidden links lead to. May block.
pub(super) fn look(hidden: Arc<dyn Hidden>, workspace: &Path) -> Hides {
    let mut others = HashSet::new();
    let mut unread = vec![(PathBuf::new(), false)];
    while let Some((directory, is_hidden)) = unread.pop() {
        // What cannot be read is not copied.
        let entries = std::fs::read_dir(workspace.join(&directory));
        for entry in entries.into_iter().flatten().flatten() {
            let path = directory.join(entry.file_name());
            let Ok(found) = entry.metadata() else { continue };
            let is_hidden = is_hidden || hidden.hides(&path, found.is_dir());
            if found.is_dir() {
                unread.push((path, is_hidden));
            } else if is_hidden && found.is_symlink() {
                let target = std::fs::canonicalize(workspace.join(&path)).ok();
                let target = target.filter(|target| target.starts_with(workspace) && target != workspace);
                others.extend(
                    target
                        .and_then(|target| std::fs::symlink_metadata(target).ok())
                        .as_ref()
                        .map(identity),
                );
            } else if is_hidden && found.nlink() > 1 {
                others.insert(identity(&found));
            }
        }
    }
    Arc::new(move |path, found| {
        let is_directory = rustix::fs::FileType::from_raw_mode(found.stx_mode.into()).is_dir();
        hidden.hides(path, is_directory) || others.contains(&(found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
    })
}

fn identity(found: &std::fs::Metadata) -> Identity {
    let device = found.dev();
    (rustix::fs::major(device), rustix::fs::minor(device), found.ino())
}
