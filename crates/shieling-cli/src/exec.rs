//! `shieling exec`: one command, from the options to the exit status.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;

use shieling::outcome::{Confinement, Outcome, Status};

use crate::approver::Terminal;
use crate::options::{Approval, Chosen, Exec};
use crate::plan::{Plan, Purpose};
use crate::quote;
use crate::run::{self, Input, Library, Ran, Shown};
use crate::words::{self, Failure};

/// Runs the command and says with which status to exit. With `--json` there is an object also where nothing started.
pub(crate) fn exec(options: &Exec) -> Result<u8, Failure> {
    let done = run(options);
    if let Err(failure) = &done
        && options.json
    {
        print_failure(failure.what(), options.source.settings.env.as_ref())?;
    }
    done
}

/// Prints the outcome of a command that could not be started.
pub(crate) fn print_failure(error: String, environment: Option<&Chosen>) -> Result<(), Failure> {
    let here = match environment {
        // No directory of this machine is one of that.
        Some(Chosen::Ssh(destination)) => destination.directory().map(PathBuf::from).unwrap_or_default(),
        Some(Chosen::Here(_)) | None => std::env::current_dir().unwrap_or_default(),
    };
    let environment = environment.map_or(Purpose::Exec.default_environment(), Chosen::name);
    let outcome = Outcome {
        error: Some(error),
        ..Outcome::blank(Status::Failed, here, environment.to_string())
    };
    crate::print::print_json(&outcome)
}

fn run(options: &Exec) -> Result<u8, Failure> {
    let mut plan = run::plan(&options.source, Purpose::Exec)?;
    let approver = match plan.approval {
        Approval::Always | Approval::Policy => Terminal::find(),
        Approval::Never => None,
    };
    let shown = shown(options, &plan);
    let on_terminal = matches!(shown, Shown::Terminal);
    // What is copied whole need not be stored as well.
    plan.store_output = !matches!(shown, Shown::Streams { limit: None });
    let library = Library::opened(
        &plan,
        approver.map(|terminal| Arc::new(terminal) as _),
        None,
        on_terminal,
    )?;
    run::tell_what_is_open(&plan)?;
    let command = library.command(&plan, &quote::command_text(&options.command))?;
    let input = if options.no_stdin { Input::Nothing } else { Input::Ours };
    match library.run(command.clone(), input, shown)? {
        Ran::Stopped { signal } => Ok(128 + signal),
        Ran::Ended {
            mut outcome,
            missing,
            by,
        } => {
            // The outcome keeps a part of what was copied whole.
            outcome.truncated &= plan.store_output;
            let unconfined = plan.far.as_ref().is_some_and(|far| !far.is_confined());
            if unconfined && outcome.confinement == Confinement::default() {
                // Of a command that did not start nothing is known, and this is true of it all the same.
                outcome.confinement.missing.push("sandbox".to_owned());
            }
            if options.json {
                if let Some(missing) = &missing {
                    outcome.error = Some(missing.what());
                }
                crate::print::print_json(&outcome)?;
            } else if on_terminal {
                // What was said without the command, such as a syntax error, has not been on the terminal.
                crate::print::write_all(io::stderr().lock(), &outcome.stderr)?;
            }
            match missing {
                // Its cause and the ways on are no part of an outcome.
                Some(missing) => crate::print::write_all(io::stderr().lock(), &format!("{missing}\n"))?,
                None if options.json => {}
                None => crate::print::write_all(
                    io::stderr().lock(),
                    &words::end(&outcome, &command, plan.memory_limit()),
                )?,
            }
            if let Some(signal) = by.filter(|_| !options.json) {
                let told = format!(
                    "stopped  by signal {signal} to shieling: the command got SIGTERM, to be followed by SIGKILL after {} s\n",
                    run::GRACE.as_secs()
                );
                crate::print::write_all(io::stderr().lock(), &told)?;
            }
            if let Some(id) = outcome.recording.as_ref().filter(|_| !options.json) {
                crate::print::write_all(io::stderr().lock(), &format!("recorded: shieling log replay {id}\n"))?;
            }
            Ok(match by {
                // Whoever told us to stop is told that this has ended it, as by any other program.
                Some(signal) if outcome.status == Status::Signalled => 128 + signal,
                _ => words::exit_status(&outcome),
            })
        }
    }
}

/// How the output goes out. On a terminal the command gets one too, unless its streams are wanted apart.
fn shown(options: &Exec, plan: &Plan) -> Shown {
    let limit = plan.output_limit();
    if options.json {
        Shown::Json
    } else if limit.is_none() && !options.no_stdin && !plan.record && plan.env.has_terminals() && is_at_a_terminal() {
        Shown::Terminal
    } else {
        Shown::Streams { limit }
    }
}

/// Whether all three of our streams are a terminal in whose foreground we are. From the background, whoever
/// touches it is stopped.
fn is_at_a_terminal() -> bool {
    let foreground =
        || rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground == rustix::process::getpgrp());
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal() && foreground()
}
