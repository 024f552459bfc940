//! `mv`. It asks nobody and makes no backups: `-i` and `-b` are refused.

use super::options::{Asked, Known, Takes, read};
use super::{Call, cp, said};
use crate::environment::Kind;
use crate::environment::memory::tree::Follow;

const KNOWN: &[Known] = &[
    ("force", "f", "force", Takes::Nothing),
    ("never", "n", "no-clobber", Takes::Nothing),
    ("ask", "i", "interactive", Takes::Nothing),
    ("update", "u", "update", Takes::Nothing),
    ("verbose", "v", "verbose", Takes::Nothing),
    ("into", "t", "target-directory", Takes::Value),
    ("plain", "T", "no-target-directory", Takes::Nothing),
];

pub(super) fn run(call: &mut Call<'_>) -> Result<(), String> {
    let mut asked = read(call.args, KNOWN)?;
    if asked.last(&["ask", "never", "force"]) == Some("ask") {
        return Err("nobody can be asked in memory: use it without -i".to_owned());
    }
    for (from, to) in cp::places(call, &mut asked)? {
        if let Err(why) = rename(call, &asked, &from, &to) {
            call.fail(why);
        }
    }
    Ok(())
}

fn rename(call: &mut Call<'_>, asked: &Asked, from: &str, to: &str) -> Result<(), String> {
    let stat = |fault| format!("cannot stat '{from}': {}", said(&fault));
    let (id, about) = call.look(from, Follow::Parents).map_err(stat)?;
    let cannot = |why: String| format!("cannot move '{from}' to '{to}': {why}");
    if to.ends_with('/') && about.kind != Kind::Directory && !call.is_directory(to) {
        return Err(cannot("Not a directory".to_owned()));
    }
    let (from_at, to_at) = (call.path(from.trim_end_matches('/')), call.path(to));
    let refused = |fault| cannot(said(&fault));
    let source = call.inside.spot(&from_at, Follow::Parents).map_err(refused)?;
    let target = call.inside.spot(&to_at, Follow::Parents).map_err(refused)?;
    if let Some(there) = call.inside.current(&target).map_err(refused)? {
        let over = call.inside.about(there).map_err(refused)?;
        if there == id {
            return Err(format!("'{from}' and '{to}' are the same file"));
        }
        if asked.last(&["never", "force"]) == Some("never") {
            return Ok(());
        }
        if asked.has("update") && over.modified >= about.modified {
            return Ok(());
        }
        match (about.kind == Kind::Directory, over.kind == Kind::Directory) {
            (false, true) => return Err(format!("cannot overwrite directory '{to}' with non-directory")),
            (true, false) => {
                return Err(format!("cannot overwrite non-directory '{to}' with directory '{from}'"));
            }
            (true, true) | (false, false) => {}
        }
    }
    let below = target.path.strip_prefix(&*source.path);
    if about.kind == Kind::Directory && below.is_some_and(|rest| rest.starts_with('/')) {
        return Err(format!("cannot move '{from}' to a subdirectory of itself, '{to}'"));
    }
    call.inside.rename(&source, &target, true, false).map_err(refused)?;
    if asked.has("verbose") {
        call.out.push_str(&format!("renamed '{from}' -> '{to}'\n"));
    }
    Ok(())
}
