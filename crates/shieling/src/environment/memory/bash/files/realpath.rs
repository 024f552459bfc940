//! `realpath`.

use std::path::Path;

use super::options::{Known, Takes, read};
use super::{Call, said};
use crate::environment::Kind;
use crate::environment::memory::tree::{Fault, Follow};

const KNOWN: &[Known] = &[
    ("existing", "e", "canonicalize-existing", Takes::Nothing),
    ("missing", "m", "canonicalize-missing", Takes::Nothing),
    ("plain", "s", "strip", Takes::Nothing),
    ("plain", "", "no-symlinks", Takes::Nothing),
    ("physical", "P", "physical", Takes::Nothing),
    ("quiet", "q", "quiet", Takes::Nothing),
    ("zero", "z", "zero", Takes::Nothing),
    ("relative", "", "relative-to", Takes::Value),
    ("base", "", "relative-base", Takes::Value),
];

pub(super) fn run(call: &mut Call<'_>) -> Result<(), String> {
    let asked = read(call.args, KNOWN)?;
    if asked.operands.is_empty() {
        return Err("missing operand".to_owned());
    }
    let how = match asked.last(&["existing", "missing"]) {
        _ if asked.has("plain") => How::Plain,
        Some("existing") => How::Existing,
        Some(_) => How::Missing,
        None => How::LastMissing,
    };
    let mut bases = Vec::new();
    for option in ["relative", "base"] {
        let base = match asked.value(option) {
            Some(base) => Some(resolved(call, base, how).map_err(|fault| format!("{base}: {}", said(&fault)))?),
            None => None,
        };
        bases.push(base);
    }
    let end = if asked.has("zero") { '\0' } else { '\n' };
    for name in &asked.operands {
        match resolved(call, name, how) {
            Ok(path) => {
                let shown = match (&bases[0], &bases[1]) {
                    (_, Some(base)) if !Path::new(&path).starts_with(base) => path,
                    (Some(to), _) | (None, Some(to)) => relative(&path, to),
                    (None, None) => path,
                };
                call.out.push_str(&shown);
                call.out.push(end);
            }
            Err(_) if asked.has("quiet") => call.fail(""),
            Err(fault) => call.fail(format!("{name}: {}", said(&fault))),
        }
    }
    Ok(())
}

/// What must be there, and whether links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Plain,
    Existing,
    Missing,
    LastMissing,
}

fn resolved(call: &mut Call<'_>, name: &str, how: How) -> Result<String, Fault> {
    if name.is_empty() {
        return Err(Fault::NotFound);
    }
    let path = call.path(name);
    if how == How::Plain {
        let mut parts: Vec<&str> = Vec::new();
        let text = path.to_string_lossy();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        return Ok(format!("/{}", parts.join("/")));
    }
    let walked = call.inside.walk(&path, Follow::All)?;
    let missing = match walked.there() {
        Some(id) if name.ends_with('/') && call.inside.kind(id) != Some(Kind::Directory) => {
            return Err(Fault::NotADirectory);
        }
        Some(_) => 0,
        None => walked.missing(),
    };
    match how {
        How::Existing if missing > 0 => Err(Fault::NotFound),
        How::LastMissing if missing > 1 => Err(Fault::NotFound),
        How::Plain | How::Existing | How::Missing | How::LastMissing => Ok(walked.path),
    }
}

/// The way from one directory to a path.
fn relative(path: &str, from: &str) -> String {
    let parts = |path: &'_ str| {
        path.split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (path, from) = (parts(path), parts(from));
    let same = path.iter().zip(&from).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..", from.len() - same);
    let way: Vec<&str> = up.chain(path[same..].iter().map(String::as_str)).collect();
    if way.is_empty() { ".".to_owned() } else { way.join("/") }
}
