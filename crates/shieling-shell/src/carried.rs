//! Shell state that later texts in the same shell start with: the possible values of its variables, its functions,
//! how it splits words and what its wildcards match.
//!
//! It errs on the side of too much: a value that was once possible is never forgotten.

use crate::variables::Variables;

/// How many names, and bytes of values, are kept apart. Beyond it any variable can have any value.
const NAMES: usize = 1_000;
const BYTES: usize = 256 * 1024;

/// The state of a shell after the texts that ran in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CarriedState {
    variables: Variables,
    /// Whether any text ran.
    begun: bool,
}

impl CarriedState {
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

    /// The state after a text that cannot be read: variables can have any value.
    pub(crate) fn after_anything(&self) -> Self {
        let mut variables = self.variables.clone();
        variables.forget_names();
        Self { variables, begun: true }
    }
}
