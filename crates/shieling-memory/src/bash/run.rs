//! Runs a text in a bash: its input, its output, and its end.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bashkit::{Error, ExecOptions, LimitExceeded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::AsyncWriteExt as _;

use super::engine::{BashConfig, Engine};
use super::output_pipe::OutputPipe;
use super::precheck;
use crate::program::{Program, ProgramCall};
use shieling::process::MainEnd;

/// The status of an interrupted bash.
const SIGTERM: i32 = 15;
/// The status of a text that memory cannot run as bash would.
pub(super) const UNABLE: i32 = 125;
/// The interval at which a reader of input checks for an interruption.
const LOOKING: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// The source of standard input.
pub(crate) enum Stdin {
    Empty,
    From(OwnedFd),
}

/// The standard streams of a text.
pub(crate) struct Stdio {
    pub(crate) input: Stdin,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// The end of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) end: MainEnd,
    /// Whether it also ended its shell.
    pub(crate) exited: bool,
    /// Whether the shell is still inside of it.
    pub(crate) broken_off: bool,
    /// Whether nothing of it was run because bash cannot parse it.
    pub(super) syntax_check: bool,
}

impl Ran {
    pub(super) fn exited(code: i32) -> Self {
        Self {
            end: MainEnd::Exited(code),
            exited: false,
            broken_off: false,
            syntax_check: false,
        }
    }

    pub(crate) fn broken_off() -> Self {
        Self {
            end: MainEnd::Signalled(SIGTERM),
            broken_off: true,
            ..Self::exited(0)
        }
    }
}

impl Engine {
    /// Runs a text in a bash of this configuration.
    pub(crate) async fn run(&mut self, text: &str, stdio: Stdio, largest: Option<u64>, config: &BashConfig) -> Ran {
        let Stdio { input, stdout, stderr } = stdio;
        let Ok(mut stderr) = OutputPipe::new(stderr) else {
            return Ran::exited(UNABLE);
        };
        match self.run_from(text, input, stdout, &mut stderr, largest, config).await {
            Ok(ran) => ran,
            Err(error) => not_begun(&error, &mut stderr).await,
        }
    }

    async fn run_from(
        &mut self,
        text: &str,
        input: Stdin,
        stdout: OwnedFd,
        stderr: &mut OutputPipe,
        largest: Option<u64>,
        config: &BashConfig,
    ) -> io::Result<Ran> {
        let token = self.token();
        let mut stdout = OutputPipe::new(stdout)?;
        self.disk.limit_files(largest);
        self.take_unknown();
        self.shell_exit.reset();
        // `rg` searches its input if it has one, even an empty one, and otherwise files. The table counts it as one that
        // reads none.
        let has_none = names_rg(text) && !matches!(input, Stdin::From(_)) && {
            let others = precheck::check(text, self.readonly(text), true);
            !others.reads && !others.unsure && others.refused.is_none()
        };
        let mut given = Vec::new();
        // A bash for plain texts has no input and runs nothing that would be refused.
        if self.plain.is_none() {
            let precheck = precheck::check(text, self.readonly(text), matches!(input, Stdin::From(_)));
            if let Some(why) = precheck.refused {
                return Ok(refused(&why, stderr).await);
            }
            // An input that is not read may never end.
            if let Stdin::From(from) = input
                && (precheck.reads || precheck.unsure)
            {
                let most = usize::try_from(config.memory).unwrap_or(usize::MAX);
                match read_all(from, &token, most)? {
                    Some(all) => given = all,
                    None => return Ok(Ran::broken_off()),
                }
            }
        }
        self.disk.bytes.reset(&given);
        let mut options = ExecOptions::new();
        if !has_none {
            options = options.stdin(given);
        }
        let resumed = self.resumed(text);
        let ran = self
            .bash
            .execute(&resumed)
            .options(options)
            .stdout(&mut stdout)
            .stderr(&mut *stderr)
            .await;
        let (mut ran, mut more) = self.report_end(ran, text, &token, config);
        if stderr.has_cut_sed() && !ran.broken_off {
            ran.end = MainEnd::Exited(UNABLE);
            more = Some(refusal(
                "`sed` made more than 1,000 steps for a line, and its output is cut",
            ));
        }
        let refused = self
            .shell_exit
            .take_refused()
            .into_iter()
            .map(|why| format!("shieling: {why}\n"));
        let more = refused.chain(more).collect::<String>();
        // A reader that has closed the stream needs no message.
        let _ = stderr.write_all(more.as_bytes()).await;
        Ok(ran)
    }

    /// Returns the end, and writes the messages that belong to it.
    fn report_end(
        &self,
        ran: bashkit::Result<bashkit::ExecResult>,
        text: &str,
        token: &Arc<AtomicBool>,
        config: &BashConfig,
    ) -> (Ran, Option<String>) {
        let unable = |why: &str| {
            let ran = Ran {
                broken_off: true,
                ..Ran::exited(UNABLE)
            };
            (ran, Some(refusal(why)))
        };
        if let Some(why) = self.shell_exit.take_ended() {
            return unable(why);
        }
        let error = match ran {
            Ok(result) if result.stdout_truncated || result.stderr_truncated => {
                let why = "more output than memory holds at once; part of it is missing";
                return (Ran::exited(UNABLE), Some(refusal(why)));
            }
            Ok(result) => {
                let expansion = self.shell_exit.by_expansion();
                let unknown = self.take_unknown().filter(|_| result.exit_code == 127 && !expansion);
                let code = self.shell_exit.status(result.exit_code & 0xff, || self.errexit());
                let ran = Ran {
                    exited: self.shell_exit.left.load(Ordering::Relaxed),
                    ..Ran::exited(code)
                };
                return (ran, unknown.map(|unknown| missing(&unknown, &config.names())));
            }
            Err(error) => error,
        };
        if token.load(Ordering::Relaxed) {
            return (Ran::broken_off(), None);
        }
        match error {
            Error::Parse { .. } => {
                let report = error.syntax_report("bash: -c", text);
                let ran = Ran {
                    syntax_check: true,
                    ..Ran::exited(2)
                };
                (ran, report)
            }
            // The reader has closed the stream, which ends a program by SIGPIPE.
            Error::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                let ran = Ran {
                    end: MainEnd::Signalled(13),
                    ..Ran::broken_off()
                };
                (ran, None)
            }
            Error::ResourceLimit(LimitExceeded::Memory(why)) => {
                let ran = Ran {
                    end: MainEnd::OutOfMemory,
                    ..Ran::broken_off()
                };
                (ran, Some(refusal(&why)))
            }
            Error::ResourceLimit(limit @ LimitExceeded::ExecutionBudget(_)) => {
                let ran = Ran {
                    end: MainEnd::OutOfMemory,
                    ..Ran::broken_off()
                };
                (ran, Some(refusal(&limit.to_string())))
            }
            Error::ResourceLimit(limit) => unable(&limit.to_string()),
            other => unable(&other.to_string()),
        }
    }
}

fn refusal(why: &str) -> String {
    format!("shieling: this bash in memory cannot go on: {why}\n")
}

/// Returns the end of a text that was refused with a message.
async fn refused(why: &str, stderr: &mut OutputPipe) -> Ran {
    // A reader that has closed the stream needs no message.
    let _ = stderr.write_all(refusal(why).as_bytes()).await;
    Ran::exited(UNABLE)
}

/// Returns the end of a text whose streams fail.
async fn not_begun(error: &io::Error, stderr: &mut OutputPipe) -> Ran {
    let ran = refused(&error.to_string(), stderr).await;
    match error.kind() {
        io::ErrorKind::OutOfMemory => Ran {
            end: MainEnd::OutOfMemory,
            ..ran
        },
        _ => ran,
    }
}

fn missing(unknown: &str, names: &[&str]) -> String {
    format!(
        "shieling: memory has no program `{unknown}`; it has: {}\n",
        names.join(" ")
    )
}

/// Whether the word `rg` stands in a text.
fn names_rg(text: &str) -> bool {
    let mut words = text.split(|sign: char| !sign.is_alphanumeric() && !matches!(sign, '_' | '-' | '.'));
    words.any(|word| word == "rg")
}

/// Reads the whole input, unless it is interrupted.
fn read_all(from: OwnedFd, token: &AtomicBool, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut input = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        if token.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let borrowed = from.as_fd();
        let mut waiting = [PollFd::new(&borrowed, PollFlags::IN)];
        match poll(&mut waiting, Some(&LOOKING)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match rustix::io::read(&from, &mut piece[..]) {
            Ok(0) => return Ok(Some(input)),
            Ok(read) if input.len() + read > most => {
                return Err(io::Error::new(
                    io::ErrorKind::OutOfMemory,
                    "more input than memory holds",
                ));
            }
            Ok(read) => input.extend_from_slice(&piece[..read]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Runs a whole text with a handler.
pub(crate) async fn answer(
    program: &dyn Program,
    call: ProgramCall,
    stdio: Stdio,
    token: &AtomicBool,
    most: usize,
) -> Ran {
    let Ok(mut stderr) = OutputPipe::new(stdio.stderr) else {
        return Ran::exited(UNABLE);
    };
    let input = match stdio.input {
        Stdin::Empty => Ok(Some(Vec::new())),
        Stdin::From(from) => read_all(from, token, most),
    };
    let began = input.and_then(|input| Ok((input, OutputPipe::new(stdio.stdout)?)));
    let (input, mut stdout) = match began {
        Ok(began) => began,
        Err(error) => return not_begun(&error, &mut stderr).await,
    };
    let Some(input) = input else {
        return Ran::broken_off();
    };
    let answered = async {
        let answer = program.call(ProgramCall { input, ..call }).await;
        // Both in parallel, since the reader may wait for the end of either first.
        let (_, _) = tokio::join!(stdout.write_all(&answer.stdout), stderr.write_all(&answer.stderr));
        Ran::exited(answer.exit_code & 0xff)
    };
    tokio::select! {
        ran = answered => ran,
        () = unwanted(token) => Ran::broken_off(),
    }
}

/// Waits for an interruption.
async fn unwanted(token: &AtomicBool) {
    while !token.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
