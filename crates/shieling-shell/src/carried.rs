//! Shell state that later texts in the same shell start with: the possible values of its variables, its functions,
//! how it splits words and what its wildcards match.
//!
//! It errs on the side of too much: a value that was once possible is never forgotten.

use std::collections::BTreeSet;

use crate::syntax;
use crate::syntax::tree::{AndOrList, Command, Item, Separator};
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
    /// What the shell has for certain, unless a text takes it away.
    defined: DefinedNames,
}

/// The names of functions and aliases that a shell has for certain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinedNames {
    pub(crate) functions: BTreeSet<String>,
    pub(crate) aliases: BTreeSet<String>,
}

impl DefinedNames {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.aliases.is_empty()
    }

    /// Adds others.
    pub fn extend(&mut self, others: Self) {
        self.functions.extend(others.functions);
        self.aliases.extend(others.aliases);
    }
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
        Self {
            variables,
            begun: true,
            ..Self::default()
        }
    }

    /// Returns the functions and aliases that a shell in this state has for certain once it has run `text` to its end.
    /// A text that does anything besides defining them has none: whether it comes to them is not followed.
    pub fn defined_by(&self, text: &str) -> DefinedNames {
        let known = &self.variables;
        let mut names = DefinedNames::default();
        if known.may_define("alias") || known.traps_between {
            return names;
        }
        let only_defines = syntax::parse(text).is_ok_and(|program| {
            let mut parts = program.list.0.iter();
            parts.all(|(part, separator)| *separator == Separator::Sequence && names.only_defined_by(part))
        });
        if only_defines { names } else { DefinedNames::default() }
    }

    /// Returns the same for a shell that has these functions and aliases.
    #[must_use]
    pub fn with_defined(mut self, mut names: DefinedNames) -> Self {
        let definitions = &self.variables.definitions;
        names.functions.retain(|name| definitions.has_function(name));
        names.aliases.retain(|name| definitions.has_alias(name));
        self.defined = names;
        self
    }

    pub(crate) fn defined(&self) -> &DefinedNames {
        &self.defined
    }

    /// The state after a text that cannot be read: variables can have any value.
    pub(crate) fn after_anything(&self) -> Self {
        let mut variables = self.variables.clone();
        variables.forget_names();
        Self {
            variables,
            begun: true,
            ..Self::default()
        }
    }
}

impl DefinedNames {
    /// Adds what a command defines. False if it may do anything else.
    fn only_defined_by(&mut self, part: &AndOrList) -> bool {
        let [command] = part.first.seq.as_slice() else {
            return false;
        };
        if !part.additional.is_empty() || part.first.marked || part.first.pattern.is_some() {
            return false;
        }
        match command {
            Command::Function(function) if function.redirects.is_empty() => {
                self.functions.insert(function.name.clone());
                true
            }
            Command::Simple(simple) => {
                let is_alias = simple.name.as_ref().is_some_and(|name| name.value == "alias");
                is_alias && simple.prefix.is_empty() && simple.suffix.iter().all(|item| self.aliased_by(item))
            }
            Command::Function(_) | Command::Compound(..) => false,
        }
    }

    /// Adds what an argument of `alias` defines. False if it may do anything else.
    fn aliased_by(&mut self, item: &Item) -> bool {
        match item {
            Item::Assignment(assignment) => {
                let is_plain = assignment.subscript.is_none() && !assignment.append;
                self.aliases.insert(assignment.name.clone());
                is_plain && !assignment.word.value.contains(['$', '`'])
            }
            Item::Word(_) | Item::Redirect(_) | Item::ProcessSubstitution(..) => false,
        }
    }
}
