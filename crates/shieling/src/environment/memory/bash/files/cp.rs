//! `cp`. It asks nobody, and makes no hard links and no backups: `-i`, `-l` and `-b` are refused.

use std::path::Path;

use super::options::{Asked, Known, Takes, read};
use super::{Call, last_name, said, within};
use crate::environment::Kind;
use crate::environment::memory::bash::disk::{ENDLESS, NULL};
use crate::environment::memory::tree::{About, Follow, Id, Write};

const KNOWN: &[Known] = &[
    ("recursive", "rR", "recursive", Takes::Nothing),
    ("archive", "a", "archive", Takes::Nothing),
    ("keep", "d", "", Takes::Nothing),
    ("links", "P", "no-dereference", Takes::Nothing),
    ("follow", "L", "dereference", Takes::Nothing),
    ("named", "H", "", Takes::Nothing),
    ("preserve", "p", "", Takes::Nothing),
    ("preserve-list", "", "preserve", Takes::Maybe),
    ("force", "f", "force", Takes::Nothing),
    ("never", "n", "no-clobber", Takes::Nothing),
    ("update", "u", "update", Takes::Nothing),
    ("verbose", "v", "verbose", Takes::Nothing),
    ("into", "t", "target-directory", Takes::Value),
    ("plain", "T", "no-target-directory", Takes::Nothing),
    ("symbolic", "s", "symbolic-link", Takes::Nothing),
    ("same", "x", "one-file-system", Takes::Nothing),
    ("ask", "i", "interactive", Takes::Nothing),
];

/// What is the same for all that is copied.
struct How<'a> {
    asked: &'a Asked,
    recursive: bool,
    /// Which links are followed: those that are named, and those below.
    named: Follow,
    below: Follow,
    mode: bool,
    times: bool,
}

pub(super) fn run(call: &mut Call<'_>) -> Result<(), String> {
    let mut asked = read(call.args, KNOWN)?;
    if asked.last(&["ask", "never", "force"]) == Some("ask") {
        return Err("nobody can be asked in memory: use it without -i".to_owned());
    }
    let places = places(call, &mut asked)?;
    let archive = asked.has("archive");
    let recursive = archive || asked.has("recursive");
    let links = match asked.last(&["archive", "keep", "links", "follow", "named"]) {
        Some("follow") => (Follow::All, Follow::All),
        Some("named") => (Follow::All, Follow::Parents),
        Some(_) => (Follow::Parents, Follow::Parents),
        None if recursive => (Follow::Parents, Follow::Parents),
        None => (Follow::All, Follow::All),
    };
    let list = asked.options.iter().filter(|(name, _)| *name == "preserve-list");
    let (mut mode, mut times) = (archive || asked.has("preserve"), archive || asked.has("preserve"));
    for (_, list) in list {
        let list = list.as_deref().unwrap_or("mode,timestamps");
        mode |= list.split(',').any(|item| item == "mode" || item == "all");
        times |= list.split(',').any(|item| item == "timestamps" || item == "all");
    }
    let how = How {
        asked: &asked,
        recursive,
        named: links.0,
        below: links.1,
        mode,
        times,
    };
    for (from, to) in places {
        if let Err(why) = copy(call, &how, &from, &to, true) {
            call.fail(why);
        }
    }
    Ok(())
}

/// From where to where, by `-t`, `-T` and the operands.
pub(super) fn places(call: &mut Call<'_>, asked: &mut Asked) -> Result<Vec<(String, String)>, String> {
    let into = asked.value("into").map(str::to_owned);
    let mut operands = std::mem::take(&mut asked.operands);
    let Some(first) = operands.first().cloned() else {
        return Err("missing file operand".to_owned());
    };
    if asked.has("plain") && operands.len() > 2 {
        return Err(format!("extra operand '{}'", operands[2]));
    }
    let (into, named) = match into {
        Some(into) => (into, true),
        None => (operands.pop().unwrap_or_default(), false),
    };
    if operands.is_empty() {
        return Err(format!("missing destination file operand after '{first}'"));
    }
    let directory = call.is_directory(&into);
    if !directory && (named || operands.len() > 1) {
        let flag = if named { "target directory" } else { "target" };
        return Err(format!("{flag} '{into}': {}", not_there(call, &into)));
    }
    let pair = |from: String| {
        let to = if directory && !asked.has("plain") {
            within(&into, last_name(&from))
        } else {
            into.clone()
        };
        (from, to)
    };
    Ok(operands.into_iter().map(pair).collect())
}

fn not_there(call: &mut Call<'_>, name: &str) -> String {
    match call.look(name, Follow::All) {
        Ok(_) => "Not a directory".to_owned(),
        Err(fault) => said(&fault),
    }
}

fn copy(call: &mut Call<'_>, how: &How<'_>, from: &str, to: &str, named: bool) -> Result<(), String> {
    let links = if named { how.named } else { how.below };
    if call.path(to) == Path::new(NULL) {
        return Ok(());
    }
    if call.path(from) == Path::new(ENDLESS) {
        return Err(format!(
            "error reading '{from}': it has no end, and cannot be read in memory"
        ));
    }
    if let Some(content) = call.foreign.get(from).cloned() {
        // A pipe that a shell feeds is its own only.
        let mode = if from.starts_with("/dev/fd/") { 0o600 } else { 0o666 };
        return write(call, to, &content, mode).map(|_| ());
    }
    let (id, about) = call
        .look(from, links)
        .map_err(|fault| format!("cannot stat '{from}': {}", said(&fault)))?;
    if about.kind == Kind::Directory {
        return directory(call, how, from, to, id, &about);
    }
    if to.ends_with('/') && !call.is_directory(to) {
        return Err(format!("cannot create regular file '{to}': Not a directory"));
    }
    let there = call.look(to, Follow::All).ok();
    if let Some((there, over)) = &there {
        if *there == id && about.kind != Kind::Link {
            return Err(format!("'{from}' and '{to}' are the same file"));
        }
        if over.kind == Kind::Directory {
            return Err(format!("cannot overwrite directory '{to}' with non-directory"));
        }
        let older = how.asked.has("update") && over.modified >= about.modified;
        if how.asked.has("never") || older {
            return Ok(());
        }
    }
    if about.kind == Kind::Link || how.asked.has("symbolic") {
        link(call, how, from, to, id, &about)?;
    } else {
        file(call, how, to, id, &about)?;
    }
    if how.asked.has("verbose") {
        call.out.push_str(&format!("'{from}' -> '{to}'\n"));
    }
    Ok(())
}

fn file(call: &mut Call<'_>, how: &How<'_>, to: &str, id: Id, about: &About) -> Result<(), String> {
    let content = call.inside.content(id);
    let content = content.map_err(|fault| format!("error reading what is to be '{to}': {}", said(&fault)))?;
    let made = write(call, to, &content, about.mode & 0o777)?;
    keep(call, how, made, about, to)
}

/// Writes a file, which has this mode without the mask if it is a new one.
fn write(call: &mut Call<'_>, to: &str, content: &[u8], mode: u32) -> Result<Id, String> {
    let cannot = |fault| format!("cannot create regular file '{to}': {}", said(&fault));
    let path = call.path(to);
    let spot = call.inside.spot(&path, Follow::All).map_err(cannot)?;
    let mode = mode & !call.mask;
    let written = call
        .inside
        .write(&spot, Write::Replace(content), false, mode, call.largest);
    written.map_err(cannot)
}

/// Gives a copy the mode and the times of what it is of, where they are to be kept.
fn keep(call: &mut Call<'_>, how: &How<'_>, made: Id, about: &About, to: &str) -> Result<(), String> {
    let failed = |fault| format!("preserving permissions for '{to}': {}", said(&fault));
    if how.mode {
        call.inside.set_mode(made, about.mode & 0o7777).map_err(failed)?;
    }
    if how.times {
        call.inside.set_modified(made, about.modified).map_err(failed)?;
    }
    Ok(())
}

fn link(call: &mut Call<'_>, how: &How<'_>, from: &str, to: &str, id: Id, about: &About) -> Result<(), String> {
    let cannot = |fault| format!("cannot create symbolic link '{to}': {}", said(&fault));
    let target = if how.asked.has("symbolic") {
        if !from.starts_with('/') && to.contains('/') {
            return Err(format!(
                "'{to}': can make relative symbolic links only in current directory"
            ));
        }
        from.to_owned()
    } else {
        call.inside.target(id).map_err(cannot)?.to_string()
    };
    let path = call.path(to);
    let spot = call.inside.spot(&path, Follow::Parents).map_err(cannot)?;
    if call.inside.current(&spot).map_err(cannot)? == Some(id) {
        return Err(format!("'{from}' and '{to}' are the same file"));
    }
    let there = call.inside.current(&spot).map_err(cannot)?.is_some();
    if there && (how.asked.has("force") || about.kind == Kind::Link) {
        call.inside.remove(&spot, false).map_err(cannot)?;
    }
    call.inside.link(&spot, &target).map_err(cannot)
}

fn directory(call: &mut Call<'_>, how: &How<'_>, from: &str, to: &str, id: Id, about: &About) -> Result<(), String> {
    if !how.recursive {
        return Err(format!("-r not specified; omitting directory '{from}'"));
    }
    let cannot = |fault| format!("cannot create directory '{to}': {}", said(&fault));
    let (from_at, to_at) = (call.path(from), call.path(to));
    let source = call.inside.walk(&from_at, Follow::All).map_err(cannot)?;
    let target = call.inside.walk(&to_at, Follow::All).map_err(cannot)?;
    let inside = target.path.strip_prefix(&source.path);
    if inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || source.path == "/") {
        return Err(format!("cannot copy a directory, '{from}', into itself, '{to}'"));
    }
    let made = match target.there() {
        Some(there) if call.inside.kind(there) == Some(Kind::Directory) => None,
        Some(_) => return Err(format!("cannot overwrite non-directory '{to}' with directory '{from}'")),
        None => {
            let spot = call.inside.spot(&to_at, Follow::All).map_err(cannot)?;
            // Whoever copies into it may always write to it.
            let mode = about.mode & 0o7777 & !call.mask;
            call.inside.make_directory(&spot, false, mode | 0o700).map_err(cannot)?;
            if how.asked.has("verbose") {
                call.out.push_str(&format!("'{from}' -> '{to}'\n"));
            }
            call.inside.current(&spot).map_err(cannot)?.map(|made| (made, mode))
        }
    };
    let listed = call.inside.list(id, &source.path);
    for (name, _) in listed.map_err(|fault| format!("cannot access '{from}': {}", said(&fault)))? {
        if let Err(why) = copy(call, how, &within(from, &name), &within(to, &name), false) {
            call.fail(why);
        }
    }
    if let Some((made, mode)) = made {
        call.inside.set_mode(made, mode).map_err(cannot)?;
        keep(call, how, made, about, to)?;
    }
    Ok(())
}
