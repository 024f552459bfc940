//! Runs a process to its end, within bounds, and tells how it ended.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::watch;

use super::drive::{CallerControl, Drive, Stop, Wishes};
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
    run_until(process, limits, spill, tee, pending()).await
}

/// As [`run_to_end`]. Once `stop` has come, all processes get SIGTERM, and after the time that it gives SIGKILL.
pub(crate) async fn run_until(
    process: Process,
    limits: &Limits,
    spill: Option<&SpillTo>,
    tee: Option<&mut dyn Tee>,
    stop: impl Future<Output = Duration>,
) -> Finished {
    let mut parts = process.into_parts();
    let pipes = [parts.stdout, parts.stderr];
    let capture = Capture::new(limits.keep, spill);
    let (wish, wishes) = watch::channel(Wishes {
        drained: true,
        stop: None,
    });
    let (main, _) = watch::channel(None);
    let drive = Drive::new(&mut parts.job, &pipes, parts.started, limits, capture, tee);
    let mut drive = drive.caller(CallerControl { wishes, main });
    {
        let mut driven = pin!(drive.drive());
        tokio::select! {
            biased;
            () = &mut driven => {}
            grace = stop => {
                let stop = Some(Stop { cause: None, grace });
                wish.send_modify(|wishes| wishes.stop = stop);
                driven.await;
            }
        }
    }
    drive.rest().await;
    drive.finish()
}
