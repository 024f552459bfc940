//! Transcripts without the parts that differ between runs.

use std::path::Path;

/// Replaces `paths` by their names, durations by `N ms` or `N s`, process ids after `pid` by `N`, and sequences of 64
/// hexadecimal digits by `<digest>`.
///
/// Longer paths are replaced first, so that a workspace below a home directory remains recognisable.
pub fn normalised(text: &str, paths: &[(&Path, &str)]) -> String {
    let mut text = text.to_owned();
    let mut paths: Vec<_> = paths
        .iter()
        .map(|(path, name)| (path.to_string_lossy(), name))
        .collect();
    paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    for (path, name) in paths {
        text = text.replace(&*path, name);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let starts_word = !shown.ends_with(|c: char| c.is_alphanumeric() || c == '.' || c == '_');
        if starts_word && first.is_ascii_hexdigit() {
            let hex = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
            if hex == 64 {
                shown.push_str("<digest>");
                rest = &rest[hex..];
                continue;
            }
        }
        if starts_word && first.is_ascii_digit() {
            let digits = rest
                .find(|c: char| !(c.is_ascii_digit() || c == '.'))
                .unwrap_or(rest.len());
            let after = &rest[digits..];
            let unit = [" ms", " s", "ms", "s"].into_iter().find(|unit| {
                after
                    .strip_prefix(unit)
                    .is_some_and(|end| !end.starts_with(|c: char| c.is_alphanumeric()))
            });
            if unit.is_some() || shown.ends_with("pid ") {
                shown.push('N');
                rest = after;
                continue;
            }
        }
        shown.push(first);
        rest = &rest[first.len_utf8()..];
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_from_run_to_run_is_replaced() {
        let digest = "ab".repeat(32);
        let text = format!("ran 1.02 s of 30s in /tmp/x1/sub, pid 4711, {digest}; kept 12 files, v1s2, 3 sheep");
        assert_eq!(
            normalised(
                &text,
                &[(Path::new("/tmp"), "<tmp>"), (Path::new("/tmp/x1"), "<workspace>")]
            ),
            "ran N s of Ns in <workspace>/sub, pid N, <digest>; kept 12 files, v1s2, 3 sheep"
        );
    }
}
