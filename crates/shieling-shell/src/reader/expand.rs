//! Words as they are written to words as they can become.

use std::borrow::Cow;
use std::rc::Rc;

use super::Reader;
use super::arithmetic::{MATCHED, is_group};
use super::source::{Place, Source};
use crate::program::Printed;
use crate::reading::{Action, Doubt, Via};
use crate::screen::Unreadable;
use crate::span::Span;
use crate::syntax::tree::{self, Expansion, Operation, Parameter, Piece, PieceKind, Tilde};
use crate::syntax::{braces, heredoc_pieces, pieces};
use crate::variables::{HOME, ambient, as_found};
use crate::word::{Atom, BLANKS, Fields, Hidden, Known, Word, between_blanks, holds_names, joined, known};

/// How an expansion makes several words without a blank in any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spread {
    /// They are the elements of what it names.
    Elements,
    /// They come from a word within it, or from what an indirection means.
    Hidden,
}

/// How many words the braces of one word may make before it counts as unknown.
const MAX_BRACES: usize = 64;

impl Reader<'_> {
    /// The words that a written word becomes.
    pub(super) fn words(&mut self, word: &tree::Word, source: Source<'_>) -> Result<Vec<Word>, Unreadable> {
        let mut words = Vec::new();
        self.add_words(word, source, &mut words)?;
        Ok(words)
    }

    /// Adds the words that a written word becomes.
    pub(super) fn add_words(
        &mut self,
        word: &tree::Word,
        source: Source<'_>,
        words: &mut Vec<Word>,
    ) -> Result<(), Unreadable> {
        self.node()?;
        let span = source.span(word.range);
        if word.value.bytes().all(plain) {
            words.push(Word::text(word.value.as_str(), span));
            return Ok(());
        }
        words.extend(self.braced_words(word, source.place.inner(word.range.start), span)?);
        Ok(())
    }

    /// The words that a written word becomes, braces first.
    fn braced_words(&mut self, word: &tree::Word, place: Place, span: Span) -> Result<Vec<Word>, Unreadable> {
        let text = word.value.as_str();
        if !text.contains('{') || !text.contains('}') {
            return self.tree_word(word, place, span);
        }
        // bash takes a continued line for nothing before it looks for braces.
        let spelled = (!text.contains("\\\n")).then(|| braces(text, MAX_BRACES)).flatten();
        match spelled {
            Some(texts) if texts.len() == 1 && texts[0] == text => self.tree_word(word, place, span),
            Some(texts) => {
                let harmless = |byte: u8| plain(byte) || matches!(byte, b'{' | b'}' | b',');
                let is_plain = texts.iter().all(|part| !part.is_empty()) && text.bytes().all(harmless);
                if self.plain_sh && texts.len() > 1 && !is_plain {
                    let because = "`sh` may be another shell than bash, which takes these braces as they are; write \
                                   the words out, or start `bash` instead";
                    self.doubt(Doubt::Launch, text, because, span, None);
                }
                let mut all = Vec::new();
                // Nothing between two commas is no word, unlike an empty pair of quotes.
                for part in texts.iter().filter(|part| !part.is_empty()) {
                    all.extend(self.one_word(part, Place::Within(span), span)?);
                }
                Ok(all)
            }
            None => {
                // Also what cannot be spelled out may substitute something.
                self.tree_word(word, place, span)?;
                Ok(vec![Word::unknown(Fields::Any, text, span)])
            }
        }
    }

    /// A word of the tree without its braces, which may still split.
    pub(super) fn tree_word(&mut self, word: &tree::Word, place: Place, span: Span) -> Result<Vec<Word>, Unreadable> {
        let text = word.value.as_str();
        if text.bytes().all(plain) {
            return Ok(vec![Word::text(text, span)]);
        }
        self.reads(text)?;
        let parsed = word.pieces.get_or_init(|| pieces(text).ok().map(Rc::from)).clone();
        self.expand(text, &parsed.ok_or_else(|| unparsable(span))?, place, span)
    }

    /// A word without braces, which may still split.
    fn one_word(&mut self, text: &str, place: Place, span: Span) -> Result<Vec<Word>, Unreadable> {
        if text.bytes().all(plain) {
            return Ok(vec![Word::text(text, span)]);
        }
        self.reads(text)?;
        let parsed = pieces(text).map_err(|_| unparsable(span))?;
        self.expand(text, &parsed, place, span)
    }

    /// The words that the pieces of a word become.
    fn expand(&mut self, text: &str, pieces: &[Piece], place: Place, span: Span) -> Result<Vec<Word>, Unreadable> {
        if let [only] = pieces
            && let Some(split) = self.split(only, span).or_else(|| self.elements(only, span))
        {
            return Ok(split);
        }
        let mut atoms = Vec::new();
        let mut fields = Fields::One;
        // Whether a word within an expansion, or what an indirection means, is several words.
        let mut hidden = false;
        let outer = std::mem::replace(&mut self.split_names, false);
        // Whether a value makes `@(…)` with what stands before it.
        let mut extended = false;
        // Where a bracket is open whose end another piece may bring.
        let (mut open, mut closed) = (None, false);
        for piece in pieces {
            let before = atoms.len();
            self.piece(piece, place, false, &mut atoms)?;
            if let PieceKind::Text(_) | PieceKind::Parameter(_) = piece.kind {
                closed |= open.is_some() && holds(&atoms[before..], ']');
                open = open.or_else(|| holds(&atoms[before..], '[').then_some(before));
            }
            let added = &atoms[before..];
            extended |=
                matches!(piece.kind, PieceKind::Parameter(_)) && holds(added, '(') && may_hold_extended_pattern(&atoms);
            let spread = match &piece.kind {
                PieceKind::DoubleQuoted(inner) | PieceKind::Translated(inner) => self.spread(inner, true),
                _ => self.spread(std::slice::from_ref(piece), false),
            };
            hidden |= spread == Some(Spread::Hidden);
            let added = &atoms[before..];
            // Names that are known to be plain stay what they are.
            let of_names = self.names_are_plain && !self.split_names && is_of_names(added);
            fields = match fields_of(&piece.kind, added, spread.is_some(), self.variables.splits_otherwise) {
                Fields::Any if of_names && fields != Fields::Any => Fields::Glob,
                Fields::Spread => Fields::Spread,
                _ if fields == Fields::Spread => fields,
                Fields::Any => Fields::Any,
                Fields::Glob if fields == Fields::One => Fields::Glob,
                Fields::Glob | Fields::One => fields,
            };
        }
        if let Some(open) = open.filter(|_| closed) {
            let before = atoms.get(open).and_then(|atom| match atom {
                Atom::Text(text) => text.find('[').map(|at| text[..at].to_owned()),
                _ => None,
            });
            atoms.truncate(open);
            atoms.extend(before.map(Atom::Text));
            atoms.push(Atom::Hidden(Hidden::Anything));
            fields = Fields::Any;
        }
        if std::mem::replace(&mut self.split_names, outer) || extended {
            // Any part of a name between two blanks is a word.
            return Ok(vec![Word::unknown(Fields::Any, text, span)]);
        }
        if hidden {
            return Ok(vec![Word::unknown(Fields::Spread, text, span)]);
        }
        let atoms = joined(atoms);
        if self.plain_sh && may_match_dots(&atoms) {
            // To another shell than bash it also matches `..`, and what follows can lead anywhere.
            let anywhere = vec![Atom::Text("./".to_owned()), Atom::Hidden(Hidden::Anything)];
            let anywhere = Word {
                atoms: anywhere.into(),
                fields: Fields::One,
                span,
                written: text.into(),
            };
            self.effect(Action::Names(anywhere), text, span, None, Via::Operand);
        }
        Ok(vec![Word {
            atoms: atoms.into(),
            fields,
            span,
            written: text.into(),
        }])
    }

    /// How one of these can make several words, or none, without a blank in any of them.
    fn spread(&mut self, pieces: &[Piece], quoted: bool) -> Option<Spread> {
        let spreads = pieces.iter().filter_map(|piece| match &piece.kind {
            PieceKind::Parameter(expansion) => self.spreads(expansion, quoted),
            _ => None,
        });
        spreads.max()
    }

    fn spreads(&mut self, expansion: &Expansion, quoted: bool) -> Option<Spread> {
        let Expansion {
            parameter,
            indirect,
            operation,
        } = expansion;
        let within = |word: &str| {
            let parts = ["$@", "${@", "[@]", "@}", "${!", "$'", "$\""];
            parts.iter().any(|part| word.contains(part))
        };
        match (parameter, operation) {
            // It is decoded first, and may be `@`.
            (Parameter::Element { subscript, .. }, _) if ["$'", "$\""].iter().any(|open| subscript.contains(open)) => {
                Some(Spread::Hidden)
            }
            (
                _,
                Operation::Default(word)
                | Operation::Assign(word)
                | Operation::Alternative(word)
                | Operation::Error(word),
            ) if within(word) => Some(Spread::Hidden),
            (_, Operation::Names | Operation::Keys) => Some(Spread::Elements),
            (Parameter::Named(name), _) if *indirect => {
                let is_name = |value: &Vec<Atom>| known(value).is_some_and(|text| crate::syntax::is_name(&text));
                let values = self.lookup(name);
                let are_names = values.is_some_and(|values| values.iter().all(is_name));
                (!are_names && quoted).then_some(Spread::Hidden)
            }
            (_, _) if *indirect => quoted.then_some(Spread::Hidden),
            (Parameter::Special('@') | Parameter::All { separate: true, .. }, _) => Some(Spread::Elements),
            (Parameter::Special('*') | Parameter::All { separate: false, .. }, _) if !quoted => Some(Spread::Elements),
            _ => None,
        }
    }

    /// An unquoted variable with one known value, split at blanks as the shell does.
    fn split(&mut self, piece: &Piece, span: Span) -> Option<Vec<Word>> {
        let PieceKind::Parameter(expansion) = &piece.kind else {
            return None;
        };
        let Expansion {
            parameter: Parameter::Named(name),
            indirect: false,
            operation: Operation::Value,
        } = &**expansion
        else {
            return None;
        };
        let values = self.values_here(name)?;
        if self.variables.splits_otherwise {
            return None;
        }
        let extended = |value: &Vec<Atom>| known(value).is_some_and(|text| holds_extended_pattern(&text));
        if values.iter().any(extended) {
            return Some(vec![Word::unknown(Fields::Any, format!("${name}"), span)]);
        }
        let [value] = values.as_slice() else {
            // Any of the words of any of its values, as many as there are.
            let texts = values.iter().map(|value| known(value)).collect::<Option<Vec<_>>>()?;
            let fields = texts.iter().flat_map(|text| between_blanks(text));
            let fields: Vec<_> = fields.map(|field| joined(wildcards(field))).collect();
            return texts.iter().any(|text| text.contains(BLANKS)).then(|| {
                vec![Word {
                    atoms: [Atom::OneOf(fields)].into(),
                    fields: Fields::Spread,
                    span,
                    written: format!("${name}").into(),
                }]
            });
        };
        let text = known(value)?.into_owned();
        Some(
            between_blanks(&text)
                .map(|field| {
                    let atoms = joined(wildcards(field));
                    let fields = if known(&atoms).is_some() {
                        Fields::One
                    } else {
                        Fields::Glob
                    };
                    Word {
                        atoms: atoms.into(),
                        fields,
                        span,
                        written: field.into(),
                    }
                })
                .collect(),
        )
    }

    /// The elements of an array that is known, in order: `"${name[@]}"`.
    fn elements(&mut self, piece: &Piece, span: Span) -> Option<Vec<Word>> {
        let PieceKind::DoubleQuoted(inner) = &piece.kind else {
            return None;
        };
        let [
            Piece {
                kind: PieceKind::Parameter(expansion),
                ..
            },
        ] = inner.as_slice()
        else {
            return None;
        };
        let Expansion {
            parameter: Parameter::All { name, separate: true },
            indirect: false,
            operation: Operation::Value,
        } = &**expansion
        else {
            return None;
        };
        if crate::variables::may_be_set_by_the_shell(name) {
            return None;
        }
        self.looked_up = true;
        let elements = self
            .variables
            .list(name)
            .filter(|_| self.defined.assigned.contains(name))?;
        self.expanded += elements.len();
        let word = |atoms: &Vec<Atom>| Word {
            written: crate::word::show(atoms).into(),
            atoms: atoms.as_slice().into(),
            fields: Fields::One,
            span,
        };
        Some(elements.iter().map(word).collect())
    }

    /// The values of a variable, if the text assigns it.
    pub(super) fn lookup(&mut self, name: &str) -> Option<Vec<Vec<Atom>>> {
        self.looked_up = true;
        if self.variables.can_be_anything() {
            return Some(vec![vec![Atom::Hidden(Hidden::Anything)]]);
        }
        let values = self.variables.values(name)?;
        self.expanded += values
            .iter()
            .map(|value| crate::variables::weight(value))
            .sum::<usize>();
        if self.expanded > super::MAX_EXPANDED {
            return Some(vec![vec![Atom::Hidden(Hidden::Anything)]]);
        }
        Some(values.to_vec())
    }

    /// The values that a variable can have here, if the text assigns it.
    fn values_here(&mut self, name: &str) -> Option<Vec<Vec<Atom>>> {
        let mut values = self.lookup(name)?;
        // `cd` gives these two their values.
        let by_shell = crate::variables::set_by_the_shell(name) || matches!(name, "PWD" | "OLDPWD");
        if name != MATCHED && (by_shell || !self.defined.assigned.contains(name)) {
            // What it was before can be meant.
            values.extend(as_found(name).filter(|before| !values.contains(before)));
        }
        Some(values)
    }

    fn variable(&mut self, name: &str) -> Vec<Atom> {
        match self.values_here(name) {
            None => ambient(name),
            Some(values) => match <[Vec<Atom>; 1]>::try_from(values) {
                Ok([value]) => value,
                Err(values) => vec![Atom::OneOf(values)],
            },
        }
    }

    /// `TMPDIR`, where something else stands for it if it is not set.
    fn temporary_directory(&mut self) -> Vec<Atom> {
        match self.lookup("TMPDIR") {
            None => vec![Atom::Text("/tmp".to_owned())],
            Some(_) => self.variable("TMPDIR"),
        }
    }

    /// One piece of a word, and what it substitutes.
    pub(super) fn piece(
        &mut self,
        piece: &Piece,
        place: Place,
        quoted: bool,
        atoms: &mut Vec<Atom>,
    ) -> Result<(), Unreadable> {
        self.node()?;
        let span = place.span(piece.start, piece.end);
        match &piece.kind {
            PieceKind::Text(text) if quoted => atoms.push(Atom::Text(text.clone())),
            PieceKind::Text(text) => atoms.extend(wildcards(text)),
            PieceKind::SingleQuoted(text) => atoms.push(Atom::Text(text.clone())),
            PieceKind::AnsiC(text) => match ansi_c(text) {
                Some(text) => atoms.push(Atom::Text(text)),
                None => atoms.push(Atom::Hidden(Hidden::Anything)),
            },
            PieceKind::DoubleQuoted(inner) => {
                // An empty pair of quotes is a word of its own, with nothing in it.
                atoms.push(Atom::Text(String::new()));
                inner.iter().try_for_each(|part| self.piece(part, place, true, atoms))?;
            }
            PieceKind::Translated(inner) => {
                let mut ignored = Vec::new();
                inner
                    .iter()
                    .try_for_each(|part| self.piece(part, place, true, &mut ignored))?;
                // What it becomes depends on a catalogue of translations.
                atoms.push(Atom::Hidden(Hidden::Anything));
            }
            PieceKind::Tilde(tilde) => match tilde {
                Tilde::Home => atoms.push(Atom::Text(HOME.to_owned())),
                Tilde::Here => atoms.extend(self.variable("PWD")),
                Tilde::Before => atoms.extend(self.variable("OLDPWD")),
                Tilde::Other => atoms.push(Atom::Hidden(Hidden::Name)),
            },
            PieceKind::Parameter(expansion) => self.parameter(expansion, quoted, span, atoms)?,
            PieceKind::Substitution(text) => {
                let printed = self.substitution(text, place.inner(piece.start + 2))?;
                self.add_printed(printed, quoted, span, atoms)?;
            }
            PieceKind::Backquoted(text) => {
                let inside = if text.contains('\\') {
                    Place::Within(span)
                } else {
                    place.inner(piece.start + 1)
                };
                let printed = self.substitution(&unescape_backquoted(text, quoted), inside)?;
                self.add_printed(printed, quoted, span, atoms)?;
            }
            PieceKind::Escaped('\n') => {}
            PieceKind::Escaped(character) => atoms.push(Atom::Text(character.to_string())),
            PieceKind::Arithmetic(text) => {
                self.arithmetic(text, Place::Within(span))?;
                self.looked_up |= !quoted;
                atoms.push(Atom::Hidden(if !quoted && self.variables.splits_numbers() {
                    Hidden::Anything
                } else {
                    Hidden::Number
                }));
            }
            PieceKind::Extended { text, dot } => {
                let inside = pieces(text).map_err(|_| unparsable(span))?;
                let place = place.inner(piece.start + 2);
                let mut alternatives = Vec::new();
                for piece in &inside {
                    self.piece(piece, place, false, &mut alternatives)?;
                }
                self.reading.dotglob |= dot;
                atoms.push(
                    if holds(&alternatives, '/') || alternatives.iter().any(|atom| matches!(atom, Atom::Hidden(_))) {
                        Atom::Hidden(Hidden::Anything)
                    } else {
                        Atom::Star
                    },
                );
            }
        }
        Ok(())
    }

    /// What a substitution becomes.
    fn add_printed(
        &mut self,
        printed: Printed,
        quoted: bool,
        span: Span,
        atoms: &mut Vec<Atom>,
    ) -> Result<(), Unreadable> {
        let class = match printed {
            // The first of several numbers ends the word that stands before it, and the others follow.
            Printed::Numbers if quoted || atoms.is_empty() => Hidden::Number,
            Printed::Numbers => Hidden::Anything,
            // As `$PWD`, which a text can set to anything.
            Printed::WorkingDirectory if self.variables.values("PWD").is_none() => {
                let here = Expansion {
                    parameter: Parameter::Named("PWD".to_owned()),
                    indirect: false,
                    operation: Operation::Value,
                };
                return self.parameter(&here, quoted, span, atoms);
            }
            Printed::WorkingDirectory | Printed::Text(Hidden::Path) if self.stands_among_blanks() => Hidden::Path,
            Printed::WorkingDirectory | Printed::Text(Hidden::Path) => Hidden::Name,
            Printed::NewFile if quoted || self.whole_words => {
                let mut path = self.temporary_directory();
                path.extend([Atom::Text("/tmp.".to_owned()), Atom::Hidden(Hidden::Letters)]);
                // It prints nothing where it fails.
                atoms.push(Atom::OneOf(vec![Vec::new(), joined(path)]));
                return Ok(());
            }
            Printed::NewFile => Hidden::Name,
            Printed::Names(names) if !quoted && atoms.is_empty() => {
                atoms.extend(names);
                return Ok(());
            }
            Printed::Names(_) => Hidden::Anything,
            Printed::Text(class) => class,
        };
        atoms.push(Atom::Hidden(class));
        Ok(())
    }

    /// The text inside `$(…)`: what it runs, and what kind of text it prints.
    fn substitution(&mut self, text: &str, place: Place) -> Result<Printed, Unreadable> {
        let first = self.reading.commands.len();
        let before = self.reading.effects.len();
        let splits = self.splits_for_good;
        let whole = std::mem::replace(&mut self.whole_words, false);
        let result = self.deeper(|reader| reader.scope(|reader| reader.text(text, place)));
        self.whole_words = whole;
        result?;
        self.splits_for_good = splits;
        // What goes wrong is told in words, which a redirection can bring along.
        let effects = self.reading.effects.get(before..).unwrap_or_default();
        let redirects = effects.iter().any(|effect| match &effect.action {
            Action::Writes(path) => effect.via == Via::Redirection && path.known().as_deref() != Some("/dev/null"),
            _ => false,
        });
        // What it prints may go elsewhere.
        let elsewhere = text
            .replace("2>/dev/null", "")
            .replace("2> /dev/null", "")
            .contains('>');
        if redirects || elsewhere || text.contains("|&") {
            return Ok(Printed::ANYTHING);
        }
        let Some(stages) = self.stages_of_one_pipeline(text, place, first)? else {
            return Ok(Printed::ANYTHING);
        };
        let names = match text.contains('<') {
            true => None,
            false => self.substituted_names(first, before, stages),
        };
        Ok(names.map_or_else(|| self.printed(first), Printed::Names))
    }

    /// The number of stages of a text that prints what the last command that was read prints: it is one pipeline of
    /// simple commands, of which the last is that command and was not started by another, and no trap prints as well.
    fn stages_of_one_pipeline(&mut self, text: &str, place: Place, first: usize) -> Result<Option<usize>, Unreadable> {
        if self.variables.traps_between || self.found.traps_between {
            return Ok(None);
        }
        let program = self.parsed(text).map_err(|_| unparsable(place.span(0, text.len())))?;
        let Some(stages) = program.list.simple_stages() else {
            return Ok(None);
        };
        let read = self.reading.commands.get(first..).unwrap_or_default();
        let name = stages.last().and_then(|stage| Some(stage.name.as_ref()?.range));
        let (Some(name), Some(last)) = (name, read.last()) else {
            return Ok(None);
        };
        // Where the text was put together, all of it stands in one place.
        let is_last = match place {
            Place::From(_) => last
                .argv
                .first()
                .is_some_and(|word| word.span == place.span(name.start, name.end)),
            Place::Within(_) => read.len() == stages.len(),
        };
        Ok(is_last.then_some(stages.len()))
    }

    /// A text that stands for a word inside an expansion, such as a default value.
    fn nested(&mut self, text: &str, span: Span) -> Result<Vec<Atom>, Unreadable> {
        self.reads(text)?;
        if text.contains("<(") || text.contains(">(") {
            return Err(Unreadable {
                span,
                because: "a process substitution inside an expansion is not read".to_owned(),
            });
        }
        let unreadable = |_| Unreadable {
            span,
            because: "a word inside an expansion cannot be parsed".to_owned(),
        };
        let mut atoms = Vec::new();
        for piece in &pieces(text).or_else(|_| heredoc_pieces(text)).map_err(unreadable)? {
            self.piece(piece, Place::Within(span), false, &mut atoms)?;
        }
        // Quoting inside an expansion has rules of its own: look for what it substitutes both ways.
        if text.contains('\'') && (text.contains('$') || text.contains('`')) {
            self.body(text, Place::Within(span), span)?;
            return Ok(vec![Atom::Hidden(Hidden::Anything)]);
        }
        Ok(joined(atoms))
    }

    /// A here-document's body, or anything else that expands like text in double quotes.
    pub(super) fn body(&mut self, text: &str, place: Place, span: Span) -> Result<Vec<Atom>, Unreadable> {
        self.reads(text)?;
        if self.plain_sh && text.contains("$[") {
            let because = "`sh` may be another shell than bash, to which `$[…]` is text; write `$((…))` instead";
            self.doubt(Doubt::Launch, "$[…]", because, span, None);
        }
        let pieces = heredoc_pieces(text).map_err(|_| Unreadable {
            span,
            because: "what expands in it cannot be parsed".to_owned(),
        })?;
        let mut atoms = Vec::new();
        pieces
            .iter()
            .try_for_each(|piece| self.piece(piece, place, true, &mut atoms))?;
        Ok(joined(atoms))
    }

    fn parameter(
        &mut self,
        expansion: &Expansion,
        quoted: bool,
        span: Span,
        atoms: &mut Vec<Atom>,
    ) -> Result<(), Unreadable> {
        let anything = Atom::Hidden(Hidden::Anything);
        let Expansion {
            parameter,
            indirect,
            operation,
        } = expansion;
        if let Operation::Default(word)
        | Operation::Assign(word)
        | Operation::Alternative(word)
        | Operation::Error(word) = operation
            && quoted
        {
            self.decoded(word, span);
        }
        let added = match operation {
            Operation::Names => vec![anything],
            // The keys of an array are numbers, unless it was declared to have names.
            Operation::Keys => {
                self.looked_up = true;
                let names = matches!(parameter, Parameter::All { name, .. } if ["BASH_ALIASES", "BASH_CMDS"].contains(&name.as_str()));
                vec![if names || self.variables.any_associative {
                    anything
                } else {
                    Atom::Hidden(Hidden::Number)
                }]
            }
            Operation::Value => self.value(parameter, *indirect, span)?,
            Operation::Length => {
                self.value(parameter, *indirect, span)?;
                vec![Atom::Hidden(Hidden::Number)]
            }
            Operation::Default(word) => {
                let value = match parameter {
                    Parameter::Named(name) if name == "TMPDIR" && !indirect => self.temporary_directory(),
                    _ => self.value(parameter, *indirect, span)?,
                };
                let default = self.nested(word, span)?;
                vec![Atom::OneOf(vec![value, default])]
            }
            Operation::Assign(word) => {
                let value = self.value(parameter, *indirect, span)?;
                let default = self.nested(word, span)?;
                if *indirect {
                    let target = self.value(parameter, false, span)?;
                    let target = Word {
                        atoms: target.into(),
                        fields: Fields::One,
                        span,
                        written: self.written(span).into(),
                    };
                    self.named(&target, default.clone())?;
                } else if let Parameter::Named(name) | Parameter::Element { name, .. } = parameter {
                    self.assign(name, default.clone(), span)?;
                }
                vec![Atom::OneOf(vec![value, default])]
            }
            Operation::Alternative(word) => {
                self.value(parameter, *indirect, span)?;
                let alternative = self.nested(word, span)?;
                vec![Atom::OneOf(vec![Vec::new(), alternative])]
            }
            Operation::Error(word) => {
                self.nested(word, span)?;
                self.value(parameter, *indirect, span)?
            }
            Operation::Substring(range) => {
                self.value(parameter, *indirect, span)?;
                self.arithmetic(range, Place::Within(span))?;
                vec![anything]
            }
            Operation::WithoutSuffix(pattern) => {
                let value = self.value(parameter, *indirect, span)?;
                self.nested(pattern, span)?;
                if let Some(shorter) = without_end(&value, pattern) {
                    return self.add_value(shorter, quoted, atoms);
                }
                let start = Word {
                    atoms: value.into(),
                    fields: Fields::One,
                    span,
                    written: "".into(),
                };
                // What is cut off at the end leaves the beginning as it was.
                let class = if quoted && start.is_dashed() == Known::No {
                    Hidden::Path
                } else {
                    Hidden::Anything
                };
                vec![Atom::Hidden(class)]
            }
            Operation::Changed(word) => {
                self.value(parameter, *indirect, span)?;
                self.nested(word, span)?;
                vec![anything]
            }
            Operation::Prompt => {
                let value = self.value(parameter, *indirect, span)?;
                self.prompt(&value, span)?;
                vec![anything]
            }
            Operation::Transformed => {
                self.value(parameter, *indirect, span)?;
                vec![anything]
            }
        };
        self.add_value(added, quoted, atoms)
    }

    /// Adds the value of a parameter to what a word is made of.
    fn add_value(&mut self, added: Vec<Atom>, quoted: bool, atoms: &mut Vec<Atom>) -> Result<(), Unreadable> {
        // Its blanks split it.
        let splits = !quoted && added.contains(&Atom::Here) && self.stands_among_blanks();
        let added = if splits {
            vec![Atom::Hidden(Hidden::Anything)]
        } else {
            added
        };
        if !self.whole_words && holds_names(&added) {
            let plain = self.is_of_plain_names(&added);
            self.split_names |= !quoted && !plain;
        }
        self.looked_up |= !quoted;
        let is_number = matches!(added.as_slice(), [Atom::Hidden(Hidden::Number)]) && !self.variables.splits_numbers();
        if !quoted && self.variables.splits_otherwise && !is_number {
            // Where it splits is not followed.
            atoms.push(Atom::Hidden(Hidden::Anything));
        } else if quoted {
            atoms.extend(added);
        } else {
            atoms.extend(unquoted(&added));
        }
        Ok(())
    }

    /// The value of a parameter; a subscript and an indirection are followed as what they evaluate.
    fn value(&mut self, parameter: &Parameter, indirect: bool, span: Span) -> Result<Vec<Atom>, Unreadable> {
        let value = match parameter {
            Parameter::Positional(number) => self.variable(&number.to_string()),
            Parameter::Special(special) => vec![Atom::Hidden(match special {
                '#' | '?' | '$' | '!' => Hidden::Number,
                '-' => Hidden::Name,
                // Whoever starts a shell gives it its name.
                _ => Hidden::Anything,
            })],
            Parameter::Named(name) | Parameter::All { name, separate: true } => self.variable(name),
            // Joined into one, by the first character of IFS.
            Parameter::All { name, separate: false } => match self.variable(name).as_slice() {
                [Atom::OneOf(_)] => vec![Atom::Hidden(Hidden::Anything)],
                one => one.to_vec(),
            },
            Parameter::Element { name, subscript } => {
                self.subscript(name, subscript, span)?;
                // There may be no such element.
                let mut values = match <[Atom; 1]>::try_from(self.variable(name)) {
                    Ok([Atom::OneOf(values)]) => values,
                    Ok([one]) => vec![vec![one]],
                    Err(value) => vec![value],
                };
                if !values.contains(&Vec::new()) {
                    values.push(Vec::new());
                }
                vec![Atom::OneOf(values)]
            }
        };
        let value = match parameter {
            // What is known of a match is known of its groups, and not of the whole.
            Parameter::Named(name) | Parameter::All { name, .. } if name == MATCHED && !value.is_empty() => {
                vec![Atom::Hidden(Hidden::Anything)]
            }
            Parameter::Element { name, subscript } if name == MATCHED && !is_group(subscript) => {
                vec![Atom::Hidden(Hidden::Anything)]
            }
            _ => value,
        };
        if !indirect {
            return Ok(value);
        }
        // The value is a name, perhaps with a subscript, which is evaluated.
        let target = Word {
            atoms: value.into(),
            fields: Fields::One,
            span,
            written: self.written(span).into(),
        };
        match target.known() {
            Some(name) if crate::syntax::is_name(&name) => Ok(self.variable(&name)),
            Some(_) | None => {
                self.defined.may_give_up();
                self.evaluated_word(&target, span)?;
                Ok(vec![Atom::Hidden(Hidden::Anything)])
            }
        }
    }

    /// A text with what stands in ANSI-C quotes (`$'\x24'`) decoded: in arithmetic, in subscripts and in parameter
    /// expansions that are quoted, bash does that first, and expands what came of it.
    pub(super) fn decoded<'t>(&mut self, text: &'t str, span: Span) -> Cow<'t, str> {
        decoded(text).unwrap_or_else(|| {
            let object = self.written(span);
            let because = "what stands in `$'…'` here is expanded once more, which can run commands";
            self.doubt(Doubt::Launch, object, because, span, None);
            Cow::Borrowed(text)
        })
    }

    /// A subscript: arithmetic, unless the array is known to have names for keys.
    pub(super) fn subscript(&mut self, name: &str, index: &str, span: Span) -> Result<(), Unreadable> {
        self.looked_up |= self.variables.any_associative || self.found.any_associative;
        if self.defined.associative.contains(name) && self.keeps(name) {
            // A key may not be empty.
            self.defined.may_give_up();
            let index = &*self.decoded(index, span);
            return self.body(index, Place::Within(span), span).map(drop);
        }
        if index.len() > 9 || index.bytes().any(|byte| !byte.is_ascii_digit()) {
            // It may be before the first element, or beyond the last that there can be.
            self.defined.may_give_up();
        }
        self.arithmetic(index, Place::Within(span))
    }

    /// A value that is expanded as a prompt is: substitutions in it run.
    pub(super) fn prompt(&mut self, value: &[Atom], span: Span) -> Result<(), Unreadable> {
        match known(value) {
            // Backslashes are read first, and could make a substitution of what does not look like one.
            Some(text)
                if !(text.contains("\\$") || text.contains("\\0") || text.contains("\\1") || text.contains("\\`")) =>
            {
                let text = text.into_owned();
                self.deeper(|reader| reader.body(&text, Place::Within(span), span).map(drop))
            }
            Some(_) | None => {
                let object = self.written(span);
                self.doubt(
                    Doubt::Launch,
                    object,
                    "this value is expanded as a prompt, which can run commands",
                    span,
                    None,
                );
                Ok(())
            }
        }
    }
}

fn unparsable(span: Span) -> Unreadable {
    Unreadable {
        span,
        because: "a word of it cannot be parsed".to_owned(),
    }
}

/// Bytes that mean nothing to the shell inside a word.
pub(super) fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'_' | b'.' | b'/' | b',' | b':' | b'=' | b'@' | b'%' | b'+'
        )
}

fn fields_of(piece: &PieceKind, added: &[Atom], spreads: bool, splits_otherwise: bool) -> Fields {
    let unsure = |atoms: &[Atom]| {
        atoms
            .iter()
            .any(|atom| !matches!(atom, Atom::Text(_) | Atom::Here | Atom::Hidden(Hidden::Number)))
    };
    match piece {
        _ if spreads => Fields::Spread,
        PieceKind::Text(_) | PieceKind::Extended { .. }
            if added.iter().any(|atom| matches!(atom, Atom::One | Atom::Star)) =>
        {
            Fields::Glob
        }
        PieceKind::Text(_)
        | PieceKind::SingleQuoted(_)
        | PieceKind::AnsiC(_)
        | PieceKind::Escaped(_)
        | PieceKind::Translated(_)
        | PieceKind::DoubleQuoted(_)
        | PieceKind::Tilde(_) => Fields::One,
        PieceKind::Arithmetic(_) if !splits_otherwise => Fields::One,
        PieceKind::Arithmetic(_)
        | PieceKind::Parameter(_)
        | PieceKind::Substitution(_)
        | PieceKind::Backquoted(_)
        | PieceKind::Extended { .. } => {
            let blank = added.iter().any(|atom| {
                matches!(atom, Atom::Text(text) if text.is_empty() || text.contains(|c: char| c.is_whitespace() || "*?[".contains(c)))
            });
            if unsure(added) || blank || splits_otherwise || added.is_empty() {
                Fields::Any
            } else {
                Fields::One
            }
        }
    }
}

/// Whether a text among these pieces, or what is not known of them, holds this character.
fn holds(atoms: &[Atom], character: char) -> bool {
    atoms.iter().any(|atom| match atom {
        Atom::Text(text) => text.contains(character),
        Atom::OneOf(values) => values.iter().any(|value| holds(value, character)),
        Atom::One | Atom::Star | Atom::Found | Atom::Hidden(_) | Atom::Here => false,
    })
}

/// Whether `@(…)` or one of its kind begins in a text.
fn holds_extended_pattern(text: &str) -> bool {
    text.as_bytes()
        .windows(2)
        .any(|pair| pair[1] == b'(' && b"?*+@!".contains(&pair[0]))
}

/// Whether a part of a path begins with a dot, and a wildcard and dots are all that follows.
fn may_match_dots(atoms: &[Atom]) -> bool {
    let mut pattern = String::new();
    for atom in atoms {
        match atom {
            Atom::Text(text) => pattern.push_str(&text.replace('*', "\\")),
            Atom::One | Atom::Star => pattern.push('*'),
            Atom::Found | Atom::Hidden(_) | Atom::Here | Atom::OneOf(_) => pattern.push('\\'),
        }
    }
    let dots =
        |part: &str| part.starts_with('.') && part.contains('*') && part.bytes().all(|byte| b".*".contains(&byte));
    pattern.split('/').any(dots)
}

/// Whether these pieces make one of these together, or that cannot be told.
fn may_hold_extended_pattern(atoms: &[Atom]) -> bool {
    // What stands before the present piece, where that is known.
    let mut before = Some(vec![String::new()]);
    atoms.iter().any(|atom| {
        let now: Option<Vec<String>> = match atom {
            Atom::Text(text) => Some(vec![text.clone()]),
            Atom::OneOf(values) => values.iter().map(|value| known(value).map(String::from)).collect(),
            Atom::One => Some(vec!["?".to_owned()]),
            Atom::Star => Some(vec!["*".to_owned()]),
            Atom::Found | Atom::Hidden(_) | Atom::Here => None,
        };
        let opens = now.iter().flatten().any(|text| text.starts_with('('));
        let follows = before
            .as_ref()
            .is_none_or(|texts| texts.iter().any(|text| text.ends_with(['?', '*', '+', '@', '!'])));
        let found = opens && follows || now.iter().flatten().any(|text| holds_extended_pattern(text));
        if now.as_ref().is_none_or(|texts| !texts.iter().all(String::is_empty)) {
            before = now;
        }
        found
    })
}

/// A value without this at its end, where it ends with it for certain and has a beginning of its own.
fn without_end(value: &[Atom], end: &str) -> Option<Vec<Atom>> {
    let plain = end
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let [start @ .., Atom::Text(last)] = value else {
        return None;
    };
    let rest = last.strip_suffix(end).filter(|_| plain && !start.is_empty())?;
    Some(joined([start, &[Atom::Text(rest.to_owned())]].concat()))
}

/// Whether a value is the names that one pattern matches.
fn is_of_names(value: &[Atom]) -> bool {
    let plain = |atom: &Atom| match atom {
        Atom::One | Atom::Star => true,
        Atom::Text(text) => !text.contains(BLANKS),
        Atom::Found | Atom::Hidden(_) | Atom::Here | Atom::OneOf(_) => false,
    };
    holds_names(value) && value.iter().all(plain)
}

/// The value of an expansion outside of quotes: the shell splits it at blanks, and its wildcards match names.
fn unquoted(value: &[Atom]) -> Vec<Atom> {
    value
        .iter()
        .flat_map(|atom| match atom {
            Atom::Text(text) if text.contains(char::is_whitespace) => vec![Atom::Hidden(Hidden::Anything)],
            Atom::Text(text) if text.contains(['*', '?', '[']) => wildcards(text),
            Atom::OneOf(values) => vec![Atom::OneOf(values.iter().map(|value| unquoted(value)).collect())],
            other => vec![other.clone()],
        })
        .collect()
}

/// Unquoted text with its wildcards told apart.
fn wildcards(text: &str) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let mut length = character.len_utf8();
        let wild = match character {
            '*' => Some(Atom::Star),
            '?' => Some(Atom::One),
            '[' => bracket(rest).map(|end| {
                length = end;
                Atom::One
            }),
            _ => None,
        };
        match wild {
            Some(atom) => {
                atoms.push(Atom::Text(std::mem::take(&mut literal)));
                atoms.push(atom);
            }
            None => literal.push(character),
        }
        rest = &rest[length..];
    }
    atoms.push(Atom::Text(literal));
    atoms
}

/// The length of a bracket expression at the start of the text, if it is one.
fn bracket(text: &str) -> Option<usize> {
    let body = &text[1..];
    let skip = usize::from(body.starts_with(['!', '^']));
    let first = skip + usize::from(body[skip..].starts_with(']'));
    let mut at = first;
    loop {
        let rest = &body[at..];
        let end = rest.find(']')?;
        // `[:lower:]` and the like hold a bracket of their own.
        match ["[:", "[.", "[="]
            .iter()
            .filter_map(|open| rest[..end].rfind(open))
            .max()
        {
            Some(open) if rest[open + 2..end].len() < 12 && rest[..end].ends_with(&rest[open + 1..open + 2]) => {
                at += end + 1
            }
            _ => return Some(1 + at + end + 1),
        }
    }
}

/// What a backslash escapes inside old-style backquotes.
fn unescape_backquoted(text: &str, quoted: bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\\'
            && let Some(next) = characters.peek()
            && (matches!(next, '$' | '`' | '\\') || (quoted && *next == '"'))
        {
            continue_with(&mut characters, &mut plain);
        } else {
            plain.push(character);
        }
    }
    plain
}

fn continue_with(characters: &mut impl Iterator<Item = char>, plain: &mut String) {
    plain.extend(characters.next());
}

/// A text with what stands in ANSI-C quotes (`$'\x24'`) decoded.
/// Nothing if that is not plain text.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains("$'") {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, quoted)) = rest.split_once("$'") {
        let mut is_escaped = false;
        // Without an end it is none: an ordinary quotation ends with a dollar.
        let Some(end) = quoted.find(|character| {
            let ends = character == '\'' && !is_escaped;
            is_escaped = character == '\\' && !is_escaped;
            ends
        }) else {
            break;
        };
        let (quoted, after) = quoted.split_at(end);
        let plain = ansi_c(quoted).filter(|plain| !plain.contains(['$', '`', '\\']))?;
        decoded.push_str(before);
        decoded.push_str(&plain);
        rest = after.strip_prefix('\'')?;
    }
    decoded.push_str(rest);
    Some(Cow::Owned(decoded))
}

/// Decodes `$'…'`; `None` for an escape that makes a byte which is no character.
fn ansi_c(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\\' {
            decoded.push(character);
            continue;
        }
        let mut number = |radix: u32, most: usize| {
            let mut value = None;
            for _ in 0..most {
                let Some(digit) = characters.peek().and_then(|c| c.to_digit(radix)) else {
                    break;
                };
                value = Some(value.unwrap_or(0) * radix + digit);
                characters.next();
            }
            value
        };
        let code = number(8, 3).map(|octal| octal & 0xff);
        if let Some(code) = code {
            decoded.push(ascii(code)?);
            continue;
        }
        match characters.next() {
            None => decoded.push('\\'),
            Some('a') => decoded.push('\u{7}'),
            Some('b') => decoded.push('\u{8}'),
            Some('e' | 'E') => decoded.push('\u{1b}'),
            Some('f') => decoded.push('\u{c}'),
            Some('n') => decoded.push('\n'),
            Some('r') => decoded.push('\r'),
            Some('t') => decoded.push('\t'),
            Some('v') => decoded.push('\u{b}'),
            // Of a backslash bash takes the next one, too; of a letter of several bytes, the first byte alone.
            Some('c') => {
                let letter = characters
                    .next()
                    .filter(|letter| letter.is_ascii() && !"\\?".contains(*letter))?;
                decoded.push(ascii(u32::from(letter) & 0x1f)?);
            }
            Some('x') => decoded.push(ascii(hexadecimal(&mut characters, 2)?)?),
            Some('u') => decoded.push(char::from_u32(hexadecimal(&mut characters, 4)?).filter(|c| *c != '\0')?),
            Some('U') => decoded.push(char::from_u32(hexadecimal(&mut characters, 8)?).filter(|c| *c != '\0')?),
            Some(other @ ('\\' | '\'' | '"' | '?')) => decoded.push(other),
            Some(other) => decoded.extend(['\\', other]),
        }
    }
    Some(decoded)
}

fn hexadecimal(characters: &mut std::iter::Peekable<std::str::Chars<'_>>, most: usize) -> Option<u32> {
    let mut value = None;
    for _ in 0..most {
        let Some(digit) = characters.peek().and_then(|c| c.to_digit(16)) else {
            break;
        };
        value = Some(value.unwrap_or(0) * 16 + digit);
        characters.next();
    }
    value
}

/// A byte below 128 and not NUL, at which bash would cut the text off.
fn ascii(code: u32) -> Option<char> {
    char::from_u32(code).filter(|c| *c != '\0' && c.is_ascii())
}
