//! A workspace of another user, where root works in it: root has no capability in a sandbox, so every file of
//! another user would be closed to it. It is shown as root's own instead, and what is made in it is that
//! user's.
#![expect(clippy::disallowed_methods, reason = "whose a directory is, is looked up here")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use shieling_jail::plan::{Entry, Foreign, Isolation};

use super::{Restrictions, SandboxError};

/// Others may write, or need not.
const OTHERS_WRITE: u32 = 0o002;

/// What of the places that can be written to belongs to somebody else. `view` is what will be shown.
pub(super) fn of(restrictions: &Restrictions, view: &[Entry]) -> Result<Vec<Foreign>, SandboxError> {
    if !rustix::process::geteuid().is_root() || restrictions.isolation == Isolation::None {
        return Ok(Vec::new());
    }
    let mut foreign = Vec::new();
    let places = [Some(&restrictions.workspace), restrictions.repository.as_ref()];
    for place in places.into_iter().flatten() {
        // What cannot be looked at is refused by whoever shows it.
        let Ok(found) = fs::metadata(place) else { continue };
        if found.uid() == 0 {
            continue;
        }
        let needed = !restrictions.readonly && found.mode() & OTHERS_WRITE == 0;
        if restrictions.isolation == Isolation::Landlock {
            if needed {
                return Err(SandboxError::Unsupported(
                    "the workspace belongs to another user, and root without its capabilities cannot write to it: \
                     run shieling as that user, or with the full isolation, which shows it as root's own",
                ));
            }
            continue;
        }
        let shown = |entry: &Entry| matches!(entry, Entry::Bind { source, .. } if source == place);
        if !view.iter().any(shown) {
            // A home is shown by what is in it, and each of that would have to be mapped.
            if needed {
                return Err(SandboxError::Unsupported(
                    "the workspace is a home of another user, in which root without its capabilities cannot write: \
                     run shieling as that user, or choose a directory below it",
                ));
            }
            continue;
        }
        foreign.push(Foreign {
            source: place.clone(),
            user: found.uid(),
            group: found.gid(),
            needed,
        });
    }
    Ok(foreign)
}
