//! Parses and applies modes, as in `chmod` and `mkdir -m`.

use crate::bash::disk::MASK;

/// All bits of a mode: permissions and the three special bits.
const ALL: u32 = 0o7777;

/// A mode, or a change of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    Exactly(u32),
    Changed(Vec<Clause>),
}

/// One operation of a clause such as `ug+rX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clause {
    /// The affected bits of [`ALL`]; `None` if no class is given, and the umask applies.
    who: u32,
    sign: char,
    /// `rwxXst`, or one of `ugo` to copy from.
    what: String,
}

impl Mode {
    /// Parses `755`, `u=rwx,go+r` and similar forms.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            let mode = u32::from_str_radix(text, 8).ok()?;
            return (mode <= ALL).then_some(Self::Exactly(mode));
        }
        let mut clauses = Vec::new();
        for part in text.split(',') {
            let signs = part.find(['+', '-', '='])?;
            let mut who = 0;
            for letter in part[..signs].chars() {
                who |= match letter {
                    'u' => 0o4700,
                    'g' => 0o2070,
                    'o' => 0o1007,
                    'a' => ALL,
                    _ => return None,
                };
            }
            let mut rest = &part[signs..];
            while let Some(sign) = rest.chars().next() {
                let end = rest[1..].find(['+', '-', '=']).map_or(rest.len(), |end| end + 1);
                let what = &rest[1..end];
                let copies = matches!(what, "u" | "g" | "o");
                if !copies && !what.chars().all(|letter| "rwxXst".contains(letter)) {
                    return None;
                }
                clauses.push(Clause {
                    who,
                    sign,
                    what: what.to_owned(),
                });
                rest = &rest[end..];
            }
        }
        Some(Self::Changed(clauses))
    }

    /// Applies it to a mode. If no class is given, bits in the umask are kept.
    pub(super) fn of(&self, before: u32, directory: bool) -> u32 {
        match self {
            Self::Exactly(mode) => *mode,
            Self::Changed(clauses) => clauses.iter().fold(before, |mode, clause| clause.of(mode, directory)),
        }
    }
}

impl Clause {
    fn of(&self, before: u32, directory: bool) -> u32 {
        let (who, kept) = match self.who {
            0 => (ALL, MASK),
            who => (who, 0),
        };
        let all = |bits: u32| bits << 6 | bits << 3 | bits;
        let mut bits = match self.what.as_str() {
            "u" => all(before >> 6 & 7),
            "g" => all(before >> 3 & 7),
            "o" => all(before & 7),
            what => what.chars().fold(0, |bits, letter| {
                bits | match letter {
                    'r' => 0o444,
                    'w' => 0o222,
                    'x' => 0o111,
                    'X' if directory || before & 0o111 != 0 => 0o111,
                    's' => 0o6000,
                    't' => 0o1000,
                    _ => 0,
                }
            }),
        };
        bits &= who & !kept;
        match self.sign {
            '+' => before | bits,
            '-' => before & !bits,
            // A directory keeps its special bits, unless they are named.
            _ => before & (!(who & 0o777) & if directory { ALL } else { !(who & 0o7000) }) | bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mode;

    #[test]
    fn modes_are_read_and_changed_as_chmod_does() {
        let cases = [
            ("644", 0o755, false, 0o644),
            ("4755", 0, false, 0o4755),
            ("u+x", 0o644, false, 0o744),
            ("+x", 0o644, false, 0o755),
            ("+w", 0o444, false, 0o644),
            ("a+w", 0o444, false, 0o666),
            ("go-rwx,u=rwX", 0o644, false, 0o600),
            ("a=rX", 0o700, false, 0o555),
            ("+X", 0o644, true, 0o755),
            ("u=g", 0o640, false, 0o440),
            ("o=u-w", 0o740, false, 0o745),
            ("g+s", 0o755, true, 0o2755),
            ("+t", 0o777, true, 0o1777),
            ("=", 0o777, false, 0),
            ("u=", 0o2755, true, 0o2055),
        ];
        for (text, before, directory, after) in cases {
            let mode = Mode::read(text).map(|mode| mode.of(before, directory));
            assert_eq!(mode, Some(after), "{text}: {:o}", mode.unwrap_or(0));
        }
        for text in ["", "9", "77777", "u", "u+z", "z+r", "u+r,", "u+gr"] {
            assert_eq!(Mode::read(text), None, "{text}");
        }
    }
}
