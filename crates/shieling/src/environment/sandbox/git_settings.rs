//! Settings of git that a sandbox is shown of the user's own: those whose value can neither run anything
//! nor hold a credential. Reads the files in which git keeps them; runs no git and follows no include.
//!
//! One table says which. What is not in it is left out: helpers, hooks, filters, pagers, editors, addresses,
//! signing, and every path.
#![expect(clippy::disallowed_methods, reason = "the user's own settings are read here")]

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use shieling_gate::LeadKind;

/// The longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// What is shown: `section.key` in lower case; `section.*` is each key of the section and of its subsections.
const SHOWN: &[&str] = &[
    "advice.*",
    "apply.ignorewhitespace",
    "apply.whitespace",
    "author.email",
    "author.name",
    "blame.blankboundary",
    "blame.coloring",
    "blame.date",
    "blame.showemail",
    "blame.showroot",
    "branch.autosetupmerge",
    "branch.autosetuprebase",
    "branch.sort",
    "checkout.defaultremote",
    "checkout.guess",
    "color.*",
    "column.*",
    "commit.cleanup",
    "commit.status",
    "commit.verbose",
    "committer.email",
    "committer.name",
    "core.abbrev",
    "core.autocrlf",
    "core.commentchar",
    "core.eol",
    "core.quotepath",
    "core.safecrlf",
    "core.whitespace",
    "diff.algorithm",
    "diff.colormoved",
    "diff.colormovedws",
    "diff.context",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.relative",
    "diff.renamelimit",
    "diff.renames",
    "diff.submodule",
    "diff.suppressblankempty",
    "diff.wordregex",
    "fetch.parallel",
    "fetch.prune",
    "fetch.prunetags",
    "format.pretty",
    "grep.column",
    "grep.extendedregexp",
    "grep.fullname",
    "grep.linenumber",
    "grep.patterntype",
    "init.defaultbranch",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.follow",
    "log.mailmap",
    "log.showroot",
    "merge.conflictstyle",
    "merge.directoryrenames",
    "merge.ff",
    "merge.log",
    "merge.renamelimit",
    "merge.renames",
    "merge.stat",
    "pretty.*",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "push.followtags",
    "push.useforceifincludes",
    "rebase.abbreviatecommands",
    "rebase.autosquash",
    "rebase.autostash",
    "rebase.missingcommitscheck",
    "rebase.stat",
    "rebase.updaterefs",
    "rerere.autoupdate",
    "rerere.enabled",
    "stash.showincludeuntracked",
    "stash.showpatch",
    "stash.showstat",
    "status.*",
    "submodule.fetchjobs",
    "submodule.recurse",
    "tag.sort",
    "user.email",
    "user.name",
    "user.useconfigonly",
    "versionsort.suffix",
];

/// One setting, as git knows it.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    subsection: Option<String>,
    key: String,
    /// None where the key stands alone, which means yes.
    value: Option<String>,
}

/// The harmless settings of the host and of the user with this home, as a file of settings; nothing if
/// there are none.
pub(super) fn harmless(home: Option<&Path>) -> Option<String> {
    let text: String = files(home)
        .filter_map(|path| read(&path))
        .map(|text| shown(&text))
        .collect();
    (!text.is_empty()).then_some(text)
}

/// What in a workspace the settings of the user and the host include, or have git run: the files that they name there.
pub(super) fn leads(home: Option<&Path>, workspace: &Path) -> Vec<(PathBuf, LeadKind)> {
    let mut leads = Vec::new();
    for file in files(home) {
        let Some(text) = read(&file) else { continue };
        let here = file.parent().unwrap_or(Path::new("/"));
        for setting in shieling_gate::settings::parse(text.as_bytes()) {
            let (paths, kind, from) = if setting.is_include() {
                (setting.paths(), LeadKind::GitSettings, here)
            } else if setting.is("core.hookspath") {
                (setting.paths(), LeadKind::Code, workspace)
            } else {
                (
                    setting.words().into_iter().collect(),
                    setting.kind_of_words(),
                    workspace,
                )
            };
            let whole = paths.into_iter().map(|path| match (path.strip_prefix("~"), home) {
                (Ok(rest), Some(home)) => home.join(rest),
                _ => from.join(path),
            });
            leads.extend(
                whole
                    .filter(|path| path.starts_with(workspace))
                    .map(|path| (path, kind)),
            );
        }
    }
    leads
}

/// The files of settings of the host and of the user with this home.
fn files(home: Option<&Path>) -> impl Iterator<Item = PathBuf> {
    let own = home.map(|home| [home.join(".config/git/config"), home.join(".gitconfig")]);
    [PathBuf::from("/etc/gitconfig")]
        .into_iter()
        .chain(own.into_iter().flatten())
}

/// The lines by which git leaves out what these patterns hide. They hide in whatever case a name is written, which git
/// is told letter by letter.
pub(super) fn excluding(patterns: &[String]) -> String {
    let mut lines = String::new();
    for pattern in patterns.iter().filter(|pattern| !pattern.contains('\0')) {
        let (mut in_brackets, mut is_escaped) = (false, false);
        for c in pattern.chars() {
            if c.is_ascii_alphabetic() && !in_brackets && !is_escaped {
                lines.extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']);
            } else {
                lines.push(c);
            }
            in_brackets = !is_escaped && (c == '[' || in_brackets && c != ']');
            is_escaped = c == '\\' && !is_escaped;
        }
        lines.push('\n');
    }
    lines
}

/// What of a file of settings is shown.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for setting in settings(text).iter().filter(|setting| is_harmless(setting)) {
        let Setting {
            section,
            subsection,
            key,
            value,
        } = setting;
        let header = match subsection {
            Some(name) => format!("[{section} \"{}\"]", quoted(name)),
            None => format!("[{section}]"),
        };
        let line = match value {
            Some(value) => format!("{key} = \"{}\"", quoted(value)),
            None => key.clone(),
        };
        writeln!(shown, "{header}\n\t{line}").expect("a string takes text");
    }
    shown
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\t', "\\t")
}

fn is_harmless(setting: &Setting) -> bool {
    let Setting {
        section,
        subsection,
        key,
        value,
    } = setting;
    let value = value.as_deref().unwrap_or_default();
    // Whatever the key: an address can hold a password.
    if value.contains("://") || value.contains('\0') {
        return false;
    }
    if section == "alias" {
        // One that begins with `!` is a shell's, and `-c` sets what this table leaves out.
        let sets =
            |word: &str| word.starts_with("-c") || word.starts_with("--config-env") || word.starts_with("--exec-path");
        return subsection.is_none() && !value.trim_start().starts_with('!') && !value.split_whitespace().any(sets);
    }
    SHOWN.iter().any(|row| match row.strip_suffix(".*") {
        Some(whole) => whole == section,
        None => subsection.is_none() && row.split_once('.') == Some((section, key)),
    })
}

/// A file of settings, whoever laid a link or a pipe there: what it says is asked of it once, and is bounded.
fn read(path: &Path) -> Option<String> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("open's flags fit into an int");
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Reads git's syntax. At the first thing that git would refuse, the rest is left out.
fn settings(text: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut header: Option<(String, Option<String>)> = None;
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut rest = text.as_str();
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return found };
        if first == '#' || first == ';' {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if first == '[' {
            let Some((parsed, after)) = section(rest) else {
                return found;
            };
            header = Some(parsed);
            rest = after;
        } else {
            let name = rest
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .unwrap_or(rest.len());
            let (key, after) = rest.split_at(name);
            let Some((section, subsection)) = header.clone().filter(|_| first.is_ascii_alphabetic()) else {
                return found;
            };
            let after = after.trim_start_matches([' ', '\t']);
            let (value, after) = match after.strip_prefix('=') {
                Some(after) => {
                    let Some((value, after)) = value(after) else {
                        return found;
                    };
                    (Some(value), after)
                }
                None => (None, after),
            };
            found.push(Setting {
                section,
                subsection,
                key: key.to_ascii_lowercase(),
                value,
            });
            rest = after;
        }
    }
}

type Header = (String, Option<String>);

/// `[section]`, `[section "Sub"]` or `[section.sub]`, and what follows.
fn section(text: &str) -> Option<(Header, &str)> {
    let inside = text.strip_prefix('[')?;
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.')?;
    let (name, rest) = inside.split_at(end);
    let name = name.to_ascii_lowercase();
    let rest = rest.trim_start_matches([' ', '\t']);
    if let Some(rest) = rest.strip_prefix(']') {
        return Some(match name.split_once('.') {
            Some((section, sub)) => ((section.to_owned(), Some(sub.to_owned())), rest),
            None => ((name, None), rest),
        });
    }
    let mut sub = String::new();
    let mut chars = rest.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => break,
            '\n' => return None,
            '\\' => sub.push(chars.next()?),
            other => sub.push(other),
        }
    }
    let rest = chars.as_str().strip_prefix(']')?;
    Some(((name, Some(sub)), rest))
}

/// What stands after `=`, and what follows its line.
fn value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    // Blanks at the end count only where quotes hold them.
    let mut kept = 0;
    let mut quotes = false;
    let mut chars = text.trim_start_matches([' ', '\t']).chars();
    while let Some(char) = chars.next() {
        match char {
            '\n' if quotes => return None,
            '\n' => break,
            '#' | ';' if !quotes => {
                let rest = chars.as_str();
                value.truncate(kept);
                return Some((value, rest.split_once('\n').map_or("", |(_, rest)| rest)));
            }
            '"' => {
                quotes = !quotes;
                kept = value.len();
            }
            '\\' => {
                match chars.next()? {
                    '\n' => continue,
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    other @ ('"' | '\\') => value.push(other),
                    _ => return None,
                }
                kept = value.len();
            }
            ' ' | '\t' if !quotes => value.push(char),
            other => {
                value.push(other);
                kept = value.len();
            }
        }
    }
    if quotes {
        return None;
    }
    value.truncate(kept);
    Some((value, chars.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_run_nothing_and_is_no_secret_is_shown_and_its_neighbour_is_not() {
        let text = "# mine\n[user]\n\tName = A B ; me\n email = \"a@b\"\n signingkey = k\n\
            [init] defaultBranch = trunk\n[alias]\n st = status -sb\n sh = !rm -rf /\n s2 = \" !x\"\n c = -c core.pager=x log\n\
            [color \"diff\"]\n\tmeta = yellow bold\n[Core]\n autocrlf = input\n pager = less\n editor = vi\n fsmonitor = x\n \
            hooksPath = /h\n[credential]\n helper = store\n[http]\n extraheader = token\n[url \"https://u:p@h/\"]\n insteadOf = x\n\
            [pull]\n\trebase\n twohead = evil\n[push]default=simple\n[merge]\n conflictStyle = zdiff3\n tool = x\n[merge \"d\"]\n driver = x\n\
            [include]\n path = other\n[gpg]\n program = x\n[format]\n pretty = https://u:p@h\n";
        assert_eq!(
            shown(text),
            "[user]\n\tname = \"A B\"\n[user]\n\temail = \"a@b\"\n[init]\n\tdefaultbranch = \"trunk\"\n\
             [alias]\n\tst = \"status -sb\"\n[color \"diff\"]\n\tmeta = \"yellow bold\"\n[core]\n\tautocrlf = \"input\"\n\
             [pull]\n\trebase\n[push]\n\tdefault = \"simple\"\n[merge]\n\tconflictstyle = \"zdiff3\"\n"
        );
    }

    #[test]
    fn what_the_users_settings_name_in_the_workspace_is_told_and_its_neighbour_is_not() {
        let home = tempfile::tempdir().expect("a directory");
        let work = home.path().join("work");
        let text = format!(
            "[include]\npath = work/shared\npath = elsewhere\n[core]\nhooksPath = .ours\nsshCommand = ssh\n[filter \"x\"]\nclean = sh {}/clean %f\n\
             [alias]\nx = !~/work/tool\n",
            work.display()
        );
        fs::write(home.path().join(".gitconfig"), text).expect("written");
        let found = leads(Some(home.path()), &work);
        for (name, kind) in [
            ("shared", LeadKind::GitSettings),
            (".ours", LeadKind::Code),
            ("clean", LeadKind::Program),
            ("tool", LeadKind::Program),
        ] {
            assert!(found.contains(&(work.join(name), kind)), "{name}: {found:?}");
        }
        assert!(
            !found
                .iter()
                .any(|(path, _)| path.ends_with("elsewhere") || path.ends_with("ssh")),
            "{found:?}"
        );
    }

    #[test]
    fn a_value_is_read_as_git_reads_it_and_cannot_become_another_setting() {
        let lines = [
            ("[user]name=a\\\nb", Some("ab")),
            ("[user]name=a\\nb[core]", Some("a\nb[core]")),
            ("[user]name=\"a ; b\" # c", Some("a ; b")),
            ("[user]name = a  b  \n", Some("a  b")),
            ("[user]name=\"a", None),
            ("[user]name=a\\x", None),
            ("[user", None),
            ("name = a", None),
        ];
        for (text, value) in lines {
            let found = settings(text);
            assert_eq!(
                found.first().and_then(|found| found.value.as_deref()),
                value,
                "{text:?}"
            );
        }
        let shown = shown("[user]\n name = \"a\\n[core]\\npager = x\\\\\"\n");
        assert_eq!(settings(&shown).len(), 1, "{shown}");
    }

    #[test]
    fn all_files_of_the_user_count_and_what_is_none_is_passed_over() {
        let home = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(home.path().join(".config/git")).expect("made");
        fs::write(home.path().join(".config/git/config"), "[user]\nname=x\n").expect("written");
        fs::create_dir(home.path().join(".gitconfig")).expect("made");
        let found = harmless(Some(home.path())).expect("there is some");
        assert!(found.ends_with("[user]\n\tname = \"x\"\n"), "{found}");
    }
}
