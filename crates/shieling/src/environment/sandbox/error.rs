//! Why a sandbox cannot be started.

use super::{HiddenError, StageError, ViewError};
use crate::process::JailError;

/// A sandbox that could not be started. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// What is to be seen cannot be shown so.
    #[error(transparent)]
    View(#[from] ViewError),
    /// What is to be hidden could not be found.
    #[error(transparent)]
    Hidden(#[from] HiddenError),
    /// This isolation cannot do what is asked.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The workspace cannot be staged.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A layer is missing on this host, or the jail could not be built.
    #[error(transparent)]
    Jail(#[from] JailError),
    /// The gateway of its network could not be started, or could not serve it.
    #[error("the gateway of its network cannot be started: {0}")]
    Gateway(String),
}
