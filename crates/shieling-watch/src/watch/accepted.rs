//! What a person has put into a watched tree while something may run there.

use std::path::PathBuf;
use std::sync::Arc;

use shieling_gate::{Kind, Tree as _};

use super::Watch;
use crate::replace::Content;
use crate::tree::{KEPT, LONGEST, Now};

impl Watch {
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
