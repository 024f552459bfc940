//! The four meanings that a policy can have: readonly, allow list, deny list, ignore list.
//!
//! Each looks at a [`Reading`](shieling_shell::Reading) and finds what speaks against it.

pub(super) mod allow;
pub(super) mod deny;
pub(super) mod ignore;
pub(super) mod paths;
pub(super) mod readonly;

use shieling_shell::{Fields, Span, Word};

use super::verdict::Decision;

/// Something that speaks against simply allowing a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) decision: Decision,
    pub(super) object: String,
    pub(super) span: Option<Span>,
    pub(super) because: String,
    pub(super) instead: Option<String>,
}

impl Finding {
    pub(super) fn new(decision: Decision, object: impl Into<String>, span: Span, because: impl Into<String>) -> Self {
        Self {
            decision,
            object: object.into(),
            span: Some(span),
            because: because.into(),
            instead: None,
        }
    }

    pub(super) fn instead(mut self, instead: impl Into<String>) -> Self {
        self.instead = Some(instead.into());
        self
    }
}

/// Whether a word stands for the names that another program prints, which quotes would make one: `$(find …)`, or what
/// `xargs` is fed.
fn found_by_another(word: &Word) -> bool {
    let written = word.written.trim_start_matches('"');
    !written.contains(['$', '`'])
        || ["$(find ", "$(git ls-files", "$(ls "]
            .iter()
            .any(|start| written.starts_with(start))
}

/// What to write in place of a word that could turn out to be an option.
fn not_an_option(word: &Word) -> &'static str {
    match word.fields {
        Fields::Any if found_by_another(word) => "use `find … -exec … {} +`, which puts `./` before each name",
        Fields::Spread => "write its words out, with `--` or `./` before them",
        Fields::Any => "put it in double quotes, which keep it one word, and `--` or `./` before it",
        Fields::One | Fields::Glob => "put `--` or `./` before it",
    }
}
