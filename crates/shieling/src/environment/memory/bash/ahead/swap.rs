//! Redirections that have two streams change places (`3>&1 1>&2 2>&3`), at which bashkit loses what is
//! written.

use bashkit::parser::{Redirect, RedirectKind};

use super::simple::literal;

/// The first of one command, as it would be written: a stream that is kept in a descriptor above 2, and one
/// that is led to that descriptor later.
pub(super) fn first(redirects: &[Redirect]) -> Option<String> {
    let copies: Vec<(i32, i32)> = redirects.iter().filter_map(copied).collect();
    copies.iter().enumerate().find_map(|(at, &(kept, stream))| {
        let is_back = |&&(led, into): &&(i32, i32)| led <= 2 && into == kept;
        let (led, into) = copies.get(at + 1..)?.iter().find(is_back)?;
        (kept > 2 && stream <= 2).then(|| format!("{kept}>&{stream} … {led}>&{into}"))
    })
}

/// Which descriptor becomes a copy of which.
fn copied(redirect: &Redirect) -> Option<(i32, i32)> {
    let usual = match redirect.kind {
        RedirectKind::DupOutput => 1,
        RedirectKind::DupInput => 0,
        _ => return None,
    };
    let target = literal(&redirect.target)?;
    // `3>&1-` moves it.
    let from = target.strip_suffix('-').unwrap_or(target).parse().ok()?;
    Some((redirect.fd.unwrap_or(usual), from))
}

#[cfg(test)]
mod tests {
    use crate::environment::memory::bash::ahead::{Place, first};

    #[test]
    fn streams_that_change_places_are_found_and_others_are_not() {
        let cases = [
            ("f 3>&1 1>&2 2>&3", Some("3>&1 … 2>&3")),
            ("f 3>&1 >&2 2>&3-", Some("3>&1 … 2>&3")),
            ("true; (f) 3>&1 >/dev/null 2>&3 | cat", Some("3>&1 … 2>&3")),
            ("x=$(f 5>&1 1>&2 2>&5)", Some("5>&1 … 2>&5")),
            ("if a; then { b; } 9>&2 2>&1 1>&9; fi", Some("9>&2 … 1>&9")),
            ("eval 'f 3>&1 1>&2 2>&3'", Some("3>&1 … 2>&3")),
            ("g() { f 3>&1 1>&2 2>&3; }; g", Some("3>&1 … 2>&3")),
            ("exec 3>&1\necho x >&3", None),
            ("f 2>&1; g 3>&1; h 2>&3", None),
            ("f 1>&2 2>&1", None),
            ("f 3>&1 4>&2", None),
            ("grep -n '3>&1 1>&2 2>&3' f # 3>&1 1>&2 2>&3", None),
            ("echo \"3>&1 1>&2 2>&3\"", None),
            ("cat <<E\n3>&1 1>&2 2>&3\nE", None),
        ];
        for (text, expected) in cases {
            let why = first(text, &Place::new(None, false));
            assert_eq!(why.is_some(), expected.is_some(), "{text}: {why:?}");
            assert!(why.unwrap_or_default().contains(expected.unwrap_or_default()), "{text}");
        }
    }
}
