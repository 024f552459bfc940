//! A command's text as the words of one program, for places without a shell. Reads quotation marks and backslashes as
//! a shell does, and refuses whatever else a shell would do something with.

use std::path::{Path, PathBuf};

use super::shell::executable;
use crate::process::{Plan, SpawnError};
use crate::request::Command;

/// A text that takes a shell, where there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no shell here, so only one program with its arguments can be started, and {what} takes a shell; quote it \
     if it is meant as it stands"
)]
struct TakesShell {
    what: String,
}

/// How the text is run without a shell: its first word is the program, found on the command's own `PATH`.
pub(super) fn plan(command: &Command) -> Result<Plan, SpawnError> {
    let words = words(command.text()).map_err(|error| SpawnError::Environment(Box::new(error)))?;
    let first = words.first().cloned().unwrap_or_default();
    let program = find(&first, command).ok_or_else(|| SpawnError::Missing {
        program: PathBuf::from(&first),
    })?;
    Ok(Plan::new(program, words, command.cwd())
        .with_variables(command.variables().clone())
        .with_file_size(command.file_size()))
}

/// The program that a word names: a path as it is, a name where `PATH` says.
fn find(word: &str, command: &Command) -> Option<PathBuf> {
    if word.contains('/') {
        return Some(command.cwd().join(word));
    }
    let path = command.variables().get("PATH")?;
    let places = path.split(':').map(Path::new).filter(|place| place.is_absolute());
    places.map(|place| place.join(word)).find(|path| executable(path))
}

/// The words of a text.
fn words(text: &str) -> Result<Vec<String>, TakesShell> {
    let takes = |what: String| TakesShell { what };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            ' ' | '\t' => words.extend(word.take()),
            // At its end alone.
            '\n' if signs.clone().all(|sign| sign.is_ascii_whitespace()) => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match signs.next() {
                        Some('\'') => break,
                        Some(sign) => word.push(sign),
                        None => return Err(takes("a quotation mark without its end".to_owned())),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match signs.next() {
                        Some('"') => break,
                        Some('\\') => match signs.next() {
                            Some(sign @ ('"' | '\\' | '$' | '`')) => word.push(sign),
                            Some('\n') => {}
                            Some(sign) => word.extend(['\\', sign]),
                            None => return Err(takes("a quotation mark without its end".to_owned())),
                        },
                        Some(sign @ ('$' | '`')) => return Err(takes(format!("`{sign}`"))),
                        Some(sign) => word.push(sign),
                        None => return Err(takes("a quotation mark without its end".to_owned())),
                    }
                }
            }
            '\\' => match signs.next() {
                Some('\n') => {}
                Some(sign) => word.get_or_insert_default().push(sign),
                None => return Err(takes("a backslash at its end".to_owned())),
            },
            '#' | '~' if word.is_some() => word.get_or_insert_default().push(sign),
            '=' if words.is_empty() => return Err(takes("an assignment".to_owned())),
            '\n' => return Err(takes("a further line".to_owned())),
            '$' | '`' | '|' | '&' | ';' | '<' | '>' | '(' | ')' | '{' | '}' | '*' | '?' | '[' | ']' | '#' | '~'
            | '!' => return Err(takes(format!("`{sign}`"))),
            sign => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    if words.is_empty() {
        return Err(takes("an empty text".to_owned()));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_a_shell_makes_of_them() {
        for (text, expected) in [
            ("ls -l  /a", &["ls", "-l", "/a"][..]),
            (
                "echo 'a  b' \"c \\\" \\$d\" e\\ f\n",
                &["echo", "a  b", "c \" $d", "e f"],
            ),
            ("p '' \"\" a'b'c", &["p", "", "", "abc"]),
            ("p a=b x#y x~", &["p", "a=b", "x#y", "x~"]),
            ("'a b'", &["a b"]),
            ("\"a\\n\"", &["a\\n"]),
        ] {
            assert_eq!(words(text).expect(text), expected, "{text}");
        }
    }

    #[test]
    fn what_takes_a_shell_is_refused_by_name() {
        for (text, what) in [
            ("a | b", "`|`"),
            ("a; b", "`;`"),
            ("a\nb", "a further line"),
            ("a $x", "`$`"),
            ("a \"$x\"", "`$`"),
            ("a *.c", "`*`"),
            ("A=1 b", "an assignment"),
            ("a > f", "`>`"),
            ("a ~", "`~`"),
            ("a {b,c}", "`{`"),
            ("a # b", "`#`"),
            ("a 'b", "a quotation mark without its end"),
            ("", "an empty text"),
            (" \n", "an empty text"),
        ] {
            assert_eq!(words(text).map_err(|error| error.what), Err(what.to_owned()), "{text}");
        }
    }
}
