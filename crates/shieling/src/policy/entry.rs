//! Entries of the lists that a policy is given: commands, by their first words.

use shieling_shell::Via;

/// An entry of an allow or deny list that names no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` names no command: {because}")]
pub struct EntryError {
    /// The entry.
    pub entry: String,
    /// What is wrong with it.
    pub because: &'static str,
}

/// The words of each entry of a list.
pub(super) fn tokens<S: AsRef<str>>(entries: &[S]) -> Result<Vec<Vec<String>>, EntryError> {
    entries
        .iter()
        .map(|entry| {
            let entry = entry.as_ref();
            let error = |because| EntryError {
                entry: entry.to_owned(),
                because,
            };
            let reading = shieling_shell::read(entry).map_err(|_| error("it cannot be read as one command"))?;
            if reading.commands.len() > 1 || entry.contains(['$', '`', '(', '<', '>']) {
                return Err(error("it is more than the words of one command"));
            }
            let words: Vec<String> = match reading.commands.as_slice() {
                _ if entry.trim().is_empty() => return Err(error("it is empty")),
                [] => return Err(error("there is no command in it")),
                [first, ..] => first
                    .argv
                    .iter()
                    .map(|word| word.known().map(String::from))
                    .collect::<Option<_>>()
                    .ok_or(error("not all of it is plain words"))?,
            };
            if reading
                .effects
                .iter()
                .any(|effect| matches!(effect.via, Via::Redirection | Via::Assignment))
                || entry.contains([';', '|', '&', '\n'])
            {
                return Err(error("it is more than the words of one command"));
            }
            Ok(words)
        })
        .collect()
}
