//! The gate over real directories, with real tools.
#![allow(clippy::disallowed_methods, reason = "tests run tools, and look at what they leave")]

mod afterwards;
mod ordinary;
mod tree;

/// A share of them, or all with `SHIELING_TESTS=full`.
fn share<T>(all: Vec<T>, of: usize) -> Vec<T> {
    let is_full = std::env::var_os("SHIELING_TESTS").is_some_and(|value| value == "full");
    let every = if is_full { 1 } else { of };
    all.into_iter().step_by(every).collect()
}
