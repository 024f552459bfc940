//! Words of a command as far as the text tells them: known text, wildcards and unknown parts.
//!
//! A word is an abstract value: a set of possible expansions. Its methods err on the side of "could be", so that
//! what the word becomes at run time is always among the possibilities that they report.

use std::borrow::Cow;
use std::sync::Arc;

use crate::span::Span;

/// What is known about a part of a word that the text does not spell out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hidden {
    /// A whole number, perhaps signed.
    Number,
    /// Characters that hold no blank and do not start with a dash, or nothing: a hash, an absolute path, a date.
    Name,
    /// As a name, but it may start with a dash: a branch or a tag.
    Ref,
    /// Letters, digits and marks without a blank, a slash, a dot or a dash at the beginning, or nothing: the day and
    /// the time.
    Letters,
    /// The hash of a commit.
    Commit,
    /// As a name, but with blanks in it perhaps: the path of a directory.
    Path,
    /// Names of files and directories that a program found below a directory, with slashes between them.
    Below,
    /// The same, where the names are known to be [plain](crate::FileNames::Plain).
    PlainBelow,
    /// Any text.
    Anything,
}

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Atom {
    /// Exactly this text.
    Text(String),
    /// One character of a file name: `?` or `[…]`.
    One,
    /// Any run of characters of a file name: `*`.
    Star,
    /// Any run of characters of a name that a program found by itself, a leading dot included.
    Found,
    /// A part that the text does not spell out.
    Hidden(Hidden),
    /// The working directory of the shell as an absolute path, whose text is not known. At the beginning of a path it
    /// means what `.` does.
    Here,
    /// One of several alternatives.
    OneOf(Vec<Vec<Atom>>),
}

/// How many words a written word can expand to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fields {
    /// Exactly one.
    One,
    /// The file names that match, or the word itself if none does.
    Glob,
    /// None, one or many.
    Any,
    /// None, one or many, also where nothing in it holds a blank: `"$@"`, `${a[@]}`. It is one of the elements, or
    /// what stands beside them.
    Spread,
}

impl Fields {
    /// Returns whether it can be another number of words than one, and not only for names of files.
    pub fn is_any(self) -> bool {
        matches!(self, Self::Any | Self::Spread)
    }
}

/// A three-valued answer about a word before it is expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It holds for every expansion.
    Yes,
    /// It holds for none.
    No,
    /// It holds for some, or that cannot be told.
    Maybe,
}

/// A word of a command. Clones share their pieces and cost no allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its pieces after quote removal.
    pub atoms: Arc<[Atom]>,
    /// How many words it can expand to.
    pub fields: Fields,
    /// Its place in the text.
    pub span: Span,
    /// The word as it is written, for messages.
    pub written: Arc<str>,
}

impl Word {
    /// Creates a word that is exactly this text.
    pub fn text(text: impl Into<String>, span: Span) -> Self {
        let text = text.into();
        Self {
            written: text.as_str().into(),
            atoms: [Atom::Text(text)].into(),
            fields: Fields::One,
            span,
        }
    }

    /// Creates a word that can be any text.
    pub fn unknown(fields: Fields, written: impl Into<Arc<str>>, span: Span) -> Self {
        Self {
            atoms: [Atom::Hidden(Hidden::Anything)].into(),
            fields,
            span,
            written: written.into(),
        }
    }

    /// Returns the text of the word if it expands to exactly one known word.
    pub fn known(&self) -> Option<Cow<'_, str>> {
        (self.fields == Fields::One).then(|| known(&self.atoms)).flatten()
    }

    /// Returns the text with which every expansion of the word starts.
    pub fn prefix(&self) -> &str {
        match self.atoms.first() {
            Some(Atom::Text(text)) => text,
            _ => "",
        }
    }

    /// Tells whether the word starts with a dash, which makes it an option.
    pub fn is_dashed(&self) -> Known {
        match self.fields {
            Fields::Any | Fields::Spread
                if self
                    .atoms
                    .iter()
                    .all(|atom| matches!(atom, Atom::Hidden(Hidden::Name | Hidden::Commit))) =>
            {
                Known::No
            }
            Fields::Any => match starts_with_dash(&self.atoms) {
                Known::No if !may_split(&self.atoms) => Known::No,
                _ => Known::Maybe,
            },
            Fields::Spread => {
                // Any of its pieces may begin a word.
                let mut pieces = self.atoms.chunks(1);
                match pieces.all(|piece| starts_with_dash(piece) == Known::No) && !may_split(&self.atoms) {
                    true => Known::No,
                    false => Known::Maybe,
                }
            }
            Fields::One | Fields::Glob => starts_with_dash(&self.atoms),
        }
    }

    /// Tells whether it may begin with this character.
    pub(crate) fn may_begin_with(&self, character: char) -> bool {
        fn begins(atoms: &[Atom], character: char) -> bool {
            match atoms {
                [] | [Atom::Here, ..] => false,
                [Atom::Text(text), rest @ ..] if text.is_empty() => begins(rest, character),
                [Atom::Text(text), ..] => text.starts_with(character),
                [Atom::OneOf(choices), rest @ ..] => choices
                    .iter()
                    .any(|choice| begins(choice, character) || choice.is_empty() && begins(rest, character)),
                [Atom::One | Atom::Star | Atom::Found | Atom::Hidden(_), ..] => true,
            }
        }
        begins(&self.atoms, character)
    }

    /// Tells whether its unknown parts can bring blanks, which make several words of it.
    pub(crate) fn may_be_several(&self) -> bool {
        self.fields == Fields::Spread || self.fields == Fields::Any && may_split(&self.atoms)
    }

    /// Tells whether it may become no word at all.
    pub(crate) fn may_vanish(&self, nullglob: bool) -> bool {
        fn may_be_empty(atoms: &[Atom]) -> bool {
            atoms.iter().all(|atom| match atom {
                Atom::Text(text) => text.is_empty(),
                Atom::OneOf(choices) => choices.is_empty() || choices.iter().any(|choice| may_be_empty(choice)),
                Atom::Hidden(_) => true,
                Atom::One | Atom::Star | Atom::Found | Atom::Here => false,
            })
        }
        let always = matches!(&*self.written, "$?" | "$#" | "$$") || self.written.starts_with("$((");
        match self.fields {
            // A number or a name, where there is one.
            Fields::One => {
                let bare = self.written.starts_with(['$', '`']);
                !always
                    && bare
                    && !self.atoms.is_empty()
                    && self.atoms.iter().all(|atom| matches!(atom, Atom::Hidden(_)))
            }
            Fields::Glob => nullglob,
            Fields::Any | Fields::Spread => {
                !always && (nullglob && self.holds_wildcards() || may_be_empty(&self.atoms))
            }
        }
    }

    /// Returns the word without its first `bytes` bytes, which must be known text.
    pub fn after(&self, bytes: usize) -> Self {
        let atoms: Arc<[Atom]> = match &*self.atoms {
            [Atom::Text(text), rest @ ..] => {
                let left = text.get(bytes..).unwrap_or_default();
                let first = (!left.is_empty()).then(|| Atom::Text(left.to_owned()));
                first.into_iter().chain(rest.iter().cloned()).collect()
            }
            _ => self.atoms.clone(),
        };
        Self {
            written: show(&atoms).into(),
            atoms,
            ..*self
        }
    }

    /// Returns the alternatives of the word, or `None` if there are more than `limit`.
    pub fn alternatives(&self, limit: usize) -> Option<Vec<Self>> {
        if let [Atom::Text(text)] = &*self.atoms
            && !text.is_empty()
        {
            return Some(vec![self.clone()]);
        }
        let mut all: Vec<Vec<Atom>> = vec![Vec::new()];
        for atom in &*self.atoms {
            match atom {
                Atom::OneOf(choices) => {
                    if all.len() * choices.len() > limit {
                        return None;
                    }
                    all = all
                        .iter()
                        .flat_map(|head| choices.iter().map(|choice| [head.as_slice(), choice].concat()))
                        .collect();
                }
                other => all.iter_mut().for_each(|head| head.push(other.clone())),
            }
        }
        Some(
            all.into_iter()
                .map(|atoms| Self {
                    atoms: joined(atoms).into(),
                    ..self.clone()
                })
                .collect(),
        )
    }

    /// The text of the word, with [`NUMBER`] in place of each number that is not known.
    pub(crate) fn with_numbers(&self) -> Option<String> {
        let text = spelled_out(&self.atoms, Some(NUMBER)).filter(|_| self.fields == Fields::One)?;
        let given = |atom: &Atom| matches!(atom, Atom::Text(text) if text.contains(NUMBER));
        (!self.atoms.iter().any(given)).then_some(text)
    }

    /// Tells whether a part of it is a wildcard of the shell.
    pub fn holds_wildcards(&self) -> bool {
        fn held(atoms: &[Atom]) -> bool {
            atoms.iter().any(|atom| match atom {
                Atom::One | Atom::Star => true,
                Atom::OneOf(choices) => choices.iter().any(|choice| held(choice)),
                Atom::Text(_) | Atom::Found | Atom::Hidden(_) | Atom::Here => false,
            })
        }
        held(&self.atoms)
    }

    /// Tells whether it starts with a wildcard, which matches names in the working directory.
    pub fn is_of_names(&self) -> bool {
        !self.fields.is_any() && matches!(self.atoms.first(), Some(Atom::Star | Atom::One))
    }

    /// Tells whether its only unknown parts are wildcards, none of which is followed by `..`.
    pub fn is_of_wildcards(&self) -> bool {
        fn plain(atoms: &[Atom], behind: &mut bool) -> bool {
            atoms.iter().all(|atom| match atom {
                Atom::Text(text) => !(*behind && text.split('/').any(|part| part == "..")),
                Atom::One | Atom::Star | Atom::Found => {
                    *behind = true;
                    true
                }
                Atom::OneOf(choices) => choices.iter().all(|choice| plain(choice, behind)),
                Atom::Here => !*behind,
                Atom::Hidden(_) => false,
            })
        }
        let mut behind = false;
        !self.fields.is_any() && plain(&self.atoms, &mut behind) && behind
    }

    /// Tells whether a part of it is the directory in which the command stands.
    pub(crate) fn holds_here(&self) -> bool {
        fn held(atoms: &[Atom]) -> bool {
            atoms.iter().any(|atom| match atom {
                Atom::Here => true,
                Atom::OneOf(choices) => choices.iter().any(|choice| held(choice)),
                Atom::Text(_) | Atom::One | Atom::Star | Atom::Found | Atom::Hidden(_) => false,
            })
        }
        held(&self.atoms)
    }

    /// Tells whether it is a path that a program finds below named directories, so that the files there determine
    /// which paths it can be.
    pub fn is_found_below(&self) -> bool {
        let named = |atoms: &[Atom]| {
            atoms.iter().all(|atom| {
                matches!(atom, Atom::Text(text) if !text.split('/').any(|part| part == "..")) || *atom == Atom::Here
            })
        };
        let [roots, Atom::OneOf(ends_with), name @ ..] = &*self.atoms else {
            return false;
        };
        let ends = |choice: &Vec<Atom>| match name {
            [] => matches!(
                choice.as_slice(),
                [] | [Atom::Text(_), Atom::Hidden(Hidden::Below | Hidden::PlainBelow)]
            ),
            _ => matches!(
                choice.as_slice(),
                [Atom::Text(_)] | [Atom::Text(_), Atom::Hidden(Hidden::Below), Atom::Text(_)]
            ),
        };
        let plain = |atom: &Atom| match atom {
            Atom::Text(text) => !text.split('/').any(|part| part == ".."),
            Atom::Found => true,
            _ => false,
        };
        let roots = match roots {
            Atom::OneOf(roots) => roots.iter().all(|root| named(root)),
            root => named(std::slice::from_ref(root)),
        };
        let whole = self.fields == Fields::One || self.fields == Fields::Any && !may_split(&self.atoms);
        whole && roots && ends_with.iter().all(ends) && name.iter().all(plain)
    }

    /// The name of a program without its directories, where the word tells it.
    pub(crate) fn program_name(&self) -> Option<String> {
        if self.fields != Fields::One {
            return None;
        }
        let last = match &*self.atoms {
            [.., Atom::Text(text)] => text,
            _ => return None,
        };
        match last.rsplit_once('/') {
            // The program of a process: of the shell, for all that is known.
            Some((_, "exe")) if self.prefix().starts_with("/proc/") => Some("bash".to_owned()),
            Some((_, name)) => Some(name.to_owned()),
            None => (self.atoms.len() == 1).then(|| last.clone()),
        }
    }

    /// Returns the word for messages and records: its text if known, otherwise as it is written.
    pub fn shown(&self) -> String {
        // A substitution is shown as one: `$(pwd)`, not `.`.
        let substituted = self.holds_here() && (self.written.contains("$(") || self.written.contains('`'));
        self.known()
            .filter(|_| !substituted)
            .map_or_else(|| self.written.to_string(), Cow::into_owned)
    }
}

/// The text of these pieces, if all is known.
pub(crate) fn known(atoms: &[Atom]) -> Option<Cow<'_, str>> {
    match atoms {
        [] => Some(Cow::Borrowed("")),
        [Atom::Text(text)] => Some(Cow::Borrowed(text)),
        _ => spelled_out(atoms, None).map(Cow::Owned),
    }
}

/// Stands for a number that is not known, or for nothing: a character for private use.
pub(crate) const NUMBER: char = '\u{f8ff}';

/// Whether a number in a program text is escaped: where it is nothing, what stands behind it is.
pub(crate) fn escapes_a_number(program: &str) -> bool {
    program.contains(&format!("\\{NUMBER}"))
}

/// The text of these pieces, with this in place of each number that is not known.
fn spelled_out(atoms: &[Atom], number: Option<char>) -> Option<String> {
    let mut all = String::new();
    for (at, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Text(text) => all.push_str(text),
            Atom::Here if begins_a_path(atoms, at) => all.push('.'),
            Atom::Hidden(Hidden::Number) => all.push(number?),
            _ => return None,
        }
    }
    Some(all)
}

/// What separates paths from each other, and from what stands around them, in options and in texts of programs.
const AROUND_PATHS: [char; 11] = ['=', ':', ',', ';', '@', ' ', '\n', '"', '\'', '(', ')'];

/// Whether the piece at this place begins a path, and is the whole of its first part: not so in `$PWD.old`.
pub fn begins_a_path(atoms: &[Atom], at: usize) -> bool {
    let begins = match at.checked_sub(1).map(|before| &atoms[before]) {
        None => true,
        Some(Atom::Text(text)) => text.ends_with(AROUND_PATHS),
        Some(_) => false,
    };
    let ends = match atoms.get(at + 1) {
        None => true,
        Some(Atom::Text(text)) => text.starts_with('/') || text.starts_with(AROUND_PATHS),
        Some(Atom::OneOf(choices)) => choices.iter().all(|choice| match choice.first() {
            None => at + 2 == atoms.len(),
            Some(Atom::Text(text)) => text.starts_with('/'),
            Some(_) => false,
        }),
        Some(_) => false,
    };
    begins && ends
}

/// The same pieces with neighbouring texts made one.
pub(crate) fn joined(atoms: Vec<Atom>) -> Vec<Atom> {
    let mut all: Vec<Atom> = Vec::with_capacity(atoms.len());
    for atom in atoms {
        match (all.last_mut(), atom) {
            (_, Atom::Text(text)) if text.is_empty() => {}
            (Some(Atom::Text(head)), Atom::Text(tail)) => head.push_str(&tail),
            (_, atom) => all.push(atom),
        }
    }
    all
}

fn starts_with_dash(atoms: &[Atom]) -> Known {
    let begins = beginning(atoms);
    match (begins.dashed, begins.otherwise || begins.nothing) {
        (false, _) => Known::No,
        (true, false) => Known::Yes,
        (true, true) => Known::Maybe,
    }
}

/// How a text can begin.
#[derive(Debug, Clone, Copy, Default)]
struct Beginning {
    dashed: bool,
    otherwise: bool,
    nothing: bool,
}

impl Beginning {
    fn or(self, other: Self) -> Self {
        Self {
            dashed: self.dashed || other.dashed,
            otherwise: self.otherwise || other.otherwise,
            nothing: self.nothing || other.nothing,
        }
    }
}

fn beginning(atoms: &[Atom]) -> Beginning {
    let begins = |dashed, otherwise, nothing| Beginning {
        dashed,
        otherwise,
        nothing,
    };
    let mut all = begins(false, false, true);
    for atom in atoms {
        let next = match atom {
            Atom::Text(text) => begins(
                text.starts_with('-'),
                !text.starts_with('-') && !text.is_empty(),
                text.is_empty(),
            ),
            Atom::Here => begins(false, true, false),
            // Where what prints it fails, or a variable has no value, it is nothing.
            Atom::Hidden(Hidden::Name | Hidden::Commit | Hidden::Path | Hidden::Letters) => begins(false, true, true),
            Atom::One
            | Atom::Star
            | Atom::Found
            | Atom::Hidden(Hidden::Number | Hidden::Ref | Hidden::Below | Hidden::PlainBelow | Hidden::Anything) => {
                begins(true, true, true)
            }
            Atom::OneOf(choices) => choices
                .iter()
                .map(|choice| beginning(choice))
                .reduce(Beginning::or)
                .unwrap_or(begins(true, true, true)),
        };
        all = Beginning { nothing: false, ..all }.or(next);
        if !all.nothing {
            break;
        }
    }
    all
}

/// Whether an unquoted expansion in these pieces could bring a blank, and so start a new word.
fn may_split(atoms: &[Atom]) -> bool {
    atoms.iter().any(|atom| match atom {
        Atom::Text(_)
        | Atom::Hidden(
            Hidden::Number | Hidden::Name | Hidden::Ref | Hidden::Letters | Hidden::Commit | Hidden::PlainBelow,
        ) => false,
        // The reader makes it unknown text where the path may hold blanks.
        Atom::Here => false,
        // The name of a file may hold blanks.
        Atom::One | Atom::Star | Atom::Found | Atom::Hidden(Hidden::Path | Hidden::Below | Hidden::Anything) => true,
        Atom::OneOf(choices) => choices.iter().any(|choice| {
            may_split(choice)
                || choice
                    .iter()
                    .any(|piece| matches!(piece, Atom::Text(text) if text.contains(char::is_whitespace)))
        }),
    })
}

/// Whether a value is, or may be, names of files that wildcards matched.
pub(crate) fn holds_names(value: &[Atom]) -> bool {
    value.iter().any(|atom| match atom {
        Atom::One | Atom::Star | Atom::Found => true,
        Atom::OneOf(values) => values.iter().any(|value| holds_names(value)),
        Atom::Text(_) | Atom::Hidden(_) | Atom::Here => false,
    })
}

/// What separates words where the shell splits a value, unless `IFS` says otherwise.
pub(crate) const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// The words of a value that the shell splits.
pub(crate) fn between_blanks(text: &str) -> impl Iterator<Item = &str> {
    text.split(BLANKS).filter(|word| !word.is_empty())
}

/// The pieces as a person would write them.
pub(crate) fn show(atoms: &[Atom]) -> String {
    atoms
        .iter()
        .map(|atom| match atom {
            Atom::Text(text) => text.clone(),
            Atom::One => "?".to_owned(),
            Atom::Star | Atom::Found => "*".to_owned(),
            Atom::Hidden(_) => "…".to_owned(),
            Atom::Here => "$PWD".to_owned(),
            Atom::OneOf(choices) => {
                let shown: Vec<String> = choices.iter().map(|choice| show(choice)).collect();
                format!("{{{}}}", shown.join(","))
            }
        })
        .collect()
}

/// A pattern that a program matches against names by itself: unlike the shell's, its wildcards also
/// match a leading dot.
pub fn found(pattern: &str) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut literal = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' | '?' => {
                atoms.push(Atom::Text(std::mem::take(&mut literal)));
                atoms.push(Atom::Found);
            }
            // One character, which may be the dot that a name starts with.
            '[' if let Some(end) = characters.as_str().find(']') => {
                let starts = literal.ends_with('/') || literal.is_empty() && atoms.is_empty();
                atoms.push(Atom::Text(std::mem::take(&mut literal)));
                atoms.push(if starts { Atom::Found } else { Atom::One });
                characters = characters.as_str()[end + 1..].chars();
            }
            '\\' => literal.extend(characters.next()),
            other => literal.push(other),
        }
    }
    atoms.push(Atom::Text(literal));
    joined(atoms)
}

/// Words put together with blanks between them, as `eval` does.
pub(crate) fn spaced(words: &[Word], span: Span) -> Word {
    let mut atoms = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            atoms.push(Atom::Text(" ".to_owned()));
        }
        if word.fields == Fields::One {
            atoms.extend(word.atoms.iter().cloned());
        } else {
            atoms.push(Atom::Hidden(Hidden::Anything));
        }
    }
    Word {
        atoms: joined(atoms).into(),
        fields: Fields::One,
        span,
        written: "".into(),
    }
}
