//! What the sandbox refuses without a word of its own, recognized by what programs say of it. Knows the words of
//! programs, and nothing of what is refused: that is the filter's and the mounts'.

use std::path::PathBuf;

use crate::outcome::{Hint, HintKind};

/// What an error output says of the set-group-ID bit, which no command can set, neither on a directory.
pub(super) fn explain(stderr: &str) -> Option<Hint> {
    let line = stderr.lines().find(|line| {
        // `git init --shared`, and `chmod`, which is also refused where a file is another user's.
        line.ends_with(" writable by group")
            || line.contains("changing permissions of") && line.ends_with("Operation not permitted")
    })?;
    let path = quoted(line).unwrap_or_else(|| line.split_whitespace().find(|word| word.contains('/')).unwrap_or(""));
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
fn quoted(line: &str) -> Option<&str> {
    let mut parts = line.split(['\'', '‘', '’']);
    parts.nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_bit_is_explained_and_other_refusals_are_not() {
        for (said, path) in [
            (
                "fatal: Could not make /w/q/.git/hooks/ writable by group",
                "/w/q/.git/hooks/",
            ),
            ("x\nchmod: changing permissions of 'd': Operation not permitted\ny", "d"),
            ("chmod: changing permissions of ‘d e’: Operation not permitted", "d e"),
        ] {
            let hint = explain(said).expect(said);
            assert_eq!(hint.path, Some(PathBuf::from(path)), "{said}");
        }
        for said in [
            "chmod: cannot access 'd': No such file or directory",
            "ping: Operation not permitted",
            "",
        ] {
            assert_eq!(explain(said), None, "{said}");
        }
    }
}
