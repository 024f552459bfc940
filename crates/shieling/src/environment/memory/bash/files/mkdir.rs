//! `mkdir`.

use super::options::{Known, Takes, read};
use super::{Call, Mode, said, within};
use crate::environment::memory::tree::Follow;

const KNOWN: &[Known] = &[
    ("mode", "m", "mode", Takes::Value),
    ("parents", "p", "parents", Takes::Nothing),
    ("verbose", "v", "verbose", Takes::Nothing),
];

pub(super) fn run(call: &mut Call<'_>) -> Result<(), String> {
    let asked = read(call.args, KNOWN)?;
    if asked.operands.is_empty() {
        return Err("missing operand".to_owned());
    }
    let bare = 0o777 & !call.mask;
    let mode = match asked.value("mode") {
        None => bare,
        Some(text) => {
            let mode = Mode::read(text).ok_or_else(|| format!("invalid mode '{text}'"))?;
            mode.of(0o777, true, call.mask)
        }
    };
    let verbose = asked.has("verbose");
    for name in &asked.operands {
        if asked.has("parents") {
            with_parents(call, name, mode, verbose);
        } else if let Err(why) = make(call, name, mode, verbose) {
            call.fail(why);
        }
    }
    Ok(())
}

fn make(call: &mut Call<'_>, name: &str, mode: u32, verbose: bool) -> Result<(), String> {
    let cannot = |why: String| format!("cannot create directory '{name}': {why}");
    if name.is_empty() {
        return Err(cannot("No such file or directory".to_owned()));
    }
    let path = call.path(name);
    // The root is there, and no spot.
    let made = match call.inside.find(&path, Follow::Parents) {
        Ok(_) => return Err(cannot("File exists".to_owned())),
        Err(_) => call.inside.spot(&path, Follow::Parents),
    };
    let made = made.and_then(|spot| call.inside.make_directory(&spot, false, mode));
    made.map_err(|fault| cannot(said(&fault)))?;
    if verbose {
        call.out.push_str(&format!("mkdir: created directory '{name}'\n"));
    }
    Ok(())
}

/// With those above it that are missing, which whoever makes them may always write to.
fn with_parents(call: &mut Call<'_>, name: &str, mode: u32, verbose: bool) {
    let mut so_far = if name.starts_with('/') { "/" } else { "" }.to_owned();
    let mut parts = name.split('/').filter(|part| !part.is_empty()).peekable();
    if parts.peek().is_none() && so_far.is_empty() {
        call.fail(format!("cannot create directory '{name}': No such file or directory"));
    }
    while let Some(part) = parts.next() {
        so_far = if so_far.is_empty() {
            part.to_owned()
        } else {
            within(&so_far, part)
        };
        if call.is_directory(&so_far) {
            continue;
        }
        let mode = match parts.peek() {
            Some(_) => 0o777 & !call.mask | 0o300,
            None => mode,
        };
        if let Err(why) = make(call, &so_far, mode, verbose) {
            call.fail(why);
            return;
        }
    }
}
