//! A sandbox whose network is opened by name: real programs against servers on this host's loopback, and what must not
//! be reached. As root, and again as an ordinary user.
#![expect(
    clippy::disallowed_methods,
    reason = "servers and workspaces are made here, and looked at from outside"
)]

use std::os::unix::fs::PermissionsExt as _;

mod asking;
mod attacks;
mod clients;
mod mirrors;
mod outside;
mod place;
mod programs;
mod secrets;
mod upstreams;

#[test]
fn an_ordinary_user_has_the_same_network() {
    let tests = [
        "clients::",
        "attacks::",
        "asking::",
        "mirrors::",
        "secrets::",
        "programs::",
        "upstreams::",
    ];
    // Cargo may be in a place that only its owner reads.
    let folder = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("our own directory");
    let cargo = mirrors::cargo().map(|cargo| {
        let copy = folder.path().join("cargo");
        std::fs::copy(cargo, &copy).expect("there is room for a copy");
        copy.into_os_string()
    });
    let variables: Vec<_> = cargo.iter().map(|path| ("CARGO", path.as_os_str())).collect();
    shieling_testkit::again_as_user_with(&tests, &variables);
}
