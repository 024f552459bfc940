//! `[[ … ]]`, whose words split otherwise than those of commands.

use super::Result;
use super::lexer::Parser;
use super::tree::{Test, Word};

impl Parser<'_> {
    /// The expression behind `[[`, with its `]]`.
    pub(super) fn condition(&mut self) -> Result<Test> {
        let test = self.deeper(Self::either)?;
        self.newlines()?;
        self.expect("]]")?;
        Ok(test)
    }

    fn either(&mut self) -> Result<Test> {
        let mut left = self.both()?;
        loop {
            self.newlines()?;
            if !self.take("||") {
                return Ok(left);
            }
            left = Test::Both(Box::new(left), Box::new(self.both()?));
        }
    }

    fn both(&mut self) -> Result<Test> {
        let mut left = self.term()?;
        loop {
            self.newlines()?;
            if !self.take("&&") {
                return Ok(left);
            }
            left = Test::Both(Box::new(left), Box::new(self.term()?));
        }
    }

    fn term(&mut self) -> Result<Test> {
        self.deeper(|parser| {
            parser.newlines()?;
            if parser.reserved("!") {
                return Ok(Test::Not(Box::new(parser.term()?)));
            }
            if parser.take("(") {
                let inner = parser.either()?;
                parser.newlines()?;
                return if parser.take(")") { Ok(inner) } else { parser.error() };
            }
            let first = parser.condition_word(false)?;
            if is_unary(&first.value) {
                parser.blanks();
                return Ok(Test::Unary(Some(first.value), parser.condition_word(false)?));
            }
            parser.blanks();
            match parser.operator() {
                Some(operator) => {
                    parser.blanks();
                    let right = parser.condition_word(matches!(operator.as_str(), "=~" | "==" | "=" | "!="))?;
                    Ok(Test::Binary(operator, first, right))
                }
                None => Ok(Test::Unary(None, first)),
            }
        })
    }

    /// A binary operator, if one stands here.
    fn operator(&mut self) -> Option<String> {
        if matches!(self.peek(), Some(b'<' | b'>')) && !self.starts_process_substitution() {
            let operator = self.text[self.at..=self.at].to_owned();
            self.at += 1;
            return Some(operator);
        }
        let word = self.keyword();
        let known = matches!(
            word,
            "=~" | "==" | "=" | "!=" | "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-ef" | "-nt" | "-ot"
        );
        known.then(|| {
            self.at += word.len();
            word.to_owned()
        })
    }

    /// A word; on the right of a comparison, brackets belong to its pattern.
    fn condition_word(&mut self, pattern: bool) -> Result<Word> {
        self.blanks();
        let start = self.at;
        if self.keyword() == "]]" {
            return self.error();
        }
        while let Some(byte) = self.peek() {
            match byte {
                b'(' if pattern => {
                    self.at += 1;
                    self.pattern_parentheses()?;
                }
                b'|' if pattern && self.at > start && self.ahead(1) != Some(b'|') => self.at += 1,
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' => break,
                b'<' | b'>' if self.starts_process_substitution() => return self.error(),
                b'<' | b'>' if !pattern => break,
                _ => self.part(false)?,
            }
        }
        if self.at == start {
            self.error()
        } else {
            Ok(self.word_from(start))
        }
    }
}

fn is_unary(word: &str) -> bool {
    matches!(word.as_bytes(), [b'-', flag] if b"abcdefghknoprstuvwxzGLNORS".contains(flag))
}
