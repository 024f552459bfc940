//! A file without some of what it says, and byte for byte as it is otherwise.

use std::collections::BTreeSet;
use std::ops::Range;

/// A file, and what it says: each setting with where it stands, up to the end of its last line.
pub(crate) struct Located<'a, T> {
    pub(crate) text: &'a [u8],
    pub(crate) settings: Vec<(T, Range<usize>)>,
}

/// How a kind of file is written and read.
pub(crate) struct Form<'a, T, N> {
    /// What a setting is called.
    pub(crate) name: &'a dyn Fn(&T) -> N,
    /// What a file says; nothing if it cannot be read whole.
    pub(crate) read: &'a dyn Fn(&[u8]) -> Option<Vec<T>>,
    /// What stands between two settings: the end of a line, and the beginning of the next.
    pub(crate) between: &'static [u8],
}

/// A file without some of its settings. Where one of them took the place of settings of the same name, these stand there
/// again, as they were written before. Nothing if nothing remains, or the rest would not be read as that.
pub(crate) fn without<T: Ord, N: Ord>(
    before: &Located<'_, T>,
    after: &Located<'_, T>,
    is_held: &dyn Fn(&T) -> bool,
    form: &Form<'_, T, N>,
) -> Option<Vec<u8>> {
    let kept: BTreeSet<&T> = after.settings.iter().map(|(setting, _)| setting).collect();
    let mut put_back: BTreeSet<N> = BTreeSet::new();
    let mut expected: Vec<&T> = Vec::new();
    let mut rest = Vec::new();
    let mut at = 0;
    for (setting, range) in &after.settings {
        if !is_held(setting) {
            expected.push(setting);
            continue;
        }
        rest.extend_from_slice(after.text.get(at..range.start)?);
        at = range.end;
        let mut lines: Vec<&[u8]> = Vec::new();
        let name = (form.name)(setting);
        if !put_back.contains(&name) {
            let is_missing = |old: &T| (form.name)(old) == name && !kept.contains(old);
            for (old, range) in before.settings.iter().filter(|(old, _)| is_missing(old)) {
                expected.push(old);
                lines.push(before.text.get(range.clone())?.trim_ascii_end());
            }
            put_back.insert(name);
        }
        let start = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let stands_alone = rest.get(start..)?.iter().all(|byte| b" \t\r".contains(byte));
        match (lines.is_empty(), stands_alone) {
            (true, true) => rest.truncate(start),
            (true, false) => rest.push(b'\n'),
            (false, _) => {
                rest.extend_from_slice(&lines.join(form.between));
                rest.push(b'\n');
            }
        }
    }
    rest.extend_from_slice(after.text.get(at..)?);
    // With nothing left nothing needs the file; with what it said before, it is what it was.
    if expected.is_empty() {
        return None;
    }
    if before
        .settings
        .iter()
        .map(|(setting, _)| setting)
        .eq(expected.iter().copied())
    {
        rest = before.text.to_vec();
    }
    (form.read)(&rest)?.iter().eq(expected).then_some(rest)
}
