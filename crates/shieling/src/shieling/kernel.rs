//! What a policy means to a kernel: the restrictions under which an environment makes harmless what
//! the reading of a text has let through.

use std::path::Path;
use std::sync::Arc;

use crate::environment::{Hidden, Restrictions};
use crate::policy::Policy;

/// The restrictions with everything that a policy has a kernel meaning for: *readonly* is a read-only
/// workspace, *ignored* files do not exist, *allow-listed* programs are the only ones to execute.
///
/// Deny lists, rule files and presets of them have none: what they deny is denied by reading.
#[must_use]
pub fn restricted(mut restrictions: Restrictions, policy: &Policy) -> Restrictions {
    restrictions.readonly |= policy.is_readonly();
    if !policy.hidden().is_empty() {
        restrictions.hidden = Some(Arc::new(Ignored(policy.clone())));
    }
    if let Some(programs) = policy.programs() {
        restrictions.programs = Some(programs);
    }
    restrictions
}

struct Ignored(Policy);

impl Hidden for Ignored {
    fn hides(&self, relative: &Path, is_directory: bool) -> bool {
        self.0.hides_entry(relative, is_directory) || is_directory && self.0.hides_all_in(relative)
    }
}
