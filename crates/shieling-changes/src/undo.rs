//! What an undo must not bring about: that something runs which was written since.

use std::path::{Path, PathBuf};

use shieling_gate::{Change as JudgedChange, Decision, Gate};

use crate::apply::Places;
use crate::error::{ChangesError, While as _};
use crate::node::Time;
use crate::scan::{self, Descent};
use crate::set::{Surroundings, entry};
use crate::tree::Layered;

/// How many entries are looked at in what comes to be run again; with more, it counts as changed.
const ENTRIES: usize = 10_000;

/// Fails if what an undo put back makes a repository of a directory in which something was changed since that git would
/// run, or leads a tool of the user to such a place. What it put back was the user's, and passes by itself.
pub(crate) fn check(
    places: &Places<'_>,
    surroundings: &Surroundings,
    root: &Path,
    committed: Option<Time>,
) -> Result<(), ChangesError> {
    let before = Layered::new(Some(places.upper), places.workspace);
    let after = Layered::new(None, places.workspace);
    let gate = Gate::new(surroundings.of_gate(root, &before, &after));
    // What leads somewhere, and where to.
    let mut led: Vec<(PathBuf, PathBuf)> = Vec::new();
    scan::scan(places.upper, places.workspace, &mut |found| {
        let path = &found.change.path;
        let decision = gate.judge(&JudgedChange {
            path,
            from: None,
            before: entry(found, &found.change.new, found.upper)?,
            after: entry(found, &found.change.old, found.workspace)?,
        });
        if let Decision::HeldBack(held) = decision
            && held.rule == shieling_gate::LAYOUT
        {
            return Err(ChangesError::Completes {
                path: path.clone(),
                because: held.because,
            });
        }
        let to = gate.led_to_by(path).doing("read", path)?;
        led.extend(to.into_iter().map(|to| (path.clone(), to)));
        Ok(Descent::Enter)
    })?;
    for (path, to) in led {
        if let Some(changed) = changed_since(places, &to, committed)? {
            let because = format!(
                "with it a tool runs `{}`, or reads settings there, which was changed since",
                changed.display()
            );
            return Err(ChangesError::Completes { path, because });
        }
    }
    Ok(())
}

/// What was changed at or below a path since then, but for what the undo itself put back there.
fn changed_since(places: &Places<'_>, path: &Path, committed: Option<Time>) -> Result<Option<PathBuf>, ChangesError> {
    let mut ahead = vec![path.to_path_buf()];
    let mut left = ENTRIES;
    while let Some(here) = ahead.pop() {
        let Some(node) = places.workspace.look_beneath(&here).doing("look at", &here)? else {
            continue;
        };
        if left == 0 {
            return Ok(Some(path.to_path_buf()));
        }
        left -= 1;
        if node.is_directory() {
            if let Some(directory) = places.workspace.beneath(&here).doing("open", &here)? {
                let names = directory.names().doing("list", &here)?;
                ahead.extend(names.into_iter().map(|name| here.join(name)));
            }
            continue;
        }
        // In the layer stands what the set made of it.
        let is_own = places.upper.look_beneath(&here).doing("look at", &here)?.is_some();
        if !is_own && committed.is_none_or(|committed| node.changed > committed) {
            return Ok(Some(here));
        }
    }
    Ok(None)
}
