//! Judges changes of a directory tree: whether tools of the user would later run code, or write elsewhere, because of
//! what a command left behind.
//!
//! A [`Gate`] is given one [`Change`] after the other (what was at a path, what is there now) and answers each with a
//! [`Decision`]: it passes, or it is held back, with the rule, the reason and the remedy. What the gate needs to know of
//! the rest of the tree it reads through [`Tree`]; the crate itself does no I/O, has no clock and keeps no state but a
//! cache. It does not care how a change came about, and neither reverts nor stores anything: its callers do.
//!
//! Settings that were there before pass unchanged, whatever they run: they are the user's own. Sources, makefiles and
//! scripts that somebody starts by name pass: they are the project's content.
//!
//! The rules are tables, with examples that the tests judge.

#![forbid(unsafe_code)]

mod text;
mod change;
mod surroundings;
mod decision;
mod way;
pub mod index;
mod rest;
pub mod settings;
mod git_keys;
mod git;
mod attributes;
mod outline;
mod contents;
mod row;
mod packages;
mod homes;
mod tools;
mod names;
mod gate;

pub use change::{Change, Entry, Kind, Tree};
pub use decision::{Act, Decision, HeldBack, RuleId};
pub use gate::{Gate, LAYOUT, SYSTEM};
pub use git::is_object_store;
pub use surroundings::{Concern, Lead, LeadKind, Surroundings};
