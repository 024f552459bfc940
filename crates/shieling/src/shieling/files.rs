//! What agents do with files: judged, asked about, done and recorded, as commands are.
//!
//! ```text
//! ask ─► the environment's files ─► read ────────────────────────────────────────► recorded ─► answer
//!                                └► planned ─► verdict ─► recorded ─► approved ─► made ─► recorded ─► answer
//!                                      ▲                                           │
//!                                      └──── what it was worked out from changed ──┘  at most 3 rounds
//! ```
//!
//! Reading needs nobody's yes in any mode, unless a rule of the policy asks about a path: it is bounded
//! by the workspace, or by what a sandbox shows, hidden paths are not there, and nothing changes. It is
//! recorded. A change is asked about where [`Mode::Always`](crate::approval::Mode::Always) holds, where a
//! verdict asks, and where [`Builder::require_write_approval`](super::Builder::require_write_approval)
//! says so. The rate limit counts commands only: no process starts here, and a model edits in bursts.
//!
//! Nothing here blocks an asynchronous thread. Of one [`Shieling`], at most eight operations work at once,
//! of which at most four search, and the others wait for their turn ([`turn`]); while somebody is asked,
//! none is held. Changes are made one after the other, each only if the file is still what it was worked out from; otherwise it is worked out, judged
//! and asked about again, now with the turn to change files held from the look to the change, so that no other change of this [`Shieling`]
//! comes in between. So of two edits at once none is lost: the second is made to what the first
//! left, or is told that its text is not there any more; one that brought a hash is told that it is
//! stale. Somebody who is no part of this, such as a running command, may still write in the instant
//! between that last look and the change.

mod exposed;
mod names;
mod policy_filter;
mod task;
mod permits;
mod typed;

use std::future::poll_fn;
use std::path::{Component, Path};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use super::Shieling;
use super::authorize::{Unauthorized, announce};
use super::entry::Entry;
use super::refusal;
use crate::approval::{Approved, Refused};
use crate::environment::{FileError, Files, WritablePaths};
use crate::files::{Context, FileRequest, FileResponse, FilesError, PlannedChange};
use crate::outcome::{Denial, Status, with_causes};
use crate::policy::{Decision, Reason, Verdict};
use crate::request::{Access, FileOp};

pub(super) use permits::Permits;
use permits::Turn;
use policy_filter::{FilterSetup, PolicyFilter};
use task::{Task, Worked, own_path, size};

/// How often a change is worked out anew since a file has changed in between.
const ROUNDS: usize = 3;

/// A change that was worked out and judged.
struct Judged {
    planned: PlannedChange,
    op: FileOp,
    verdict: Verdict,
    /// Whether the policy alone would have let it pass.
    by_environment: bool,
}

/// What came of looking.
enum Looked {
    /// It only reads: the answer, and what has to be asked about before it is given.
    Read {
        answer: FileResponse,
        op: FileOp,
        asks: Vec<Reason>,
    },
    /// It changes something.
    Change(Box<Judged>),
    /// Not even that: what was asked for, why not, and what has to be asked about before that is told.
    Failed {
        op: FileOp,
        error: FilesError,
        asks: Vec<Reason>,
    },
}

impl Shieling {
    /// Does what is asked of files.
    ///
    /// At most 8 operations work at once, 4 of them searches (glob, grep); further ones wait, in the order in
    /// which they came. Changes are made one at a time. One that waits for somebody's yes keeps no other
    /// from anything.
    ///
    /// ```no_run
    /// use shieling::Shieling;
    /// use shieling::files::{FileResponse, FileRequest, FilesError, ReadRequest};
    ///
    /// # async fn example(shieling: &Shieling) -> Result<(), FilesError> {
    /// match shieling.file(FileRequest::Read(ReadRequest::new("src/main.rs"))).await {
    ///     Ok(FileResponse::Read(read)) => println!("{} bytes", read.size),
    ///     Ok(_) => unreachable!("an answer is of the kind of its question"),
    ///     Err(error) if error.is_correctable() => println!("{error}"),
    ///     Err(error) => return Err(error),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FilesError`]; nothing has changed then, but for a [`FilesError::Fault`] that says so.
    /// # Cancel safety
    /// Dropping the future before it is done leaves each file as it was, or as it was to be. What is
    /// being made is made, and recorded. Something that was only read is then not recorded, since
    /// nobody has seen it.
    ///
    /// # Panics
    /// Outside a tokio runtime, with timers if somebody has to be asked.
    pub async fn file(&self, ask: FileRequest) -> Result<FileResponse, FilesError> {
        let task = Arc::new(on_thread(self.permits.look(false).await, move || Task::new(ask)).await?);
        let asked = task.op_as_asked(&self.workspace);
        let mut entry = self.entry(&asked);
        entry.of_files(&asked);
        if self.closed.load(Ordering::Acquire) {
            let (status, denial) = refusal::closed();
            return Err(self.failed_files(&mut entry, FilesError::Refused { status, denial }));
        }
        let gone = Gone::default();
        for round in 0..ROUNDS {
            let files = match self.environment.files().await {
                Ok(files) => files,
                Err(error) => {
                    return Err(self.failed_files(&mut entry, FilesError::Fault(with_causes(&error))));
                }
            };
            // The first attempt is planned beside other changes, which are mostly of other files.
            let turn = if round > 0 {
                Some(self.permits.turn().await)
            } else {
                None
            };
            match self.look(files, Arc::clone(&task), &gone).await? {
                Looked::Failed { op, error, asks } => {
                    drop(turn);
                    entry.of_files(&op);
                    self.admit_reading(&op, asks, &mut entry).await?;
                    return Err(self.failed_files(&mut entry, error));
                }
                Looked::Read { answer, op, asks } => return self.read(answer, &op, asks, entry).await,
                Looked::Change(judged) => {
                    entry.of_files(&judged.op);
                    let (turn, admitted) = unless_waiting(turn, self.admit_files(*judged, &mut entry)).await;
                    let (planned, approved) = admitted?;
                    let made;
                    (entry, made) = self.make(planned, approved, entry, turn).await?;
                    match made {
                        Err(FilesError::File(FileError::Changed(_))) => {}
                        Ok(mut answer) => {
                            let changed: Vec<_> = answer.changed().into_iter().map(Path::to_path_buf).collect();
                            if let Some(note) = self.settle(&changed).await {
                                answer.add_note(note);
                            }
                            return Ok(answer);
                        }
                        made => return made,
                    }
                }
            }
        }
        let error = FileError::Changed(
            task.asked()
                .first()
                .map_or(Path::new("a file of the patch"), |(_, path)| path)
                .to_owned(),
        );
        Err(self.failed_files(&mut entry, error.into()))
    }

    /// Reads, or works out the change and has it judged, on a thread that may block.
    async fn look(&self, files: Arc<dyn Files>, task: Arc<Task>, gone: &Gone) -> Result<Looked, FilesError> {
        let (environment, policy) = (Arc::clone(&self.environment), Arc::clone(&self.policy));
        let hides_ignored = self.enforced.hidden;
        let (workspace, own) = (self.workspace.clone(), self.own.clone());
        let cache = Arc::clone(&self.file_cache);
        let gone = Arc::clone(&gone.0);
        let required = self
            .requires
            .writes
            .then_some("every change of files is asked about here");
        let permit = self.permits.look(task.is_search()).await;
        on_thread(permit, move || {
            // Before anything was read there is nothing that could be told of it.
            let unread = |op: FileOp, error: FilesError| Looked::Failed {
                op,
                error,
                asks: Vec::new(),
            };
            let filter = PolicyFilter::new(FilterSetup {
                files,
                policy,
                workspace: &workspace,
                own: &own,
                operation: task.operation(),
                is_search: task.is_search(),
                hides_ignored,
            });
            let filter = match filter {
                Ok(filter) => filter,
                Err(error) => return unread(task.op_as_asked(&workspace), error.into()),
            };
            let asked = task.op_as_asked(&filter.root);
            if let Some(error) = named_hidden(&task, &filter, &asked) {
                return unread(asked, error);
            }
            let with = Context {
                files: filter.files.as_ref(),
                access: &filter,
                cache: &cache,
                workspace: &filter.root,
            };
            match task.work(with, &gone) {
                // Why a change does not fit tells of the content that it does not fit.
                Err(error) => Looked::Failed {
                    op: asked,
                    error,
                    asks: filter.asks(),
                },
                Ok(Worked::Done(answer)) => {
                    let op = match own_path(&answer) {
                        Some(path) => task.op(&filter.root, vec![(Access::Read, path.to_owned())]),
                        None => asked,
                    };
                    let asks = filter.asks();
                    Looked::Read { answer, op, asks }
                }
                Ok(Worked::Planned(planned)) => {
                    let mut paths = planned.paths.clone();
                    // From where, and then to where, as it was asked.
                    paths.sort_by_key(|(access, _)| *access != Access::Remove);
                    let op = task
                        .op(&filter.root, paths)
                        .with_directories(&planned.directories)
                        .with_change(planned.preview.clone())
                        .with_change_cut(planned.cut_at);
                    let mut verdict = filter.policy.judge_file(&op);
                    add(&mut verdict, filter.asks());
                    let policy = verdict.decision;
                    add(&mut verdict, exposed::reasons(&op, environment.as_ref()));
                    let by_environment = policy == Decision::Allow && verdict.decision != Decision::Allow;
                    add(
                        &mut verdict,
                        required.map(|because| refusal::required(op.text(), because)),
                    );
                    Looked::Change(Box::new(Judged {
                        planned,
                        op,
                        verdict,
                        by_environment,
                    }))
                }
            }
        })
        .await
    }

    /// Gives what was read away, once that is recorded, and asked about where a rule wants that.
    async fn read(
        &self,
        answer: FileResponse,
        op: &FileOp,
        asks: Vec<Reason>,
        mut entry: Entry,
    ) -> Result<FileResponse, FilesError> {
        entry.of_files(op);
        self.admit_reading(op, asks, &mut entry).await?;
        let recorded = entry.ended_files(Ok(size(&answer)), self.environment.confinement());
        recorded.map_err(|error| unrecorded(&error))?;
        Ok(answer)
    }

    /// Asks, where a rule wants that, before anything is told of what was read.
    async fn admit_reading(&self, op: &FileOp, asks: Vec<Reason>, entry: &mut Entry) -> Result<(), FilesError> {
        if asks.is_empty() {
            return Ok(());
        }
        let mut verdict = self.policy.judge_file(op);
        add(&mut verdict, asks);
        drop(self.approve_files(op.clone(), &verdict, false, entry).await?);
        Ok(())
    }

    /// From a change that was worked out to the right to make it.
    async fn admit_files(
        &self,
        judged: Judged,
        entry: &mut Entry,
    ) -> Result<(PlannedChange, Approved<FileOp>), FilesError> {
        let Judged {
            planned,
            op,
            verdict,
            by_environment,
        } = judged;
        let approved = self.approve_files(op, &verdict, by_environment, entry).await?;
        Ok((planned, approved))
    }

    /// Records the intent, asks, and records the yes or the no.
    pub(super) async fn approve_files(
        &self,
        op: FileOp,
        verdict: &Verdict,
        by_environment: bool,
        entry: &mut Entry,
    ) -> Result<Approved<FileOp>, FilesError> {
        let unauthorized = |entry: &mut Entry, why| match why {
            Unauthorized::Refused(no) => refused(entry, refusal::unapproved(&no, verdict, &op, by_environment)),
            Unauthorized::Unrecorded(error) => unrecorded(&error),
            Unauthorized::Closed => refused(entry, refusal::closed()),
        };
        announce(verdict, entry).map_err(|why| unauthorized(entry, why))?;
        // What it was worked out from is looked at once more as it is made.
        let approved = self.authorize(op.clone(), verdict, None, entry, |_| Vec::new());
        approved.await.map_err(|why| unauthorized(entry, why))
    }

    /// Makes a change, on a thread that may block, and records there how that ended: whoever asked may
    /// have gone away. That a file has changed in between is not the end of it.
    async fn make(
        &self,
        planned: PlannedChange,
        approved: Approved<FileOp>,
        mut entry: Entry,
        turn: Option<Turn>,
    ) -> Result<(Entry, Result<FileResponse, FilesError>), FilesError> {
        let holds = self.environment.confinement();
        let places = self.environment.places();
        on_thread(self.permits.make(turn).await, move || {
            entry.starting();
            let text = approved.into_request().text().to_owned();
            let mut made = (planned.make)();
            if let (Ok(answer), Some(places)) = (&mut made, &places)
                && let Some(note) = gone_later(answer, places)
            {
                answer.add_note(note);
            }
            let end = match &made {
                Err(FilesError::File(FileError::Changed(_))) => {
                    entry.not_started();
                    return (entry, made);
                }
                Ok(answer) => Ok(size(answer)),
                Err(error) => Err(error),
            };
            let recorded = entry.ended_files(end, holds);
            let made = match (recorded, made) {
                (Err(error), Ok(_)) => Err(FilesError::Fault(format!(
                    "`{text}` was done, and its end could not be recorded: {error}"
                ))),
                (_, made) => made,
            };
            (entry, made)
        })
        .await
    }

    /// What could not be done, recorded.
    fn failed_files(&self, entry: &mut Entry, error: FilesError) -> FilesError {
        let recorded = match &error {
            FilesError::Refused { denial, .. } => entry.refused(denial),
            error => entry.ended_files(Err(error), self.environment.confinement()),
        };
        match recorded {
            Ok(()) => error,
            Err(log) => unrecorded(&log),
        }
    }
}

/// What is told of a change that does not last.
fn gone_later(answer: &FileResponse, places: &WritablePaths) -> Option<String> {
    let changed = answer.changed();
    let private = changed.iter().filter(|path| places.is_private(path)).count();
    let lasting: Vec<String> = places
        .lasting
        .iter()
        .map(|path| format!("`{}`", path.display()))
        .collect();
    let what = match (private, changed.len()) {
        (0, _) => return None,
        (private, all) if private < all => "part of it is private",
        _ => "private",
    };
    Some(match lasting.as_slice() {
        [] => format!("{what}: gone with the sandbox"),
        lasting => format!(
            "{what}: gone with the sandbox; what is below {} lasts",
            lasting.join(", ")
        ),
    })
}

/// A path that is hidden by the name that was asked for: to whoever reads it is not there, and whoever
/// would change it is told that it is hidden, whether or not it is there.
fn named_hidden(task: &Task, filter: &PolicyFilter, op: &FileOp) -> Option<FilesError> {
    let plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
    let mut hidden = op
        .touched()
        .iter()
        .filter(|touched| plain(&touched.path) && filter.is_ignored(&touched.path, false));
    let first = hidden.next()?;
    if !task.operation().changes() {
        let (_, asked) = task.asked().into_iter().next()?;
        return Some(FileError::NotFound(asked.to_owned()).into());
    }
    let verdict = filter.policy.judge_file(op);
    debug_assert!(
        first.access.changes() && verdict.decision == Decision::Deny,
        "it is hidden"
    );
    let (status, denial) = refusal::unapproved(&Refused::Denied, &verdict, op, false);
    Some(FilesError::Refused { status, denial })
}

/// A no, recorded.
fn refused(entry: &mut Entry, (status, denial): (Status, Denial)) -> FilesError {
    match entry.refused(&denial) {
        Ok(()) => FilesError::Refused { status, denial },
        Err(error) => unrecorded(&error),
    }
}

fn unrecorded(error: &std::io::Error) -> FilesError {
    FilesError::Fault(format!("it could not be recorded, and so was not done: {error}"))
}

/// Adds reasons to a verdict.
fn add(verdict: &mut Verdict, reasons: impl IntoIterator<Item = Reason>) {
    for reason in reasons {
        if !verdict.reasons.contains(&reason) {
            verdict.decision = verdict.decision.max(reason.decision);
            verdict.reasons.push(reason);
        }
    }
}

/// Runs a function that may block on a thread for such functions, and releases the permit after it. A function that has
/// begun runs to its end even if the future is dropped.
async fn on_thread<T: Send + 'static>(
    permit: impl Send + 'static,
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FilesError> {
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        act()
    })
    .await;
    done.map_err(|error| FilesError::Fault(format!("it was broken off: {error}")))
}

/// Awaits an approval, and drops the turn if it is not there at once: a person may take any time to answer, and other
/// changes must not wait for that.
async fn unless_waiting<T>(turn: Option<Turn>, approval: impl Future<Output = T>) -> (Option<Turn>, T) {
    let mut approval = pin!(approval);
    match poll_fn(|context| Poll::Ready(approval.as_mut().poll(context))).await {
        Poll::Ready(approved) => (turn, approved),
        Poll::Pending => {
            drop(turn);
            (None, approval.await)
        }
    }
}

/// Tells what looks at files that nobody waits for it any more.
#[derive(Default)]
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
