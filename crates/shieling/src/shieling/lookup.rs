//! What is looked up in the file system before a command is judged and asked about, so that policy
//! and approval need not look themselves.
//!
//! It reads, within bounds, and decides nothing. It looks where it is told to ([`Place`]): on this host,
//! where an environment that shows the workspace under another path, or other programs, is seen only as
//! far as the paths are the same; or in an environment's own files.

mod place;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use shieling_gate::index;
use shieling_shell::{FileNames, NamesIn, program};

pub(super) use self::place::Place;
use crate::policy::{EffectKind, Facts, Verdict};
use crate::request::{Command, Digest};

/// How much of all files of one command together is read for digests. Further files are known by
/// their inode, size and times of change, the last of which cannot be set back without root.
const READ_FOR_DIGESTS: u64 = 64 * 1024 * 1024;

/// How many names of a directory are looked at.
const NAMES: usize = 10_000;

/// How many names are looked at in all directories together.
const NAMES_BELOW: usize = 50_000;

/// How large git's index may be to be read.
const INDEX_READ: u64 = 16 * 1024 * 1024;

/// How many directories a relative path is tried in.
const DIRECTORIES: usize = 64;

/// The facts by which a command is judged, as far as they can be looked up.
pub(super) fn facts(command: &Command, workspace: &Path, place: &Place) -> Facts {
    let home = command.variables().get("HOME").map(String::as_str);
    let mut facts = Facts::new(workspace, command.cwd())
        .with_home(home)
        .with_shadowed(shadowed(command, workspace, place));
    // Where links have led it, `cd ..` of a shell does not go up from where it stands.
    let way = command.variables().get("PWD").map(Path::new).filter(|way| {
        way.is_absolute() && *way != command.cwd() && place.real(way).is_some_and(|real| real == command.cwd())
    });
    if let Some(way) = way {
        facts = facts.by_way_of(way);
    }
    // A large directory takes milliseconds, and only a glob makes words of its names.
    if command.text().contains(['*', '?', '[']) {
        facts.dashed_names = dashed_names(command.cwd(), place);
    }
    if command.text().contains("git") {
        facts.files_named = files_named(command, place);
        facts.repositories = repositories(command, workspace, place);
    }
    facts
}

/// The plain words of a text that are paths of files that are there.
fn files_named(command: &Command, place: &Place) -> BTreeSet<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    let words = command.text().split_ascii_whitespace();
    words
        .filter(|word| !word.starts_with('-') && word.bytes().all(plain))
        .take(DIRECTORIES)
        .filter(|word| place.is_file(&command.cwd().join(word)))
        .map(str::to_owned)
        .collect()
}

/// The plain words of a text that lead into a repository below the workspace's own, one after another too, and `.` if
/// the text starts in one. The linked ones of submodules, whose `.git` is a file, belong to the workspace's.
fn repositories(command: &Command, workspace: &Path, place: &Place) -> BTreeSet<String> {
    let is_one = |directory: &Path| {
        let own = directory.join(".git");
        let bare = || {
            place.is_file(&directory.join("HEAD"))
                && place.is_directory(&directory.join("objects"))
                && place.is_directory(&directory.join("refs"))
        };
        place.is_directory(&own) || directory.file_name().is_some_and(|name| name != ".git") && bare()
    };
    let within = |path: &Path| {
        let inside = |above: &&Path| *above != workspace && above.starts_with(workspace);
        path.ancestors().take_while(inside).any(is_one)
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    let words: Vec<&str> = command
        .text()
        .split(|separator: char| separator.is_ascii_whitespace() || "\"'=;&|()".contains(separator))
        .filter(|word| !word.is_empty() && !word.starts_with('-') && word.bytes().all(plain))
        .filter(|word| word.len() < 4096)
        .take(DIRECTORIES)
        .collect();
    let there: Vec<(&str, PathBuf)> = words
        .iter()
        .map(|word| (*word, command.cwd().join(word)))
        .filter(|(_, path)| place.is_directory(path))
        .collect();
    let further = there
        .iter()
        .flat_map(|(_, path)| words.iter().map(move |word| (*word, path.join(word))))
        .take(DIRECTORIES * DIRECTORIES)
        .filter(|(_, path)| place.is_directory(path));
    let named = there.iter().cloned().chain(further);
    let mut found: BTreeSet<String> = named
        .filter(|(_, path)| within(path))
        .map(|(word, _)| word.trim_start_matches("./").trim_end_matches('/').to_owned())
        .collect();
    if within(command.cwd()) {
        found.insert(".".to_owned());
    }
    found
}

/// The names of the programs that stand on the path in the workspace, before the system's.
fn shadowed(command: &Command, workspace: &Path, place: &Place) -> BTreeSet<String> {
    let path = command.variables().get("PATH").map_or("", String::as_str);
    path.split(':')
        .map(|directory| command.cwd().join(directory))
        .filter(|directory| directory.starts_with(workspace) && workspace.parent().is_some())
        .filter_map(|directory| place.names(&directory, NAMES))
        .flatten()
        .filter_map(|name| name.into_string().ok())
        .collect()
}

/// Whether a directory holds names that begin with a dash, which a glob would turn into options, or with an `@`, which
/// some programs take for a file of arguments.
fn dashed_names(directory: &Path, place: &Place) -> Option<bool> {
    let names = place.names(directory, NAMES)?;
    let dashed = names
        .iter()
        .any(|name| matches!(name.as_encoded_bytes().first(), Some(b'-' | b'@')));
    (dashed || names.len() < NAMES).then_some(dashed)
}

/// Whether the names of files in these directories are known to be plain.
pub(super) fn are_plain(names: &BTreeSet<NamesIn>, from: &Path, place: &Place) -> bool {
    let mut left = NAMES_BELOW;
    names.iter().all(|used| {
        // Where a name begins a word, an `@` can stand for a file of arguments.
        let begins_words = matches!(used.directory.trim_start_matches("./"), "" | ".");
        if begins_words && dashed_names(from, place) != Some(false) {
            return false;
        }
        match used.tracked {
            true => tracks_plain_names(from, place),
            false => are_plain_in(used, &from.join(&used.directory), place, &mut left),
        }
    })
}

fn are_plain_in(used: &NamesIn, directory: &Path, place: &Place, left: &mut usize) -> bool {
    let is_left_out = |name: &str, below: &Path| {
        used.without.contains(name) || used.without.contains(&format!("./{}", below.display()))
    };
    let mut ahead = vec![PathBuf::new()];
    while let Some(below) = ahead.pop() {
        let Some(entries) = place.entries(&directory.join(&below), *left) else {
            return false;
        };
        *left -= entries.len();
        if *left == 0 {
            return false;
        }
        for (name, is_directory) in entries {
            let Some(name) = name.to_str().filter(|name| FileNames::is_plain(name)) else {
                return false;
            };
            let path = below.join(name);
            // What git stores has names of its own making.
            if used.deep && is_directory && !is_left_out(name, &path) && !path.ends_with(".git/objects") {
                ahead.push(path);
            }
        }
    }
    true
}

/// Whether all names that git tracks are plain, in the repository in which a directory lies.
fn tracks_plain_names(from: &Path, place: &Place) -> bool {
    let mut above = from.ancestors().map(|above| above.join(".git"));
    let git = above.find(|git| place.is_directory(git) || place.is_file(git));
    let plain = |path: &[u8]| std::str::from_utf8(path).is_ok_and(|path| path.split('/').all(FileNames::is_plain));
    // Elsewhere than in a directory of that name it is not looked for.
    git.and_then(|git| tracked(&git, place))
        .is_some_and(|tracked| tracked.iter().all(|one| plain(&one.path)))
}

/// What git tracks, by the index in this git directory; nothing if it cannot be read whole.
pub(super) fn tracked(git: &Path, place: &Place) -> Option<Vec<index::IndexEntry>> {
    index::tracked(&place.bytes(&git.join("index"), INDEX_READ)?)
}

/// The files that a text runs, with what is in them now.
pub(super) fn files(verdict: &Verdict, command: &Command, workspace: &Path, place: &Place) -> Vec<(PathBuf, Digest)> {
    let mut budget = READ_FOR_DIGESTS;
    files_run(verdict, command, workspace, place)
        .into_iter()
        .map(|path| {
            let digest = place.digest(&path, &mut budget);
            (path, digest)
        })
        .collect()
}

/// The files that a text runs: `./x.sh`, `bash x.sh`, `python3 x.py`, `make`; sorted, each once.
///
/// A file too many costs a question, one too few lets a changed script run. So it is generous: a
/// relative path is tried in each directory that the text changes to, and a path that is certainly
/// run is given also where nothing is there yet.
pub(super) fn files_run(verdict: &Verdict, command: &Command, workspace: &Path, place: &Place) -> Vec<PathBuf> {
    let mut run = Search {
        directories: directories(verdict, command, place),
        command,
        place,
        found: BTreeSet::new(),
    };
    for effect in verdict.effects.iter().filter(|effect| effect.kind == EffectKind::Runs) {
        if effect.object.contains('/') {
            run.add(&effect.object);
        } else {
            run.add_existing(&effect.object);
        }
    }
    for seen in &verdict.commands {
        let Some((command, arguments)) = seen.argv.split_first() else {
            continue;
        };
        if command.contains('/') {
            run.add(command);
        } else {
            run.add_from_path(command, workspace);
        }
        let name = command.rsplit('/').next().unwrap_or(command);
        if program::runs_scripts(name) && !run.add_script(arguments) {
            // It may read its script from a file by redirection or pipe.
            for effect in verdict.effects.iter().filter(|effect| effect.kind == EffectKind::Reads) {
                run.add_existing(&effect.object);
            }
        }
        for file in program::project_files(name) {
            run.add_existing(file);
        }
    }
    run.found.into_iter().collect()
}

/// The directories in which the commands of a text may stand.
fn directories(verdict: &Verdict, command: &Command, place: &Place) -> Vec<PathBuf> {
    let mut directories = vec![command.cwd().to_owned()];
    for seen in &verdict.commands {
        let named = match seen.argv.split_first() {
            Some((name, arguments)) if matches!(name.as_str(), "cd" | "pushd") => arguments.last(),
            Some((_, arguments)) => arguments.iter().skip_while(|word| *word != "-C").nth(1),
            None => None,
        };
        for base in named.map(|_| directories.clone()).unwrap_or_default() {
            let there = base.join(named.map_or("", String::as_str));
            if directories.len() < DIRECTORIES && !directories.contains(&there) && place.is_directory(&there) {
                directories.push(there);
            }
        }
    }
    directories
}

struct Search<'a> {
    directories: Vec<PathBuf>,
    command: &'a Command,
    place: &'a Place,
    found: BTreeSet<PathBuf>,
}

impl Search<'_> {
    /// Where a word may point to.
    fn places(&self, word: &str) -> Vec<PathBuf> {
        let home = self.command.variables().get("HOME");
        if let (Some(below), Some(home)) = (word.strip_prefix("~/"), home) {
            return vec![Path::new(home).join(below)];
        }
        let mut places: Vec<_> = self
            .directories
            .iter()
            // Without `.` in between, so that one file has one name.
            .map(|directory| directory.join(word).components().collect())
            .collect();
        places.dedup();
        places
    }

    /// Adds a path that is run, whether or not there is a file.
    fn add(&mut self, word: &str) {
        if !self.add_existing(word) {
            let first = self.places(word).into_iter().next();
            self.found.extend(first);
        }
    }

    fn add_existing(&mut self, word: &str) -> bool {
        let existing: Vec<_> = self
            .places(word)
            .into_iter()
            .filter(|path| self.place.is_file(path))
            .collect();
        let any = !existing.is_empty();
        self.found.extend(existing);
        any
    }

    /// Adds programs that the workspace itself puts on the PATH, such as those of a `.venv`.
    fn add_from_path(&mut self, program: &str, workspace: &Path) {
        let path = self.command.variables().get("PATH").map_or("", String::as_str);
        for directory in path.split(':') {
            let directory = self.command.cwd().join(directory);
            let path = directory.join(program);
            if directory.starts_with(workspace) && self.place.is_file(&path) {
                self.found.insert(path);
            }
        }
    }

    /// Adds the script among an interpreter's arguments. Says whether there was one.
    fn add_script(&mut self, arguments: &[String]) -> bool {
        let mut any = false;
        let mut after_option = false;
        for word in arguments {
            if let Some(option) = word.strip_prefix('-') {
                any |= option
                    .split_once('=')
                    .is_some_and(|(_, value)| self.add_existing(value));
                after_option = true;
            } else {
                let existing = self.add_existing(word);
                any |= existing;
                // What follows an option may be its value, and the script still to come.
                if existing && !after_option {
                    return true;
                }
                after_option = false;
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "a test makes files to look at")]

    use std::collections::BTreeMap;
    use std::fs;

    use super::*;
    use crate::policy::Policy;

    fn run(text: &str, root: &Path) -> Vec<String> {
        let variables = [
            ("PATH", format!("/usr/bin:{}/.venv/bin", root.display())),
            ("HOME", "/nowhere".to_owned()),
        ];
        let variables: BTreeMap<_, _> = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        let command = Command::new(text, root).expect("a command").with_variables(variables);
        let verdict = Policy::open().judge(&command, &facts(&command, root, &Place::Host));
        let shown = |path: PathBuf| path.strip_prefix(root).unwrap_or(&path).display().to_string();
        files_run(&verdict, &command, root, &Place::Host)
            .into_iter()
            .map(shown)
            .collect()
    }

    #[test]
    fn the_files_that_a_text_runs_are_found_and_others_are_not() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().canonicalize().expect("just made");
        for file in [
            "x.sh",
            "x.py",
            "data",
            "rc",
            "Makefile",
            "sub/y.sh",
            "sub/Makefile",
            ".venv/bin/tool",
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("below root")).expect("writable");
            fs::write(path, file).expect("writable");
        }
        let cases: [(&str, &[&str]); 20] = [
            ("echo hello", &[]),
            ("cat x.sh data", &[]),
            ("./x.sh", &["x.sh"]),
            ("bash x.sh data", &["x.sh"]),
            ("bash ./x.sh", &["x.sh"]),
            ("bash -x x.sh", &["x.sh"]),
            ("bash --rcfile rc x.sh", &["rc", "x.sh"]),
            ("bash --rcfile=rc -i", &["rc"]),
            ("python3 x.py data", &["x.py"]),
            ("python3.12 -W ignore x.py", &["x.py"]),
            ("timeout 5 bash x.sh", &["x.sh"]),
            ("true && bash x.sh | cat", &["x.sh"]),
            ("if true; then . ./x.sh; fi", &["x.sh"]),
            ("source x.sh", &["x.sh"]),
            ("bash < x.sh", &["x.sh"]),
            ("cd sub && bash y.sh", &["sub/y.sh"]),
            ("make", &["Makefile"]),
            ("make -C sub", &["Makefile", "sub/Makefile"]),
            ("tool --version", &[".venv/bin/tool"]),
            ("./not-there-yet", &["not-there-yet"]),
        ];
        for (text, expected) in cases {
            assert_eq!(run(text, &root), expected, "{text}");
        }
    }
}
