//! Which row of the table of tools a path belongs to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::contents::fits;
use crate::row::{Judge, Row, Scope};
use crate::tools;

/// Where the user's home is.
#[derive(Debug)]
pub(crate) enum Home {
    /// Elsewhere.
    Elsewhere,
    /// In the tree, at this path.
    Below(PathBuf),
    /// Above the tree, whose root is at this path in it.
    Above(PathBuf),
}

impl Home {
    pub(crate) fn of(root: &Path, home: Option<&Path>) -> Self {
        match home {
            Some(home) if home.starts_with(root) => Self::Below(home.strip_prefix(root).unwrap_or(home).to_path_buf()),
            Some(home) if root.starts_with(home) => Self::Above(root.strip_prefix(home).unwrap_or(root).to_path_buf()),
            Some(_) | None => Self::Elsewhere,
        }
    }
}

/// Where a path stands: in the tree, and in the user's home.
#[derive(Clone, Copy)]
pub(crate) struct Spelled<'a> {
    /// Relative to the root of the tree.
    pub(crate) path: &'a Path,
    /// The directories among packages that are opened as a folder, in which it lies.
    pub(crate) opened: &'a [PathBuf],
    pub(crate) home: &'a Home,
    /// Whether something stood there before all changes.
    pub(crate) was_there: &'a dyn Fn() -> bool,
}

impl<'a> Spelled<'a> {
    fn names(&self) -> Vec<&'a str> {
        names(self.path).collect()
    }

    /// Whether it lies in packages that nobody opens.
    fn is_packaged(&self) -> bool {
        let below = |folder: &PathBuf| self.path.strip_prefix(folder).map_or(true, in_packages);
        in_packages(self.path) && self.opened.iter().all(below)
    }

    /// The names from the home on, if it lies in it.
    fn names_in_home(&self) -> Option<Vec<&'a str>> {
        match self.home {
            Home::Elsewhere => None,
            Home::Below(home) => self.path.strip_prefix(home).ok().map(|path| names(path).collect()),
            Home::Above(root) => Some(names(root).chain(names(self.path)).collect()),
        }
    }
}

/// The names of a path. One that is no text fits no name of the table, but `*`.
fn names(path: &Path) -> impl Iterator<Item = &str> {
    path.iter().map(|name| name.to_str().unwrap_or("\u{fffd}"))
}

/// The rows that a path in a directory can have by the names of the directory, and of the home above the tree.
pub(crate) fn rows_of_directory(directory: &Path, home: &Home) -> Vec<usize> {
    let above = match home {
        Home::Above(root) => root.as_path(),
        Home::Elsewhere | Home::Below(_) => Path::new(""),
    };
    names(above).chain(names(directory)).flat_map(rows_of_name).collect()
}

fn rows_of_name(name: &str) -> impl Iterator<Item = usize> {
    let index = index();
    let exact = index.exact.get(name).into_iter().flatten().copied();
    let patterns = index.patterns.iter().filter(move |(_, pattern)| fits(pattern, name));
    exact.chain(patterns.map(|(number, _)| *number))
}

/// The row of a path, if it has one. `above` is what [`rows_of_directory`] gives for the directory in which it is.
pub(crate) fn row(spelled: Spelled<'_>, above: &[usize]) -> Option<&'static Row> {
    let last = spelled.path.file_name().and_then(|name| name.to_str());
    let mut found: Vec<usize> = last.into_iter().flat_map(rows_of_name).collect();
    found.extend_from_slice(above);
    if found.is_empty() {
        return None;
    }
    found.sort_unstable();
    let rows = found.into_iter().filter_map(|number| index().rows.get(number).copied());
    rows.into_iter()
        .find(|row| means(row, spelled, &|pattern, names| fits_names(pattern, names)))
}

/// Whether a path is a directory that tools look into for a file of the table.
pub(crate) fn leads_to_row(spelled: Spelled<'_>) -> bool {
    let mut judged = tools::rows().filter(|row| !matches!(row.judge, Judge::Pass | Judge::HoldIfThere));
    judged.any(|row| {
        means(row, spelled, &|pattern, names| {
            let mut above = pattern;
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

fn means(row: &Row, spelled: Spelled<'_>, fits: &dyn Fn(&'static str, &[&str]) -> bool) -> bool {
    let fits_some = |names: &[&str]| row.names.iter().any(|pattern| fits(pattern, names));
    let end = || {
        let names = spelled.names();
        (0..names.len()).any(|from| names.get(from..).is_some_and(fits_some))
    };
    let in_home = || spelled.names_in_home().is_some_and(|names| fits_some(&names));
    match row.scope {
        Scope::Anywhere => end(),
        Scope::Project => !spelled.is_packaged() && end(),
        Scope::StartUp => in_home() || fits_some(&spelled.names()) && (spelled.was_there)(),
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

/// Whether a directory is one into which package managers unpack, or lies in one.
pub(crate) fn is_packages(directory: &Path) -> bool {
    in_packages(&directory.join("x"))
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
    /// All rows, by their number.
    rows: Vec<&'static Row>,
    exact: HashMap<&'static str, Vec<usize>>,
    /// Rows with a pattern that begins with one for several names.
    patterns: Vec<(usize, &'static str)>,
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index {
            rows: tools::rows().collect(),
            exact: HashMap::new(),
            patterns: Vec::new(),
        };
        for (number, row) in tools::rows().enumerate() {
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
