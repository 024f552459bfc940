//! Directories that are copied into a container and out of it, the workspace among them.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use shieling::changes::{ChangesError, Limits, Node};
use shieling::environment::{CopiedWorkspace, NotWrittenBack, WriteBack, WriteBackError};
use shieling::outcome::{Changes, HeldBack};
use shieling_remote::{Base, Copied, CopyError, CopyErrorKind, CopyOptions, Remote, Seen};

use super::Container;
use super::hidden;
use super::inner::{Inner, Running, TOLD, WorkspaceBase, lock};
use crate::error::ContainerError;
use crate::isolation::{real, real_or_will_be};
use crate::options::WorkspaceCopy;

impl Container {
    /// Copies what is in the directory `from` of this host into the directory `to` of the container, which is made if
    /// it is not there, and starts the container if it does not run. A relative `to` counts from the workspace.
    ///
    /// The user of the container owns what is made. Files and links that have the same names are replaced, directories
    /// are filled and keep their modes; symbolic links are copied as links, holes stay holes, set-id bits are dropped
    /// unless they are asked for, hard links become files of their own. Sockets, pipes, devices and what cannot be read
    /// are left out, and listed. Extended attributes are not copied. Neither side holds more than a few pieces of files
    /// in memory. Below the two directories no link is followed, whatever commands do there meanwhile.
    ///
    /// # Errors
    /// [`ContainerError::Copy`]: what was copied before stays, and no file is incomplete. [`ContainerError`]: the
    /// container does not start.
    /// # Cancel safety
    /// Dropping the future gives the copy up, with the same effect as an error.
    pub async fn copy_in(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<Copied, ContainerError> {
        let running = self.inner.running().await?;
        let inside = self.inner.options.workdir.join(to);
        let copied = running.remote.copy_in(from, &inside, options).await;
        copied.map_err(|error| failed(&format!("`{}` into the container", from.display()), error))
    }

    /// Copies what is in the directory `from` of the container into the directory `to` of this host, in the same way.
    /// The user of this process owns what is made.
    ///
    /// # Errors
    /// As [`Self::copy_in`].
    /// # Cancel safety
    /// As [`Self::copy_in`].
    pub async fn copy_out(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<Copied, ContainerError> {
        let running = self.inner.running().await?;
        let inside = self.inner.options.workdir.join(from);
        let copied = running.remote.copy_out(&inside, to, options).await;
        copied.map_err(|error| failed(&format!("`{}` out of the container", inside.display()), error))
    }
}

fn failed(what: &str, error: CopyError) -> ContainerError {
    ContainerError::Copy {
        what: what.to_owned(),
        error,
    }
}

impl Inner {
    /// Copies the workspace into a container that was just made, if it is to be copied.
    pub(super) async fn copy_workspace(&self, remote: &Remote) -> Result<Option<WorkspaceBase>, ContainerError> {
        let (Some(how), Some(workspace)) = (&self.options.workspace_copy, &self.options.workspace) else {
            return Ok(None);
        };
        let what = format!("the workspace `{}` into the container", workspace.display());
        let hides = match self.hidden() {
            None => None,
            Some(hidden) => {
                let workspace = real(workspace)?;
                let looking = tokio::task::spawn_blocking(move || hidden::look(hidden, &workspace));
                let hides = looking.await.map_err(|error| ContainerError::Path {
                    path: self.options.workspace.clone().unwrap_or_default(),
                    why: error.to_string(),
                })?;
                Some(hides)
            }
        };
        let stopped = |error| failed(&what, error);
        let (to, options) = (&self.options.workdir, CopyOptions::default());
        let (copied, base) = match how {
            WorkspaceCopy::Both { sets, home, fixed } if !self.readonly() => {
                let unstored = |error: WriteBackError| ContainerError::Options {
                    what: format!("what commands change cannot be written back: {error}"),
                    instead: "use `--workspace-copy in`, or mount the workspace with `--writable`".to_owned(),
                };
                let back = WriteBack::begin(&CopiedWorkspace {
                    workspace: real(workspace)?,
                    sets: real_or_will_be(sets),
                    home: home.clone(),
                    fixed: fixed.clone(),
                });
                let back = Arc::new(Mutex::new(Some((back.map_err(unstored)?, Ok(())))));
                let (base, copied) = remote
                    .copy_base_in(workspace, to, options, hides, seen(&back))
                    .await
                    .map_err(stopped)?;
                // The thread that sent the copy has ended, and shares it no more.
                let (mut back, seen) = lock(&back).take().ok_or_else(|| ContainerError::Options {
                    what: "what commands change cannot be written back: the record of the copy is gone".to_owned(),
                    instead: "start it again".to_owned(),
                })?;
                seen.map_err(|error| unstored(error.into()))?;
                back.copied().map_err(|error| unstored(error.into()))?;
                let back = Mutex::new(Some(back));
                (copied, Some(WorkspaceBase { base, back }))
            }
            WorkspaceCopy::In | WorkspaceCopy::Both { .. } => {
                let copied = match hides {
                    Some(hides) => remote.copy_shown_in(workspace, to, options, hides).await,
                    None => remote.copy_in(workspace, to, options).await,
                };
                (copied.map_err(stopped)?, None)
            }
        };
        self.tell_skipped("the copy of the workspace", &copied);
        Ok(base)
    }

    /// Moves what differs in the copy of the workspace into the workspace, if it comes back, and keeps what is told of
    /// it.
    pub(super) async fn write_back(&self, running: &Running) {
        let Some(copy) = &running.copy else { return };
        let Some(back) = lock(&copy.back).take() else { return };
        let moved = match running.remote.end() {
            Some(_) => Err(Unmoved {
                why: "the container has ended, and with it what commands had changed in the workspace".to_owned(),
                id: None,
            }),
            None => self.moved(running, &copy.base, back).await,
        };
        let lost = self.has_lost_copy.swap(false, Ordering::Relaxed).then(|| {
            "an earlier container ended, and with it what commands had changed in the workspace until then".to_owned()
        });
        let settled = match (moved, lost) {
            (Ok(None), None) => None,
            (Ok(None), lost) => Some((WriteBack::uncommitted(None), lost)),
            (Ok(Some(changes)), lost) => Some((changes, lost)),
            (Err(Unmoved { why, id }), lost) => {
                let why = lost.map_or(why.clone(), |lost| format!("{why}; {lost}"));
                Some((WriteBack::uncommitted(id), Some(why)))
            }
        };
        *lock(&self.settled) = settled;
    }

    async fn moved(&self, running: &Running, base: &Base, back: WriteBack) -> Result<Option<Changes>, Unmoved> {
        const AS_IT_WAS: &str = "what commands changed was not written back, and the workspace is as it was";
        let layer = back.layer();
        let limits = Limits::default();
        let options = CopyOptions {
            max_entries: limits.entries,
            max_bytes: limits.bytes,
            ..CopyOptions::default()
        };
        let back = Arc::new(Mutex::new(Some(back)));
        let takes = Arc::clone(&back);
        let gone = move |path: &Path| {
            let gone = lock(&takes).as_mut().map_or(Ok(()), |back| back.gone(path));
            gone.map_err(|error| CopyError {
                kind: CopyErrorKind::Io,
                path: path.to_owned(),
                detail: error.to_string(),
            })
        };
        let copied = running
            .remote
            .copy_changes_out(base, &self.options.workdir, &layer, options, gone)
            .await;
        let taken = lock(&back).take();
        let Some(back) = taken else {
            return Err(Unmoved {
                why: AS_IT_WAS.to_owned(),
                id: None,
            });
        };
        let copied = match copied {
            Ok(copied) => copied,
            Err(error) => {
                let id = back.give_up();
                let kept = id.as_ref().map_or_else(String::new, |id| {
                    format!(
                        "; what was copied until then is kept in the incomplete change set {id}: look with `shieling \
                         changes show {id}`, remove it with `shieling changes discard {id}`"
                    )
                });
                return Err(Unmoved {
                    why: format!("{AS_IT_WAS}: {error}{kept}"),
                    id,
                });
            }
        };
        let rules = lock(&self.rules).clone().unwrap_or_default();
        let hidden = self.hidden();
        let committed = tokio::task::spawn_blocking(move || back.commit(rules, hidden)).await;
        let changes = match committed {
            Ok(Ok(changes)) => changes,
            Ok(Err(NotWrittenBack { error, id })) => {
                return Err(Unmoved {
                    why: format!(
                        "{AS_IT_WAS}: {}; it is kept as the change set {id}: look with `shieling changes show {id}`, \
                         and once that is mended move it with `shieling changes apply {id}`",
                        caused(&error)
                    ),
                    id: Some(id),
                });
            }
            Err(error) => {
                return Err(Unmoved {
                    why: format!("{AS_IT_WAS}: {error}; see `shieling changes list`"),
                    id: None,
                });
            }
        };
        Ok(with_left_out(changes, &copied))
    }

    /// Tells what was left out of a copy.
    pub(super) fn tell_skipped(&self, of: &str, copied: &Copied) {
        let Some(progress) = &self.progress else { return };
        for skipped in copied.skipped.iter().take(TOLD) {
            progress(&format!(
                "left out of {of}: `{}`: {}",
                skipped.path.display(),
                skipped.because
            ));
        }
        let more = copied.skipped_total.saturating_sub(TOLD as u64);
        if more > 0 {
            progress(&format!("left out of {of}: {more} more"));
        }
    }
}

/// Why what changed is not in the workspace, and the set in which it is kept, if it is.
struct Unmoved {
    why: String,
    id: Option<String>,
}

/// An error with its cause.
fn caused(error: &ChangesError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Adds what could not be copied back to what is held back.
fn with_left_out(changes: Option<Changes>, copied: &Copied) -> Option<Changes> {
    if copied.skipped_total == 0 {
        return changes;
    }
    let mut changes = changes.unwrap_or_else(WriteBack::unchanged);
    let held = copied.skipped.iter().map(|skipped| {
        let instead = "only readable files, directories and links come back, of sizes that the file system of the \
                       workspace can hold; the workspace has there what it had";
        HeldBack::new(&skipped.path, &skipped.because, instead.to_owned())
    });
    changes.held_back.extend(held);
    if let Some(totals) = &mut changes.totals {
        totals.held_back += copied.skipped_total;
    }
    Some(changes)
}

/// The change set that records a copy, and the first error of that.
type Taking = Arc<Mutex<Option<(WriteBack, Result<(), ChangesError>)>>>;

/// Records what is copied.
fn seen(taking: &Taking) -> Seen {
    let taking = Arc::clone(taking);
    Box::new(move |path, found| {
        if let Some((back, seen @ Ok(()))) = &mut *lock(&taking) {
            *seen = back.seen(path, Node::from(found));
        }
    })
}
