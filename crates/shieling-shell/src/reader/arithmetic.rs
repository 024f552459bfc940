//! Arithmetic, which in bash is code execution: a variable's value is evaluated again, and an array
//! subscript in it is expanded, substitutions included.

use super::Reader;
use super::source::Place;
use crate::reading::Doubt;
use crate::screen::Unreadable;
use crate::span::Span;
use crate::syntax::tree::{self, Operation, Parameter, Piece, PieceKind};
use crate::syntax::{heredoc_pieces, pieces};
use crate::word::{Atom, Hidden, Word, joined};

impl Reader<'_> {
    /// Follows an arithmetic expression: what it substitutes, which variables it evaluates and assigns.
    pub(super) fn arithmetic(&mut self, text: &str, place: Place) -> Result<(), Unreadable> {
        self.node()?;
        let span = place.span(0, text.len());
        if !self.cannot_fail(text) {
            self.defined.may_give_up();
        }
        let text = &*self.decoded(text, span);
        // Quotes do not protect here, as in a here-document's body.
        self.reads(text)?;
        let Ok(pieces) = heredoc_pieces(text) else {
            return Err(Unreadable {
                span,
                because: "its arithmetic cannot be parsed".to_owned(),
            });
        };
        let mut atoms = Vec::new();
        for piece in &pieces {
            match &piece.kind {
                // It would be expanded when the text is evaluated once more.
                PieceKind::Escaped('$' | '`') => self.evaluates_unknown(span),
                PieceKind::Text(_) | PieceKind::Escaped(_) => self.piece(piece, place, true, &mut atoms)?,
                _ => self.operand(piece, place, &mut atoms)?,
            }
        }
        self.evaluates(&joined(atoms), text, span)
    }

    /// Follows an operand of `[[ … -eq … ]]`, which is evaluated once its quotes are gone.
    pub(super) fn arithmetic_operand(&mut self, word: &tree::Word, place: Place) -> Result<(), Unreadable> {
        let text = word.value.as_str();
        let Ok(pieces) = pieces(text) else {
            return self.arithmetic(text, place);
        };
        if !self.cannot_fail(text) {
            self.defined.may_give_up();
        }
        self.reads(text)?;
        let mut atoms = Vec::new();
        self.unquoted_operand(&pieces, place, &mut atoms)?;
        self.evaluates(&joined(atoms), "", place.span(0, text.len()))
    }

    fn unquoted_operand(&mut self, pieces: &[Piece], place: Place, atoms: &mut Vec<Atom>) -> Result<(), Unreadable> {
        for piece in pieces {
            match &piece.kind {
                PieceKind::Text(plain) => atoms.push(Atom::Text(plain.clone())),
                PieceKind::DoubleQuoted(inner) => self.unquoted_operand(inner, place, atoms)?,
                PieceKind::SingleQuoted(_) | PieceKind::AnsiC(_) | PieceKind::Escaped(_) => {
                    self.piece(piece, place, true, atoms)?
                }
                _ => self.operand(piece, place, atoms)?,
            }
        }
        Ok(())
    }

    /// Follows what evaluating an expression can run. `text` is what its pieces were expanded from.
    fn evaluates(&mut self, atoms: &[Atom], text: &str, span: Span) -> Result<(), Unreadable> {
        if atoms.iter().any(|atom| matches!(atom, Atom::OneOf(_))) {
            let word = Word {
                atoms: atoms.into(),
                ..Word::text("", span)
            };
            let Some(alternatives) = word.alternatives(MAX_EXPRESSIONS) else {
                self.evaluates_unknown(span);
                return Ok(());
            };
            return alternatives
                .iter()
                .try_for_each(|one| self.evaluates(&one.atoms, text, span));
        }
        // A number that is not known may be nothing, so that what stands around it is put together.
        let mut expressions = vec![String::new()];
        for atom in atoms {
            match atom {
                Atom::Text(part) => expressions.iter_mut().for_each(|expression| expression.push_str(part)),
                Atom::Hidden(Hidden::Number)
                    if expressions.len() <= MAX_EXPRESSIONS && !expressions.iter().any(|before| takes_in(before)) =>
                {
                    let apart: Vec<_> = expressions.iter().map(|before| format!("{before} ")).collect();
                    expressions.extend(apart);
                }
                // A file may have any name, and a number may be a part of one.
                Atom::One | Atom::Star | Atom::Found | Atom::Here | Atom::Hidden(_) | Atom::OneOf(_) => {
                    self.evaluates_unknown(span);
                    expressions.truncate(1);
                    expressions.iter_mut().for_each(|expression| expression.push(' '));
                }
            }
        }
        expressions
            .iter()
            .try_for_each(|expression| self.expression(expression, text, span))
    }

    fn expression(&mut self, expression: &str, text: &str, span: Span) -> Result<(), Unreadable> {
        self.names(expression, span)?;
        // Quotes that a value brings stay, and those of the text go, with what joins its lines.
        let plain: String = expression
            .replace("\\\n", "")
            .chars()
            .filter(|letter| !matches!(letter, '"' | '\'' | '\\'))
            .collect();
        if plain.contains(['$', '`']) && plain != text {
            self.deeper(|reader| reader.arithmetic(&plain, Place::Within(span)))
        } else if plain != expression {
            self.names(&plain, span)
        } else {
            Ok(())
        }
    }

    /// Whether evaluating this is no error: sums and products of numbers, and of variables that are numbers.
    fn cannot_fail(&mut self, text: &str) -> bool {
        let decimal = |text: &str| {
            text == "0"
                || text.starts_with(|digit: char| ('1'..='9').contains(&digit))
                    && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let sum = match text.split_once('=') {
            Some((name, rest)) if crate::syntax::is_name(name.trim().trim_end_matches(['+', '-'])) => rest,
            _ => text,
        };
        let sum = sum.trim();
        let sum = sum.strip_suffix("++").or_else(|| sum.strip_suffix("--")).unwrap_or(sum);
        sum.split(['+', '-', '*']).map(str::trim).all(|operand| {
            decimal(operand)
                || crate::syntax::is_name(operand)
                    && self.lookup(operand).is_some_and(|values| {
                        values.iter().all(|value| match value.as_slice() {
                            [Atom::Text(text)] => decimal(text),
                            [Atom::Hidden(Hidden::Number)] | [] => true,
                            _ => false,
                        })
                    })
        })
    }

    /// Records that arithmetic gives a variable a value, if it is no more than that: `i=0`, `i++`.
    pub(super) fn given_a_number(&mut self, expression: &str) {
        let expression = expression.trim();
        let end = expression.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let (name, rest) = expression.split_at(end.unwrap_or(expression.len()));
        if !self.may_abort() && crate::syntax::is_name(name) && assigns(rest) && self.cannot_fail(expression) {
            self.defined.assigned(name);
        }
    }

    /// An operand of arithmetic that is itself expanded first.
    fn operand(&mut self, piece: &Piece, place: Place, atoms: &mut Vec<Atom>) -> Result<(), Unreadable> {
        let mut expanded = Vec::new();
        self.piece(piece, place, true, &mut expanded)?;
        if let PieceKind::Parameter(expansion) = &piece.kind
            && !expansion.indirect
            && expansion.operation == Operation::Value
            && let Parameter::Named(name) | Parameter::Element { name, .. } = &expansion.parameter
        {
            let is_digits = matches!(&expansion.parameter, Parameter::Element { name, subscript } if self.matched_digits(name, subscript));
            if !is_digits && crate::variables::set_by_the_shell(name) {
                // Whatever the text assigns to it, the shell does so too.
                self.evaluates_unknown(place.span(piece.start, piece.end));
            }
            // One that the text does not assign is what whoever started the shell made it.
            expanded = match self.lookup(name) {
                Some(values) if !is_digits => vec![Atom::OneOf(values)],
                Some(_) | None => vec![Atom::Hidden(Hidden::Number)],
            };
        }
        atoms.extend(expanded);
        Ok(())
    }

    /// The names in plain arithmetic text: each one's value is evaluated, or assigned to.
    fn names(&mut self, text: &str, span: Span) -> Result<(), Unreadable> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if byte.is_ascii_digit() {
                // Numbers, with their bases and digits: `0x1f`, `16#ff`.
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'#' | b'@' | b'_'))
                {
                    at += 1;
                }
            } else if byte.is_ascii_alphabetic() || byte == b'_' {
                let start = at;
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                    at += 1;
                }
                let name = &text[start..at];
                let subscript = text[at..].strip_prefix('[').and_then(|rest| rest.split_once(']'));
                if !subscript.is_some_and(|(subscript, _)| self.matched_digits(name, subscript)) {
                    self.evaluated(name, span)?;
                }
                if assigns(&text[at..])
                    || text[..start].trim_end().ends_with("++")
                    || text[..start].trim_end().ends_with("--")
                {
                    self.assign(name, vec![Atom::Hidden(Hidden::Number)], span)?;
                }
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Whether this is a group of a match (`BASH_REMATCH[1]`), where each group of each regular expression of the text
    /// matches digits alone.
    fn matched_digits(&mut self, name: &str, subscript: &str) -> bool {
        name == MATCHED
            && is_group(subscript)
            && self.lookup(name).is_some_and(|values| {
                values
                    .iter()
                    .all(|value| matches!(value.as_slice(), [Atom::Hidden(Hidden::Number)]))
            })
    }

    /// Records what the groups of a regular expression can match.
    pub(super) fn matches(&mut self, expression: &str) {
        let mut groups = expression.split('(').skip(1);
        let digits = groups.all(|group| {
            let rest = ["[0-9]", "[[:digit:]]"]
                .iter()
                .find_map(|class| group.strip_prefix(class));
            let rest = rest.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || "+*?{},".contains(c)));
            rest.is_some_and(|rest| rest.starts_with(')'))
        });
        let plain = expression.strip_suffix('$').unwrap_or(expression).replace("\\.", ".");
        let unknown = plain.contains(['$', '`', '\\', '\'', '"']);
        let class = if digits && !unknown {
            Hidden::Number
        } else {
            Hidden::Anything
        };
        self.found.assign(MATCHED, vec![Atom::Hidden(class)]);
    }

    /// Follows what evaluating this variable as arithmetic can run.
    pub(super) fn evaluated(&mut self, name: &str, span: Span) -> Result<(), Unreadable> {
        if crate::variables::set_by_the_shell(name) {
            // Whatever the text assigns to it, the shell does so too.
            self.evaluates_unknown(span);
        }
        let Some(values) = self.lookup(name) else { return Ok(()) };
        if self.evaluating.iter().any(|outer| outer == name) {
            // Its values are being followed already.
            return Ok(());
        }
        if self.evaluating.len() > 8 {
            self.evaluates_unknown(span);
            return Ok(());
        }
        self.evaluating.push(name.to_owned());
        let result = values.iter().try_for_each(|value| self.evaluated_atoms(value, span));
        self.evaluating.pop();
        result
    }

    pub(super) fn evaluated_atoms(&mut self, atoms: &[Atom], span: Span) -> Result<(), Unreadable> {
        if let [Atom::Text(text)] = atoms {
            let is_number = text
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b' '));
            return if is_number {
                Ok(())
            } else {
                self.deeper(|reader| reader.arithmetic(text, Place::Within(span)))
            };
        }
        self.evaluates(atoms, "", span)
    }

    fn evaluates_unknown(&mut self, span: Span) {
        // Once for an expression, of which each name may be such a value.
        if self.evaluated_unknown.replace(span) == Some(span) {
            return;
        }
        let object = self.written(span);
        self.doubt(
            Doubt::Launch,
            object,
            "a value that the text does not show is evaluated as arithmetic, which can run commands",
            span,
            None,
        );
    }
}

/// How many expressions the values of its variables may make of one.
const MAX_EXPRESSIONS: usize = 128;

/// Whether an expression ends so that a number behind it is a part of a name, or is expanded once more.
fn takes_in(expression: &str) -> bool {
    let word = expression
        .rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .next()
        .unwrap_or_default();
    word.starts_with(|letter: char| !letter.is_ascii_digit()) || expression.ends_with(['$', '{', '\\'])
}

/// Where bash keeps what a regular expression matched.
pub(super) const MATCHED: &str = "BASH_REMATCH";

/// Whether what follows a name assigns to it.
fn assigns(rest: &str) -> bool {
    let mut rest = rest.trim_start();
    // Step over a subscript.
    if rest.starts_with('[') {
        rest = rest.find(']').map_or("", |end| rest[end + 1..].trim_start());
    }
    if rest.starts_with("++") || rest.starts_with("--") {
        return true;
    }
    let operator = rest.find(|c| !"*/%+-<>&^|=".contains(c)).unwrap_or(rest.len());
    let operator = &rest[..operator];
    matches!(
        operator,
        "=" | "*=" | "/=" | "%=" | "+=" | "-=" | "<<=" | ">>=" | "&=" | "^=" | "|="
    ) || (operator.starts_with('=') && !operator.starts_with("=="))
}

/// Whether a subscript of it names a group, and not the whole match.
pub(super) fn is_group(subscript: &str) -> bool {
    matches!(subscript.as_bytes(), [b'1'..=b'9'])
}
