//! What an environment that cannot hide files makes of a policy that hides some: it asks about
//! commands that read whole directories in which there are such files.
//!
//! The policy looks at the paths that a text names. A recursive command names a directory and reads
//! what is in it; where the environment hides files it finds none of the hidden ones, so the policy
//! lets it pass, and it is for the others to ask. The table below says which commands those are.
//! It errs on the side of asking: what it cannot read counts as the whole workspace.
#![expect(
    clippy::disallowed_methods,
    reason = "whether a hidden file exists is looked up here"
)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::environment::Capabilities;
use crate::policy::{CommandSeen, Decision, EffectKind, Policy, Reason, Verdict};
use crate::request::Command;

/// How many directory entries are looked at before hidden files are taken to exist.
const ENTRIES: usize = 20_000;

/// A command that reads the directories below its operands, or below the current directory.
struct Recursive {
    /// The program, and the subcommand behind a slash.
    name: &'static str,
    /// It does so only with one of these options, of which a single letter may stand in a cluster;
    /// always if there are none.
    only_with: &'static [&'static str],
    /// Options, as letters, that take no value and leave the meaning of operands alone.
    flags: &'static str,
    /// How many operands come before the paths.
    before: usize,
}

const GREP: &str = "rRniIlLcHhosvwxEFPaqz";
const TABLE: &[Recursive] = &[
    Recursive {
        name: "grep",
        only_with: &["r", "R", "recursive", "dereference-recursive", "directories"],
        flags: GREP,
        before: 1,
    },
    Recursive {
        name: "egrep",
        only_with: &["r", "R", "recursive", "dereference-recursive", "directories"],
        flags: GREP,
        before: 1,
    },
    Recursive {
        name: "fgrep",
        only_with: &["r", "R", "recursive", "dereference-recursive", "directories"],
        flags: GREP,
        before: 1,
    },
    Recursive {
        name: "rgrep",
        only_with: &[],
        flags: GREP,
        before: 1,
    },
    Recursive {
        name: "rg",
        only_with: &[],
        flags: "niIlcHsvwxFPaqNSu",
        before: 1,
    },
    Recursive {
        name: "ag",
        only_with: &[],
        flags: "ilLcHsvwQSu",
        before: 1,
    },
    Recursive {
        name: "ack",
        only_with: &[],
        flags: "ilLcHhsvwQ",
        before: 1,
    },
    Recursive {
        name: "git/grep",
        only_with: &[],
        flags: "niIlLchHvwEFPaqW",
        before: 1,
    },
    Recursive {
        name: "git/diff",
        only_with: &[],
        flags: "",
        before: 0,
    },
    Recursive {
        name: "git/archive",
        only_with: &[],
        flags: "v",
        before: 1,
    },
    Recursive {
        name: "find",
        only_with: &[],
        flags: "",
        before: 0,
    },
    Recursive {
        name: "fd",
        only_with: &[],
        flags: "HIsiaLp0",
        before: 1,
    },
    Recursive {
        name: "fdfind",
        only_with: &[],
        flags: "HIsiaLp0",
        before: 1,
    },
    Recursive {
        name: "ls",
        only_with: &["R", "recursive"],
        flags: "RlaAhtrSF1dis",
        before: 0,
    },
    Recursive {
        name: "dir",
        only_with: &["R", "recursive"],
        flags: "RlaAhtrSF1dis",
        before: 0,
    },
    Recursive {
        name: "vdir",
        only_with: &["R", "recursive"],
        flags: "RlaAhtrSF1dis",
        before: 0,
    },
    Recursive {
        name: "tree",
        only_with: &[],
        flags: "adfhsDC",
        before: 0,
    },
    Recursive {
        name: "du",
        only_with: &[],
        flags: "ashckmbx",
        before: 0,
    },
    Recursive {
        name: "cp",
        only_with: &["r", "R", "a", "recursive", "archive"],
        flags: "rRapvfd",
        before: 0,
    },
    Recursive {
        name: "rsync",
        only_with: &[],
        flags: "avrzhn",
        before: 0,
    },
    Recursive {
        name: "scp",
        only_with: &["r"],
        flags: "rpqC",
        before: 0,
    },
    Recursive {
        name: "tar",
        only_with: &[],
        flags: "",
        before: 0,
    },
    Recursive {
        name: "bsdtar",
        only_with: &[],
        flags: "",
        before: 0,
    },
    Recursive {
        name: "zip",
        only_with: &["r", "R", "recurse-paths"],
        flags: "rRq9",
        before: 0,
    },
    Recursive {
        name: "7z",
        only_with: &[],
        flags: "",
        before: 0,
    },
    Recursive {
        name: "diff",
        only_with: &["r", "recursive"],
        flags: "rquNabw",
        before: 0,
    },
    Recursive {
        name: "wc",
        only_with: &["files0-from"],
        flags: "lwcmL",
        before: 0,
    },
    Recursive {
        name: "tokei",
        only_with: &[],
        flags: "",
        before: 0,
    },
    Recursive {
        name: "cloc",
        only_with: &[],
        flags: "",
        before: 0,
    },
];

/// Why this environment asks about a command that the policy lets through: one reason for each
/// command of it that could show hidden files; none where they are hidden, or where there are none.
pub(super) fn reasons(
    verdict: &Verdict,
    can: &Capabilities,
    policy: &Policy,
    command: &Command,
    workspace: &Path,
    environment: &str,
) -> Vec<Reason> {
    if can.hides_ignored || verdict.decision != Decision::Allow || policy.hidden().is_empty() {
        return Vec::new();
    }
    let linked = linked(verdict, policy, command, workspace);
    if !linked.is_empty() {
        return linked;
    }
    let wanders = verdict.commands.iter().any(|seen| {
        seen.argv
            .first()
            .is_some_and(|name| matches!(program(name), "cd" | "pushd" | "popd"))
    });
    let mut left = ENTRIES;
    verdict
        .commands
        .iter()
        .filter_map(|seen| Some((seen, recursive(seen)?)))
        .filter(|(seen, kind)| {
            let below = if wanders {
                None
            } else {
                directories(seen, kind, command.cwd())
            };
            let below = below.unwrap_or_else(|| vec![workspace.to_owned()]);
            below
                .iter()
                .any(|directory| may_hold_hidden(directory, workspace, policy, &mut left))
        })
        .map(|(seen, _)| Reason {
            decision: Decision::Ask,
            rule: format!("environment {environment}"),
            object: seen.argv.join(" "),
            span: Some(seen.span),
            because: format!(
                "it reads whole directories, there are hidden files in them, and `{environment}` cannot hide files"
            ),
            instead: Some("name the files or a directory without hidden files".to_owned()),
        })
        .collect()
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
        .filter(|effect| {
            let target = command.cwd().join(&effect.object).canonicalize();
            target.is_ok_and(|target| {
                target
                    .strip_prefix(&workspace)
                    .is_ok_and(|inside| inside.to_str().is_none_or(|inside| policy.hides(inside)))
            })
        })
        .map(|effect| Reason {
            decision: Decision::Deny,
            rule: "ignore".to_owned(),
            object: effect.object.clone(),
            span: Some(effect.span),
            because: "it leads to a hidden path".to_owned(),
            instead: None,
        })
        .collect()
}

fn program(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The row of a command, if it reads recursively.
fn recursive(seen: &CommandSeen) -> Option<&'static Recursive> {
    let (first, arguments) = seen.argv.split_first()?;
    let name = program(first);
    let kind = TABLE.iter().find(|kind| match kind.name.split_once('/') {
        Some((outer, sub)) => outer == name && arguments.iter().any(|word| word == sub),
        None => kind.name == name,
    })?;
    let has = |option: &str| {
        arguments.iter().any(|word| match word.strip_prefix("--") {
            // Long options may be shortened.
            Some(long) if option.len() > 1 => {
                let long = long.split('=').next().unwrap_or(long);
                !long.is_empty() && option.starts_with(long)
            }
            Some(_) => false,
            None => option.len() == 1 && word.starts_with('-') && word.contains(option),
        })
    };
    // What is not known of a word could be such an option.
    let unknown = arguments.iter().any(|word| word.contains(['$', '`']));
    (kind.only_with.is_empty() || unknown || kind.only_with.iter().any(|option| has(option))).then_some(kind)
}

/// The directories that a command reads; none if that cannot be told from its words.
fn directories(seen: &CommandSeen, kind: &Recursive, cwd: &Path) -> Option<Vec<PathBuf>> {
    let mut words = seen.argv.iter().skip(1);
    if let Some((_, sub)) = kind.name.split_once('/') {
        // Options in front of the subcommand may say where it works.
        if words.next()? != sub {
            return None;
        }
    }
    let mut operands = Vec::new();
    let is_find = kind.name == "find";
    for word in words {
        if is_find && (word.starts_with('-') || word == "(" || word == "!") {
            break;
        }
        match word.strip_prefix('-') {
            Some(letters) if !letters.is_empty() => {
                if !letters.chars().all(|letter| kind.flags.contains(letter)) {
                    return None;
                }
            }
            _ => operands.push(word.as_str()),
        }
    }
    let paths = operands.get(kind.before..).unwrap_or_default();
    if paths.is_empty() {
        return Some(vec![cwd.to_owned()]);
    }
    paths
        .iter()
        .map(|path| {
            let known = !path.contains(['$', '`', '*', '?', '[', '{', '~']);
            // With `..` in it, what it names is a matter of links.
            (known && !path.split('/').any(|part| part == "..")).then(|| cwd.join(path))
        })
        .collect()
}

/// Whether there is a hidden file in a directory, or too much there to be sure that there is none.
fn may_hold_hidden(start: &Path, workspace: &Path, policy: &Policy, left: &mut usize) -> bool {
    let mut ahead = vec![start.to_owned()];
    // A directory above the workspace holds all of it.
    if workspace.starts_with(start) {
        ahead = vec![workspace.to_owned()];
    }
    while let Some(directory) = ahead.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if *left == 0 {
                return true;
            }
            *left -= 1;
            let path = entry.path();
            let relative = path.strip_prefix(workspace).unwrap_or(&path);
            if policy.hides(&relative.to_string_lossy()) {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push(path);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Limit;
    use crate::policy::Facts;

    fn asked(text: &str, root: &Path, hides: bool) -> bool {
        let policy = Policy::open().with_ignore(&[".env", "secrets/"]).expect("patterns");
        let command = Command::new(text, root).expect("a command");
        let verdict = policy.judge(&command, &Facts::new(root, root));
        let can = Capabilities {
            hides_ignored: hides,
            enforces_readonly: false,
            enforces_allow: false,
            networks: [].into(),
            limits: [Limit::FileSize].into(),
            abilities: [].into(),
        };
        assert_eq!(verdict.decision, Decision::Allow, "{text}: {:?}", verdict.reasons);
        !reasons(&verdict, &can, &policy, &command, root, "local").is_empty()
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

    const RECURSIVE: [&str; 12] = [
        "grep -r x .",
        "grep -rn x",
        "grep --recursive x",
        "rg x",
        "find . -name '*.rs'",
        "find",
        "ls -R",
        "du -sh .",
        "git grep x",
        "tar cf - .",
        "cat src/a && timeout 5 grep -r x",
        "cd src && find ..",
    ];

    #[test]
    fn reading_whole_directories_with_hidden_files_in_them_is_asked_about() {
        let (_root, path) = place(&["src/a", ".env"]);
        for text in RECURSIVE {
            assert!(asked(text, &path, false), "{text}");
            assert!(
                !asked(text, &path, true),
                "{text}: where they are hidden there is nothing to ask"
            );
        }
        let (_root, path) = place(&["src/a", "deep/er/secrets/key"]);
        assert!(asked("grep -r x deep", &path, false));
        assert!(!asked("grep -r x src", &path, false));
    }

    #[test]
    fn without_hidden_files_there_nobody_is_asked() {
        let (_root, path) = place(&["src/a", "src/b/c", ".environment"]);
        for text in RECURSIVE {
            assert!(!asked(text, &path, false), "{text}");
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
            assert!(!asked(text, &path, false), "{text}");
        }
    }

    #[test]
    fn an_option_that_could_take_a_directorys_name_does_not_narrow_the_search() {
        let (_root, path) = place(&["src/a", ".env"]);
        for text in [
            "rg -t src x",
            "rg --type rust x src",
            "grep -rf src x",
            "find src -newer src .",
            "git -C src grep x",
        ] {
            let narrow = text.starts_with("find");
            assert_eq!(asked(text, &path, false), !narrow, "{text}");
        }
    }

    #[test]
    fn more_entries_than_are_looked_at_may_hold_hidden_files() {
        let (_root, path) = place(&["a/b", "c", "d"]);
        let policy = Policy::open().with_ignore(&[".env"]).expect("a pattern");
        assert!(may_hold_hidden(&path, &path, &policy, &mut 3));
        assert!(!may_hold_hidden(&path, &path, &policy, &mut 4));
    }
}
