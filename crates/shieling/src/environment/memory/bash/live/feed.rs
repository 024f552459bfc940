//! Programs that read input which arrives while a text runs. Each call runs in a bash of its own, as a
//! program is a process of its own, behind one that hands it the input piece by piece.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use bashkit::{
    Builtin, BuiltinContext, BuiltinRegistry, Command, CommandContext, CommandInput, CommandStatus, ExecOptions,
    ExecResult, ExecutionPlan, LimitExceeded, SubCommand, async_trait,
};
use tokio::sync::Notify;

use super::record::Record;
use super::{Live, wants};
use crate::environment::memory::bash::disk::stub;

/// Whoever hands out the input, and whoever says that nobody wants more of it, in the bash of a program.
const HAND: &str = "shieling:hand";
const OVER: &str = "shieling:over";
/// What bashkit streams through pipes by its name; the rest gets the whole of a pipe.
const STREAMED: [&str; 3] = ["cat", "grep", "tr"];

/// A program of bashkit's that may read the input of the text.
pub(super) struct Fed {
    pub(super) name: &'static str,
    pub(super) live: Arc<Live>,
}

#[async_trait]
impl Builtin for Fed {
    fn streams_io(&self) -> bool {
        STREAMED.contains(&self.name)
    }

    /// Where a file of the shell's is named, as `<(…)` makes it, the call stays in the shell, and begins when
    /// all of its input is there.
    async fn execution_plan(&self, ctx: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        if !ctx.args.iter().any(|arg| arg.contains("/dev/fd/")) {
            return Ok(None);
        }
        let live = &self.live;
        let stdin = match ctx.stdin {
            Some(stdin) => stdin.clone(),
            None if !wants::reads(self.name, ctx.args) || live.has_taken_a_pipe(ctx.variables) => Vec::new().into(),
            // It may be a pipe, which is not seen from here.
            None if self.streams_io() => return Ok(None),
            None => live.input.record(&Record::all()).await?.into(),
        };
        let call = SubCommand {
            name: stub(self.name),
            args: ctx.args.to_vec(),
            stdin: Some(stdin),
            assignments: Vec::new(),
        };
        Ok(Some(ExecutionPlan::Batch { commands: vec![call] }))
    }

    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let reads = wants::reads(self.name, ctx.args);
        let from = if ctx.stdin.is_some() || self.live.has_taken_a_pipe(ctx.variables) {
            Origin::Shell
        } else if !reads {
            Origin::Nothing
        } else if self.streams_io() {
            Origin::PipeOrText(self.live.mark(ctx.variables))
        } else {
            Origin::Text
        };
        // The way to bashkit's streams, which only a command has.
        let registry = BuiltinRegistry::new();
        let live = Arc::clone(&self.live);
        registry.insert_command(
            self.name,
            Call {
                name: self.name,
                live,
                from,
            },
        );
        let command = registry.lookup(self.name).expect("inserted above");
        command.execute(ctx).await
    }
}

/// Where the input of one call comes from.
#[derive(Clone, Copy)]
enum Origin {
    /// A pipe, a file or a here-document.
    Shell,
    /// A pipe if there is one, else the input of the text: bashkit tells only commands. The mark says that
    /// it was a pipe to whoever comes after it.
    PipeOrText(u64),
    Text,
    Nothing,
}

struct Call {
    name: &'static str,
    live: Arc<Live>,
    from: Origin,
}

/// Why the input could not be read, if it could not.
type Fault = Arc<Mutex<Option<io::Error>>>;

/// What is handed out.
enum Source {
    Shell { first: Vec<u8>, rest: CommandInput },
    Text(Arc<Live>),
    Nothing,
}

impl Source {
    async fn piece(&mut self) -> bashkit::Result<Vec<u8>> {
        match self {
            Self::Shell { first, .. } if !first.is_empty() => Ok(std::mem::take(first)),
            Self::Shell { rest, .. } => Ok(rest.read_chunk().await?.unwrap_or_default()),
            Self::Text(live) => Ok(live.input.piece().await?),
            Self::Nothing => Ok(Vec::new()),
        }
    }
}

impl Call {
    async fn source(&self, stdin: &CommandInput) -> bashkit::Result<Source> {
        let shell = |first| Source::Shell {
            first,
            rest: stdin.clone(),
        };
        let mark = match self.from {
            Origin::Shell => return Ok(shell(Vec::new())),
            Origin::Text => return Ok(Source::Text(Arc::clone(&self.live))),
            Origin::Nothing => return Ok(Source::Nothing),
            Origin::PipeOrText(mark) => mark,
        };
        // Where there is no pipe, its end is there at once; a pipe is asked before its writer runs.
        let mut waited = false;
        let mut first = pin!(tokio::task::unconstrained(stdin.read_chunk()));
        let first = std::future::poll_fn(|cx| {
            let polled = first.as_mut().poll(cx);
            waited |= polled.is_pending();
            polled
        });
        let first = first.await?;
        if first.is_none() && !waited {
            return Ok(Source::Text(Arc::clone(&self.live)));
        }
        self.live.took_a_pipe(mark);
        Ok(shell(first.unwrap_or_default()))
    }
}

#[async_trait]
impl Command for Call {
    async fn execute(&self, ctx: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let source = self.source(&ctx.stdin).await?;
        let variables: BTreeMap<String, String> = ctx
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut engine = self.live.kit.bash_on(Arc::clone(&self.live.disk), ctx.cwd, &variables);
        let over = Arc::new(Notify::new());
        let fault = Fault::default();
        let hand = Hand {
            source: Mutex::new(Some(source)),
            over: Arc::clone(&over),
            fault: Arc::clone(&fault),
        };
        engine.registry.insert_command(HAND, hand);
        engine.registry.insert(OVER, Arc::new(Over(over)));
        let text = format!("{HAND} | {{ {} \"$@\"; {OVER} $?; }}", self.name);
        let (stdout, stderr) = (ctx.stdout.clone(), ctx.stderr.clone());
        let ran = engine
            .bash
            .execute(&text)
            .options(ExecOptions::new().positional(ctx.args.iter().cloned()))
            .stdout_fn(move |bytes| {
                let stdout = stdout.clone();
                async move { stdout.write_all(&bytes).await }
            })
            .stderr_fn(move |bytes| {
                let stderr = stderr.clone();
                async move { stderr.write_all(&bytes).await }
            })
            .await?;
        let fault = fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(fault) = fault else {
            return Ok(CommandStatus::with_code(ran.exit_code));
        };
        if fault.kind() == io::ErrorKind::OutOfMemory {
            return Err(bashkit::Error::ResourceLimit(LimitExceeded::Memory(fault.to_string())));
        }
        let said = format!("{}: -: {}\n", self.name, super::told(&fault));
        ctx.stderr.write_all(said.as_bytes()).await?;
        Ok(CommandStatus::with_code(ran.exit_code.max(1)))
    }
}

/// Hands the input out while somebody wants it.
struct Hand {
    source: Mutex<Option<Source>>,
    over: Arc<Notify>,
    fault: Fault,
}

#[async_trait]
impl Command for Hand {
    async fn execute(&self, ctx: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
        let handed = async {
            let mut source = source.unwrap_or(Source::Nothing);
            loop {
                let piece = match source.piece().await {
                    Err(bashkit::Error::Io(error)) => {
                        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        return Ok(());
                    }
                    piece => piece?,
                };
                if piece.is_empty() {
                    return Ok(());
                }
                ctx.stdout.write_all(&piece).await?;
            }
        };
        tokio::select! {
            handed = handed => handed.map(|()| CommandStatus::success()),
            () = self.over.notified() => Ok(CommandStatus::success()),
        }
    }
}

/// Says that nobody wants more, and gives the status back that it is given.
struct Over(Arc<Notify>);

#[async_trait]
impl Builtin for Over {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        self.0.notify_one();
        Ok(super::status(ctx.args))
    }
}
