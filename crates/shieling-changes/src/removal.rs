//! Removes from a layer what was committed of it. Whoever does that may be killed at any moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::node::Node;
use crate::set::ChangeSet;

impl ChangeSet {
    /// Removes from the layer what was committed of it and is as it was then, so that it is not committed again over what
    /// the user makes of it. Nobody may work in the set. `is_all`: whatever is not in a layer's directory that hides the
    /// workspace's was committed as deleted.
    pub(crate) fn remove_committed(
        &self,
        committed: &BTreeMap<PathBuf, Option<Node>>,
        is_all: bool,
    ) -> Result<(), ChangesError> {
        let upper = self.layer()?;
        let is_directory = |path: &Path| {
            let committed = committed.get(path).and_then(Option::as_ref);
            committed.is_some_and(Node::is_directory)
        };
        let (mut directories, mut removed, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        let mut last: Option<(&Path, Option<Directory>)> = None;
        // What is in a directory comes before it.
        for (path, layer) in committed.iter().rev() {
            let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            if last.as_ref().is_none_or(|(known, _)| *known != above) {
                let is_hidden = is_hidden(&upper, above, &is_directory, is_all)?;
                let directory = upper.beneath(above).doing("open", above)?;
                last = Some((above, directory.filter(|_| !is_hidden)));
            }
            let Some((_, Some(parent))) = &last else { continue };
            let Some(now) = parent.look(name).doing("look at", path)? else {
                if layer.is_some() && !is_all && is_hiding(&upper, above)? {
                    deleted.push(path);
                }
                continue;
            };
            let is_as_it_was = match layer {
                Some(layer) if layer.is_directory() => now.is_directory(),
                Some(layer) => layer.is_untouched(&now),
                None => parent.is_whiteout(name, &now),
            };
            match is_as_it_was {
                true if now.is_directory() => directories.push(path),
                true => removed.push(path),
                false => {}
            }
        }
        // What commands deleted since has no mark in a directory that hides all that lies below it.
        for path in deleted {
            if let Some((parent, name)) = upper.parent_of(path).doing("open", path)? {
                parent.white_out(name).doing("mark", path)?;
            }
        }
        // Before anything is removed in them: while they hide what lies below, that would count as deleted by a command,
        // and whoever does this may be killed at any moment.
        for path in &directories {
            if let Some((parent, name)) = upper.parent_of(path).doing("open", path)? {
                parent.unmark(name).doing("take the marks off", path)?;
            }
        }
        // Only now: the other names of a file change with each that is removed.
        let mut last: Option<(&Path, Option<Directory>)> = None;
        for path in removed {
            let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            if last.as_ref().is_none_or(|(known, _)| *known != above) {
                last = Some((above, upper.beneath(above).doing("open", above)?));
            }
            if let Some((_, Some(parent))) = &last {
                parent.unlink_if_there(name).doing("remove", path)?;
            }
        }
        for path in directories {
            if let Some((parent, name)) = upper.parent_of(path).doing("open", path)? {
                parent.remove_if_empty(name).doing("remove", path)?;
            }
        }
        Ok(())
    }
}

/// Whether a directory of a layer, or one that it lies in, hides what lies below it.
fn is_hiding(upper: &Directory, directory: &Path) -> Result<bool, ChangesError> {
    for above in above(directory) {
        if hides(upper, above)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A directory and those that it lies in, without the top.
fn above(directory: &Path) -> impl Iterator<Item = &Path> {
    directory.ancestors().filter(|above| !above.as_os_str().is_empty())
}

/// Whether a directory of a layer hides what lies below it by its own mark.
fn hides(upper: &Directory, directory: &Path) -> Result<bool, ChangesError> {
    let here = upper.beneath(directory).doing("open", directory)?;
    Ok(here.is_some_and(|here| here.is_opaque()))
}

/// Whether what is not in a directory of a layer is deleted there, since the layer hides what lies below. If all of that
/// was committed, it hides it no longer. What was committed as a directory hides nothing that was there.
fn is_hidden(
    upper: &Directory,
    directory: &Path,
    is_committed: &dyn Fn(&Path) -> bool,
    is_all: bool,
) -> Result<bool, ChangesError> {
    let mut is_hidden = false;
    for above in above(directory).filter(|above| !is_committed(above)) {
        if !hides(upper, above)? {
            continue;
        }
        match upper.parent_of(above).doing("open", above)? {
            Some((parent, name)) if is_all => parent.unmark(name).doing("take the marks off", above)?,
            _ => is_hidden = true,
        }
    }
    Ok(is_hidden)
}
