//! Filters the files that an operation may see and read, by the policy. The operation asks it about each handle and
//! its path before it uses the handle.
//!
//! | a path that | `hides` | `reads` |
//! |---|---|---|
//! | the policy hides, or that is Shieling's own | it is not there | it is not there |
//! | a rule denies reading | | refused, by name |
//! | a rule asks about reading | | noted, for the façade to ask; refused to a search, which leaves it out |
//! | is another name of a hidden file, where nothing hides that | | refused, by name |

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::environment::{FileError, Files, Kind, Links};
use crate::files::{AccessFilter, FilesError, QueryMeta};
use crate::outcome::{Denial, Layer, Status};
use crate::policy::{Decision, IGNORE, Policy, Reason};
use crate::request::{Access, FileOp, Operation};

use super::names::HiddenNames;

/// How many reasons to ask are kept: more are not read by anybody.
const REASONS: usize = 64;

/// The files of an environment, filtered by the policy for one operation.
pub(super) struct PolicyFilter {
    pub(super) files: Arc<dyn Files>,
    pub(super) policy: Arc<Policy>,
    /// The workspace, with no link in its path.
    pub(super) root: PathBuf,
    /// Shieling's own files and directories, absolute.
    own: Vec<PathBuf>,
    operation: Operation,
    is_search: bool,
    /// Whether the environment itself hides what is hidden, by all of its names.
    hides_ignored: bool,
    names: OnceLock<HiddenNames>,
    asks: Mutex<Vec<Reason>>,
}

/// The parts of a filter.
pub(super) struct FilterSetup<'a> {
    pub(super) files: Arc<dyn Files>,
    pub(super) policy: Arc<Policy>,
    pub(super) workspace: &'a Path,
    pub(super) own: &'a [PathBuf],
    pub(super) operation: Operation,
    pub(super) is_search: bool,
    pub(super) hides_ignored: bool,
}

impl PolicyFilter {
    /// Creates a filter. Blocks.
    ///
    /// # Errors
    /// [`FileError`]: there is no workspace in them.
    pub(super) fn new(of: FilterSetup<'_>) -> Result<Self, FileError> {
        let root = of.files.node(of.workspace, Links::Follow)?.path().to_path_buf();
        // By the name they were given, and by the place that it leads to.
        let real = |path: &PathBuf| Some(of.files.node(path, Links::Follow).ok()?.path().to_path_buf());
        let own = of
            .own
            .iter()
            .flat_map(|path| [Some(path.clone()), real(path)])
            .flatten();
        Ok(Self {
            own: own.collect(),
            files: of.files,
            policy: of.policy,
            root,
            operation: of.operation,
            is_search: of.is_search,
            hides_ignored: of.hides_ignored,
            names: OnceLock::new(),
            asks: Mutex::default(),
        })
    }

    /// Returns the reasons to ask for approval before the result is returned.
    pub(super) fn asks(&self) -> Vec<Reason> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the policy hides a path, whether or not a file exists there.
    pub(super) fn is_ignored(&self, path: &Path, is_directory: bool) -> bool {
        let inside = path.strip_prefix(&self.root);
        inside.is_ok_and(|inside| {
            self.policy.hides_entry(inside, is_directory) || is_directory && self.policy.hides_all_in(inside)
        })
    }

    fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    /// Returns the reasons against reading a file, or for asking about it first.
    fn against(&self, path: &Path, held: QueryMeta<'_>) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if self.policy.has_rules_of_reading() {
            let op = FileOp::new(self.operation, &self.root, &[], vec![(Access::Read, path.to_owned())]);
            reasons = self.policy.judge_file(&op).reasons;
            for reason in &mut reasons {
                // The text in which it stands is another one.
                reason.span = None;
            }
        }
        if !self.hides_ignored {
            reasons.extend(self.other_name(path, held));
        }
        reasons
    }

    /// Whether this is a file that has another name, which is hidden. Where the environment hides files,
    /// it hides all of their names; elsewhere a hidden file is one by whatever name it is read.
    fn other_name(&self, path: &Path, held: QueryMeta<'_>) -> Option<Reason> {
        if self.policy.hidden().is_empty() && self.own.is_empty() {
            return None;
        }
        let meta = held().ok()?;
        if meta.kind != Kind::File || meta.names < 2 {
            return None;
        }
        let names = self.names.get_or_init(|| {
            HiddenNames::find(self.files.as_ref(), &self.root, &self.own, |path, is_directory| {
                self.is_own(path) || self.is_ignored(path, is_directory)
            })
        });
        let (decision, because) = match names.is_one(meta.stamp) {
            Some(true) => (Decision::Deny, "it is another name of a hidden file"),
            Some(false) => return None,
            None => (
                Decision::Ask,
                "it has other names, and there are too many files here to tell whether one of them is hidden",
            ),
        };
        Some(Reason {
            decision,
            rule: IGNORE.to_owned(),
            object: path
                .strip_prefix(&self.root)
                .unwrap_or(path)
                .to_string_lossy()
                .escape_debug()
                .to_string(),
            span: None,
            because: because.to_owned(),
            instead: None,
        })
    }
}

impl AccessFilter for PolicyFilter {
    fn hides(&self, path: &Path, is_directory: bool) -> bool {
        self.is_own(path) || self.is_ignored(path, is_directory)
    }

    fn reads(&self, path: &Path, held: QueryMeta<'_>) -> Result<(), FilesError> {
        if self.hides(path, false) {
            return Err(FileError::NotFound(path.to_owned()).into());
        }
        let reasons = self.against(path, held);
        match reasons.iter().map(|reason| reason.decision).max() {
            None | Some(Decision::Allow) => Ok(()),
            Some(Decision::Ask) if !self.is_search => {
                let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
                for reason in reasons {
                    if asks.len() < REASONS && !asks.contains(&reason) {
                        asks.push(reason);
                    }
                }
                Ok(())
            }
            Some(decision @ (Decision::Ask | Decision::Deny)) => Err(FilesError::Refused {
                status: match decision {
                    Decision::Ask => Status::NeedsApproval,
                    Decision::Allow | Decision::Deny => Status::Denied,
                },
                denial: Denial {
                    layer: Layer::Policy,
                    decision,
                    reasons,
                    retry_after_ms: None,
                },
            }),
        }
    }
}
