//! The judge: what holds everywhere, then what a path means to git, and to other tools.

mod leads;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use crate::attributes::drivers;
use crate::change::{Change, Entry, Kind, Tree};
use crate::contents::Wrong;
use crate::decision::{Act, Decision, HeldBack, RuleId};
use crate::git::{self, Place, Role};
use crate::git_keys;
use crate::names::{self, Home, Spelled};
use crate::row::{Judge, Row, Scope};
use crate::settings::{self, LONGEST, Setting};
use crate::surroundings::{Concern, Lead, LeadKind, Surroundings};
use crate::text::{is_controlled, shown, shown_path};
use crate::way::{self, Destination};

/// Judges the changes of one tree. It remembers what it has seen of both trees, so a tree that lives on needs a new one
/// for each look.
pub struct Gate<'a> {
    around: Surroundings<'a>,
    beside: &'a [PathBuf],
    /// Whether changes are judged as they are made, and not all that differs between the trees.
    is_piecemeal: bool,
    layouts: RefCell<[HashMap<PathBuf, bool>; 2]>,
    repositories: RefCell<HashMap<PathBuf, Rc<[Lead]>>>,
    directories: [RefCell<Option<Last>>; 2],
    home: Home,
}

/// The directory that was asked about last.
type Last = (PathBuf, Rc<Directory>);

/// What is known of a directory of one of the trees.
struct Directory {
    /// The git directories in which it lies.
    gits: Vec<PathBuf>,
    /// The leads to it, or into it.
    leads: Vec<Lead>,
    /// The directories among packages that are opened as a folder, in which it lies.
    opened: Vec<PathBuf>,
    /// The rows of the table that its names begin.
    rows: Vec<usize>,
}

/// System directories, whose files are not the user's to write.
pub const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];
/// Further directories whose files are not the user's to write.
const OF_ROOT: &[&str] = &["/etc/alternatives", "/etc/ssl"];

/// Directories for temporary files, where linked trees may have been.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];

/// How many settings that are held back are named beside the first.
const TOLD: usize = 3;

/// How many settings files one repository may include.
const INCLUDED: usize = 100;

/// How many entries are looked at when a directory becomes a git directory; with more, it is held back.
const ENTRIES: usize = 10_000;

/// How many entries are looked at below a link into the directory of a package manager; with more, it is held back.
const PACKAGED: usize = 2_000;

/// How many links into packages are followed; a further one is held back.
const OPENED: usize = 1_000;

/// Which of the two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// The rule about names that make a directory a repository, in which something lies already that git would run.
pub const LAYOUT: RuleId = RuleId("git.layout");

const PERSON: &str = "a person can look at it and accept it";

fn held(rule: &'static str, because: String, instead: &str) -> HeldBack {
    HeldBack {
        rule: RuleId(rule),
        because,
        instead: instead.to_owned(),
        act: Act::AtOnce,
        rest: None,
    }
}

type Held = Result<Option<HeldBack>, io::Error>;

impl<'a> Gate<'a> {
    /// A gate over these trees.
    pub fn new(surroundings: Surroundings<'a>) -> Self {
        Self {
            around: surroundings,
            beside: &[],
            is_piecemeal: false,
            layouts: RefCell::default(),
            repositories: RefCell::default(),
            directories: [const { RefCell::new(None) }; 2],
            home: Home::of(surroundings.root, surroundings.home),
        }
    }

    /// With other trees, by their absolute paths, whose changes are judged likewise, such as a git directory that lies
    /// elsewhere: what leads there does not lead out.
    #[must_use]
    pub fn with_beside(self, beside: &'a [PathBuf]) -> Self {
        Self { beside, ..self }
    }

    /// For changes that are judged one after the other as they are made, in a tree that lives: what passed by itself
    /// can mean something else once more stands beside it, and is looked at again. Without this, every difference
    /// between the trees is taken to be judged as a change of its own.
    #[must_use]
    pub fn piecemeal(self) -> Self {
        Self {
            is_piecemeal: true,
            ..self
        }
    }

    /// Judges one change. The order of changes does not matter: each is judged with the whole tree after. A directory that
    /// is new, or was renamed, is judged entry by entry: each of its files is a change.
    ///
    /// What is removed passes, and so does what is as it was.
    pub fn judge(&self, change: &Change<'_>) -> Decision {
        let Some(after) = &change.after else {
            return Decision::Pass;
        };
        match self.held(change, after) {
            Ok(None) => Decision::Pass,
            Ok(Some(held)) => Decision::HeldBack(held),
            Err(error) => Decision::HeldBack(HeldBack::unreadable(&error)),
        }
    }

    /// What of a path a caller has to remember, so that a later change of it can be judged and put back, as far as its name
    /// and what stands around it tell.
    ///
    /// # Errors
    /// If the tree after cannot be read.
    pub fn concern(&self, path: &Path) -> io::Result<Concern> {
        let Some(name) = path.file_name() else {
            return Ok(Concern::Nothing);
        };
        if self.row(Side::After, path)?.is_some() {
            return Ok(Concern::Content);
        }
        let directory = self.directory(Side::After, path.parent().unwrap_or(Path::new("")))?;
        if directory.leads.iter().any(|lead| lead.is_to(path)) {
            return Ok(Concern::Content);
        }
        let mut concern = Concern::Nothing;
        for place in self.places(Side::After, path)? {
            let is_sample = |name: &Path| name.extension().is_some_and(|extension| extension == "sample");
            match &place.role {
                Role::Object => {}
                // References are replaced and never written to.
                Role::Other if path.strip_prefix(&place.git).is_ok_and(|rest| rest.starts_with("refs")) => {}
                Role::Other => concern = Concern::Presence,
                Role::Hook(name) if is_sample(name) => concern = Concern::Presence,
                _ => return Ok(Concern::Content),
            }
        }
        let is_mark = name.to_str().is_some_and(|name| git::MARKS.contains(&name));
        if is_mark || path.iter().any(is_controlled) {
            concern = Concern::Presence;
        }
        Ok(concern)
    }

    fn held(&self, change: &Change<'_>, after: &Entry) -> Held {
        // What runs something is told before its name is: it is the more urgent.
        let held = self.whatever_its_name(change, after)?;
        match held {
            Some(held) => Ok(Some(held)),
            None => self.name(change.path),
        }
    }

    /// Held back for control characters in a name that was not there. Such a file runs nothing by itself, and tests make
    /// and remove some.
    fn name(&self, path: &Path) -> Held {
        for above in path.ancestors() {
            let Some(name) = above.file_name().filter(|name| is_controlled(name)) else {
                continue;
            };
            if self.around.before.entry(above)?.is_none() {
                let because = format!(
                    "its name `{}` holds control characters, which change what a terminal shows",
                    shown(name.as_encoded_bytes())
                );
                let held = held("name.control", because, "give it a name without them");
                return Ok(Some(held.acted_on(Act::BeforeOutcome)));
            }
        }
        Ok(None)
    }

    fn whatever_its_name(&self, change: &Change<'_>, after: &Entry) -> Held {
        if let Some(held) = self.everywhere(change, after)? {
            return Ok(Some(held));
        }
        let places = self.places(Side::After, change.path)?;
        let is_object = places.iter().any(|place| place.role == Role::Object);
        if let Some(held) = hard_link(change, after).filter(|_| !places.is_empty() && !is_object) {
            return Ok(Some(held));
        }
        for place in &places {
            if let Some(held) = self.of_git(change, after, place)? {
                return Ok(Some(held));
            }
        }
        if let Some(held) = self.completes(change)? {
            return Ok(Some(held));
        }
        if let Some(held) = self.of_tools(change, after)? {
            return Ok(Some(held));
        }
        self.of_leads(change, after)
    }

    // What holds everywhere.

    fn everywhere(&self, change: &Change<'_>, after: &Entry) -> Held {
        // Most changes are of ordinary files, by the thousand.
        if after.kind == Kind::Directory || after.kind == Kind::File && after.mode & 0o6000 == 0 {
            return Ok(None);
        }
        let path = shown_path(change.path);
        let is_new = !is_unchanged(change, after);
        match &after.kind {
            Kind::Device => {
                return Ok(Some(held(
                    "kind.device",
                    format!("`{path}` is a device"),
                    "leave it out",
                )));
            }
            // One that was there is the user's, whatever its mode is now.
            Kind::Fifo | Kind::Socket if change.before.as_ref().is_none_or(|before| before.kind != after.kind) => {
                let what = if after.kind == Kind::Fifo {
                    "a named pipe"
                } else {
                    "a socket"
                };
                let held = held(
                    "kind.special",
                    format!(
                        "`{path}` is {what}: tools of the user that read the folder would wait for it, or speak to it"
                    ),
                    "make it in `/tmp`",
                );
                return Ok(Some(held.acted_on(Act::OnceIdle)));
            }
            Kind::File if after.mode & 0o6000 != 0 => {
                let was = change.before.as_ref().filter(|before| before.kind == Kind::File);
                if was.is_none_or(|was| was.mode & 0o6000 != after.mode & 0o6000) {
                    return Ok(Some(held(
                        "mode.set-id",
                        format!("`{path}` would run with the rights of its owner or group, whoever starts it"),
                        "leave the set-ID bits out",
                    )));
                }
            }
            Kind::Link(target) if is_new => return self.link(change, target),
            Kind::File | Kind::Directory | Kind::Fifo | Kind::Socket | Kind::Link(_) => {}
        }
        Ok(None)
    }

    fn link(&self, change: &Change<'_>, target: &Path) -> Held {
        let directory = change.path.parent().unwrap_or(Path::new(""));
        let outside = match way::follow(self.around.after, self.around.root, directory, target)? {
            Destination::Inside(inside) if git::leads_to_objects(&inside) => {
                let because = format!(
                    "`{}` is a link to `{}`, where git keeps its objects and what lies there is not judged",
                    shown_path(change.path),
                    shown_path(&inside)
                );
                return Ok(Some(held("git.link", because, "link to something outside of `.git`")));
            }
            Destination::Inside(_) | Destination::Nowhere => return Ok(None),
            Destination::Outside(outside) => outside,
        };
        let may = |place: &Path| outside.starts_with(place);
        let is_fine = SYSTEM.iter().chain(OF_ROOT).any(|place| may(Path::new(place)))
            || outside == Path::new("/dev/null")
            || self.around.toolchains.iter().any(|place| may(place))
            || self.beside.iter().any(|place| may(place));
        Ok((!is_fine).then(|| {
            held(
                "link.outside",
                format!(
                    "`{}` is a link out of the workspace, to `{}`: what is written through it changes that",
                    shown_path(change.path),
                    shown_path(&outside)
                ),
                "link to something in the workspace, or copy it",
            )
        }))
    }

    // Git.

    fn tree(&self, side: Side) -> &'a dyn Tree {
        match side {
            Side::Before => self.around.before,
            Side::After => self.around.after,
        }
    }

    fn is_layout(&self, side: Side, directory: &Path) -> io::Result<bool> {
        if let Some(known) = self.layouts.borrow()[side as usize].get(directory) {
            return Ok(*known);
        }
        let is = git::is_layout(self.tree(side), directory)?;
        self.layouts.borrow_mut()[side as usize].insert(directory.to_path_buf(), is);
        Ok(is)
    }

    fn places(&self, side: Side, path: &Path) -> io::Result<Vec<Place>> {
        let directory = self.directory(side, path.parent().unwrap_or(Path::new("")))?;
        git::places(path, &directory.gits, &mut |directory| self.is_layout(side, directory))
    }

    /// What is known of a directory. Changes come directory by directory, so the last one is kept.
    fn directory(&self, side: Side, path: &Path) -> io::Result<Rc<Directory>> {
        let last = &self.directories[side as usize];
        if let Some((known, directory)) = &*last.borrow()
            && known.as_os_str() == path.as_os_str()
        {
            return Ok(Rc::clone(directory));
        }
        let is_git = self.around.root.file_name().is_some_and(git::is_git_name);
        let gits = git::above(path, is_git, &mut |directory| self.is_layout(side, directory))?;
        let mut leads = Vec::new();
        for top in path.ancestors() {
            leads.extend(self.repository(top)?.iter().cloned());
        }
        leads.extend(self.around.leads.iter().cloned());
        leads.retain(|lead| path.starts_with(&lead.path) || lead.path.parent() == Some(path));
        let is_folder = |lead: &Lead| lead.kind == LeadKind::Folder;
        let opened = leads.iter().filter(|lead| is_folder(lead));
        let opened = opened.map(|lead| lead.path.clone()).collect();
        leads.retain(|lead| !is_folder(lead));
        let rows = names::rows_of_directory(path, &self.home);
        let directory = Rc::new(Directory {
            gits,
            leads,
            opened,
            rows,
        });
        *last.borrow_mut() = Some((path.to_path_buf(), Rc::clone(&directory)));
        Ok(directory)
    }

    /// The content before a change, if it was a file, and meant the same to git.
    fn content_before(&self, change: &Change<'_>, role: Option<&Role>) -> io::Result<Option<Vec<u8>>> {
        let is_file = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| entry.kind == Kind::File);
        // What is renamed takes the place of what was there: git's lock file that of the settings.
        let replaces = change.from.is_some() && is_file(&self.around.before.entry(change.path)?);
        if !replaces && !is_file(&change.before) {
            return Ok(None);
        }
        let path = change.from.filter(|_| !replaces).unwrap_or(change.path);
        if let Some(role) = role {
            let places = self.places(Side::Before, path)?;
            if !places.iter().any(|place| place.role == *role) {
                return Ok(None);
            }
        }
        self.around.before.read(path, LONGEST + 1).map(Some)
    }

    /// Whether a path below a directory that was moved to `to` means there what it meant before: what it belongs to, a
    /// repository or the folder of a tool, was moved with it as a whole.
    ///
    /// # Errors
    /// If the tree after cannot be read.
    pub fn is_moved_whole(&self, to: &Path, path: &Path) -> io::Result<bool> {
        let is_part = to.file_name().is_some_and(git::is_git_name);
        if is_part || self.is_in_git(to.parent().unwrap_or(Path::new("")))? {
            return Ok(false);
        }
        let Some(row) = self.row(Side::After, path)? else {
            return Ok(true);
        };
        // The names by which the tool finds it, with those of what was moved left out.
        let rest = path.strip_prefix(to).unwrap_or(path);
        Ok(self.row(Side::After, rest)?.is_some_and(|own| std::ptr::eq(own, row)))
    }

    /// Whether a directory is a git directory or lies in one.
    fn is_in_git(&self, directory: &Path) -> io::Result<bool> {
        if directory.iter().any(git::is_git_name) {
            return Ok(true);
        }
        for above in directory.ancestors() {
            if self.is_layout(Side::After, above)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn content_after(&self, path: &Path) -> io::Result<Vec<u8>> {
        let content = self.around.after.read(path, LONGEST + 1)?;
        match content.len() > LONGEST {
            true => Err(io::Error::other(format!("it is longer than {LONGEST} bytes"))),
            false => Ok(content),
        }
    }

    /// Whether a path in a git directory leads to a place in the workspace, or a repository beside it, whose settings are
    /// judged: not to where objects are stored by the thousand.
    fn leads_to_a_tree(&self, git: &Path, target: &Path) -> io::Result<bool> {
        Ok(match self.leads_inside(git, target)? {
            Some(Some(inside)) => !git::leads_to_objects(&inside),
            Some(None) => true,
            None => false,
        })
    }

    fn of_git(&self, change: &Change<'_>, after: &Entry, place: &Place) -> Held {
        let path = shown_path(change.path);
        match &after.kind {
            Kind::Directory if place.role == Role::Head => return Ok(Some(invalid_head(&path))),
            Kind::Directory if change.before.is_none() && git::is_mark_of_trust(change.path) => {
                return Ok(Some(held(
                    "git.safe",
                    format!(
                        "by `{path}` a `PATH` that holds `.git/safe/../../bin` finds the programs of the workspace"
                    ),
                    PERSON,
                )));
            }
            Kind::Directory => return Ok(None),
            Kind::Link(target) if !is_unchanged(change, after) => {
                // git tries by one whether there are links, and removes it.
                let act = match target.as_os_str() == "testing" {
                    true => Act::OnceStill,
                    false => Act::AtOnce,
                };
                let because =
                    format!("`{path}` is a link: git reads settings through it, or writes to what it leads to");
                let held = held("git.link", because, "put a file or directory there");
                return Ok(Some(held.acted_on(act)));
            }
            Kind::File => {}
            Kind::Link(_) | Kind::Fifo | Kind::Socket | Kind::Device => return Ok(None),
        }
        let before = self.content_before(change, Some(&place.role))?;
        // The same, which git has read before; a hook counts with its mode.
        let same_mode = change
            .before
            .as_ref()
            .is_some_and(|before| before.mode & 0o111 == after.mode & 0o111);
        let reads = !matches!(place.role, Role::Other | Role::Object);
        let content = if reads {
            self.content_after(change.path)?
        } else {
            Vec::new()
        };
        if !reads || before.as_ref() == Some(&content) && (same_mode || !matches!(place.role, Role::Hook(_))) {
            return Ok(None);
        }
        let git = &place.git;
        let text = String::from_utf8_lossy(&content);
        let line = text.trim_end_matches(['\n', '\r', ' ']);
        // git makes such a file, and then writes it.
        let once_said = match line.is_empty() {
            true => Act::OnceStill,
            false => Act::AtOnce,
        };
        let found = match &place.role {
            Role::Settings => {
                let before = before.as_deref().unwrap_or_default();
                return self.settings(change.path, git, before, &content);
            }
            Role::Hook(name) => {
                let is_sample = name.extension().is_some_and(|extension| extension == "sample");
                (!is_sample).then(|| {
                    held(
                        "git.hook",
                        format!("`{path}` is a hook: git runs it as the user"),
                        "run it by hand, or have a person accept it",
                    )
                })
            }
            Role::Pointer => {
                let target = line.strip_prefix("gitdir:").map(str::trim_start);
                let is_fine = match target {
                    Some(target) => self.leads_to_a_tree(git, Path::new(target))?,
                    None => false,
                };
                (!is_fine).then(|| {
                    held(
                        "git.pointer",
                        format!(
                            "`{path}` has git take settings from outside of the workspace: `{}`",
                            shown(line.as_bytes())
                        ),
                        PERSON,
                    )
                    .acted_on(once_said)
                })
            }
            Role::CommonDirectory => {
                let above = git
                    .parent()
                    .filter(|above| above.ends_with("worktrees"))
                    .and_then(Path::parent);
                let leads = self.leads_inside(git, Path::new(line))?;
                let is_fine = match (leads, above) {
                    (Some(Some(leads)), Some(above)) => leads == above,
                    // Of a repository beside this one.
                    (Some(None), _) => true,
                    _ => false,
                };
                (!is_fine).then(|| {
                    held(
                        "git.common-directory",
                        format!(
                            "`{path}` has git take settings and hooks from `{}`",
                            shown(line.as_bytes())
                        ),
                        "make linked trees with `git worktree add`",
                    )
                    .acted_on(once_said)
                })
            }
            Role::LinkedTree => {
                let target = Path::new(line);
                let is_fine = TEMPORARY.iter().any(|temporary| target.starts_with(temporary))
                    || self.leads_to_a_tree(git, target)?;
                (!is_fine).then(|| {
                    held(
                        "git.linked-tree",
                        format!(
                            "`{path}` has git write to `{}`, outside of the workspace",
                            shown(line.as_bytes())
                        ),
                        "make linked trees in the workspace",
                    )
                    .acted_on(once_said)
                })
            }
            Role::Head => {
                let is_id =
                    |text: &str| [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                let names = line.strip_prefix("ref:").map(str::trim_start);
                let is_valid = names.map_or_else(|| is_id(line), |name| name.starts_with("refs/"));
                (!is_valid).then(|| invalid_head(&path))
            }
            Role::Alternates => {
                let objects = git.join("objects");
                let mut outside = None;
                for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                    if line.starts_with('"') || self.leads_inside(&objects, Path::new(line))?.is_none() {
                        outside = Some(shown(line.as_bytes()));
                        break;
                    }
                }
                outside.map(|outside| {
                    held(
                        "git.alternates",
                        format!("`{path}` has git read objects from `{outside}`, outside of the workspace"),
                        "clone without `--shared` and `--reference`",
                    )
                })
            }
            Role::Attributes => {
                let before = before
                    .as_deref()
                    .map(|before| drivers(&String::from_utf8_lossy(before)));
                let before = before.unwrap_or_default();
                let driver = drivers(&text).into_iter().find(|driver| !before.contains(driver));
                driver.map(|driver| {
                    held(
                        "git.attributes",
                        format!(
                            "`{path}` has git use the driver `{}`, which is a program",
                            shown(driver.as_bytes())
                        ),
                        "put it into `.gitattributes`, where it can be seen",
                    )
                })
            }
            Role::OldRemote => Some(held(
                "git.old-remote",
                format!("`{path}` is a remote in git's old form, whose address can run programs"),
                "use `git remote add`",
            )),
            Role::Todo => {
                let runs = |line: &str| matches!(line.split_whitespace().next(), Some("exec" | "x"));
                text.lines().find(|line| runs(line)).map(|line| {
                    let mut held = held(
                        "git.rebase",
                        format!("`{path}` has `git rebase --continue` run `{}`", shown(line.as_bytes())),
                        "run the command by hand, then `git rebase --continue`, or give up with `git rebase --abort`",
                    );
                    held.act = Act::BeforeOutcome;
                    let lines = content.split_inclusive(|byte| *byte == b'\n');
                    let rest = lines.filter(|line| !runs(&String::from_utf8_lossy(line)));
                    held.rest = Some(rest.flatten().copied().collect());
                    held
                })
            }
            Role::ApplyOptions => {
                let is_fine = |word: &&str| {
                    let number = word.strip_prefix("-p").or(word.strip_prefix("-C"));
                    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
                        || git::APPLY_OPTIONS.contains(word)
                };
                let mut words = text.split_whitespace().map(|word| word.trim_matches('\''));
                words.find(|word| !word.is_empty() && !is_fine(word)).map(|word| {
                    held(
                        "git.apply-options",
                        format!(
                            "`{path}` has `git am --continue` take the option `{}`, which can write elsewhere",
                            shown(word.as_bytes())
                        ),
                        "give up with `git am --abort`, and apply the patches without it",
                    )
                })
            }
            Role::Resolutions => {
                let is_inside = |record: &str| {
                    let path = record.split_once('\t').map(|(_, path)| Path::new(path));
                    path.is_some_and(|path| {
                        path.file_name().is_some() && path.components().all(|part| matches!(part, Component::Normal(_)))
                    })
                };
                let mut records = text.split('\0').filter(|record| !record.is_empty());
                records.find(|record| !is_inside(record)).map(|record| {
                    held(
                        "git.resolutions",
                        format!(
                            "`{path}` has git read a file outside of the workspace, and copy it: `{}`",
                            shown(record.as_bytes())
                        ),
                        "remove it with `git rerere clear`",
                    )
                    .acted_on(once_said)
                })
            }
            Role::Strategy => (!git::STRATEGIES.contains(&line)).then(|| strategy(&path, line)),
            Role::SequenceOptions => {
                let settings = settings::parse(&content);
                let named = settings.iter().find(|setting| setting.is("options.strategy"));
                let named = named.map(|setting| setting.value.clone().unwrap_or_default());
                let named = named.map(|value| String::from_utf8_lossy(&value).into_owned());
                named
                    .filter(|named| !git::STRATEGIES.contains(&named.as_str()))
                    .map(|named| strategy(&path, &named))
            }
            Role::Object | Role::Other => None,
        };
        Ok(found)
    }

    /// Settings of the repository with this git directory, of which those that were there before pass.
    fn settings(&self, path: &Path, git: &Path, before: &[u8], after: &[u8]) -> Held {
        let (found, is_whole) = settings::read(after);
        let (was, was_whole) = settings::read(before);
        if !is_whole && was_whole || after.contains(&0) {
            return Ok(Some(
                held(
                    "git.settings",
                    format!("git cannot read all of `{}`", shown_path(path)),
                    "use `git config`",
                )
                .acted_on(Act::OnceStill),
            ));
        }
        let was: BTreeSet<Setting> = was.into_iter().collect();
        let found: BTreeSet<Setting> = found.into_iter().filter(|setting| !was.contains(setting)).collect();
        // `~` is a home, and `%(prefix)` where git is installed.
        let in_tree = |value: &Path| {
            let leads = || match self.leads_inside(git, value) {
                // Git would write its files over settings and hooks.
                Ok(Some(Some(inside))) => !self.is_in_git(&inside).unwrap_or(true),
                Ok(Some(None)) => true,
                Ok(None) | Err(_) => false,
            };
            !value.to_string_lossy().starts_with(['~', '%']) && leads()
        };
        let reasons = found
            .iter()
            .filter_map(|setting| Some((setting, git_keys::holds(setting, &in_tree)?)));
        let reasons: Vec<(&Setting, String)> = reasons.collect();
        let Some((_, first)) = reasons.first() else {
            return Ok(None);
        };
        let others = reasons.iter().skip(1).take(TOLD).map(|(_, why)| format!("; {why}"));
        let more = if reasons.len() > TOLD + 1 { "; and others" } else { "" };
        let mut held = held(
            "git.settings",
            format!(
                "`{}` sets {first}{}{more}",
                shown_path(path),
                others.collect::<String>()
            ),
            "give it to one command with `git -c NAME=VALUE`, or have a person accept it",
        );
        let names: BTreeSet<&Setting> = reasons.iter().map(|(setting, _)| *setting).collect();
        held.rest = settings::without(before, after, &|setting| names.contains(setting));
        Ok(Some(held))
    }

    /// Where a path leads from a directory: nothing if it is outside of what is judged, `Some(None)` if it is in a tree
    /// beside this one.
    fn leads_inside(&self, directory: &Path, path: &Path) -> io::Result<Option<Option<PathBuf>>> {
        Ok(
            match way::follow(self.around.after, self.around.root, directory, path)? {
                Destination::Inside(inside) => Some(Some(inside)),
                Destination::Outside(outside) => {
                    let beside = self.beside.iter().any(|place| outside.starts_with(place));
                    beside.then_some(None)
                }
                Destination::Nowhere => None,
            },
        )
    }

    /// A name that makes a directory a git directory, in which something lies already that git would run.
    fn completes(&self, change: &Change<'_>) -> Held {
        let name = change
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let directory = change.path.parent().unwrap_or(Path::new(""));
        if !git::MARKS.contains(&name) || directory.file_name().is_some_and(git::is_git_name) {
            return Ok(None);
        }
        let was = change.from.and_then(Path::parent).unwrap_or(directory);
        if !self.is_layout(Side::After, directory)? || self.is_layout(Side::Before, was)? {
            return Ok(None);
        }
        let paths = self.entries_of_git(directory)?;
        for path in paths.iter().filter(|path| *path != change.path) {
            let Some(entry) = self.around.after.entry(path)? else {
                continue;
            };
            // It is held back itself, so that the rest of the repository can stay.
            if !self.is_piecemeal && self.differs(path, &entry)? {
                continue;
            }
            let part = Change {
                path,
                from: None,
                before: None,
                after: Some(entry.clone()),
            };
            for place in self
                .places(Side::After, path)?
                .iter()
                .filter(|place| place.git == directory)
            {
                let found = match self.of_git(&part, &entry, place) {
                    // It is gone by now.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    found => found?,
                };
                if let Some(found) = found {
                    return Ok(Some(held(
                        LAYOUT.0,
                        format!(
                            "`{}` makes its directory one that git takes for a repository, and {}",
                            shown_path(change.path),
                            found.because
                        ),
                        "make repositories with `git init`",
                    )));
                }
            }
        }
        Ok(None)
    }

    /// What stands in a git directory by the names that git looks for, directories aside.
    fn entries_of_git(&self, git: &Path) -> io::Result<Vec<PathBuf>> {
        let after = self.around.after;
        let mut found = Vec::new();
        let mut ahead: Vec<PathBuf> = git::NAMES.iter().map(PathBuf::from).collect();
        let mut seen = 0;
        while let Some(rest) = ahead.pop() {
            let path = git.join(&rest);
            match after.entry(&path)?.map(|entry| entry.kind) {
                Some(Kind::Directory) if git::is_looked_into(&rest) => {
                    let names = names_in(after, &path)?;
                    seen += names.len();
                    if seen > ENTRIES {
                        return Err(io::Error::other(format!(
                            "`{}` has more than {ENTRIES} entries",
                            shown_path(git)
                        )));
                    }
                    ahead.extend(names.into_iter().map(|name| rest.join(name)));
                }
                Some(Kind::Directory) | None => {}
                Some(_) => found.push(path),
            }
        }
        Ok(found)
    }

    fn differs(&self, path: &Path, entry: &Entry) -> io::Result<bool> {
        if self.around.before.entry(path)?.as_ref() != Some(entry) {
            return Ok(true);
        }
        Ok(entry.kind == Kind::File
            && self.around.before.read(path, LONGEST)? != self.around.after.read(path, LONGEST)?)
    }

    // Other tools.

    fn of_tools(&self, change: &Change<'_>, after: &Entry) -> Held {
        let path = change.path;
        let is_link = matches!(after.kind, Kind::Link(_));
        let directory = self.directory(Side::After, path.parent().unwrap_or(Path::new("")))?;
        if is_link && !is_unchanged(change, after) && self.spelled(path, &directory.opened, names::leads_to_row) {
            return Ok(Some(held(
                "tool.link",
                format!(
                    "`{}` is a link: a tool of the user would read what it leads to in its place",
                    shown_path(path)
                ),
                "put a file or directory there",
            )));
        }
        if let Kind::Link(target) = &after.kind
            && !is_unchanged(change, after)
            && let Some(because) = self.opens_packages(path, target)?
        {
            return Ok(Some(held("tool.link", because, "copy it, or open it where it is")));
        }
        let row = self.row(Side::After, path)?;
        let Some(row) = row.filter(|_| matches!(after.kind, Kind::File | Kind::Link(_))) else {
            return Ok(None);
        };
        if is_link && is_unchanged(change, after) {
            return Ok(None);
        }
        let was_same = |gate: &Self| -> io::Result<bool> {
            let was = change.from.unwrap_or(path);
            Ok(change.from.is_none() || gate.row(Side::Before, was)?.is_some_and(|was| std::ptr::eq(was, row)))
        };
        let before = match was_same(self)? {
            true => self.content_before(change, None)?,
            false => None,
        };
        let because: Option<Wrong> = match row.judge {
            Judge::Pass => None,
            Judge::HoldIfThere if change.before.is_none() => None,
            _ if is_link => Some("it is a link".to_owned().into()),
            Judge::Hold | Judge::HoldAtEnd | Judge::HoldIfThere => {
                let same = match &before {
                    Some(before) => *before == self.content_after(path)?,
                    None => false,
                };
                let mode = change
                    .before
                    .as_ref()
                    .is_some_and(|before| before.mode & 0o111 == after.mode & 0o111);
                (!same || !mode).then(|| String::new().into())
            }
            Judge::Content(check) => {
                let content = self.content_after(path)?;
                let directory = path.parent().unwrap_or(Path::new(""));
                // Paths in cargo's settings are relative to the directory above theirs.
                let above = Path::new("..");
                let inside = |value: &str| {
                    let value = Path::new(value);
                    let value = if check.is_pointer() {
                        value.to_path_buf()
                    } else {
                        above.join(value)
                    };
                    self.leads_to_a_tree(directory, &value).unwrap_or(false)
                };
                check.holds(before.as_deref(), &content, &inside)
            }
        };
        Ok(because.map(|Wrong { why, is_readable, rest }| {
            let why = if why.is_empty() { why } else { format!(" ({why})") };
            let because = format!("`{}`: {}{why}", shown_path(path), row.does);
            let act = match row.judge {
                Judge::HoldAtEnd => Act::BeforeOutcome,
                _ if !is_readable => Act::OnceStill,
                _ => Act::AtOnce,
            };
            HeldBack {
                rest,
                ..held(rule_of(row), because, PERSON).acted_on(act)
            }
        }))
    }

    /// What a link leads to, if it lies outside of packages, and that is a directory among them, or nothing yet.
    fn opens(&self, link: &Path, target: &Path) -> io::Result<Option<(PathBuf, bool)>> {
        if names::is_packages(link) {
            return Ok(None);
        }
        let directory = link.parent().unwrap_or(Path::new(""));
        let inside = match way::follow(self.around.after, self.around.root, directory, target)? {
            Destination::Inside(inside) if names::is_packages(&inside) => inside,
            Destination::Inside(_) | Destination::Outside(_) | Destination::Nowhere => return Ok(None),
        };
        Ok(match self.around.after.entry(&inside)?.map(|entry| entry.kind) {
            Some(Kind::Directory) => Some((inside, true)),
            None => Some((inside, false)),
            Some(_) => None,
        })
    }

    /// The lead that a link makes, if there is one at this path that passed: in the directory among packages to which it
    /// leads, files are judged from then on as in any folder.
    ///
    /// # Errors
    /// If the tree after cannot be read.
    pub fn opened_by(&self, link: &Path) -> io::Result<Option<Lead>> {
        let Some(Kind::Link(target)) = self.around.after.entry(link)?.map(|entry| entry.kind) else {
            return Ok(None);
        };
        let opened = self.opens(link, &target)?;
        Ok(opened.map(|(path, _)| Lead {
            path,
            kind: LeadKind::Folder,
        }))
    }

    /// Why a link must not make a folder that is opened of a directory in packages, whose settings were not judged.
    fn opens_packages(&self, link: &Path, target: &Path) -> io::Result<Option<String>> {
        let after = self.around.after;
        let Some((inside, is_there)) = self.opens(link, target)? else {
            return Ok(None);
        };
        let told = |why: &str| {
            Ok(Some(format!(
                "`{}` is a link to `{}`, where packages are unpacked and settings of tools are not judged: {why}",
                shown_path(link),
                shown_path(&inside)
            )))
        };
        if !is_there {
            return told("nothing is there yet");
        }
        let folders = self.around.leads.iter().filter(|lead| lead.kind == LeadKind::Folder);
        if folders.count() >= OPENED {
            return told("more such links are there already than are followed");
        }
        let mut ahead = vec![PathBuf::new()];
        let mut seen = 0;
        while let Some(above) = ahead.pop() {
            for name in names_in(after, &inside.join(&above))? {
                seen += 1;
                if seen > PACKAGED {
                    return told("it has too much in it to be looked at");
                }
                let rest = above.join(name);
                let path = inside.join(&rest);
                let kind = after.entry(&path)?.map(|entry| entry.kind);
                if kind == Some(Kind::Directory) {
                    ahead.push(rest);
                    continue;
                }
                // Tools look through it for files of the table, and what it leads to is judged by another name.
                if matches!(kind, Some(Kind::Link(_))) && self.spelled(&link.join(&rest), &[], names::leads_to_row) {
                    return told(&format!("`{}` is a link", shown_path(&rest)));
                }
                let Some(row) = self.row(Side::After, &link.join(&rest))? else {
                    continue;
                };
                let is_fine = match row.judge {
                    Judge::Pass | Judge::HoldIfThere => true,
                    Judge::Hold | Judge::HoldAtEnd => false,
                    Judge::Content(check) => {
                        kind == Some(Kind::File) && check.holds(None, &self.content_after(&path)?, &|_| false).is_none()
                    }
                };
                if !is_fine {
                    return told(&format!("`{}`: {}", shown_path(&rest), row.does));
                }
            }
        }
        Ok(None)
    }

    /// Asks the table about a path.
    fn spelled<T>(&self, path: &Path, opened: &[PathBuf], ask: impl FnOnce(Spelled<'_>) -> T) -> T {
        ask(Spelled {
            path,
            opened,
            home: &self.home,
            was_there: &|| !matches!(self.around.before.entry(path), Ok(None)),
        })
    }

    /// The row of the table for a path, if there is one.
    fn row(&self, side: Side, path: &Path) -> io::Result<Option<&'static Row>> {
        let directory = self.directory(side, path.parent().unwrap_or(Path::new("")))?;
        Ok(self.spelled(path, &directory.opened, |spelled| names::row(spelled, &directory.rows)))
    }
}

impl std::fmt::Debug for Gate<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Gate")
            .field("root", &self.around.root)
            .finish_non_exhaustive()
    }
}

/// The names in a directory, of which there are none if it is gone by now.
fn names_in(tree: &dyn Tree, directory: &Path) -> io::Result<Vec<OsString>> {
    match tree.names(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names,
    }
}

/// What git writes to in its place has one name; objects it replaces.
fn hard_link(change: &Change<'_>, after: &Entry) -> Option<HeldBack> {
    let was_alone = change.before.as_ref().is_none_or(|before| before.links < 2);
    (after.kind == Kind::File && after.links > 1 && was_alone).then(|| {
        held(
            "git.hard-link",
            format!(
                "`{}` has another name: what git writes to it changes that file too",
                shown_path(change.path)
            ),
            "copy it",
        )
    })
}

fn invalid_head(path: &str) -> HeldBack {
    held(
        "git.head",
        format!("`{path}` is not valid, so that git would take another directory for the repository"),
        "name a branch or a commit in it",
    )
    .acted_on(Act::OnceStill)
}

fn strategy(path: &str, named: &str) -> HeldBack {
    held(
        "git.strategy",
        format!(
            "`{path}` has git run the strategy `{}`, which is a program",
            shown(named.as_bytes())
        ),
        "abort what is under way",
    )
}

fn rule_of(row: &Row) -> &'static str {
    match row.scope {
        Scope::Anywhere | Scope::Project => "tool.settings",
        Scope::StartUp | Scope::Home => "home.start-up",
    }
}

/// Whether it is what it was, where it was: what is moved can lead elsewhere, and mean something else.
fn is_unchanged(change: &Change<'_>, after: &Entry) -> bool {
    change.from.is_none() && change.before.as_ref() == Some(after)
}

#[cfg(test)]
mod tests;
