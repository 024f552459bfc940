//! Where links and paths in files lead, within a tree: name by name, each link at its place. Nothing is opened.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::change::{Kind, Tree};

/// How many links the kernel follows on the way to one file.
const LINKS: usize = 40;

/// The longest path that it follows, in bytes.
const LONGEST: usize = 4096;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// To this place in the tree, relative to its root and without links. Nothing need stand there.
    Inside(PathBuf),
    /// Out of the tree, to this absolute path, of which no more is known.
    Outside(PathBuf),
    /// Nowhere, since it goes in a circle.
    Nowhere,
}

/// Follows a path from a directory of the tree.
pub(crate) fn follow(tree: &dyn Tree, root: &Path, directory: &Path, path: &Path) -> io::Result<Destination> {
    // Absolute, since a path may leave the root and come back to it.
    let mut here = root.join(directory);
    let mut ahead: Vec<OsString> = Vec::new();
    let enter = |path: &Path, here: &mut PathBuf, ahead: &mut Vec<OsString>| {
        if path.is_absolute() {
            *here = PathBuf::from("/");
        }
        ahead.extend(path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        }));
    };
    if path.as_os_str().len() > LONGEST {
        return Ok(Destination::Nowhere);
    }
    enter(path, &mut here, &mut ahead);
    let mut links = 0;
    while let Some(name) = ahead.pop() {
        if name == ".." {
            here.pop();
            continue;
        }
        here.push(&name);
        let Ok(inside) = here.strip_prefix(root) else { continue };
        let Some(entry) = tree.entry(inside)? else { continue };
        if let Kind::Link(target) = entry.kind {
            links += 1;
            if links > LINKS || here.as_os_str().len() > LONGEST {
                return Ok(Destination::Nowhere);
            }
            here.pop();
            enter(&target, &mut here, &mut ahead);
        }
    }
    Ok(match here.strip_prefix(root) {
        Ok(inside) => Destination::Inside(inside.to_path_buf()),
        Err(_) => Destination::Outside(here),
    })
}
