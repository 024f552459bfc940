//! The kernel alone: every attack of the corpora is run, with nobody who judges its text, in a sandbox
//! that carries only what the policy means to the kernel; what it did is looked at from outside.
//!
//! ```text
//! readonly   nothing in the workspace has changed, nor on the host
//! ignore     what a text gives away is the same whatever stands in the hidden files
//! allow      programs that are not on the list leave no mark
//! ```
//!
//! A harness that sees nothing would prove everything, so the same texts run where the restriction is
//! left out, and there they must act. No text is ever run outside of a sandbox.
//!
//! What runs is a share of each class of texts, and as root a smaller one again as an ordinary user;
//! `SHIELING_TESTS=full` runs all of them as root, and one in five as the user (`shieling_testkit::extent`).
//! `SHIELING_KERNEL_IDLE=1` tells which of them do not act where they could.
#![expect(clippy::disallowed_methods, reason = "places are built and looked at from outside")]

#[path = "../corpus/cases.rs"]
mod cases;
mod allow;
mod hidden;
mod host;
mod ignore;
mod place;
mod readonly;
mod run;
mod share;
mod snapshot;
