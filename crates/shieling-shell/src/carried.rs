//! What texts leave behind in a shell for those that run after them in it: the values that its variables
//! can have, its functions, how it splits words and what its wildcards match.
//!
//! As a reading does, it errs on the side of too much: nothing that was once possible is forgotten.

use crate::variables::Variables;

/// How many names, and bytes of values, are kept apart. Beyond it any variable can have any value.
const NAMES: usize = 1_000;
const BYTES: usize = 256 * 1024;

/// What may have been left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    variables: Variables,
    /// Whether anything ran.
    begun: bool,
}

impl Left {
    pub(crate) fn variables(&self) -> &Variables {
        &self.variables
    }

    /// What a text leaves that can set these variables.
    pub(crate) fn by(mut variables: Variables, splits_otherwise: bool) -> Self {
        variables.splits_otherwise = splits_otherwise;
        let (names, bytes) = variables.weight();
        if names > NAMES || bytes > BYTES {
            variables.forget_names();
        }
        Self { variables, begun: true }
    }

    /// What there is after this text, too. One that cannot be read can leave anything.
    #[must_use]
    pub fn after(&self, text: &str) -> Self {
        match crate::reader::read_after(text, self) {
            Ok(reading) => reading.left,
            Err(_) => {
                let mut variables = self.variables.clone();
                variables.forget_names();
                Self { variables, begun: true }
            }
        }
    }
}
