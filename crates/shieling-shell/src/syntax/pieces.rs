//! A word as it is written to its pieces: text, quotes, expansions.

use super::Result;
use super::command::{is_name, name_length};
use super::lexer::Parser;
use super::tree::{Expansion, Operation, Parameter, Piece, PieceKind, Tilde};

/// The pieces of a word.
pub(crate) fn pieces(text: &str) -> Result<Vec<Piece>> {
    let mut parser = Parser::new(text);
    let mut all = Vec::new();
    if let Some((tilde, length)) = tilde(text) {
        all.push(Piece {
            kind: PieceKind::Tilde(tilde),
            start: 0,
            end: length,
        });
        parser.at = length;
    }
    parser.pieces(false, &mut all)?;
    Ok(all)
}

/// The pieces of a here-document's body, or of anything else that expands as in double quotes.
pub(crate) fn heredoc_pieces(text: &str) -> Result<Vec<Piece>> {
    let mut parser = Parser::new(text);
    let mut all = Vec::new();
    parser.pieces(true, &mut all)?;
    Ok(all)
}

impl Parser<'_> {
    /// Reads pieces to the end of the text.
    fn pieces(&mut self, quoted: bool, all: &mut Vec<Piece>) -> Result<()> {
        while self.peek().is_some() {
            self.piece(quoted, true, all)?;
        }
        Ok(())
    }

    /// The pieces of a double-quoted text, with its closing quote.
    fn quoted_pieces(&mut self) -> Result<Vec<Piece>> {
        let mut inner = Vec::new();
        loop {
            match self.peek() {
                None => return self.error(),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(inner);
                }
                Some(_) => self.piece(true, false, &mut inner)?,
            }
        }
    }

    /// One piece. In a here-document a double quote is plain text.
    fn piece(&mut self, quoted: bool, document: bool, all: &mut Vec<Piece>) -> Result<()> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'\\') => {
                self.at += 1;
                let Some(next) = self.text[self.at..].chars().next() else {
                    // A backslash at the very end stands for itself.
                    return push_text(all, "\\", start, self.at);
                };
                self.at += next.len_utf8();
                let escapes = !quoted || matches!(next, '$' | '`' | '\\' | '\n') || (next == '"' && !document);
                if !escapes {
                    return push_text(all, &self.text[start..self.at], start, self.at);
                }
                PieceKind::Escaped(next)
            }
            Some(b'\'') if !quoted => {
                self.part(false)?;
                PieceKind::SingleQuoted(self.text[start + 1..self.at - 1].to_owned())
            }
            Some(b'"') if !quoted => {
                self.at += 1;
                PieceKind::DoubleQuoted(self.deeper(Self::quoted_pieces)?)
            }
            Some(b'`') => {
                self.part(quoted)?;
                PieceKind::Backquoted(self.text[start + 1..self.at - 1].to_owned())
            }
            Some(b'$') => match self.dollar_piece(quoted)? {
                Some(kind) => kind,
                None => return push_text(all, "$", start, self.at),
            },
            Some(_) if !quoted && self.starts_extended_pattern() => {
                self.extended_pattern()?;
                let text = self.text[start + 2..self.at - 1].to_owned();
                // What is quoted or expanded may be a dot.
                let begins = |text: &str| text.starts_with(['.', '\\', '\'', '"', '$', '`']);
                let dot = begins(&self.text[self.at..]) || text.split(['|', '(']).any(begins);
                PieceKind::Extended { text, dot }
            }
            Some(_) => {
                let special: &[u8] = if quoted { b"\\\"`$" } else { b"\\'\"`$" };
                let rest = &self.text.as_bytes()[self.at..];
                let length = rest
                    .iter()
                    .position(|byte| special.contains(byte) && !(quoted && document && *byte == b'"'))
                    .unwrap_or(rest.len());
                let end = self.at + length.max(1);
                self.at += 1;
                while self.at < end && (quoted || !self.starts_extended_pattern()) {
                    self.at += 1;
                }
                return push_text(all, &self.text[start..self.at], start, self.at);
            }
            None => return Ok(()),
        };
        all.push(Piece {
            kind,
            start,
            end: self.at,
        });
        Ok(())
    }

    /// What a dollar starts; `None` for one that stands for itself.
    fn dollar_piece(&mut self, quoted: bool) -> Result<Option<PieceKind>> {
        let start = self.at;
        let inner = |parser: &Self, from: usize, to: usize| parser.text[start + from..parser.at - to].to_owned();
        Ok(Some(match self.ahead(1) {
            Some(b'(') => {
                self.dollar(quoted)?;
                // Which of the two it was shows in how it ends.
                let whole = &self.text[start..self.at];
                let arithmetic = whole.starts_with("$((") && {
                    let mut again = Parser::new(self.text);
                    again.at = start;
                    again.arithmetic_ahead(3)? && again.at == self.at
                };
                if arithmetic {
                    PieceKind::Arithmetic(inner(self, 3, 2))
                } else {
                    PieceKind::Substitution(inner(self, 2, 1))
                }
            }
            Some(b'[') => {
                self.dollar(quoted)?;
                PieceKind::Arithmetic(inner(self, 2, 1))
            }
            Some(b'{') => {
                self.dollar(quoted)?;
                let Some(expansion) = expansion(&self.text[start + 2..self.at - 1]) else {
                    return self.error();
                };
                PieceKind::Parameter(Box::new(expansion))
            }
            Some(b'\'') if !quoted => {
                self.dollar(quoted)?;
                PieceKind::AnsiC(inner(self, 2, 1))
            }
            Some(b'"') if !quoted => {
                self.at += 2;
                PieceKind::Translated(self.deeper(Self::quoted_pieces)?)
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.at += 1;
                let rest = &self.text[self.at..];
                let length = name_length(rest);
                self.at += length;
                PieceKind::Parameter(Box::new(plain(Parameter::Named(rest[..length].to_owned()))))
            }
            Some(byte @ b'1'..=b'9') => {
                self.at += 2;
                PieceKind::Parameter(Box::new(plain(Parameter::Positional(u32::from(byte - b'0')))))
            }
            Some(byte @ (b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' | b'0')) => {
                self.at += 2;
                PieceKind::Parameter(Box::new(plain(Parameter::Special(char::from(byte)))))
            }
            _ => {
                self.dollar(quoted)?;
                return Ok(None);
            }
        }))
    }
}

fn push_text(all: &mut Vec<Piece>, text: &str, start: usize, end: usize) -> Result<()> {
    match all.last_mut() {
        Some(Piece {
            kind: PieceKind::Text(last),
            end: last_end,
            ..
        }) => {
            last.push_str(text);
            *last_end = end;
        }
        _ => all.push(Piece {
            kind: PieceKind::Text(text.to_owned()),
            start,
            end,
        }),
    }
    Ok(())
}

fn plain(parameter: Parameter) -> Expansion {
    Expansion {
        parameter,
        indirect: false,
        operation: Operation::Value,
    }
}

/// A tilde at the start of a word, up to the first slash.
fn tilde(text: &str) -> Option<(Tilde, usize)> {
    let rest = text.strip_prefix('~')?;
    let length = rest.find('/').unwrap_or(rest.len());
    let name = &rest[..length];
    let kind = match name.replace("\\\n", "").as_str() {
        "" => Tilde::Home,
        "+" => Tilde::Here,
        "-" => Tilde::Before,
        name if name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte)) =>
        {
            Tilde::Other
        }
        _ => return None,
    };
    Some((kind, 1 + length))
}

/// What stands inside `${…}`; `None` for what bash calls a bad substitution.
fn expansion(text: &str) -> Option<Expansion> {
    if let Some(rest) = text.strip_prefix('#')
        && !rest.is_empty()
        && let Some((parameter, after)) = parameter(rest)
        && after.is_empty()
    {
        return Some(Expansion {
            parameter,
            indirect: false,
            operation: Operation::Length,
        });
    }
    if let Some(rest) = text.strip_prefix('!')
        && !rest.is_empty()
        && let Some((parameter, after)) = parameter(rest)
    {
        let operation = match (&parameter, after) {
            (Parameter::Named(_), "*" | "@") => Operation::Names,
            (Parameter::All { .. }, "") => Operation::Keys,
            (_, after) => operation(after)?,
        };
        return Some(Expansion {
            parameter,
            indirect: true,
            operation,
        });
    }
    let (parameter, after) = parameter(text)?;
    Some(Expansion {
        parameter,
        indirect: false,
        operation: operation(after)?,
    })
}

/// The parameter at the start of a text, and what follows it.
fn parameter(text: &str) -> Option<(Parameter, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        let number = text[..digits].parse().ok()?;
        let parameter = if number == 0 {
            Parameter::Special('0')
        } else {
            Parameter::Positional(number)
        };
        return Some((parameter, &text[digits..]));
    }
    let length = name_length(text);
    if length == 0 {
        let special = text.chars().next().filter(|c| "@*#?-$!".contains(*c))?;
        return Some((Parameter::Special(special), &text[1..]));
    }
    let (name, rest) = (text[..length].to_owned(), &text[length..]);
    if !is_name(&name) {
        return None;
    }
    if !rest.starts_with('[') {
        return Some((Parameter::Named(name), rest));
    }
    let mut parser = Parser::new(rest);
    parser.at = 1;
    parser.bracketed(b'[', b']').ok()?;
    let subscript = &rest[1..parser.at - 1];
    let after = &rest[parser.at..];
    let parameter = match subscript {
        "" => return None,
        "@" => Parameter::All { name, separate: true },
        "*" => Parameter::All { name, separate: false },
        subscript => Parameter::Element {
            name,
            subscript: subscript.to_owned(),
        },
    };
    Some((parameter, after))
}

fn operation(text: &str) -> Option<Operation> {
    let owned = |rest: &str| rest.to_owned();
    let colon = text.strip_prefix(':').unwrap_or(text);
    let mut characters = colon.chars();
    Some(match characters.next() {
        None if text.is_empty() => Operation::Value,
        None => return None,
        Some('-') => Operation::Default(owned(characters.as_str())),
        Some('=') => Operation::Assign(owned(characters.as_str())),
        Some('?') => Operation::Error(owned(characters.as_str())),
        Some('+') => Operation::Alternative(owned(characters.as_str())),
        Some(_) if text.starts_with(':') => Operation::Substring(owned(colon)),
        Some('%') => Operation::WithoutSuffix(owned(characters.as_str())),
        Some('#' | '/' | '^' | ',') => Operation::Changed(owned(characters.as_str())),
        Some('@') => match characters.as_str() {
            "P" => Operation::Prompt,
            "U" | "u" | "L" | "Q" | "E" | "A" | "K" | "a" | "k" => Operation::Transformed,
            _ => return None,
        },
        Some(_) => return None,
    })
}

/// The words that braces make of a word: each as it is written, with its own quotes and expansions.
/// `None` where there are more than `most`; one word where nothing expands.
///
/// `{a,b}` and `{1..3}` expand where they are not quoted and hold what they should; every other brace
/// is text.
pub(crate) fn braces(text: &str, most: usize) -> Option<Vec<String>> {
    let Some((start, end, commas)) = first_brace(text) else {
        return Some(vec![text.to_owned()]);
    };
    let (before, inside, after) = (&text[..start], &text[start + 1..end], &text[end + 1..]);
    let choices: Vec<String> = if commas.is_empty() {
        sequence(inside, most)?
    } else {
        let mut parts = Vec::new();
        let mut from = 0;
        for comma in commas.iter().map(|comma| comma - start - 1).chain([inside.len()]) {
            parts.push(&inside[from..comma]);
            from = comma + 1;
        }
        let mut all = Vec::new();
        for part in parts {
            all.extend(braces(part, most)?);
        }
        all
    };
    // Every group at least halves what is left, so that a long row of them ends soon.
    let left = most / choices.len().max(2);
    if left == 0 {
        return None;
    }
    let rest = braces(after, left)?;
    Some(
        choices
            .iter()
            .flat_map(|choice| rest.iter().map(move |rest| format!("{before}{choice}{rest}")))
            .collect(),
    )
}

/// The first brace that expands: where it opens and closes, and its commas.
fn first_brace(text: &str) -> Option<(usize, usize, Vec<usize>)> {
    let mut parser = Parser::new(text);
    // Open braces, each with its commas so far.
    let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut found: Option<(usize, usize, Vec<usize>)> = None;
    while let Some(byte) = parser.peek() {
        match byte {
            b'{' => {
                open.push((parser.at, Vec::new()));
                parser.at += 1;
            }
            b',' => {
                if let Some((_, commas)) = open.last_mut() {
                    commas.push(parser.at);
                }
                parser.at += 1;
            }
            b'}' => {
                if let Some((start, commas)) = open.pop() {
                    let expands = !commas.is_empty() || is_sequence(&text[start + 1..parser.at]);
                    // The outermost one wins, and of those the first.
                    if expands && found.as_ref().is_none_or(|(first, _, _)| start < *first) {
                        found = Some((start, parser.at, commas));
                    }
                }
                parser.at += 1;
            }
            _ => parser.part(false).ok()?,
        }
        if open.is_empty() && found.is_some() {
            break;
        }
    }
    found
}

fn ends_of(text: &str) -> Option<(&str, &str, i64)> {
    let mut parts = text.split("..");
    let (first, last) = (parts.next()?, parts.next()?);
    let step = parts.next().map_or(Some(1), |step| step.parse().ok())?;
    if parts.next().is_some() {
        return None;
    }
    Some((first, last, step))
}

fn is_sequence(text: &str) -> bool {
    let Some((first, last, _)) = ends_of(text) else {
        return false;
    };
    let letter = |text: &str| text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
    let number = |text: &str| text.parse::<i64>().is_ok();
    (letter(first) && letter(last)) || (number(first) && number(last))
}

/// The members of `{1..9..2}` or `{a..f}`.
fn sequence(text: &str, most: usize) -> Option<Vec<String>> {
    let (first, last, step) = ends_of(text)?;
    let step = step.unsigned_abs().max(1);
    let run = |from: i64, to: i64| -> Option<Vec<i64>> {
        let count = from.abs_diff(to) / step + 1;
        if count > most as u64 {
            return None;
        }
        let sign = if to < from { -1 } else { 1 };
        Some(
            (0..count)
                .map(|index| from.saturating_add(sign * i64::try_from(index * step).unwrap_or(i64::MAX)))
                .collect(),
        )
    };
    match (first.parse::<i64>(), last.parse::<i64>()) {
        (Ok(from), Ok(to)) => {
            let width = [first, last]
                .iter()
                .filter(|text| text.trim_start_matches('-').starts_with('0') && text.len() > 1)
                .map(|text| text.len())
                .max();
            Some(
                run(from, to)?
                    .into_iter()
                    .map(|number| width.map_or_else(|| number.to_string(), |width| format!("{number:0width$}")))
                    .collect(),
            )
        }
        _ => {
            let (from, to) = (first.bytes().next()?, last.bytes().next()?);
            let letters = run(i64::from(from), i64::from(to))?;
            // Between the capitals and the others lie marks that could mean something to the shell.
            let all = letters.into_iter().map(|code| {
                u8::try_from(code)
                    .ok()
                    .map(char::from)
                    .filter(char::is_ascii_alphabetic)
                    .map(String::from)
            });
            all.collect()
        }
    }
}
