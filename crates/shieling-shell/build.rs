//! Notes where each program stands in the tables of `src/program/tables`, so that the first reading of a process
//! does not go through all of them.
#![expect(clippy::disallowed_methods, reason = "a build script reads the tables of programs")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let variable = |name| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let tables = Path::new(&variable("CARGO_MANIFEST_DIR")).join(TABLES);
    println!("cargo::rerun-if-changed={}", tables.display());
    println!("cargo::rerun-if-changed=build.rs");
    let made = Path::new(&variable("OUT_DIR")).join("programs.rs");
    fs::write(made, index(&tables)).expect("OUT_DIR can be written to");
}

/// Where the tables of programs are, from the package on.
const TABLES: &str = "src/program/tables";

/// Rust text with the tables and with where each block of them stands, as `table.rs` reads it.
fn index(directory: &Path) -> String {
    let files = fs::read_dir(directory).expect("the tables are there");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("it can be listed").path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "prog"));
    files.sort();
    let (mut tables, mut blocks) = (String::new(), String::new());
    let (mut names, mut shared) = (BTreeMap::new(), BTreeMap::new());
    let mut number = 0_usize;
    for (table, path) in files.iter().enumerate() {
        let text = fs::read_to_string(path).expect("a table is text");
        let file = path.file_name().expect("a file has a name").to_string_lossy();
        let attribute = |name: &str| text.lines().any(|line| line == format!("table {name}"));
        let _ = writeln!(
            tables,
            "    Table {{ name: {file:?}, text: include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{TABLES}/{file}\")), \
             is_rough: {}, is_for_projects: {} }},",
            attribute("rough"),
            attribute("for projects"),
        );
        for (heading, start, end) in parts(&text, 0, text.len(), |line| {
            line.starts_with("program ") || line.starts_with("options ")
        }) {
            let (kind, called) = heading.split_once(' ').expect("a heading has a blank");
            if kind == "options" {
                shared.entry(called.to_owned()).or_insert((table, start, end));
                continue;
            }
            for name in called.split_whitespace() {
                names.entry(name.to_owned()).or_insert(number);
            }
            number += 1;
            let subs = parts(&text, start, end, |line| line.trim_start().starts_with("sub "));
            // Its own lines end where the first subcommand's heading begins.
            let own = subs.first().map_or(end, |(_, first, _)| {
                text[start..*first - 1].rfind('\n').map_or(start, |at| start + at + 1)
            });
            let _ = write!(blocks, "    Block {{ table: {table}, own: ({start}, {own}), subs: &[");
            for (heading, start, end) in subs {
                let names = heading.strip_prefix("sub ").unwrap_or_default().split('|');
                let names: Vec<&str> = names.map(str::trim).collect();
                let _ = write!(blocks, "(&{names:?}, {start}, {end}), ");
            }
            blocks.push_str("] },\n");
        }
    }
    let names: Vec<_> = names.into_iter().collect();
    let shared: Vec<_> = shared.into_iter().collect();
    format!(
        "static TABLES: &[Table] = &[\n{tables}];\nstatic BLOCKS: [Block; {number}] = [\n{blocks}];\n\
         static NAMES: &[(&str, usize)] = &{names:?};\nstatic SHARED: &[(&str, (usize, usize, usize))] = &{shared:?};\n"
    )
}

/// The parts of a stretch of text that begin with such a line: the line without its comment, and where what
/// is behind it begins and ends.
fn parts(text: &str, start: usize, end: usize, begins: impl Fn(&str) -> bool) -> Vec<(&str, usize, usize)> {
    let mut found: Vec<(&str, usize, usize)> = Vec::new();
    let mut at = start;
    for line in text[start..end].split_inclusive('\n') {
        if begins(line) {
            if let Some(last) = found.last_mut() {
                last.2 = at;
            }
            let heading = line.split(" #").next().unwrap_or_default().trim();
            found.push((heading, at + line.len(), end));
        }
        at += line.len();
    }
    found
}
