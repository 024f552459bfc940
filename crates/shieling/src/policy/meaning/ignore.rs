//! Ignore list: hidden paths must not be named, and what might name them is asked about.
//!
//! Recursive commands on a directory above hidden files pass: where the environment hides them they
//! find nothing, and where it does not, the environment's own check asks.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use shieling_shell::{
    Action, Atom, Base, Doubt, Effect, Fields, Known, MORE, Reading, Span, Via, Word, found, program,
};

use super::paths::{Hidden, Meets, Starts};
use super::{Finding, found_by_another};
use crate::policy::facts::Facts;
use crate::policy::verdict::Decision::{Ask, Deny};

/// The directories that relative paths of a text may start from, besides the workspace itself.
pub(in crate::policy) fn bases(reading: &Reading, facts: &Facts) -> Vec<Base> {
    let mut bases = Vec::new();
    // Directories of the text are relative to where the command starts, and to the way by which it came there.
    for start in std::iter::once(&facts.start).chain(&facts.way) {
        bases.extend(reading.bases.iter().map(|base| match base {
            Base::At(directory) if !start.is_empty() && !directory.starts_with('/') => {
                Base::At(format!("{start}/{directory}"))
            }
            base => base.clone(),
        }));
        if !start.is_empty() {
            bases.push(Base::At(start.clone()));
        }
    }
    chained(&mut bases);
    bases
}

pub(in crate::policy) fn judge(reading: &Reading, hidden: &Hidden, facts: &Facts) -> Vec<Finding> {
    let check = Check {
        hidden,
        starts: Starts::new(bases(reading, facts)),
        of_names: reading
            .commands
            .iter()
            .map(|command| command.argv.iter().any(Word::is_of_names))
            .collect(),
        harmless: RefCell::default(),
        dotglob: reading.dotglob,
        facts,
        there: facts.hidden_there.as_deref().filter(|_| !brings_files(reading)),
        // What is known of names is known of the directory where the text starts.
        undashed: facts.dashed_names == Some(false) && reading.bases.is_empty(),
    };
    let mut findings = Vec::new();
    for effect in &reading.effects {
        let (object, span) = (effect.object.clone(), effect.span);
        match &effect.action {
            // What it is fed are names that were found, and they are looked up.
            Action::Reads(word) | Action::Names(word) | Action::Writes(word)
                if check.there.is_some() && is_fed(word, effect, reading) => {}
            Action::Reads(word) | Action::Names(word) if check.reads_files_alone(reading, effect) => {
                findings.extend(check.path(word, &object, span, true));
            }
            Action::Reads(word) | Action::Names(word) | Action::Writes(word) => {
                findings.extend(check.path(word, &object, span, false))
            }
            // A program of the project, where there is nothing that it could find.
            Action::RunsFile(word) if check.nothing_there() => findings.extend(check.path(word, &object, span, false)),
            Action::RunsFile(word) => {
                findings.extend(check.path(word, &object, span, false));
                let because = format!("it runs a program that could read hidden files{}", check.such_as());
                findings.push(Finding::new(Ask, object, span, because));
            }
            Action::Revision(word) => findings.extend(check.revision(word, &object, span)),
            Action::Code(word) => findings.extend(check.code(word, &object, span)),
            Action::Renames(word) => {
                let mut found: Vec<Finding> = check.rename(word, &object, span).into_iter().collect();
                if effect.via == Via::Option {
                    // Perhaps: where it would be read from is not known.
                    found.extend(check.path(word, &object, span, false));
                    found.iter_mut().for_each(|finding| finding.decision = Ask);
                }
                findings.extend(found);
            }
            Action::Doubt(Doubt::Program | Doubt::Loading, _) if check.nothing_there() => {}
            // What is loaded is the project's own, by programs that run it anyway.
            Action::Doubt(Doubt::Loading, _) if reading.commands.iter().all(program::is_of_the_project) => {}
            Action::Mentions(word) => findings.extend(check.mention(word, &object, span)),
            Action::Doubt(
                Doubt::Launch
                | Doubt::Program
                | Doubt::Setting
                | Doubt::Variable
                | Doubt::Loading,
                because,
            ) => {
                let because = format!("{because}, so it could read hidden files{}", check.such_as());
                findings.push(Finding::new(Ask, object, span, because));
            }
            Action::MaybeOption(..)
            | Action::Walks(_)
            | Action::InParts(_)
            | Action::Changes(_)
            | Action::Network(_)
            // A build or a test does what the project says, for which it needs no path in the text.
            | Action::Doubt(Doubt::Argument | Doubt::Delegate | Doubt::Environment | Doubt::Project, _) => {}
        }
    }
    for command in &reading.commands {
        if program::prints_history(command, &|path| check.is_file(path), &|word| {
            check.chooses_nothing_hidden(word)
        }) {
            findings.push(
                Finding::new(
                    Ask,
                    command.shown(),
                    command.span,
                    format!(
                        "git shows the contents of whole commits, and hidden files may be in them{}",
                        check.such_as()
                    ),
                )
                .instead("name the paths behind `--`, or use `--stat` (with a hash as `HASH^{commit}`)"),
            );
        }
        // A program that nobody described: look at every word as if it were a path.
        if command.program().is_some_and(|name| !program::is_described(&name)) {
            findings.extend(
                command
                    .argv
                    .iter()
                    .skip(1)
                    .filter(|word| word.known().is_some())
                    .filter_map(|word| check.path(word, &word.shown(), word.span, false)),
            );
        }
    }
    findings
}

/// A hidden path as an example, for messages.
fn such_as(path: Option<&String>) -> String {
    path.map_or_else(String::new, |path| format!(", such as `{path}`"))
}

/// Directories reached by several changes of directory, one after the other.
fn chained(bases: &mut Vec<Base>) {
    let single = bases.clone();
    for first in &single {
        for second in &single {
            if let (Base::At(first), Base::At(second)) = (first, second)
                && !second.starts_with('/')
                && bases.len() < 40
            {
                let both = Base::At(format!("{first}/{second}"));
                if !bases.contains(&both) {
                    bases.push(both);
                }
            }
        }
    }
}

/// Whether a text can bring files under names that it does not spell out: then what is there before it
/// runs says nothing of what it meets.
fn brings_files(reading: &Reading) -> bool {
    reading.effects.iter().any(|effect| {
        let named = || {
            effect.via == Via::Redirection
                || effect
                    .by
                    .and_then(|by| reading.commands.get(by))
                    .is_some_and(program::names_what_it_changes)
        };
        match &effect.action {
            Action::Writes(_) | Action::Changes(_) => !named(),
            Action::Network(_) => true,
            Action::Reads(_)
            | Action::Names(_)
            | Action::Renames(_)
            | Action::Walks(_)
            | Action::InParts(_)
            | Action::Revision(_)
            | Action::RunsFile(_)
            | Action::Code(_)
            | Action::Mentions(_)
            | Action::MaybeOption(..)
            | Action::Doubt(..) => false,
        }
    })
}

/// Whether a word stands for what a command is fed.
fn is_fed(word: &Word, effect: &Effect, reading: &Reading) -> bool {
    &*word.written == MORE && effect.by.is_some_and(|by| reading.commands[by].fed)
}

/// What decides whether a word names something hidden: its pieces, how many words it becomes, and whether it is a
/// directory's content that counts.
type MadeOf = (Arc<[Atom]>, Fields, bool);

struct Check<'a> {
    hidden: &'a Hidden,
    starts: Starts,
    /// Which commands have a word that starts with a wildcard.
    of_names: Vec<bool>,
    /// Words that name nothing hidden, by what they are made of.
    harmless: RefCell<HashSet<MadeOf>>,
    dotglob: bool,
    facts: &'a Facts,
    /// The hidden paths that can be met, if that is known.
    there: Option<&'a [String]>,
    /// Whether no name that a wildcard matches is an option.
    undashed: bool,
}

impl Check<'_> {
    /// Whether what an effect reads of a directory that it names is nothing: the list of a loop, and programs for
    /// files alone.
    fn reads_files_alone(&self, reading: &Reading, effect: &Effect) -> bool {
        let Some(by) = effect.by else {
            return matches!(effect.action, Action::Names(_));
        };
        reading.commands[by].files && (self.undashed || !self.of_names[by])
    }

    /// Finds a hidden path that a word names. With `files`, of a directory that a wildcard matches only what is in it
    /// counts.
    fn path(&self, word: &Word, object: &str, span: Span, files: bool) -> Option<Finding> {
        let made_of = (word.atoms.clone(), word.fields, files);
        if self.harmless.borrow().contains(&made_of) {
            return None;
        }
        let finding = self.path_anew(word, object, span, files);
        if finding.is_none() {
            self.harmless.borrow_mut().insert(made_of);
        }
        finding
    }

    fn path_anew(&self, word: &Word, object: &str, span: Span, files: bool) -> Option<Finding> {
        let Self {
            hidden, starts, facts, ..
        } = self;
        let dotglob = self.dotglob;
        // Wildcards that stand for any name meet what is there, and are not meant for what could be.
        let any_name = word.is_of_wildcards() && !hidden.is_meant(word, starts, dotglob, facts);
        let files = files && any_name;
        match hidden.named(word, starts, dotglob, facts, files) {
            Known::Yes => Some(Finding::new(Deny, object, span, "this path is hidden")),
            Known::Maybe if starts.is_exhausted() => {
                let because = format!("the text names more paths than are looked at{}", self.such_as());
                Some(Finding::new(Ask, object, span, because).instead("do it in several commands"))
            }
            Known::Maybe => {
                let meets = match files {
                    true => Meets::Below { dotglob },
                    false => Meets::At { dotglob },
                };
                // What a program finds is looked up as it is found.
                if self.there.is_some() && word.is_found_below() {
                    return None;
                }
                let among = |there| hidden.met(there, word, starts, meets, facts);
                let met = match self.there {
                    // Any other wildcard or variable is not held to what is there: it was written to name anything.
                    Some(there) if any_name => Some(among(there)?),
                    Some(_) | None => facts.hidden_there.as_deref().and_then(among),
                };
                let because = format!("it could name a hidden path{}", such_as(met));
                let instead = match word.fields {
                    Fields::Any if found_by_another(word) => {
                        "use `find … -exec … {} +` with tests that leave out what is hidden"
                    }
                    Fields::Spread => "write its words out",
                    Fields::Any => "put it in double quotes, which keep it one word, or name the file itself",
                    Fields::One | Fields::Glob => "name the file itself",
                };
                Some(Finding::new(Ask, object, span, because).instead(instead))
            }
            Known::No => None,
        }
    }

    /// Finds a hidden path that a word is, or that stands in it behind what programs put before names of files:
    /// `KEY=PATH`, `@PATH`, `KIND:PATH`, a `file:` URL, with the braces and brackets of curl.
    fn mention(&self, word: &Word, object: &str, span: Span) -> Option<Finding> {
        let text = word.known()?;
        let finding = paths_in(&text).into_iter().find_map(|path| {
            let word = Word {
                atoms: found(&path).into(),
                ..word.clone()
            };
            let finding = self.path(&word, object, span, false)?;
            // Wildcards that a program fills in meet what is there.
            if word.is_of_wildcards()
                && let Some(there) = &self.facts.hidden_there
                && !self.hidden.is_meant(&word, &self.starts, true, self.facts)
            {
                let meets = Meets::At { dotglob: true };
                self.hidden.met(there, &word, &self.starts, meets, self.facts)?;
            }
            // A plain word may name anything: only a file that is there makes a path of it.
            let plain = path
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
            match &self.facts.hidden_there {
                Some(there) if plain && !there.iter().any(|hidden| hidden.eq_ignore_ascii_case(&path)) => None,
                None if plain => Some(Finding {
                    decision: Ask,
                    ..finding
                }),
                Some(_) | None => Some(finding),
            }
        })?;
        Some(finding)
    }

    /// Whether this is the path of a file that is there, from where the text starts.
    fn is_file(&self, path: &str) -> bool {
        self.starts.is_workspace() && self.facts.files_named.contains(path)
    }

    /// Whether a pathspec of git chooses nothing in any commit that is hidden: a file that is there, or one with the
    /// ending of a language of programs, in which the wildcard stands for what is before that.
    fn chooses_nothing_hidden(&self, word: &Word) -> bool {
        let Some(text) = word.known() else { return false };
        let name = text.rsplit('/').next().unwrap_or_default();
        let of_programs = name
            .rsplit_once('.')
            .is_some_and(|(start, ending)| !start.is_empty() && program::is_of_programs(ending));
        let known = !text.starts_with(':') && (self.is_file(&text) || of_programs);
        let by_name = Word {
            atoms: found(name).into(),
            ..word.clone()
        };
        let hidden = |word: &Word| self.hidden.named(word, &self.starts, true, self.facts, false) != Known::No;
        // A wildcard of git's matches slashes too; what it is meant for shows in the name.
        known && !hidden(&by_name) && (text.contains(['*', '?', '[', '\\']) || !hidden(word))
    }

    /// Another name for a directory with what is hidden in it.
    fn rename(&self, word: &Word, object: &str, span: Span) -> Option<Finding> {
        let known = self.hidden.named_above(word, &self.starts, self.facts);
        if known == Known::No {
            return None;
        }
        let there = self.facts.hidden_there.as_deref();
        let met = there.and_then(|there| self.hidden.met(there, word, &self.starts, Meets::Above, self.facts));
        if met.is_none() && word.is_found_below() && self.there.is_some() {
            return None;
        }
        let decision = if known == Known::Yes { Deny } else { Ask };
        let because = format!(
            "it gives a directory another name, by which what is hidden in it would be open{}",
            such_as(met)
        );
        Some(Finding::new(decision, object, span, because))
    }

    fn nothing_there(&self) -> bool {
        self.facts.hidden_there.as_ref().is_some_and(Vec::is_empty)
    }

    fn such_as(&self) -> String {
        such_as(self.facts.hidden_there.as_ref().and_then(|there| there.first()))
    }

    /// `HEAD:path`, `:path`, `:0:path`, `:(glob)path`, or a plain path.
    fn revision(&self, word: &Word, object: &str, span: Span) -> Option<Finding> {
        // git matches wildcards in it by itself.
        let whole_known = word.known().is_some();
        let globbed = word
            .known()
            .filter(|text| text.contains(['*', '?', '[']))
            .map(|text| Word {
                atoms: found(&text).into(),
                ..word.clone()
            });
        let word = globbed.as_ref().unwrap_or(word);
        let at = colon(word.prefix());
        let whole = if at.is_some() {
            None
        } else {
            self.path(word, object, span, false)
        };
        if whole.as_ref().is_some_and(|finding| finding.decision == Deny) {
            return whole;
        }
        let part = match at {
            Some(at) => {
                let rest = word.after(at + 1);
                // The stage of the index, or the magic of a pathspec.
                let skip = match rest.prefix().as_bytes() {
                    [b'0'..=b'3', b':', ..] => 2,
                    [b'(', ..] => rest.prefix().find(')').map_or(0, |end| end + 1),
                    [b'/' | b'!' | b'^', ..] if at == 0 => 1,
                    _ => 0,
                };
                Some(rest.after(skip))
            }
            None if whole_known => None,
            // What is not known of it may hold a colon; hashes and the like hold none.
            None if word.atoms.iter().all(|atom| {
                matches!(
                    atom,
                    Atom::Text(_)
                        | Atom::Hidden(
                            shieling_shell::Hidden::Name
                                | shieling_shell::Hidden::Number
                                | shieling_shell::Hidden::Letters
                                | shieling_shell::Hidden::Commit
                        )
                )
            }) =>
            {
                return self.texts_after_colons(word, object, span);
            }
            None => {
                return whole.or_else(|| {
                    Some(Finding::new(
                        Ask,
                        object,
                        span,
                        "it could name a hidden path of a commit",
                    ))
                });
            }
        };
        let inner = part.and_then(|part| self.path(&part, object, span, false));
        match (whole, inner) {
            (_, Some(inner)) => Some(inner),
            (whole, None) => whole.filter(|_| at.is_none() && whole_known),
        }
    }

    /// `$hash:path`: the revision is not known, the path is.
    fn texts_after_colons(&self, word: &Word, object: &str, span: Span) -> Option<Finding> {
        let text = word.atoms.iter().find_map(|atom| match atom {
            Atom::Text(text) => colon(text).map(|at| text[at + 1..].to_owned()),
            Atom::One | Atom::Star | Atom::Found | Atom::Hidden(_) | Atom::Here | Atom::OneOf(_) => None,
        })?;
        self.path(
            &Word {
                atoms: [Atom::Text(text)].into(),
                fields: Fields::One,
                ..word.clone()
            },
            object,
            span,
            false,
        )
    }

    /// Code in another language: any quoted text in it may be a path.
    fn code(&self, word: &Word, object: &str, span: Span) -> Option<Finding> {
        let text = word.known()?;
        let parts: HashSet<&str> = text
            .split(|c: char| c.is_whitespace() || "\"'`()[]{},;=<>|&".contains(c))
            .filter(|part| !part.is_empty())
            .collect();
        let named = parts.into_iter().any(|part| {
            let word = Word::text(part, span);
            self.hidden.named(&word, &self.starts, self.dotglob, self.facts, false) == Known::Yes
        });
        match named {
            true => Some(Finding::new(Deny, object, span, "the code names a hidden path")),
            false if self.starts.is_exhausted() => Some(Finding::new(
                Ask,
                object,
                span,
                "the code holds more words than are looked for hidden paths",
            )),
            false => None,
        }
    }
}

/// The paths that a word for a program can hold, with `*` for what the program itself fills in.
fn paths_in(text: &str) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    if let Some(rest) = lower.starts_with("file:").then(|| &text["file:".len()..]) {
        let host = rest
            .strip_prefix("//")
            .map(|rest| rest.find('/').map_or("", |at| &rest[at..]));
        // Not a host, but the beginning of a path, to many programs.
        let loose = rest.trim_start_matches("//");
        return vec![globbed(&unescaped(host.unwrap_or(rest))), globbed(&unescaped(loose))];
    }
    // The path of another host is no path here.
    if text.contains("://") && !lower.contains("file") {
        return Vec::new();
    }
    let mut paths = vec![text.to_owned()];
    paths.extend(braced(text));
    for part in text.split([',', ';']) {
        paths.push(part.to_owned());
        for (at, mark) in part.match_indices(['=', '@', ':']) {
            let rest = part[at + mark.len()..].trim_start_matches(['=', '@', '<']);
            // What stands behind the port of a host is a path there.
            let port = mark == ":" && rest.starts_with(|first: char| first.is_ascii_digit());
            if !port {
                paths.push(rest.strip_prefix("//").unwrap_or(rest).to_owned());
            }
        }
    }
    paths.dedup();
    paths.retain(|path| !path.is_empty());
    paths
}

/// What a text is with one of the names in its braces, and with a range of letters as a wildcard, as tools take them.
/// Data in braces or brackets, such as JSON, is none.
fn braced(text: &str) -> Vec<String> {
    let name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/,*~!^".contains(&byte);
    let mut found = Vec::new();
    let mut ahead = vec![text.to_owned()];
    while let Some(text) = ahead.pop() {
        let Some(at) = text.find(['{', '[']) else {
            found.push(text);
            continue;
        };
        let (start, rest) = text.split_at(at);
        let close = if rest.starts_with('{') { '}' } else { ']' };
        let Some(end) = rest.find(close).filter(|end| rest[1..*end].bytes().all(name)) else {
            continue;
        };
        let (inner, behind) = (&rest[1..end], &rest[end + 1..]);
        if close == ']' {
            // Behind a part of a name it is a set of letters.
            if start.ends_with(|last: char| last.is_alphanumeric() || "._-/*~".contains(last)) {
                ahead.push(format!("{start}*{behind}"));
            }
        } else if found.len() + ahead.len() < 32 {
            ahead.extend(inner.split(',').map(|name| format!("{start}{name}{behind}")));
        } else {
            found.push(format!("{start}*{behind}"));
        }
    }
    found.retain(|path| path != text);
    found
}

/// A text in which braces and brackets are wildcards.
fn globbed(text: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for character in text.chars() {
        match character {
            '{' | '[' => {
                depth += 1;
                plain.push('*');
            }
            '}' | ']' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            other => plain.push(other),
        }
    }
    plain
}

/// A text of a URL with its `%XX` read.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let coded = text
            .get(at + 1..at + 3)
            .filter(|_| *byte == b'%')
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        plain.push(coded.unwrap_or(*byte));
        at += if coded.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Where the path of a revision starts: the first colon outside of `@{…}`.
fn colon(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, character)| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    })
}
