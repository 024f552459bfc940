//! Runs a process to its end, within bounds, and tells how it ended.

use super::drive::Drive;
use super::finished::{Finished, Limits};
use super::handle::Process;
use crate::output::{Capture, SpillTo, Tee};

/// Runs `process` to its end and keeps `limits.keep` of each stream; the whole goes to `spill`.
///
/// Returns within the deadline, the grace and about 10 ms, whoever holds the pipes. Background
/// processes that outlive the main one are given 20 ms of silence (200 ms at most), then ended and
/// counted. Output written before the end of the last process is never lost.
///
/// `tee` gets every byte as it arrives; it must not block for long, since the deadline waits for it.
///
/// # Cancel safety
/// Dropping the future kills every process of the job.
pub async fn run_to_end(
    process: Process,
    limits: &Limits,
    spill: Option<&SpillTo>,
    tee: Option<&mut dyn Tee>,
) -> Finished {
    let mut parts = process.into_parts();
    let pipes = [parts.stdout, parts.stderr];
    let capture = Capture::new(limits.keep, spill);
    let mut drive = Drive::new(&mut parts.job, &pipes, parts.started, limits, capture, tee);
    drive.drive().await;
    drive.rest().await;
    drive.finish()
}
