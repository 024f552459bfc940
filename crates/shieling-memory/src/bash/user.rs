//! The user in memory.

/// The user name.
pub(super) const USER: &str = "user";

/// The home directory.
pub(crate) const HOME: &str = "/home/user";
