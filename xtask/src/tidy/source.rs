//! Splits a Rust file into code, comments and literals.
//!
//! The rules search for words, which must not be found in strings or comments. A small lexer is enough for that;
//! [`modules`](super::modules) uses a parser.

use std::ops::Range;

/// The text of a file, and copies of it in which all but one kind of token is blank.
///
/// All copies have the same length and line ends, so that an offset is valid in each. A file `tests.rs` has no
/// production code.
pub(crate) struct Source {
    /// The path from the root of the workspace, with `/`.
    pub(crate) path: String,
    /// The text.
    pub(crate) text: String,
    /// The code without comments, literals and `#[cfg(test)]` items.
    pub(crate) production: String,
    /// The code with its tests.
    pub(crate) code: String,
    /// The comments.
    pub(crate) comments: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

impl Source {
    /// Splits the text of a file.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let kinds = classify(text.as_bytes());
        let only = |wanted: Kind| -> String {
            // Working on bytes is sound: unwanted tokens become blanks, and no character is cut, since tokens begin
            // and end at ASCII bytes.
            let bytes = text
                .bytes()
                .zip(&kinds)
                .map(|(byte, kind)| match (byte, *kind == wanted) {
                    (b'\n', _) | (_, true) => byte,
                    (_, false) => b' ',
                });
            String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
        };
        let code = only(Kind::Code);
        // The attribute `#[cfg(test)]` of `mod tests;` is in another file.
        let production = if path.ends_with("/tests.rs") {
            String::new()
        } else {
            without_tests(&code)
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            comments: only(Kind::Comment),
            production,
            code,
        }
    }

    /// Returns the number of the line that contains the byte `at`.
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    /// Returns the number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }
}

/// Returns the positions of `word` in `text` where it is not a part of a longer identifier.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part_of_a_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let bytes = text.as_bytes();
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        !part_of_a_name(before) && !part_of_a_name(bytes.get(at + word.len()))
    })
}

/// Returns the identifier at the start of `text`.
pub(crate) fn identifier(text: &str) -> &str {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    &text[..end]
}

fn classify(bytes: &[u8]) -> Vec<Kind> {
    let mut kinds = vec![Kind::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let (end, kind) = token(bytes, at);
        let end = end.clamp(at + 1, bytes.len());
        kinds[at..end].fill(kind);
        at = end;
    }
    kinds
}

/// Returns the end and the kind of the token at `at`. A token of code is one byte or one name.
fn token(bytes: &[u8], at: usize) -> (usize, Kind) {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => (
            at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()),
            Kind::Comment,
        ),
        [b'/', b'*', ..] => (at + block_comment(rest), Kind::Comment),
        [b'"', ..] => (at + quoted(rest, b'"'), Kind::Literal),
        [b'\'', b'\\', ..] => (at + quoted(rest, b'\''), Kind::Literal),
        [b'\'', first, ..] => {
            // `'a'` is a character, `'a` a lifetime; a character may take up to four bytes.
            let width = match *first {
                0..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xff => 4,
            };
            if rest.get(1 + width) == Some(&b'\'') {
                (at + width + 2, Kind::Literal)
            } else {
                (at + 1, Kind::Code)
            }
        }
        [first, ..] if first.is_ascii_alphanumeric() || *first == b'_' => {
            let name = rest
                .iter()
                .position(|b| !(b.is_ascii_alphanumeric() || *b == b'_'))
                .unwrap_or(rest.len());
            match (&rest[..name], rest.get(name)) {
                (b"b" | b"c", Some(b'"')) => (at + name + quoted(&rest[name..], b'"'), Kind::Literal),
                (b"b", Some(b'\'')) => (at + name + quoted(&rest[name..], b'\''), Kind::Literal),
                (b"r" | b"br" | b"cr", Some(b'"' | b'#')) => match raw(&rest[name..]) {
                    Some(length) => (at + name + length, Kind::Literal),
                    None => (at + name, Kind::Code),
                },
                _ => (at + name, Kind::Code),
            }
        }
        _ => (at + 1, Kind::Code),
    }
}

/// Returns the length of a literal between two `quote`s with backslash escapes.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length of `#"…"#` with any number of `#`; `None` for a raw identifier.
fn raw(rest: &[u8]) -> Option<usize> {
    let hashes = rest.iter().position(|b| *b != b'#')?;
    if rest.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'#'; hashes + 1];
    close[0] = b'"';
    let body = &rest[hashes + 1..];
    let end = body
        .windows(close.len())
        .position(|window| window == close)
        .map_or(body.len(), |at| at + close.len());
    Some(hashes + 1 + end)
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < rest.len() {
        match &rest[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Returns the code with every item under `#[cfg(test)]` blank.
fn without_tests(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for (at, _) in code.match_indices("#[cfg(test)]") {
        for byte in &mut bytes[item(code, at)] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the range from the attribute at `at` to the end of its item: the first `;`, or the `}` of its first block.
fn item(code: &str, at: usize) -> Range<usize> {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at..offset + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at..offset + 1,
            _ => {}
        }
    }
    at..code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new("x.rs", text).code
    }

    #[test]
    fn literals_and_comments_are_not_code() {
        for text in [
            "// secret",
            "/* a /* secret */ secret */",
            "\"secret \\\" secret\"",
            "r#\"secret \" secret\"#",
            "b\"secret\"",
            "br\"secret\"",
            "/// secret\n",
        ] {
            assert!(!code(text).contains("secret"), "{text}");
            assert!(
                code(&format!("{text}\nopen")).ends_with("open"),
                "{text}: what follows is code again"
            );
        }
    }

    #[test]
    fn a_lifetime_is_no_character() {
        assert_eq!(code("fn f<'a>(x: &'a str) { open }"), "fn f<'a>(x: &'a str) { open }");
        assert_eq!(
            code("['\"', 'x', '\\'', 'é'] open").trim_start_matches(|c| c != 'o'),
            "open"
        );
    }

    #[test]
    fn tests_are_not_production() {
        let source = Source::new(
            "x.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { c() } }\nfn d() {}\n",
        );
        assert!(source.production.contains("fn a") && source.production.contains("fn d"));
        assert!(!source.production.contains("fn b") && source.code.contains("fn b"));
        assert_eq!(source.line(source.production.find("fn d").unwrap()), 4);
    }

    #[test]
    fn a_word_is_not_found_inside_a_longer_one() {
        assert_eq!(
            words("unsafe_code unsafe {} not_unsafe", "unsafe").collect::<Vec<_>>(),
            [12]
        );
    }
}
