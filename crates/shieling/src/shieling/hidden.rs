//! What an environment that cannot hide files makes of a policy that hides some: it asks about
//! commands that read whole directories in which there are such files.
//!
//! The policy looks at the paths that a text names. A recursive command names a directory and reads
//! what is in it; where the environment hides files it finds none of the hidden ones, so the policy
//! lets it pass, and it is for the others to ask. Which commands those are, and what they leave out, says
//! the policy; here it is looked up what they would meet. It errs on the side of asking.
#![expect(
    clippy::disallowed_methods,
    reason = "whether a hidden file exists is looked up here"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::lookup;
use crate::policy::{
    Atom, Base, Decision, EffectKind, Facts, HOME, IGNORE, Pick, PickKind, Policy, Reason, Splits, Text, Verdict, Walk,
    Walked,
};
use crate::request::Command;

/// How many directory entries are looked at before hidden files are taken to exist.
const ENTRIES: usize = 20_000;

/// What a directory holds that a command could show.
#[derive(Debug, PartialEq, Eq)]
enum Met {
    /// This hidden path.
    Hidden(String),
    /// This name, which is split into others.
    Split(String),
    /// Names that are not there yet, and may be split into others.
    NewNames,
    /// More than is looked at.
    TooMuch,
}

/// Every hidden path of a workspace, without what lies below another, and the links that lead to one; directories
/// with a slash at their ends. Nothing if there is too much to look at.
pub(super) fn there(policy: &Policy, workspace: &Path) -> Option<Vec<String>> {
    let mut search = Search {
        tells_whole: true,
        ..Search::new(policy, workspace)
    };
    let mut found = Vec::new();
    let everything = Walk::default();
    search
        .below(workspace, Path::new("."), &everything, &mut |path, is_directory| {
            found.push(if is_directory { format!("{path}/") } else { path });
            true
        })
        .then_some(found)
}

/// Why an environment that cannot hide files asks about a command that the policy lets through: one reason for
/// each command of it that could show hidden files; none where there are none.
pub(super) fn reasons(
    verdict: &Verdict,
    policy: &Policy,
    text: &Text<'_>,
    command: &Command,
    facts: &Facts,
    workspace: &Path,
    environment: &str,
) -> Vec<Reason> {
    if verdict.decision != Decision::Allow || policy.hidden().is_empty() {
        return Vec::new();
    }
    let linked = linked(verdict, policy, command, workspace);
    if !linked.is_empty() {
        return linked;
    }
    let mut search = Search::new(policy, workspace);
    let mut reasons: Vec<Reason> = Vec::new();
    for walked in Policy::walks(text, facts) {
        if reasons.iter().any(|reason| reason.span == Some(walked.span)) {
            continue;
        }
        let Some((directory, met)) = search.met(&walked, command, facts) else {
            continue;
        };
        let shown = directory.strip_prefix(workspace).map_or_else(
            |_| directory.display().to_string(),
            |inside| match inside.as_os_str().is_empty() {
                true => ".".to_owned(),
                false => inside.display().to_string(),
            },
        );
        let because = match met {
            Met::Hidden(path) if walked.walk.or_revision => format!(
                "git could show what a commit holds, hidden files such as `{path}` among it; name the paths behind `--`"
            ),
            Met::Hidden(path) => {
                format!(
                    "it reaches what is below `{shown}`, where `{path}` is hidden, and `{environment}` cannot hide files"
                )
            }
            Met::Split(path) => format!(
                "the names below `{shown}` are split where `{}` holds a separator, so that they could name a hidden path",
                path.escape_debug()
            ),
            Met::NewNames => "it is given names that are split at blanks, and the command makes files whose names it \
                              does not spell out: one could be split into a hidden path"
                .to_owned(),
            Met::TooMuch => format!(
                "it reaches what is below `{shown}`, where hidden files are looked for among {ENTRIES} names and no \
                 more, and `{environment}` cannot hide files"
            ),
        };
        reasons.push(Reason {
            decision: Decision::Ask,
            rule: format!("environment {environment}"),
            object: walked.object.clone(),
            span: Some(walked.span),
            because,
            instead: Some("name the files or a directory without hidden files".to_owned()),
        });
    }
    reasons
}

/// Paths that a text names and that lead, through links, to hidden ones.
fn linked(verdict: &Verdict, policy: &Policy, command: &Command, workspace: &Path) -> Vec<Reason> {
    let Ok(workspace) = workspace.canonicalize() else {
        return Vec::new();
    };
    verdict
        .effects
        .iter()
        .filter(|effect| matches!(effect.kind, EffectKind::Reads | EffectKind::Writes))
        .filter_map(|effect| {
            let target = |path: &Path| Some(path.canonicalize().ok()?.strip_prefix(&workspace).ok()?.to_owned());
            let leads = |path: &Path| {
                target(path).is_some_and(|inside| inside.to_str().is_none_or(|inside| policy.hides(inside)))
            };
            // With a wildcard behind it, what is in a directory is read, all of which may be hidden.
            let leads_below = |path: &Path| target(path).is_some_and(|inside| policy.hides_all_in(&inside));
            let (above, pattern, rest) = at_wildcard(&effect.object);
            let directory = command.cwd().join(above);
            let is_below = !pattern.is_empty() && !above.is_empty() && leads_below(&directory)
                || !rest.is_empty()
                    && links_that_fit(pattern, &directory)
                        .is_none_or(|links| links.iter().any(|link| leads_below(link)));
            let (decision, because) = match links(&effect.object, command.cwd()) {
                _ if is_below => (Decision::Deny, "it leads into a hidden directory".to_owned()),
                _ if leads(&command.cwd().join(&effect.object)) => {
                    (Decision::Deny, "it leads to a hidden path".to_owned())
                }
                Some(links) if links.iter().any(|link| leads(link)) => {
                    (Decision::Deny, "it leads to a hidden path".to_owned())
                }
                Some(_) => return None,
                None => (
                    Decision::Ask,
                    format!("links to hidden paths are looked for among {ENTRIES} names and no more"),
                ),
            };
            Some(Reason {
                decision,
                rule: IGNORE.to_owned(),
                object: effect.object.clone(),
                span: Some(effect.span),
                because,
                instead: None,
            })
        })
        .collect()
}

/// A path at the first of its names that holds a wildcard: what stands before it, that name, and what follows.
fn at_wildcard(path: &str) -> (&str, &str, &str) {
    let Some(wild) = path.find(['*', '?', '[']) else {
        return (path, "", "");
    };
    let (above, rest) = path[..wild]
        .rfind('/')
        .map_or(("", path), |at| (&path[..at], &path[at + 1..]));
    let (pattern, rest) = rest.split_once('/').unwrap_or((rest, ""));
    (above, pattern, rest)
}

/// The links whose names the wildcards at the end of a path can match; nothing if there are too many names.
fn links(path: &str, from: &Path) -> Option<Vec<PathBuf>> {
    let (directory, pattern) = path.rsplit_once('/').unwrap_or((".", path));
    match pattern.contains(['*', '?', '[']) {
        true => links_that_fit(pattern, &from.join(directory)),
        false => Some(Vec::new()),
    }
}

/// The links in a directory whose names a pattern can match; nothing if there are too many names.
fn links_that_fit(pattern: &str, directory: &Path) -> Option<Vec<PathBuf>> {
    let pick = Pick {
        pattern: pattern.to_owned(),
        path: false,
        kind: PickKind::Entries,
    };
    let Ok(entries) = fs::read_dir(directory) else {
        return Some(Vec::new());
    };
    let entries: Vec<_> = entries.flatten().take(ENTRIES + 1).collect();
    if entries.len() > ENTRIES {
        return None;
    }
    let links = entries
        .into_iter()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            fits(&pick, &name, Path::new(&*name), true)
        })
        .map(|entry| entry.path())
        .collect();
    Some(links)
}

/// A directory that is still to be looked through.
struct Directory {
    /// Where it is.
    real: PathBuf,
    /// By which path it was come to.
    path: PathBuf,
    /// The same as the command spells it.
    spelled: PathBuf,
    /// How many levels more are looked at.
    depth: Option<usize>,
    /// Whether all that is in it is hidden.
    hidden: bool,
    /// Whether names that start with a dot are skipped.
    undotted: bool,
}

/// A look through directories, within one bound for all of them.
struct Search<'a> {
    policy: &'a Policy,
    workspace: &'a Path,
    left: usize,
    /// A name that was met and holds what names are split at.
    split: Option<String>,
    /// Whether a directory of which everything is hidden is told of in place of what is in it.
    tells_whole: bool,
}

impl<'a> Search<'a> {
    fn new(policy: &'a Policy, workspace: &'a Path) -> Self {
        Self {
            policy,
            workspace,
            left: ENTRIES,
            split: None,
            tells_whole: false,
        }
    }

    /// What a command that reads whole directories could show, and below which one.
    fn met(&mut self, walked: &Walked, command: &Command, facts: &Facts) -> Option<(PathBuf, Met)> {
        if walked.splits_new_names {
            return Some((self.workspace.to_owned(), Met::NewNames));
        }
        if walked.tracked && self.tracks_nothing_hidden(walked.walk.splits) {
            return None;
        }
        // Such a file holds any options, `--hidden` among them.
        let configured = command.variables().contains_key("RIPGREP_CONFIG_PATH");
        let walk = &Walk {
            ignoring: walked.walk.ignoring && !configured,
            ..walked.walk.clone()
        };
        let roots = roots(walked, command, self.workspace, facts);
        roots.into_iter().find_map(|(start, spelled)| {
            let mut first = None;
            let whole = self.below(&start, &spelled, walk, &mut |path, _| {
                first = Some(path);
                false
            });
            match (first, whole) {
                (Some(path), _) => Some((start, Met::Hidden(path))),
                (None, true) => None,
                (None, false) if self.split.is_some() => Some((start, Met::Split(self.split.take()?))),
                (None, false) => Some((start, Met::TooMuch)),
            }
        })
    }

    /// Tells the hidden paths that a walk from here can look at, until it is told to stop; false if it was, or
    /// if there is more than is looked at.
    fn below(&mut self, start: &Path, spelled: &Path, walk: &Walk, tell: &mut dyn FnMut(String, bool) -> bool) -> bool {
        // A directory above the workspace holds all of it.
        let above = self.workspace.starts_with(start) && self.workspace != start;
        let way = self.workspace.strip_prefix(start).unwrap_or(Path::new(""));
        let spelled = &if above { spelled.join(way) } else { spelled.to_owned() };
        let start = if above { self.workspace } else { start };
        if walk.ignoring {
            return self.not_ignored(start, walk, tell);
        }
        let mut seen = BTreeSet::new();
        let mut ahead = vec![Directory {
            real: start.to_owned(),
            path: start.to_owned(),
            spelled: spelled.to_owned(),
            depth: if above { None } else { walk.depth },
            hidden: self.hides(start, true),
            undotted: walk.undotted,
        }];
        while let Some(here) = ahead.pop() {
            if here.depth == Some(0) {
                continue;
            }
            let Ok(entries) = fs::read_dir(&here.real) else {
                continue;
            };
            let undotted = here.undotted;
            let hidden_here = here.hidden || self.hides_all_in(&here.real);
            for entry in entries.flatten() {
                if self.left == 0 {
                    return false;
                }
                self.left -= 1;
                let name = entry.file_name();
                let Ok(kind) = entry.file_type() else { continue };
                let target = kind.is_symlink().then(|| entry.path().canonicalize().ok()).flatten();
                let inner = Directory {
                    path: here.path.join(&name),
                    spelled: here.spelled.join(&name),
                    depth: here.depth.map(|depth| depth - 1),
                    hidden: false,
                    undotted,
                    real: target.clone().unwrap_or_else(|| entry.path()),
                };
                let name = name.to_string_lossy();
                let is_directory = kind.is_dir() || target.as_ref().is_some_and(|target| target.is_dir());
                if is_split(&name, walk.splits) {
                    self.split = Some(self.shown(&inner.path));
                    return false;
                }
                let fits = |pick: &Pick, loosely: bool| fits(pick, &name, &inner.spelled, loosely);
                let left_out = |with_all: bool| {
                    walk.except.iter().any(|pick| {
                        let about = match pick.kind {
                            PickKind::Files => !is_directory,
                            PickKind::Trees => is_directory,
                            PickKind::Entries => !with_all,
                            PickKind::All => true,
                        };
                        about && fits(pick, false)
                    })
                };
                // What git stores is no file of the workspace.
                let store = *name == *"objects" && here.real.ends_with(".git");
                if undotted && name.starts_with('.') || left_out(true) || store {
                    continue;
                }
                let hidden = hidden_here
                    || self.hides(&inner.path, is_directory)
                    || self.hides(&inner.real, is_directory)
                    || self.hides(&entry.path(), is_directory)
                    || (self.tells_whole || walk.gives_directories) && is_directory && self.hides_all_in(&inner.real);
                let chosen = walk.only.is_empty()
                    || walk
                        .only
                        .iter()
                        .any(|pick| (!is_directory || pick.kind != PickKind::Files) && fits(pick, true));
                // Names stay listed, but not those in a directory that is hidden.
                let shown = hidden && chosen && (!walk.names || hidden_here) && !left_out(false);
                if shown && !tell(self.shown(&inner.path), is_directory) {
                    return false;
                }
                // Nothing more is to be told of a hidden directory that is told of.
                let told = shown && walk.only.is_empty() && walk.except.is_empty();
                if is_directory && !told && (target.is_none() || seen.insert(inner.real.clone())) {
                    ahead.push(Directory { hidden, ..inner });
                }
            }
        }
        true
    }

    /// Whether git knows of no hidden file in this workspace, by its index, and of no name that is split into others.
    fn tracks_nothing_hidden(&self, splits: Splits) -> bool {
        let hides = |path: &[u8]| {
            std::str::from_utf8(path).map_or(true, |path| self.policy.hides(path) || is_split(path, splits))
        };
        lookup::tracked(&self.workspace.join(".git"), &lookup::Place::Host)
            .is_some_and(|tracked| !tracked.iter().any(|one| hides(&one.path)))
    }

    /// As [`Self::below`], of what a program looks at that heeds `.gitignore`, `.ignore` and the like.
    fn not_ignored(&mut self, start: &Path, walk: &Walk, tell: &mut dyn FnMut(String, bool) -> bool) -> bool {
        let mut walker = ignore::WalkBuilder::new(start);
        walker
            .max_depth(walk.depth)
            .follow_links(true)
            .add_custom_ignore_filename(".rgignore")
            .add_custom_ignore_filename(".fdignore");
        for entry in walker.build() {
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            // What cannot be opened here cannot be there, and a broken list of what to ignore ignores nothing.
            let Ok(entry) = entry else { continue };
            if entry.depth() > 0 && is_split(&entry.file_name().to_string_lossy(), walk.splits) {
                self.split = Some(self.shown(entry.path()));
                return false;
            }
            let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            let real = entry.path().canonicalize().unwrap_or_else(|_| entry.path().to_owned());
            let inside = entry
                .path()
                .parent()
                .is_some_and(|parent| self.hides(parent, true) || self.hides_all_in(parent));
            let hidden = inside || self.hides(entry.path(), directory) || self.hides(&real, directory);
            // Names stay listed, but for those in a directory that is hidden.
            let shown = hidden && !directory && (!walk.names || inside);
            let below = entry.path().strip_prefix(start).unwrap_or(entry.path());
            if shown && chooses(walk, below) && !tell(self.shown(entry.path()), false) {
                return false;
            }
        }
        true
    }

    fn hides(&self, path: &Path, is_directory: bool) -> bool {
        path.strip_prefix(self.workspace)
            .is_ok_and(|inside| self.policy.hides_entry(inside, is_directory))
    }

    fn hides_all_in(&self, directory: &Path) -> bool {
        directory
            .strip_prefix(self.workspace)
            .is_ok_and(|inside| self.policy.hides_all_in(inside))
    }

    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(self.workspace)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    }
}

/// Whether a list in which this name stands is split within it.
fn is_split(name: &str, splits: Splits) -> bool {
    name.contains(|character: char| match splits {
        Splits::Nowhere => false,
        Splits::Lines => character == '\n',
        Splits::Blanks => character.is_whitespace() || "'\"\\".contains(character),
    })
}

/// Whether the patterns of a walk leave this file, by its path from where it starts.
fn chooses(walk: &Walk, below: &Path) -> bool {
    let names: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
    let Some((last, directories)) = names.split_last() else {
        return true;
    };
    let except = |pick: &Pick| {
        let file = pick.kind != PickKind::Trees && fits(pick, last, below, false);
        let tree = matches!(pick.kind, PickKind::Trees | PickKind::All);
        file || tree && directories.iter().any(|name| fits(pick, name, below, false))
    };
    let only = |pick: &Pick| fits(pick, last, below, true);
    !walk.except.iter().any(except) && (walk.only.is_empty() || walk.only.iter().any(only))
}

/// The directories that a walk can start from, each as the command itself spells it.
fn roots(walked: &Walked, command: &Command, workspace: &Path, facts: &Facts) -> Vec<(PathBuf, PathBuf)> {
    let all = || vec![(workspace.to_owned(), PathBuf::from("."))];
    let starts: Option<Vec<PathBuf>> = match &walked.walk.here {
        Some(here) => Some(vec![command.cwd().join(here)]),
        None => {
            let more = walked.bases.iter().map(|base| match base {
                Base::At(directory) => placed(directory, workspace, facts),
                Base::Unknown => None,
            });
            std::iter::once(Some(command.cwd().to_owned())).chain(more).collect()
        }
    };
    let Some(mut starts) = starts else { return all() };
    starts.dedup();
    let Some(root) = &walked.walk.root else {
        return starts.into_iter().map(|start| (start, PathBuf::from("."))).collect();
    };
    let found_below = root
        .is_found_below()
        .then(|| root.prefix())
        .filter(|start| !start.is_empty());
    let text = match root.known() {
        Some(text) => text.into_owned(),
        None if let Some(start) = found_below => start.to_owned(),
        // Names in a directory that is known.
        None => match &*root.atoms {
            [Atom::Text(text), rest @ ..]
                if text.contains('/') && rest.iter().all(|atom| matches!(atom, Atom::Star | Atom::One)) =>
            {
                text[..=text.rfind('/').unwrap_or_default()].to_owned()
            }
            _ => return all(),
        },
    };
    // With `..` in it, what it names is a matter of links.
    if text.split('/').any(|part| part == "..") {
        return all();
    }
    let (mut roots, mut missing) = (Vec::new(), false);
    for start in starts {
        let Some(path) = placed(&text, &start, facts) else {
            return all();
        };
        match path.canonicalize() {
            Ok(real) => roots.push((real, PathBuf::from(&text))),
            Err(_) if walked.walk.or_revision => roots.push((start, PathBuf::from("."))),
            // Not there now, as far as it can be told; what comes to be there before it is read could be anything.
            Err(_) if walked.sole => {}
            Err(_) => missing = true,
        }
    }
    if missing && roots.is_empty() { all() } else { roots }
}

/// A path as a text names it, from a directory.
fn placed(path: &str, from: &Path, facts: &Facts) -> Option<PathBuf> {
    match path.strip_prefix(HOME) {
        Some(below) => Some(Path::new(facts.home()?).join(below.trim_start_matches('/'))),
        None => Some(from.join(path)),
    }
}

/// Whether a pattern fits an entry; one that cannot be read fits everything, or nothing where only what
/// certainly fits counts.
fn fits(pick: &Pick, name: &str, spelled: &Path, insensitive: bool) -> bool {
    let subject = if pick.path {
        spelled.to_string_lossy().into_owned()
    } else {
        name.to_owned()
    };
    // Classes of characters and alternatives are not read.
    if pick.pattern.contains(['[', '{', '\\']) {
        return insensitive;
    }
    let fold = |text: &str| match insensitive {
        true => text.to_lowercase(),
        false => text.to_owned(),
    };
    let matches = |pattern: &str, subject: &str| {
        let (pattern, subject): (Vec<char>, Vec<char>) =
            (fold(pattern).chars().collect(), fold(subject).chars().collect());
        wild(&pattern, &subject)
    };
    matches(&pick.pattern, &subject)
        // As git names a path, without `./` in front of it.
        || insensitive && pick.path && matches(&pick.pattern, subject.trim_start_matches("./"))
}

/// Whether a pattern of `*` and `?` fits a text.
pub(super) fn wild(pattern: &[char], text: &[char]) -> bool {
    let (mut at, mut here) = (0, 0);
    let mut back = None;
    while here < text.len() {
        match pattern.get(at) {
            Some('*') => {
                back = Some((at + 1, here));
                at += 1;
            }
            Some(one) if *one == '?' || *one == text[here] => {
                at += 1;
                here += 1;
            }
            _ => match &mut back {
                Some((after, from)) => {
                    *from += 1;
                    (at, here) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|one| *one == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Facts;

    fn asked(text: &str, root: &Path) -> bool {
        let policy = Policy::open().with_ignore(&[".env", "secrets/"]).expect("patterns");
        let command = Command::new(text, root).expect("a command");
        let facts = Facts::new(root, root);
        let text_read = Text::read(text, &facts);
        let verdict = policy.judge_read(&text_read, &facts);
        assert_eq!(verdict.decision, Decision::Allow, "{text}: {:?}", verdict.reasons);
        !reasons(&verdict, &policy, &text_read, &command, &facts, root, "local").is_empty()
    }

    fn place(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().canonicalize().expect("just made");
        for file in files {
            let file = path.join(file);
            fs::create_dir_all(file.parent().expect("below root")).expect("writable");
            fs::write(file, "x").expect("writable");
        }
        (root, path)
    }

    const RECURSIVE: [&str; 13] = [
        "grep -r x .",
        "grep -rn x",
        "grep --recursive x",
        "rg -. x",
        "rg -uu x",
        "diff -r . /tmp/x",
        "git diff",
        "cp -r . /tmp/x",
        "zip -r x.zip .",
        "git grep x",
        "tar cf - .",
        "cat src/a && timeout 5 grep -r x",
        "cd src && grep -r x ..",
    ];

    #[test]
    fn reading_whole_directories_with_hidden_files_in_them_is_asked_about() {
        let (_root, path) = place(&["src/a", ".env"]);
        for text in RECURSIVE {
            assert!(asked(text, &path), "{text}");
        }
        let (_root, path) = place(&["src/a", "deep/er/secrets/key"]);
        assert!(asked("grep -r x deep", &path));
        assert!(!asked("grep -r x src", &path));
    }

    #[test]
    fn without_hidden_files_there_nobody_is_asked() {
        let (_root, path) = place(&["src/a", "src/b/c", ".environment"]);
        for text in RECURSIVE {
            assert!(!asked(text, &path), "{text}");
        }
        let (_root, path) = place(&["src/a", "src/b/c", ".env"]);
        for text in [
            "grep -r x src",
            "grep -rn x src/b",
            "rg x src",
            "find src -type f",
            "ls -R src",
            "du -sh src",
            "ls",
            "grep x src/a",
            "git grep x src",
        ] {
            assert!(!asked(text, &path), "{text}");
        }
    }

    #[test]
    fn an_option_that_could_take_a_directorys_name_does_not_narrow_the_search() {
        let (_root, path) = place(&["src/a", ".env"]);
        for text in [
            "rg -. -t src x",
            "rg -. --max-columns 3 x",
            "grep -r x src .",
            "git -C src grep x",
        ] {
            assert!(asked(text, &path), "{text}");
        }
    }

    #[test]
    fn what_git_does_not_track_is_in_no_diff_of_it() {
        let (_root, path) = place(&["src/a", ".env", ".git/HEAD"]);
        // Entries of version 2: 62 bytes, the path, and zeros up to a multiple of eight.
        let track = |paths: &[&[u8]]| {
            let mut bytes = [
                b"DIRC\0\0\0\x02\0\0\0".to_vec(),
                vec![u8::try_from(paths.len()).expect("few")],
            ]
            .concat();
            for path in paths {
                let length = (62 + path.len() + 1).next_multiple_of(8);
                let mut entry = [vec![0; 62], path.to_vec()].concat();
                entry.resize(length, 0);
                bytes.extend(entry);
            }
            bytes.extend([0; 20]);
            fs::write(path.join(".git/index"), bytes)
        };
        track(&[b"src/a"]).expect("writable");
        for text in [
            "git diff",
            "git diff --cached | head",
            "git grep x",
            "git status -vv",
            "git commit -v -m x",
            "git add -p",
            "git stash -p",
            "git checkout -p",
            "git diff-index -p --cached",
        ] {
            assert!(!asked(text, &path), "{text}");
        }
        for text in [
            "git diff main",
            "git grep --untracked x",
            "git diff --no-index . /tmp",
            "git add -A; git diff --cached",
            "git add -A; git commit -v -m x",
            "git stash -u -p",
        ] {
            assert!(asked(text, &path), "{text}");
        }
        track(&[b".env", b"src/a"]).expect("writable");
        for text in [
            "git diff",
            "git commit -v -m x",
            "git add -p",
            "git status -v",
            "git diff-files -p",
        ] {
            assert!(asked(text, &path), "{text}");
        }
        fs::write(path.join(".git/index"), "DIRC").expect("writable");
        assert!(asked("git diff", &path));
    }

    #[test]
    fn what_a_search_skips_is_what_the_lists_in_the_way_to_it_say() {
        let (_root, path) = place(&["src/deep/.env", "src/deep/a"]);
        assert!(!asked("rg x src/deep", &path));
        fs::write(path.join("src/.ignore"), "!.env\n").expect("writable");
        assert!(asked("rg x src/deep", &path));
    }

    #[test]
    fn more_entries_than_are_looked_at_may_hold_hidden_files() {
        let (_root, path) = place(&["a/b", "c", "d"]);
        let policy = Policy::open().with_ignore(&[".env"]).expect("a pattern");
        let whole = |left: usize| {
            let mut search = Search::new(&policy, &path);
            search.left = left;
            search.below(&path, Path::new("."), &Walk::default(), &mut |_, _| true)
        };
        assert!(!whole(3));
        assert!(whole(4));
    }
}
