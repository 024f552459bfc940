//! File names that a text takes from where it runs: lists of them that programs print, and those that wildcards match.

use std::collections::BTreeSet;

use super::run::{Fed, FoundNames, Run};
use super::{Input, Reader};
use crate::program;
use crate::reading::{Action, Invocation, Kind, NamesIn, Pick, PickKind, Splits, Via, Walk};
use crate::span::Span;
use crate::syntax::tree::{Command, CompoundList, Item, Redirect, RedirectKind, SimpleCommand, Target};
use crate::variables::HOME;
use crate::word::{Atom, Hidden, Word, joined};

impl Reader<'_> {
    /// What the next stage of a pipeline reads.
    pub(super) fn output_of(&self, command: &Command, first: usize, effects: usize) -> Input {
        let Command::Simple(simple) = command else {
            return Input::Unknown;
        };
        // What goes wrong may be thrown away.
        let is_redirected = |item: &Item| match item {
            Item::Redirect(redirect) => !throws_errors_away(redirect),
            _ => false,
        };
        let is_fed = |item: &Item| match item {
            Item::Redirect(redirect) => {
                matches!(redirect.kind, RedirectKind::HereDocument | RedirectKind::HereString)
                    || throws_errors_away(redirect)
            }
            _ => true,
        };
        let mut items = simple.prefix.iter().chain(&simple.suffix);
        let fed_alone = items.all(is_fed);
        let redirected = simple.suffix.iter().any(is_redirected);
        // Substitutions come before the command whose words they are in.
        match self.reading.commands.get(first..) {
            Some([only]) if fed_alone && !self.may_be_defined(only) && program::passes_on(only) => {
                self.fed_with.clone()
            }
            Some([only]) if !redirected && !self.may_be_defined(only) => {
                match super::printed::printed_text(only, self.plain_sh) {
                    Some(text) => Input::Text(text),
                    None => self
                        .names_from(first, effects)
                        .or_else(|| self.names_through(only, self.fed_with.clone()))
                        .map_or(Input::Unknown, Input::Names),
                }
            }
            _ => Input::Unknown,
        }
    }

    /// Whether what the commands since `first` print holds a text that stands in the text: one that they were fed or were
    /// given since so many of them, or that a function prints.
    pub(super) fn may_print_texts(&self, first: usize, effects: usize, texts: usize) -> bool {
        let mut commands = (first..).zip(self.reading.commands.get(first..).unwrap_or_default());
        self.texts_given > texts
            || matches!(self.input, Input::Text(_) | Input::Altered)
            || matches!(self.fed_with, Input::Text(_) | Input::Altered)
            || commands.any(|(index, command)| {
                command.kind == Kind::Function || self.may_print_its_words(index, command, effects)
            })
    }

    /// Whether a command may print one of its words (`date '+…'`, `awk 'BEGIN {…}'`): one that is neither a file that it
    /// reads nor as plain as the name of an option or of a part of the program.
    fn may_print_its_words(&self, index: usize, command: &Invocation, effects: usize) -> bool {
        let is_plain = |word: &Word| {
            let mut bytes = word.atoms.iter().flat_map(|atom| match atom {
                Atom::Text(text) => text.as_bytes(),
                _ => b" ",
            });
            bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_./=,:@+".contains(byte))
        };
        let is_file = |word: &Word| {
            let mut effects = self.reading.effects[effects..].iter();
            effects.any(|effect| match &effect.action {
                Action::Reads(read) | Action::RunsFile(read) => effect.by == Some(index) && read.span == word.span,
                _ => false,
            })
        };
        let words = command.argv.iter().skip(1);
        program::keeps_lines(command).is_none() && words.into_iter().any(|word| !is_plain(word) && !is_file(word))
    }

    /// The list of names that a plain `find` makes, a search for the names of files, or a listing; its effects are those
    /// since this many.
    fn names_from(&self, index: usize, effects: usize) -> Option<FoundNames> {
        let command = &self.reading.commands[index];
        let program = command.program().filter(|_| !command.more)?;
        let words = command.argv.iter().map(Word::known).collect::<Option<Vec<_>>>();
        let walks = self.reading.effects[effects..]
            .iter()
            .filter_map(|effect| match &effect.action {
                Action::Walks(walk) if effect.by == Some(index) && !walk.if_dashed => Some(Walk {
                    names: false,
                    ..walk.clone()
                }),
                _ => None,
            });
        let mut walks: Vec<_> = walks.collect();
        let is_rooted = |walk: &Walk| {
            let root = walk.root.as_ref().and_then(Word::known);
            root.is_some_and(|root| !root.starts_with('-'))
        };
        let rooted = walks.iter().all(is_rooted);
        if program == "find" {
            let acts = [
                "-exec", "-ok", "-printf", "-fprint", "-ls", "-fls", "-delete", "-files0",
            ];
            let words = words?;
            if walks.is_empty() || words.iter().any(|word| acts.iter().any(|act| word.starts_with(act))) {
                return None;
            }
            return Some(FoundNames {
                // It begins what it finds in the present directory with `./`.
                prefixed: rooted || walks.iter().all(|walk| walk.root.is_none()),
                if_plain: false,
                by_nul: words.iter().any(|word| word == "-print0"),
                walks,
            });
        }
        let found = program::prints_names_alone(command)?;
        if walks.is_empty() {
            walks = self.listed(&found.operands)?;
            return Some(FoundNames {
                walks,
                by_nul: false,
                prefixed: false,
                // No wildcard makes an option then, either.
                if_plain: true,
            });
        }
        if !found.doubtful.is_empty() {
            return None;
        }
        let searches = program != "git";
        let nul = match searches {
            true => ["-Z", "--null", "-0"].as_slice(),
            false => &["-z", "-Z", "--null"],
        };
        Some(FoundNames {
            prefixed: searches && rooted,
            if_plain: searches && !rooted,
            by_nul: words?.iter().any(|word| nul.contains(&word.as_ref())),
            walks,
        })
    }

    /// Where the names are that a listing prints of these operands: beside each of them, and, since it does not say in
    /// which directory it found them, here.
    fn listed(&self, operands: &[Word]) -> Option<Vec<Walk>> {
        let within = |root: Option<Word>| Walk {
            root,
            undotted: true,
            depth: Some(1),
            here: self.certainly_here(),
            ..Walk::default()
        };
        let mut walks = vec![within(None)];
        for operand in operands {
            let parts = |atom: &Atom| match atom {
                Atom::Text(text) => Some(text.clone()),
                Atom::Star | Atom::One => Some("*".to_owned()),
                _ => None,
            };
            let path = operand.atoms.iter().map(parts).collect::<Option<String>>()?;
            let (directory, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", &path));
            if name.starts_with('.') || directory.contains(['*', '[']) || directory.starts_with('/') {
                return None;
            }
            if !directory.is_empty() {
                walks.push(within(Some(Word::text(directory, operand.span))));
            }
        }
        let dotted = self.reading.dotglob && !operands.is_empty();
        (!dotted).then_some(walks)
    }

    /// The list of names that a command is fed, where it prints some of its lines as they are.
    fn names_through(&self, command: &Invocation, input: Input) -> Option<FoundNames> {
        let Input::Names(names) = input else { return None };
        (program::keeps_lines(command)? == names.by_nul).then_some(names)
    }

    /// Whether this command is fed names that were found, and split in this way; they are recorded as what is read.
    pub(crate) fn takes_names(&mut self, by: usize, span: Span, splits: impl Fn(bool) -> Splits) -> Option<Fed> {
        let Input::Names(names) = self.present_input() else {
            return None;
        };
        let splits = splits(names.by_nul);
        let plain = self.are_plain(names_of(&names.walks));
        if names.if_plain && !plain {
            return None;
        }
        let no_options = plain || names.prefixed && splits == Splits::Nowhere;
        self.reads_names(names.walks, splits, by, span);
        Some(Fed { no_options })
    }

    /// Records that what was found is read.
    fn reads_names(&mut self, walks: Vec<Walk>, splits: Splits, by: usize, span: Span) {
        for walk in walks {
            let walk = Walk {
                splits,
                gives_directories: true,
                ..walk
            };
            let object = self.written(span);
            self.effect(Action::Walks(walk), object, span, Some(by), Via::Operand);
        }
    }

    /// What each name can be that this command is fed, as [`Self::as_words`].
    pub(crate) fn plain_names(&mut self, by: usize, span: Span) -> Option<Vec<Atom>> {
        let Input::Names(names) = self.present_input() else {
            return None;
        };
        self.as_words(names, by, span)
    }

    /// What each of these names can be, if they are plain and each is on a line of its own; they are recorded as what is
    /// read.
    fn as_words(&mut self, names: FoundNames, by: usize, span: Span) -> Option<Vec<Atom>> {
        if names.by_nul || !self.are_plain(names_of(&names.walks)) {
            return None;
        }
        let value = below(&names.walks, Hidden::PlainBelow)?;
        self.reads_names(names.walks, Splits::Nowhere, by, span);
        Some(value)
    }

    /// What `read` takes from a list of names that `find` made.
    pub(super) fn line_of_names(&mut self, run: &Run) -> Option<Vec<Atom>> {
        let Input::Names(names) = self.present_input() else {
            return None;
        };
        let words: Vec<_> = run.args.iter().map(Word::known).collect::<Option<_>>()?;
        // Other options take a part of a name.
        let options = words.iter().filter(|word| word.starts_with('-'));
        if !options.clone().all(|word| matches!(word.as_ref(), "-r" | "-d" | "-rd")) {
            return None;
        }
        // A search prints what it was told to read as well as what it found below.
        let up_to_nul = words
            .windows(2)
            .any(|pair| pair[0].ends_with('d') && pair[1].is_empty());
        let elsewhere = options.clone().any(|word| word.ends_with('d')) && !up_to_nul;
        if elsewhere {
            return None;
        }
        // Otherwise it takes backslashes off, and what IFS holds at both ends.
        let raw = options.into_iter().any(|word| word.contains('r')) && self.keeps_ends;
        let plain = self.are_plain(names_of(&names.walks));
        if !(raw && !names.if_plain || plain) || up_to_nul != names.by_nul {
            return None;
        }
        let value = below(&names.walks, if plain { Hidden::PlainBelow } else { Hidden::Below })?;
        let splits = match names.by_nul {
            true => Splits::Nowhere,
            false => Splits::Lines,
        };
        self.reads_names(names.walks, splits, run.index, run.span);
        Some(value)
    }

    /// What a substitution becomes whose commands, those since `first`, are so many stages of one pipeline which prints
    /// names that were found: if they are plain, each is a word.
    pub(super) fn substituted_names(&mut self, first: usize, effects: usize, stages: usize) -> Option<Vec<Atom>> {
        let names = self.names_of_pipeline(first, effects, stages)?;
        let (last, span) = (self.reading.commands.len() - 1, self.reading.commands[first].span);
        self.as_words(names, last, span)
    }

    /// The names that the commands since `first` print, so many stages of one pipeline, if they print nothing else.
    pub(super) fn names_of_pipeline(&self, first: usize, effects: usize, stages: usize) -> Option<FoundNames> {
        let commands = self.reading.commands.get(first..)?;
        if commands.len() != stages || commands.iter().any(|command| self.may_be_defined(command)) {
            return None;
        }
        commands[1..]
            .iter()
            .try_fold(self.names_from(first, effects)?, |names, command| {
                self.names_through(command, Input::Names(names))
            })
    }

    /// Whether a value that the shell splits is made of names that wildcards matched, all of which are known to be plain.
    pub(super) fn is_of_plain_names(&mut self, value: &[Atom]) -> bool {
        let mut places = Vec::new();
        let known = matched_in(value, &mut places);
        self.are_plain(known.then_some(places))
    }

    /// Whether the names in these places are known to be plain; records that this would tell more.
    fn are_plain(&mut self, places: Option<Vec<NamesIn>>) -> bool {
        let Some(places) = places else { return false };
        let splits = self.variables.splits_otherwise || self.found.splits_otherwise;
        self.reading.names_used.extend(places);
        self.reading.names_are_plain = self.names_are_plain;
        self.names_are_plain && !splits
    }
}

/// Whether a redirection is `2>/dev/null`.
fn throws_errors_away(redirect: &Redirect) -> bool {
    let is_null = |target: &Target| matches!(target, Target::Word(word) if word.value == "/dev/null");
    redirect.descriptor == Some(2)
        && redirect.variable.is_none()
        && redirect.kind == RedirectKind::Write
        && is_null(&redirect.target)
}

/// How many stages a list has that is one pipeline of simple commands without redirections, outside of a trap.
pub(super) fn stages(list: &CompoundList) -> Option<usize> {
    let stages = list.simple_stages()?;
    let plain = |stage: &&SimpleCommand| {
        let mut items = stage.prefix.iter().chain(&stage.suffix);
        items.all(|item| match item {
            Item::Word(_) => true,
            Item::Redirect(redirect) => throws_errors_away(redirect),
            _ => false,
        })
    };
    stages.iter().all(plain).then_some(stages.len())
}

/// Where these walks find names, if the text tells.
fn names_of(walks: &[Walk]) -> Option<Vec<NamesIn>> {
    let place = |walk: &Walk| {
        let directory = match &walk.root {
            Some(root) => root.known()?.into_owned(),
            None => String::new(),
        };
        is_place(&directory).then(|| NamesIn {
            without: walk
                .except
                .iter()
                .filter_map(|pick| left_out(pick, &directory))
                .collect(),
            tracked: walk.tracked,
            deep: true,
            directory,
        })
    };
    walks.iter().map(place).collect()
}

/// The directory whose contents a walk from this one leaves out by this pattern, as [`NamesIn::without`] has it.
fn left_out(pick: &Pick, root: &str) -> Option<String> {
    let plain = |name: &str| !name.is_empty() && !name.contains(['*', '?', '[', '\\']);
    if !pick.path {
        let is_tree = matches!(pick.kind, PickKind::Trees | PickKind::All);
        return (is_tree && plain(&pick.pattern)).then(|| pick.pattern.clone());
    }
    let directory = match pick.kind {
        PickKind::Trees | PickKind::All => pick.pattern.strip_suffix("/*").unwrap_or(&pick.pattern),
        PickKind::Entries | PickKind::Files => pick.pattern.strip_suffix("/*")?,
    };
    if let Some(name) = directory.strip_prefix("*/") {
        return (plain(name) && !name.contains('/')).then(|| name.to_owned());
    }
    let root = if root.is_empty() {
        "."
    } else {
        root.trim_end_matches('/')
    };
    let rest = directory.strip_prefix(root)?.strip_prefix('/')?;
    plain(rest).then(|| format!("./{rest}"))
}

/// Collects where a value that holds wildcards has its names from; false if that is not known.
fn matched_in(value: &[Atom], places: &mut Vec<NamesIn>) -> bool {
    let (before, rest) = match value {
        [Atom::OneOf(values)] => return values.iter().all(|value| matched_in(value, places)),
        [Atom::Text(text), rest @ ..] => (text.as_str(), rest),
        rest => ("", rest),
    };
    if rest.is_empty() {
        return true;
    }
    let directory = before.rfind('/').map_or("", |at| &before[..=at]).to_owned();
    let known = |atom: &Atom| matches!(atom, Atom::Text(_) | Atom::One | Atom::Star);
    if !rest.iter().all(known) || !is_place(&directory) {
        return false;
    }
    let deep = rest
        .iter()
        .any(|atom| matches!(atom, Atom::Text(text) if text.contains('/')));
    places.push(NamesIn {
        directory,
        deep,
        without: BTreeSet::new(),
        tracked: false,
    });
    true
}

/// Whether the text of a path alone tells where it leads.
fn is_place(directory: &str) -> bool {
    !directory.starts_with('-') && !directory.starts_with(HOME)
}

/// What a name can be that was found by these walks.
fn below(walks: &[Walk], class: Hidden) -> Option<Vec<Atom>> {
    let root = |walk: &Walk| match &walk.root {
        Some(word) => Some(vec![Atom::Text(word.known()?.into_owned())]),
        None => Some(vec![Atom::Text(".".to_owned())]),
    };
    let mut roots = walks.iter().map(root).collect::<Option<Vec<_>>>()?;
    let root = match roots.len() {
        1 => roots.remove(0),
        _ => vec![Atom::OneOf(roots)],
    };
    let below = vec![Atom::Text("/".to_owned()), Atom::Hidden(class)];
    Some(joined([root, vec![Atom::OneOf(vec![Vec::new(), below])]].concat()))
}
