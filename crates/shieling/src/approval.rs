//! The only maker of [`Approved`]: what was judged, and asked about where the policy wanted that.

/// A request that policy let through, and a person too where policy asked for one.
///
/// Not `Clone`, no way to change it: one grant starts one thing, exactly as judged.
#[derive(Debug)]
#[must_use]
pub struct Approved<T> {
    request: T,
}

impl<T> Approved<T> {
    /// What was approved.
    pub fn request(&self) -> &T {
        &self.request
    }

    /// Uses the approval up.
    pub fn into_request(self) -> T {
        self.request
    }
}
