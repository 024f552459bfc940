//! Known sets of hosts (`@python`, …), kept as data files with their sources.

/// The sets: name without `@`, and the file's text.
const SETS: &[(&str, &str)] = &[
    ("debian", include_str!("sets/debian.hosts")),
    ("github", include_str!("sets/github.hosts")),
    ("npm", include_str!("sets/npm.hosts")),
    ("python", include_str!("sets/python.hosts")),
    ("rust", include_str!("sets/rust.hosts")),
];

/// The names of all sets, without `@`.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETS.iter().map(|(name, _)| *name)
}

/// The hosts of a set, each as `NAME[:PORT]`; `None` if there is no such set. `name` is without `@`.
pub(crate) fn hosts(name: &str) -> Option<impl Iterator<Item = &'static str>> {
    let (_, text) = SETS.iter().find(|(known, _)| *known == name)?;
    Some(
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#')),
    )
}
