//! Settings of git that a sandbox is shown of the user's own: those whose value can neither run anything
//! nor hold a credential. Reads the files in which git keeps them; runs no git and follows no include.
//!
//! By which settings git runs something is known to the gate alone. The table here is a choice among the others: what
//! is a matter of taste, and neither a secret nor a path. What is not in it is left out.
#![expect(clippy::disallowed_methods, reason = "the user's own settings are read here")]

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use shieling_gate::LeadKind;
use shieling_gate::settings::{self, Setting};

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
        for setting in settings::parse(text.as_bytes()) {
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

/// What of a file of settings is shown: nothing after the first line that git cannot read.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for setting in settings::readable(text.as_bytes())
        .iter()
        .filter(|setting| is_harmless(setting))
    {
        let (section, subsection, key) = setting.parts();
        let (section, key) = (String::from_utf8_lossy(section), String::from_utf8_lossy(key));
        let header = match subsection {
            Some(name) => format!("[{section} \"{}\"]", quoted(name)),
            None => format!("[{section}]"),
        };
        let line = match &setting.value {
            Some(value) => format!("{key} = \"{}\"", quoted(value)),
            None => key.into_owned(),
        };
        writeln!(shown, "{header}\n\t{line}").expect("a string takes text");
    }
    shown
}

fn quoted(text: &[u8]) -> String {
    String::from_utf8_lossy(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\t', "\\t")
}

fn is_harmless(setting: &Setting) -> bool {
    let (section, subsection, key) = setting.parts();
    let value = String::from_utf8_lossy(setting.value.as_deref().unwrap_or_default());
    // An address can hold a password, whatever its key; and what stands before every section has no key.
    if value.contains("://") || key.is_empty() {
        return false;
    }
    if section == b"alias" {
        // One that begins with `!` is a shell's, and `-c` sets what this table leaves out.
        let sets =
            |word: &str| word.starts_with("-c") || word.starts_with("--config-env") || word.starts_with("--exec-path");
        return subsection.is_none() && !value.trim_start().starts_with('!') && !value.split_whitespace().any(sets);
    }
    let is_chosen = SHOWN.iter().any(|row| match row.strip_suffix(".*") {
        Some(whole) => whole.as_bytes() == section,
        None => setting.is(row),
    });
    is_chosen && setting.runs_nothing()
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
        let named = |value| Some(format!("[user]\n\tname = \"{value}\"\n"));
        for (text, expected) in [
            ("[user]name=a\\\nb", named("ab")),
            ("[user]name=a\\nb[core]", named("a\\nb[core]")),
            ("[user]name=\"a ; b\" # c", named("a ; b")),
            ("[user]name = a  b  \n", named("a  b")),
            ("[user]name=x\n?\n[user]name=y", named("x")),
            ("[user]name=\"a", None),
            ("[user]name=a\\x", None),
            ("[user", None),
            ("name = a", None),
            ("color = a", None),
        ] {
            assert_eq!(shown(text), expected.unwrap_or_default(), "{text:?}");
        }
        let shown = shown("[user]\n name = \"a\\n[core]\\npager = x\\\\\"\n");
        assert_eq!(settings::parse(shown.as_bytes()).len(), 1, "{shown}");
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
