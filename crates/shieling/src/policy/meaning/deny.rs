//! Deny list: everything passes but the commands that an entry names, however they are spelled.

use super::Finding;
use crate::policy::program::{self, Normal, normal};
use crate::policy::script::{Deed, Doubt, Invocation, Reading, is_shell};
use crate::policy::verdict::Decision::{Ask, Deny};
use crate::policy::verdict::Span;
use crate::policy::word::{Known, Word};

/// An entry, taken apart once.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Entry {
    pub(in crate::policy) tokens: Vec<String>,
    normal: Normal,
}

impl Entry {
    pub(in crate::policy) fn new(tokens: Vec<String>) -> Self {
        let words: Vec<Word> = tokens
            .iter()
            .skip(1)
            .map(|token| Word::text(token.clone(), Span::default()))
            .collect();
        let program = tokens
            .first()
            .map(|name| name.rsplit('/').next().unwrap_or_default().to_owned())
            .unwrap_or_default();
        let normal = normal(&program, &words, false);
        Self { tokens, normal }
    }

    /// Where a program that nobody described is given this entry's command as arguments, and so may
    /// well start it, as wrappers do.
    fn started_by_unknown(&self, command: &Invocation) -> Option<Span> {
        let name = command.argv.first()?.known()?;
        if name.contains('/') || !program::is_opaque(&name) || is_shell(&name) {
            return None;
        }
        let program = self.tokens.first()?.rsplit('/').next()?.to_owned();
        (1..command.argv.len()).find_map(|at| {
            let word = &command.argv[at];
            let text = word.known()?;
            let starts = text.rsplit('/').next() == Some(program.as_str());
            let inner = command.argv[at - 1]
                .known()
                .is_some_and(|option| matches!(option.as_ref(), "-c" | "-e" | "-x" | "--command" | "--exec"))
                && text
                    .split(|c: char| c.is_whitespace() || ";&|()`".contains(c))
                    .any(|part| part.rsplit('/').next() == Some(program.as_str()));
            let matched =
                starts && normal(&program, &command.argv[at + 1..], command.more).is(&self.normal) != Known::No;
            (matched || inner).then_some(word.span)
        })
    }

    /// Whether a command is what this entry names.
    pub(in crate::policy) fn matches(&self, command: &Invocation) -> Known {
        let Some(program) = command.program() else {
            return Known::Maybe;
        };
        normal(&program, &command.argv[1..], command.more).is(&self.normal)
    }
}

pub(in crate::policy) fn judge(reading: &Reading, entries: &[Entry]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if entries.is_empty() {
        return findings;
    }
    for command in &reading.commands {
        for entry in entries {
            let named = entry.tokens.join(" ");
            match entry.matches(command) {
                Known::Yes => findings.push(Finding::new(
                    Deny,
                    command.shown(),
                    command.span,
                    format!("`{named}` is denied"),
                )),
                // A name that is not known at all has a doubt of its own.
                Known::Maybe if command.program().is_some() => {
                    findings.push(Finding::new(
                        Ask,
                        command.shown(),
                        command.span,
                        format!("it could turn out to be `{named}`, which is denied"),
                    ));
                }
                Known::Maybe | Known::No => {
                    if let Some(word) = entry.started_by_unknown(command) {
                        let because =
                            format!("what this program does is not known, and it is given `{named}`, which is denied");
                        findings.push(Finding::new(Ask, command.shown(), word, because));
                    }
                }
            }
        }
    }
    for effect in &reading.effects {
        match &effect.deed {
            Deed::Doubt(Doubt::Launch | Doubt::Setting, because) => {
                findings.push(Finding::new(Ask, effect.object.clone(), effect.span, because.clone()))
            }
            Deed::Reads(_)
            | Deed::Names(_)
            | Deed::Writes(_)
            | Deed::Revision(_)
            | Deed::Changes(_)
            | Deed::RunsFile(_)
            | Deed::Code(_)
            | Deed::MaybeOption(..)
            | Deed::Network(_)
            | Deed::Doubt(Doubt::Program | Doubt::Argument | Doubt::Variable | Doubt::Delegate, _) => {}
        }
    }
    findings
}
