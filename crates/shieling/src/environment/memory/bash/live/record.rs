//! Where what one `read` or `mapfile` takes ends.

/// What ends a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// The byte after which it ends.
    delimiter: Option<u8>,
    /// How many characters it has at most, or delimiters, for `mapfile`.
    most: Option<usize>,
    /// Whether a backslash takes the next character with it.
    escapes: bool,
    counts: Counts,
}

/// What [`Record::most`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Characters,
    Delimiters,
}

/// What `read` was asked for, as far as it is about its input.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) record: Record,
    /// In seconds.
    pub(super) patience: Option<f64>,
    pub(super) descriptor: Option<String>,
}

impl Record {
    /// All that there is.
    pub(super) fn all() -> Self {
        Self {
            delimiter: None,
            most: None,
            escapes: false,
            counts: Counts::Characters,
        }
    }

    /// One line.
    pub(super) fn line() -> Self {
        Self {
            delimiter: Some(b'\n'),
            ..Self::all()
        }
    }

    /// How long the first one in these bytes is, if it is all there.
    pub(super) fn end(&self, bytes: &[u8]) -> Option<usize> {
        let mut count = 0;
        let mut at = 0;
        loop {
            if self.most.is_some_and(|most| count >= most) {
                return Some(at);
            }
            let byte = *bytes.get(at)?;
            if Some(byte) == self.delimiter {
                at += 1;
                match self.counts {
                    Counts::Delimiters => count += 1,
                    Counts::Characters => return Some(at),
                }
                continue;
            }
            if self.escapes && byte == b'\\' {
                let next = *bytes.get(at + 1)?;
                at += 1 + width(next);
                // A line that goes on is one line.
                if next == b'\n' {
                    continue;
                }
            } else {
                at += width(byte);
            }
            if at > bytes.len() {
                return None;
            }
            if self.counts == Counts::Characters {
                count += 1;
            }
        }
    }

    /// The byte that ends it.
    pub(super) fn delimiter(&self) -> Option<u8> {
        self.delimiter
    }

    /// Whether `mapfile` with these arguments takes something else than the input.
    pub(super) fn mapfile_of_another(args: &[String]) -> bool {
        options(args, "dnOsuCc")
            .iter()
            .any(|(letter, value)| *letter == 'u' && value != "0")
    }

    /// What `mapfile` takes with these arguments.
    pub(super) fn of_mapfile(args: &[String]) -> Self {
        let mut record = Self {
            counts: Counts::Delimiters,
            ..Self::all()
        };
        let mut delimiter = b'\n';
        for (letter, value) in options(args, "dnOsuCc") {
            match letter {
                'd' => delimiter = value.bytes().next().unwrap_or(0),
                'n' => record.most = value.parse().ok().filter(|most| *most > 0),
                _ => {}
            }
        }
        record.delimiter = record.most.map(|_| delimiter);
        record
    }
}

impl Asked {
    /// What `read` is asked for with these arguments.
    pub(super) fn of(args: &[String]) -> Self {
        let mut asked = Self {
            record: Record {
                delimiter: Some(b'\n'),
                most: None,
                escapes: true,
                counts: Counts::Characters,
            },
            patience: None,
            descriptor: None,
        };
        let mut exact = false;
        for (letter, value) in options(args, "adinNptu") {
            match letter {
                'r' => asked.record.escapes = false,
                // Of a longer one the first byte ends it, as in bash.
                'd' => asked.record.delimiter = Some(value.bytes().next().unwrap_or(0)),
                'n' | 'N' => {
                    asked.record.most = value.parse().ok();
                    exact = letter == 'N';
                }
                't' => asked.patience = value.parse().ok().filter(|time: &f64| time.is_finite()),
                'u' => asked.descriptor = Some(value),
                _ => {}
            }
        }
        if exact {
            asked.record.delimiter = None;
        }
        asked
    }
}

/// The options in arguments, with the values of those letters that have one.
fn options(args: &[String], valued: &str) -> Vec<(char, String)> {
    let mut found = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(letters) = arg.strip_prefix('-').filter(|rest| !rest.is_empty() && *rest != "-") else {
            break;
        };
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            if !valued.contains(letter) {
                found.push((letter, String::new()));
                continue;
            }
            // `-a` of `read` is followed by a name, which is nothing to us.
            let here = letters.as_str();
            let value = if here.is_empty() {
                args.next().cloned()
            } else {
                Some(here.to_owned())
            };
            found.push((letter, value.unwrap_or_default()));
            break;
        }
    }
    found
}

/// How many bytes the character has that begins with this one.
fn width(first: u8) -> usize {
    match first {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Record};

    fn args(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_record_ends_where_bash_ends_it_and_nowhere_before_it_is_there() {
        let cases: [(&str, &str, Option<usize>); 16] = [
            ("x", "one\ntwo", Some(4)),
            ("x", "one", None),
            ("x", "on\\\ne\ntwo", Some(6)),
            ("x", "one\\", None),
            ("-r x", "one\\\ntwo\n", Some(5)),
            ("-d : x", "a\nb:c", Some(4)),
            ("-d: x", "a\nb:c", Some(4)),
            ("-rd , x", "a,b", Some(2)),
            ("-n 2 x", "abc", Some(2)),
            ("-n 2 x", "a\nbc", Some(2)),
            ("-n 2 x", "é", None),
            ("-n 1 x", "éa", Some(2)),
            ("-N 3 x", "a\nbc", Some(3)),
            ("-N 3 x", "a\n", None),
            ("-a x -r", "a\\\nb\n", Some(3)),
            ("-n 0 x", "", Some(0)),
        ];
        for (given, bytes, expected) in cases {
            let asked = Asked::of(&args(given));
            assert_eq!(asked.record.end(bytes.as_bytes()), expected, "{given}: {bytes:?}");
        }
        assert_eq!(Asked::of(&args("-t 1.5 -u 3")).patience, Some(1.5));
        assert_eq!(Asked::of(&args("-u3")).descriptor.as_deref(), Some("3"));
        assert_eq!(Asked::of(&args("x -t 1")).patience, None);
    }

    #[test]
    fn mapfile_takes_all_unless_it_is_told_how_many() {
        let cases = [
            ("-t a", "1\n2\n", None),
            ("-n 1 a", "1\n2\n", Some(2)),
            ("-tn 2 a", "1\n2\n3", Some(4)),
            ("-d : -n 1 a", "1\n:2", Some(3)),
            ("-n 0 a", "1\n", None),
        ];
        for (given, bytes, expected) in cases {
            let record = Record::of_mapfile(&args(given));
            assert_eq!(record.end(bytes.as_bytes()), expected, "{given}");
        }
        assert_eq!(Record::all().end(b"x"), None);
    }
}
