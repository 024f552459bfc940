//! Words that name variables, and those that are evaluated as arithmetic.

use super::Reader;
use super::launch::MAX_NAMES;
use super::source::Place;
use crate::reading::Doubt;
use crate::screen::Unreadable;
use crate::span::Span;
use crate::syntax::is_name;
use crate::word::{Atom, Fields, Hidden, Word};

impl Reader<'_> {
    /// A word that names a variable to assign to, perhaps with a subscript.
    pub(crate) fn named(&mut self, word: &Word, value: Vec<Atom>) -> Result<(), Unreadable> {
        match word.known() {
            Some(name) if is_name(&name) => {
                let name = name.into_owned();
                self.assign(&name, value, word.span)
            }
            Some(_) => self.evaluated_word(word, word.span),
            None => match word.alternatives(MAX_NAMES).filter(|all| all.len() > 1) {
                Some(alternatives) => alternatives.iter().try_for_each(|one| self.named(one, value.clone())),
                None => self.evaluated_word(word, word.span),
            },
        }
    }

    /// Words that name variables, each in all of its alternatives where the text shows them.
    pub(crate) fn alternatives(&self, words: &[Word]) -> Vec<Word> {
        let alternatives = |word: &Word| match word.known().is_some() || word.prefix().contains('=') {
            true => vec![word.clone()],
            false => word.alternatives(MAX_NAMES).unwrap_or_else(|| vec![word.clone()]),
        };
        words.iter().flat_map(alternatives).collect()
    }

    /// A word that names a variable, whose subscript is evaluated; it may also be assigned to.
    pub(super) fn evaluated_word(&mut self, word: &Word, span: Span) -> Result<(), Unreadable> {
        match word.known() {
            Some(text) if is_name(&text) => Ok(()),
            Some(text) => match text.split_once('[') {
                Some((name, subscript)) => {
                    let (name, subscript) = (name.to_owned(), subscript.trim_end_matches(']').to_owned());
                    self.arithmetic(&subscript, Place::Within(span))?;
                    self.assign(&name, vec![Atom::Hidden(Hidden::Anything)], span)
                }
                None => Ok(()),
            },
            None if matches!(&*word.atoms, [Atom::Hidden(Hidden::Number)]) => Ok(()),
            None => {
                if let Some(alternatives) = word.alternatives(MAX_NAMES).filter(|all| all.len() > 1) {
                    return alternatives.iter().try_for_each(|one| self.evaluated_word(one, span));
                }
                let object = word.shown();
                self.doubt(
                    Doubt::Launch,
                    object,
                    "it names a variable that the text does not show; a subscript in it is evaluated",
                    span,
                    None,
                );
                Ok(())
            }
        }
    }

    pub(super) fn evaluated_expression(&mut self, word: &Word) -> Result<(), Unreadable> {
        match word.known() {
            Some(text) => {
                let text = text.into_owned();
                self.arithmetic(&text, Place::Within(word.span))
            }
            None if matches!(&*word.atoms, [Atom::Hidden(Hidden::Number)]) => Ok(()),
            None => {
                if word.fields != Fields::One {
                    let object = word.shown();
                    let because = "it is evaluated as arithmetic and the text does not show all of it";
                    self.doubt(Doubt::Launch, object, because, word.span, None);
                }
                // The pieces that are known still tell which names are assigned.
                self.evaluated_atoms(&word.atoms, word.span)
            }
        }
    }
}
