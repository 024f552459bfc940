//! The gate over real directories, with real tools.
#![allow(clippy::disallowed_methods, reason = "tests run tools, and look at what they leave")]

mod afterwards;
mod attacks;
mod ordinary;
mod tree;
