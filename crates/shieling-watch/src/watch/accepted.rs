//! What the user changed in a watched tree while nothing ran, and what a person has put there while something may run.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use shieling_gate::{Concern, Kind, Tree as _};

use super::{Watch, gate};
use crate::replace::Content;
use crate::tree::{KEPT, LONGEST, Now};

impl Watch {
    /// Takes everything as it is now for what was there: the user changed it. Waits for the first look, if something
    /// changed.
    pub fn accept(&mut self) {
        if !self.may_differ() {
            return;
        }
        self.complete();
        self.is_stale = false;
        self.has_new_later = false;
        // What comes from a directory that could not be read while it was a command's is judged, whoever has opened it.
        let mut unread = BTreeSet::new();
        loop {
            let found = self.look(false);
            let live = Arc::clone(&self.live);
            let now = Now::new(&live);
            let mut all = found.changed;
            all.append(&mut self.later);
            self.remember(found.directories, &found.unlisted);
            for path in &all {
                let concern = gate(&self.plan, &self.before, &now).concern(path);
                if concern.is_ok_and(|concern| concern == Concern::Content) {
                    let _ = now.read(path, LONGEST);
                }
            }
            for path in all {
                match path.ancestors().any(|above| self.unread.contains(above)) {
                    true => {
                        unread.insert(path);
                    }
                    false => self.set(&path, &now),
                }
            }
            if !self.leads_elsewhere() {
                break;
            }
        }
        self.judge_later(unread);
    }

    /// Takes these for the user's, which a person has put there, each only if it is what stands there: what something that
    /// runs has made of it meanwhile is judged as ever. Waits for the first look.
    pub fn accept_contents(&mut self, accepted: &[(PathBuf, Content)]) {
        self.complete();
        let live = Arc::clone(&self.live);
        let now = Now::new(&live);
        for (path, content) in accepted {
            let Ok(Some((entry, _))) = now.node(path) else {
                continue;
            };
            let is_same = match (&entry.kind, content) {
                (Kind::File, Content::File(content, mode)) => {
                    let start = now.read(path, LONGEST);
                    let is_start = start.is_ok_and(|start| content.starts_with(&start));
                    let all = || self.live.read(path, KEPT + 1).ok();
                    entry.mode & 0o7777 == *mode && is_start && all().as_ref() == Some(content)
                }
                (Kind::Link(target), Content::Link(accepted)) => target == accepted,
                _ => false,
            };
            if is_same {
                self.later.remove(path);
                self.half_written.remove(path);
                self.set(path, &now);
            }
        }
    }
}
