//! Builds the program `shieling-jail` and the builtin for bash, which the library carries in itself:
//! whoever uses the library has its sandbox and its sessions, of the same version, without a file to
//! find.
//!
//! They are built by a cargo of their own, since they are no parts of this crate: the program alone in
//! memory, static (so that it starts in a root that has no libraries, and twice as fast), and small; the
//! builtin without any library, since it is loaded into whatever bash there is.
//!
//! It also notes where each program stands in the tables of `policy/program`, so that the first verdict of
//! a process does not read through all of them.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script runs cargo, copies what it made, and reads the tables of programs"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let variable = |name| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let tables = package.join(TABLES);
    println!("cargo::rerun-if-changed={}", tables.display());
    fs::write(out.join("programs.rs"), index(&tables)).expect("OUT_DIR can be written to");
    let crates = package.join("..");
    let manifest = crates.join("shieling-jail/Cargo.toml");
    for path in [
        "shieling-jail/src",
        "shieling-jail/Cargo.toml",
        "../Cargo.lock",
        "../Cargo.toml",
    ] {
        println!("cargo::rerun-if-changed={}", crates.join(path).display());
    }
    for path in ["shieling-bash/src", "shieling-bash/Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", crates.join(path).display());
    }
    println!("cargo::rerun-if-changed=build.rs");
    // One place for all profiles, beside them: it is the same program in each.
    let beside = out.ancestors().nth(4).unwrap_or(&out);
    let place = beside.join("jail");
    let target = variable("TARGET");

    let builtin = Built {
        manifest: &crates.join("shieling-bash/Cargo.toml"),
        place: &beside.join("bash"),
        target: &target,
    };
    let library = builtin
        .build(&BUILTIN, None)
        .expect("the builtin for bash could not be built; its messages are above");
    fs::copy(library.join("libshieling_bash.so"), out.join("libshieling_bash.so")).expect("OUT_DIR can be written to");

    let jail = Built {
        manifest: &manifest,
        place: &place,
        target: &target,
    };
    let program = jail.build(&JAIL, Some("-Ctarget-feature=+crt-static")).or_else(|| {
        println!(
            "cargo::warning=shieling-jail could not be linked statically (is the static C library installed?); \
             it is linked dynamically and starts about half a millisecond slower"
        );
        jail.build(&JAIL, None)
    });
    let program = program.expect("shieling-jail could not be built; its messages are above");
    fs::copy(program.join("shieling-jail"), out.join("shieling-jail")).expect("OUT_DIR can be written to");
}

const JAIL: [&str; 5] = ["build", "--bin", "shieling-jail", "--features", "program"];
const BUILTIN: [&str; 6] = ["rustc", "--lib", "--crate-type", "cdylib", "--features", "builtin"];

/// Something that is built by a cargo of its own.
struct Built<'a> {
    manifest: &'a Path,
    place: &'a Path,
    target: &'a str,
}

impl Built<'_> {
    /// Where what was built is, or nothing if it could not be.
    fn build(&self, what: &[&str], flags: Option<&str>) -> Option<PathBuf> {
        let cargo = env::var_os("CARGO").expect("cargo names itself");
        let mut command = Command::new(cargo);
        command
            .args(what)
            .args(["--locked", "--profile", "jail", "--target", self.target])
            .arg("--manifest-path")
            .arg(self.manifest)
            .arg("--target-dir")
            .arg(self.place);
        // What was set for this build, a linter's wrapper above all, is not for that one.
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC_WORKSPACE_WRAPPER",
            "CARGO_BUILD_TARGET",
        ] {
            command.env_remove(name);
        }
        if let Some(flags) = flags {
            command.env("RUSTFLAGS", flags);
        }
        let done = command.status().is_ok_and(|status| status.success());
        done.then(|| self.place.join(self.target).join("jail"))
    }
}

/// Where the tables of programs are, from the package on.
const TABLES: &str = "src/policy/program/tables";

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
        let _ = writeln!(
            tables,
            "    ({file:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{TABLES}/{file}\"))),"
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
        "const TABLES: &[(&str, &str)] = &[\n{tables}];\nstatic BLOCKS: [Block; {number}] = [\n{blocks}];\n\
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
