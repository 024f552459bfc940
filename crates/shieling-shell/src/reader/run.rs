//! Commands, as they are launched.

use crate::program::Program;
use crate::reading::Walk;
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

/// A list of names that a program found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundNames {
    /// Where it found them.
    pub(super) walks: Vec<Walk>,
    /// Whether they are separated by NUL, or by line ends.
    pub(super) by_nul: bool,
    /// Whether each begins with the directory in which it was looked for.
    pub(super) prefixed: bool,
    /// Whether they are of use only if they are plain: otherwise one could be an option.
    pub(super) if_plain: bool,
}

/// That a command is given names which were found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fed {
    /// Whether none of them, as the command is given it, can be an option.
    pub(super) no_options: bool,
}

/// Whether this program runs shell text that reads as bash.
pub fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash" | "dash" | "ash" | "rbash" | "ksh" | "mksh" | "lksh" | "zsh"
    )
}
