//! What is measured and fuzzed: the only place in xtask that calls the library.
//!
//! A subject that does not exist yet is absent here, and its rows say so; none is imitated.

use shieling::policy::Decision;

/// Judges one text under one policy.
pub(crate) type Judge = Box<dyn Fn(&str) -> Decision + Send + Sync>;

/// Runs `true` once through the library, from request to outcome.
pub(crate) type OneShot = Box<dyn FnMut() -> anyhow::Result<()>>;

/// Every policy that is measured and fuzzed, by name: readonly, an allow list, a deny list, an ignore
/// list and a policy file of rules.
pub(crate) fn judges() -> Vec<(&'static str, Judge)> {
    Vec::new()
}

/// A library call that runs `true` in `local`, once the façade is there.
pub(crate) fn one_shot() -> Option<OneShot> {
    None
}
