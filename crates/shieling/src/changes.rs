//! Staged workspaces: the change sets of commands whose writes go into a private layer, and what becomes of them.
//!
//! The work is done in the crate `shieling-changes`; an environment that stages changes says what came of them in
//! [`Outcome::changes`](crate::outcome::Outcome::changes). A [`Store`] is for whoever looks at the sets afterwards:
//! lists them, shows, applies, discards and undoes them.

pub use shieling_changes::{
    Action, Change, ChangeSet, ChangesError, Choice, Committed, Conflict, CopyRecorder, Counts, Diff, DiffLimits,
    Fingerprint, Frozen, Held, Judged, Kind, Limits, Matcher, Mode, Node, RULE, Rename, Rule, Shadows, Shown, State,
    Store, Stored, Summary, Surroundings, Usage,
};
