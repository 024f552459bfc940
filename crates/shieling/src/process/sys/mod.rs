//! The only unsafe code of the crate: system calls that `rustix` does not offer, one per function,
//! each with a safe signature. Decides nothing.
//!
//! Linux only: `clone` with a pidfd (5.2), `close_range` (5.9), `posix_spawn` with a new session.
#![allow(
    unsafe_code,
    reason = "the one home of raw system calls; everything above is safe code"
)]

mod clone;
mod descriptor;
mod signal;
mod spawn;
mod wait;

pub(super) use clone::clone_process;
pub(super) use descriptor::{close_all_but, exit, map_pairs, rename, watch};
pub(super) use signal::{child_signals, default_child_signal};
pub(super) use spawn::{Launch, Pointers};
pub(super) use wait::{Reaped, Usage, reap_any, reap_cloned};
