//! The process around the agent where the place has a process 1 of its own, which may reap nothing: it removes the
//! program's file and what earlier starts have left, and waits for the agent and for whatever the agent leaves, so that nothing stays as a dead process.
#![expect(clippy::disallowed_methods, reason = "it starts itself once more")]

use std::io;
use std::process::{Command, ExitCode};

use rustix::process::WaitOptions;
use shieling_remote::agent::Setup;

use crate::{left, look};

/// Starts the agent with the same streams, and ends as it did.
#[allow(
    clippy::zombie_processes,
    reason = "every child is waited for below, by whatever number"
)]
pub(crate) fn run(setup: &Setup) -> io::Result<ExitCode> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let inner = Setup {
        remove_itself: false,
        ..setup.clone()
    };
    let child = Command::new("/proc/self/exe").args(inner.arguments()).spawn();
    look::remove_itself();
    left::sweep();
    let agent = child?.id();
    let mut ended = ExitCode::SUCCESS;
    while let Ok(found) = rustix::process::wait(WaitOptions::empty()) {
        if let Some((pid, status)) = found
            && u32::try_from(pid.as_raw_nonzero().get()) == Ok(agent)
        {
            let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
            ended = code.map_or(ExitCode::FAILURE, ExitCode::from);
        }
    }
    Ok(ended)
}
