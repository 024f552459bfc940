//! A digest of changes, as data. `shown.rs` makes it.

use std::fmt;

/// A digest of changes: paths, kinds, modes, attributes and contents of both sides, and the text that was shown of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl From<[u8; 32]> for Fingerprint {
    fn from(sha256: [u8; 32]) -> Self {
        Self(sha256)
    }
}

impl Fingerprint {
    /// Returns the SHA-256.
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(6).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
