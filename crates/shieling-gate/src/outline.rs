//! What a JSON file says, as a list of values with the keys above them. Reads what editors read: comments, commas before a
//! closing bracket, and a key that is there twice, of which both are told.
//!
//! Readers differ in what ends a line, and so in what a comment or a string covers: a text with line ends that only some
//! of them know is not read at all.

use std::ops::Range;

use crate::rest::{self, Form, Located};

/// A value that holds no other, and the keys that lead to it; of a list, its key once for each of its values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Leaf {
    /// The keys from the outside to it.
    pub(crate) keys: Vec<String>,
    /// The text of a string, `{}` or `[]` if it is empty, otherwise as it is written.
    pub(crate) value: String,
}

/// How deep objects and lists may lie in each other.
const DEPTH: usize = 16;

/// How many values a file may have, and how long a key may be: each value is told with all keys above it.
const LEAVES: usize = 10_000;
const KEY: usize = 256;

fn is_bounded(leaves: &[Leaf]) -> bool {
    leaves.len() <= LEAVES
}

/// The text of a file; nothing if it is not UTF-8, or holds a character at which some readers end a line and others do
/// not (a carriage return alone, a vertical tab, a form feed, and the separators of Unicode), or a zero byte.
pub(crate) fn plain_text(bytes: &[u8]) -> Option<&str> {
    const LINE_ENDS: [char; 9] = [
        '\0', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    let text = std::str::from_utf8(bytes).ok()?;
    let has_return_alone = text.split("\r\n").any(|part| part.contains('\r'));
    (!has_return_alone && !text.contains(LINE_ENDS)).then_some(text)
}

/// All values of a file; nothing if it cannot be read.
pub(crate) fn of_json(text: &[u8]) -> Option<Vec<Leaf>> {
    let text = plain_text(text)?;
    let mut reader = Reader {
        rest: text.trim_start_matches('\u{feff}'),
        leaves: Vec::new(),
        keys: Vec::new(),
    };
    reader.blank()?;
    if reader.rest.is_empty() {
        return Some(Vec::new());
    }
    reader.value(0)?;
    reader.blank()?;
    reader.rest.is_empty().then_some(reader.leaves)
}

/// All values of a TOML file; nothing if it cannot be read.
pub(crate) fn of_toml(text: &[u8]) -> Option<Vec<Leaf>> {
    let table: toml::Table = plain_text(text)?.parse().ok()?;
    let mut leaves = Vec::new();
    flatten(&toml::Value::Table(table), &mut Vec::new(), &mut leaves)?;
    Some(leaves)
}

fn flatten(value: &toml::Value, keys: &mut Vec<String>, leaves: &mut Vec<Leaf>) -> Option<()> {
    let text = match value {
        toml::Value::Table(table) if table.is_empty() => "{}".to_owned(),
        toml::Value::Array(array) if array.is_empty() => "[]".to_owned(),
        toml::Value::Table(table) => {
            for (key, value) in table {
                if key.len() > KEY || keys.len() > DEPTH {
                    return None;
                }
                keys.push(key.clone());
                flatten(value, keys, leaves)?;
                keys.pop();
            }
            return Some(());
        }
        toml::Value::Array(array) => return array.iter().try_for_each(|value| flatten(value, keys, leaves)),
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    leaves.push(Leaf {
        keys: keys.clone(),
        value: text,
    });
    is_bounded(leaves).then_some(())
}

/// All values of a file of lines `key = value` or `key: value`, under sections `[name]` if it has some; nothing if a line
/// is neither, nor a comment.
pub(crate) fn of_lines(text: &[u8], separator: char) -> Option<Vec<Leaf>> {
    Some(located(text, separator)?.into_iter().map(|(leaf, _)| leaf).collect())
}

/// The text of a file of lines without some of them, as [`rest::without`] gives it.
pub(crate) fn lines_without(
    before: &[u8],
    after: &[u8],
    separator: char,
    is_held: &dyn Fn(&Leaf) -> bool,
) -> Option<Vec<u8>> {
    let form = Form {
        name: &|leaf: &Leaf| leaf.keys.clone(),
        read: &|text| of_lines(text, separator),
        between: b"\n",
    };
    let before = Located {
        text: before,
        settings: located(before, separator).unwrap_or_default(),
    };
    let after = Located {
        text: after,
        settings: located(after, separator)?,
    };
    rest::without(&before, &after, is_held, &form)
}

/// As [`of_lines`], with where each line stands.
fn located(text: &[u8], separator: char) -> Option<Vec<(Leaf, Range<usize>)>> {
    let text = plain_text(text)?;
    let mut found = Vec::new();
    let mut section: Option<String> = None;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        let line = line.trim_end();
        if line.is_empty() || line == "---" || line.starts_with(['#', ';']) {
            continue;
        }
        // A line that continues another, or a list.
        if line.starts_with(char::is_whitespace) || line.starts_with('-') {
            return None;
        }
        // Readers disagree on what follows the name of a section; a line with `%` includes another file.
        if line.starts_with(['[', '%']) {
            let name = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'))?;
            section = Some(name.trim().to_owned());
            continue;
        }
        let (key, value) = line.split_once(separator).unwrap_or((line, ""));
        if key.len() > KEY || section.as_ref().is_some_and(|name| name.len() > KEY) || found.len() > LEAVES {
            return None;
        }
        let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        let leaf = Leaf {
            keys: section.iter().cloned().chain([unquoted(key)]).collect(),
            value: unquoted(value),
        };
        found.push((leaf, start..end));
    }
    Some(found)
}

/// The outermost keys of a YAML file in block style, each with all that stands below it; nothing if it is written
/// otherwise. Such a file begins with a key at the beginning of a line, and so all of its outermost keys stand there.
pub(crate) fn of_blocks(text: &[u8]) -> Option<Vec<Leaf>> {
    let text = plain_text(text)?;
    let mut leaves: Vec<Leaf> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let is_blank = line.trim_matches([' ', '\t']).is_empty();
        if is_blank || line.starts_with('#') || number == 0 && line == "---" {
            continue;
        }
        let is_below = line.starts_with([' ', '\t']) || line == "-" || line.starts_with("- ");
        if is_below {
            let leaf = leaves.last_mut()?;
            leaf.value.push('\n');
            leaf.value.push_str(line);
            continue;
        }
        let (key, value) = line.split_once(':')?;
        if key.len() > KEY || leaves.len() >= LEAVES {
            return None;
        }
        leaves.push(Leaf {
            keys: vec![key.trim_end().trim_matches(['"', '\'']).to_owned()],
            value: value.to_owned(),
        });
    }
    Some(leaves)
}

struct Reader<'a> {
    rest: &'a str,
    leaves: Vec<Leaf>,
    keys: Vec<String>,
}

impl Reader<'_> {
    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// White space and comments.
    fn blank(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
            if self.rest.starts_with("//") {
                self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.split_once("*/")?.1;
            } else {
                return Some(());
            }
        }
    }

    fn leaf(&mut self, value: String) {
        self.leaves.push(Leaf {
            keys: self.keys.clone(),
            value,
        });
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH || !is_bounded(&self.leaves) {
            return None;
        }
        if self.take("{") {
            self.blank()?;
            if self.take("}") {
                self.leaf("{}".to_owned());
                return Some(());
            }
            loop {
                let key = self.string().filter(|key| key.len() <= KEY)?;
                self.blank()?;
                if !self.take(":") {
                    return None;
                }
                self.blank()?;
                self.keys.push(key);
                self.value(depth + 1)?;
                self.keys.pop();
                if self.is_closed("}")? {
                    return Some(());
                }
            }
        }
        if self.take("[") {
            self.blank()?;
            if self.take("]") {
                self.leaf("[]".to_owned());
                return Some(());
            }
            loop {
                self.value(depth + 1)?;
                if self.is_closed("]")? {
                    return Some(());
                }
            }
        }
        let text = match self.rest.starts_with('"') {
            true => self.string()?,
            false => {
                let is_end = |char: char| !char.is_ascii_alphanumeric() && !"+-._".contains(char);
                let end = self.rest.find(is_end).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at_checked(end).filter(|(word, _)| !word.is_empty())?;
                self.rest = rest;
                word.to_owned()
            }
        };
        self.leaf(text);
        Some(())
    }

    /// What follows a value in an object or a list: whether that ends.
    fn is_closed(&mut self, close: &str) -> Option<bool> {
        self.blank()?;
        let another = self.take(",");
        self.blank()?;
        if self.take(close) {
            return Some(true);
        }
        another.then_some(false)
    }

    fn string(&mut self) -> Option<String> {
        let mut chars = self.rest.strip_prefix('"')?.chars();
        let mut text = String::new();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => match chars.next()? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    'b' => text.push('\u{8}'),
                    'f' => text.push('\u{c}'),
                    'u' => {
                        let mut code = 0;
                        for _ in 0..4 {
                            code = code * 16 + chars.next()?.to_digit(16)?;
                        }
                        // Halves of a pair stand for something that no key of a table has.
                        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    other if other.is_control() => return None,
                    other => text.push(other),
                },
                // For some readers a line's end is also the end of an open string.
                other if other.is_control() => return None,
                other => text.push(other),
            }
        }
        self.rest = chars.as_str();
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<Vec<String>> {
        let leaves = of_json(text.as_bytes())?;
        Some(
            leaves
                .iter()
                .map(|leaf| format!("{}={}", leaf.keys.join("/"), leaf.value))
                .collect(),
        )
    }

    #[test]
    fn files_are_read_as_editors_read_them() {
        for (text, leaves) in [
            ("", Some(vec![])),
            ("// x\n{}", Some(vec!["={}"])),
            (
                "{\"a\": 1, /* , */ \"b\": [true, \"x\\u0041\",],}",
                Some(vec!["a=1", "b=true", "b=xA"]),
            ),
            ("{\"a\": {\"b\": null}, \"a\": []}", Some(vec!["a/b=null", "a=[]"])),
            ("{\"a\\u002eb\": 1}", Some(vec!["a.b=1"])),
            ("{\"a\" 1}", None),
            ("{\"a\": }", None),
            ("{\"a\": 1} x", None),
            ("{\"a\": 1 \"b\": 2}", None),
            ("{'a': 1}", None),
            ("/* x", None),
            ("{// x\r\n}", Some(vec!["={}"])),
            ("{// x\r\"a\": 1\n}", None),
            ("{// x\u{2028}\"a\": 1\n}", None),
            ("{\"a\": \"x\n\"}", None),
            ("{\"a\": \"x\\\n\"}", None),
            ("{\u{a0}\"a\": 1}", None),
        ] {
            let leaves = leaves.map(|leaves| leaves.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(shown(text), leaves, "{text}");
        }
        assert_eq!(shown(&format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000))), None);
    }

    #[test]
    fn held_lines_alone_are_taken_out_of_a_file() {
        let rest = |before: &str, after: &str| {
            let is_held = |leaf: &Leaf| leaf.value.contains("evil");
            let rest = lines_without(before.as_bytes(), after.as_bytes(), '=', &is_held)?;
            Some(String::from_utf8(rest).expect("it is text"))
        };
        for (before, after, expected) in [
            ("", "# c\r\na=1\r\nb=evil\r\n\r\nc = 2", Some("# c\r\na=1\r\n\r\nc = 2")),
            ("b=mine\n", "a=1\nb = evil\nb=evil2\n", Some("a=1\nb=mine\n")),
            (
                "[s]\nb=mine",
                "[s]\nb=evil\n[t]\na=1\n",
                Some("[s]\nb=mine\n[t]\na=1\n"),
            ),
            ("", "b=evil\n", None),
            ("", "a=1\nb=evil\n  c\n", None),
        ] {
            assert_eq!(rest(before, after).as_deref(), expected, "{after:?}");
        }
    }

    #[test]
    fn lines_of_which_readers_differ_are_not_guessed() {
        for end in ["\r", "\u{b}", "\u{c}", "\u{1e}", "\u{85}", "\u{2028}", "\u{2029}", "\0"] {
            assert_eq!(of_lines(format!("# a{end}b=1\n").as_bytes(), '='), None, "{end:?}");
            assert_eq!(of_toml(format!("# a{end}b=1\n").as_bytes()), None, "{end:?}");
        }
        for text in [
            "[s];\na=1\n",
            "[s] # c\n",
            "[s\n",
            "%include x\n",
            "%unset a\n",
            "[s]x\n",
        ] {
            assert_eq!(of_lines(text.as_bytes(), '='), None, "{text:?}");
        }
        assert_eq!(
            of_lines(b"# c\r\n[s]\r\na=1\r\n", '=').map(|leaves| leaves.len()),
            Some(1)
        );
    }

    #[test]
    fn lines_that_continue_others_are_not_guessed() {
        assert_eq!(of_lines(b"a: 1\n  b: 2\n", ':'), None);
        let leaves = of_lines(b"# c\n[s]\na = \"x\"\n", '=').expect("read");
        assert_eq!(
            (leaves[0].keys.join("/"), leaves[0].value.as_str()),
            ("s/a".to_owned(), "x")
        );
    }
}
