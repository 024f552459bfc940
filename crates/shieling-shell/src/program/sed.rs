//! sed programs: most only print, but `w` and `r` name files and `e` runs commands.

use crate::reader::{Reader, Run};
use crate::reading::{Action, Doubt, Via};
use crate::screen::Unreadable;
use crate::word::{NUMBER, Word, escapes_a_number};

/// What one command of a sed program touches.
#[derive(Debug, PartialEq, Eq)]
enum Touch {
    Writes(String),
    Reads(String),
    /// `e COMMAND`, or with nothing behind it the pattern space itself.
    Runs(String),
}

/// Records what a sed program does besides printing.
pub(super) fn sed(word: &Word, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let by = Some(run.index);
    let (object, span) = (word.shown(), word.span);
    let touched: Option<Vec<Vec<Touch>>> = word.alternatives(MAX_READINGS).and_then(|all| {
        all.iter()
            .map(|one| one.with_numbers().as_deref().and_then(touched))
            .collect()
    });
    let Some(touched) = touched else {
        let because = "this sed program is not understood, and could write or run something".to_owned();
        reader.doubt(Doubt::Argument, object, because, span, by);
        // A command of its own can stand in it, or what is put in could end the expression and add one.
        reader.unknown_launch(word, run);
        return Ok(());
    };
    for touch in touched.into_iter().flatten() {
        match touch {
            Touch::Writes(path) => reader.effect(
                Action::Writes(Word::text(path.clone(), span)),
                path,
                span,
                by,
                Via::Operand,
            ),
            Touch::Reads(path) => reader.effect(
                Action::Reads(Word::text(path.clone(), span)),
                path,
                span,
                by,
                Via::Operand,
            ),
            Touch::Runs(text) if text.is_empty() => reader.unknown_launch(word, run),
            Touch::Runs(text) => reader.shell_text(&Word::text(text, span), by)?,
        }
    }
    Ok(())
}

/// How many readings of one program are looked at.
const MAX_READINGS: usize = 16;

/// What a program touches; `None` if it is not understood.
///
/// [`NUMBER`] stands for a number, or for nothing, and is no part of a name, a command or a delimiter.
///
/// GNU sed takes a delimiter inside brackets as part of the expression (`s/[/]/x/`), others end there, and not all of them
/// know classes (`[[:digit:]/]`): what any reading touches counts. What ends with a backslash goes on in the next `-e`.
fn touched(program: &str) -> Option<Vec<Touch>> {
    let is_open = program.len() - program.trim_end_matches('\\').len();
    if escapes_a_number(program) || is_open % 2 == 1 {
        return None;
    }
    if !program.contains('[') {
        return touches(program, Brackets::None);
    }
    let mut found = touches(program, Brackets::WithClasses)?;
    for brackets in [Brackets::Plain, Brackets::None] {
        for touch in touches(program, brackets).unwrap_or_default() {
            if !found.contains(&touch) {
                found.push(touch);
            }
        }
    }
    Some(found)
}

/// What in brackets is no delimiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Brackets {
    /// Nothing: brackets mean nothing.
    None,
    /// What stands before the next closing bracket.
    Plain,
    /// The same, where classes (`[:digit:]`, `[=a=]`, `[.a.]`) have brackets of their own.
    WithClasses,
}

fn touches(program: &str, brackets: Brackets) -> Option<Vec<Touch>> {
    let mut rest = program;
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
        if rest.is_empty() {
            return Some(found);
        }
        rest = addresses(rest, brackets)?;
        rest = rest.trim_start_matches([' ', '\t', '!']);
        let command = rest.chars().next()?;
        rest = &rest[command.len_utf8()..];
        match command {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            '#' => rest = rest.find('\n').map_or("", |end| &rest[end..]),
            'l' | 'L' | 'q' | 'Q' => {
                rest = rest
                    .trim_start_matches([' ', '\t'])
                    .trim_start_matches(|c: char| c.is_ascii_digit() || c == NUMBER)
            }
            // A label, or a version, ends at a blank; others let it go on to the end of the line, which
            // then is no command at all.
            ':' | 'b' | 't' | 'T' | 'v' => {
                rest = rest.trim_start_matches([' ', '\t']);
                rest = rest.find([' ', '\t', '\n', ';', '}']).map_or("", |end| &rest[end..]);
            }
            'a' | 'i' | 'c' => rest = text_block(rest),
            'r' | 'R' | 'w' | 'W' => {
                let (name, after) = line(rest)?;
                found.push(if matches!(command, 'r' | 'R') {
                    Touch::Reads(name)
                } else {
                    Touch::Writes(name)
                });
                rest = after;
            }
            'e' => {
                let (text, after) = line(rest)?;
                found.push(Touch::Runs(text));
                rest = after;
            }
            's' => {
                let delimiter = rest.chars().next().filter(|c| !matches!(*c, '\n' | '\\' | NUMBER))?;
                rest = delimited(&rest[delimiter.len_utf8()..], delimiter, brackets)?;
                rest = delimited(rest, delimiter, Brackets::None)?;
                while let Some(flag) = rest.chars().next() {
                    match flag {
                        'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' | NUMBER => rest = &rest[flag.len_utf8()..],
                        'e' => {
                            found.push(Touch::Runs(String::new()));
                            rest = &rest[1..];
                        }
                        'w' => {
                            let (name, after) = line(&rest[1..])?;
                            found.push(Touch::Writes(name));
                            rest = after;
                        }
                        ';' | '\n' | '}' | ' ' | '\t' | '#' => break,
                        _ => return None,
                    }
                }
            }
            'y' => {
                let delimiter = rest.chars().next().filter(|c| !matches!(*c, '\n' | '\\' | NUMBER))?;
                rest = delimited(&rest[delimiter.len_utf8()..], delimiter, Brackets::None)?;
                rest = delimited(rest, delimiter, Brackets::None)?;
            }
            _ => return None,
        }
    }
}

/// Steps over `1,/x/`, `$`, `\%x%I`, `first~step`, `+n`.
fn addresses(mut rest: &str, brackets: Brackets) -> Option<&str> {
    loop {
        let first = rest.chars().next();
        rest = match first {
            Some('0'..='9' | '$' | ',' | '~' | '+' | ' ' | '\t') => &rest[1..],
            Some(NUMBER) => &rest[NUMBER.len_utf8()..],
            Some('/') => regex_flags(delimited(&rest[1..], '/', brackets)?),
            Some('\\') => {
                let delimiter = rest[1..].chars().next()?;
                regex_flags(delimited(&rest[1 + delimiter.len_utf8()..], delimiter, brackets)?)
            }
            Some(_) | None => return Some(rest),
        };
    }
}

fn regex_flags(rest: &str) -> &str {
    rest.trim_start_matches(['I', 'M'])
}

/// What follows the next delimiter that is not escaped, nor inside brackets where those protect it.
fn delimited(text: &str, delimiter: char, brackets: Brackets) -> Option<&str> {
    let mut escaped = false;
    let mut skip_to = 0;
    for (at, character) in text.char_indices() {
        if at < skip_to {
            continue;
        }
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == '\n' {
            // No program to any sed.
            return None;
        } else if character == delimiter {
            return Some(&text[at + character.len_utf8()..]);
        } else if character == '[' && brackets != Brackets::None {
            let body = text[at + 1..].strip_prefix('^').unwrap_or(&text[at + 1..]);
            // Where it is nothing, a bracket behind it does not close.
            if body.starts_with(NUMBER) {
                return None;
            }
            let body = body.strip_prefix(']').unwrap_or(body);
            let start = text.len() - body.len();
            skip_to = closing(body, brackets)?.map_or(0, |end| start + end + 1);
        }
    }
    None
}

/// Where brackets close, of which this is the rest, if they do; nothing where it holds a class that not every sed reads
/// alike: GNU's takes the `.` of `[...]` for a part of its end.
fn closing(body: &str, brackets: Brackets) -> Option<Option<usize>> {
    let mut rest = body;
    loop {
        let Some(next) = rest.find([']', '[']) else {
            return Some(None);
        };
        let at = body.len() - rest.len() + next;
        let inner = &rest[next..];
        if inner.starts_with(']') {
            return Some(Some(at));
        }
        let class = [("[:", ":]"), ("[=", "=]"), ("[.", ".]")]
            .into_iter()
            .find_map(|(open, close)| {
                let class = inner.strip_prefix(open).filter(|_| brackets == Brackets::WithClasses)?;
                Some(
                    class
                        .find(close)
                        .map(|end| (&class[..end], &class[end + close.len()..])),
                )
            });
        rest = match class {
            None => &inner[1..],
            Some(Some((name, behind))) if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                behind
            }
            Some(_) => return None,
        };
    }
}

/// The rest of the line as a file name or command, and what follows it.
fn line(text: &str) -> Option<(String, &str)> {
    let end = text.find('\n').unwrap_or(text.len());
    let line = text[..end].trim_start();
    (!line.contains(NUMBER)).then(|| (line.to_owned(), &text[end..]))
}

/// Steps over the text of `a`, `i` and `c`, whose lines go on after a backslash.
fn text_block(text: &str) -> &str {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '\\' => escaped = !escaped,
            '\n' if !escaped => return &text[at..],
            _ => escaped = false,
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_touches_is_found_wherever_it_stands() {
        let writes = |path: &str| Some(vec![Touch::Writes(path.to_owned())]);
        let runs = |text: &str| Some(vec![Touch::Runs(text.to_owned())]);
        for (program, expected) in [
            ("1,40p", Some(vec![])),
            ("s/a/b/g; s|/x|/y|; /foo/,/bar/d", Some(vec![])),
            ("$!N;P;D", Some(vec![])),
            ("/^#/d", Some(vec![])),
            ("s/[/]/x/", Some(vec![])),
            ("s/[/]/w x/", writes("x/")),
            ("s/[/]/x/w out", writes("out")),
            ("w out", writes("out")),
            ("1!w out", writes("out")),
            ("s/a/b/gw out", writes("out")),
            ("/x/{s/a/b/w out\n}", writes("out")),
            ("e rm x", runs("rm x")),
            ("1e", runs("")),
            ("s/.*/rm x/e", runs("")),
            ("s,w,w,;w out", writes("out")),
            (":a w out", writes("out")),
            ("b x w out", writes("out")),
            ("v 4.2;w out", writes("out")),
            (":a;N;$!ba;s/\\n/ /g", Some(vec![])),
            ("a hello\nw out", writes("out")),
            ("a hello\\\nw out", Some(vec![])),
            ("y/abc/xyz/", Some(vec![])),
            ("\\%x%w out", writes("out")),
            ("#p", Some(vec![])),
            ("#,+#d; s/a/#/#; q#", Some(vec![])),
            ("/x#/s//y#/", Some(vec![])),
            ("s/a/b/#w out", writes("out")),
            ("s#a1x2y2w out#1", None),
            ("w /dev/fd/#", None),
            ("1e sha#sum f", None),
            ("s/a\\#/b/", None),
            ("s/[#]/x/", None),
            ("\\#x#w out", None),
            // What goes on in the next `-e`, and line ends that no sed takes.
            ("a\\", None),
            ("s/x/y\\", None),
            ("s/x\nw out\n/y/", None),
            ("s/x/a\\\nb/", Some(vec![])),
            ("s/a[[:digit:]/]*/;w out\n/;p", None),
            ("s/a[[:digit:]/]*/;/;w out", writes("out")),
            ("s/a[^[=a=]/]*/;/;w out", writes("out")),
            ("s,[[:space:],]*,;,;w out", writes("out")),
            ("s/[[:space:]]//g", Some(vec![])),
        ] {
            let program = &program.replace("#", &String::from(NUMBER));
            assert_eq!(touched(program), expected, "{program}");
        }
    }
}
