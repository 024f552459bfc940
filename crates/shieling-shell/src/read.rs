//! Reads a text whole: the reader and the programs that it meets, walked until the values of variables are settled.

use crate::carried::CarriedState;
use crate::program;
use crate::reader::{Programs, read_to_fixpoint};
use crate::reading::{FileNames, Reading};
use crate::screen::{self, Unreadable};

/// What the reader is given to read the arguments of programs.
pub(crate) const PROGRAMS: Programs = Programs {
    apply: program::apply,
    special: program::special,
    code: program::code,
};

/// Reads a text that runs in a new shell.
///
/// # Errors
/// [`Unreadable`] if the text cannot be parsed, exceeds a limit or contains concealing characters.
pub fn read(text: &str) -> Result<Reading, Unreadable> {
    read_after(text, &CarriedState::default(), FileNames::Any)
}

/// Reads a text that runs in a shell with this state, where this is known of the file names that it uses.
///
/// # Errors
/// As [`read`].
pub fn read_after(text: &str, before: &CarriedState, names: FileNames) -> Result<Reading, Unreadable> {
    screen::screen(text)?;
    // What is ours may have faults too: a panic in it is an answer about the text, not our end.
    std::panic::catch_unwind(|| read_to_fixpoint(PROGRAMS, text, before, names))
        .unwrap_or_else(|_| Err(Unreadable::whole(text, "the parser failed on it")))
}

impl CarriedState {
    /// Returns the state after a further text. After a text that cannot be read, variables can have any value.
    #[must_use]
    pub fn after(&self, text: &str) -> Self {
        match read_after(text, self, FileNames::Any) {
            Ok(reading) => reading.left,
            Err(_) => self.after_anything(),
        }
    }
}
