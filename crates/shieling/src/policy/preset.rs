//! Policies that come with the product.

/// The names of the presets, with one line about each.
pub const PRESETS: &[(&str, &str)] = &[
    ("open", "everything that can be read is allowed"),
    (
        "readonly",
        "nothing may change: files, repository, processes, clock, network",
    ),
    (
        "gaia",
        "the read-only programs and git subcommands of AMD GAIA's ShellToolsMixin, and nothing may change",
    ),
];

/// A preset that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no preset is called `{0}`; there are open, readonly and gaia, and a policy file is given by its path")]
pub struct UnknownPreset(pub String);

/// The programs that GAIA lets run. Source: `shell_tools.py` of GAIA 0.16.
pub(super) const GAIA: &[&str] = &[
    "ls",
    "dir",
    "pwd",
    "cd",
    "cat",
    "head",
    "tail",
    "more",
    "less",
    "grep",
    "find",
    "wc",
    "sort",
    "uniq",
    "diff",
    "file",
    "stat",
    "du",
    "df",
    "whoami",
    "hostname",
    "uname",
    "date",
    "uptime",
    "which",
    "whereis",
    "basename",
    "dirname",
    "echo",
    "printf",
    "ps",
    "top",
    "jobs",
    "git status",
    "git log",
    "git show",
    "git diff",
    "git branch",
    "git remote",
    "git ls-files",
    "git ls-tree",
    "git describe",
    "git rev-parse",
    "git config",
    "git help",
];

/// What a preset says, written as the settings that say the same in a `shieling.toml`.
pub fn preset_settings(name: &str) -> Option<String> {
    let (_, means) = PRESETS.iter().find(|(known, _)| *known == name)?;
    let mut text = format!("# {name}: {means}\n");
    match name {
        "readonly" => text.push_str("readonly = true\n"),
        "gaia" => {
            text.push_str("readonly = true\nallow = [\n");
            GAIA.iter()
                .for_each(|entry| text.push_str(&format!("    \"{entry}\",\n")));
            text.push_str("]\n");
        }
        _ => {}
    }
    Some(text)
}
