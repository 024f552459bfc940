//! Paths as words name them, against patterns with the meaning of `.gitignore`.

use std::path::Path;

use crate::policy::facts::Facts;
use crate::policy::script::{Base, HOME, PIPE};
use crate::policy::word::{Atom, Fields, Known, Word};

/// Stand-ins for what a path does not tell: one character, a run without a slash, anything.
const ONE: char = '\u{e000}';
const STAR: char = '\u{e001}';
const ANY: char = '\u{e002}';
/// A run without a slash that may start with a dot.
const FOUND: char = '\u{e003}';

/// How many readings of one word are looked at.
const MAX_READINGS: usize = 48;

/// Whether writing there changes nothing.
pub(in crate::policy) fn is_harmless_device(word: &Word) -> bool {
    // A name for standard input, or for another descriptor, opens the file behind it once more.
    word.known().is_some_and(|path| {
        matches!(
            path.as_ref(),
            "/dev/null"
                | "/dev/stdout"
                | "/dev/stderr"
                | "/dev/full"
                | "/dev/zero"
                | "/dev/tty"
                | "/dev/fd/1"
                | "/dev/fd/2"
                | PIPE
        )
    })
}

/// The paths that a list hides.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Hidden {
    lines: Vec<String>,
    exact: ignore::gitignore::Gitignore,
    patterns: Vec<Vec<Token>>,
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no pattern: {because}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub because: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Char(char),
    One,
    /// A run without a slash.
    Star,
    /// Together with the `Star` behind it: a run that does not start with a dot, or nothing.
    MaybeUndotted,
    /// One character that is no dot, as the shell's `?` there.
    OneUndotted,
    /// Anything.
    Any,
}

impl Hidden {
    pub(in crate::policy) fn new(lines: &[String]) -> Result<Self, PatternError> {
        let mut builder = ignore::gitignore::GitignoreBuilder::new("/");
        let error = |line: &String, because: String| PatternError {
            pattern: line.clone(),
            because,
        };
        builder
            .case_insensitive(true)
            .map_err(|fault| error(&String::new(), fault.to_string()))?;
        let mut patterns = Vec::new();
        for line in lines {
            if line.trim().is_empty() {
                return Err(error(line, "it is empty".to_owned()));
            }
            builder
                .add_line(None, line)
                .map_err(|fault| error(line, fault.to_string()))?;
            if !line.starts_with('!') && !line.starts_with('#') {
                patterns.push(pattern(line));
            }
        }
        let exact = builder
            .build()
            .map_err(|fault| error(&String::new(), fault.to_string()))?;
        Ok(Self {
            lines: lines.to_vec(),
            exact,
            patterns,
        })
    }

    /// The patterns as they were given.
    pub(in crate::policy) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Whether this path below the workspace is hidden, by itself or with a directory above it.
    pub(in crate::policy) fn hides(&self, relative: &str) -> bool {
        self.hides_entry(relative, true)
    }

    /// Whether a path is hidden of which it is known whether it is a directory.
    pub(in crate::policy) fn hides_entry(&self, relative: impl AsRef<Path>, is_directory: bool) -> bool {
        let relative = relative.as_ref();
        !relative.as_os_str().is_empty()
            && self
                .exact
                .matched_path_or_any_parents(relative, is_directory)
                .is_ignore()
    }

    /// Whether a word names a hidden path, from any directory that the text may be in.
    pub(in crate::policy) fn named(&self, word: &Word, bases: &[Base], dotglob: bool, facts: &Facts) -> Known {
        let mut answer = Known::No;
        let Some(readings) = word.alternatives(MAX_READINGS) else {
            return Known::Maybe;
        };
        for reading in &readings {
            let path = with_stand_ins(reading);
            if path.is_empty() && word.fields == Fields::One {
                continue;
            }
            for start in std::iter::once(Some("")).chain(bases.iter().map(|base| match base {
                Base::At(directory) => Some(directory.as_str()),
                Base::Unknown => None,
            })) {
                let start = start.map_or_else(|| ANY.to_string(), str::to_owned);
                match self.path(&join(&start, &path), dotglob, facts) {
                    Known::Yes if readings.len() == 1 => return Known::Yes,
                    Known::Yes | Known::Maybe => answer = Known::Maybe,
                    Known::No => {}
                }
            }
        }
        answer
    }

    fn path(&self, path: &str, dotglob: bool, facts: &Facts) -> Known {
        let home = facts.home.as_deref().unwrap_or("/nonexistent-home");
        let path = path.replace(HOME, home);
        if path.starts_with('/') && by_another_name(&path) {
            return Known::Maybe;
        }
        // Each start may stand inside the workspace: relative ones do, absolute ones if they name it.
        let inside = if path.starts_with('/') {
            match below(&path, &facts.workspace) {
                Some(inside) => inside,
                None => return Known::No,
            }
        } else {
            path
        };
        let Some(inside) = normalised(&inside) else {
            // It climbs out of the workspace, and could come back in by its name.
            let back = inside_again(&inside, facts);
            return back.map_or(Known::No, |back| self.path_inside(&back, dotglob));
        };
        self.path_inside(&inside, dotglob)
    }

    fn path_inside(&self, inside: &str, dotglob: bool) -> Known {
        if inside.contains([ONE, STAR, ANY, FOUND]) {
            let tokens = shell_tokens(&inside.to_lowercase(), dotglob);
            if self.patterns.iter().any(|pattern| intersect(&tokens, pattern)) {
                Known::Maybe
            } else {
                Known::No
            }
        } else if self.hides(inside) {
            Known::Yes
        } else {
            Known::No
        }
    }
}

/// The word as a path, with stand-ins for what is not known.
fn with_stand_ins(word: &Word) -> String {
    let mut path = String::new();
    for atom in &word.atoms {
        match atom {
            Atom::Text(text) => path.push_str(text),
            Atom::One => path.push(ONE),
            Atom::Star => path.push(STAR),
            Atom::Found => path.push(FOUND),
            Atom::Hidden(crate::policy::word::Hidden::Number) => path.push(STAR),
            Atom::Hidden(_) | Atom::OneOf(_) => path.push(ANY),
        }
    }
    path
}

fn join(start: &str, path: &str) -> String {
    if path.starts_with('/') || start.is_empty() {
        path.to_owned()
    } else {
        format!("{start}/{path}")
    }
}

/// The path below the workspace, if it lies there; unknown starts may lie there.
fn below(path: &str, workspace: &str) -> Option<String> {
    let plain = normalised(path.trim_start_matches('/')).map(|inside| format!("/{inside}"))?;
    if let Some(rest) = plain.strip_prefix(workspace) {
        if rest.is_empty() {
            return Some(String::new());
        }
        if let Some(rest) = rest.strip_prefix('/') {
            return Some(rest.to_owned());
        }
    }
    // Wildcards before the workspace's own name is complete.
    let known = plain.find([ONE, STAR, ANY, FOUND]).map(|at| &plain[..at])?;
    workspace
        .starts_with(known)
        .then(|| ANY.to_string() + plain.rsplit('/').next().unwrap_or_default())
}

/// A path that leaves the workspace upwards and comes back by its name.
fn inside_again(path: &str, facts: &Facts) -> Option<String> {
    let whole = format!("{}/{path}", facts.workspace);
    below(&whole, &facts.workspace)
}

/// The path without `.` and `..`; `None` if it climbs above its start.
fn normalised(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.pop() {
                Some(last) if last.contains(ANY) => parts.push(last),
                Some(_) => {}
                None => return None,
            },
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The shell's reading of a path with stand-ins.
fn shell_tokens(path: &str, dotglob: bool) -> Vec<Token> {
    let mut start = true;
    let mut tokens = Vec::with_capacity(path.len() + 4);
    let mut characters = path.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            ONE if start && !dotglob => tokens.push(Token::OneUndotted),
            ONE => tokens.push(Token::One),
            // Before a dot it cannot be nothing, since the dot would then be the first character.
            STAR if start && !dotglob && characters.peek() == Some(&'.') => {
                tokens.extend([Token::OneUndotted, Token::Star])
            }
            // Nothing, or a first character that is no dot and whatever follows it.
            STAR if start && !dotglob => tokens.extend([Token::MaybeUndotted, Token::Star]),
            STAR | FOUND => tokens.push(Token::Star),
            ANY => tokens.push(Token::Any),
            other => tokens.push(Token::Char(other)),
        }
        start = character == '/';
    }
    tokens
}

/// A line of a `.gitignore` as a pattern for whole paths below the workspace.
fn pattern(line: &str) -> Vec<Token> {
    let line = line.trim_end().trim_end_matches('/').to_lowercase();
    let anchored = line.contains('/');
    let mut tokens = Vec::new();
    let mut rest = line.strip_prefix('/').unwrap_or(&line);
    if !anchored {
        tokens.push(Token::Any);
    }
    while let Some(character) = rest.chars().next() {
        let mut length = character.len_utf8();
        tokens.push(match character {
            '*' if rest.starts_with("**/") => {
                length = 3;
                Token::Any
            }
            '*' if rest.starts_with("**") => {
                length = 2;
                Token::Any
            }
            '*' => Token::Star,
            '?' => Token::One,
            '[' => {
                length = rest.find(']').map_or(1, |end| end + 1);
                Token::One
            }
            '\\' => {
                let next = rest[1..].chars().next().unwrap_or('\\');
                length += next.len_utf8();
                Token::Char(next)
            }
            other => Token::Char(other),
        });
        rest = rest.get(length..).unwrap_or_default();
    }
    // What lies below a hidden directory is hidden with it.
    tokens.push(Token::Any);
    whole_names(tokens, anchored)
}

/// Marks where names begin and end: an unanchored pattern is a whole name somewhere in the path.
///
/// `Any` before and after would also match within a name (`xenv` for `env`), so the ends are made
/// exact by matching against the path with a slash on both sides.
fn whole_names(mut tokens: Vec<Token>, anchored: bool) -> Vec<Token> {
    tokens.pop();
    let mut whole = Vec::with_capacity(tokens.len() + 4);
    if anchored {
        whole.push(Token::Char('/'));
    } else {
        // The leading `Any` is replaced by "any directories, then a slash".
        tokens.remove(0);
        whole.extend([Token::Any, Token::Char('/')]);
    }
    whole.extend(tokens);
    whole.extend([Token::Char('/'), Token::Any]);
    whole
}

/// Whether any text matches both.
fn intersect(path: &[Token], pattern: &[Token]) -> bool {
    let mut framed = Vec::with_capacity(path.len() + 2);
    framed.push(Token::Char('/'));
    framed.extend_from_slice(path);
    framed.push(Token::Char('/'));
    let (rows, columns) = (framed.len() + 1, pattern.len() + 1);
    let mut seen = vec![false; rows * columns];
    let mut open = vec![(0, 0)];
    while let Some((row, column)) = open.pop() {
        if std::mem::replace(&mut seen[row * columns + column], true) {
            continue;
        }
        if row + 1 == rows && column + 1 == columns {
            return true;
        }
        let (left, right) = (framed.get(row), pattern.get(column));
        let runs = |token: Option<&Token>| matches!(token, Some(Token::Star | Token::Any));
        if runs(left) {
            open.push((row + 1, column));
        }
        if left == Some(&Token::MaybeUndotted) {
            // Nothing at all: then the run behind it is nothing either.
            open.push((row + 2, column));
        }
        if runs(right) {
            open.push((row, column + 1));
        }
        if let (Some(left), Some(right)) = (left, right)
            && share(*left, *right)
        {
            let rows_next = if runs(Some(left)) { row } else { row + 1 };
            let columns_next = if runs(Some(right)) { column } else { column + 1 };
            open.push((rows_next, columns_next));
        }
    }
    false
}

/// Whether one character fits both.
fn share(left: Token, right: Token) -> bool {
    let fits = |token: Token, character: char| match token {
        Token::Char(own) => own == character,
        Token::One | Token::Star => character != '/',
        Token::MaybeUndotted | Token::OneUndotted => character != '/' && character != '.',
        Token::Any => true,
    };
    match (left, right) {
        (Token::Char(character), other) | (other, Token::Char(character)) => fits(other, character),
        _ => true,
    }
}

/// Whether a path goes through a process's view of the file system, which leads anywhere.
fn by_another_name(path: &str) -> bool {
    let Some(plain) = normalised(path) else { return true };
    let mut parts = plain.split('/');
    match (parts.next(), parts.next()) {
        (Some("proc"), Some(_)) => {
            parts.any(|part| matches!(part, "cwd" | "root" | "fd") || part.contains([ONE, STAR, ANY, FOUND]))
        }
        (Some("dev"), Some("fd")) => parts.nth(1).is_some(),
        _ => false,
    }
}
