//! `read` and `mapfile` for input that arrives while a text runs: they take what is theirs of it, and
//! bashkit's do the rest.

use std::sync::Arc;
use std::time::Duration;

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, StreamData, SubCommand, async_trait};

use super::record::{Asked, Record};
use super::{Live, STATUS};
use crate::environment::memory::bash::disk::stub;

/// The status of a `read` whose time was over: that of SIGALRM.
const TIMED_OUT: &str = "142";

/// One of the builtins that take lines, and leave the rest.
pub(super) struct Taker {
    pub(super) name: &'static str,
    pub(super) live: Arc<Live>,
}

/// What came of waiting for a record.
enum Taken {
    Record(Vec<u8>),
    /// The rest, which no delimiter ends, with one.
    Last(Vec<u8>),
    /// What had come when the time was over.
    TimedOut(Vec<u8>),
}

impl Taker {
    /// What is taken of the text's input; nothing if these arguments name another one.
    async fn taken(&self, args: &[String]) -> std::io::Result<Option<Taken>> {
        let input = &self.live.input;
        if self.name != "read" {
            // One of another descriptor, which bashkit refuses.
            if Record::mapfile_of_another(args) {
                return Ok(None);
            }
            let record = input.record(&Record::of_mapfile(args)).await?;
            return Ok(Some(Taken::Record(record)));
        }
        let asked = Asked::of(args);
        if asked.descriptor.is_some_and(|descriptor| descriptor != "0") {
            return Ok(None);
        }
        let Some(seconds) = asked.patience else {
            let mut record = input.record(&asked.record).await?;
            if asked.record.end(&record).is_some() {
                return Ok(Some(Taken::Record(record)));
            }
            return Ok(Some(match asked.record.delimiter() {
                Some(delimiter) => {
                    record.push(delimiter);
                    Taken::Last(record)
                }
                None => Taken::Record(record),
            }));
        };
        let patience = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        match tokio::time::timeout(patience, input.record(&asked.record)).await {
            Ok(record) => Ok(Some(Taken::Record(record?))),
            Err(_) => Ok(Some(Taken::TimedOut(input.begun()))),
        }
    }
}

#[async_trait]
impl Builtin for Taker {
    async fn execute(&self, _ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Err(bashkit::Error::Internal(format!("{} has a plan", self.name)))
    }

    async fn execution_plan(&self, ctx: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        let call = |name: String, args: &[String], stdin: Option<StreamData>| SubCommand {
            name,
            args: args.to_vec(),
            stdin,
            assignments: Vec::new(),
        };
        let own = |stdin| call(stub(self.name), ctx.args, stdin);
        let status = |code: &str| call(STATUS.to_owned(), &[code.to_owned()], None);
        let commands = if ctx.stdin.is_some() || self.live.has_taken_a_pipe(ctx.variables) {
            vec![own(ctx.stdin.cloned())]
        } else if self.name == "read" && Asked::of(ctx.args).patience == Some(0.0) {
            vec![status(if self.live.input.is_ready() { "0" } else { "1" })]
        } else {
            match self.taken(ctx.args).await {
                Ok(Some(Taken::Record(record))) => vec![own(Some(record.into()))],
                // It fails here and not in there: a failure is acted on once.
                Ok(Some(Taken::Last(rest))) => return Ok(Some(failing(own(Some(rest.into())), String::new()))),
                Ok(Some(Taken::TimedOut(begun))) => vec![own(Some(begun.into())), status(TIMED_OUT)],
                Ok(None) => vec![own(None)],
                Err(error) => {
                    let said = format!("bash: {}: read error: 0: {}\n", self.name, super::told(&error));
                    return Ok(Some(failing(status("0"), said)));
                }
            }
        };
        Ok(Some(ExecutionPlan::Batch { commands }))
    }
}

/// Runs this, says that, and fails.
fn failing(command: SubCommand, said: String) -> ExecutionPlan {
    ExecutionPlan::BatchWithStatus {
        commands: vec![command],
        stderr_prefix: said,
        force_error_exit: true,
    }
}
