//! Replacement of secrets by their placeholders, in outputs, recordings and responses.
//!
//! Finds a secret as it is, in a string of JSON, in base64 at each alignment, and URL-encoded. Does not look into
//! compressed data, and not into texts that break a secret by line ends.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem::Finder;

/// How many bytes of a possible secret reach a terminal before it is decided that they are none. A prompt ends in so
/// many by chance.
const SHOWN_BYTES_MAX: usize = 3;

/// The shortest base64 text that is looked for. What a shorter one says of a secret occurs by chance.
const ENCODED_BYTES_MIN: usize = 8;

/// Replaces the values of secrets by their placeholders.
///
/// A replacement is as long as what it replaces, so that offsets and lengths stay true.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first, so that a secret within another one does not hide it.
    pairs: Vec<(Finder<'static>, Vec<u8>)>,
}

impl Redactor {
    /// A redactor for secrets, each with its placeholder of the same length.
    pub(crate) fn new<'a>(secrets: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (value, placeholder) in secrets {
            let mut add = |from: Vec<u8>, mut to: Vec<u8>| {
                if from.len() != to.len() {
                    // The placeholder has letters where the secret has signs that are written longer.
                    to = vec![b'x'; from.len()];
                }
                if from != to && !pairs.iter().any(|(known, _)| *known == from) {
                    pairs.push((from, to));
                }
            };
            add(value.into(), placeholder.into());
            for json in JSON {
                add(in_json(value, json).into(), in_json(placeholder, json).into());
            }
            for lower in [false, true] {
                let encode = |text| percent_encoded(text, lower).into();
                add(encode(value), encode(placeholder));
            }
            for alignment in 0..3 {
                for url_safe in [false, true] {
                    let from = in_base64(value, alignment, url_safe);
                    if from.len() >= ENCODED_BYTES_MIN {
                        add(from, in_base64(placeholder, alignment, url_safe));
                    }
                }
            }
        }
        pairs.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Self {
            pairs: pairs
                .into_iter()
                .map(|(from, to)| (Finder::new(&from).into_owned(), to))
                .collect(),
        }
    }

    /// Whether there is nothing to replace.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Replaces the secrets in a whole text.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let mut text = Cow::Borrowed(text);
        for (finder, to) in &self.pairs {
            let mut at = 0;
            while let Some(found) = finder.find(&text[at..]) {
                at += found;
                text.to_mut()[at..at + to.len()].copy_from_slice(to);
                at += to.len();
            }
        }
        text
    }

    /// Begins a text that comes in parts.
    #[must_use]
    pub fn stream(&self) -> RedactStream {
        RedactStream {
            redactor: self.clone(),
            held: Vec::new(),
            shown: 0,
            shown_max: 0,
            uniform: false,
        }
    }

    /// Begins the output of a terminal, which a person waits for: up to 3 bytes that could be the beginning of a secret
    /// are passed on at once, and the rest of the secret is still replaced when it comes.
    ///
    /// A secret is not found where something stands between its characters, such as a movement of the cursor.
    #[must_use]
    pub fn terminal_stream(&self) -> RedactStream {
        RedactStream {
            shown_max: SHOWN_BYTES_MAX,
            ..self.stream()
        }
    }

    /// Begins a text that comes from strangers. They could guess at a secret, one character after another, by what is
    /// held back: here this does not depend on what it is.
    pub(crate) fn uniform_stream(&self) -> RedactStream {
        RedactStream {
            uniform: true,
            ..self.stream()
        }
    }

    /// How many bytes at the end could be the beginning of a secret.
    fn unfinished(&self, text: &[u8]) -> usize {
        let beginning = |(finder, _): &(Finder<'static>, Vec<u8>)| {
            let needle = finder.needle();
            let longest = text.len().min(needle.len() - 1);
            (1..=longest)
                .rev()
                .find(|length| text.ends_with(&needle[..*length]))
                .unwrap_or(0)
        };
        self.pairs.iter().map(beginning).max().unwrap_or(0)
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} texts)", self.pairs.len())
    }
}

/// A text that comes in parts. A secret is found also where parts break it: the end of a part is held back as long as
/// it could be the beginning of a secret.
pub struct RedactStream {
    redactor: Redactor,
    /// What could be the beginning of a secret.
    held: Vec<u8>,
    /// How many bytes of it were passed on already.
    shown: usize,
    /// How many may be.
    shown_max: usize,
    /// As much is held back as a secret may be long, whatever it is.
    uniform: bool,
}

impl RedactStream {
    /// What replaces in it.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Takes a part, and returns what can be passed on.
    #[must_use]
    pub fn push(&mut self, part: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(part);
        let mut text = match self.redactor.redact(&self.held) {
            Cow::Borrowed(_) => std::mem::take(&mut self.held),
            Cow::Owned(text) => text,
        };
        let held = match (self.uniform, self.redactor.pairs.first()) {
            (true, Some((longest, _))) => text.len().min(longest.needle().len() - 1),
            _ => self.redactor.unfinished(&text),
        };
        let decided = text.len() - held;
        let until = if held <= self.shown_max {
            text.len()
        } else {
            decided.max(self.shown)
        };
        self.held = text[decided..].to_vec();
        text.truncate(until);
        text.drain(..self.shown);
        self.shown = until - decided;
        text
    }

    /// Whether something is held back that was not passed on yet.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.held.len() > self.shown
    }

    /// Returns what is held back, where no more is waited for. If it turns out to be the beginning of a secret, the rest
    /// of that is still replaced.
    #[must_use]
    pub fn release(&mut self) -> Vec<u8> {
        let text = self.held[self.shown..].to_vec();
        self.shown = self.held.len();
        text
    }

    /// Returns what was held back, at the end of the text.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.held);
        text.drain(..std::mem::take(&mut self.shown));
        text
    }
}

/// The characters of base64 that a text determines alone, when `alignment` bytes stand before it in its group of three.
fn in_base64(text: &str, alignment: usize, url_safe: bool) -> Vec<u8> {
    let mut bytes = vec![0; alignment];
    bytes.extend_from_slice(text.as_bytes());
    let encoded = if url_safe {
        URL_SAFE_NO_PAD.encode(&bytes)
    } else {
        STANDARD_NO_PAD.encode(&bytes)
    };
    // A character holds six bits. Those of the bytes before, and the last bits before unknown bytes, are left out.
    let start = (alignment * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    encoded.as_bytes().get(start..end).unwrap_or_default().to_vec()
}

/// The signs that a writer of JSON escapes besides `"` and `\`, and how.
type Json = (&'static str, fn(char) -> String);

/// What is usual, PHP, Go, Gson, and .NET.
const JSON: [Json; 5] = [
    ("", |sign| format!("\\{sign}")),
    ("/", |sign| format!("\\{sign}")),
    ("<>&", |sign| format!("\\u{:04x}", u32::from(sign))),
    ("<>&='", |sign| format!("\\u{:04x}", u32::from(sign))),
    ("<>&'\"+`", |sign| format!("\\u{:04X}", u32::from(sign))),
];

/// The text as it stands in a string of JSON.
fn in_json(text: &str, (signs, escaped): Json) -> String {
    let mut encoded = String::new();
    for character in text.chars() {
        match character {
            sign if signs.contains(sign) => encoded.push_str(&escaped(sign)),
            '"' | '\\' => encoded.extend(['\\', character]),
            _ => encoded.push(character),
        }
    }
    encoded
}

/// The text in percent-encoding, as `encodeURIComponent` and `urllib.parse.quote` write it, or with the lower-case
/// digits of others.
fn percent_encoded(text: &str, lower: bool) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte as char),
            _ if lower => encoded.push_str(&format!("%{byte:02x}")),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    const VALUE: &str = "ghp_s3cr3t/value+0123456789";
    const PLACEHOLDER: &str = "ghp_aaaaaa/bbbbb+cccccccccc";

    #[test]
    fn a_terminal_gets_few_bytes_at_once_and_no_secret() {
        let mut stream = redactor().terminal_stream();
        let shown: Vec<String> = "> ghp\r\n> ghp_s3"
            .split_inclusive(|_| true)
            .map(|part| String::from_utf8(stream.push(part.as_bytes())).unwrap())
            .collect();
        assert_eq!(
            shown.concat(),
            "> ghp\r\n> ghp",
            "the beginning is shown, and the rest waits"
        );
        assert!(shown[..7].iter().all(|shown| !shown.is_empty()), "{shown:?}");
        let rest = VALUE.strip_prefix("ghp_s3").unwrap();
        assert_eq!(
            stream.push(rest.as_bytes()),
            PLACEHOLDER.strip_prefix("ghp").unwrap().as_bytes()
        );
        assert_eq!(stream.push(b"ghp_s3!"), b"ghp_s3!");
        assert_eq!(
            [stream.push(b"gh"), stream.push(b"p_s3"), stream.finish()].concat(),
            b"ghp_s3"
        );
    }

    #[test]
    fn the_rest_of_a_secret_is_replaced_also_after_its_beginning_was_passed_on() {
        let mut stream = redactor().stream();
        assert_eq!(stream.push(b"a ghp_s3"), b"a ");
        assert!(stream.is_holding());
        assert_eq!(stream.release(), b"ghp_s3");
        assert!(!stream.is_holding());
        let (_, rest) = VALUE.split_at(6);
        assert_eq!(stream.push(rest.as_bytes()), &PLACEHOLDER.as_bytes()[6..]);
        assert_eq!(stream.push(b" b"), b" b");
        assert_eq!(
            [stream.push(b"ghp_s3"), stream.release(), stream.push(b"!")].concat(),
            b"ghp_s3!"
        );
    }

    fn redactor() -> Redactor {
        Redactor::new([(VALUE, PLACEHOLDER)].into_iter())
    }

    #[test]
    fn a_secret_is_found_plain_url_encoded_and_in_base64_at_each_alignment() {
        let redactor = redactor();
        let plain = |text: &str| String::from_utf8(redactor.redact(text.as_bytes()).into_owned()).unwrap();
        assert_eq!(
            plain(&format!("a {VALUE} b {VALUE}")),
            format!("a {PLACEHOLDER} b {PLACEHOLDER}")
        );
        assert_eq!(
            plain("?t=ghp_s3cr3t%2Fvalue%2B0123456789&"),
            "?t=ghp_aaaaaa%2Fbbbbb%2Bcccccccccc&"
        );
        assert_eq!(
            plain("?t=ghp_s3cr3t%2fvalue%2b0123456789&"),
            "?t=ghp_aaaaaa%2fbbbbb%2bcccccccccc&"
        );
        for before in ["", "x", "xy", "xyz", "user:"] {
            for after in ["", ":", "zz", "zzz"] {
                let text = STANDARD.encode(format!("{before}{VALUE}{after}"));
                let redacted = plain(&text);
                assert_eq!(redacted.len(), text.len());
                let decoded = STANDARD.decode(&redacted).unwrap();
                let shown = String::from_utf8_lossy(&decoded);
                assert!(!shown.contains(&VALUE[6..VALUE.len() - 2]), "{shown}");
                assert!(shown.starts_with(before) && shown.ends_with(after));
            }
        }
        assert_eq!(plain("nothing here"), "nothing here");
        assert_eq!(
            plain(r"ghp_s3cr3t\/value+0123456789"),
            r"ghp_aaaaaa\/bbbbb+cccccccccc",
            "JSON with escaped slashes"
        );
        assert_eq!(
            plain(r"ghp_s3cr3t/value\u002B0123456789"),
            r"ghp_aaaaaa/bbbbb\u002Bcccccccccc",
            ".NET"
        );
        // Its placeholder keeps no signs, and so is shorter in JSON.
        let short = Redactor::new([(r#"p"a/s\1!"#, "abcdefgh")].into_iter());
        assert_eq!(
            short.redact(br#"{"p":"p\"a/s\\1!"}"#).as_ref(),
            br#"{"p":"xxxxxxxxxx"}"#
        );
        let quoted = Redactor::new([(r#"pass"w\ord1"#, r#"aaaa"b\ccc2"#)].into_iter());
        assert_eq!(
            quoted.redact(br#"{"p":"pass\"w\\ord1"}"#).as_ref(),
            br#"{"p":"aaaa\"b\\ccc2"}"#
        );
    }

    #[test]
    fn what_a_uniform_stream_holds_back_says_nothing_of_the_secret() {
        let redactor = redactor();
        for begun in [&VALUE[..9], "another_9"] {
            let mut stream = redactor.uniform_stream();
            let text = "a".repeat(200);
            let first = stream.push(format!("{text}{begun}").as_bytes()).len();
            assert!(stream.is_holding());
            let released = stream.release().len();
            assert!(!stream.is_holding());
            let longest = redactor.pairs[0].0.needle().len();
            assert_eq!((first, released), (209 - (longest - 1), longest - 1), "{begun}");
            assert_eq!(stream.push(b"s"), b"", "{begun}");
            assert_eq!(
                (stream.finish(), stream.is_holding()),
                (b"s".to_vec(), false),
                "{begun}"
            );
        }
        let mut stream = redactor.uniform_stream();
        let mut given = stream.push(&VALUE.as_bytes()[..9]);
        given.extend(stream.release());
        given.extend(stream.push(&VALUE.as_bytes()[9..]));
        given.extend(stream.finish());
        assert_eq!(
            String::from_utf8(given).unwrap(),
            format!("{}{}", &VALUE[..9], &PLACEHOLDER[9..])
        );
    }

    proptest! {
        #[test]
        fn a_stream_gives_what_the_whole_text_gives(before in "[a-z_]{0,10}", cuts in proptest::collection::vec(0_usize..80, 0..6), twice in any::<bool>()) {
            let text = if twice { format!("{before}{VALUE}{VALUE}ghp_s3c") } else { format!("{before}{VALUE}{before}") };
            let redactor = redactor();
            let mut stream = redactor.stream();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % text.len()).collect();
            cuts.sort_unstable();
            let mut given = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                given.extend(stream.push(&text.as_bytes()[from..cut]));
                prop_assert!(!String::from_utf8_lossy(&given).contains(VALUE));
                from = cut;
            }
            given.extend(stream.finish());
            prop_assert_eq!(given, redactor.redact(text.as_bytes()).into_owned());
        }
    }
}
