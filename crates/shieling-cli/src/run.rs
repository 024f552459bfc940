//! Every call into the library that judges, runs, describes or verifies.
//!
//! The rest of this crate reads options, and words what comes back.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use shieling::approval::Approver;
use shieling::audit;
use shieling::describe::{Description, ToolName};
use shieling::environment::{Environment as _, Variables};
use shieling::outcome::{Confinement, Outcome, Status, with_causes};
use shieling::output::{self, Stream, Tee};
use shieling::policy::{Decision, PRESETS, Verdict, preset_settings};
use shieling::process::{JailLayer, JailRefusal, Streams};
use shieling::request::Command;
use shieling::session::{Human, Pty, TerminalSize};
use shieling::units::ByteCount;
use shieling::{EnvironmentFacts, Shieling};
use tokio::signal::unix::SignalKind;
use tokio::sync::oneshot;

use crate::approver::Terminal;
use crate::config::{Loaded, Printable, Surroundings, files, reason};
use crate::host::Host;
use crate::input::{self, Fed};
use crate::missing;
use crate::options::{Approval, Changes, EnvironmentName, Settings, Source};
use crate::output::{Written, all_written, copy, is_one_place};
use crate::plan::{self, Plan, Purpose};
use crate::pty::Inner;
use crate::runtime;
use crate::sandbox::{self, Caller};
use crate::setup::{self, Place};
use crate::signals::{Signals, taken};
use crate::state;
use crate::words::Failure;

/// What holds for this invocation, from the command line and the files.
pub(crate) fn plan(source: &Source, purpose: Purpose) -> Result<Plan, Failure> {
    let surroundings = Surroundings::of_this_process()?;
    Plan::new(
        crate::config::load(source, &surroundings, purpose.default_environment())?,
        purpose,
    )
}

/// Says on standard error, before the first command, that nothing confines it on another machine, which settings have
/// no effect here, and which files decide what commands may do and can be changed by them.
pub(crate) fn tell_what_is_open(plan: &Plan) -> Result<(), Failure> {
    if let Some(far) = plan.far.as_ref().filter(|far| !far.is_confined()) {
        let told = format!("note: commands run unconfined on {far}\n");
        crate::print::write_all(io::stderr().lock(), &told)?;
    }
    let sandbox_only = [("open-protected", plan.open_protected), ("allow-home", plan.allow_home)];
    for (key, given) in sandbox_only {
        if given && plan.amounts_to == EnvironmentName::Local {
            let told = format!(
                "note: `{key}` has no effect in `{}`, where nothing is protected from commands\n",
                plan.env
            );
            crate::print::write_all(io::stderr().lock(), &told)?;
        }
    }
    let staged = match plan.changes {
        Changes::Commit => Some("commit"),
        Changes::Review => Some("review"),
        Changes::Direct | Changes::Discard => None,
    };
    if let Some(mode) = staged.filter(|_| plan.readonly && plan.changes_named) {
        let told = format!(
            "note: `--changes {mode}` has no effect with `--readonly`, under which nothing in the workspace changes\n"
        );
        crate::print::write_all(io::stderr().lock(), &told)?;
    }
    if !plan.leaves_open() {
        return Ok(());
    }
    let files: Vec<String> = plan.fixed.iter().map(|path| format!("`{}`", Printable(path))).collect();
    let told = format!(
        "note: {} can be changed by commands here, and would then be what the next start reads; keep such a file \
         outside the workspace, or use `--env sandbox` with full isolation, which protects it\n",
        files.join(", ")
    );
    crate::print::write_all(io::stderr().lock(), &told)
}

/// The library, set up as planned.
pub(crate) struct Library {
    shieling: Arc<Shieling>,
    variables: BTreeMap<String, String>,
    /// Where commands run; nothing if they are only judged.
    place: Option<Place>,
    /// The event loop in which a gateway was started ahead.
    runtime: Mutex<Option<tokio::runtime::Runtime>>,
}

impl Library {
    /// Sets the library up, to run commands. Nothing starts.
    pub(crate) fn open(plan: &Plan, approver: Option<Terminal>) -> Result<Self, Failure> {
        Self::opened(
            plan,
            approver.map(|terminal| Arc::new(terminal) as Arc<dyn Approver>),
            None,
            false,
        )
    }

    /// As [`Self::open`], for commands that may have a terminal.
    pub(crate) fn opened(
        plan: &Plan,
        approver: Option<Arc<dyn Approver>>,
        human: Option<Arc<dyn Human>>,
        terminal: bool,
    ) -> Result<Self, Failure> {
        let mut variables = variables(plan, terminal)?;
        // What runs in memory is kept there, unless somebody asks for more.
        let state = state::directory().filter(|_| plan.env != EnvironmentName::Memory || plan.record);
        sandbox::keep_out(plan, state.as_deref())?;
        #[cfg(feature = "container")]
        crate::container::keep_out(plan)?;
        let place = Place::new(plan, &Caller::of_this_process(&variables, state.clone()))?;
        #[cfg(feature = "container")]
        if let Place::Container(container) = &place {
            variables = crate::container::variables(plan, container, variables);
        }
        if let Place::Sandbox { sandbox, .. } = &place
            && !plan.set_env.iter().any(|set| set.name.as_str() == "HOME")
        {
            variables.insert("HOME".to_owned(), sandbox.home().to_string_lossy().into_owned());
        }
        if matches!(place, Place::Sandbox { .. }) && plan.isolation == crate::options::Isolation::Full {
            // The sandbox's own, with the user's name and address: a git that was not installed by the
            // system looks for its settings elsewhere.
            let git = variables.entry("GIT_CONFIG_SYSTEM".to_owned());
            git.or_insert_with(|| "/etc/gitconfig".to_owned());
        }
        let shieling = Arc::new(setup::for_running(plan, &place, approver, state.as_deref(), human)?);
        // It is made while the command is judged. Where each is asked about, nothing starts before.
        let mut ahead = None;
        if plan.once && plan.approval != Approval::Always {
            let within = tokio::runtime::Handle::try_current().is_ok();
            if plan.opens_hosts() && !within {
                ahead = Some(runtime::start()?);
            }
            let _within = ahead.as_ref().map(tokio::runtime::Runtime::enter);
            place.start_ahead();
        }
        Ok(Self {
            shieling,
            variables,
            place: Some(place),
            runtime: Mutex::new(ahead),
        })
    }

    /// Sets the library up, to judge commands only.
    pub(crate) fn on_paper(plan: &Plan) -> Result<Self, Failure> {
        Ok(Self {
            shieling: Arc::new(setup::for_judging(plan)?),
            variables: variables(plan, false)?,
            place: None,
            runtime: Mutex::default(),
        })
    }

    /// The command that this text asks for.
    pub(crate) fn command(&self, plan: &Plan, text: &str) -> Result<Command, Failure> {
        Ok(plan.command(text)?.with_variables(self.variables.clone()))
    }

    /// What is said of a command before anybody is asked. Nothing starts.
    pub(crate) fn judge(&self, command: &Command) -> Verdict {
        self.shieling.judge(command)
    }

    /// The environment as a model would be told of it. Ends it.
    pub(crate) fn describe(
        &self,
        plan: &Plan,
        told: EnvironmentFacts,
        tools: &[ToolName],
    ) -> Result<Description, Failure> {
        self.runtime()?.block_on(async {
            let described = self.described(plan, told, tools).await?;
            self.shieling.environment().close().await;
            Ok(described)
        })
    }

    /// The environment as a model would be told of it. Starts it.
    pub(crate) async fn described(
        &self,
        plan: &Plan,
        mut told: EnvironmentFacts,
        tools: &[ToolName],
    ) -> Result<Description, Failure> {
        let example = self.command(plan, "true")?;
        if let Some(failure) = self.missing().await {
            return Err(failure);
        }
        self.learn(&mut told).await;
        Ok(self.shieling.describe(&example, told, tools).await)
    }

    /// The library itself, for a server.
    pub(crate) fn shieling(&self) -> &Arc<Shieling> {
        &self.shieling
    }

    /// Tells on stderr what came of changes and stands in no outcome, once the environment is closed.
    pub(crate) fn tell_held_back(&self) -> Result<(), Failure> {
        let environment = self.shieling.environment();
        let mut told = environment
            .settled_at_close()
            .map_or_else(String::new, |(changes, error)| {
                crate::words::settled_at_end(&changes, error)
            });
        told.push_str(&crate::words::held_back_at_end(&environment.held_back()));
        if let Some(left) = environment.left_at_close() {
            told.push_str(&crate::words::left_at_end(&left));
        }
        crate::print::write_all(io::stderr().lock(), &told)
    }

    /// Ends all that runs in a container and closes it, so that what changed in its copy of the workspace comes back.
    pub(crate) async fn settle(&self) {
        #[cfg(feature = "container")]
        if let Some(Place::Container(_)) = &self.place {
            self.shieling.close().await;
        }
    }

    /// Adds what came of changes to the last outcome, once the environment is closed.
    fn add_settled(&self, outcome: &mut Outcome) {
        let environment = self.shieling.environment();
        if let Some((changes, error)) = environment.settled_at_close() {
            outcome.changes = Some(changes);
            if let Some(error) = error {
                outcome.error = Some(match outcome.error.take() {
                    Some(before) => format!("{before}; {error}"),
                    None => error,
                });
            }
        }
        if let Some(left) = environment.left_at_close() {
            outcome.error.get_or_insert(left);
        }
        outcome.add_held_back(environment.held_back());
    }

    /// Adds what is known once the environment has started.
    pub(crate) async fn learn(&self, told: &mut EnvironmentFacts) {
        match &self.place {
            Some(Place::Sandbox { sandbox, .. }) => {
                let limits = sandbox.limits().await;
                told.memory = limits.memory.map(ByteCount::bytes);
                told.pids = limits.pids;
            }
            #[cfg(feature = "memory")]
            Some(Place::Memory(memory)) => told.memory = Some(memory.limit()),
            #[cfg(feature = "container")]
            Some(Place::Container(container)) => crate::container::learn(container, told),
            Some(Place::Far(far)) => {
                let limits = far.limits();
                told.memory = limits.memory.map(ByteCount::bytes);
                told.pids = limits.pids;
            }
            Some(Place::Local(_)) | None => {}
        }
    }

    /// Starts the environment. Why commands cannot run here, if they cannot because of it.
    pub(crate) async fn missing(&self) -> Option<Failure> {
        match &self.place {
            Some(Place::Sandbox { sandbox, lesser }) => {
                let error = sandbox.start().await.err()?;
                let lesser = match lesser {
                    Some(lesser) if missing::refusal(&error).is_some() => {
                        let works = lesser.start().await.is_ok();
                        lesser.close().await;
                        works
                    }
                    Some(_) | None => false,
                };
                Some(missing::explain(&error, &Host::look(Path::new("/")), lesser))
            }
            #[cfg(feature = "memory")]
            Some(Place::Memory(_)) => None,
            #[cfg(feature = "container")]
            Some(Place::Container(container)) => {
                // An engine that hangs is not waited for a second time.
                let failure = match container.last_failure() {
                    Some(failure) => failure,
                    None => container.start().await.err()?,
                };
                Some(crate::container::failure(&failure))
            }
            Some(Place::Far(far)) => far.lost().map(plan::unreached),
            Some(Place::Local(_)) | None => None,
        }
    }

    /// An event loop: the one in which something was started ahead, if there is one.
    fn runtime(&self) -> Result<tokio::runtime::Runtime, Failure> {
        let ahead = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        ahead.map_or_else(runtime::start, Ok)
    }

    /// Runs a command to its end, or to ours.
    pub(crate) fn run(&self, command: Command, input: Input, shown: Shown) -> Result<Ran, Failure> {
        let runtime = self.runtime()?;
        let ran = runtime.block_on(self.run_until_told(command, input, shown));
        // A question on the terminal may still wait for its answer, which nobody needs any more.
        runtime.shutdown_background();
        ran
    }

    /// Runs a shell on a terminal inside of the person's, to its end or ours.
    pub(crate) fn run_shell(&self, command: Command) -> Result<Ran, Failure> {
        let runtime = self.runtime()?;
        let ran = runtime.block_on(self.run_shell_until_told(command));
        runtime.shutdown_background();
        ran
    }

    /// A pair of terminals whose inner end has a name where commands run.
    async fn pair(&self) -> io::Result<Pty> {
        let terminals = self.shieling.environment().terminals().await;
        Pty::open_in(terminals.map_err(io::Error::other)?, TerminalSize::default())
    }

    async fn run_shell_until_told(&self, command: Command) -> Result<Ran, Failure> {
        let mut signals = Signals::new()?;
        let mut resized = taken(SignalKind::window_change())?;
        // Before the terminal changes: what is missing is told on it.
        if let Some(missing) = self.missing().await {
            return Err(missing);
        }
        let no_terminal = |error: io::Error| Failure::new(format!("no terminal can be made: {}", reason(&error)));
        let pair = self.pair().await.map_err(no_terminal)?;
        let mut terminal = Inner::open(pair).map_err(no_terminal)?;
        let Some(theirs) = terminal.take() else {
            return Err(Failure::new("the terminal was taken already"));
        };
        let mut running = std::pin::pin!(self.shieling.run_shell(command, theirs));
        let ran = loop {
            tokio::select! {
                outcome = &mut running => break Ran::Ended { outcome: Box::new(outcome), missing: None, by: None },
                _ = resized.recv() => terminal.resize(),
                // In a raw terminal no key makes these; somebody has sent them.
                signal = signals.recv() => break Ran::Stopped { signal },
            }
        };
        // It ends the sandbox first, and with it the shell, if that still runs.
        self.shieling.environment().close().await;
        drop(terminal);
        let ran = match ran {
            Ran::Ended {
                mut outcome,
                missing,
                by,
            } => {
                self.add_settled(&mut outcome);
                Ran::Ended { outcome, missing, by }
            }
            stopped @ Ran::Stopped { .. } => {
                self.tell_held_back()?;
                stopped
            }
        };
        Ok(ran)
    }

    /// Signals reach us and not the command, which has a session of its own: so the first one has the command ended in
    /// good order, and dropping the run, which kills its processes, is what the second one does. On a terminal of its own
    /// the keys reach it.
    async fn run_until_told(&self, command: Command, input: Input, shown: Shown) -> Result<Ran, Failure> {
        let mut signals = Signals::new()?;
        let mut resized = taken(SignalKind::window_change())?;
        let (mut tee, mut written) = match shown {
            Shown::Json | Shown::Terminal => (None, None),
            Shown::Streams { limit } => {
                let (tee, written) = copy(limit, io::stdout(), io::stderr(), is_one_place());
                (Some(tee), Some(written))
            }
        };
        let mut pair = None;
        if matches!(shown, Shown::Terminal) {
            if let Some(missing) = self.missing().await {
                return Err(missing);
            }
            let made = self.pair().await;
            pair = Some(made.map_err(|error| Failure::new(format!("no terminal can be made: {}", reason(&error))))?);
        }
        let terminal = OnceLock::new();
        let feed = OnceLock::new();
        let started = OnceLock::new();
        // Only once it was approved: the person answers on a terminal that is as it was.
        let streams = || {
            if let Some(pair) = pair {
                let mut inner = Inner::open(pair)?;
                let theirs = inner.take().map_or(Streams::Output, Streams::Terminal);
                terminal.get_or_init(|| inner);
                return Ok(theirs);
            }
            Ok(match input {
                Input::Nothing => Streams::Output,
                Input::Ours => match input::pass_on()? {
                    Fed::Nothing => Streams::Output,
                    Fed::From(read, fed) => {
                        feed.get_or_init(|| fed);
                        Streams::Given(read)
                    }
                },
            })
        };
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            // This is polled once the command has started, and not before.
            started.get_or_init(|| ());
            match stopped.await {
                Ok(grace) => grace,
                Err(_) => std::future::pending().await,
            }
        };
        let mut stop = Some(stop);
        let mut by = None;
        let ran = {
            let tee = tee.as_mut().map(|tee| tee as &mut dyn Tee);
            let mut running = std::pin::pin!(self.shieling.run_until(command, streams, tee, stopped));
            loop {
                tokio::select! {
                    outcome = &mut running => break Ok(outcome),
                    Err(error) = written_if_any(&mut written) => break Err(unwritten(&error)),
                    _ = resized.recv() => if let Some(terminal) = terminal.get() {
                        terminal.resize();
                    },
                    signal = signals.recv() => {
                        // What has not started is given up with all that is made for it, such as a copy of the workspace.
                        let stop = stop.take().filter(|_| started.get().is_some());
                        if stop.is_none_or(|stop| stop.send(GRACE).is_err()) {
                            break Err(Ok(Ran::Stopped { signal }));
                        }
                        by = Some(signal);
                    }
                }
            }
        };
        let missing = match &ran {
            Ok(outcome) if outcome.status == Status::Failed => self.missing().await,
            Ok(_) | Err(_) => None,
        };
        let ran = ran.map(|mut outcome| {
            if let Some(terminal) = terminal.get().filter(|_| outcome.exit_code != Some(0)) {
                self.explain_by(&mut outcome, terminal.shown());
            }
            outcome
        });
        // The sandbox is gone after it, and with it what may still hold the terminal.
        self.shieling.environment().close().await;
        drop((terminal, feed));
        let mut outcome = match ran {
            Ok(outcome) => outcome,
            Err(stopped) => {
                self.tell_held_back()?;
                return stopped;
            }
        };
        self.add_settled(&mut outcome);
        // With the tee the rest of the output goes on its way; a slow reader may take long for it.
        drop(tee);
        if written.is_some() {
            tokio::select! {
                done = written_if_any(&mut written) => if let Err(error) = done { return unwritten(&error) },
                signal = signals.recv() => return Ok(Ran::Stopped { signal }),
                // Whoever ended us may read no more.
                () = tokio::time::sleep(LAST_OUTPUT), if by.is_some() => {
                    return Ok(Ran::Stopped { signal: by.unwrap_or(SIGPIPE) });
                }
            }
        }
        Ok(Ran::Ended {
            outcome: Box::new(outcome),
            missing,
            by,
        })
    }

    /// Adds the hints for what a command has said on its terminal, which is no stream of its outcome.
    fn explain_by(&self, outcome: &mut Outcome, said: String) {
        let stderr = std::mem::replace(&mut outcome.stderr, said);
        let hints = self.shieling.environment().hints(outcome);
        outcome.stderr = stderr;
        for hint in hints {
            if !outcome.hints.contains(&hint) {
                outcome.hints.push(hint);
            }
        }
    }
}

/// What every command gets of the caller's variables, and of the options'.
fn variables(plan: &Plan, terminal: bool) -> Result<BTreeMap<String, String>, Failure> {
    let pass: Vec<String> = plan.pass_env.iter().map(|name| name.as_str().to_owned()).collect();
    let set: Vec<(String, String)> = plan
        .set_env
        .iter()
        .map(|set| (set.name.as_str().to_owned(), set.value.clone()))
        .collect();
    let variables = Variables {
        pass: &pass,
        set: &set,
        terminal,
    };
    let built = match &plan.far {
        None => variables.build(std::env::vars_os()),
        // The other machine's, but for what is passed on from here, and the kind of the terminal, which is here.
        Some(far) => {
            let ours = std::env::vars_os().filter(|(name, _)| {
                let name = name.to_str();
                name.is_some_and(|name| pass.iter().any(|passed| passed == name) || terminal && name == "TERM")
            });
            let theirs = far.surroundings().variables.into_iter();
            let theirs = theirs.map(|(name, value)| (name.into(), value.into()));
            variables.build(theirs.chain(ours))
        }
    };
    let mut built = built.map_err(|error| Failure::new(error.to_string()))?;
    if let Some(far) = &plan.far {
        for (name, value) in far.surroundings().variables {
            built.entry(name).or_insert(value);
        }
    }
    if plan.env == EnvironmentName::Memory {
        let chosen = |name: &str| {
            pass.iter()
                .chain(set.iter().map(|(name, _)| name))
                .any(|chosen| chosen == name)
        };
        // The caller's say where things are on this host.
        for (name, value) in IN_MEMORY {
            if !chosen(name) {
                built.insert(name.to_owned(), value.to_owned());
            }
        }
        if !chosen("TZ") {
            built.remove("TZ");
        }
    }
    Ok(built)
}

/// The variables that say where things are, and who works there, in memory.
const IN_MEMORY: [(&str, &str); 5] = [
    ("PATH", "/usr/bin:/bin"),
    ("HOME", "/home/user"),
    ("SHELL", "/bin/bash"),
    ("USER", "user"),
    ("LOGNAME", "user"),
];

/// For many commands at once.
pub(crate) fn serving() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("no event loop could be made: {error}")))
}

const SIGPIPE: u8 = 13;
/// How long a command has between SIGTERM and SIGKILL once we are told to stop.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long the last output may then take to be read.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// As [`all_written`]; pending for ever if nothing is written.
async fn written_if_any(written: &mut Option<Written>) -> io::Result<()> {
    match written {
        Some(written) => all_written(written).await,
        None => std::future::pending().await,
    }
}

/// A reader that went away ends the command as it would end any other in a pipe.
fn unwritten(error: &io::Error) -> Result<Ran, Failure> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(Ran::Stopped { signal: SIGPIPE });
    }
    Err(Failure::new(format!(
        "the output cannot be written: {error}; the command was ended"
    )))
}

/// Runs a command in memory.
pub(crate) fn try_memory() -> Result<(), Failure> {
    let settings = Settings {
        env: Some(EnvironmentName::Memory.into()),
        ..Settings::default()
    };
    let plan = Plan::new(Loaded::only(settings, PathBuf::from("/workspace")), Purpose::Run)?;
    let library = Library::open(&plan, None)?;
    let command = library.command(&plan, "echo works > file; cat file")?;
    match library.run(command, Input::Nothing, Shown::Json)? {
        Ran::Ended { outcome, .. } if outcome.exit_code == Some(0) && outcome.stdout == "works\n" => Ok(()),
        Ran::Ended { outcome, .. } => {
            let what = outcome
                .error
                .unwrap_or_else(|| format!("a command in it printed `{}`", outcome.stdout.trim()));
            Err(Failure::new(what))
        }
        Ran::Stopped { signal } => Err(Failure::new(format!("stopped by signal {signal}"))),
    }
}

/// The container engine that answers, in words.
pub(crate) fn find_engine() -> Result<String, Failure> {
    #[cfg(feature = "container")]
    return crate::container::find_engine();
    #[cfg(not(feature = "container"))]
    Err(Failure::new("not in this version"))
}

/// Judges `true`, which every policy lets through, and then runs it in `local`.
///
/// The first says whether policies are judged at all, the second whether a command starts and ends.
pub(crate) fn probe() -> (Result<(), Failure>, Result<(), Failure>) {
    let library = || {
        let settings = Settings {
            env: Some(EnvironmentName::Local.into()),
            approval: Some(Approval::Never),
            acknowledge_unsafe: true,
            ..Settings::default()
        };
        let plan = Plan::new(Loaded::only(settings, PathBuf::from("/")), Purpose::Run)?;
        let library = Library::open(&plan, None)?;
        let command = library.command(&plan, "true")?;
        Ok((library, command))
    };
    let (library, command) = match library() {
        Ok(both) => both,
        Err(failure) => return (Err(Failure::clone(&failure)), Err(failure)),
    };
    let judged = match library.judge(&command).decision {
        Decision::Allow => Ok(()),
        Decision::Ask | Decision::Deny => Err(Failure::new("`true` is not let through")),
    };
    let ran = match library.run(command, Input::Nothing, Shown::Json) {
        Ok(Ran::Ended { outcome, .. }) if outcome.exit_code == Some(0) && outcome.survivors == 0 => Ok(()),
        Ok(Ran::Ended { outcome, .. }) => Err(Failure::new(
            outcome.error.unwrap_or_else(|| "`true` did not end with 0".to_owned()),
        )),
        Ok(Ran::Stopped { signal }) => Err(Failure::new(format!("stopped by signal {signal}"))),
        Err(failure) => Err(failure),
    };
    (judged, ran)
}

/// What came of trying a sandbox.
#[derive(Debug)]
pub(crate) enum Tried {
    /// A command ran in it, and this holds.
    Works(Confinement),
    /// A layer is missing.
    Refused {
        /// Which.
        layer: JailLayer,
        /// What was being done, and what the kernel said.
        what: String,
        /// The same for programs.
        refusal: JailRefusal,
    },
    /// It could not be tried, or no command could run in it.
    Failed(String),
}

impl Tried {
    /// Whether a command ran in it.
    pub(crate) fn works(&self) -> bool {
        matches!(self, Self::Works(_))
    }

    /// The layer that is missing, and how that was seen.
    pub(crate) fn refusal(&self) -> Option<&JailRefusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            Self::Works(_) | Self::Failed(_) => None,
        }
    }
}

/// Starts a sandbox as these settings say, in a directory of its own, and a command in it.
pub(crate) fn try_sandbox(settings: Settings) -> Tried {
    tried(settings).unwrap_or_else(|failure| Tried::Failed(failure.what()))
}

fn tried(settings: Settings) -> Result<Tried, Failure> {
    let workspace = files::Scratch::new()
        .map_err(|error| Failure::new(format!("no directory to try it in can be made: {}", reason(&error))))?;
    let plan = Plan::new(Loaded::only(settings, workspace.path().to_owned()), Purpose::Run)?;
    let library = Library::open(&plan, None)?;
    let command = library.command(&plan, "true")?;
    let Some(Place::Sandbox { sandbox, .. }) = &library.place else {
        return Err(Failure::new("this is no sandbox"));
    };
    runtime::start()?.block_on(async {
        let confinement = match sandbox.start().await {
            Ok(confinement) => confinement,
            Err(error) => {
                return Ok(match missing::refusal(&error) {
                    Some(refusal) => Tried::Refused {
                        layer: refusal.layer,
                        what: with_causes(&error),
                        refusal: refusal.clone(),
                    },
                    None => Tried::Failed(with_causes(&error)),
                });
            }
        };
        let outcome = library.shieling.run(command, None).await;
        sandbox.close().await;
        Ok(if outcome.exit_code == Some(0) && outcome.survivors == 0 {
            Tried::Works(confinement)
        } else {
            let what = outcome
                .error
                .unwrap_or_else(|| "`true` did not end with 0 in it".to_owned());
            Tried::Failed(what)
        })
    })
}

/// What a command reads on its standard input.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input {
    /// An end of file.
    Nothing,
    /// What we read on ours.
    Ours,
}

/// What becomes of the output while the command runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown {
    /// Nothing; it stands in the outcome.
    Json,
    /// Both streams go to ours.
    Streams {
        /// How much of each; all if there is no limit.
        limit: Option<ByteCount>,
    },
    /// The command has a terminal inside of ours, as all three streams.
    Terminal,
}

/// How a run came back.
#[derive(Debug)]
pub(crate) enum Ran {
    /// With its outcome.
    Ended {
        /// What happened.
        outcome: Box<Outcome>,
        /// Why nothing could be started, if the environment could not.
        missing: Option<Failure>,
        /// The signal by which we were told to stop, if we were.
        by: Option<u8>,
    },
    /// We were told to stop, and ended the command.
    Stopped {
        /// By this signal; a reader that went away counts as SIGPIPE.
        signal: u8,
    },
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
    /// Whether that is so; a file with an example that fails does not load.
    pub(crate) holds: bool,
}

/// Loads a policy and runs its examples.
pub(crate) fn check_policy(path: &Path) -> Result<Vec<Example>, Failure> {
    let rules = setup::rules(path, None)?;
    let examples = rules.examples().into_iter().map(|example| Example {
        rule: example.rule,
        command: example.command,
        matches: example.should_match,
        holds: true,
    });
    Ok(examples.collect())
}

/// A preset, as the settings that it stands for.
pub(crate) fn preset(name: &str) -> Result<String, Failure> {
    let known = || PRESETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    preset_settings(name).ok_or_else(|| {
        Failure::new(format!("no preset is called `{name}`")).with("instead", format!("there are {}", known()))
    })
}

/// What became of checking a chain.
#[derive(Debug)]
pub(crate) enum Chain {
    /// It is whole.
    Whole {
        /// The number of records.
        records: u64,
        /// The last record's number and digest, which a person can note.
        head: Option<String>,
    },
    /// It is broken.
    Broken {
        /// The file, which may be an older generation.
        path: PathBuf,
        /// The first line that does not fit, from 1.
        line: u64,
        /// What is wrong with it, as what follows "line N".
        why: String,
    },
}

/// Checks the hash chain of an audit log, up to the head that somebody noted, if they did.
pub(crate) fn verify(log: &Path, noted: Option<&str>) -> Result<Chain, Failure> {
    let noted = noted.map(str::parse).transpose();
    let noted = noted.map_err(|error: shieling::units::UnitError| Failure::new(error.to_string()))?;
    match audit::verify(log, noted) {
        Ok(summary) => Ok(Chain::Whole {
            records: summary.records,
            head: summary.head.map(|head| head.to_string()),
        }),
        Err(audit::BrokenLog {
            why: audit::Defect::Unreadable(error),
            ..
        }) => Err(Failure::new(format!(
            "{} cannot be read: {}",
            Printable(log),
            reason(&error)
        ))),
        Err(broken) => Ok(Chain::Broken {
            path: broken.path,
            line: broken.line,
            why: broken.why.to_string(),
        }),
    }
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
    let directory = state::directory()
        .ok_or_else(|| Failure::new("there is no stored output: neither XDG_STATE_HOME nor HOME is set"))?;
    let stream = if stdout { Stream::Stdout } else { Stream::Stderr };
    let piece = output::read_spilled(
        &state::outputs(&directory),
        id,
        stream,
        cursor,
        ByteCount::bytes(at_most),
    )
    .map_err(|error| Failure::new(error.to_string()))?;
    Ok(Piece {
        bytes: piece.bytes,
        next: piece.next_cursor,
        end: piece.end,
    })
}
