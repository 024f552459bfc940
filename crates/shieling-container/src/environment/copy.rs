//! Directories that are copied into a container and out of it, the workspace among them.

use std::path::Path;

use shieling_remote::{Copied, CopyError, CopyOptions, Remote};

use super::Container;
use super::inner::Inner;
use crate::error::ContainerError;

/// How many of the entries that were left out are told of one by one.
const TOLD: usize = 5;

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
    pub(super) async fn copy_workspace(&self, remote: &Remote) -> Result<(), ContainerError> {
        let (Some(_), Some(workspace)) = (&self.options.workspace_copy, &self.options.workspace) else {
            return Ok(());
        };
        let copied = remote
            .copy_in(workspace, &self.options.workdir, CopyOptions::default())
            .await;
        let copied = copied.map_err(|error| {
            failed(
                &format!("the workspace `{}` into the container", workspace.display()),
                error,
            )
        })?;
        self.tell_skipped("the copy of the workspace", &copied);
        Ok(())
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
