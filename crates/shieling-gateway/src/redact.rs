//! Removal of secrets from outputs and recordings.

/// Replaces the values of secrets by their placeholders: plain, in base64 at each alignment, and URL-encoded.
///
/// A replacement is as long as what it replaces, so that offsets and lengths stay true.
#[derive(Clone, Default)]
pub struct Redactor {
    /// What is replaced, and by what, of the same length.
    pub(crate) pairs: Vec<(Vec<u8>, Vec<u8>)>,
}
