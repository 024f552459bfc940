//! Commands in sessions: the journey of [`Shieling::run`](super::Shieling::run) for what outlives a call.
//!
//! ```text
//! a permit of the session ─► journey ─► a job ─┬─ ended in time ──► its outcome
//!                                               └─ its time is over ─► ended, or left as a job
//! ```

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::journey::{Journey, Judge, Running};
use super::{Shieling, recorded, refusal};
use crate::approval::Approved;
use crate::environment::Ability;
use crate::outcome::{Outcome, Status};
use crate::policy::DefinedNames;
use crate::process::{End, Process, SpawnError, Streams};
use crate::request::Command;
use crate::session::{
    AskHumanResponse, Claim, HumanQuestion, HumanReply, Job, JobError, JobId, JobRequest, JobSetup, Jobs, Listing,
    OnTimeout, Pty, Session, SessionName, SessionPermit, TakeOver, Terminal, TerminalSize,
};

/// What programs take our terminals for, unless a variable says otherwise.
const TERM: (&str, &str) = ("TERM", "xterm-256color");

/// A session of a [`Shieling`]: a shell that keeps its directory, variables and functions from one command to the next.
///
/// The shell starts with the first command. Any number of handles may refer to one session.
///
/// ```no_run
/// use shieling::Shieling;
/// use shieling::request::Command;
///
/// # async fn example(shieling: &Shieling) -> Result<(), Box<dyn std::error::Error>> {
/// let session = shieling.session("main".parse()?);
/// session.run(Command::new("cd src && level=2", "/work")?).await;
/// let outcome = session.run(Command::new("echo $PWD $level", "/work")?).await;
/// assert_eq!(outcome.stdout, "/work/src 2\n");
/// session.close();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SessionHandle<'a> {
    shieling: &'a Shieling,
    name: SessionName,
}

impl SessionHandle<'_> {
    /// Returns the session's name.
    pub fn name(&self) -> &SessionName {
        &self.name
    }

    /// Runs a command in the session: judges, records, approves and starts it, and waits for its end or its deadline.
    ///
    /// The directory and variables of the command are the initial ones of a new session; a session that already runs
    /// keeps its own. With a terminal, the command runs in a process of its own, as with [`start`](Self::start).
    ///
    /// While the session runs another command, this one waits, for as long as it may run itself. If the other command
    /// has outlived its call, this one is refused at once, with the job that it would wait for.
    ///
    /// Every command has its own pipes for stdout and stderr, and `/dev/null` as stdin. So `exec >file` and
    /// `exec 2>file` last until the end of their command; every other descriptor and its redirection lasts for the
    /// session.
    ///
    /// A DEBUG trap that would keep every further command from running is removed at the end of its command, and
    /// [`Outcome::error`] says so: one that was running when the command was told to end, and one that under `extdebug`
    /// would skip `trap - DEBUG` too. A trap on the signal by which commands are ended (59) lasts until the end of its
    /// command.
    ///
    /// # Cancel safety
    /// Dropping the future ends what the command started, as a timeout with [`OnTimeout::Kill`] does; the session
    /// remains. The next command begins once all of that has ended.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn run(&self, request: impl Into<JobRequest>) -> Outcome {
        self.shieling.job(Some(&self.name), false, request.into()).await
    }

    /// Starts a command as a job and returns its present outcome at once. Its standard input accepts writes.
    ///
    /// The job starts in the session's directory, with the session's exported variables, in a process of its own. The
    /// session stays free for other commands.
    ///
    /// # Cancel safety
    /// Dropping the future ends what may have been started.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn start(&self, request: impl Into<JobRequest>) -> Outcome {
        self.shieling.job(Some(&self.name), true, request.into()).await
    }

    /// Ends the session and forgets its state. Returns whether it existed. Its shell ends at once, or with the command
    /// that it runs.
    pub fn close(&self) -> bool {
        self.shieling.sessions.forget(&self.name)
    }

    /// Ends the session with the command that it runs, and forgets its state. Returns whether it existed.
    ///
    /// # Cancel safety
    /// Cancel safe: the session is forgotten at once, and the end of its command continues in the background.
    pub async fn stop(&self) -> bool {
        let busy = self.shieling.sessions.busy(&self.name);
        let existed = self.close();
        if let Some(busy) = busy
            && let Ok(job) = self.shieling.jobs.find(&busy.job)
        {
            job.kill().await;
        }
        existed
    }
}

/// A session, with the permit to run a command in it until the end of the command.
struct InSession {
    session: Arc<Session>,
    permit: SessionPermit,
    /// The functions and aliases that there are once it has run to its end.
    defines: DefinedNames,
}

/// What was begun.
struct Begun {
    id: JobId,
    process: Process,
    in_session: Option<InSession>,
    restarted: bool,
    terminal: Option<Terminal>,
}

impl Shieling {
    /// Returns the session of this name. It begins with its first command.
    pub fn session(&self, name: SessionName) -> SessionHandle<'_> {
        SessionHandle { shieling: self, name }
    }

    /// Runs a command as a job in a process of its own, and waits for its end or its deadline, after which it may
    /// continue in the background. It belongs to no session and keeps no state.
    ///
    /// # Cancel safety
    /// Dropping the future ends what the command started, as a timeout with [`OnTimeout::Kill`] does.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn run_job(&self, request: impl Into<JobRequest>) -> Outcome {
        self.job(None, false, request.into()).await
    }

    /// Starts a command as a job in a process of its own and returns its present outcome at once. Its standard input
    /// accepts writes.
    ///
    /// # Cancel safety
    /// Dropping the future ends what may have been started.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn start_job(&self, request: impl Into<JobRequest>) -> Outcome {
        self.job(None, true, request.into()).await
    }

    /// Runs a command as a job: in the shell of a session, or in a process of its own in the place of the session.
    async fn job(&self, session_name: Option<&SessionName>, background: bool, call: JobRequest) -> Outcome {
        let refused = |no| *self.refused(&call.command, session_name, no);
        let reservation = match self.jobs.claim(call.id.clone()).await {
            Ok(Claim::Reserved(reservation)) => reservation,
            Ok(Claim::Existing(job)) if is_same(&job, session_name, &call) => return job.outcome(),
            Ok(Claim::Existing(job)) => return refused(refusal::other_job(&job)),
            Err(error) => {
                let no = refusal::not_now("jobs", String::new(), error.to_string(), "end jobs that are not needed");
                return refused(no);
            }
        };
        let session = match session_name.map(|name| self.sessions.named(name)) {
            None => None,
            Some(Ok(session)) => Some(session),
            Some(Err(_)) => {
                let because = format!(
                    "there are {} sessions, which is the most",
                    crate::session::MOST_SESSIONS
                );
                let no = refusal::not_now("sessions", String::new(), because, "use one of those that there are");
                return refused(no);
            }
        };
        let own = background || call.terminal.is_some();
        let permit = match &session {
            Some(session) if !own => match permit(session, call.command.deadline()).await {
                Some(permit) => Some(permit),
                None => {
                    let no = refusal::busy(session.name(), session.busy().as_ref());
                    return *self.refused(&session.in_session(call.command.clone()), session_name, no);
                }
            },
            _ => None,
        };
        let command = match &session {
            Some(session) => session.in_session(call.command.clone()),
            None => call.command.clone(),
        };
        let command = self.prepared(with_terminal(command, call.terminal));

        // A process of its own has nothing of the session's shell but its variables.
        let defined = session.as_ref().filter(|_| !own).map(|session| session.defined());
        let before = self.left.in_session(session_name);
        let journey = Journey {
            command: &command,
            session: session_name,
            before: before.with_defined(defined.unwrap_or_default()),
            recorder: self.recorder(call.terminal, session.as_deref().filter(|_| !own), &command),
            judge: Judge::Policy,
        };
        let start = |approved: Approved<Command>| {
            let mut in_session = session.zip(permit).map(|(session, permit)| InSession {
                session,
                permit,
                defines: DefinedNames::default(),
            });
            if let (Some(in_session), false) = (&mut in_session, self.is_contained()) {
                in_session.defines = self.left.add(in_session.session.name(), command.text());
            }
            Ok(self.begin(approved, in_session, background, call.terminal, reservation.id()))
        };
        let (begun, blank, running) = match self.journey(journey, start).await {
            Ok(begun) => begun,
            Err(outcome) => return *outcome,
        };
        let left = begun
            .in_session
            .as_ref()
            .map(|in_session| Arc::clone(&in_session.session));
        let (job, actor) = self.make_job(begun, session_name, &call, command, blank, running);
        let actor = Box::pin(actor);
        // From here on it can be seen and ended by its name, also by another call.
        reservation.register(&job);
        if background {
            job.adopt(actor);
            // It may have ended by now, and is known by its name all the same.
            let outcome = if call.unread { job.outcome() } else { job.shown() };
            return Outcome {
                job: Some(job.id().to_string()),
                ..outcome
            };
        }
        let mut forgotten = Forgotten {
            jobs: &self.jobs,
            id: Some(job.id().clone()),
        };
        let mut outcome = Self::wait(&job, actor, &call, left).await;
        if outcome.status != Status::Running {
            self.review_end(&job).await;
            job.tell_review(&mut outcome);
        }
        if !job.is_over() || call.id.is_some() {
            forgotten.id = None;
        } else {
            // What it had left has ended since, and so it is known by no name.
            outcome.job = None;
        }
        outcome
    }

    /// Waits for the end of a command, or for the end of its time.
    async fn wait(
        job: &Arc<Job>,
        mut actor: std::pin::Pin<Box<impl Future<Output = ()> + Send + 'static>>,
        call: &JobRequest,
        session: Option<Arc<Session>>,
    ) -> Outcome {
        let rest = call
            .background_when_silent
            .filter(|_| call.on_timeout == OnTimeout::Background);
        let silent = async {
            match rest {
                Some(rest) => job.until_silent(rest).await,
                None => std::future::pending().await,
            }
        };
        let in_time = tokio::select! {
            biased;
            _ = job.ended() => true,
            () = &mut actor => true,
            () = sleep(call.command.deadline()) => false,
            () = silent => false,
        };
        if !in_time {
            match call.on_timeout {
                OnTimeout::Background => {
                    if let Some(session) = session {
                        session.set_backgrounded();
                    }
                    job.adopt(actor);
                    return job.shown();
                }
                OnTimeout::Kill => {
                    job.stop(Some(End::TimedOut), call.command.grace());
                    tokio::select! {
                        biased;
                        _ = job.ended() => {}
                        () = &mut actor => {}
                    }
                }
            }
        }
        if !job.is_over() {
            // It has left something behind, which goes on.
            job.adopt(actor);
        }
        job.shown()
    }

    /// Begins what was approved: in the session whose turn it is, or as a process of its own.
    async fn begin(
        &self,
        approved: Approved<Command>,
        in_session: Option<InSession>,
        background: bool,
        terminal: Option<TerminalSize>,
        job: &JobId,
    ) -> Result<Begun, SpawnError> {
        if let Some(mut in_session) = in_session {
            if !Session::has_shell(&in_session.permit) {
                self.sessions.make_room(self.environment.shells());
            }
            let begun = in_session
                .session
                .start(&mut in_session.permit, &*self.environment, approved, job)
                .await?;
            return Ok(Begun {
                id: job.clone(),
                process: begun.process,
                in_session: Some(in_session),
                restarted: begun.restarted,
                terminal: None,
            });
        }
        let no_terminal = |source| SpawnError::Supervisor {
            what: "making a terminal",
            source,
        };
        let (streams, ours) = match terminal {
            Some(size) => {
                let pair = Pty::open_in(self.environment.terminals().await?, size).map_err(no_terminal)?;
                (Streams::Terminal(pair.theirs), Some(pair.ours))
            }
            // Who cannot be written to would wait for the end of an input that nobody ends.
            None if background && self.takes_input() => (Streams::Input, None),
            None => (Streams::Output, None),
        };
        let terminal = ours.map(Terminal::new).transpose().map_err(no_terminal)?;
        Ok(Begun {
            id: job.clone(),
            process: self.environment.spawn(approved, streams).await?,
            in_session: None,
            restarted: false,
            terminal,
        })
    }

    /// Whether a command that runs can be written to.
    fn takes_input(&self) -> bool {
        self.environment.capabilities().abilities.contains(&Ability::Input)
    }

    /// The job of what was begun.
    fn make_job(
        &self,
        begun: Begun,
        session: Option<&SessionName>,
        call: &JobRequest,
        command: Command,
        blank: Outcome,
        running: Running,
    ) -> (Arc<Job>, impl Future<Output = ()> + Send + 'static) {
        let Begun {
            id,
            mut process,
            in_session,
            restarted,
            terminal,
        } = begun;
        let kill_leftovers = in_session.is_none();
        let watcher = recorded::watcher(call, running.recorder.clone());
        let at_end = move |outcome: &mut Outcome| {
            running.explain(outcome);
            if let Some(in_session) = in_session {
                let InSession {
                    session,
                    mut permit,
                    defines,
                } = in_session;
                let after = session.end(&mut permit);
                if outcome.status == Status::Exited && !after.ended {
                    session.has_defined(defines);
                }
                outcome.cwd = after.cwd;
                outcome.session_restarted = restarted || after.ended;
                if after.ended && !after.omitted.is_empty() {
                    let names = after.omitted.join("`, `");
                    let told = format!(
                        "the session's new shell has no `{names}`, which is not UTF-8 or too large to start a shell with"
                    );
                    outcome.error.get_or_insert(told);
                } else if after.debug_trap_removed && !after.ended {
                    let told = "the session's DEBUG trap was removed: it did not end, or let no command run, and \
                                would have kept every further command from running, `trap - DEBUG` included";
                    outcome.error.get_or_insert_with(|| told.to_owned());
                } else if after.deleted {
                    let told = "the session stands in a directory that was removed: relative paths lead nowhere there; `cd` \
                                to another one";
                    outcome.error.get_or_insert_with(|| told.to_owned());
                }
            }
            running.close(outcome);
        };
        let setup = JobSetup {
            id,
            session: session.cloned(),
            stdin: process.take_input(),
            command,
            blank,
            kill_leftovers,
            watcher,
            terminal,
            progress: call.progress.clone(),
            output_limit: self.output_limit,
            spill: self.spill.clone(),
            at_end: Box::new(at_end),
        };
        Job::make(process, setup)
    }

    /// The sessions and jobs.
    pub fn list(&self) -> Listing {
        Listing {
            sessions: self.sessions.list(&self.workspace),
            jobs: self.jobs_now(),
        }
    }

    /// Asks a person, who sees the screen of the job, if one is given, and can take its keyboard if it has
    /// a terminal. What is typed into it meanwhile is refused.
    ///
    /// # Errors
    /// [`JobError::Unknown`].
    /// # Cancel safety
    /// Dropping the future takes the question back, and the keyboard.
    pub async fn ask_human(&self, prompt: &str, job: Option<&JobId>) -> Result<AskHumanResponse, JobError> {
        let job = job.map(|id| self.jobs.find(id)).transpose()?;
        let before = job.as_ref().map(|job| job.snapshot(&self.workspace));
        if let Some(job) = &job {
            job.mark(&format!("asked a person: {prompt}"));
        }
        let question = HumanQuestion {
            prompt: prompt.to_owned(),
            job: job.as_ref().map(|job| job.id().clone()),
            screen: job.as_ref().and_then(|job| job.screen()),
            terminal: job
                .clone()
                .filter(|job| job.has_terminal())
                .map(|job| job as Arc<dyn TakeOver>),
        };
        let answered = match self.human.ask(question).await {
            HumanReply::Answer(text) => AskHumanResponse::Answer { text },
            HumanReply::Declined => AskHumanResponse::Declined,
            HumanReply::Nobody => AskHumanResponse::Nobody,
            HumanReply::TookOver => AskHumanResponse::TookOver {
                changed: job
                    .as_ref()
                    .zip(before)
                    .map(|(job, before)| job.changed(&before, &self.workspace))
                    .unwrap_or_default(),
            },
        };
        if let Some(job) = &job {
            job.mark(match &answered {
                AskHumanResponse::Answer { .. } => "a person answered",
                AskHumanResponse::TookOver { .. } => "a person gave the keyboard back",
                AskHumanResponse::Declined => "a person declined",
                AskHumanResponse::Nobody => "nobody was there",
            });
        }
        Ok(answered)
    }

    /// Ends all sessions and jobs, and gives back what the environment holds. Whatever is asked for
    /// afterwards is refused.
    pub async fn close(&self) {
        self.closed.store(true, std::sync::atomic::Ordering::Release);
        self.jobs.close().await;
        self.sessions.clear();
        self.environment.close().await;
    }
}

/// A job that is forgotten once its call is over, also if that is given up.
struct Forgotten<'a> {
    jobs: &'a Jobs,
    /// Its name; none if it is to be remembered.
    id: Option<JobId>,
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.jobs.forget(id);
        }
    }
}

/// Waits for the permit of a session. Returns `None` after the timeout, or if the running command continues in the background.
async fn permit(session: &Session, timeout: Duration) -> Option<SessionPermit> {
    tokio::select! {
        biased;
        permit = session.acquire() => Some(permit),
        _ = session.backgrounded() => None,
        () = sleep(timeout) => None,
    }
}

/// Whether a call with the name of this job is that job's call once more.
fn is_same(job: &Job, session: Option<&SessionName>, call: &JobRequest) -> bool {
    job.command().text() == call.command.text()
        && job.session() == session
        && job.has_terminal() == call.terminal.is_some()
}

fn with_terminal(command: Command, terminal: Option<TerminalSize>) -> Command {
    let (name, value) = TERM;
    let known = command.variables().get(name).is_some_and(|term| term != "dumb");
    if terminal.is_none() || known {
        return command;
    }
    let mut variables = command.variables().clone();
    variables.insert(name.to_owned(), value.to_owned());
    command.with_variables(variables)
}
