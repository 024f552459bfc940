//! The files of this host's environments, from outside: what may not be reached is not, whatever leads
//! there, and whoever moves things about meanwhile gains nothing.
//!
//! As root, all of it is done again as an ordinary user.
#![expect(clippy::disallowed_methods, reason = "places are built and looked at from outside")]
#![expect(clippy::print_stderr, reason = "the figures are told")]

mod changes;
mod kinds;
mod links;
mod moved;
mod place;
mod races;
mod sandbox;
mod user;
