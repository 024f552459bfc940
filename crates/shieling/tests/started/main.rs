//! Programs that are talked to while they run, in `local` and in `sandbox`: what goes in and comes out, how
//! they end, what is recorded of them, and that nothing of them is left.
#![allow(clippy::disallowed_methods, reason = "processes are looked at from outside")]

mod bytes;
mod ends;
mod records;
mod support;
