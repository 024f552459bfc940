//! `rm`, which fails wherever something is still there afterwards. It asks nobody: `-i` and `-I` are
//! refused.

use std::path::Path;

use super::options::{Asked, Known, Takes, read};
use super::{Call, last_name, said};
use crate::environment::Kind;
use crate::environment::memory::tree::{Fault, Follow};

const KNOWN: &[Known] = &[
    ("recursive", "rR", "recursive", Takes::Nothing),
    ("force", "f", "force", Takes::Nothing),
    ("empty", "d", "dir", Takes::Nothing),
    ("verbose", "v", "verbose", Takes::Nothing),
    ("ask", "iI", "", Takes::Nothing),
    ("interactive", "", "interactive", Takes::Maybe),
    ("same", "", "one-file-system", Takes::Nothing),
    ("same", "", "preserve-root", Takes::Maybe),
];

pub(super) fn run(call: &mut Call<'_>) -> Result<(), String> {
    let asked = read(call.args, KNOWN)?;
    let ask = match asked.last(&["ask", "interactive", "force"]) {
        Some("interactive") => asked.value("interactive") != Some("never"),
        other => other == Some("ask"),
    };
    if ask {
        return Err("nobody can be asked in memory: use it without -i".to_owned());
    }
    if asked.operands.is_empty() && !asked.has("force") {
        return Err("missing operand".to_owned());
    }
    for name in &asked.operands {
        if let Err(why) = remove(call, &asked, name) {
            call.fail(why);
        }
    }
    Ok(())
}

fn remove(call: &mut Call<'_>, asked: &Asked, name: &str) -> Result<(), String> {
    let cannot = |why: &str| format!("cannot remove '{name}': {why}");
    let path = call.path(name);
    if matches!(last_name(name), "." | "..") {
        return Err(format!("refusing to remove '.' or '..' directory: skipping '{name}'"));
    }
    let walked = call.inside.walk(&path, Follow::Parents);
    if walked.is_ok_and(|walked| Path::new(&walked.path) == Path::new("/")) {
        return Err("it is dangerous to operate recursively on '/'".to_owned());
    }
    let directory = match call.look(name, Follow::Parents) {
        Ok((_, about)) => about.kind == Kind::Directory,
        Err(Fault::NotFound | Fault::NotADirectory) if asked.has("force") => return Ok(()),
        Err(fault) => return Err(cannot(&said(&fault))),
    };
    let recursive = directory && asked.has("recursive");
    if directory && !recursive && !asked.has("empty") {
        return Err(cannot("Is a directory"));
    }
    let spot = call.inside.spot(&path, Follow::Parents);
    let removed = spot.and_then(|spot| call.inside.remove(&spot, recursive));
    removed.map_err(|fault| cannot(&said(&fault)))?;
    if asked.has("verbose") {
        let what = if directory { "directory " } else { "" };
        call.out.push_str(&format!("removed {what}'{name}'\n"));
    }
    Ok(())
}
