//! Characters to words: quotes, expansions, operators, here-documents.

use std::collections::HashMap;

use super::error::{MAX_DEPTH, Result, SyntaxError};
use super::tree::{CompoundList, Document, OnlyBash, Range, Word};

/// A here-document whose body comes after the present line.
struct Pending {
    number: usize,
    delimiter: String,
    strip_tabs: bool,
    /// Whether its body expands, and its lines can be continued.
    expands: bool,
}

/// What has been read of a text.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    bytes: &'a [u8],
    pub(super) at: usize,
    depth: usize,
    pending: Vec<Pending>,
    /// Where expansions end that were read already: what stands in two brackets is first read as
    /// arithmetic and, where that fails, once more as commands, and so on inwards.
    known: HashMap<(usize, bool), Option<usize>>,
    pub(super) documents: Vec<Document>,
    /// The first construct that a plain `sh` reads otherwise than bash does.
    pub(super) only_bash: Option<OnlyBash>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            depth: 0,
            pending: Vec::new(),
            known: HashMap::new(),
            documents: Vec::new(),
            only_bash: None,
        }
    }

    /// Remembers what a plain `sh` reads otherwise than bash does; it begins at this byte.
    pub(super) fn only_bash(&mut self, at: usize, construct: &'static str) {
        self.only_bash.get_or_insert(OnlyBash { at, construct });
    }

    pub(super) fn error<T>(&self) -> Result<T> {
        Err(SyntaxError {
            at: self.at.min(self.text.len()),
        })
    }

    /// Goes one level deeper.
    pub(super) fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return self.error();
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn ahead(&self, offset: usize) -> Option<u8> {
        self.bytes.get(self.at + offset).copied()
    }

    pub(super) fn starts(&self, token: &str) -> bool {
        self.bytes[self.at..].starts_with(token.as_bytes())
    }

    pub(super) fn take(&mut self, token: &str) -> bool {
        let found = self.starts(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Steps over blanks, continued lines and a comment, but not over the end of the line.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.ahead(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Steps over line ends too; the bodies of here-documents come with them.
    pub(super) fn newlines(&mut self) -> Result<()> {
        loop {
            self.blanks();
            if !self.newline()? {
                return Ok(());
            }
        }
    }

    /// Takes a line end, and the here-documents that were announced before it.
    pub(super) fn newline(&mut self) -> Result<bool> {
        if self.peek() != Some(b'\n') {
            return Ok(false);
        }
        self.at += 1;
        for pending in std::mem::take(&mut self.pending) {
            self.document(&pending);
        }
        Ok(true)
    }

    /// Reads the body of a here-document, which ends at its delimiter or with the text.
    fn document(&mut self, pending: &Pending) {
        let start = self.at;
        let mut body = String::new();
        loop {
            let rest = &self.text[self.at..];
            if rest.is_empty() {
                break;
            }
            let end = line_end(rest, pending.expands);
            let line = &rest[..end];
            let shown = if pending.strip_tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            self.at += end;
            let whole = match pending.expands {
                true => shown.replace("\\\n", ""),
                false => shown.to_owned(),
            };
            if whole.strip_suffix('\n').unwrap_or(&whole) == pending.delimiter {
                break;
            }
            body.push_str(shown);
        }
        self.documents[pending.number] = Document {
            text: body,
            range: Range { start, end: self.at },
        };
    }

    /// At the end of the text, a here-document that never began is empty.
    pub(super) fn finish_documents(&mut self) -> Result<()> {
        for pending in std::mem::take(&mut self.pending) {
            self.document(&pending);
        }
        Ok(())
    }

    /// Whether here-documents are announced whose bodies have not come.
    pub(super) fn awaits_documents(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Announces a here-document; its delimiter stands here.
    pub(super) fn announce(&mut self, strip_tabs: bool) -> Result<(usize, bool)> {
        self.blanks();
        let word = self.word()?;
        let quoted = word.value.contains(['\'', '"', '\\']);
        if word.value.contains(['$', '`']) || word.value.contains("\\\n") {
            // Not expanded, but read in ways of its own.
            return self.error();
        }
        let delimiter = unquoted(&word.value);
        // bash strips the tabs of lines and compares them both ways.
        if delimiter.contains('\n') || (strip_tabs && delimiter.starts_with('\t')) {
            return self.error();
        }
        let number = self.documents.len();
        self.documents.push(Document::default());
        self.pending.push(Pending {
            number,
            delimiter,
            strip_tabs,
            expands: !quoted,
        });
        Ok((number, !quoted))
    }

    /// A word, which must stand here.
    pub(super) fn word(&mut self) -> Result<Word> {
        let start = self.at;
        self.word_end()?;
        if self.at == start {
            return self.error();
        }
        Ok(self.word_from(start))
    }

    /// The word that was read since `start`.
    pub(super) fn word_from(&self, start: usize) -> Word {
        Word::new(&self.text[start..self.at], Range { start, end: self.at })
    }

    /// Reads on to the end of a word, or to a byte that ends it here.
    pub(super) fn word_end(&mut self) -> Result<()> {
        while let Some(byte) = self.peek() {
            match byte {
                _ if self.starts_extended_pattern() => self.extended_pattern()?,
                byte if is_plain(byte) => self.at += 1,
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' => return Ok(()),
                // A process substitution may also stand inside a word; that is rare enough to ask.
                b'<' | b'>' if self.starts_process_substitution() => return self.error(),
                b'<' | b'>' => return Ok(()),
                _ => self.part(false)?,
            }
        }
        Ok(())
    }

    /// Whether `@(…)` or one of its kind stands here. Without `extglob`, bash takes it as that in `[[ … ]]` alone;
    /// elsewhere it is an error, or the head of a function.
    pub(super) fn starts_extended_pattern(&self) -> bool {
        matches!(self.peek(), Some(b'?' | b'*' | b'+' | b'@' | b'!')) && self.ahead(1) == Some(b'(')
    }

    /// The rest of `@(…)`.
    pub(super) fn extended_pattern(&mut self) -> Result<()> {
        self.only_bash(self.at, "@(…)");
        self.at += 2;
        self.pattern_parentheses()
    }

    /// The rest of a parenthesised part of a pattern or a regular expression, in which parentheses nest.
    pub(super) fn pattern_parentheses(&mut self) -> Result<()> {
        self.deeper(|parser| {
            let mut depth = 1_usize;
            while depth > 0 {
                match parser.peek() {
                    // It runs here too; that is rare enough to ask.
                    Some(b'<' | b'>') if parser.starts_process_substitution() => return parser.error(),
                    Some(b'(') => depth += 1,
                    Some(b')') => depth -= 1,
                    _ => {
                        parser.part(false)?;
                        continue;
                    }
                }
                parser.at += 1;
            }
            Ok(())
        })
    }

    /// Whether `<(` or `>(` stands here, as bash sees it: it takes a continued line for nothing, also between the two.
    pub(super) fn starts_process_substitution(&self) -> bool {
        matches!(self.peek(), Some(b'<' | b'>')) && self.text[self.at + 1..].trim_start_matches("\\\n").starts_with('(')
    }

    /// One character of a word, or one quoted or expanded part.
    pub(super) fn part(&mut self, in_quotes: bool) -> Result<()> {
        match self.peek() {
            None => self.error(),
            Some(b'\\') => {
                self.at += 1;
                self.character();
                Ok(())
            }
            Some(b'\'') if !in_quotes => {
                self.at += 1;
                self.until(b'\'')
            }
            Some(b'"') if !in_quotes => {
                self.at += 1;
                self.double_quoted()
            }
            Some(b'`') => {
                self.at += 1;
                self.until_unescaped(b'`')
            }
            Some(b'$') => self.dollar(in_quotes),
            Some(_) => {
                self.character();
                Ok(())
            }
        }
    }

    /// Steps over one character, however many bytes it has.
    fn character(&mut self) {
        if self.at >= self.bytes.len() {
            return;
        }
        self.at += 1;
        while self.at < self.bytes.len() && !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    fn until(&mut self, end: u8) -> Result<()> {
        match self.bytes[self.at..].iter().position(|byte| *byte == end) {
            Some(length) => {
                self.at += length + 1;
                Ok(())
            }
            None => {
                self.at = self.bytes.len();
                self.error()
            }
        }
    }

    /// The rest of a double-quoted text, with its closing quote.
    pub(super) fn double_quoted(&mut self) -> Result<()> {
        self.deeper(|parser| {
            loop {
                match parser.peek() {
                    None => return parser.error(),
                    Some(b'"') => {
                        parser.at += 1;
                        return Ok(());
                    }
                    Some(byte) if is_plain(byte) || byte == b' ' => parser.at += 1,
                    Some(_) => parser.part(true)?,
                }
            }
        })
    }

    /// Steps behind the next `end` that no backslash stands before.
    fn until_unescaped(&mut self, end: u8) -> Result<()> {
        loop {
            match self.peek() {
                None => return self.error(),
                Some(byte) if byte == end => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.character();
                }
                Some(_) => self.character(),
            }
        }
    }

    /// What a dollar starts.
    pub(super) fn dollar(&mut self, in_quotes: bool) -> Result<()> {
        if !matches!(self.ahead(1), Some(b'(' | b'{' | b'[')) {
            return self.dollar_anew(in_quotes);
        }
        let key = (self.at, in_quotes);
        match self.known.get(&key) {
            Some(Some(end)) => {
                self.at = *end;
                Ok(())
            }
            Some(None) => self.error(),
            None => {
                let result = self.dollar_anew(in_quotes);
                self.known.insert(key, result.is_ok().then_some(self.at));
                result
            }
        }
    }

    fn dollar_anew(&mut self, in_quotes: bool) -> Result<()> {
        match self.ahead(1) {
            // bash takes a continued line for nothing, also between the dollar and what belongs to it; rare enough to ask.
            Some(b'\\') if self.ahead(2) == Some(b'\n') => self.error(),
            Some(b'(') => {
                if self.ahead(2) == Some(b'(') && self.arithmetic_ahead(3)? {
                    return Ok(());
                }
                self.at += 2;
                if self.is_continued_to('(') {
                    return self.error();
                }
                self.substitution().map(drop)
            }
            Some(b'{') => {
                self.at += 2;
                self.braced(in_quotes)
            }
            Some(b'[') => {
                self.only_bash(self.at, "$[…]");
                self.at += 2;
                self.bracketed(b'[', b']')
            }
            Some(b'\'') if !in_quotes => {
                self.only_bash(self.at, "$'…'");
                self.at += 2;
                self.until_unescaped(b'\'')
            }
            Some(b'"') if !in_quotes => {
                self.only_bash(self.at, "$\"…\"");
                self.at += 2;
                self.double_quoted()
            }
            _ => {
                self.at += 1;
                Ok(())
            }
        }
    }

    /// Whether this character comes next, behind a continued line. bash takes that for nothing and sees one token where
    /// there seem to be two; rare enough to ask.
    pub(super) fn is_continued_to(&self, next: char) -> bool {
        self.starts("\\\n") && self.text[self.at..].trim_start_matches("\\\n").starts_with(next)
    }

    /// `$((…))` or `((…))`: true, with all of it taken, if the brackets close together; otherwise
    /// nothing is taken, since two commands in parentheses stand there.
    pub(super) fn arithmetic_ahead(&mut self, opening: usize) -> Result<bool> {
        let start = self.at;
        self.at += opening;
        let inner = self.bracketed(b'(', b')').is_ok();
        if inner && self.is_continued_to(')') {
            return self.error();
        }
        let closed = inner && self.take(")");
        if !closed {
            self.at = start;
        }
        Ok(closed)
    }

    /// What stands inside `$(…)` up to its end.
    pub(super) fn substitution(&mut self) -> Result<CompoundList> {
        self.deeper(|parser| {
            let outer = std::mem::take(&mut parser.pending);
            let list = parser.list(true)?;
            parser.blanks();
            if !parser.take(")") || parser.awaits_documents() {
                return parser.error();
            }
            parser.pending = outer;
            Ok(list)
        })
    }

    /// The rest of `${…}`.
    fn braced(&mut self, in_quotes: bool) -> Result<()> {
        self.deeper(|parser| {
            // Inside quotes, a single quote is plain text in the word of `:-` and the like.
            let start = parser.at;
            loop {
                match parser.peek() {
                    None => return parser.error(),
                    Some(b'}') => {
                        parser.at += 1;
                        return Ok(());
                    }
                    // A process substitution runs here too; that is rare enough to ask.
                    Some(b'<' | b'>') if parser.starts_process_substitution() => return parser.error(),
                    Some(b'"') if in_quotes => {
                        parser.at += 1;
                        parser.double_quoted()?;
                    }
                    Some(b'\'') if in_quotes && !plain_quotes(&parser.text[start..parser.at]) => {
                        parser.at += 1;
                        parser.until(b'\'')?;
                    }
                    Some(_) => parser.part(in_quotes)?,
                }
            }
        })
    }

    /// The rest of a bracketed text whose brackets nest, such as arithmetic and subscripts.
    pub(super) fn bracketed(&mut self, open: u8, close: u8) -> Result<()> {
        self.deeper(|parser| {
            let mut depth = 1_usize;
            loop {
                match parser.peek() {
                    None => return parser.error(),
                    Some(byte) if byte == close => {
                        parser.at += 1;
                        depth -= 1;
                        if depth == 0 {
                            return Ok(());
                        }
                    }
                    Some(byte) if byte == open => {
                        parser.at += 1;
                        depth += 1;
                    }
                    Some(_) => parser.part(false)?,
                }
            }
        })
    }

    /// The plain word at this position if it is short enough for a reserved word; nothing is taken.
    pub(super) fn keyword(&self) -> &'a str {
        self.plain_word(LONGEST_RESERVED)
    }

    /// The plain word of at most `most` bytes at this position, or an empty text; nothing is taken.
    pub(super) fn plain_word(&self, most: usize) -> &'a str {
        let mut end = self.at;
        loop {
            match self.bytes.get(end) {
                None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>') => {
                    return &self.text[self.at..end];
                }
                // A quote or an expansion right behind it makes it another word.
                Some(b'\'' | b'"' | b'`' | b'$' | b'\\') => return "",
                Some(_) if end - self.at == most => return "",
                Some(_) => end += 1,
            }
        }
    }

    /// Takes a reserved word if it stands here.
    pub(super) fn reserved(&mut self, word: &str) -> bool {
        let found = self.keyword() == word;
        if found {
            self.at += word.len();
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        self.blanks();
        if self.reserved(word) { Ok(()) } else { self.error() }
    }
}

/// The length of `function`, the longest reserved word.
const LONGEST_RESERVED: usize = 8;

/// Whether a byte stands for itself in a word, quoted or not.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'_' | b'.' | b'/' | b',' | b':' | b'=' | b'@' | b'%' | b'+'
        )
}

/// Where the first line of a text ends, behind its line end; with `continued`, a backslash at its end takes the next
/// line in.
fn line_end(text: &str, continued: bool) -> usize {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.len();
        let before = line.strip_suffix('\n').unwrap_or(line);
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        if !continued || backslashes % 2 == 0 {
            break;
        }
    }
    end
}

/// Whether the operation of `${…}` inside double quotes takes single quotes as plain text.
fn plain_quotes(so_far: &str) -> bool {
    let rest = so_far
        .trim_start_matches(['!', '#'])
        .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    let rest = if rest.starts_with('[') {
        rest.find(']').map_or("", |end| &rest[end + 1..])
    } else {
        rest
    };
    let operator = rest.trim_start_matches(|c: char| "@*?$-".contains(c) && rest.len() == so_far.len());
    matches!(
        operator.strip_prefix(':').unwrap_or(operator).chars().next(),
        Some('-' | '=' | '?' | '+') | None
    )
}

/// A delimiter without its quotes.
fn unquoted(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    let mut characters = word.chars();
    let mut quote = None;
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            (None | Some('"'), '\\') => plain.extend(characters.next().filter(|next| *next != '\n')),
            (_, other) => plain.push(other),
        }
    }
    plain
}
