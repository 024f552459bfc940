//! Which git commands print the contents of commits, whatever files are in them.

use super::parse::find_sub;
use super::parse::parse;
use super::table::find;
use super::walks::leaves_out;
use crate::reading::Invocation;
use crate::word::{Atom, Hidden, Word};

/// Options after which only names, numbers or messages are printed.
const BRIEF: &[&str] = &[
    "--stat",
    "--shortstat",
    "--numstat",
    "--dirstat",
    "--summary",
    "--name-only",
    "--name-status",
    "--raw",
    "--no-patch",
    "-s",
    "--compact-summary",
    "--quiet",
    "--oneline-only",
];

/// Options with which `git log` and its like print contents.
const PATCH: &[&str] = &[
    "-p",
    "-u",
    "--patch",
    "-U",
    "--unified",
    "--patch-with-stat",
    "--patch-with-raw",
    "-c",
    "--cc",
    "-m",
    "-L",
    "-W",
    "--function-context",
    "--word-diff",
    "--color-words",
    "--binary",
    "--remerge-diff",
    "--diff-merges",
    "--check",
    "--dd",
];

/// Options that name objects, which may be files as well as commits.
const OTHER_OBJECTS: &[&str] = &[
    "--indexed-objects",
    "--stdin",
    "--all",
    "--tags",
    "--glob",
    "--alternate-refs",
];

/// Whether this command prints, or brings back, contents of commits of which it is not known that nothing hidden is
/// among them. `is_file` tells whether a word is the path of a file that is there, which is no revision to git, since
/// git refuses what could be both; `chosen` whether what a pathspec chooses holds nothing hidden.
pub fn prints_history(command: &Invocation, is_file: &dyn Fn(&str) -> bool, chosen: &dyn Fn(&Word) -> bool) -> bool {
    let told = || {
        if command.program()? != "git" {
            return Some(false);
        }
        let git = find("git")?;
        let found = parse(git, &command.argv[1..]);
        let sub = find_sub(git, &found.operands)?;
        let rest = &found.operands[sub.words..];
        let found = parse(sub.program, rest);
        let given = |names: &[&str]| found.has(names);
        let limited = match found.before_dashes {
            Some(before) => limits(&found.operands[before.min(found.operands.len())..], chosen),
            None => {
                let blob = |word: &Word| word.prefix().contains(':') && !word.prefix().starts_with(':');
                let path = |word: &Word| word.known().is_some_and(|path| is_file(&path));
                // Behind the first path stand paths alone.
                let first = found.operands.iter().position(path).unwrap_or(found.operands.len());
                !found.operands.is_empty() && found.operands.iter().all(blob)
                    || limits(&found.operands[first..], chosen)
            }
        };
        let patch = given(PATCH);
        let brief = given(BRIEF) && !patch && !given(OTHER_OBJECTS);
        // Of each commit that touches what was chosen, the whole.
        let whole = given(&["--full-diff"]);
        Some(match sub.name.as_str() {
            // An object that is no commit is printed whole, whatever the options say.
            "show" => {
                let commits = found.before_dashes.unwrap_or(found.operands.len());
                let is_commit = |word: &Word| {
                    *word.atoms == [Atom::Hidden(Hidden::Commit)]
                        || word.known().is_some_and(|text| names_a_commit(&text))
                };
                !(brief && found.operands.iter().take(commits).all(is_commit)) && (whole || !limited)
            }
            "log" | "whatchanged" | "reflog" | "reflog show" | "rev-list" => patch && (whole || !limited),
            "stash list" => whole || patch && !limited,
            "range-diff" => !brief,
            "stash show" => given(&["-p", "-u", "--patch"]) && !limited,
            "grep" => {
                // A revision behind the pattern searches what was committed.
                let pattern = usize::from(!given(&["-e", "-f"]));
                let revisions = found.before_dashes.unwrap_or(found.operands.len());
                found.before_dashes.is_some() && revisions > pattern && !limited
                    || found
                        .operands
                        .iter()
                        .skip(pattern)
                        .take(revisions.saturating_sub(pattern))
                        .any(|word| looks_like_revision(word.prefix()))
            }
            "cat-file" => {
                // What is always a commit: of it a header is printed.
                let of_head = |word: &Word| {
                    let name = word.known();
                    name.is_some_and(|name| name == "HEAD" || name.starts_with("HEAD~") && names_a_commit(&name))
                };
                let is_header = found.operands.last().is_some_and(of_head);
                !limited && !is_header && !given(&["-t", "-s", "-e"])
            }
            // Of three trees it prints what differs; of two commits, it makes a tree.
            "merge-tree" => found.operands.len() > 2,
            "archive" | "format-patch" | "fast-export" | "bundle create" => !limited,
            // From the index, that is; from a commit, more than is there now may come back.
            "checkout" => {
                found
                    .before_dashes
                    .is_some_and(|before| before > 0 && before < found.operands.len())
                    && !limited
            }
            "restore" => given(&["-s", "--source"]) && !limits(&found.operands, chosen),
            "diff-tree" => whole || patch && !limited,
            _ => false,
        })
    };
    told().unwrap_or(false)
}

/// Whether pathspecs choose nothing that is hidden; those that only leave out choose all the rest.
fn limits(pathspecs: &[Word], chosen: &dyn Fn(&Word) -> bool) -> bool {
    let mut choosing = pathspecs.iter().filter(|word| !leaves_out(word)).peekable();
    choosing.peek().is_some() && choosing.all(chosen)
}

/// Whether a word, if it names anything of a repository, names a commit or a tag: `HEAD~2`, `main`, and not a hash, which
/// any object has. `NAME-3-gHASH` is a hash as well.
pub(super) fn names_a_commit(text: &str) -> bool {
    let name = text.split(['~', '^', '@']).next().unwrap_or_default();
    let hash = name.rsplit_once("-g").map_or(name, |(_, hash)| hash);
    let is_hash = hash.len() >= 4 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let rest = &text[name.len()..];
    let of_a_commit = rest == "^{commit}" || rest.starts_with(['~', '^']) && !rest.contains('{');
    !text.contains(':') && (!is_hash || of_a_commit)
}

/// Whether an operand of `git grep` is a revision rather than a path.
fn looks_like_revision(text: &str) -> bool {
    text.starts_with("HEAD")
        || text.contains('~')
        || text.contains("@{")
        || text.contains(':')
        || text.contains("..")
        || (text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
