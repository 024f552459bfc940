//! awk programs: most only print, but `system`, pipes and redirections reach out.

use crate::reader::{Reader, Run};
use crate::reading::{Action, Doubt, Via};
use crate::screen::Unreadable;
use crate::word::{NUMBER, Word, escapes_a_number};

/// A piece of an awk program, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(String),
    /// A string with codes for characters in it, which make another text than the one that is written.
    Coded,
    Mark(&'static str),
    Number,
    /// Anything that neither names, quotes nor connects.
    Other,
}

/// Records what an awk program does besides printing.
pub(super) fn awk(word: &Word, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let by = Some(run.index);
    let span = word.span;
    let Some(tokens) = word.with_numbers().as_deref().and_then(tokens) else {
        let because = "this awk program is not fully in the text, and could write or run something".to_owned();
        reader.doubt(Doubt::Argument, word.shown(), because, span, by);
        reader.unknown_launch(word, run);
        return Ok(());
    };
    // Special files of gawk, wherever their names come to be used.
    let in_text = |token: &Token| matches!(token, Token::Text(text) if text.contains("/inet"));
    let in_coded = || tokens.contains(&Token::Coded) && word.written.contains("/inet");
    if tokens.iter().any(in_text) || in_coded() {
        reader.effect(
            Action::Network("/inet".to_owned()),
            word.shown(),
            span,
            by,
            Via::Operand,
        );
    }
    let mut printing = false;
    let mut depth = 0_usize;
    let mut print_depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        let string = |token: Option<&Token>| match token {
            Some(Token::Text(text)) => Some(text.clone()),
            Some(Token::Coded | Token::Name(_) | Token::Mark(_) | Token::Number | Token::Other) | None => None,
        };
        match token {
            Token::Name(name) if name == "print" || name == "printf" => {
                printing = true;
                print_depth = depth;
            }
            Token::Name(name) if name == "ARGV" || name == "ARGC" => {
                // It changes which files are read.
                let files = Word::unknown(crate::word::Fields::Any, "ARGV", span);
                reader.effect(Action::Reads(files), "ARGV", span, by, Via::Operand);
            }
            Token::Name(name) if name == "system" => {
                let argument = string(tokens.get(at + 2));
                let closed = tokens.get(at + 3) == Some(&Token::Mark(")"));
                match argument.filter(|_| closed) {
                    Some(text) => reader.shell_text(&Word::text(text, span), by)?,
                    None => reader.unknown_launch(word, run),
                }
            }
            Token::Name(name) if name == "getline" => {
                if let Some(file) = read_by_getline(&tokens[at + 1..]) {
                    let path = string(tokens.get(at + 1 + file)).filter(|_| {
                        let behind = tokens.get(at + 2 + file);
                        ends(behind) || matches!(behind, Some(Token::Mark(">" | "&&" | "||")))
                    });
                    let file = path.as_ref().map_or_else(
                        || Word::unknown(crate::word::Fields::One, "…", span),
                        |path| Word::text(path.clone(), span),
                    );
                    let object = path.unwrap_or_else(|| "…".to_owned());
                    reader.effect(Action::Reads(file), object, span, by, Via::Operand);
                }
            }
            Token::Mark("(" | "[") => depth += 1,
            Token::Mark(")" | "]") => depth = depth.saturating_sub(1),
            // What is printed goes on behind it in parentheses, and where an operand is missing.
            Token::Mark("\n") => {
                let before = at.checked_sub(1).and_then(|at| tokens.get(at));
                // Some go on behind any operator.
                let is_operator = |token: &Token| match token {
                    Token::Mark(mark) => !matches!(*mark, ";" | "{" | "}" | ")" | "]" | "++" | "--"),
                    Token::Name(name) => name == "in",
                    Token::Other => true,
                    Token::Text(_) | Token::Coded | Token::Number => false,
                };
                let goes_on = depth > print_depth || before.is_some_and(is_operator);
                printing &= goes_on;
            }
            Token::Mark(";" | "}" | "{") => printing = false,
            Token::Mark("|" | "|&") => {
                let before = at.checked_sub(1).and_then(|at| tokens.get(at));
                let (command, plain) = if printing && depth == print_depth {
                    (string(next), ends(tokens.get(at + 2)))
                } else {
                    let is_whole = match at.checked_sub(2).and_then(|at| tokens.get(at)) {
                        Some(Token::Mark(")")) => closes_a_condition(&tokens[..at - 1]),
                        Some(
                            Token::Text(_)
                            | Token::Coded
                            | Token::Name(_)
                            | Token::Number
                            | Token::Other
                            | Token::Mark("," | "&&" | "||" | "++" | "--" | "]"),
                        ) => false,
                        Some(Token::Mark(_)) | None => true,
                    };
                    (string(before), is_whole)
                };
                match command.filter(|_| plain) {
                    Some(text) if !text.starts_with("/inet") => reader.shell_text_fed(&Word::text(text, span), by)?,
                    Some(_) | None => reader.unknown_launch(word, run),
                }
            }
            Token::Mark(">" | ">>") if printing && depth == print_depth => {
                match string(next).filter(|_| ends(tokens.get(at + 2))) {
                    Some(path) => reader.effect(
                        Action::Writes(Word::text(path.clone(), span)),
                        path,
                        span,
                        by,
                        Via::Operand,
                    ),
                    None => reader.effect(
                        Action::Writes(Word::unknown(crate::word::Fields::One, "…", span)),
                        word.shown(),
                        span,
                        by,
                        Via::Operand,
                    ),
                }
            }
            Token::Mark("@") => {
                // `@load`, `@include`, and calls of functions whose name is a value.
                let because = "this awk program loads or calls what is not in it".to_owned();
                reader.doubt(Doubt::Argument, word.shown(), because, span, by);
                reader.unknown_launch(word, run);
            }
            Token::Coded | Token::Name(_) | Token::Text(_) | Token::Mark(_) | Token::Number | Token::Other => {}
        }
    }
    Ok(())
}

/// Where the file stands that `getline` reads, in what follows it: behind the next `<`, with what it reads into before that.
fn read_by_getline(rest: &[Token]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in rest.iter().enumerate() {
        match token {
            Token::Mark("<") if depth == 0 => return Some(at + 1),
            Token::Mark("(" | "[") => depth += 1,
            Token::Mark(")" | "]") => depth = depth.checked_sub(1)?,
            Token::Mark(";" | "\n" | "{" | "}" | "|" | "|&" | ">" | ">>" | "&&" | "||" | ",") if depth == 0 => {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// Whether a redirection's or pipe's operand ends here.
fn ends(token: Option<&Token>) -> bool {
    matches!(token, None | Some(Token::Mark(";" | "}" | "\n" | ")")))
}

/// Tells strings, regular expressions and comments apart from what acts.
///
/// [`NUMBER`] stands for a number, or for nothing: where it would be a part of a name, or what follows would be read
/// otherwise without it, the program is not understood.
fn tokens(program: &str) -> Option<Vec<Token>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = program;
    let of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if escapes_a_number(program) {
        return None;
    }
    while let Some(first) = rest.chars().next() {
        match first {
            '"' => {
                let (text, after) = string(&rest[1..])?;
                tokens.push(text.map_or(Token::Coded, Token::Text));
                rest = after;
            }
            '#' => rest = rest.find('\n').map_or("", |end| &rest[end..]),
            '/' if starts_regex(&tokens)? => {
                // A value, behind which a slash divides.
                tokens.push(Token::Number);
                rest = regex(&rest[1..])?;
            }
            ' ' | '\t' | '\r' => rest = &rest[1..],
            // Blanks to some.
            '\u{b}' | '\u{c}' => return None,
            '\\' if rest[1..].starts_with('\n') => rest = &rest[2..],
            '\\' if rest[1..].starts_with("\r\n") => rest = &rest[3..],
            'a'..='z' | 'A'..='Z' | '_' => {
                let end = rest
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(rest.len());
                tokens.push(Token::Name(rest[..end].to_owned()));
                rest = &rest[end..];
                if rest.starts_with(NUMBER) {
                    return None;
                }
            }
            NUMBER => {
                rest = rest.trim_start_matches(NUMBER);
                if rest.starts_with(of_name) || rest.trim_start_matches([' ', '\t', '\r']).starts_with('/') {
                    return None;
                }
                tokens.push(Token::Number);
            }
            '0'..='9' | '.' => {
                let end = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
                if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
                    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                    if end(exponent) > 0 {
                        rest = &exponent[end(exponent)..];
                    }
                }
                // Where the number ends and a name begins, in `0x1f` or `1in`, every awk says otherwise.
                if rest.starts_with(of_name) {
                    return None;
                }
                tokens.push(Token::Number);
            }
            _ => {
                const MARKS: &[&str] = &[
                    "||", "|&", "|", "&&", "++", "--", ">>", ">=", ">", "<=", "<", "(", ")", "[", "]", "{", "}", ";",
                    "\n", "@", ",",
                ];
                match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
                    Some(mark) => {
                        tokens.push(if matches!(*mark, ">=" | "<=") {
                            Token::Other
                        } else {
                            Token::Mark(mark)
                        });
                        rest = &rest[mark.len()..];
                    }
                    None => {
                        tokens.push(Token::Other);
                        rest = &rest[first.len_utf8()..];
                    }
                }
            }
        }
    }
    Some(tokens)
}

/// Whether a slash starts a regular expression, as it does where no value stands before it; nothing where not every awk reads
/// it alike.
fn starts_regex(tokens: &[Token]) -> Option<bool> {
    match tokens.last() {
        // Behind a condition a statement begins.
        Some(Token::Mark(")")) => (!closes_a_condition(tokens)).then_some(false),
        Some(Token::Mark("++" | "--")) => None,
        Some(Token::Text(_) | Token::Coded | Token::Number | Token::Mark("]")) => Some(false),
        Some(Token::Name(name)) => match name.as_str() {
            "print" | "printf" | "return" | "in" | "do" | "else" => Some(true),
            "length" | "exit" | "getline" | "next" | "nextfile" | "break" | "continue" | "delete" | "BEGIN" | "END"
            | "BEGINFILE" | "ENDFILE" | "case" => None,
            _ => Some(false),
        },
        Some(Token::Other) | Some(Token::Mark(_)) | None => Some(true),
    }
}

/// Whether the last of these closes what began behind `if`, `while`, `for` or `switch`.
fn closes_a_condition(tokens: &[Token]) -> bool {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().rev() {
        match token {
            Token::Mark(")") => depth += 1,
            Token::Mark("(") if depth > 1 => depth -= 1,
            Token::Mark("(") => {
                let before = at.checked_sub(1).and_then(|at| tokens.get(at));
                return matches!(before, Some(Token::Name(name)) if matches!(name.as_str(), "if" | "while" | "for" | "switch"));
            }
            _ => {}
        }
    }
    false
}

/// A string, and what follows it; no text for one with codes in it.
fn string(text: &str) -> Option<(Option<String>, &str)> {
    let mut value = Some(String::new());
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        let plain = match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => Some('\n'),
                't' => Some('\t'),
                other @ ('"' | '\\' | '/') => Some(other),
                _ => None,
            },
            '\n' => return None,
            NUMBER => None,
            other => Some(other),
        };
        match (&mut value, plain) {
            (Some(value), Some(plain)) => value.push(plain),
            _ => value = None,
        }
    }
    None
}

fn regex(text: &str) -> Option<&str> {
    let mut escaped = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => {
                let length = bracket(&text[at..])?;
                while characters.next_if(|(next, _)| *next < at + length).is_some() {}
            }
            '/' => return Some(&text[at + 1..]),
            '\n' => return None,
            _ => {}
        }
    }
    None
}

/// The length of a bracket expression, if every awk reads it alike: without a slash, which ends the expression for some,
/// and without brackets and backslashes in it but for classes (`[:alpha:]`).
fn bracket(text: &str) -> Option<usize> {
    let mut rest = text.strip_prefix('[')?;
    rest = rest.strip_prefix('^').unwrap_or(rest);
    rest = rest.strip_prefix(']').unwrap_or(rest);
    loop {
        let next = rest.chars().next()?;
        rest = match next {
            ']' => return Some(text.len() - rest.len() + 1),
            '[' => {
                let class = rest.strip_prefix("[:")?;
                let end = class.find(":]")?;
                if !class[..end].bytes().all(|byte| byte.is_ascii_lowercase()) {
                    return None;
                }
                &class[end + 2..]
            }
            '/' | '\n' | NUMBER => return None,
            '\\' => {
                let escaped = rest[1..].chars().next().filter(|next| !"/\n".contains(*next))?;
                &rest[1 + escaped.len_utf8()..]
            }
            other => &rest[other.len_utf8()..],
        };
    }
}
