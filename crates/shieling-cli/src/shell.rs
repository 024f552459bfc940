//! `shieling shell`: a person's interactive shell, where commands would run and bound as they would be.

use std::io::{self, IsTerminal as _};

use crate::options::{Isolation, Shell};
use crate::plan::{Plan, Purpose};
use crate::run::{self, Library, Ran};
use crate::setup;
use crate::words::{self, Failure};

/// Runs the shell and says with which status to exit: the shell's own.
pub(crate) fn shell(options: &Shell) -> Result<u8, Failure> {
    let plan = run::plan(&options.source, Purpose::Shell)?;
    if !io::stdin().is_terminal() {
        return Err(
            Failure::new("there is no terminal on standard input, which a shell for a person needs")
                .with("instead", "run commands with `shieling exec`"),
        );
    }
    let library = Library::opened(&plan, None, None, true)?;
    crate::run::tell_what_is_open(&plan)?;
    let command = library.command(&plan, &text(&plan)?)?;
    match library.run_shell(command.clone())? {
        Ran::Stopped { signal } => Ok(128 + signal),
        Ran::Ended { outcome, missing, .. } => {
            match missing {
                Some(missing) => crate::print::write_all(io::stderr().lock(), &format!("{missing}\n"))?,
                None => crate::print::write_all(
                    io::stderr().lock(),
                    &words::end(&outcome, &command, plan.memory_limit()),
                )?,
            }
            Ok(words::exit_status(&outcome))
        }
    }
}

/// The text that starts it. No start-up file is read: in the environment there is none of the person's.
fn text(plan: &Plan) -> Result<String, Failure> {
    let tier = match plan.isolation {
        Isolation::Full => "",
        Isolation::Landlock => ":landlock",
    };
    let prompt = format!("({}{tier}) \\w \\$ ", plan.env);
    let shell = setup::shell_of(plan)?;
    let program = shell.to_string_lossy();
    Ok(format!(
        "PS1={} exec {} --noprofile --norc -i",
        shieling::policy::quoted(&prompt),
        shieling::policy::quoted(&program)
    ))
}
