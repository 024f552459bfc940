//! Which row of the table of tools a path belongs to.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::OnceLock;

use crate::contents::fits;
use crate::tools::{Judge, Row, Scope, TABLE};

/// Where a path stands: in the tree, and in the user's home.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spelled<'a> {
    /// Relative to the root of the tree.
    pub(crate) path: &'a Path,
    /// Relative to the home, if it lies in it.
    pub(crate) in_home: Option<&'a Path>,
    /// Whether something stood there before all changes.
    pub(crate) was_there: bool,
}

/// The row of a path, if it has one.
pub(crate) fn row(spelled: Spelled<'_>) -> Option<&'static Row> {
    let Spelled { path, in_home, .. } = spelled;
    let mut found = BTreeSet::new();
    let index = index();
    // A home that holds the tree has names that the path in the tree has not.
    for name in in_home.unwrap_or(path).iter().filter_map(|name| name.to_str()) {
        found.extend(index.exact.get(name).into_iter().flatten().copied());
        let patterns = index.patterns.iter().filter(|(_, pattern)| fits(pattern, name));
        found.extend(patterns.map(|(number, _)| *number));
    }
    let rows = found.into_iter().filter_map(|number| TABLE.get(number));
    rows.into_iter()
        .find(|row| means(row, spelled, &|pattern, names| fits_names(pattern, names)))
}

/// Whether a path is a directory that tools look into for a file of the table.
pub(crate) fn leads_to_row(spelled: Spelled<'_>) -> bool {
    let judged = TABLE
        .iter()
        .filter(|row| !matches!(row.judge, Judge::Pass | Judge::HoldIfThere));
    judged.into_iter().any(|row| {
        means(row, spelled, &|pattern, names| {
            let mut above = *pattern;
            while let Some((directory, _)) = above.rsplit_once('/') {
                if fits_names(directory, names) {
                    return true;
                }
                above = directory;
            }
            false
        })
    })
}

fn means(row: &Row, spelled: Spelled<'_>, fits: &dyn Fn(&&'static str, &[&str]) -> bool) -> bool {
    let names = |path: &Path| -> Vec<String> {
        let name = |name: &std::ffi::OsStr| name.to_str().unwrap_or("\u{fffd}").to_owned();
        path.iter().map(name).collect()
    };
    let fits_some = |names: &[&str]| row.names.iter().any(|pattern| fits(pattern, names));
    let whole = |path: &Path| fits_some(&names(path).iter().map(String::as_str).collect::<Vec<_>>());
    let end = |path: &Path| {
        let names = names(path);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (0..names.len()).any(|from| names.get(from..).is_some_and(fits_some))
    };
    let in_home = || spelled.in_home.is_some_and(whole);
    match row.scope {
        Scope::Anywhere => end(spelled.path),
        Scope::Project => end(spelled.path) && !in_packages(spelled.path),
        Scope::StartUp => in_home() || spelled.was_there && whole(spelled.path),
        Scope::Home => in_home(),
    }
}

/// Whether names, all of them, fit a pattern of the table.
fn fits_names(pattern: &str, names: &[&str]) -> bool {
    let (above, is_open) = match pattern.strip_suffix("/**") {
        Some(above) => (above, true),
        None => (pattern, false),
    };
    let parts = above.split('/');
    let count = parts.clone().count();
    let right = if is_open {
        names.len() > count
    } else {
        names.len() == count
    };
    right && parts.zip(names).all(|(part, name)| fits(part, name))
}

/// Whether a path lies in a directory into which package managers unpack.
fn in_packages(path: &Path) -> bool {
    const PACKAGES: [&str; 5] = [
        "node_modules",
        "site-packages",
        "dist-packages",
        "bower_components",
        "vendor",
    ];
    let mut above = path.iter();
    above.next_back();
    above.any(|name| PACKAGES.iter().any(|packages| name == *packages))
}

/// The table, by the names with which its patterns begin.
struct Index {
    exact: HashMap<&'static str, Vec<usize>>,
    /// Rows with a pattern that begins with one for several names.
    patterns: Vec<(usize, &'static str)>,
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index {
            exact: HashMap::new(),
            patterns: Vec::new(),
        };
        for (number, row) in TABLE.iter().enumerate() {
            for name in row.names {
                let first = name.split('/').next().unwrap_or_default();
                match first.contains('*') {
                    true => index.patterns.push((number, first)),
                    false => index.exact.entry(first).or_default().push(number),
                }
            }
        }
        index
    })
}
