//! Commands, as they are launched.

use crate::program::Program;
use crate::span::Span;
use crate::word::Word;

/// A command that is about to be launched.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) argv: Vec<Word>,
    pub(crate) span: Span,
    /// Whether a function of the text may be meant.
    pub(crate) functions: bool,
    /// Whether arguments follow that are not in the text.
    pub(crate) more: bool,
}

/// A command whose program is known, with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Which of the commands it is.
    pub(crate) index: usize,
    pub(crate) name: String,
    /// What its table says of it.
    pub(crate) program: Option<&'static Program>,
    pub(crate) span: Span,
    pub(crate) more: bool,
    pub(crate) args: Vec<Word>,
}

/// Whether this program runs shell text that reads as bash.
pub fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash" | "dash" | "ash" | "rbash" | "ksh" | "mksh" | "lksh" | "zsh"
    )
}
