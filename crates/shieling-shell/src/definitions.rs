//! What a text defines that later texts of the same shell run: functions, aliases and traps.

use std::collections::{BTreeMap, BTreeSet};

/// How many bytes of definitions a shell's state keeps.
const BYTES: usize = 64 * 1024;

/// The texts of all that was defined at any time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Definitions {
    functions: BTreeMap<String, BTreeSet<String>>,
    aliases: BTreeMap<String, BTreeSet<String>>,
    traps: BTreeSet<String>,
    bytes: usize,
}

impl Definitions {
    /// Keeps the body of a function. False if there is no room for it.
    #[must_use]
    pub(crate) fn function(&mut self, name: &str, body: &str) -> bool {
        let known = self.functions.get(name).is_some_and(|bodies| bodies.contains(body));
        known || self.has_room(name.len() + body.len()) && insert(&mut self.functions, name, body)
    }

    /// Keeps what an alias stands for. False if there is no room for it.
    #[must_use]
    pub(crate) fn alias(&mut self, name: &str, value: &str) -> bool {
        let known = self.aliases.get(name).is_some_and(|values| values.contains(value));
        known || self.has_room(name.len() + value.len()) && insert(&mut self.aliases, name, value)
    }

    /// Keeps the text of a trap. False if there is no room for it.
    #[must_use]
    pub(crate) fn trap(&mut self, text: &str) -> bool {
        self.traps.contains(text) || self.has_room(text.len()) && self.traps.insert(text.to_owned())
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.bytes + bytes <= BYTES;
        self.bytes += if has_room { bytes } else { 0 };
        has_room
    }

    /// Returns whether a function of this name is kept.
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Returns whether an alias of this name is kept.
    pub(crate) fn has_alias(&self, name: &str) -> bool {
        self.aliases.contains_key(name)
    }

    /// Returns the bodies of a function.
    pub(crate) fn bodies(&self, name: &str) -> impl Iterator<Item = &str> {
        self.functions.get(name).into_iter().flatten().map(String::as_str)
    }

    /// Returns what an alias can stand for.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.aliases.get(name).into_iter().flatten().map(String::as_str)
    }

    /// Returns the texts of traps.
    pub(crate) fn traps(&self) -> impl Iterator<Item = &str> {
        self.traps.iter().map(String::as_str)
    }

    /// Returns whether these hold all aliases of the others.
    pub(crate) fn cover_aliases(&self, others: &Self) -> bool {
        let known = |(name, values): (&String, &BTreeSet<String>)| {
            self.aliases.get(name).is_some_and(|known| values.is_subset(known))
        };
        others.aliases.iter().all(known)
    }
}

fn insert(all: &mut BTreeMap<String, BTreeSet<String>>, name: &str, text: &str) -> bool {
    all.entry(name.to_owned()).or_default().insert(text.to_owned())
}
