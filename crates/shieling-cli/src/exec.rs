//! `shieling exec`: one command, from the options to the exit status.

use std::io;

use crate::approver::Terminal;
use crate::options::{Approval, Exec};
use crate::plan::Purpose;
use crate::quote;
use crate::run::{self, Library, Ran, Shown};
use crate::words::{self, Failure};

/// Runs the command and says with which status to exit.
pub(crate) fn exec(options: &Exec) -> Result<u8, Failure> {
    let plan = run::plan(&options.source, Purpose::Run)?;
    let approver = match plan.approval {
        Approval::Always | Approval::Policy => Terminal::find(),
        Approval::Never => None,
    };
    let library = Library::open(&plan, approver)?;
    let command = library.command(&plan, &quote::command_text(&options.command))?;
    let shown = if options.json {
        Shown::Json
    } else {
        Shown::Streams {
            keep: plan.output_kept(),
        }
    };
    match library.run(command.clone(), shown)? {
        Ran::Stopped { signal } => Ok(128 + signal),
        Ran::Ended { outcome, missing } => {
            if options.json {
                crate::print_json(&outcome)?;
            }
            match missing {
                // Its cause and the ways on are no part of an outcome.
                Some(missing) => crate::write_all(io::stderr().lock(), &format!("{missing}\n"))?,
                None if options.json => {}
                None => crate::write_all(
                    io::stderr().lock(),
                    &words::end(&outcome, &command, plan.memory_limit()),
                )?,
            }
            if let Some(id) = outcome.recording.as_ref().filter(|_| !options.json) {
                crate::write_all(io::stderr().lock(), &format!("recorded: shieling log replay {id}\n"))?;
            }
            Ok(words::exit_status(&outcome))
        }
    }
}
