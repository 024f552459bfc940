//! What the sandbox refuses without a word of its own, recognized by what programs say of it. Knows the words of
//! programs, and nothing of what is refused: that is the filter's and the mounts'.

use std::path::PathBuf;

use crate::outcome::{Hint, HintKind};

/// What programs say that would make their caller another user.
const NO_OTHER_USER: [&str; 3] = [
    "sudo: The \"no new privileges\" flag is set",
    "sudo: PERM_SUDOERS: setresuid",
    "su: Critical error - immediate abort",
];

/// What programs say that set a mode: `chmod`, `install`, `mkdir -m`, `cp -p`, `rsync`, `tar`.
const MODES: [&str; 6] = [
    "changing permissions of",
    "cannot change permissions of",
    "cannot set permissions",
    "preserving permissions for",
    "failed to set permissions on",
    "Cannot change mode to",
];

/// What an error output says of more rights, which no command gets: as another user, or by a set-group-ID bit,
/// which no command can set, neither on a directory.
pub(super) fn explain(stderr: &str) -> Option<Hint> {
    if stderr
        .lines()
        .any(|line| NO_OTHER_USER.iter().any(|said| line.starts_with(said)))
    {
        return Some(Hint {
            kind: HintKind::Permissions,
            path: None,
            because: "no command in a sandbox can become another user".to_owned(),
            instead: "do without it, or have a person run this outside of the sandbox".to_owned(),
        });
    }
    let line = stderr.lines().find(|line| {
        // `git init --shared`, and `chmod`, which is also refused where a file is another user's.
        line.ends_with(" writable by group")
            || MODES.iter().any(|said| line.contains(said)) && line.contains("Operation not permitted")
    })?;
    let path = quoted(line).unwrap_or_else(|| {
        line.split_whitespace()
            .find(|word| word.contains('/'))
            .unwrap_or("")
            .trim_end_matches(':')
    });
    Some(Hint {
        kind: HintKind::Permissions,
        path: Some(PathBuf::from(path)),
        because: "no command can set the set-user-ID or set-group-ID bit, of a directory neither, or change the mode \
                  of what is another user's"
            .to_owned(),
        instead: "leave these bits out: `git init` without `--shared`, `chmod` without `s`".to_owned(),
    })
}

/// What stands between the first two quotation marks of a line.
pub(super) fn quoted(line: &str) -> Option<&str> {
    let mut parts = line.split(['\'', '‘', '’', '"']);
    parts.nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_bit_and_a_refused_user_are_explained_and_other_refusals_are_not() {
        for (said, path) in [
            (
                "fatal: Could not make /w/q/.git/hooks/ writable by group",
                "/w/q/.git/hooks/",
            ),
            ("x\nchmod: changing permissions of 'd': Operation not permitted\ny", "d"),
            ("chmod: changing permissions of ‘d e’: Operation not permitted", "d e"),
            (
                "install: cannot change permissions of 'x': Operation not permitted",
                "x",
            ),
            ("mkdir: cannot set permissions 'd': Operation not permitted", "d"),
            ("cp: preserving permissions for 'b': Operation not permitted", "b"),
            (
                "rsync: [receiver] failed to set permissions on \"/w/d/.x.q\": Operation not permitted (1)",
                "/w/d/.x.q",
            ),
            (
                "tar: d/x: Cannot change mode to rwsr-xr-x: Operation not permitted",
                "d/x",
            ),
        ] {
            let hint = explain(said).expect(said);
            assert_eq!(hint.path, Some(PathBuf::from(path)), "{said}");
        }
        for said in NO_OTHER_USER {
            let hint = explain(&format!("x\n{said}, which …")).expect(said);
            assert!(hint.path.is_none() && hint.because.contains("another user"), "{hint:?}");
        }
        for said in [
            "sudo: command not found",
            "su: Authentication failure",
            "chmod: cannot access 'd': No such file or directory",
            "ping: Operation not permitted",
            "",
        ] {
            assert_eq!(explain(said), None, "{said}");
        }
    }
}
