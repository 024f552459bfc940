//! The façade: everything between a request and its outcome, in order.
//!
//! [`Shieling::run`] is the whole journey. A refusal is a normal outcome; an error means that Shieling itself failed.
//! The façade decides nothing: the policy judges, the approver approves, the environment runs.

mod authorize;
mod entry;
mod file_size;
mod files;
mod held_back;
mod hidden;
mod in_parts;
mod jobs;
mod journey;
mod kernel;
mod left;
mod lookup;
#[cfg(feature = "gateway")]
mod network;
mod reading;
mod questions;
mod recorded;
mod recordings;
mod refusal;
mod reviewing;
mod run;
mod sessions;
mod started;
mod environment_facts;
mod terminal;
mod unjudged;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::approval::{Approvals, Approver, Mode, NoApprover};
use crate::audit::Sink;
use crate::enforcement::{EnforceError, Enforced};
use crate::environment::Environment;
use crate::files::ContentCache;
use crate::output::SpillTo;
use crate::policy::{CarriedState, Decision, Policy, Text, Verdict};
use crate::rate::{RateLimit, RateLimiter};
use crate::request::{Command, Digest, Request};
use crate::session::{Human, Jobs, NoHuman, RecordingSettings, Sessions};
use crate::units::{ByteCount, Clock, SystemClock};

use entry::Entry;
pub use environment_facts::EnvironmentFacts;
pub use kernel::{enforcement_of, hidden_of};
use left::LeftBehind;
pub use sessions::SessionHandle;

/// One environment with its policy, its approvals, its limits and its log. Shared by reference.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use shieling::Shieling;
/// use shieling::approval::Mode;
/// use shieling::environment::{Local, Shell};
/// use shieling::policy::Policy;
/// use shieling::request::Command;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let environment = Arc::new(Local::new(Shell::find(None)?));
/// let shieling = Shieling::builder(environment, Policy::open().with_readonly(), "/work")
///     .approval(Mode::OnAsk)
///     .rate("3/10,10/60".parse()?)
///     .build()?;
/// let outcome = shieling.run(Command::new("git status", "/work")?, None).await;
/// assert!(outcome.denial.is_none());
/// # Ok(())
/// # }
/// ```
pub struct Shieling {
    environment: Arc<dyn Environment>,
    /// The parts of the policy that the environment enforces, as it has answered.
    enforced: Enforced,
    policy: Arc<Policy>,
    policy_digest: Digest,
    workspace: PathBuf,
    approvals: Approvals,
    rate: Option<RateLimiter>,
    audit: Option<Arc<dyn Sink>>,
    spill: Option<SpillTo>,
    output_limit: Option<ByteCount>,
    jobs: Jobs,
    sessions: Sessions,
    left: LeftBehind,
    recordings: Option<RecordingSettings>,
    human: Arc<dyn Human>,
    requires: Requires,
    questions: questions::Questions,
    own: Vec<PathBuf>,
    file_cache: Arc<ContentCache>,
    permits: files::Permits,
    born: Instant,
    /// Set once nothing may be started any more.
    closed: AtomicBool,
    runs: AtomicU64,
}

/// What requires approval, whatever policy and mode say.
#[derive(Debug, Clone, Copy, Default)]
struct Requires {
    commands: bool,
    writes: bool,
}

impl fmt::Debug for Shieling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shieling")
            .field("environment", &self.environment.name())
            .field("workspace", &self.workspace)
            .field("approvals", &self.approvals)
            .finish_non_exhaustive()
    }
}

impl Shieling {
    /// Creates a builder for an environment, a policy and a workspace.
    pub fn builder(environment: Arc<dyn Environment>, policy: Policy, workspace: impl Into<PathBuf>) -> Builder {
        Builder {
            environment,
            policy,
            workspace: workspace.into(),
            approver: Arc::new(NoApprover),
            #[cfg(feature = "gateway")]
            asks: false,
            mode: None,
            answer_timeout: None,
            rate: None,
            audit: None,
            spill: None,
            output_limit: None,
            recordings: None,
            human: Arc::new(NoHuman),
            clock: Arc::new(SystemClock),
            requires: Requires::default(),
            asks_about_held_back: false,
            own: Vec::new(),
            #[cfg(feature = "gateway")]
            network: crate::network::NetworkAccess::default(),
        }
    }

    /// Judges a command by the policy and the environment. Starts, asks and records nothing.
    pub fn judge(&self, command: &Command) -> Verdict {
        self.judge_here(command, CarriedState::default()).0
    }

    /// Returns whether the environment enforces the whole policy, so that the text of a command does not matter.
    fn is_contained(&self) -> bool {
        self.policy.is_enforced_by(self.enforced)
    }

    /// Returns the grants and their approver.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Returns the environment.
    pub fn environment(&self) -> &Arc<dyn Environment> {
        &self.environment
    }

    /// Returns the parts of the policy that the environment enforces.
    pub fn enforced(&self) -> Enforced {
        self.enforced
    }

    /// Returns the policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns where whole outputs are stored, if they are.
    pub fn spill(&self) -> Option<&SpillTo> {
        self.spill.as_ref()
    }

    /// Returns how many commands the rate limit would admit now, or `None` without a limit.
    pub fn room(&self) -> Option<usize> {
        self.rate.as_ref().map(RateLimiter::room)
    }

    /// Returns where facts about commands are looked up.
    fn place(&self) -> lookup::Place {
        lookup::Place::of(&*self.environment)
    }

    /// Prepares a command for this environment.
    fn prepared(&self, command: Command) -> Command {
        if self.policy.is_readonly() && !self.enforced.readonly {
            reading::only(command)
        } else {
            command
        }
    }

    /// Returns the verdict, and whether only reasons of the environment require approval.
    fn judge_here(&self, command: &Command, left: CarriedState) -> (Verdict, bool) {
        let facts = lookup::facts(command, &self.workspace, &self.place());
        let mut facts = facts.after(left).enforcing(self.enforced);
        let mut text = Text::read(command.text(), &facts);
        let mut verdict = self.policy.judge_read(&text, &facts);
        // File names are looked up only if that may change the verdict.
        let are_plain = |names| lookup::are_plain(names, command.cwd(), &self.place());
        if verdict.decision != Decision::Allow
            && let Some(names) = text.names_used()
            && are_plain(names)
        {
            let plain = facts.clone().with_plain_names();
            let read = Text::read(command.text(), &plain);
            // It may use more than the first reading showed.
            if read.names_used().is_some_and(|used| used == names || are_plain(used)) {
                (facts, text) = (plain, read);
                verdict = self.policy.judge_read(&text, &facts);
            }
        }
        // Hidden paths are looked up only if the verdict depends on them.
        let facts = if verdict.may_use_hidden_paths() && matches!(self.place(), lookup::Place::Host) {
            let facts = facts.with_hidden_there(hidden::there(&self.policy, &self.workspace));
            verdict = self.policy.judge_read(&text, &facts);
            facts
        } else {
            facts
        };
        let mut own = if self.enforced.hidden {
            Vec::new()
        } else {
            let name = self.environment.name();
            hidden::reasons(&verdict, &self.policy, &text, command, &facts, &self.workspace, name)
        };
        own.extend(in_parts::reasons(&*self.environment, &text, &verdict, command));
        let by_environment = own.iter().any(|reason| reason.decision > verdict.decision);
        for reason in own {
            verdict.decision = verdict.decision.max(reason.decision);
            verdict.reasons.push(reason);
        }
        if self.requires.commands && verdict.decision != Decision::Deny {
            verdict.decision = Decision::Ask;
            let because = "every command is asked about here";
            verdict.reasons.push(refusal::required(command.text(), because));
        }
        (verdict, by_environment)
    }

    fn entry(&self, request: &impl Request) -> Entry {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let name = self.environment.name();
        Entry::new(
            self.audit.clone(),
            request,
            name,
            self.policy_digest,
            number,
            self.born.elapsed(),
        )
    }
}

/// Builds a [`Shieling`]. Defaults: no approver, no rate limit, no log, no stored outputs, no recordings.
#[must_use]
pub struct Builder {
    environment: Arc<dyn Environment>,
    policy: Policy,
    workspace: PathBuf,
    approver: Arc<dyn Approver>,
    #[cfg(feature = "gateway")]
    asks: bool,
    mode: Option<Mode>,
    answer_timeout: Option<Duration>,
    rate: Option<RateLimit>,
    audit: Option<Arc<dyn Sink>>,
    spill: Option<SpillTo>,
    output_limit: Option<ByteCount>,
    recordings: Option<RecordingSettings>,
    human: Arc<dyn Human>,
    clock: Arc<dyn Clock>,
    requires: Requires,
    asks_about_held_back: bool,
    own: Vec<PathBuf>,
    #[cfg(feature = "gateway")]
    network: crate::network::NetworkAccess,
}

impl Builder {
    /// Sets the approver.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        #[cfg(feature = "gateway")]
        {
            self.asks = true;
        }
        self
    }

    /// Sets when approval is required. Default: `Always` where the environment enforces nothing of the policy,
    /// otherwise `OnAsk`.
    pub fn approval(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets the time limit for an answer of the approver (default: 10 minutes).
    pub fn answer_timeout(mut self, answer_timeout: Duration) -> Self {
        self.answer_timeout = Some(answer_timeout);
        self
    }

    /// Requires approval of every command, whatever policy and mode say (default: no). Without an approver, no command
    /// runs.
    pub fn require_shell_approval(mut self, required: bool) -> Self {
        self.requires.commands = required;
        self
    }

    /// Requires approval of every change by [`Shieling::file`], whatever policy and mode say (default: no). Without an
    /// approver, no change is made. Changes that commands make are not affected.
    pub fn require_write_approval(mut self, required: bool) -> Self {
        self.requires.writes = required;
        self
    }

    /// Asks the approver, after a command whose changes were held back, whether they may go into the workspace after all
    /// (default: no). Each is shown with the reason and its diff, at most 8 after one command, and never the same twice;
    /// nobody is asked about what cannot be shown whole. The command's outcome waits for the answers, each as long as
    /// [`answer_timeout`](Self::answer_timeout) says; after the first that does not come, no more is asked.
    pub fn ask_about_held_back(mut self, ask: bool) -> Self {
        self.asks_about_held_back = ask;
        self
    }

    /// Sets the absolute paths of Shieling's own files and directories, such as the log and the state directory. They
    /// do not exist for [`Shieling::file`]. The environment keeps commands from them if it can.
    pub fn own_files(mut self, paths: Vec<PathBuf>) -> Self {
        self.own = paths;
        self
    }

    /// Limits the rate of commands. File operations are not counted (default: no limit).
    pub fn rate(mut self, limit: RateLimit) -> Self {
        self.rate = Some(limit);
        self
    }

    /// Sets the sink of the log (default: none).
    pub fn audit(mut self, sink: Arc<dyn Sink>) -> Self {
        self.audit = Some(sink);
        self
    }

    /// Stores whole outputs there that exceed what is kept in memory (default: they are cut).
    pub fn spill(mut self, to: SpillTo) -> Self {
        self.spill = Some(to);
        self
    }

    /// Ends commands that write more than this (default: no limit).
    pub fn output_limit(mut self, limit: ByteCount) -> Self {
        self.output_limit = Some(limit);
        self
    }

    /// Records sessions and jobs: their output, with marks for approvals and ends. Input is never recorded (default: no
    /// recordings).
    pub fn recordings(mut self, to: RecordingSettings) -> Self {
        self.recordings = Some(to);
        self
    }

    /// Sets the person whom agents can ask and who can take the keyboard of a job (default: nobody).
    pub fn human(mut self, human: Arc<dyn Human>) -> Self {
        self.human = human;
        self
    }

    /// Sets the clock of the rate limit and the grants (default: the system's).
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Opens a host to commands, by name and port (default: none). All programs can reach it, and no other host. Needs
    /// an environment with a gateway, such as [`Sandbox`](crate::environment::Sandbox).
    ///
    /// If an approver may be asked, the first connection to a host that is not open waits for an answer.
    ///
    /// ```
    /// use shieling::network::HostRule;
    ///
    /// let python = HostRule::expand("@python")?;
    /// assert!(python.iter().any(|host| host.to_string() == "pypi.org"));
    /// # Ok::<(), shieling::network::RuleError>(())
    /// ```
    #[cfg(feature = "gateway")]
    pub fn allow_host(mut self, host: crate::network::HostRule) -> Self {
        self.network.rules.push(crate::network::Rule::allow(host));
        self
    }

    /// Adds a secret that commands never see: its variable holds a placeholder, which the gateway replaces by the value
    /// in requests to the secret's host alone. That host is opened, as by [`Self::allow_host`].
    #[cfg(feature = "gateway")]
    pub fn secret(mut self, secret: crate::network::Secret) -> Self {
        let rule = crate::network::Rule::allow(secret.spec().host.clone());
        if !self.network.rules.contains(&rule) {
            self.network.rules.push(rule);
        }
        self.network.secrets.push(secret);
        self
    }

    /// Sets the resolver of host names (default: this host's).
    #[cfg(feature = "gateway")]
    pub fn resolver(mut self, resolver: Arc<dyn crate::network::Resolver>) -> Self {
        self.network.resolver = Some(resolver);
        self
    }

    /// Sets the certificates that are trusted for connections with secrets (default: the host's).
    #[cfg(feature = "gateway")]
    pub fn roots(mut self, roots: crate::network::Roots) -> Self {
        self.network.roots = roots;
        self
    }

    /// Sets a proxy for outgoing connections, and the hosts that bypass it (default: none).
    #[cfg(feature = "gateway")]
    pub fn proxy(mut self, proxy: crate::network::Proxy, around: crate::network::NoProxy) -> Self {
        self.network.proxy = Some(proxy);
        self.network.no_proxy = around;
        self
    }

    /// Opens the network of the environment if any host or secret is given.
    #[cfg(feature = "gateway")]
    fn open_network(&mut self, mode: Mode, born: Instant) -> Result<(), EnforceError> {
        let mut access = std::mem::take(&mut self.network);
        access.rules.extend(network::rules(&self.policy.connects()));
        if access.is_empty() {
            return Ok(());
        }
        let case = network::Case {
            environment: self.environment.name().to_owned(),
            workspace: self.workspace.clone(),
            policy: self.policy.digest(),
        };
        access.asker = (mode != Mode::Never && self.asks).then(|| {
            Arc::new(network::ByApprover {
                approver: Arc::clone(&self.approver),
                case: case.clone(),
                answer_timeout: self.answer_timeout.unwrap_or(crate::approval::DEFAULT_TIMEOUT),
            }) as _
        });
        access.observer = self.audit.as_ref().map(|sink| {
            Arc::new(network::Recording {
                sink: Arc::clone(sink),
                case,
                born,
                number: AtomicU64::new(0),
            }) as _
        });
        self.environment.open_network(access)
    }

    /// Builds the [`Shieling`], and has the environment enforce the policy.
    ///
    /// # Errors
    /// [`EnforceError`] if the environment already enforces another policy, or cannot enforce this one.
    #[cfg_attr(
        not(feature = "gateway"),
        expect(unused_mut, reason = "only a network that is opened is taken out of it")
    )]
    pub fn build(mut self) -> Result<Shieling, EnforceError> {
        let asked = enforcement_of(&self.policy, &self.workspace);
        let enforced = self.environment.enforce(&asked)?;
        self.environment.hold_back(self.policy.changes())?;
        let contains = enforced.hidden || enforced.readonly || enforced.programs;
        let mode = self.mode.unwrap_or(if contains { Mode::OnAsk } else { Mode::Always });
        let born = Instant::now();
        #[cfg(feature = "gateway")]
        self.open_network(mode, born)?;
        let mut approvals = Approvals::new(mode, self.approver, self.clock.clone());
        if let Some(answer_timeout) = self.answer_timeout {
            approvals = approvals.with_timeout(answer_timeout);
        }
        Ok(Shieling {
            policy_digest: self.policy.digest(),
            approvals,
            rate: self.rate.map(|limit| RateLimiter::new(limit, self.clock.clone())),
            environment: self.environment,
            enforced,
            policy: Arc::new(self.policy),
            workspace: self.workspace,
            audit: self.audit,
            spill: self.spill,
            output_limit: self.output_limit,
            jobs: Jobs::new(),
            sessions: Sessions::default(),
            left: LeftBehind::default(),
            recordings: self.recordings,
            human: self.human,
            requires: self.requires,
            questions: questions::Questions::new(self.asks_about_held_back),
            own: self.own,
            file_cache: Arc::default(),
            permits: files::Permits::default(),
            born,
            closed: AtomicBool::new(false),
            runs: AtomicU64::new(0),
        })
    }
}
