//! The rules for one file, as tables.
//!
//! Directions follow the design: a module uses what stands below it and is never used by it. A new
//! module needs a line here, which is the moment to ask where it stands.

use super::Finding;
use super::source::{Source, identifier, words};

/// Where the library's source stands.
const LIBRARY: &str = "crates/shieling/src/";

/// Where the reader of shell text stands.
const SHELL: &str = "crates/shieling-shell/src/";

/// For each module of `shieling`, which of its sisters it may use. `*` is everything.
const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("path", &["units"]),
    ("request", &["units", "path"]),
    // What a policy asks of an environment, and what that answers: known to both.
    ("enforcement", &[]),
    ("policy", &["units", "path", "request", "enforcement"]),
    ("approval", &["units", "path", "request", "policy"]),
    ("rate", &["units"]),
    ("output", &["units"]),
    // A refusal is part of an outcome, and its reasons are the policy's data.
    ("outcome", &["units", "path", "request", "policy"]),
    ("process", &["units", "path", "request", "output", "outcome"]),
    // Takes `Approved<T>`; cannot see policy.
    (
        "environment",
        &[
            "units",
            "path",
            "request",
            "enforcement",
            "approval",
            "process",
            "output",
            "outcome",
        ],
    ),
    (
        "session",
        &[
            "units",
            "path",
            "request",
            "approval",
            "environment",
            "process",
            "output",
            "outcome",
        ],
    ),
    (
        "files",
        &[
            "units",
            "path",
            "request",
            "approval",
            "environment",
            "output",
            "outcome",
        ],
    ),
    ("describe", &["units", "outcome"]),
    // Written by the façade, read by no one: it is in no other list.
    (
        "audit",
        &[
            "units",
            "path",
            "request",
            "policy",
            "approval",
            "rate",
            "environment",
            "output",
            "outcome",
        ],
    ),
    ("shieling", &["*"]),
];

/// What a module must not name, however it is imported: (module, paths, why).
const MUST_NOT_NAME: &[(&str, &[&str], &str)] = &[
    (
        "policy",
        OUTSIDE_WORLD,
        "judging is pure: pass what it needs to know as facts",
    ),
    (
        "policy",
        &["std::time::Instant", "std::time::SystemTime"],
        "judging has no clock, so that it can be replayed",
    ),
    ("request", OUTSIDE_WORLD, "a request is parsed from what it is given"),
    (
        "path",
        OUTSIDE_WORLD,
        "the environment opens paths; this module only names them",
    ),
    ("units", OUTSIDE_WORLD, "quantities ask nobody"),
    (
        "approval",
        &["std::fs", "std::process", "tokio::process", "std::env", "std::net"],
        "approval asks; it never spawns",
    ),
    ("rate", OUTSIDE_WORLD, "a rate limit needs a clock and nothing else"),
    ("outcome", OUTSIDE_WORLD, "an outcome is facts that others found out"),
    (
        "output",
        &["std::process", "tokio::process", "std::net"],
        "output captures bytes; whose they are is not its business",
    ),
    // It waits with a bound, and so has tokio's clock; it starts and opens nothing.
    (
        "describe",
        &[
            "rustix",
            "libc",
            "std::fs",
            "std::process",
            "tokio::process",
            "tokio::fs",
            "std::env",
            "std::net",
            "std::thread",
        ],
        "pass a probe; the environment runs it",
    ),
];

const OUTSIDE_WORLD: &[&str] = &[
    "tokio",
    "rustix",
    "libc",
    "std::fs",
    "std::process",
    "std::env",
    "std::net",
    "std::thread",
];

/// What the whole library must not name outside its tests: (path, why).
const LIBRARY_MUST_NOT_NAME: &[(&str, &str)] = &[
    (
        "std::env",
        "the library reads no environment and no ambient directory: the caller passes them in",
    ),
    (
        "tokio::spawn",
        "a task belongs to a scope that ends when it has: use a `JoinSet`",
    ),
    ("unbounded_channel", "every queue has a bound"),
    ("UnboundedSender", "every queue has a bound"),
];

/// Where `std::fs` and `Command::new` may be used, and so `disallowed_methods` be expected. Prefixes.
const HOMES: &[&str] = &[
    "crates/shieling/src/process/",
    "crates/shieling/src/environment/",
    "crates/shieling/src/session/",
    "crates/shieling/src/files/",
    "crates/shieling/src/output.rs",
    "crates/shieling/src/output/",
    "crates/shieling/src/audit.rs",
    "crates/shieling/src/audit/",
    "crates/shieling/src/shieling/hidden.rs",
    // How much a kept home holds is part of what it tells.
    "crates/shieling/src/shieling/telling.rs",
    "crates/shieling/src/shieling/in_parts.rs",
    "crates/shieling/src/shieling/lookup.rs",
    "crates/shieling/src/shieling/lookup/",
    "crates/shieling-cli/src/config.rs",
    "crates/shieling-cli/src/config/",
    "crates/shieling-jail/",
    // Runs cargo and copies what it made.
    "crates/shieling/build.rs",
    // Reads the tables of programs.
    "crates/shieling-shell/build.rs",
    "crates/shieling/examples/",
    "crates/shieling-testkit/",
    "xtask/",
];

/// Where `unsafe` may be written. Prefixes.
const UNSAFE_HOMES: &[&str] = &[
    "crates/shieling/src/process/sys.rs",
    "crates/shieling/src/process/sys/",
    "crates/shieling-jail/",
    // Called by bash, and calls it: a C program.
    "crates/shieling-bash/",
];

/// The longest file, in lines with its tests. What is longer is a table, or two files.
const LONGEST_FILE_LINES: usize = 1_200;

/// Files that may be longer, because they are tables.
const TABLES: &[&str] = &[];

/// Applies every rule to one file.
pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    let mut found = |at: usize, what: String, instead: &str| {
        findings.push(Finding {
            path: source.path.clone(),
            line: source.line(at),
            what,
            instead: instead.to_owned(),
        });
    };
    form(source, &mut found);
    homes(source, &mut found);
    if source.path.starts_with(SHELL) {
        let clock = ["std::time::Instant", "std::time::SystemTime"];
        for path in OUTSIDE_WORLD.iter().chain(&clock) {
            for at in named(&source.production, path) {
                let why = "a reading depends on the text alone";
                found(at, format!("the reader of shell text must not name `{path}`"), why);
            }
        }
    }
    if let Some(inside) = source.path.strip_prefix(LIBRARY) {
        library(source, &mut found);
        if let Some(module) = Module::of(inside) {
            directions(source, &module, &mut found);
        }
    }
}

/// A rule reports the place, what is wrong there, and what to do instead.
type Found<'a> = dyn FnMut(usize, String, &str) + 'a;

/// Length, module docs, and promises without an issue.
fn form(source: &Source, found: &mut Found<'_>) {
    if source.lines() > LONGEST_FILE_LINES && !TABLES.contains(&source.path.as_str()) {
        found(
            0,
            format!("{} lines, the limit is {LONGEST_FILE_LINES}", source.lines()),
            "split it by concept",
        );
    }
    if !source.text.trim_start().starts_with("//!") && !source.path.ends_with("/tests.rs") {
        found(
            0,
            "no module docs".to_owned(),
            "open with `//!`: what it is for, and what it refuses to do",
        );
    }
    for promise in ["TODO", "FIXME", "XXX"] {
        for at in words(&source.comments, promise) {
            if !source.comments[at + promise.len()..].starts_with("(#") {
                found(
                    at,
                    format!("{promise} without an issue"),
                    "do it, or write the issue's number as `TODO(#7)`",
                );
            }
        }
    }
}

/// Where unsafe code, files and processes are at home.
fn homes(source: &Source, found: &mut Found<'_>) {
    let at_home = |homes: &[&str]| homes.iter().any(|home| source.path.starts_with(home));
    if !at_home(UNSAFE_HOMES) {
        for at in words(&source.code, "unsafe") {
            found(
                at,
                "unsafe outside its home".to_owned(),
                "put the system call into process/sys, behind a safe signature",
            );
        }
    }
    if !at_home(HOMES) && !source.path.contains("/tests/") {
        for at in words(&source.production, "disallowed_methods") {
            found(
                at,
                "files or processes outside their homes".to_owned(),
                "call a home, or argue for a new one in xtask/src/tidy/rules.rs",
            );
        }
    }
}

/// What holds for the whole library.
fn library(source: &Source, found: &mut Found<'_>) {
    for (path, why) in LIBRARY_MUST_NOT_NAME {
        for at in named(&source.production, path) {
            found(at, format!("the library names `{path}`"), why);
        }
    }
    // Privacy keeps others from writing the literal; these are the ways to copy or forge one.
    for forged in ["Clone", "Copy", "Default", "DerefMut", "Deserialize"] {
        let implemented = source.production.find(&format!("{forged} for Approved"));
        for at in implemented
            .into_iter()
            .chain(derived(&source.production, "Approved", forged))
        {
            found(
                at,
                format!("`Approved` implements `{forged}`"),
                "one grant starts one thing, exactly as judged",
            );
        }
    }
    if !source.path.starts_with("crates/shieling/src/approval") {
        for at in words(&source.production, "Approved") {
            let next = source.production[at + "Approved".len()..].trim_start();
            if next.starts_with('{') && !source.production[..at].trim_end().ends_with("for") {
                found(
                    at,
                    "`Approved` is made outside approval".to_owned(),
                    "ask `approval` for it",
                );
            }
        }
    }
}

/// Where `#[derive(… what …)]` stands above `struct name`.
fn derived(code: &str, name: &str, what: &str) -> Option<usize> {
    let item = words(code, name).find(|at| code[..*at].trim_end().ends_with("struct"))?;
    let attributes = code[..item].rfind(['}', ';']).map_or(0, |end| end + 1);
    words(&code[attributes..item], what).next().map(|at| attributes + at)
}

/// Where `path` is named: in full, or as a part of a group such as `use std::{env, fs}`.
fn named(code: &str, path: &str) -> Vec<usize> {
    let mut places: Vec<usize> = words(code, path)
        // `tokio` as the first part of a path or in a `use`, not a field or a module of that name.
        .filter(|at| !code[..*at].ends_with("::") && !code[..*at].ends_with('.'))
        .collect();
    if let Some((head, last)) = path.rsplit_once("::") {
        let opening = format!("{head}::{{");
        for (at, _) in code.match_indices(&opening) {
            let start = at + opening.len();
            places.extend(
                group(&code[start..])
                    .filter(|(name, _)| *name == last)
                    .map(|(_, offset)| start + offset),
            );
        }
    }
    places
}

/// The first identifier of each entry of a `use` group whose text starts behind its `{`.
fn group(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut depth = 0_usize;
    let mut entry_starts = true;
    let mut entries = Vec::new();
    for (at, character) in text.char_indices() {
        match character {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => entry_starts = true,
            c if entry_starts && depth == 0 && !c.is_whitespace() => {
                entries.push((identifier(&text[at..]), at));
                entry_starts = false;
            }
            _ => {}
        }
    }
    entries.into_iter()
}

/// The module of the library that a file belongs to.
struct Module<'a> {
    name: &'a str,
    /// How many `super::` lead from this file to the root of the crate.
    depth: usize,
}

impl<'a> Module<'a> {
    /// From a path below `src/`; nothing for `lib.rs`.
    fn of(inside: &'a str) -> Option<Self> {
        let path = inside.strip_suffix(".rs")?;
        let path = path.strip_suffix("/mod").unwrap_or(path);
        let name = path.split('/').next().filter(|name| *name != "lib")?;
        Some(Self {
            name,
            depth: path.split('/').count(),
        })
    }
}

/// Which sisters a module uses, and what of the outside world.
fn directions(source: &Source, module: &Module<'_>, found: &mut Found<'_>) {
    let name = module.name;
    let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
        found(
            0,
            format!("the module `{name}` has no directions"),
            "say in xtask/src/tidy/rules.rs what it may use",
        );
        return;
    };
    for (used, at) in sisters(&source.production, module.depth) {
        let known = MAY_USE.iter().any(|(known, _)| *known == used);
        if known && used != name && !allowed.contains(&used) && !allowed.contains(&"*") {
            found(
                at,
                format!("`{name}` must not use `{used}`"),
                "turn the arrow round: pass the data in, or move the shared part down",
            );
        }
    }
    for (_, paths, why) in MUST_NOT_NAME.iter().filter(|(limited, _, _)| *limited == name) {
        for path in *paths {
            for at in named(&source.production, path) {
                found(at, format!("`{name}` must not name `{path}`"), why);
            }
        }
    }
}

/// Every module at the root of the crate that the code names, through `crate::` or enough `super::`.
fn sisters(code: &str, depth: usize) -> Vec<(&str, usize)> {
    let roots = ["crate::".to_owned(), "super::".repeat(depth)];
    let mut used = Vec::new();
    for root in &roots {
        for (at, _) in code.match_indices(root.as_str()) {
            // `pub(in crate::x)` and `$crate::x` name modules too; `my_crate::x` does not.
            if code[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
                continue;
            }
            let start = at + root.len();
            match code[start..].strip_prefix('{') {
                Some(inside) => used.extend(group(inside).map(|(name, offset)| (name, start + 1 + offset))),
                None => used.push((identifier(&code[start..]), start)),
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, code: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(&Source::new(path, &format!("//! Docs.\n{code}")), &mut findings);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[track_caller]
    fn fine(path: &str, code: &str) {
        assert_eq!(findings(path, code), Vec::<String>::new(), "{path}: {code}");
    }

    #[track_caller]
    fn wrong(path: &str, code: &str, what: &str) {
        let findings = findings(path, code);
        assert!(
            findings.iter().any(|found| found.contains(what)),
            "{path}: {code}: {findings:?}"
        );
    }

    #[test]
    fn an_arrow_drawn_backwards_between_modules_is_found_however_it_is_spelled() {
        let (policy, deep) = (
            "crates/shieling/src/policy/mod.rs",
            "crates/shieling/src/policy/meaning/ignore.rs",
        );
        fine(policy, "use crate::request::Command; use crate::{path, units};");
        fine(policy, "mod process; use self::process::Process;");
        for code in [
            "use crate::process::Process;",
            "use crate::{request::{Command, CommandError}, process::Process};",
            "fn f() { crate::process::spawn() }",
            "use super::process::Process;",
        ] {
            wrong(policy, code, "`policy` must not use `process`");
        }
        wrong(
            deep,
            "use super::super::super::process::Process;",
            "`policy` must not use `process`",
        );
        fine(deep, "use super::super::process::Process;");
        fine(
            policy,
            "// crate::process is not for us\n#[cfg(test)] mod tests { use crate::process::Process; }",
        );
        wrong(
            "crates/shieling/src/environment/local.rs",
            "use crate::policy::Policy;",
            "must not use `policy`",
        );
        wrong(
            "crates/shieling/src/request.rs",
            "use crate::policy::Span;",
            "must not use `policy`",
        );
        wrong("crates/shieling/src/surprise.rs", "", "no directions");
        fine(
            "crates/shieling/src/shieling.rs",
            "use crate::{audit, policy, process};",
        );
    }

    #[test]
    fn policy_cannot_see_the_outside_world() {
        let policy = "crates/shieling/src/policy/script.rs";
        for code in [
            "use std::fs;",
            "use std::{fs, io};",
            "use tokio::sync::Mutex;",
            "let _ = std::process::id();",
        ] {
            wrong(policy, code, "`policy` must not name");
        }
        wrong(policy, "use std::time::Instant;", "std::time::Instant");
        wrong(policy, "use std::time::{Duration, Instant};", "std::time::Instant");
        fine(
            policy,
            "use std::time::Duration; let tokio_like = self.tokio; // std::fs",
        );
    }

    #[test]
    fn the_reader_of_shell_text_cannot_see_the_outside_world() {
        let reader = "crates/shieling-shell/src/reader/mod.rs";
        wrong(reader, "use std::fs;", "must not name `std::fs`");
        wrong(reader, "use std::time::Instant;", "std::time::Instant");
        fine(reader, "use std::collections::BTreeMap;");
    }

    #[test]
    fn the_library_reads_no_environment() {
        wrong(
            "crates/shieling/src/audit.rs",
            "let home = std::env::var(\"HOME\");",
            "std::env",
        );
        wrong("crates/shieling/src/audit.rs", "use std::{env, io};", "std::env");
        fine(
            "crates/shieling/src/audit.rs",
            "let version = env!(\"CARGO_PKG_VERSION\");",
        );
        fine(
            "crates/shieling-cli/src/main.rs",
            "let home = std::env::var_os(\"HOME\");",
        );
    }

    #[test]
    fn unsafe_has_two_homes() {
        wrong(
            "crates/shieling/src/process/mod.rs",
            "unsafe { libc::fork() };",
            "unsafe",
        );
        wrong("crates/shieling-cli/src/main.rs", "unsafe fn f() {}", "unsafe");
        fine("crates/shieling/src/process/sys/linux.rs", "unsafe { libc::fork() };");
        fine("crates/shieling/src/audit.rs", "#![deny(unsafe_code)]");
    }

    #[test]
    fn files_and_processes_have_homes() {
        let opt_out = "#![expect(clippy::disallowed_methods, reason = \"the audit file\")]";
        wrong("crates/shieling/src/describe.rs", opt_out, "homes");
        fine("crates/shieling/src/audit.rs", opt_out);
        fine("crates/shieling/tests/recorder.rs", opt_out);
        fine(
            "crates/shieling/src/describe.rs",
            &format!("#[cfg(test)] mod tests {{ {opt_out} }}"),
        );
    }

    #[test]
    fn only_approval_makes_an_approval() {
        wrong(
            "crates/shieling/src/session/mod.rs",
            "let a = Approved { request };",
            "made outside",
        );
        fine("crates/shieling/src/approval.rs", "let a = Approved { request };");
        fine(
            "crates/shieling/src/environment/mod.rs",
            "fn spawn(a: Approved<Command>) { a.request() }",
        );
        fine(
            "crates/shieling/src/approval.rs",
            "#[derive(Debug)] pub struct Approved<T> { request: T }",
        );
        wrong(
            "crates/shieling/src/approval.rs",
            "#[derive(Debug, Clone)] pub struct Approved<T> { request: T }",
            "`Clone`",
        );
        wrong(
            "crates/shieling/src/approval.rs",
            "impl<T> DerefMut for Approved<T> {}",
            "`DerefMut`",
        );
    }

    #[test]
    fn files_have_docs_a_length_and_no_loose_promises() {
        let mut findings = Vec::new();
        check(&Source::new("xtask/src/x.rs", "fn f() {}"), &mut findings);
        assert_eq!(findings.len(), 1);
        wrong("xtask/src/x.rs", "// TODO: later", "TODO without");
        fine("xtask/src/x.rs", "// TODO(#7): later\nlet s = \"TODO\";");
        wrong("xtask/src/x.rs", &"fn f() {}\n".repeat(2_000), "lines");
    }
}
