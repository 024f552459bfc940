//! The part of a session that lives inside bash: a loadable builtin that takes commands over a private
//! socket, runs each with bash's own reader, and says how it ended. Judges, bounds and records nothing.
//!
//! Why inside: whatever a wrapper written in shell needs (`eval`, `read`, `printf`, a descriptor, a
//! trap), a command can redefine, close or see. Here no shell code of ours runs between commands.
//! The socket is closed in every program that is started, stands at a number that nobody uses, and
//! each message bears a key that only the memory of the shell holds.
//!
//! Without the feature `builtin` this crate is the messages alone, which the host reads and writes.
#![cfg_attr(feature = "builtin", no_std)]

pub mod message;

#[cfg(feature = "builtin")]
mod aftermath;
#[cfg(feature = "builtin")]
mod bash;
#[cfg(feature = "builtin")]
mod builtin;
#[cfg(feature = "builtin")]
mod guarded;
#[cfg(feature = "builtin")]
mod hook;
#[cfg(feature = "builtin")]
mod state;
