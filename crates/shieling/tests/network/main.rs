//! A sandbox whose network is opened by name: real programs against servers on this host's loopback, and what must not
//! be reached. As root, and again as an ordinary user.
#![expect(
    clippy::disallowed_methods,
    reason = "servers and workspaces are made here, and looked at from outside"
)]

mod asking;
mod attacks;
mod clients;
mod place;
mod programs;
mod secrets;

#[test]
fn an_ordinary_user_has_the_same_network() {
    shieling_testkit::again_as_user(&["clients::", "attacks::", "asking::", "secrets::", "programs::"]);
}
