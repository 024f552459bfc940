//! A shell that stays on the other side.

use std::sync::Arc;

use shieling::process::{Process, SessionShell, ShellError, SpawnError, Starting, State};
use shieling::request::Command;

use super::arrived::Standing;
use super::calls::{Call, Near, Unanswered, Waiting};
use super::job::{Ordered, process, unanswered, unfitting};
use crate::message::{Order, Said, WireCommand};

/// A shell that stays on the other side. Dropping it ends it there.
pub(super) struct Shell {
    call: Call,
    standing: Arc<Standing>,
}

/// Starts a shell on the other side.
pub(super) async fn open(near: &Arc<Near>, name: &str, first: &Command) -> Result<Shell, SpawnError> {
    let standing = Arc::new(Standing::default());
    let shell = Some(Arc::clone(&standing));
    let waiting = |_| Waiting {
        shell,
        ..Waiting::default()
    };
    let order = Order::Open(WireCommand::of(first));
    match near.call(&order, &[], waiting).await {
        Ok((call, Said::Opened(state), _)) => {
            standing.stands(state.state(), false);
            Ok(Shell { call, standing })
        }
        Ok((_, Said::NotStarted(fault), _)) => Err(fault.error()),
        Ok(_) => Err(unfitting()),
        Err(why) => Err(unanswered(name, why)),
    }
}

impl Shell {
    async fn start(&mut self, text: &str) -> Result<Process, ShellError> {
        let failed = |error: std::io::Error| ShellError::Order {
            what: "making a pipe",
            errno: rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO),
        };
        let near = Arc::clone(&self.call.near);
        let ordered = Ordered::new(&near);
        let began = ordered.began;
        let order = Order::Run {
            shell: self.call.number,
            text: text.to_owned(),
            window: ordered.window,
        };
        match near.call(&order, &[], |call| ordered.waiting(&near, call)).await {
            Ok((call, Said::Started { input }, _)) => match ordered.begun(input) {
                Some(running) => {
                    let process = process(call, &running, Some(Arc::clone(&self.standing))).map_err(failed)?;
                    Ok(process.with_start(began))
                }
                None => Err(ShellError::Ended),
            },
            Ok((_, Said::NotRun(fault), _)) => Err(fault.error()),
            Ok(_) => Err(ShellError::Stuck),
            Err(Unanswered::NotSent(_) | Unanswered::Lost(_)) => {
                self.standing.lost();
                Err(ShellError::Ended)
            }
        }
    }
}

impl SessionShell for Shell {
    fn run<'a>(&'a mut self, text: &'a str) -> Starting<'a> {
        Box::pin(self.start(text))
    }

    fn state(&self) -> State {
        self.standing.lock().0.clone()
    }

    fn has_ended(&self) -> bool {
        self.standing.lock().1
    }
}
