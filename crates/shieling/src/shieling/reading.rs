//! Variables that keep programs which only read from writing on the way.
//!
//! `git status` and `git diff` refresh the index of the repository while they read, npm writes a log of each command,
//! and pip notes when it looked for a newer pip. Where nothing may change and the environment does not enforce it, they
//! are told not to. Whoever sets `GIT_CONFIG_COUNT` keeps all of their own settings.

use crate::request::Command;

const GIT_LOCKS: &str = "GIT_OPTIONAL_LOCKS";
const GIT_COUNT: &str = "GIT_CONFIG_COUNT";
/// Sources: "logs-max" and "update-notifier" in npm's configuration, "--disable-pip-version-check" in pip's.
const OTHERS: [(&str, &str); 3] = [
    ("NPM_CONFIG_LOGS_MAX", "0"),
    ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
];

/// The command, with its programs told to leave the index and their own notes alone.
pub(super) fn only(command: Command) -> Command {
    let mut variables = command.variables().clone();
    let next: usize = variables
        .get(GIT_COUNT)
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    variables.insert(GIT_LOCKS.to_owned(), "0".to_owned());
    variables.insert(format!("GIT_CONFIG_KEY_{next}"), "diff.autoRefreshIndex".to_owned());
    variables.insert(format!("GIT_CONFIG_VALUE_{next}"), "false".to_owned());
    variables.insert(GIT_COUNT.to_owned(), (next + 1).to_string());
    variables.extend(OTHERS.map(|(name, value)| (name.to_owned(), value.to_owned())));
    command.with_variables(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_there_stay() {
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mine = [
            set(GIT_COUNT, "1"),
            set("GIT_CONFIG_KEY_0", "a.b"),
            set("GIT_CONFIG_VALUE_0", "c"),
        ];
        let command = Command::new("git diff", "/")
            .expect("a command")
            .with_variables(mine.into());
        let told: Vec<_> = only(command)
            .variables()
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let expected = [
            "GIT_CONFIG_COUNT=2",
            "GIT_CONFIG_KEY_0=a.b",
            "GIT_CONFIG_KEY_1=diff.autoRefreshIndex",
            "GIT_CONFIG_VALUE_0=c",
            "GIT_CONFIG_VALUE_1=false",
            "GIT_OPTIONAL_LOCKS=0",
            "NPM_CONFIG_LOGS_MAX=0",
            "NPM_CONFIG_UPDATE_NOTIFIER=false",
            "PIP_DISABLE_PIP_VERSION_CHECK=1",
        ];
        assert_eq!(told, expected);
    }
}
