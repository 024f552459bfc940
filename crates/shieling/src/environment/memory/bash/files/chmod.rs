//! `chmod`.

use super::mode::{Mode, letters};
use super::options::{Asked, Known, Takes, read};
use super::{Call, said, within};
use crate::environment::Kind;
use crate::environment::memory::tree::Follow;

const KNOWN: &[Known] = &[
    ("recursive", "R", "recursive", Takes::Nothing),
    ("verbose", "v", "verbose", Takes::Nothing),
    ("changes", "c", "changes", Takes::Nothing),
    ("silent", "f", "silent", Takes::Nothing),
    ("silent", "", "quiet", Takes::Nothing),
    ("reference", "", "reference", Takes::Value),
    // As it is anyway.
    ("root", "", "no-preserve-root", Takes::Nothing),
];

pub(super) fn run(call: &mut Call<'_>) -> Result<(), String> {
    let (args, minus) = without_minus(call.args);
    let mut asked = read(&args, KNOWN)?;
    let mode = match (asked.value("reference").map(str::to_owned), minus) {
        (Some(name), _) => {
            let like = call.look(&name, Follow::All);
            let (_, about) = like.map_err(|fault| format!("failed to get attributes of '{name}': {}", said(&fault)))?;
            Mode::Exactly(about.mode & 0o7777)
        }
        (None, minus) => {
            if minus.is_none() && asked.operands.is_empty() {
                return Err("missing operand".to_owned());
            }
            let text = minus.unwrap_or_else(|| asked.operands.remove(0));
            Mode::read(&text).ok_or_else(|| format!("invalid mode: '{text}'"))?
        }
    };
    if asked.operands.is_empty() {
        return Err("missing operand".to_owned());
    }
    for name in std::mem::take(&mut asked.operands) {
        change(call, &asked, &mode, &name, true);
    }
    Ok(())
}

/// A mode that begins as an option does (`chmod -x f`), and the arguments without it.
fn without_minus(args: &[String]) -> (Vec<String>, Option<String>) {
    let mode = |arg: &String| arg.starts_with('-') && arg.len() > 1 && Mode::read(arg).is_some();
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    match args[..end].iter().position(mode) {
        Some(at) => {
            let mut rest = args.to_vec();
            let mode = rest.remove(at);
            (rest, Some(mode))
        }
        None => (args.to_vec(), None),
    }
}

fn change(call: &mut Call<'_>, asked: &Asked, mode: &Mode, name: &str, named: bool) {
    let silent = asked.has("silent");
    let links = if named { Follow::All } else { Follow::Parents };
    let (id, about) = match call.look(name, links) {
        Ok(found) => found,
        Err(fault) => {
            call.fail(if silent {
                String::new()
            } else {
                format!("cannot access '{name}': {}", said(&fault))
            });
            return;
        }
    };
    // A link on the way has no mode of its own.
    if about.kind == Kind::Link {
        return;
    }
    let directory = about.kind == Kind::Directory;
    let (before, after) = (about.mode & 0o7777, mode.of(about.mode & 0o7777, directory, call.mask));
    if let Err(fault) = call.inside.set_mode(id, after) {
        call.fail(format!("changing permissions of '{name}': {}", said(&fault)));
        return;
    }
    let told = |mode: u32| format!("{mode:04o} ({})", letters(mode));
    if before != after && (asked.has("verbose") || asked.has("changes")) {
        let line = format!("mode of '{name}' changed from {} to {}\n", told(before), told(after));
        call.out.push_str(&line);
    } else if asked.has("verbose") {
        call.out
            .push_str(&format!("mode of '{name}' retained as {}\n", told(after)));
    }
    if !directory || !asked.has("recursive") {
        return;
    }
    for (child, _) in call.names(name).unwrap_or_default() {
        change(call, asked, mode, &within(name, &child), false);
    }
}
