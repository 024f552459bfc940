//! Paths as words name them, against patterns with the meaning of `.gitignore`.

use std::borrow::Cow;
use std::cell::Cell;
use std::path::Path;

use shieling_shell::{Atom, Base, Fields, HOME, Known, PIPE, Word, begins_a_path};

use crate::policy::facts::Facts;

/// Stand-ins for what a path does not tell: one character, a run without a slash, anything.
const ONE: char = '\u{e000}';
const STAR: char = '\u{e001}';
const ANY: char = '\u{e002}';
/// A run without a slash that may start with a dot.
const FOUND: char = '\u{e003}';

/// A character of no name, which only a pattern for every name matches.
const UNTHOUGHT: char = '\u{e004}';

/// The name of no file, which only a pattern for every name matches.
const UNTHOUGHT_OF: &str = "\u{e000}\u{e001}\u{e002}";

/// How many readings of one word are looked at.
const MAX_READINGS: usize = 48;

/// How long a path can be to the kernel. What is longer opens nothing by itself, and is not looked at.
const MAX_PATH: usize = 4096;

/// How much work is spent on the paths of one text, in units of about ten nanoseconds. Paths beyond it could be any.
pub(in crate::policy) const MAX_WORK: usize = 4 * 1024 * 1024;

/// The directories that relative paths of a text may start from, besides the workspace itself, with the work that is
/// left for looking at paths.
#[derive(Debug)]
pub(in crate::policy) struct Starts {
    bases: Vec<Base>,
    work: Cell<usize>,
}

impl Starts {
    pub(in crate::policy) fn new(bases: Vec<Base>) -> Self {
        Self {
            bases,
            work: Cell::new(MAX_WORK),
        }
    }

    /// Whether it is the workspace alone.
    pub(in crate::policy) fn is_workspace(&self) -> bool {
        self.bases.is_empty()
    }

    /// Whether paths were left out, since there was too much to look at.
    pub(in crate::policy) fn is_exhausted(&self) -> bool {
        self.work.get() == 0
    }

    /// Takes the work of looking at a path: each directory above it is looked at as well.
    fn spend(&self, path: &str) -> bool {
        let directories = 1 + path.bytes().filter(|byte| *byte == b'/').count();
        let left = self.work.get().saturating_sub((path.len() + 64) * directories);
        self.work.set(left);
        left > 0
    }
}

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
    patterns: Vec<Pattern>,
    /// What matches the directories that a pattern names on the way to what it hides.
    above: Vec<Vec<Token>>,
    /// Whether a pattern begins at the top, so that another name for the workspace gets round it.
    from_top: bool,
    /// Whether a pattern hides all that is in a directory (`dir/*`).
    hides_all: bool,
    /// Those that take something out again (`!keep`), each with its place in the list.
    kept: Vec<(usize, Vec<Token>)>,
}

impl PartialEq for Hidden {
    /// All else is made from the lines.
    fn eq(&self, other: &Self) -> bool {
        self.lines == other.lines
    }
}

/// A line of a list, as a pattern for whole paths.
#[derive(Debug, Clone)]
struct Pattern {
    tokens: Vec<Token>,
    /// Whether it hides directories alone, and what is in them.
    directory: bool,
}

impl Pattern {
    /// What matches only what is in the directories that it hides.
    fn below(&self) -> Vec<Token> {
        let mut tokens = self.tokens.clone();
        tokens.insert(tokens.len() - 1, Token::One);
        tokens
    }
}

/// How a word meets a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::policy) enum Meets {
    /// It names the path, or what lies below it.
    At { dotglob: bool },
    /// It names the path, if that is no directory, or what lies below it.
    Below { dotglob: bool },
    /// It names the path, or a directory above it.
    Above,
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
        let (mut patterns, mut kept, mut above) = (Vec::new(), Vec::new(), Vec::new());
        let mut from_top = false;
        for (place, line) in lines.iter().enumerate() {
            if line.trim().is_empty() {
                return Err(error(line, "it is empty".to_owned()));
            }
            builder
                .add_line(None, line)
                .map_err(|fault| error(line, fault.to_string()))?;
            if let Some(line) = line.strip_prefix('!') {
                kept.push((place, pattern(line)));
            } else if !line.starts_with('#') {
                patterns.push(Pattern {
                    tokens: pattern(line),
                    directory: line.trim_end().ends_with('/'),
                });
                if let Some(whole) = line
                    .trim_end()
                    .strip_suffix("/**")
                    .filter(|whole| !whole.ends_with('*') && !whole.is_empty())
                {
                    patterns.push(Pattern {
                        tokens: pattern(&format!("/{}", whole.trim_start_matches('/'))),
                        directory: true,
                    });
                }
                above.extend(directories_above(line));
                from_top |= begins_at_top(line);
            }
        }
        let exact = builder
            .build()
            .map_err(|fault| error(&String::new(), fault.to_string()))?;
        let all = |line: &String| {
            let last = line.trim_end().rsplit('/').next().unwrap_or_default();
            !last.is_empty() && last.bytes().all(|byte| byte == b'*')
        };
        Ok(Self {
            hides_all: lines.iter().any(all),
            lines: lines.to_vec(),
            exact,
            patterns,
            above,
            from_top,
            kept,
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

    /// Whether a directory, hidden or not, can hold nothing that is not hidden: by a pattern for all that is
    /// in it (`dir/*`, `dir/**`), out of which no later one takes anything (`!dir/keep`).
    pub(in crate::policy) fn hides_all_in(&self, relative: impl AsRef<Path>) -> bool {
        let relative = relative.as_ref();
        if relative.as_os_str().is_empty() || !self.hides_all {
            return false;
        }
        // A name that nobody thought of: what hides it hides by where it is.
        let any = relative.join(UNTHOUGHT_OF);
        // A file's: a pattern for directories alone leaves files there.
        let ignore::Match::Ignore(glob) = self.exact.matched(&any, false) else {
            return false;
        };
        let hiding = glob.original().trim_end();
        let last = hiding.rsplit('/').next().unwrap_or_default();
        if last.is_empty() || last.bytes().any(|byte| byte != b'*') {
            return false;
        }
        let place = self
            .lines
            .iter()
            .rposition(|line| line.trim_end() == hiding)
            .unwrap_or(0);
        let below = format!("{}/{ANY}", relative.to_string_lossy().to_lowercase());
        let below = shell_tokens(&below, true);
        !self
            .kept
            .iter()
            .any(|(later, pattern)| *later > place && intersect(&below, pattern))
    }

    /// Whether a word names a hidden path, from any directory that the text may be in. With `files`, a directory
    /// that a wildcard matches does not count, but what is in it.
    pub(in crate::policy) fn named(
        &self,
        word: &Word,
        starts: &Starts,
        dotglob: bool,
        facts: &Facts,
        files: bool,
    ) -> Known {
        read(word, starts, |path| self.path(path, dotglob, facts, files))
    }

    /// Whether a word names a directory whose content a pattern would not hide under another name.
    pub(in crate::policy) fn named_above(&self, word: &Word, starts: &Starts, facts: &Facts) -> Known {
        if self.above.is_empty() && !self.from_top {
            return Known::No;
        }
        read(word, starts, |path| match place(path, facts) {
            Place::Unknown => Known::Maybe,
            Place::Elsewhere => Known::No,
            Place::Above if self.from_top => Known::Yes,
            Place::Above => Known::No,
            Place::Inside(inside) => {
                let tokens = shell_tokens(&inside.to_lowercase(), true);
                let unsure = inside.contains([ONE, STAR, ANY, FOUND]);
                let nothing_known = inside.chars().all(|c| c == ANY || c == '/');
                let whole = nothing_known && (self.from_top || !inside.is_empty());
                match whole || self.above.iter().any(|pattern| intersect(&tokens, pattern)) {
                    true if unsure => Known::Maybe,
                    true => Known::Yes,
                    false => Known::No,
                }
            }
        })
    }

    /// Whether a word is meant for hidden paths: names one even where each wildcard that is a whole name, and so
    /// fits any, stands for a name that nobody thought of.
    pub(in crate::policy) fn is_meant(&self, word: &Word, starts: &Starts, dotglob: bool, facts: &Facts) -> bool {
        let anything = |path: &str| {
            let part = |part: &str| match !part.is_empty() && part.chars().all(|c| matches!(c, STAR | FOUND | ANY)) {
                true => UNTHOUGHT.to_string(),
                false => part.to_owned(),
            };
            path.split('/').map(part).collect::<Vec<_>>().join("/")
        };
        read(word, starts, |path| self.path(&anything(path), dotglob, facts, false)) != Known::No
    }

    /// The first of these paths that a word can meet in this way; directories end with a slash.
    pub(in crate::policy) fn met<'a>(
        &self,
        there: &'a [String],
        word: &Word,
        starts: &Starts,
        meets: Meets,
        facts: &Facts,
    ) -> Option<&'a String> {
        there.iter().find(|hidden| {
            let (name, directory) = match hidden.strip_suffix('/') {
                Some(name) => (name, true),
                None => (hidden.as_str(), false),
            };
            let mut pattern = vec![Token::Char('/')];
            pattern.extend(name.to_lowercase().chars().map(Token::Char));
            pattern.push(Token::Char('/'));
            match meets {
                _ if !directory => {}
                // At least one character more.
                Meets::Below { .. } => pattern.extend([Token::One, Token::Any]),
                Meets::At { .. } | Meets::Above => pattern.push(Token::Any),
            }
            read(word, starts, |path| match place(path, facts) {
                Place::Unknown | Place::Above => Known::Maybe,
                Place::Elsewhere => Known::No,
                Place::Inside(inside) if inside.is_empty() && meets == Meets::Above => Known::Maybe,
                Place::Inside(inside) => {
                    let inside = inside.to_lowercase();
                    let tokens = match meets {
                        Meets::At { dotglob } | Meets::Below { dotglob } => shell_tokens(&inside, dotglob),
                        Meets::Above => [shell_tokens(&inside, true), vec![Token::Char('/'), Token::Any]].concat(),
                    };
                    match intersect(&tokens, &pattern) {
                        true => Known::Maybe,
                        false => Known::No,
                    }
                }
            }) != Known::No
        })
    }

    fn path(&self, path: &str, dotglob: bool, facts: &Facts, files: bool) -> Known {
        match place(path, facts) {
            Place::Unknown => Known::Maybe,
            Place::Elsewhere | Place::Above => Known::No,
            Place::Inside(inside) => self.path_inside(&inside, dotglob, files),
        }
    }

    fn path_inside(&self, inside: &str, dotglob: bool, files: bool) -> Known {
        if inside.contains([ONE, STAR, ANY, FOUND]) {
            let tokens = shell_tokens(&inside.to_lowercase(), dotglob);
            let matches = |pattern: &&Pattern| match files && pattern.directory {
                true => intersect(&tokens, &pattern.below()),
                false => intersect(&tokens, &pattern.tokens),
            };
            if self.patterns.iter().any(|pattern| matches(&pattern)) {
                Known::Maybe
            } else {
                Known::No
            }
        } else if self.hides(inside) || self.hides_all_in(inside) {
            Known::Yes
        } else {
            Known::No
        }
    }
}

/// Where a path leads.
enum Place {
    /// To this path below the workspace.
    Inside(String),
    /// To the workspace itself or a directory above it.
    Above,
    /// Somewhere else.
    Elsewhere,
    /// That cannot be told.
    Unknown,
}

/// How many directories `**` is taken for at most.
const DEEPEST: usize = 40;

/// Asks about each path that a word can be read as, from any directory that the text may be in.
fn read(word: &Word, starts: &Starts, mut ask: impl FnMut(&str) -> Known) -> Known {
    let mut answer = Known::No;
    if starts.is_exhausted() {
        return Known::Maybe;
    }
    let Some(readings) = word.alternatives(MAX_READINGS) else {
        return Known::Maybe;
    };
    for reading in &readings {
        let paths = with_directories(with_stand_ins(reading));
        if paths.iter().all(String::is_empty) && word.fields == Fields::One {
            continue;
        }
        for start in std::iter::once(Some("")).chain(starts.bases.iter().map(|base| match base {
            Base::At(directory) => Some(directory.as_str()),
            Base::Unknown => None,
        })) {
            let start = start.map_or_else(|| ANY.to_string(), str::to_owned);
            for path in &paths {
                let path = join(&start, path);
                if path.len() > MAX_PATH || !starts.spend(&path) {
                    return Known::Maybe;
                }
                match ask(&path) {
                    Known::Yes if readings.len() == 1 => return Known::Yes,
                    Known::Yes | Known::Maybe => answer = Known::Maybe,
                    Known::No => {}
                }
            }
        }
    }
    answer
}

/// Where a path with stand-ins leads.
fn place(path: &str, facts: &Facts) -> Place {
    let home = facts.home.as_deref().unwrap_or("/nonexistent-home");
    let path = match path.contains(HOME) {
        true => Cow::Owned(path.replace(HOME, home)),
        false => Cow::Borrowed(path),
    };
    if path.starts_with('/') && by_another_name(&path) {
        return Place::Unknown;
    }
    // Each start may stand inside the workspace: relative ones do, absolute ones if they name it.
    if path.starts_with('/') {
        return absolute(&path, facts);
    }
    match normalised(&path) {
        Some(inside) => Place::Inside(inside),
        // It climbs out of the workspace, and could come back in by its name.
        None => absolute(&format!("{}/{path}", facts.workspace), facts),
    }
}

fn absolute(path: &str, facts: &Facts) -> Place {
    let above = |plain: &String| {
        let prefix = format!("/{plain}");
        facts.workspace.starts_with(&prefix) && facts.workspace[prefix.len()..].starts_with('/') || plain.is_empty()
    };
    match (below(path, &facts.workspace), normalised(path.trim_start_matches('/'))) {
        (Some(inside), _) => Place::Inside(inside),
        (None, Some(plain)) if above(&plain) => Place::Above,
        (None, _) => Place::Elsewhere,
    }
}

/// The word as a path, with stand-ins for what is not known.
fn with_stand_ins(word: &Word) -> String {
    if let [Atom::Text(text)] = &*word.atoms
        && text.is_ascii()
    {
        return text.clone();
    }
    let mut path = String::new();
    for (at, atom) in word.atoms.iter().enumerate() {
        match atom {
            Atom::Text(text) => path.push_str(text),
            Atom::Here if begins_a_path(&word.atoms, at) => path.push('.'),
            Atom::One => path.push(ONE),
            Atom::Star => path.push(STAR),
            Atom::Found => path.push(FOUND),
            Atom::Hidden(shieling_shell::Hidden::Number | shieling_shell::Hidden::Letters) => {
                let starts = path.is_empty() || path.ends_with(['/', FOUND]);
                // It may be nothing, where what prints it fails: then the name starts with what comes next.
                path.push(match word.atoms.get(at + 1) {
                    Some(Atom::Text(text)) if !text.starts_with('.') => STAR,
                    Some(_) if starts => FOUND,
                    _ => STAR,
                });
            }
            Atom::Here | Atom::Hidden(_) | Atom::OneOf(_) => path.push(ANY),
        }
    }
    // A program's own `**` takes in any directories.
    let deep = format!("{FOUND}{FOUND}");
    match path.contains(&deep) {
        true => path.replace(&deep, &ANY.to_string()),
        false => path,
    }
}

/// The path with up to so many directories in place of `**`, which the shell can be told to take so.
fn with_directories(path: String) -> Vec<String> {
    let deep = |part: &str| part.len() > STAR.len_utf8() && part.chars().all(|c| c == STAR);
    if !path.split('/').any(deep) {
        return vec![path];
    }
    let as_deep_as = |depth: usize| {
        let parts: Vec<_> = path.split('/').collect();
        let last = parts.len() - 1;
        let directories = |(at, part): (usize, &&str)| match deep(part) {
            true => vec![STAR.to_string(); depth.max(usize::from(at == last))],
            false => vec![(*part).to_owned()],
        };
        let spelled: Vec<String> = parts.iter().enumerate().flat_map(directories).collect();
        spelled.join("/")
    };
    (0..=DEEPEST).map(as_deep_as).collect()
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

/// Whether a pattern begins at the top of the workspace and names a directory on its way.
fn begins_at_top(line: &str) -> bool {
    let line = line.trim_end().trim_end_matches('/');
    line.contains('/') && !line.trim_start_matches('/').starts_with("**")
}

/// Patterns for the directories that a line names on the way to what it hides: `a` and `a/b` of `a/b/**`.
/// What it hides wherever it lies needs no such name.
fn directories_above(line: &str) -> Vec<Vec<Token>> {
    let line = line.trim_end().trim_end_matches('/');
    let parts: Vec<&str> = line.trim_start_matches('/').split('/').collect();
    (1..parts.len())
        .map(|count| parts[..count].join("/"))
        .filter(|directory| directory != "**")
        .map(|directory| {
            let mut tokens = pattern(&format!("/{directory}"));
            // Not what lies below it, which has its own.
            tokens.truncate(tokens.len() - 1);
            tokens
        })
        .collect()
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
    // What lies above a descriptor is not what its path says.
    let raw: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let descriptors = |at: usize| match raw[at] {
        "proc" => true,
        "dev" => matches!(raw.get(at + 1), Some(&("fd" | "stdin" | "stdout" | "stderr"))),
        _ => false,
    };
    if raw.contains(&"..") && (0..raw.len()).any(descriptors) {
        return true;
    }
    let mut parts = plain.split('/');
    match (parts.next(), parts.next()) {
        (Some("proc"), Some(_)) => {
            parts.any(|part| matches!(part, "cwd" | "root" | "fd") || part.contains([ONE, STAR, ANY, FOUND]))
        }
        (Some("dev"), Some("fd")) => parts.nth(1).is_some(),
        (Some("dev"), Some("stdin" | "stdout" | "stderr")) => parts.next().is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_hidden_as_a_whole_only_where_nothing_in_it_can_be_seen() {
        for (lines, directory, expected) in [
            (&["secrets/**"][..], "secrets", true),
            (&["secrets/**"], "secrets/deep", true),
            (&["secrets/*"], "secrets", true),
            (&["/secrets/*"], "Secrets", true),
            (&["**/secrets/**"], "a/b/secrets", true),
            (&["a/*/*"], "a/b", true),
            (&["a/*/*"], "a", false),
            (&["secrets/**"], "other", false),
            (&["secrets/**"], "other/secrets", false),
            (&["secrets/**"], "", false),
            (&["secrets/*.pem"], "secrets", false),
            (&["secrets/[!a]*"], "secrets", false),
            (&["secrets/*/"], "secrets", false),
            (&["secrets/key"], "secrets", false),
            (&["*"], "a", true),
            (&["secrets/*", "!secrets/keep"], "secrets", false),
            (&["secrets/*", "!keep"], "secrets", false),
            (&["secrets/*", "!*.pub"], "secrets", false),
            (&["secrets/**", "!secrets/deep/keep"], "secrets", false),
            (&["!secrets/keep", "secrets/*"], "secrets", true),
            (&["secrets/*", "!other/keep"], "secrets", true),
            (&["secrets/*", "!secrets/*", "secrets/**"], "secrets", true),
        ] {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            let hidden = Hidden::new(&lines).expect("patterns");
            assert_eq!(hidden.hides_all_in(directory), expected, "{lines:?} {directory}");
        }
    }
}
