//! Builds the agent program, which the feature `agent` carries in this crate: whoever sends it sends the version
//! that they speak themselves.
//!
//! A cargo of its own builds it, static, as that of `shieling` builds the sandbox's program. That is the library and
//! all that it uses once more, so a build without optimisation does not wait for it: it says where `cargo xtask agent`
//! puts the program, and takes it from there when it runs.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script runs cargo, and reads what it made"
)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

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
        let beside = place.join(&target).join("agent-debug/shieling-agent");
        println!("cargo::rustc-cfg=agent_beside");
        println!("cargo::rustc-env=SHIELING_AGENT_BESIDE={}", beside.display());
        return;
    }
    let crates = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("..");
    for name in [
        "shieling",
        "shieling-shell",
        "shieling-gate",
        "shieling-changes",
        "shieling-gateway",
        "shieling-jail",
        "shieling-bash",
        "shieling-remote",
        "shieling-agent",
    ] {
        for part in ["src", "Cargo.toml", "build.rs"] {
            let path = crates.join(name).join(part);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
    for path in ["../Cargo.lock", "../Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", crates.join(path).display());
    }
    let cargo = env::var_os("CARGO").expect("cargo names itself");
    let mut command = Command::new(cargo);
    command
        .args(["build", "--locked", "--bin", "shieling-agent"])
        .args(["--profile", "agent", "--target", &target])
        .arg("--manifest-path")
        .arg(crates.join("shieling-agent/Cargo.toml"))
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
    let mut digest = String::new();
    for byte in Sha256::digest(&program) {
        let _ = write!(digest, "{byte:02x}");
    }
    fs::write(out.join("shieling-agent"), program).expect("OUT_DIR can be written to");
    fs::write(out.join("shieling-agent.sha256"), digest).expect("OUT_DIR can be written to");
}
