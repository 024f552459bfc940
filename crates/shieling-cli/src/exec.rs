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
        Ran::Ended(outcome) => {
            if options.json {
                crate::print_json(&outcome)?;
            } else {
                crate::write_all(io::stderr().lock(), &words::end(&outcome, &command))?;
            }
            Ok(words::exit_status(&outcome))
        }
    }
}
