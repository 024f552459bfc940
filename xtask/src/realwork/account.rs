//! The users as whom work is done.

use std::fs;

/// Who is nobody else.
pub(super) const USER: u32 = 47_112;

/// As whom something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Account {
    Root,
    /// A user without power, chosen by root.
    Other,
    /// The user who started us.
    Own,
}

impl Account {
    pub(super) fn all() -> Vec<Self> {
        match is_root() {
            true => vec![Self::Root, Self::Other],
            false => vec![Self::Own],
        }
    }

    /// Whose files are to be its, where root can say so.
    pub(super) fn number(self) -> Option<u32> {
        match self {
            Self::Root => Some(0),
            Self::Other => Some(USER),
            Self::Own => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Other | Self::Own => "user",
        }
    }
}

pub(super) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
