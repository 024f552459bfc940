//! Checks the dependencies between crates, as reported by `cargo metadata`.

use anyhow::Context as _;
use serde_json::Value;

use super::finding::Finding;

/// For each crate, the crates of this workspace that it may depend on, not counting dev-dependencies.
const MAY_USE: &[(&str, &[&str])] = &[
    (
        "shieling",
        &[
            "shieling-shell",
            "shieling-gate",
            "shieling-changes",
            "shieling-watch",
            "shieling-settle",
            "shieling-gateway",
            "shieling-jail",
            "shieling-bash",
        ],
    ),
    ("shieling-shell", &[]),
    ("shieling-gate", &[]),
    ("shieling-changes", &["shieling-gate"]),
    ("shieling-watch", &["shieling-gate"]),
    ("shieling-settle", &["shieling-changes", "shieling-watch"]),
    ("shieling-jail", &[]),
    ("shieling-bash", &[]),
    ("shieling-gateway", &[]),
    ("shieling-memory", &["shieling"]),
    ("shieling-remote", &["shieling"]),
    ("shieling-container", &["shieling", "shieling-remote"]),
    ("shieling-server", &["shieling"]),
    (
        "shieling-cli",
        &[
            "shieling",
            "shieling-container",
            "shieling-memory",
            "shieling-remote",
            "shieling-server",
        ],
    ),
    ("shieling-py", &["shieling", "shieling-cli"]),
    ("shieling-testkit", &["shieling"]),
    (
        "xtask",
        &[
            "shieling",
            "shieling-container",
            "shieling-memory",
            "shieling-remote",
            "shieling-testkit",
        ],
    ),
];

/// Dependencies that a crate must not have: (crate, dependency, reason).
const KEPT_OUT: &[(&str, &str, &str)] = &[
    (
        "shieling",
        "anyhow",
        "the library's errors are types that a caller can branch on",
    ),
    ("shieling", "clap", "the command line is shieling-cli's"),
    (
        "shieling",
        "figment",
        "configuration is read in shieling-cli and passed in",
    ),
    (
        "shieling",
        "miette",
        "the library states facts, shieling-cli words them",
    ),
    ("shieling", "axum", "only shieling-server knows HTTP"),
    ("shieling", "hyper", "only shieling-server knows HTTP"),
    ("shieling", "rmcp", "only shieling-server knows JSON-RPC"),
    ("shieling-cli", "axum", "only shieling-server knows HTTP"),
    ("shieling-cli", "rmcp", "only shieling-server knows JSON-RPC"),
    (
        "shieling-gateway",
        "aws-lc-rs",
        "one provider of cryptography: ring, which builds without cmake",
    ),
    ("shieling-jail", "tokio", "the jail is audited alone and has no async"),
    ("shieling-jail", "toml", "the jail parses no policy"),
    ("shieling", "bashkit", "the shell in memory is shieling-memory's"),
];

/// Compares the dependencies with the tables.
pub(super) fn check(metadata: &Value) -> anyhow::Result<Vec<Finding>> {
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata names no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package without a name")?;
        let mut found = |what: String, instead: &str| {
            findings.push(Finding {
                path: format!("{name}/Cargo.toml"),
                line: 1,
                what,
                instead: instead.to_owned(),
            });
        };
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
            found(
                format!("the crate `{name}` has no directions"),
                "say in xtask/src/tidy/crates.rs what it may use",
            );
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            // Dev-dependencies are not restricted: they are in no artifact.
            if dependency["kind"] == "dev" {
                continue;
            }
            if names.contains(&used) && !allowed.contains(&used) {
                found(
                    format!("`{name}` must not depend on `{used}`"),
                    "turn the arrow round, or move the shared part down",
                );
            }
            if let Some((_, _, why)) = KEPT_OUT.iter().find(|(user, kept, _)| *user == name && *kept == used) {
                found(format!("`{name}` must not depend on `{used}`"), why);
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(name: &str, dependency: &str, kind: Value) -> usize {
        let package = |name: &str| json!({"name": name, "dependencies": []});
        let metadata = json!({"packages": [
            {"name": name, "dependencies": [{"name": dependency, "kind": kind}]},
            package("shieling-jail"), package("shieling-testkit"),
        ]});
        check(&metadata).unwrap().len()
    }

    #[test]
    fn an_arrow_drawn_backwards_between_crates_is_found() {
        assert_eq!(findings("shieling", "shieling-jail", Value::Null), 0);
        assert_eq!(findings("shieling", "serde", Value::Null), 0);
        assert_eq!(findings("shieling", "shieling-testkit", json!("dev")), 0);
        assert_eq!(findings("shieling", "shieling-testkit", Value::Null), 1);
        assert_eq!(findings("shieling", "clap", Value::Null), 1);
        assert_eq!(findings("shieling-surprise", "serde", Value::Null), 1);
    }
}
