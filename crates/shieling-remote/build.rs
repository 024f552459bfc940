//! Builds the agent program, which the feature `agent` carries in this crate: whoever sends it sends the version
//! that they speak themselves.
//!
//! It is a program of this crate, which a cargo of its own builds, static, as that of `shieling` builds the sandbox's
//! program: the package has its sources, wherever cargo has unpacked it. That is the library and
//! all that it uses once more, so a build without optimisation does not wait for it: it says where `cargo xtask agent`
//! puts the program, and takes it from there when it runs.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script runs cargo, and reads what it made"
)]

#[cfg(feature = "agent")]
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[cfg(feature = "agent")]
use sha2::{Digest as _, Sha256};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(agent_beside)");
    if env::var_os("CARGO_FEATURE_AGENT").is_none() {
        return;
    }
    let variable = |name| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let target = variable("TARGET");
    let place = out.ancestors().nth(4).unwrap_or(&out).join("agent");
    if variable("OPT_LEVEL") == "0" {
        let beside = place.join(&target).join("shieling-agent");
        println!("cargo::rustc-cfg=agent_beside");
        println!("cargo::rustc-env=SHIELING_AGENT_BESIDE={}", beside.display());
        return;
    }
    if env::var_os("DOCS_RS").is_some() {
        // Documentation is built there without a network, and runs nothing.
        carry(&out, &[]);
        return;
    }
    let package = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    // Of these, a package from a registry has only what is its own.
    let crates = [
        "shieling",
        "shieling-bash",
        "shieling-changes",
        "shieling-watch",
        "shieling-settle",
        "shieling-gate",
        "shieling-gateway",
        "shieling-jail",
        "shieling-shell",
    ];
    let crates = crates.map(|name| package.join("..").join(name));
    for directory in [&package].into_iter().chain(&crates) {
        for part in ["src", "Cargo.toml", "Cargo.lock", "build.rs"] {
            let path = directory.join(part);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
    for path in ["../../Cargo.lock", "../../Cargo.toml"] {
        let path = package.join(path);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let cargo = env::var_os("CARGO").expect("cargo names itself");
    let mut command = Command::new(cargo);
    command
        .args(["build", "--locked", "--bin", "shieling-agent"])
        .args(["--profile", "agent", "--target", &target])
        .args(PROFILE.iter().flat_map(|key| ["--config", key]))
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&place)
        .env("RUSTFLAGS", "-Ctarget-feature=+crt-static");
    // What was set for this build, a linter's wrapper above all, is not for that one.
    for name in [
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_TARGET",
    ] {
        command.env_remove(name);
    }
    // Nor is what this crate was asked to carry: the one inside would build the program again, without an end.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_FEATURE_") {
            command.env_remove(name);
        }
    }
    let built = command.status().is_ok_and(|status| status.success());
    assert!(
        built,
        "the agent program could not be built; its messages are above. It is linked statically: is the static C \
         library installed?"
    );
    let program = fs::read(place.join(&target).join("agent/shieling-agent")).expect("it was built");
    carry(&out, &program);
}

/// Leaves the program compressed for `agent.rs`, with its size and its digest.
#[cfg(feature = "agent")]
fn carry(out: &Path, program: &[u8]) {
    let mut digest = String::new();
    for byte in Sha256::digest(program) {
        let _ = write!(digest, "{byte:02x}");
    }
    let packed = zstd::bulk::compress(program, LEVEL).expect("there is memory for it");
    fs::write(out.join("shieling-agent.zst"), packed).expect("OUT_DIR can be written to");
    println!("cargo::rustc-env=SHIELING_AGENT_BYTES={}", program.len());
    println!("cargo::rustc-env=SHIELING_AGENT_SHA256={digest}");
}

#[cfg(not(feature = "agent"))]
fn carry(_: &Path, _: &[u8]) {}

/// How much is tried to make the program small: it is unpacked as fast as with any other level.
#[cfg(feature = "agent")]
const LEVEL: i32 = 19;

/// Its profile, which is set here, since a package has none. Small, since the program is sent to where it runs.
const PROFILE: [&str; 7] = [
    "profile.agent.inherits = 'release'",
    "profile.agent.codegen-units = 1",
    "profile.agent.debug = false",
    "profile.agent.lto = true",
    "profile.agent.opt-level = 's'",
    "profile.agent.panic = 'abort'",
    "profile.agent.strip = true",
];
