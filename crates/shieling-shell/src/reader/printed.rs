//! What commands print, as far as the text tells it: for what they are substituted into, and for what they feed.

use super::Reader;
use crate::program::{self, Printed};
use crate::reading::Invocation;
use crate::word::{Atom, Fields, Word, joined};

/// The text that a command prints, if it is a plain `echo` or `printf` of its words. A plain `sh` has an `echo` of its
/// own, which reads backslashes and knows other options.
pub(super) fn printed_text(command: &Invocation, plain_sh: bool) -> Option<Vec<Word>> {
    let name = command.argv.first()?.known()?;
    let mut rest = &command.argv[1..];
    match name.as_ref() {
        "echo" => {
            while let Some(first) = rest.first().and_then(Word::known)
                && first.len() > 1
                && first
                    .strip_prefix('-')
                    .is_some_and(|flags| flags.bytes().all(|flag| b"neE".contains(&flag)))
            {
                if first.contains('e') || plain_sh && first != "-n" {
                    // Escapes make another text than the one that is written.
                    return None;
                }
                rest = &rest[1..];
            }
            let mut atoms = Vec::new();
            for (index, word) in rest.iter().enumerate() {
                if index > 0 {
                    atoms.push(Atom::Text(" ".to_owned()));
                }
                let escapes = plain_sh && word.known().is_none_or(|text| text.contains('\\'));
                if word.fields != Fields::One || escapes {
                    return None;
                }
                atoms.extend(word.atoms.iter().cloned());
            }
            let first = rest.first()?;
            let span = rest.iter().fold(first.span, |all, word| all.to(word.span));
            Some(vec![Word {
                atoms: joined(atoms).into(),
                fields: Fields::One,
                span,
                written: "".into(),
            }])
        }
        "printf" => {
            let format = rest.first()?;
            let text = format.known()?;
            let rest = &rest[1..];
            match text.as_ref() {
                "%s" | "%s\\n" if rest.iter().all(|word| word.fields == Fields::One) => {
                    let separator = if text.ends_with('n') { "\n" } else { "" };
                    let mut atoms = Vec::new();
                    for word in rest {
                        atoms.extend(word.atoms.iter().cloned());
                        atoms.push(Atom::Text(separator.to_owned()));
                    }
                    Some(vec![Word {
                        atoms: joined(atoms).into(),
                        fields: Fields::One,
                        span: format.span,
                        written: "".into(),
                    }])
                }
                plain if rest.is_empty() && !plain.contains(['%']) && !plain.replace("\\n", "").contains('\\') => {
                    Some(vec![Word::text(plain.replace("\\n", "\n"), format.span)])
                }
                _ => None,
            }
        }
        _ => None,
    }
}

impl Reader<'_> {
    /// Whether a function or an alias may stand for this command, so that it is not known what it prints.
    pub(super) fn may_be_defined(&self, command: &Invocation) -> bool {
        let Some(name) = command.argv.first().and_then(Word::known) else {
            return false;
        };
        self.variables.may_define(&name) || self.found.may_define(&name)
    }

    /// What the commands since `first` print, of which only the last one prints: that it is no more than a number or a
    /// name, if that is known.
    pub(super) fn printed(&self, first: usize) -> Printed {
        match self.reading.commands.get(first..) {
            Some(all) if all.iter().any(|command| self.may_be_defined(command)) => Printed::ANYTHING,
            Some([.., last]) => program::prints(last),
            _ => Printed::ANYTHING,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::reading::Action;

    fn is_doubted(text: &str) -> bool {
        let reading = crate::read(text).expect("it is bash");
        let mut effects = reading.effects.iter();
        effects.any(|effect| matches!(effect.action, Action::Doubt(..)))
    }

    #[test]
    fn a_quoted_mark_in_a_pipeline_makes_no_list_of_it() {
        assert!(!is_doubted("echo $(( $(grep -v 'a;b' f | wc -l) + 1 ))"));
        assert!(is_doubted("echo $(( $(grep -v 'a;b' f; wc -l < f) + 1 ))"));
    }
}
