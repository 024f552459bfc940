//! The rules for single files, and for the directions between the library's modules, as tables.
//!
//! A module uses only modules below it. A new module needs an entry here, which is the occasion to decide on its
//! position.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::modules::Arrow;
use super::source::{Source, identifier, words};

/// The folder of the library's sources.
const LIBRARY: &str = "crates/shieling/src/";

/// Crates that do no I/O and have no clock, with the reason.
const PURE: &[(&str, &str)] = &[
    ("crates/shieling-shell/src/", "a reading depends on the text alone"),
    (
        "crates/shieling-gate/src/",
        "a change is judged by what the caller's trees say of it",
    ),
];

/// For each module of `shieling`, the modules that it may use. `*` means all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("path", &["units"]),
    ("request", &["units", "path"]),
    // What a policy requires of an environment, and the environment's reply. Both sides know it.
    ("enforcement", &[]),
    ("policy", &["units", "path", "request", "enforcement"]),
    ("approval", &["units", "path", "request", "policy"]),
    ("rate", &["units"]),
    ("output", &["units"]),
    // A refusal is part of an outcome, and its reasons are data of the policy.
    ("outcome", &["units", "path", "request", "policy"]),
    ("process", &["units", "path", "request", "output", "outcome"]),
    // A gateway for a jail. Who is asked, and what is recorded, comes from the façade.
    ("network", &["process", "outcome"]),
    // Takes `Approved<T>`, and cannot see the policy.
    (
        "environment",
        &[
            "network",
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
    // Words for a crate of its own.
    ("changes", &[]),
    ("describe", &["units", "path", "outcome"]),
    // Written by the façade and read by no module, so it is in no other list.
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

/// Paths that a module must not name, however they are imported: (module, paths, reason).
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
        "the environment opens paths; this module only writes them down",
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
    // It waits with a timeout, and so uses tokio's clock; it starts and opens nothing.
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

/// Paths that the library must not name outside of its tests: (path, reason).
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

/// Where `std::fs` and `Command::new` may be used, and `disallowed_methods` be expected. Prefixes.
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
    // The description includes the size of a persistent home.
    "crates/shieling/src/shieling/environment_facts.rs",
    // The host's Java store is looked for.
    "crates/shieling/src/network/outlet.rs",
    "crates/shieling/src/shieling/in_parts.rs",
    "crates/shieling/src/shieling/lookup.rs",
    "crates/shieling/src/shieling/lookup/",
    "crates/shieling-cli/src/config.rs",
    "crates/shieling-cli/src/config/",
    // Starts itself once more.
    "crates/shieling-remote/src/bin/shieling-agent/outer.rs",
    // The agent program is put where engines mount it, and what is mounted is looked at.
    "crates/shieling-container/src/agent.rs",
    "crates/shieling-container/src/discover.rs",
    // What a policy hides is looked for in the workspace before that is copied.
    "crates/shieling-container/src/environment/hidden.rs",
    "crates/shieling-container/src/isolation.rs",
    "crates/shieling-container/src/owner.rs",
    "crates/shieling-jail/",
    // Runs cargo and copies its results.
    "crates/shieling/build.rs",
    // The user's own ssh is started there; the agent program of a build for development is read.
    "crates/shieling-remote/src/ssh/client.rs",
    "crates/shieling-remote/src/agent.rs",
    "crates/shieling-remote/build.rs",
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
    // A C interface: bash calls it, and it calls bash.
    "crates/shieling-bash/",
];

/// The longest file, in lines with its tests. Longer files are tables, or should be split.
const LONGEST_FILE_LINES: usize = 1_200;

/// Files that may be longer because they are tables.
const TABLES: &[&str] = &[];

/// Applies the rules to one file.
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
    if let Some((_, why)) = PURE.iter().find(|(folder, _)| source.path.starts_with(folder)) {
        let clock = ["std::time::Instant", "std::time::SystemTime"];
        for path in OUTSIDE_WORLD.iter().chain(&clock) {
            for at in named(&source.production, path) {
                found(at, format!("a pure crate must not name `{path}`"), why);
            }
        }
    }
    if let Some(inside) = source.path.strip_prefix(LIBRARY) {
        library(source, &mut found);
        if let Some(module) = module_of(inside) {
            outside(source, module, &mut found);
        }
    }
}

/// Receives the position of a violation, what is wrong, and what to do instead.
type Found<'a> = dyn FnMut(usize, String, &str) + 'a;

/// Checks the length, the module docs, and that open tasks name an issue.
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

/// Checks where unsafe code, files and processes are used.
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

/// Checks the rules for the whole library.
fn library(source: &Source, found: &mut Found<'_>) {
    for (path, why) in LIBRARY_MUST_NOT_NAME {
        for at in named(&source.production, path) {
            found(at, format!("the library names `{path}`"), why);
        }
    }
    // Privacy prevents struct literals elsewhere; these traits would allow copying or forging a value.
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

/// Finds `#[derive(… what …)]` above `struct name`.
fn derived(code: &str, name: &str, what: &str) -> Option<usize> {
    let item = words(code, name).find(|at| code[..*at].trim_end().ends_with("struct"))?;
    let attributes = code[..item].rfind(['}', ';']).map_or(0, |end| end + 1);
    words(&code[attributes..item], what).next().map(|at| attributes + at)
}

/// Finds uses of `path`, in full or in a group such as `use std::{env, fs}`.
fn named(code: &str, path: &str) -> Vec<usize> {
    let mut places: Vec<usize> = words(code, path)
        // `tokio` as the first segment of a path or in a `use`, not a field or a module of that name.
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

/// Returns the first identifier of each entry of a `use` group, whose text starts after its `{`.
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

/// Returns the module of the library that a file below `src/` belongs to; `None` for `lib.rs`.
fn module_of(inside: &str) -> Option<&str> {
    let name = identifier(inside);
    (name != "lib").then_some(name)
}

/// Checks which paths outside of the library a module names.
fn outside(source: &Source, module: &str, found: &mut Found<'_>) {
    if !MAY_USE.iter().any(|(known, _)| *known == module) {
        found(
            0,
            format!("the module `{module}` has no directions"),
            "say in xtask/src/tidy/rules.rs what it may use",
        );
    }
    for (_, paths, why) in MUST_NOT_NAME.iter().filter(|(limited, _, _)| *limited == module) {
        for path in *paths {
            for at in named(&source.production, path) {
                found(at, format!("`{module}` must not name `{path}`"), why);
            }
        }
    }
}

/// Reports each arrow between two modules of the library that [`MAY_USE`] does not allow.
pub(super) fn directions(arrows: &BTreeSet<Arrow>, sources: &[Source], findings: &mut Vec<Finding>) {
    for arrow in arrows {
        let Some(module) = arrow.from.strip_prefix(LIBRARY).and_then(module_of) else {
            continue;
        };
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == module) else {
            continue;
        };
        let defined = arrow.to.strip_prefix(LIBRARY).and_then(module_of);
        let used: BTreeSet<&str> = arrow.through.iter().map(String::as_str).chain(defined).collect();
        for used in used {
            if used != module && !allowed.contains(&used) && !allowed.contains(&"*") {
                let source = sources.iter().find(|source| source.path == arrow.from);
                let line = source.map_or(1, |source| {
                    source.line(words(&source.production, &arrow.name).next().unwrap_or(0))
                });
                findings.push(Finding {
                    path: arrow.from.clone(),
                    line,
                    what: format!("`{module}` must not use `{used}`"),
                    instead: "turn the arrow round: pass the data in, or move the shared part down".to_owned(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::modules::Modules;
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

    /// The arrows that are drawn backwards in a library of these modules, where `file` holds `code`.
    fn backwards(file: &str, code: &str) -> Vec<String> {
        let modules = [
            "units",
            "request",
            "policy",
            "process",
            "environment",
            "shieling",
            "audit",
        ];
        let mut sources: Vec<Source> = modules
            .iter()
            .map(|name| {
                (
                    format!("{LIBRARY}{name}/mod.rs"),
                    "pub struct Item; mod deep;".to_owned(),
                )
            })
            .chain(
                modules
                    .iter()
                    .map(|name| (format!("{LIBRARY}{name}/deep.rs"), String::new())),
            )
            .filter(|(path, _)| *path != format!("{LIBRARY}{file}"))
            .chain([(format!("{LIBRARY}{file}"), format!("mod deep; {code}"))])
            .map(|(path, text)| Source::new(&path, &text))
            .collect();
        let root = modules.map(|name| format!("pub mod {name};")).concat();
        sources.push(Source::new(&format!("{LIBRARY}lib.rs"), &root));
        let arrows = Modules::read(sources.last().unwrap(), LIBRARY, &sources)
            .unwrap()
            .arrows();
        let mut findings = Vec::new();
        directions(&arrows, &sources, &mut findings);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn an_arrow_drawn_backwards_between_modules_is_found_however_it_is_spelled() {
        let none = Vec::<String>::new();
        let backward = ["`policy` must not use `process`"];
        let (policy, deep) = ("policy/mod.rs", "policy/deep.rs");
        assert_eq!(backwards(policy, "use crate::request::Item; use crate::{units};"), none);
        for code in [
            "use crate::process::Item;",
            "use crate::{request::{self, Item as Asked}, process::Item};",
            "fn f() { crate::process::Item }",
            "use super::process::Item;",
            "use crate::process; fn f() -> process::Item {}",
            "fn f() { assert!(true, crate::process::Item); }",
        ] {
            assert_eq!(backwards(policy, code), backward, "{code}");
        }
        assert_eq!(backwards(deep, "use super::super::process::Item;"), backward);
        assert_eq!(
            backwards(deep, "mod process { pub struct Item; } use self::process::Item;"),
            none
        );
        let harmless = "// crate::process is not for us\n#[cfg(test)] mod tests { use crate::process::Item; }";
        assert_eq!(backwards(policy, harmless), none);
        assert_eq!(
            backwards("environment/mod.rs", "use crate::policy::Item;"),
            ["`environment` must not use `policy`"]
        );
        assert_eq!(
            backwards("request/mod.rs", "use crate::policy::Item;"),
            ["`request` must not use `policy`"]
        );
        let facade = "use crate::{audit, policy::Item, process}; fn f(_: audit::Item, _: process::Item) {}";
        assert_eq!(backwards("shieling/mod.rs", facade), none);
        // What a module passes on from another one is the other one's.
        assert_eq!(
            backwards(
                deep,
                "pub(crate) use crate::process::Item as Passed; fn f() -> Passed {}"
            ),
            backward
        );
    }

    #[test]
    fn a_module_that_no_table_knows_is_found() {
        wrong("crates/shieling/src/surprise.rs", "", "no directions");
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
