//! Redirections that have two streams change places (`3>&1 1>&2 2>&3`), at which bashkit loses what is
//! written. They are looked for before.

/// The first in a text: a stream that is kept in a descriptor above 2, and one that is led to that
/// descriptor in the same command. Quotes are not looked at: what is quoted is refused without need.
pub(super) fn first(text: &str) -> Option<&str> {
    text.split(['\n', ';', '|']).find_map(|command| {
        let kept = duplicates(command);
        let swap = kept.iter().find_map(|&(at, from, to)| {
            let back = kept
                .iter()
                .find(|&&(later, led, into)| later > at && led <= 2 && into == from)?;
            (from > 2 && to <= 2).then_some(at..back.0 + LENGTH)
        })?;
        command.get(swap)
    })
}

/// How long `3>&1` is.
const LENGTH: usize = 4;

/// Where `N>&M` stands, of descriptors of one digit.
fn duplicates(command: &str) -> Vec<(usize, u8, u8)> {
    let found = command.as_bytes().windows(LENGTH).enumerate();
    let found = found.filter_map(|(at, bytes)| match bytes {
        [from @ b'0'..=b'9', b'>', b'&', to @ b'0'..=b'9'] => Some((at, from - b'0', to - b'0')),
        _ => None,
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn streams_that_change_places_are_found_and_others_are_not() {
        let cases = [
            ("f 3>&1 1>&2 2>&3", Some("3>&1 1>&2 2>&3")),
            ("true; (f) 3>&1 >/dev/null 2>&3 | cat", Some("3>&1 >/dev/null 2>&3")),
            ("exec 3>&1\necho x >&3", None),
            ("f 2>&1; g 3>&1; h 2>&3", None),
            ("f 1>&2 2>&1", None),
            ("é 3>&", None),
        ];
        for (text, expected) in cases {
            assert_eq!(first(text), expected, "{text}");
        }
    }
}
