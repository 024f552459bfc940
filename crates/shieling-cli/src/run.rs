//! Every call into the library that judges, runs, describes or verifies.
//!
//! The rest of this crate reads options, and words what comes back.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use shieling::outcome::Outcome;
use shieling::policy::Verdict;
use shieling::request::Command;
use shieling::units::ByteCount;
use tokio::signal::unix::{SignalKind, signal};

use crate::approver::Terminal;
use crate::config::Surroundings;
use crate::options::Source;
use crate::pending::{self, NotMerged, Stream, Tee};
use crate::plan::{Plan, Purpose};
use crate::stream::Bounded;
use crate::words::Failure;

impl From<NotMerged> for Failure {
    fn from(_: NotMerged) -> Self {
        Self::new("the library's part for this is not merged into this build")
    }
}

/// What holds for this invocation, from the command line and the files.
pub(crate) fn plan(source: &Source, purpose: Purpose) -> Result<Plan, Failure> {
    let surroundings = Surroundings::of_this_process()?;
    Plan::new(crate::config::load(source, &surroundings, purpose.default_environment())?, purpose)
}

/// The library, set up as planned.
pub(crate) struct Library {
    shieling: pending::Shieling,
    variables: BTreeMap<String, String>,
}

impl Library {
    /// Sets the library up. Nothing starts.
    pub(crate) fn open(plan: &Plan, approver: Option<Terminal>) -> Result<Self, Failure> {
        let pass: Vec<String> = plan.pass_env.iter().map(|name| name.as_str().to_owned()).collect();
        let set: Vec<(String, String)> =
            plan.set_env.iter().map(|set| (set.name.as_str().to_owned(), set.value.clone())).collect();
        // What is not UTF-8 cannot be passed on, and is no variable of the short list.
        let caller = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Ok(Self {
            shieling: pending::Shieling::build(plan, approver, state_directory().as_deref())?,
            variables: pending::variables(&caller, &pass, &set)?,
        })
    }

    /// The command that this text asks for.
    pub(crate) fn command(&self, plan: &Plan, text: &str) -> Result<Command, Failure> {
        Ok(plan.command(text)?.with_variables(self.variables.clone()))
    }

    /// What the policy says of a command. Nothing starts.
    pub(crate) fn judge(&self, command: &Command) -> Result<Verdict, Failure> {
        Ok(self.shieling.judge(command)?)
    }

    /// The environment as a model would be told of it, as text and as data.
    pub(crate) fn describe(&self) -> Result<(String, serde_json::Value), Failure> {
        Ok(self.shieling.describe()?)
    }

    /// Runs a command to its end, or to ours.
    pub(crate) fn run(&self, command: Command, shown: Shown) -> Result<Ran, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::new(format!("no event loop could be made: {error}")))?;
        let ran = runtime.block_on(self.run_until_told(command, shown));
        // A question on the terminal may still wait for its answer, which nobody needs any more.
        runtime.shutdown_background();
        ran
    }

    /// Dropping the run ends all of the command's processes, so that is how we stop: the terminal's
    /// signals reach us and not the command, which has a process group of its own.
    async fn run_until_told(&self, command: Command, shown: Shown) -> Result<Ran, Failure> {
        let no_signals = |error: io::Error| Failure::new(format!("signals cannot be received: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(no_signals)?;
        let (tee, mut gone, streams) = match shown {
            Shown::Json => (None, None, None),
            Shown::Streams { keep } => {
                let (tee, gone, streams) = copying(keep);
                (Some(tee), Some(gone), Some(streams))
            }
        };
        let gone = async {
            let told = match &mut gone {
                Some(gone) => gone.recv().await.is_some(),
                None => false,
            };
            if !told {
                std::future::pending().await
            }
        };
        let outcome = tokio::select! {
            outcome = self.shieling.run(command, tee) => outcome?,
            _ = interrupt.recv() => return Ok(Ran::Stopped { signal: 2 }),
            () = gone => return Ok(Ran::Stopped { signal: 13 }),
            _ = terminate.recv() => return Ok(Ran::Stopped { signal: 15 }),
            _ = hangup.recv() => return Ok(Ran::Stopped { signal: 1 }),
        };
        // The run is over and so the tee is dropped: what it kept is here.
        let left_out = match streams.map(|streams| streams.recv()) {
            Some(Ok(copy)) => match copy.finish() {
                Ok(left_out) => left_out,
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Ran::Stopped { signal: 13 }),
                Err(error) => return Err(Failure::new(format!("the output cannot be written: {error}"))),
            },
            Some(Err(_)) | None => false,
        };
        Ok(Ran::Ended { outcome: Box::new(outcome), left_out })
    }
}

/// What becomes of the output while the command runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown {
    /// Nothing; it stands in the outcome.
    Json,
    /// Both streams go to ours, `keep` bytes of each.
    Streams {
        /// How much of each.
        keep: ByteCount,
    },
}

/// How a run came back.
#[derive(Debug)]
pub(crate) enum Ran {
    /// With its outcome.
    Ended {
        /// What happened.
        outcome: Box<Outcome>,
        /// Whether any byte of the streams was not shown.
        left_out: bool,
    },
    /// We were told to stop, and ended the command.
    Stopped {
        /// By this signal; a reader that went away counts as SIGPIPE.
        signal: u8,
    },
}

/// Both of our streams, each bounded.
struct Copy {
    stdout: Bounded<io::Stdout>,
    stderr: Bounded<io::Stderr>,
}

impl Copy {
    fn finish(self) -> io::Result<bool> {
        let stdout = self.stdout.finish()?;
        Ok(self.stderr.finish()? || stdout)
    }
}

/// Copies while the command runs, and gives the copy back when it is dropped.
struct Copying {
    copy: Option<Copy>,
    gone: tokio::sync::mpsc::Sender<()>,
    back: mpsc::SyncSender<Copy>,
}

fn copying(keep: ByteCount) -> (Box<dyn Tee>, tokio::sync::mpsc::Receiver<()>, mpsc::Receiver<Copy>) {
    let (gone, when_gone) = tokio::sync::mpsc::channel(1);
    let (back, when_back) = mpsc::sync_channel(1);
    let keep = keep.as_usize();
    let copy = Copy { stdout: Bounded::new(io::stdout(), keep), stderr: Bounded::new(io::stderr(), keep) };
    (Box::new(Copying { copy: Some(copy), gone, back }), when_gone, when_back)
}

impl Tee for Copying {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        let Some(copy) = &mut self.copy else { return };
        let written = match stream {
            Stream::Stdout => copy.stdout.push(bytes),
            Stream::Stderr => copy.stderr.push(bytes),
        };
        if written.is_err() {
            // Nobody reads any more. If the message cannot go out, one is waiting already.
            let _ = self.gone.try_send(());
        }
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        if let Some(copy) = self.copy.take() {
            // Whoever is not there to receive it has been told to stop.
            let _ = self.back.try_send(copy);
        }
    }
}

/// One example of a policy file, run.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Example {
    /// The rule that it stands with.
    pub(crate) rule: String,
    /// The command.
    pub(crate) command: String,
    /// Whether the rule is to match.
    pub(crate) matches: bool,
    /// Whether that is so.
    pub(crate) holds: bool,
}

/// Loads a policy and runs its examples.
pub(crate) fn check_policy(path: &Path, text: &str) -> Result<Vec<Example>, Failure> {
    Ok(pending::check_policy(path, text)?)
}

/// A preset as TOML.
pub(crate) fn preset(name: &str) -> Result<String, Failure> {
    Ok(pending::preset(name)?)
}

/// What became of checking a chain.
#[derive(Debug)]
pub(crate) enum Chain {
    /// It is whole, with so many records.
    Whole {
        /// The number of records.
        records: u64,
    },
    /// It is broken.
    Broken {
        /// The first line that does not fit, from 1.
        line: u64,
        /// Why.
        because: String,
    },
}

/// Checks the hash chain of an audit log.
pub(crate) fn verify(log: &mut dyn BufRead) -> Result<Chain, Failure> {
    Ok(pending::verify(log)?)
}

/// A piece of a stored output.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// The first byte after it.
    pub(crate) next: u64,
    /// Whether there is nothing after it.
    pub(crate) end: bool,
}

/// Reads a piece of a stored output.
pub(crate) fn read_output(id: &str, stdout: bool, cursor: u64, at_most: u64) -> Result<Piece, Failure> {
    let directory = state_directory()
        .ok_or_else(|| Failure::new("there is no stored output: neither XDG_STATE_HOME nor HOME is set"))?
        .join("outputs");
    let stream = if stdout { Stream::Stdout } else { Stream::Stderr };
    Ok(pending::read_spilled(&directory, id, stream, cursor, at_most)?)
}

/// Where Shieling keeps what outlives a run: `$XDG_STATE_HOME/shieling`, or under `~/.local/state`.
pub(crate) fn state_directory() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("shieling"))
}
