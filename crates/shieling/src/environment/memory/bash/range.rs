//! Ranges in braces that bashkit would leave as they are, since they are long. That would be a wrong
//! result, so they are looked for before.

/// How many elements are expanded.
pub(super) const LONGEST: u64 = 10_000;

/// The first range that a text holds that has more elements. Quotes are not looked at: what is quoted is
/// refused without need.
pub(super) fn too_long(text: &str) -> Option<&str> {
    text.match_indices('{').find_map(|(at, _)| {
        let inner = text[at + 1..].split_once('}')?.0;
        (elements(inner)? > LONGEST).then(|| &text[at..at + inner.len() + 2])
    })
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
        ];
        for (text, expected) in cases {
            assert_eq!(too_long(text), expected, "{text}");
        }
    }
}
