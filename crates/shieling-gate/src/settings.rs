//! Git's configuration syntax: what a file of settings says, as git itself reads it.
//!
//! Follows git's `config.c`: quotes, escapes, comments, continued lines, subsections, line ends of DOS. Git
//! stops at a line that it cannot read, and runs nothing; here the next line is read all the same, since
//! somebody may mend the one before. Includes are told and not followed, and no setting is judged.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use crate::rest::{self, Form, Located};
use crate::surroundings::LeadKind;

/// The longest file of settings that is judged, in bytes.
pub const LONGEST: usize = 1 << 20;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// Its whole name, as git gives it: `core.hookspath`, `filter.x Y.clean`.
    pub name: Vec<u8>,
    /// What it is set to; nothing for a name alone, which means true.
    pub value: Option<Vec<u8>>,
}

impl Setting {
    /// Whether this is its whole name, which has no subsection.
    pub fn is(&self, name: &str) -> bool {
        self.name == name.as_bytes()
    }

    /// Whether it names another file of settings, under whatever condition.
    pub fn is_include(&self) -> bool {
        self.is("include.path") || self.name.starts_with(b"includeif.") && self.name.ends_with(b".path")
    }

    /// Its section and its key, in lower case, and what stands between them.
    pub fn parts(&self) -> (&[u8], Option<&[u8]>, &[u8]) {
        let name = self.name.as_slice();
        let first = name.iter().position(|byte| *byte == b'.').unwrap_or(name.len());
        let last = name.iter().rposition(|byte| *byte == b'.').unwrap_or(first);
        let between = name.get(first + 1..last).filter(|_| first < last);
        (
            name.get(..first).unwrap_or_default(),
            between,
            name.get(last + 1..).unwrap_or_default(),
        )
    }

    /// Its section, in lower case.
    fn section(&self) -> &[u8] {
        self.name.split(|byte| *byte == b'.').next().unwrap_or_default()
    }

    /// Whether its value names references, which in a bare repository look like files that git writes.
    fn names_references(&self) -> bool {
        let is_refspec = self.name.ends_with(b".fetch") || self.name.ends_with(b".push");
        self.section() == b"branch" || self.section() == b"remote" && is_refspec
    }

    /// Its value as a path. Git before 2.46 makes a space of each white space in it; both are given where they
    /// differ.
    pub fn paths(&self) -> Vec<PathBuf> {
        let Some(value) = &self.value else { return Vec::new() };
        let value = value.strip_prefix(b":(optional)").unwrap_or(value);
        let spaced: Vec<u8> = value
            .iter()
            .map(|byte| if is_space(*byte) { b' ' } else { *byte })
            .collect();
        let both = BTreeSet::from([value.to_vec(), spaced]);
        both.into_iter().filter(|path| !path.is_empty()).map(path).collect()
    }

    /// What its [`words`](Self::words) lead to: words of a command to files, a path to all below it.
    pub fn kind_of_words(&self) -> LeadKind {
        if self.is_command() {
            LeadKind::Program
        } else {
            LeadKind::Code
        }
    }

    /// Whether its value is more than a path or a name.
    fn is_command(&self) -> bool {
        let marks = |byte: &u8| is_space(*byte) || b"!;&|(`$".contains(byte);
        self.value.as_ref().is_some_and(|value| value.iter().any(marks))
    }

    /// Every part of its value that can be the path of a file that git runs or reads by it: all words of a
    /// command, without their quotes, and what stands between the marks of a shell. A single word without a
    /// slash is none: it is looked for on the `PATH`.
    pub fn words(&self) -> BTreeSet<PathBuf> {
        let Some(value) = self.value.as_ref().filter(|_| !self.names_references()) else {
            return BTreeSet::new();
        };
        let is_command = self.is_command();
        // Of these no value is a command, and an alias is one of git's own, unless it begins with `!`.
        let is_text = [&b"user"[..], b"author", b"committer", b"color"].contains(&self.section())
            || self.section() == b"alias" && !value.starts_with(b"!");
        let mut words: BTreeSet<Vec<u8>> = unquoted(value).into_iter().collect();
        words.extend(value.split(|byte| is_mark(*byte)).map(<[u8]>::to_vec));
        words.insert(value.clone());
        // An option with its value in one word; the value of a variable that we do not know, and what follows.
        let mut more = Vec::new();
        for word in &words {
            if let [b'-', _, rest @ ..] = word.as_slice() {
                more.push(rest.to_vec());
            }
            if value.iter().any(|byte| b"$`".contains(byte)) {
                let slashes = word.iter().enumerate().filter(|(_, byte)| **byte == b'/');
                more.extend(slashes.filter_map(|(at, _)| word.get(at + 1..)).map(<[u8]>::to_vec));
            }
        }
        words.extend(more);
        words
            .into_iter()
            .map(|word| word.strip_prefix(b"!").map(<[u8]>::to_vec).unwrap_or(word))
            .filter(|word| !word.is_empty() && (word.contains(&b'/') || is_command && !is_text))
            .map(path)
            .collect()
    }
}

/// What all of a file says, in order.
pub fn parse(text: &[u8]) -> Vec<Setting> {
    read(text).0
}

/// What all of a file says, in order, and whether git can read each line.
pub fn read(text: &[u8]) -> (Vec<Setting>, bool) {
    let (found, is_whole) = located(text);
    (found.into_iter().map(|(setting, _)| setting).collect(), is_whole)
}

/// What a file says before the first line that git cannot read.
pub fn readable(text: &[u8]) -> Vec<Setting> {
    let mut reader = Reader::new(text);
    let lines = std::iter::from_fn(|| (!reader.is_at_end()).then(|| reader.line()).flatten());
    lines.flatten().map(|(setting, _)| setting).collect()
}

/// As [`read`], with where each setting stands: from its key to the end of its last line.
fn located(text: &[u8]) -> (Vec<(Setting, Range<usize>)>, bool) {
    let mut reader = Reader::new(text);
    let mark = text.len() - reader.text.len();
    let mut found = Vec::new();
    let mut is_whole = true;
    while !reader.is_at_end() {
        // A line that cannot be read ends there.
        match reader.line() {
            Some(Some((setting, at))) => found.push((setting, at.start + mark..at.end + mark)),
            Some(None) => {}
            None => {
                is_whole = false;
                reader.skip_line();
            }
        }
    }
    (found, is_whole)
}

/// The text of a file without some of its settings, as [`rest::without`] gives it.
pub(crate) fn without(before: &[u8], after: &[u8], is_held: &dyn Fn(&Setting) -> bool) -> Option<Vec<u8>> {
    let located = |text| Located {
        text,
        settings: located(text).0,
    };
    let form = Form {
        name: &|setting: &Setting| setting.name.clone(),
        read: &|text| {
            let (found, is_whole) = read(text);
            is_whole.then_some(found)
        },
        between: b"\n\t",
    };
    rest::without(&located(before), &located(after), is_held, &form)
}

/// Git's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// What separates words for a shell, or for the one who reads an option.
fn is_mark(byte: u8) -> bool {
    is_space(byte) || b"\"'`;|&()<>{}$=,:!\\".contains(&byte)
}

fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

/// The words of a command, or of several, without the quotes of a shell.
fn unquoted(value: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word = Vec::new();
    let mut quote = None;
    let mut bytes = value.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', None | Some(b'"')) => word.extend(bytes.next()),
            (b'\'' | b'"', None) => quote = Some(byte),
            (_, Some(open)) if open == byte => quote = None,
            (_, None) if is_space(byte) || b";|&()<>`".contains(&byte) => words.push(std::mem::take(&mut word)),
            _ => word.push(byte),
        }
    }
    words.push(word);
    words
}

/// Reads as git's `get_next_char` does: the end of the file ends a line.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// Whether the end was read as the end of a line.
    ended: bool,
    /// The last byte that was given.
    last: u8,
    /// The name of the section, with a dot.
    section: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
            at: 0,
            ended: false,
            last: b'\n',
            section: Vec::new(),
        }
    }

    fn is_at_end(&self) -> bool {
        self.ended
    }

    fn next(&mut self) -> u8 {
        let ahead = |at: usize| self.text.get(at).copied();
        self.last = match (ahead(self.at), ahead(self.at + 1)) {
            (Some(b'\r'), Some(b'\n')) => {
                self.at += 2;
                b'\n'
            }
            (Some(byte), _) => {
                self.at += 1;
                byte
            }
            (None, _) => {
                self.ended = true;
                b'\n'
            }
        };
        self.last
    }

    fn skip_line(&mut self) {
        while self.last != b'\n' {
            self.next();
        }
    }

    /// Reads to the end of a setting, of a section's name, or of what is neither; nothing if git cannot read it. Gives the
    /// setting, if it is one, and where it stands.
    fn line(&mut self) -> Option<Option<(Setting, Range<usize>)>> {
        match self.next() {
            byte if is_space(byte) => Some(None),
            b'#' | b';' => {
                self.skip_line();
                Some(None)
            }
            b'[' => {
                self.section.clear();
                let name = self.section_name()?;
                self.section = [name, b".".to_vec()].concat();
                Some(None)
            }
            byte if byte.is_ascii_alphabetic() => {
                let start = self.at - 1;
                let setting = self.setting(byte)?;
                Some(Some((setting, start..self.at)))
            }
            _ => None,
        }
    }

    fn section_name(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                b']' => return Some(name),
                _ if self.ended => return None,
                byte if is_space(byte) => break,
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
        while is_space(self.last) {
            if self.last == b'\n' {
                return None;
            }
            self.next();
        }
        if self.last != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            match self.next() {
                b'\n' => return None,
                b'"' => break,
                b'\\' => match self.next() {
                    b'\n' => return None,
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        (self.next() == b']').then_some(name)
    }

    fn setting(&mut self, first: u8) -> Option<Setting> {
        let mut name = self.section.clone();
        name.push(first.to_ascii_lowercase());
        while is_key(self.next()) {
            name.push(self.last.to_ascii_lowercase());
        }
        while matches!(self.last, b' ' | b'\t') {
            self.next();
        }
        let value = match self.last {
            b'\n' => None,
            b'=' => Some(self.value()?),
            _ => return None,
        };
        Some(Setting { name, value })
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        // Its length without the white space at its end.
        let mut length = 0;
        let mut quoted = false;
        loop {
            match self.next() {
                b'\n' if quoted => return None,
                b'\n' => break,
                byte if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                b'"' => quoted = !quoted,
                b'\\' => match self.next() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                byte => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        // Git's values end at a zero byte.
        let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
        value.truncate(end);
        Some(value)
    }
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(before: &str, after: &str) -> Option<String> {
        let is_held = |setting: &Setting| setting.value.as_deref().is_some_and(|value| value.starts_with(b"evil"));
        let rest = without(before.as_bytes(), after.as_bytes(), &is_held)?;
        Some(String::from_utf8(rest).expect("it is text"))
    }

    #[test]
    fn settings_are_taken_out_and_all_else_stays_as_it_is_written() {
        for (after, expected) in [
            ("[a]\n\tb = 1\n\tc = evil\n\td = 2\n", "[a]\n\tb = 1\n\td = 2\n"),
            (
                "# c\n[a]\n\tc = evil ; why\n ; d\n[b \"X\"]\n e\n",
                "# c\n[a]\n ; d\n[b \"X\"]\n e\n",
            ),
            ("[a] c = evil\n\tb = \"x # y\" # z\n", "[a] \n\tb = \"x # y\" # z\n"),
            ("[a]\n c = \\\n  evil \\\n  x\n b = x\\\n  y\n", "[a]\n b = x\\\n  y\n"),
            ("[a]\r\n\tc = evil\r\n\tb = 1\r\n", "[a]\r\n\tb = 1\r\n"),
            ("[a]\n\tb = 1\n\tc = evil", "[a]\n\tb = 1\n"),
            ("\u{feff}[a]\n\tc = evil\n\tc = evil2\n\tb\n", "\u{feff}[a]\n\tb\n"),
            ("[a]\n\tc = \"evil\\\"\\n\"\n[a]b=[c]\n", "[a]\n[a]b=[c]\n"),
        ] {
            assert_eq!(rest("", after).as_deref(), Some(expected), "{after:?}");
        }
    }

    #[test]
    fn what_was_set_before_stands_there_again() {
        for (before, after, expected) in [
            (
                "[a]\n\tc = mine # keep\n\tb = 1\n",
                "[a]\n\tc = evil\n\tb = 2\n",
                "[a]\n\tc = mine # keep\n\tb = 2\n",
            ),
            (
                "[a]\n\tc = one\n\tc = two\n",
                "[a]\n\tc = evil\n[d]\n\tc = x\n",
                "[a]\n\tc = one\n\tc = two\n[d]\n\tc = x\n",
            ),
            // What is still there is not put there twice.
            (
                "[a]\n\tc = one\n\tc = two\n",
                "[a]\n\tc = one\n\tc = evil\n",
                "[a]\n\tc = one\n\tc = two\n",
            ),
            ("[a]\n\tc = mine", "[a] c = evil\n b\n", "[a] c = mine\n b\n"),
            (
                "[a]\n\tb = 1 # x\n",
                "[a]\n\tb = 1 # x\n[c]\n\td = evil\n",
                "[a]\n\tb = 1 # x\n",
            ),
        ] {
            assert_eq!(rest(before, after).as_deref(), Some(expected), "{after:?}");
        }
    }

    #[test]
    fn what_cannot_be_taken_apart_is_not() {
        for (before, after) in [
            ("", "[a]\n\tc = evil\n\tb = \"x\n"),
            ("", "# c\n[a]\n\tc = evil\n"),
            // The end of the file ends a line that would go on.
            ("[a]\n\tc = mine\\\n", "[a]\n\tc = evil\n\tb = 1\n"),
        ] {
            assert_eq!(rest(before, after), None, "{after:?}");
        }
    }
}
