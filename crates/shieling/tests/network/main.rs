//! A sandbox whose network is opened by name: real programs against servers on this host's loopback, and what must not
//! be reached. As root, and again as an ordinary user.
#![expect(
    clippy::disallowed_methods,
    reason = "servers and workspaces are made here, and looked at from outside"
)]

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
    let cargo = mirrors::cargo().map(|cargo| ("CARGO", cargo));
    let go_client = outside::go_client().map(|client| (outside::GO_CLIENT, client.to_owned()));
    let programs: Vec<_> = cargo.into_iter().chain(go_client).collect();
    shieling_testkit::again_as_user_with(&tests, &programs);
}
