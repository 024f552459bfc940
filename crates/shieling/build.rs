//! Builds the programs `shieling-jail` and `shieling-settle` and the builtin for bash, which the library carries in itself:
//! whoever uses the library has its sandbox and its sessions, of the same version, without a file to
//! find.
//!
//! They are built by a cargo of their own, since they are no parts of this crate: the programs alone in
//! memory, static (so that it starts in a root that has no libraries, and twice as fast), and small; the
//! builtin without any library, since it is loaded into whatever bash there is.
//!
//! Their crates are dependencies of this one, and their build scripts say where their sources are (`links` in their
//! manifests): in this repository, or wherever cargo has unpacked them. The profile is set here, since a package has
//! none.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script runs cargo and copies what it made"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let variable = |name| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = PathBuf::from(variable("OUT_DIR"));
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("DOCS_RS").is_some() {
        // Documentation is built there without a network, and runs nothing.
        for name in ["libshieling_bash.so", "shieling-jail", "shieling-settle"] {
            fs::write(out.join(name), []).expect("OUT_DIR can be written to");
        }
        return;
    }
    let jail = PathBuf::from(variable("DEP_SHIELING_JAIL_SOURCES"));
    let bash = PathBuf::from(variable("DEP_SHIELING_BASH_SOURCES"));
    let settle = PathBuf::from(variable("DEP_SHIELING_SETTLE_SOURCES"));
    let parts = ["gate", "watch", "changes"].map(|name| settle.join(format!("../shieling-{name}")));
    for sources in [&jail, &bash, &settle].into_iter().chain(&parts) {
        // The last two are those of this repository, or nothing.
        for path in [
            "src",
            "Cargo.toml",
            "Cargo.lock",
            "../../Cargo.lock",
            "../../Cargo.toml",
        ] {
            let path = sources.join(path);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
    let target = variable("TARGET");
    // One place for all profiles and targets, beside them: it is the same program in each.
    let beside = out.ancestors().nth(4).unwrap_or(&out);
    let beside = match beside.parent() {
        // With this file, cargo marks the directory of all.
        Some(parent) if beside.ends_with(&target) && parent.join("CACHEDIR.TAG").exists() => parent,
        _ => beside,
    };
    let place = beside.join("jail");

    let builtin = Built {
        opt_level: FAST,
        manifest: &bash.join("Cargo.toml"),
        place: &beside.join("bash"),
        target: &target,
    };
    let library = builtin
        .build(&BUILTIN, None)
        .expect("the builtin for bash could not be built; its messages are above");
    fs::copy(library.join("libshieling_bash.so"), out.join("libshieling_bash.so")).expect("OUT_DIR can be written to");

    let jail = Built {
        opt_level: FAST,
        manifest: &jail.join("Cargo.toml"),
        place: &place,
        target: &target,
    };
    jail.program("shieling-jail", &JAIL, &out);

    let settle = Built {
        opt_level: SMALL,
        manifest: &settle.join("Cargo.toml"),
        place: &beside.join("settle"),
        target: &target,
    };
    settle.program("shieling-settle", &SETTLE, &out);
}

const JAIL: [&str; 5] = ["build", "--bin", "shieling-jail", "--features", "program"];
const SETTLE: [&str; 5] = ["build", "--bin", "shieling-settle", "--features", "program"];
const BUILTIN: [&str; 6] = ["rustc", "--lib", "--crate-type", "cdylib", "--features", "builtin"];

/// The profile of all, which is named `jail`.
const PROFILE: [&str; 6] = [
    "profile.jail.inherits = 'release'",
    "profile.jail.codegen-units = 1",
    "profile.jail.debug = false",
    "profile.jail.lto = true",
    "profile.jail.panic = 'abort'",
    "profile.jail.strip = true",
];

/// For what a command waits for.
const FAST: &str = "2";
/// For the rest, since it is carried in each program.
const SMALL: &str = "'s'";

/// Something that is built by a cargo of its own.
struct Built<'a> {
    opt_level: &'static str,
    manifest: &'a Path,
    place: &'a Path,
    target: &'a str,
}

impl Built<'_> {
    /// Builds a program, static if it can be, and copies it to where the library takes it from.
    fn program(&self, name: &str, what: &[&str], out: &Path) {
        let program = self.build(what, Some("-Ctarget-feature=+crt-static")).or_else(|| {
            println!(
                "cargo::warning={name} could not be linked statically (is the static C library installed?); \
                 it is linked dynamically and starts about half a millisecond slower"
            );
            self.build(what, None)
        });
        let program = program.unwrap_or_else(|| panic!("{name} could not be built; its messages are above"));
        fs::copy(program.join(name), out.join(name)).expect("OUT_DIR can be written to");
    }

    /// Where what was built is, or nothing if it could not be.
    fn build(&self, what: &[&str], flags: Option<&str>) -> Option<PathBuf> {
        let cargo = env::var_os("CARGO").expect("cargo names itself");
        let mut command = Command::new(cargo);
        command
            .args(what)
            .args(["--locked", "--profile", "jail", "--target", self.target])
            .args(PROFILE.iter().flat_map(|key| ["--config", key]))
            .args(["--config", &format!("profile.jail.opt-level = {}", self.opt_level)])
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
