//! One text in one bash: where its input comes from, where its output goes, and how it ends.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bashkit::{Error, ExecOptions, LimitExceeded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::AsyncWriteExt as _;

use super::outlet::Outlet;
use super::{Engine, Kit, ahead};
use crate::program::{Call, Program};
use shieling::process::MainEnd;

/// The status of a bash that was told to end.
const SIGTERM: i32 = 15;
/// The status of a text that memory cannot run as bash would.
pub(super) const UNABLE: i32 = 125;
/// How often somebody who waits for input looks whether it is still wanted.
const LOOKING: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// Where standard input comes from.
pub(crate) enum Stdin {
    Empty,
    From(OwnedFd),
}

/// What stands at the streams of a text.
pub(crate) struct Stdio {
    pub(crate) input: Stdin,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// How a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) end: MainEnd,
    /// Whether it ended its shell, too.
    pub(crate) exited: bool,
    /// Whether the shell stands somewhere in the middle of it.
    pub(crate) broken_off: bool,
    /// Whether nothing of it has run, as bash cannot read it.
    pub(super) misread: bool,
}

impl Ran {
    pub(super) fn exited(code: i32) -> Self {
        Self {
            end: MainEnd::Exited(code),
            exited: false,
            broken_off: false,
            misread: false,
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
    /// Runs a text, in a bash of this kit.
    pub(crate) async fn run(&mut self, text: &str, stdio: Stdio, largest: Option<u64>, kit: &Kit) -> Ran {
        let Stdio { input, stdout, stderr } = stdio;
        let Ok(mut stderr) = Outlet::new(stderr) else {
            return Ran::exited(UNABLE);
        };
        match self.run_from(text, input, stdout, &mut stderr, largest, kit).await {
            Ok(ran) => ran,
            Err(error) => not_begun(&error, &mut stderr).await,
        }
    }

    async fn run_from(
        &mut self,
        text: &str,
        input: Stdin,
        stdout: OwnedFd,
        stderr: &mut Outlet,
        largest: Option<u64>,
        kit: &Kit,
    ) -> io::Result<Ran> {
        let token = self.token();
        let mut stdout = Outlet::new(stdout)?;
        self.disk.limit_files(largest);
        self.take_unknown();
        self.leaving.reset();
        let mut given = Vec::new();
        // What runs plain texts only is given no input, and nothing that would be refused.
        if self.plain.is_none() {
            let ahead = ahead::look(text, self.readonly(text), matches!(input, Stdin::From(_)));
            if let Some(why) = ahead.refused {
                return Ok(refused(&why, stderr).await);
            }
            // One that nobody reads may never end.
            if let Stdin::From(from) = input
                && (ahead.reads || ahead.unsure)
            {
                let most = usize::try_from(kit.memory).unwrap_or(usize::MAX);
                match read_all(from, &token, most)? {
                    Some(all) => given = all,
                    None => return Ok(Ran::broken_off()),
                }
            }
        }
        let resumed = self.resumed(text);
        let ran = self
            .bash
            .execute(&resumed)
            .options(ExecOptions::new().stdin(given))
            .stdout(&mut stdout)
            .stderr(&mut *stderr)
            .await;
        let (ran, more) = self.told(ran, text, &token, kit);
        let refused = self
            .leaving
            .take_refused()
            .into_iter()
            .map(|why| format!("shieling: {why}\n"));
        let more = refused.chain(more).collect::<String>();
        // Whoever reads no more needs no words.
        let _ = stderr.write_all(more.as_bytes()).await;
        Ok(ran)
    }

    /// How it ended, and what is still to be said of that.
    fn told(
        &self,
        ran: bashkit::Result<bashkit::ExecResult>,
        text: &str,
        token: &Arc<AtomicBool>,
        kit: &Kit,
    ) -> (Ran, Option<String>) {
        let error = match ran {
            Ok(result) if result.stdout_truncated || result.stderr_truncated => {
                let why = "more output than memory holds at once; part of it is missing";
                return (Ran::exited(UNABLE), Some(refusal(why)));
            }
            Ok(result) => {
                let expansion = self.leaving.by_expansion();
                let unknown = self.take_unknown().filter(|_| result.exit_code == 127 && !expansion);
                let code = self.leaving.status(result.exit_code & 0xff, || self.errexit());
                let ran = Ran {
                    exited: self.leaving.left.load(Ordering::Relaxed),
                    ..Ran::exited(code)
                };
                return (ran, unknown.map(|unknown| missing(&unknown, &kit.names())));
            }
            Err(error) => error,
        };
        if token.load(Ordering::Relaxed) {
            return (Ran::broken_off(), None);
        }
        let unable = |why: &str| {
            let ran = Ran {
                broken_off: true,
                ..Ran::exited(UNABLE)
            };
            (ran, Some(refusal(why)))
        };
        match error {
            Error::Parse { .. } => {
                let report = error.syntax_report("bash: -c", text);
                let ran = Ran {
                    misread: true,
                    ..Ran::exited(2)
                };
                (ran, report)
            }
            // Nobody reads what it writes, which ends a program by a signal.
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

/// How a text ends that is not run, when it was said why.
async fn refused(why: &str, stderr: &mut Outlet) -> Ran {
    // Whoever reads no more needs no words.
    let _ = stderr.write_all(refusal(why).as_bytes()).await;
    Ran::exited(UNABLE)
}

/// The same for one whose streams fail.
async fn not_begun(error: &io::Error, stderr: &mut Outlet) -> Ran {
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

/// All that comes, unless it is no longer wanted.
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

/// Has somebody else answer for a whole text.
pub(crate) async fn answer(program: &dyn Program, call: Call, stdio: Stdio, token: &AtomicBool, most: usize) -> Ran {
    let Ok(mut stderr) = Outlet::new(stdio.stderr) else {
        return Ran::exited(UNABLE);
    };
    let input = match stdio.input {
        Stdin::Empty => Ok(Some(Vec::new())),
        Stdin::From(from) => read_all(from, token, most),
    };
    let began = input.and_then(|input| Ok((input, Outlet::new(stdio.stdout)?)));
    let (input, mut stdout) = match began {
        Ok(began) => began,
        Err(error) => return not_begun(&error, &mut stderr).await,
    };
    let Some(input) = input else {
        return Ran::broken_off();
    };
    let answered = async {
        let answer = program.call(Call { input, ..call }).await;
        // Both at once: whoever reads them may wait for the end of either first.
        let (_, _) = tokio::join!(stdout.write_all(&answer.stdout), stderr.write_all(&answer.stderr));
        Ran::exited(answer.exit_code & 0xff)
    };
    tokio::select! {
        ran = answered => ran,
        () = unwanted(token) => Ran::broken_off(),
    }
}

/// Until it is no longer wanted.
async fn unwanted(token: &AtomicBool) {
    while !token.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
