//! `stat`, of files and not of file systems.

use super::mode::letters;
use super::moment::Moment;
use super::options::{Known, Takes, read};
use super::{Call, said};
use crate::environment::Kind;
use crate::environment::memory::bash::USER;
use crate::environment::memory::tree::{About, Follow, Id};

const KNOWN: &[Known] = &[
    ("format", "c", "format", Takes::Value),
    ("printf", "", "printf", Takes::Value),
    ("follow", "L", "dereference", Takes::Nothing),
];

/// The number of the only user.
const USER_ID: u32 = 1000;

/// What is printed unless it is said otherwise.
const USUAL: &str = "  File: %N
  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F
Device: %Hd,%Ld\tInode: %-11i Links: %h
Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)
Access: %x
Modify: %y
Change: %z
 Birth: %w
";

pub(super) fn run(call: &mut Call<'_>) -> Result<(), String> {
    let asked = read(call.args, KNOWN)?;
    if asked.operands.is_empty() {
        return Err("missing operand".to_owned());
    }
    let format = match asked.last(&["format", "printf"]) {
        Some("format") => format!("{}\n", asked.value("format").unwrap_or_default()),
        Some(_) => unescaped(asked.value("printf").unwrap_or_default()),
        None => USUAL.to_owned(),
    };
    let usual = asked.last(&["format", "printf"]).is_none();
    let links = if asked.has("follow") {
        Follow::All
    } else {
        Follow::Parents
    };
    for name in &asked.operands {
        let (id, about) = match call.look(name, links) {
            Ok(found) => found,
            Err(fault) => {
                call.fail(format!("cannot statx '{name}': {}", said(&fault)));
                continue;
            }
        };
        let file = File {
            name,
            id,
            names: call.names_of(name, &about),
            target: call.inside.target(id).ok().map(|target| target.to_string()),
            about,
            usual,
        };
        let told = file.told(&format)?;
        call.out.push_str(&told);
    }
    Ok(())
}

/// One that is told of.
struct File<'a> {
    name: &'a str,
    id: Id,
    about: About,
    names: u64,
    target: Option<String>,
    /// Whether names stand bare, as where no format was asked for.
    usual: bool,
}

impl File<'_> {
    fn told(&self, format: &str) -> Result<String, String> {
        let mut told = String::new();
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            told.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('%') {
                told.push('%');
                rest = behind;
                continue;
            }
            let end = rest.find(|letter: char| !"-0+ #'.123456789".contains(letter));
            let end = end.ok_or_else(|| format!("invalid directive '%{rest}'"))?;
            let (padding, directive) = rest.split_at(end);
            let mut letters = directive.chars();
            let which = match letters.next() {
                Some('H' | 'L') => letters.next().filter(|which| *which == 'd').map(|_| '0'),
                which => which,
            };
            let value = which.and_then(|which| self.value(which));
            let value = value.ok_or_else(|| {
                let shown: String = directive.chars().take(1).collect();
                format!("memory knows nothing for '%{shown}'")
            })?;
            told.push_str(&padded(&value, padding));
            rest = letters.as_str();
        }
        told.push_str(rest);
        Ok(told)
    }

    fn value(&self, which: char) -> Option<String> {
        let about = &self.about;
        let kind = match about.kind {
            Kind::Directory => ('d', "directory", 0o040_000),
            Kind::Link => ('l', "symbolic link", 0o120_000),
            Kind::File | Kind::Fifo | Kind::Socket | Kind::Device if about.size == 0 => {
                ('-', "regular empty file", 0o100_000)
            }
            Kind::File | Kind::Fifo | Kind::Socket | Kind::Device => ('-', "regular file", 0o100_000),
        };
        let quoted = |text: &str| {
            if self.usual {
                text.to_owned()
            } else {
                format!("'{text}'")
            }
        };
        let moment = Moment::of(about.modified);
        Some(match which {
            'n' => self.name.to_owned(),
            'N' => match &self.target {
                Some(target) => format!("{} -> {}", quoted(self.name), quoted(target)),
                None => quoted(self.name),
            },
            's' => about.size.to_string(),
            'a' => format!("{:o}", about.mode & 0o7777),
            'A' => format!("{}{}", kind.0, letters(about.mode)),
            'f' => format!("{:x}", kind.2 | about.mode & 0o7777),
            'F' => kind.1.to_owned(),
            'u' | 'g' => USER_ID.to_string(),
            'U' | 'G' => USER.to_owned(),
            'h' => self.names.to_string(),
            'i' => self.id.to_string(),
            'b' => about.blocks().to_string(),
            'B' => "512".to_owned(),
            'o' => "4096".to_owned(),
            'd' | 'D' | 't' | 'T' | 'r' | '0' => "0".to_owned(),
            // It is read and changed when it is written: nothing else is kept.
            'x' | 'y' | 'z' => moment.to_string(),
            'X' | 'Y' | 'Z' => moment.seconds.to_string(),
            'w' => "-".to_owned(),
            'W' => "0".to_owned(),
            _ => return None,
        })
    }
}

/// A value as wide as it is to be: `-10`, `04`, `10.10`.
fn padded(value: &str, padding: &str) -> String {
    let (flags, width) = padding.split_at(
        padding
            .find(|flag: char| ('1'..='9').contains(&flag))
            .unwrap_or(padding.len()),
    );
    let (width, precision) = width.split_once('.').unwrap_or((width, ""));
    let value: String = match precision.parse::<usize>() {
        Ok(most) => value.chars().take(most).collect(),
        Err(_) => value.to_owned(),
    };
    // No line is wider than this.
    let width = width.parse::<usize>().unwrap_or(0).min(10_000);
    match (flags.contains('-'), flags.contains('0')) {
        (true, _) => format!("{value:<width$}"),
        (false, true) => format!("{}{value}", "0".repeat(width.saturating_sub(value.chars().count()))),
        (false, false) => format!("{value:>width$}"),
    }
}

/// A format in which `\n` is a line break.
fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            plain.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('0') => plain.push('\0'),
            Some(other) => plain.push(other),
            None => plain.push('\\'),
        }
    }
    plain
}
