//! The agent program: serves one environment over its standard input and output, in the protocol of
//! `docs/protocol.md`, until they end. It is sent to where commands are to run, and needs nothing there: it is
//! static, and carries the sandbox's program and the builtin for sessions in itself.
//!
//! What it cannot do, it says on its standard error before it has sent anything, and ends with status 1 (what is
//! asked cannot be had here) or 2 (the arguments are wrong).

mod init;
mod left;
mod look;
mod outer;
mod place;
mod stream;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use shieling_remote::agent::Setup;
use shieling_remote::{Served, Timing};

/// How long a change of a file that is under way may take once the link is over.
const LAST_CHANGE: Duration = Duration::from_secs(4);

fn main() -> ExitCode {
    let setup = match Setup::parse(std::env::args_os().skip(1)) {
        Ok(setup) => setup,
        Err(error) => return failed(2, &error.to_string()),
    };
    if setup.remove_itself {
        return outer::run(&setup).unwrap_or_else(|error| failed(1, &format!("it cannot start itself: {error}")));
    }
    if let Some(directory) = &setup.programs {
        shieling::process::programs_in(directory);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return failed(1, &format!("no event loop can be made: {error}")),
    };
    // What runs here as the same user is not to read or trace it. A kernel that refuses leaves it as it was.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let served = runtime.block_on(async {
        // Before anything is started that could end.
        let init = init::Init::new().map_err(|error| format!("signals cannot be watched: {error}"))?;
        let (reader, writer) = {
            let (input, output) = stream::take_standard().map_err(|error| format!("no streams: {error}"))?;
            let reader = stream::reader(input).map_err(|error| format!("standard input: {error}"))?;
            let writer = stream::writer(output).map_err(|error| format!("standard output: {error}"))?;
            (reader, writer)
        };
        let (environment, surroundings) = place::open(&setup).await?;
        let served = Served {
            environment: Arc::clone(&environment),
            surroundings,
            kills: setup.watch_memory.then(|| Box::new(look::kills) as _),
            copies: setup.copies,
        };
        tokio::select! {
            why = served.serve(reader, writer, Timing::default()) => drop(why),
            () = init.told_to_end() => environment.close().await,
        }
        Ok::<(), String>(())
    });
    // A change of a file that is under way is brought to its end, or taken back.
    runtime.shutdown_timeout(LAST_CHANGE);
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(1, &error),
    }
}

fn failed(status: u8, why: &str) -> ExitCode {
    // Nobody is left to tell if this cannot be written.
    let _ = writeln!(std::io::stderr().lock(), "shieling-agent: {why}");
    ExitCode::from(status)
}
