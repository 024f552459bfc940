//! Words as they are written to words as they can become.

use brush_parser::ast;
use brush_parser::word::{
    self, BraceExpressionMember, BraceExpressionOrText, Parameter, ParameterExpr, ParameterTransformOp,
    SpecialParameter, TildeExpr, WordPiece, WordPieceWithSource,
};

use super::source::{Place, Source};
use super::variables::ambient;
use super::walk::options;
use super::{Doubt, Reader, Unreadable};
use crate::policy::verdict::Span;
use crate::policy::word::{Atom, Fields, Hidden, Word, joined, known};

/// Stands for the home directory, wherever it is: an absolute path that no text can hold.
pub(crate) const HOME: &str = "/\u{1}home";

/// How many words the braces of one word may make before it counts as unknown.
const MAX_BRACES: usize = 64;

impl Reader<'_> {
    /// The words that a written word becomes.
    pub(super) fn words(&mut self, word: &ast::Word, source: &Source, outer: Span) -> Result<Vec<Word>, Unreadable> {
        let (place, span) = match &word.loc {
            Some(loc) => {
                let (start, _) = source.range(loc);
                (source.place.inner(start), source.span(loc))
            }
            None => (Place::Within(outer), outer),
        };
        self.words_of(&word.value, place, span)
    }

    /// The words that this text of a word becomes.
    pub(super) fn words_of(&mut self, text: &str, place: Place, span: Span) -> Result<Vec<Word>, Unreadable> {
        self.node()?;
        if text.contains('{')
            && let Ok(Some(parts)) = word::parse_brace_expansions(text, &options())
            && parts.iter().any(|part| matches!(part, BraceExpressionOrText::Expr(_)))
        {
            let mut texts = vec![String::new()];
            if !braces(&parts, &mut texts) {
                // Also what cannot be spelled out may substitute something.
                self.one_word(text, place, span)?;
                return Ok(vec![Word::unknown(Fields::Any, text, span)]);
            }
            let mut all = Vec::new();
            for part in texts {
                all.extend(self.one_word(&part, Place::Within(span), span)?);
            }
            return Ok(all);
        }
        self.one_word(text, place, span)
    }

    /// A word without braces, which may still split.
    fn one_word(&mut self, text: &str, place: Place, span: Span) -> Result<Vec<Word>, Unreadable> {
        if text.bytes().all(plain) {
            return Ok(vec![Word::text(text, span)]);
        }
        let pieces = word::parse(text, &options())
            .map_err(|_| Unreadable { span, because: "a word of it cannot be parsed".to_owned() })?;
        if let [only] = pieces.as_slice()
            && let Some(split) = self.split(only, span)
        {
            return Ok(split);
        }
        let mut atoms = Vec::new();
        let mut fields = Fields::One;
        for piece in &pieces {
            let before = atoms.len();
            self.piece(&piece.piece, piece.start_index, piece.end_index, place, false, &mut atoms)?;
            let added = &atoms[before..];
            fields = match fields_of(&piece.piece, added, self.variables.splits_otherwise) {
                Fields::Any => Fields::Any,
                Fields::Glob if fields == Fields::One => Fields::Glob,
                Fields::Glob | Fields::One => fields,
            };
        }
        Ok(vec![Word { atoms: joined(atoms), fields, span, written: text.to_owned() }])
    }

    /// An unquoted variable with one known value, split at blanks as the shell does.
    fn split(&mut self, piece: &WordPieceWithSource, span: Span) -> Option<Vec<Word>> {
        let WordPiece::ParameterExpansion(ParameterExpr::Parameter { parameter: Parameter::Named(name), indirect: false }) =
            &piece.piece
        else {
            return None;
        };
        let values = self.lookup(name)?;
        let [value] = values.as_slice() else { return None };
        let text = known(value)?.into_owned();
        if self.variables.splits_otherwise {
            return None;
        }
        Some(
            text.split_ascii_whitespace()
                .map(|field| {
                    let atoms = joined(wildcards(field));
                    let fields = if known(&atoms).is_some() { Fields::One } else { Fields::Glob };
                    Word { atoms, fields, span, written: field.to_owned() }
                })
                .collect(),
        )
    }

    /// The values of a variable, if the text assigns it.
    pub(super) fn lookup(&mut self, name: &str) -> Option<Vec<Vec<Atom>>> {
        self.looked_up = true;
        self.variables.values(name).map(<[_]>::to_vec)
    }

    fn variable(&mut self, name: &str) -> Vec<Atom> {
        match self.lookup(name) {
            None => ambient(name),
            Some(values) => match <[Vec<Atom>; 1]>::try_from(values) {
                Ok([value]) => value,
                Err(values) => vec![Atom::OneOf(values)],
            },
        }
    }

    /// One piece of a word, and what it substitutes.
    pub(super) fn piece(
        &mut self,
        piece: &WordPiece,
        start: usize,
        end: usize,
        place: Place,
        quoted: bool,
        atoms: &mut Vec<Atom>,
    ) -> Result<(), Unreadable> {
        self.node()?;
        let span = place.span(start, end);
        match piece {
            WordPiece::Text(text) if quoted => atoms.push(Atom::Text(text.clone())),
            WordPiece::Text(text) => atoms.extend(wildcards(text)),
            WordPiece::SingleQuotedText(text) => atoms.push(Atom::Text(text.clone())),
            WordPiece::AnsiCQuotedText(text) => match ansi_c(text) {
                Some(text) => atoms.push(Atom::Text(text)),
                None => atoms.push(Atom::Hidden(Hidden::Anything)),
            },
            WordPiece::DoubleQuotedSequence(inner) => {
                // An empty pair of quotes is a word of its own, with nothing in it.
                atoms.push(Atom::Text(String::new()));
                for part in inner {
                    self.piece(&part.piece, part.start_index, part.end_index, place, true, atoms)?;
                }
            }
            WordPiece::GettextDoubleQuotedSequence(inner) => {
                let mut ignored = Vec::new();
                for part in inner {
                    self.piece(&part.piece, part.start_index, part.end_index, place, true, &mut ignored)?;
                }
                // What it becomes depends on a catalogue of translations.
                atoms.push(Atom::Hidden(Hidden::Anything));
            }
            WordPiece::TildeExpansion(tilde) => atoms.push(match tilde {
                TildeExpr::Home => Atom::Text(HOME.to_owned()),
                TildeExpr::WorkingDir => Atom::Text(".".to_owned()),
                TildeExpr::UserHome(_) | TildeExpr::OldWorkingDir => Atom::Hidden(Hidden::Name),
                TildeExpr::NthDirFromTopOfDirStack { .. } | TildeExpr::NthDirFromBottomOfDirStack { .. } => {
                    Atom::Hidden(Hidden::Name)
                }
            }),
            WordPiece::ParameterExpansion(expression) => self.parameter(expression, quoted, span, atoms)?,
            WordPiece::CommandSubstitution(text) => {
                let class = self.substitution(text, place.inner(start + 2))?;
                atoms.push(Atom::Hidden(class));
            }
            WordPiece::BackquotedCommandSubstitution(text) => {
                let inside = if text.contains('\\') || end.saturating_sub(start) != text.len() + 2 {
                    Place::Within(span)
                } else {
                    place.inner(start + 1)
                };
                let class = self.substitution(&unescape_backquoted(text, quoted), inside)?;
                atoms.push(Atom::Hidden(class));
            }
            WordPiece::EscapeSequence(text) => {
                let text = text.strip_prefix('\\').unwrap_or(text);
                if text != "\n" {
                    atoms.push(Atom::Text(text.to_owned()));
                }
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.arithmetic(&expression.value, Place::Within(span))?;
                atoms.push(Atom::Hidden(Hidden::Number));
            }
        }
        Ok(())
    }

    /// The text inside `$(…)`: what it runs, and what kind of text it prints.
    fn substitution(&mut self, text: &str, place: Place) -> Result<Hidden, Unreadable> {
        let first = self.reading.commands.len();
        self.deeper(|reader| reader.scope(|reader| reader.text(text, place)))?;
        Ok(self.printed(first))
    }

    /// A text that stands for a word inside an expansion, such as a default value.
    fn nested(&mut self, text: &str, span: Span) -> Result<Vec<Atom>, Unreadable> {
        let pieces = word::parse(text, &options())
            .map_err(|_| Unreadable { span, because: "a word inside an expansion cannot be parsed".to_owned() })?;
        let mut atoms = Vec::new();
        for piece in &pieces {
            self.piece(&piece.piece, piece.start_index, piece.end_index, Place::Within(span), false, &mut atoms)?;
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
        let pieces = word::parse_heredoc(text, &options())
            .map_err(|_| Unreadable { span, because: "a here-document of it cannot be parsed".to_owned() })?;
        let mut atoms = Vec::new();
        for piece in &pieces {
            self.piece(&piece.piece, piece.start_index, piece.end_index, place, true, &mut atoms)?;
        }
        Ok(joined(atoms))
    }

    fn parameter(
        &mut self,
        expression: &ParameterExpr,
        quoted: bool,
        span: Span,
        atoms: &mut Vec<Atom>,
    ) -> Result<(), Unreadable> {
        use ParameterExpr as E;
        let anything = Atom::Hidden(Hidden::Anything);
        let added = match expression {
            E::Parameter { parameter, indirect } => self.value(parameter, *indirect, span)?,
            E::UseDefaultValues { parameter, indirect, default_value, .. } => {
                let value = self.value(parameter, *indirect, span)?;
                let default = self.nested(default_value.as_deref().unwrap_or_default(), span)?;
                vec![Atom::OneOf(vec![value, default])]
            }
            E::AssignDefaultValues { parameter, indirect, default_value, .. } => {
                let value = self.value(parameter, *indirect, span)?;
                let default = self.nested(default_value.as_deref().unwrap_or_default(), span)?;
                if let Parameter::Named(name) | Parameter::NamedWithIndex { name, .. } = parameter {
                    self.assign(name, default.clone(), span)?;
                }
                vec![Atom::OneOf(vec![value, default])]
            }
            E::UseAlternativeValue { parameter, indirect, alternative_value, .. } => {
                self.value(parameter, *indirect, span)?;
                let alternative = self.nested(alternative_value.as_deref().unwrap_or_default(), span)?;
                vec![Atom::OneOf(vec![Vec::new(), alternative])]
            }
            E::IndicateErrorIfNullOrUnset { parameter, indirect, error_message, .. } => {
                self.nested(error_message.as_deref().unwrap_or_default(), span)?;
                self.value(parameter, *indirect, span)?
            }
            E::ParameterLength { parameter, indirect } => {
                self.value(parameter, *indirect, span)?;
                vec![Atom::Hidden(Hidden::Number)]
            }
            E::RemoveSmallestSuffixPattern { parameter, indirect, pattern }
            | E::RemoveLargestSuffixPattern { parameter, indirect, pattern } => {
                let value = self.value(parameter, *indirect, span)?;
                self.nested(pattern.as_deref().unwrap_or_default(), span)?;
                let start = Word { atoms: value, fields: Fields::One, span, written: String::new() };
                // What is cut off at the end leaves the beginning as it was.
                let class = if quoted && start.is_dashed() == crate::policy::word::Known::No { Hidden::Name } else { Hidden::Anything };
                vec![Atom::Hidden(class)]
            }
            E::RemoveSmallestPrefixPattern { parameter, indirect, pattern }
            | E::RemoveLargestPrefixPattern { parameter, indirect, pattern }
            | E::UppercaseFirstChar { parameter, indirect, pattern }
            | E::UppercasePattern { parameter, indirect, pattern }
            | E::LowercaseFirstChar { parameter, indirect, pattern }
            | E::LowercasePattern { parameter, indirect, pattern } => {
                self.value(parameter, *indirect, span)?;
                self.nested(pattern.as_deref().unwrap_or_default(), span)?;
                vec![anything]
            }
            E::Substring { parameter, indirect, offset, length } => {
                self.value(parameter, *indirect, span)?;
                self.arithmetic(&offset.value, Place::Within(span))?;
                if let Some(length) = length {
                    self.arithmetic(&length.value, Place::Within(span))?;
                }
                vec![anything]
            }
            E::Transform { parameter, indirect, op } => {
                let value = self.value(parameter, *indirect, span)?;
                if matches!(op, ParameterTransformOp::PromptExpand) {
                    self.prompt(&value, span)?;
                }
                vec![anything]
            }
            E::ReplaceSubstring { parameter, indirect, pattern, replacement, .. } => {
                self.value(parameter, *indirect, span)?;
                self.nested(pattern, span)?;
                self.nested(replacement.as_deref().unwrap_or_default(), span)?;
                vec![anything]
            }
            E::VariableNames { .. } => vec![anything],
            // The keys of an array are numbers, unless it was declared to have names.
            E::MemberKeys { .. } => {
                self.looked_up = true;
                let named = self.variables.any_associative;
                vec![if named { anything } else { Atom::Hidden(Hidden::Number) }]
            }
        };
        atoms.extend(added);
        Ok(())
    }

    /// The value of a parameter; a subscript and an indirection are followed as what they evaluate.
    fn value(&mut self, parameter: &Parameter, indirect: bool, span: Span) -> Result<Vec<Atom>, Unreadable> {
        let value = match parameter {
            Parameter::Positional(number) => self.variable(&number.to_string()),
            Parameter::Special(special) => vec![match special {
                SpecialParameter::AllPositionalParameters { .. } => Atom::Hidden(Hidden::Anything),
                SpecialParameter::PositionalParameterCount
                | SpecialParameter::LastExitStatus
                | SpecialParameter::ProcessId
                | SpecialParameter::LastBackgroundProcessId => Atom::Hidden(Hidden::Number),
                SpecialParameter::CurrentOptionFlags | SpecialParameter::ShellName => Atom::Hidden(Hidden::Name),
            }],
            Parameter::Named(name) => self.variable(name),
            Parameter::NamedWithIndex { name, index } => {
                self.subscript(name, index, span)?;
                self.variable(name)
            }
            Parameter::NamedWithAllIndices { name, .. } => self.variable(name),
        };
        if !indirect {
            return Ok(value);
        }
        // The value is a name, perhaps with a subscript, which is evaluated.
        let target = Word { atoms: value, fields: Fields::One, span, written: self.written(span) };
        match target.known() {
            Some(name) if super::launch::is_name(&name) => Ok(self.variable(&name)),
            Some(_) | None => {
                self.evaluated_word(&target, span)?;
                Ok(vec![Atom::Hidden(Hidden::Anything)])
            }
        }
    }

    /// A subscript: arithmetic, unless the array is known to have names for keys.
    pub(super) fn subscript(&mut self, name: &str, index: &str, span: Span) -> Result<(), Unreadable> {
        if self.defined.associative.contains(name) {
            return self.body(index, Place::Within(span), span).map(drop);
        }
        self.arithmetic(index, Place::Within(span))
    }

    /// A value that is expanded as a prompt is: substitutions in it run.
    pub(super) fn prompt(&mut self, value: &[Atom], span: Span) -> Result<(), Unreadable> {
        match known(value) {
            // Backslashes are read first, and could make a substitution of what does not look like one.
            Some(text) if !(text.contains("\\$") || text.contains("\\0") || text.contains("\\1") || text.contains("\\`")) => {
                let text = text.into_owned();
                self.deeper(|reader| reader.body(&text, Place::Within(span), span).map(drop))
            }
            Some(_) | None => {
                let object = self.written(span);
                self.doubt(Doubt::Launch, object, "this value is expanded as a prompt, which can run commands", span, None);
                Ok(())
            }
        }
    }
}

/// Bytes that mean nothing to the shell inside a word.
fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b',' | b':' | b'=' | b'@' | b'%' | b'+')
}

fn fields_of(piece: &WordPiece, added: &[Atom], splits_otherwise: bool) -> Fields {
    let unsure = |atoms: &[Atom]| atoms.iter().any(|atom| !matches!(atom, Atom::Text(_) | Atom::Hidden(Hidden::Number)));
    match piece {
        WordPiece::Text(_) if added.iter().any(|atom| matches!(atom, Atom::One | Atom::Star)) => Fields::Glob,
        WordPiece::Text(_)
        | WordPiece::SingleQuotedText(_)
        | WordPiece::AnsiCQuotedText(_)
        | WordPiece::EscapeSequence(_)
        | WordPiece::GettextDoubleQuotedSequence(_)
        | WordPiece::TildeExpansion(_)
        | WordPiece::ArithmeticExpression(_) => Fields::One,
        WordPiece::DoubleQuotedSequence(inner) => {
            let many = inner.iter().any(|part| match &part.piece {
                WordPiece::ParameterExpansion(ParameterExpr::VariableNames { concatenate, .. }) => !concatenate,
                WordPiece::ParameterExpansion(expression) => spreads(expression),
                _ => false,
            });
            if many { Fields::Any } else { Fields::One }
        }
        WordPiece::ParameterExpansion(_) | WordPiece::CommandSubstitution(_) | WordPiece::BackquotedCommandSubstitution(_) => {
            let blank = added.iter().any(|atom| {
                matches!(atom, Atom::Text(text) if text.is_empty() || text.contains(|c: char| c.is_whitespace() || "*?[".contains(c)))
            });
            if unsure(added) || blank || splits_otherwise || added.is_empty() { Fields::Any } else { Fields::One }
        }
    }
}

/// Whether an expansion makes several words even inside double quotes: `"$@"`, `"${a[@]}"`.
fn spreads(expression: &ParameterExpr) -> bool {
    use ParameterExpr as E;
    let (E::Parameter { parameter, .. }
    | E::UseDefaultValues { parameter, .. }
    | E::AssignDefaultValues { parameter, .. }
    | E::IndicateErrorIfNullOrUnset { parameter, .. }
    | E::UseAlternativeValue { parameter, .. }
    | E::RemoveSmallestSuffixPattern { parameter, .. }
    | E::RemoveLargestSuffixPattern { parameter, .. }
    | E::RemoveSmallestPrefixPattern { parameter, .. }
    | E::RemoveLargestPrefixPattern { parameter, .. }
    | E::Substring { parameter, .. }
    | E::Transform { parameter, .. }
    | E::UppercaseFirstChar { parameter, .. }
    | E::UppercasePattern { parameter, .. }
    | E::LowercaseFirstChar { parameter, .. }
    | E::LowercasePattern { parameter, .. }
    | E::ReplaceSubstring { parameter, .. }) = expression
    else {
        return matches!(expression, E::VariableNames { concatenate: false, .. } | E::MemberKeys { concatenate: false, .. });
    };
    matches!(
        parameter,
        Parameter::Special(SpecialParameter::AllPositionalParameters { concatenate: false })
            | Parameter::NamedWithAllIndices { concatenate: false, .. }
    )
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
        match ["[:", "[.", "[="].iter().filter_map(|open| rest[..end].rfind(open)).max() {
            Some(open) if rest[open + 2..end].len() < 12 && rest[..end].ends_with(&rest[open + 1..open + 2]) => at += end + 1,
            _ => return Some(1 + at + end + 1),
        }
    }
}

/// Spells braces out; false where that makes too many words.
fn braces(parts: &[BraceExpressionOrText], texts: &mut Vec<String>) -> bool {
    for part in parts {
        let choices: Vec<String> = match part {
            BraceExpressionOrText::Text(text) => vec![text.clone()],
            BraceExpressionOrText::Expr(members) => {
                let mut choices = Vec::new();
                for member in members {
                    match member {
                        BraceExpressionMember::NumberSequence { start, end, increment } => {
                            // Leading zeros are lost here, so such a name is taken for unknown.
                            let step = increment.unsigned_abs().max(1);
                            let count = start.abs_diff(*end) / step + 1;
                            if count > MAX_BRACES as u64 {
                                return false;
                            }
                            let down = end < start;
                            choices.extend((0..count).map(|i| {
                                let offset = i64::try_from(i * step).unwrap_or(i64::MAX);
                                (if down { start.saturating_sub(offset) } else { start.saturating_add(offset) }).to_string()
                            }));
                        }
                        BraceExpressionMember::CharSequence { start, end, increment } => {
                            let step = usize::try_from(increment.unsigned_abs().max(1)).unwrap_or(1);
                            let (low, high) = (*start.min(end), *start.max(end));
                            choices.extend((low..=high).step_by(step).map(String::from));
                        }
                        BraceExpressionMember::Child(inner) => {
                            let mut spelled = vec![String::new()];
                            if !braces(inner, &mut spelled) {
                                return false;
                            }
                            choices.extend(spelled);
                        }
                    }
                }
                choices
            }
        };
        if texts.len() * choices.len() > MAX_BRACES {
            return false;
        }
        *texts = texts.iter().flat_map(|head| choices.iter().map(move |tail| format!("{head}{tail}"))).collect();
    }
    true
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
                let Some(digit) = characters.peek().and_then(|c| c.to_digit(radix)) else { break };
                value = Some(value.unwrap_or(0) * radix + digit);
                characters.next();
            }
            value
        };
        let code = match number(8, 3) {
            Some(octal) => Some(octal & 0xff),
            None => None,
        };
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
            Some('c') => decoded.push(ascii(u32::from(characters.next()?) & 0x1f)?),
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
        let Some(digit) = characters.peek().and_then(|c| c.to_digit(16)) else { break };
        value = Some(value.unwrap_or(0) * 16 + digit);
        characters.next();
    }
    value
}

/// A byte below 128 and not NUL, at which bash would cut the text off.
fn ascii(code: u32) -> Option<char> {
    char::from_u32(code).filter(|c| *c != '\0' && c.is_ascii())
}
