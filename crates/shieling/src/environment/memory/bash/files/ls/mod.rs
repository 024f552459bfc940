//! `ls`. It prints one name a line, or long lines; columns, colours and patterns of its own it
//! does not have, and refuses.

mod line;

use std::cmp::Ordering;
use std::path::Path;

use self::line::Shown;
use super::options::{Asked, Known, Takes, read};
use super::{Call, said, within};
use crate::environment::Kind;
use crate::environment::memory::tree::{About, Follow, Id};

const KNOWN: &[Known] = &[
    ("all", "a", "all", Takes::Nothing),
    ("almost", "A", "almost-all", Takes::Nothing),
    ("as-is", "f", "", Takes::Nothing),
    ("backups", "B", "ignore-backups", Takes::Nothing),
    ("itself", "d", "directory", Takes::Nothing),
    ("recursive", "R", "recursive", Takes::Nothing),
    ("follow", "L", "dereference", Takes::Nothing),
    ("named", "H", "dereference-command-line", Takes::Nothing),
    ("one", "1", "", Takes::Nothing),
    ("long", "l", "", Takes::Nothing),
    ("no-owner", "g", "", Takes::Nothing),
    ("no-group", "o", "", Takes::Nothing),
    ("bare-group", "G", "no-group", Takes::Nothing),
    ("full-time", "", "full-time", Takes::Nothing),
    ("time-style", "", "time-style", Takes::Value),
    ("human", "h", "human-readable", Takes::Nothing),
    ("blocks", "s", "size", Takes::Nothing),
    ("number", "i", "inode", Takes::Nothing),
    ("reverse", "r", "reverse", Takes::Nothing),
    ("by-time", "t", "", Takes::Nothing),
    ("by-size", "S", "", Takes::Nothing),
    ("by-ending", "X", "", Takes::Nothing),
    ("by-nothing", "U", "", Takes::Nothing),
    ("sort", "", "sort", Takes::Value),
    ("directories-first", "", "group-directories-first", Takes::Nothing),
    ("classify", "F", "", Takes::Nothing),
    ("classify-when", "", "classify", Takes::Maybe),
    ("file-type", "", "file-type", Takes::Nothing),
    ("slash", "p", "", Takes::Nothing),
    ("indicator", "", "indicator-style", Takes::Value),
    ("literal", "N", "literal", Takes::Nothing),
    ("escape", "b", "escape", Takes::Nothing),
    ("quote", "Q", "quote-name", Takes::Nothing),
    ("question", "q", "hide-control-chars", Takes::Nothing),
    ("zero", "", "zero", Takes::Nothing),
    ("color", "", "color", Takes::Maybe),
];

/// By what names are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Name,
    Time,
    Size,
    Ending,
    Nothing,
}

/// Something to list.
struct Item {
    /// As it is shown.
    name: String,
    id: Id,
    about: About,
    /// Where a link leads.
    target: Option<String>,
    /// How many names a directory has for being one, or one for a file.
    links: u64,
}

/// What is asked for.
struct How {
    by: By,
    reverse: bool,
    directories_first: bool,
    /// Whether names with a dot are shown, and `.` and `..`.
    hidden: bool,
    itself: bool,
    backups: bool,
    recursive: bool,
    named: Follow,
    below: Follow,
    shown: Shown,
}

pub(super) fn run(call: &mut Call<'_>) -> Result<(), String> {
    (call.status, call.misuse) = (2, 2);
    let mut asked = read(call.args, KNOWN)?;
    let how = how(&asked)?;
    let mut named = std::mem::take(&mut asked.operands);
    if named.is_empty() {
        named.push(".".to_owned());
    }
    let many = named.len() > 1;
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for name in named {
        let links = match how.named {
            // A link to a directory is one, unless it is looked at closely.
            Follow::Parents if !how.itself && !how.shown.long() && call.is_directory(&name) => Follow::All,
            links => links,
        };
        match item(call, &name, &name, links) {
            Ok(item) if item.about.kind == Kind::Directory && !how.itself => directories.push(item),
            Ok(item) => files.push(item),
            Err(why) => call.fail(why),
        }
    }
    sort(&mut files, &how);
    sort(&mut directories, &how);
    let any = !files.is_empty();
    how.shown.print(call, &files, false);
    for (at, item) in directories.iter().enumerate() {
        if any || at > 0 {
            call.out.push('\n');
        }
        directory(call, &how, &item.name, many || how.recursive);
    }
    if !call.failures.iter().any(|why| why.starts_with("cannot access")) {
        call.status = 1;
    }
    Ok(())
}

fn how(asked: &Asked) -> Result<How, String> {
    if asked.last(&["color"]).is_some() && !matches!(asked.value("color"), Some("never" | "auto" | "no" | "none")) {
        return Err("there are no colours in memory: use it without --color".to_owned());
    }
    let by = match asked.last(&["by-time", "by-size", "by-ending", "by-nothing", "as-is", "sort"]) {
        Some("by-time") => By::Time,
        Some("by-size") => By::Size,
        Some("by-ending") => By::Ending,
        Some("sort") => match asked.value("sort") {
            Some("time") => By::Time,
            Some("size") => By::Size,
            Some("extension") => By::Ending,
            Some("none") => By::Nothing,
            Some("name") => By::Name,
            other => return Err(format!("invalid argument '{}' for '--sort'", other.unwrap_or_default())),
        },
        Some(_) => By::Nothing,
        None => By::Name,
    };
    let named = match asked.last(&["follow", "named"]) {
        Some(_) => Follow::All,
        None => Follow::Parents,
    };
    let all = asked.last(&["all", "almost", "as-is"]);
    Ok(How {
        by,
        reverse: asked.has("reverse"),
        directories_first: asked.has("directories-first"),
        hidden: all.is_some(),
        itself: asked.has("itself"),
        backups: asked.has("backups"),
        recursive: asked.has("recursive"),
        named,
        below: if asked.has("follow") {
            Follow::All
        } else {
            Follow::Parents
        },
        shown: Shown::of(asked, matches!(all, Some("all" | "as-is")))?,
    })
}

fn item(call: &mut Call<'_>, shown: &str, name: &str, links: Follow) -> Result<Item, String> {
    let found = match call.look(name, links) {
        // A link that leads nowhere is shown itself.
        Err(_) if links == Follow::All => call.look(name, Follow::Parents),
        found => found,
    };
    let (id, about) = found.map_err(|fault| format!("cannot access '{name}': {}", said(&fault)))?;
    let target = call.inside.target(id).ok().map(|target| target.to_string());
    let links = call.names_of(name, &about);
    Ok(Item {
        name: shown.to_owned(),
        id,
        about,
        target,
        links,
    })
}

fn directory(call: &mut Call<'_>, how: &How, name: &str, titled: bool) {
    let names = match call.names(name) {
        Ok(names) => names,
        Err(fault) => {
            call.fail(format!("cannot open directory '{name}': {}", said(&fault)));
            return;
        }
    };
    if titled {
        call.out.push_str(&format!("{}:\n", how.shown.quoted(name)));
    }
    let dots: &[&str] = if how.shown.dots { &[".", ".."] } else { &[] };
    let names = names.iter().map(|(name, _)| &**name);
    let names = names.filter(|name| how.hidden || !name.starts_with('.'));
    let names = names.filter(|name| !(how.backups && name.ends_with('~')));
    let all: Vec<&str> = dots.iter().copied().chain(names).collect();
    let mut items = Vec::new();
    for child in all {
        match item(call, child, &within(name, child), how.below) {
            Ok(item) => items.push(item),
            Err(why) => call.fail(why),
        }
    }
    sort(&mut items, how);
    how.shown.print(call, &items, true);
    if !how.recursive {
        return;
    }
    for item in items {
        if item.about.kind == Kind::Directory && !matches!(item.name.as_str(), "." | "..") {
            call.out.push('\n');
            directory(call, how, &within(name, &item.name), true);
        }
    }
}

fn sort(items: &mut [Item], how: &How) {
    let ending = |item: &Item| {
        let ending = Path::new(&item.name).extension();
        ending.map(|ending| ending.to_string_lossy().into_owned())
    };
    let order = |one: &Item, other: &Item| {
        let by = match how.by {
            By::Name => Ordering::Equal,
            By::Nothing => return Ordering::Equal,
            By::Time => other.about.modified.cmp(&one.about.modified),
            By::Size => other.about.size.cmp(&one.about.size),
            By::Ending => ending(one).cmp(&ending(other)),
        };
        by.then_with(|| one.name.cmp(&other.name))
    };
    items.sort_by(|one, other| {
        let order = order(one, other);
        if how.reverse { order.reverse() } else { order }
    });
    if how.directories_first && how.by != By::Nothing {
        items.sort_by_key(|item| item.about.kind != Kind::Directory);
    }
}
