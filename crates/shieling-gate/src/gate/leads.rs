//! What the settings of a repository that were there before lead to.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::*;

impl Gate<'_> {
    pub(super) fn of_leads(&self, change: &Change<'_>, after: &Entry) -> Held {
        if !matches!(after.kind, Kind::File | Kind::Link(_)) {
            return Ok(None);
        }
        let directory = self.directory(Side::After, change.path.parent().unwrap_or(Path::new("")))?;
        let Some(lead) = directory.leads.iter().find(|lead| lead.is_to(change.path)) else {
            return Ok(None);
        };
        let before = match change.from.is_none_or(|from| from == change.path) {
            true => self.content_before(change, None)?,
            false => None,
        };
        if let Kind::Link(_) = after.kind {
            let same = change.before.as_ref() == Some(after);
            return Ok((!same).then(|| self.led(change.path)));
        }
        match lead.kind {
            LeadKind::GitSettings => {
                let content = self.content_after(change.path)?;
                let git = change.path.parent().unwrap_or(Path::new(""));
                self.settings(change.path, git, before.as_deref().unwrap_or_default(), &content)
            }
            LeadKind::Code | LeadKind::Program | LeadKind::Folder => {
                let same = match &before {
                    Some(before) if change.before.as_ref().is_some_and(|was| was.size == after.size) => {
                        *before == self.content_after(change.path)?
                    }
                    Some(_) | None => false,
                };
                let mode = change
                    .before
                    .as_ref()
                    .is_some_and(|was| was.mode & 0o111 == after.mode & 0o111);
                Ok((!same || !mode).then(|| self.led(change.path)))
            }
        }
    }

    fn led(&self, path: &Path) -> HeldBack {
        held(
            "git.named",
            format!(
                "`{}` is run by a setting of git, or of the user, that names it",
                shown_path(path)
            ),
            PERSON,
        )
    }

    /// What the settings of the repository at the top of whose working tree a directory is lead to, as they were before.
    pub(super) fn repository(&self, top: &Path) -> io::Result<Rc<[Lead]>> {
        if let Some(known) = self.repositories.borrow().get(top) {
            return Ok(Rc::clone(known));
        }
        let leads: Rc<[Lead]> = self.leads_of(Side::Before, top)?.into();
        self.repositories
            .borrow_mut()
            .insert(top.to_path_buf(), Rc::clone(&leads));
        Ok(leads)
    }

    /// What a change of this path, which passed, lets tools of the user run or read settings from that stands elsewhere: by
    /// settings of git that are there now, or by a link.
    ///
    /// # Errors
    /// If the trees cannot be read.
    pub fn led_to_by(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let Some(entry) = self.around.after.entry(path)? else {
            return Ok(Vec::new());
        };
        let above = path.parent().unwrap_or(Path::new(""));
        if let Kind::Link(target) = &entry.kind {
            let directory = self.directory(Side::After, above)?;
            let is_of_tools = self.spelled(path, &directory.opened, names::leads_to_row);
            if is_of_tools
                && let Destination::Inside(inside) = way::follow(self.around.after, self.around.root, above, target)?
            {
                return Ok(vec![inside]);
            }
            return Ok(self.opened_by(path)?.map(|lead| lead.path).into_iter().collect());
        }
        let mut found = Vec::new();
        for place in self.places(Side::After, path)? {
            let top = match place.role {
                Role::Pointer => place.git.as_path(),
                Role::Settings | Role::CommonDirectory | Role::Head => match place.git.file_name() {
                    Some(name) if git::is_git_name(name) => place.git.parent().unwrap_or(Path::new("")),
                    Some(_) | None => place.git.as_path(),
                },
                _ => continue,
            };
            let before = self.repository(top)?;
            let after = self.leads_of(Side::After, top)?;
            found.extend(
                after
                    .into_iter()
                    .filter(|lead| !before.contains(lead))
                    .map(|lead| lead.path),
            );
        }
        Ok(found)
    }

    fn leads_of(&self, side: Side, top: &Path) -> io::Result<Vec<Lead>> {
        let before = self.tree(side);
        let follow = |from: &Path, path: &Path| -> io::Result<Option<PathBuf>> {
            Ok(match way::follow(before, self.around.root, from, path)? {
                Destination::Inside(inside) => Some(inside),
                Destination::Outside(_) | Destination::Nowhere => None,
            })
        };
        let pointer = top.join(".git");
        let git = match before.entry(&pointer)?.map(|entry| entry.kind) {
            Some(Kind::Directory) => Some(pointer),
            Some(Kind::File) => {
                let text = before.read(&pointer, LONGEST)?;
                let text = String::from_utf8_lossy(&text).into_owned();
                match text.strip_prefix("gitdir:") {
                    Some(path) => follow(top, Path::new(path.trim()))?,
                    None => None,
                }
            }
            Some(Kind::Link(target)) => follow(top, &target)?,
            Some(Kind::Fifo | Kind::Socket | Kind::Device) => None,
            None => self.is_layout(side, top)?.then(|| top.to_path_buf()),
        };
        let Some(git) = git else { return Ok(Vec::new()) };
        let common = match before.entry(&git.join("commondir"))?.map(|entry| entry.kind) {
            Some(Kind::File) => {
                let text = before.read(&git.join("commondir"), LONGEST)?;
                follow(&git, Path::new(String::from_utf8_lossy(&text).trim()))?
            }
            _ => None,
        };
        let common = common.unwrap_or_else(|| git.clone());
        let mut ahead = vec![
            common.join("config"),
            common.join("config.worktree"),
            git.join("config.worktree"),
        ];
        let mut seen = BTreeSet::new();
        let mut leads = Vec::new();
        while let Some(file) = ahead.pop() {
            if !seen.insert(file.clone()) || before.entry(&file)?.is_none_or(|entry| entry.kind != Kind::File) {
                continue;
            }
            if seen.len() > INCLUDED {
                return Err(io::Error::other("the settings of a repository include too many files"));
            }
            let here = file.parent().unwrap_or(Path::new("")).to_path_buf();
            let mut lead = |from: &Path, path: &Path, kind: LeadKind| -> io::Result<Option<PathBuf>> {
                let found = follow(from, path)?.filter(|found| !top.starts_with(found));
                if let Some(found) = &found {
                    leads.push(Lead {
                        path: found.clone(),
                        kind,
                    });
                }
                Ok(found)
            };
            for setting in settings::parse(&before.read(&file, LONGEST)?) {
                if setting.is_include() {
                    for path in setting.paths() {
                        ahead.extend(lead(&here, &path, LeadKind::GitSettings)?);
                    }
                } else if setting.is("core.hookspath") {
                    for path in setting.paths() {
                        lead(top, &path, LeadKind::Code)?;
                    }
                } else if self.runs(&setting) {
                    for word in setting.words() {
                        lead(top, &word, setting.kind_of_words())?;
                    }
                }
            }
        }
        Ok(leads)
    }

    fn runs(&self, setting: &Setting) -> bool {
        git_keys::holds(setting, &|_| true).is_some()
    }
}
