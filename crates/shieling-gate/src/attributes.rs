//! Which drivers a file of git's attributes names.

use std::collections::BTreeSet;

/// Drivers that are git's own, or git-lfs's.
const DRIVERS: &[&str] = &[
    "lfs", "text", "binary", "union", "ada", "bash", "bibtex", "cpp", "csharp", "css", "dts", "elixir", "fortran",
    "fountain", "golang", "html", "java", "kotlin", "markdown", "matlab", "objc", "pascal", "perl", "php", "python",
    "ruby", "rust", "scheme", "tex",
];

/// The drivers that are neither git's own nor git-lfs's, of a file of attributes.
pub(crate) fn drivers(text: &str) -> BTreeSet<String> {
    let words = text
        .lines()
        // Git skips no other white space before the mark of a comment.
        .filter(|line| !line.trim_start_matches([' ', '\t', '\r']).starts_with('#'))
        .flat_map(str::split_whitespace);
    let named = words.filter_map(|word| {
        ["filter=", "diff=", "merge="]
            .iter()
            .find_map(|kind| word.strip_prefix(kind))
    });
    named
        .filter(|name| !DRIVERS.contains(name))
        .map(str::to_owned)
        .collect()
}
