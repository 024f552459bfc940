//! Jobs with real processes of this host.
#![expect(
    clippy::disallowed_methods,
    reason = "tests look at processes and files from outside"
)]

mod ends;
mod flood;
mod input;
mod programs;
mod registry;
mod support;
mod terminal;
mod views;
