//! Ranges in braces that bashkit would leave as they are, since they are long. That would be a wrong
//! result, so they are looked for before.

/// How many elements are expanded.
pub(super) const LONGEST: u64 = 10_000;

/// What has quoted text be run.
const RUNS_TEXT: [&str; 6] = ["eval", "bash", "sh", "trap", "source", "alias"];

/// The first range that a text holds outside of quotes that has more elements. Where it is not sure what
/// is quoted, or what is quoted may be run, quotes count for nothing: such a range is refused without
/// need.
pub(super) fn too_long(text: &str) -> Option<&str> {
    let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let mut trusted = !words.any(|word| RUNS_TEXT.contains(&word));
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        let skipped = if trusted { quoted(text, at) } else { Some(0) };
        match skipped {
            None => trusted = false,
            Some(0) => {
                if let Some(range) = (byte == b'{').then(|| range_at(text, at)).flatten() {
                    return Some(range);
                }
                at += 1;
            }
            Some(length) => at += length,
        }
    }
    None
}

/// How long what is quoted, or a comment, is that begins here; nothing if that cannot be told without
/// reading the text as bash does.
fn quoted(text: &str, at: usize) -> Option<usize> {
    let bytes = &text.as_bytes()[at..];
    let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
    let apart = before.is_none_or(|before| b" \t\n;&|(".contains(&before));
    match bytes {
        [b'\\', _, ..] => Some(2),
        [b'\'', ..] if before == Some(b'$') => None,
        [b'\'', rest @ ..] => Some(rest.iter().position(|&byte| byte == b'\'')? + 2),
        [b'"', rest @ ..] => {
            let mut inner = rest.iter().enumerate();
            while let Some((place, byte)) = inner.next() {
                match byte {
                    b'"' => return Some(place + 2),
                    b'\\' => drop(inner.next()),
                    b'$' | b'`' => return None,
                    _ => {}
                }
            }
            None
        }
        [b'`', ..] | [b'<', b'<', ..] => None,
        [b'#', rest @ ..] if apart => Some(rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()) + 1),
        _ => Some(0),
    }
}

fn range_at(text: &str, at: usize) -> Option<&str> {
    let inner = text.get(at + 1..)?.split_once('}')?.0;
    (elements(inner)? > LONGEST).then(|| &text[at..at + inner.len() + 2])
}

fn elements(inner: &str) -> Option<u64> {
    let mut parts = inner.split("..");
    let first: i64 = parts.next()?.parse().ok()?;
    let last: i64 = parts.next()?.parse().ok()?;
    let step = match parts.next() {
        Some(step) => step.parse::<i64>().ok()?.unsigned_abs().max(1),
        None => 1,
    };
    (parts.next().is_none()).then(|| (first.abs_diff(last) / step).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::too_long;

    #[test]
    fn a_range_that_would_not_be_expanded_is_found_and_others_are_not() {
        let cases = [
            ("echo {1..20000}", Some("{1..20000}")),
            ("echo {1..10000} ${x} {a..z} {1..20000..2}", None),
            ("f() { echo {20000..1}; }", Some("{20000..1}")),
            (
                "echo {-9223372036854775808..9223372036854775807}",
                Some("{-9223372036854775808..9223372036854775807}"),
            ),
            ("{ echo {1..3}{1..4}; }", None),
            ("echo {1..99999", None),
            ("echo '{1..20000}' \"{1..20000}\" \\{1..20000}", None),
            ("# don't {1..20000}\necho {1..20001}", Some("{1..20001}")),
            ("echo 'it is' {1..20000} 'é'", Some("{1..20000}")),
            ("echo \"$(echo \"a\" {1..20000})\" \"b\"", Some("{1..20000}")),
            ("echo \"$x\" {1..20000} \"y\"", Some("{1..20000}")),
            ("cat <<E\nit's\nE\necho {1..20000} 'x'", Some("{1..20000}")),
            ("echo $'it\\'s' {1..20000} 'x'", Some("{1..20000}")),
            ("eval 'echo {1..20000}'", Some("{1..20000}")),
            ("echo a#'{1..20000}' it's {1..20000}", Some("{1..20000}")),
        ];
        for (text, expected) in cases {
            assert_eq!(too_long(text), expected, "{text}");
        }
    }
}
