//! Another machine: reached before the plan is made, since what holds there decides what is asked and refused here.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use shieling::environment::JailLimits;
use shieling_remote::agent::Setup;
use shieling_remote::ssh::{Destination, Ssh};
use shieling_remote::transport::{ConnectError, TransportError};
use shieling_remote::{LinkError, Remote, Surroundings, Timing};

/// Why a machine cannot be used, in words.
#[derive(Debug, Clone)]
pub(crate) struct Unreached {
    /// What happened.
    pub(crate) what: String,
    /// Why, where there is more to say.
    pub(crate) because: Option<&'static str>,
    /// What to do.
    pub(crate) instead: Option<String>,
}

impl Unreached {
    fn new(what: String) -> Self {
        Self {
            what,
            because: None,
            instead: None,
        }
    }

    fn because(self, because: &'static str) -> Self {
        Self {
            because: Some(because),
            ..self
        }
    }

    fn instead(self, instead: impl Into<String>) -> Self {
        Self {
            instead: Some(instead.into()),
            ..self
        }
    }
}

/// A machine that was reached. The last copy ends the link, and what runs there.
#[derive(Debug, Clone)]
pub(crate) struct Far {
    destination: Destination,
    remote: Arc<Remote>,
    limits: JailLimits,
}

impl Far {
    /// Reaches it, and has the environment opened there that the setup asks for.
    pub(crate) fn reach(destination: &Destination, setup: Setup) -> Result<Self, Unreached> {
        let limits = setup.limits;
        let ssh = Ssh::new(destination.clone(), setup)
            .map_err(|error| Unreached::new(format!("{destination} cannot be used: {error}; nothing was started")))?;
        let connecting = async { Remote::over(Arc::new(ssh), Timing::default()).await };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Unreached::new(format!("no event loop could be made: {error}; nothing was started")))?;
        // On a thread of its own: the caller may be in an event loop.
        let connected = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(connecting)).join());
        let connected =
            connected.map_err(|_| Unreached::new("connecting was broken off; nothing was started".to_owned()))?;
        let remote = connected.map_err(|error| failed(destination, &error))?;
        let far = Self {
            destination: destination.clone(),
            remote: Arc::new(remote),
            limits,
        };
        let shell = far.surroundings().shell;
        if shell.file_name().is_none_or(|name| name != "bash") {
            let found = match shell.as_os_str().is_empty() {
                true => "it has no shell".to_owned(),
                false => format!("its shell is `{}`", shell.display()),
            };
            let told = Unreached::new(format!(
                "there is no bash on {destination}: {found}; nothing was started"
            ));
            return Err(told
                .because("the policy reads every command as bash does, and another shell would run another text")
                .instead("install bash there, or name it with `--shell /path/of/bash`"));
        }
        Ok(far)
    }

    /// Whether commands there run in a sandbox; otherwise they are unconfined there.
    pub(crate) fn is_confined(&self) -> bool {
        self.surroundings().unconfined.is_none()
    }

    /// What is told of the machine.
    pub(crate) fn surroundings(&self) -> Surroundings {
        self.remote.surroundings()
    }

    /// A name of the workspace there that no workspace of this machine has.
    pub(crate) fn place(&self) -> PathBuf {
        let machine = PathBuf::from(format!("{}:", self.destination.host()));
        let user = self
            .destination
            .user()
            .map(|user| format!("{user}@"))
            .unwrap_or_default();
        machine.join(format!("{user}{}", self.surroundings().workspace.display()))
    }

    /// The limits of the sandbox there; none if there is none.
    pub(crate) fn limits(&self) -> JailLimits {
        if self.is_confined() {
            self.limits
        } else {
            JailLimits::default()
        }
    }

    /// Why nothing can start any more, if the link is over.
    pub(crate) fn lost(&self) -> Option<Unreached> {
        let why = self.remote.end().filter(|why| *why != LinkError::Closed)?;
        let why = crate::escape::line(&why.to_string());
        let told = Unreached::new(format!("the link to {} is lost: {why}", self.destination));
        Some(
            told.because("what ran there is ended by its own side of the link")
                .instead("start again"),
        )
    }

    /// The environment there.
    pub(crate) fn environment(&self) -> Arc<Remote> {
        Arc::clone(&self.remote)
    }
}

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.destination)?;
        match self.surroundings().unconfined {
            Some(why) => write!(f, ", which can have no sandbox ({})", crate::escape::line(&why)),
            None => Ok(()),
        }
    }
}

/// Why a machine could not be used, in words.
fn failed(destination: &Destination, error: &ConnectError) -> Unreached {
    let line = |text: &str| crate::escape::line(text);
    match error {
        ConnectError::Transport(TransportError::Refused { what, instead }) => {
            let failure = Unreached::new(format!("{}; nothing was started", line(what)));
            match instead {
                Some(instead) => failure.instead(line(instead)),
                None => failure,
            }
        }
        ConnectError::Transport(error) => {
            let mut text = error.to_string();
            if let Some(source) = std::error::Error::source(error) {
                text = format!("{text}: {source}");
            }
            let failure = Unreached::new(format!(
                "{destination} cannot be reached: {}; nothing was started",
                line(&text)
            ));
            failure.instead(match error {
                TransportError::TimedOut { .. } => format!(
                    "see whether `{} true` works and ends without a question, also of hosts on the way, and that no start-up \
                     file there waits for input or starts another shell",
                    line(&destination.command())
                ),
                _ => "see whether `ssh` works there by itself, and is on PATH here".to_owned(),
            })
        }
        // The agent program has said why it does not serve.
        ConnectError::Link {
            why: LinkError::Ended | LinkError::Broken(_),
            said,
        } if !said.is_empty() => {
            let said = said.strip_prefix("shieling-agent: ").unwrap_or(said);
            let (said, instead) = match said.split_once("; instead: ") {
                Some((said, instead)) => (said, Some(instead)),
                None => (said, None),
            };
            let failure = Unreached::new(format!(
                "{destination} cannot be used: {}; nothing was started",
                line(said)
            ));
            // The shell's words, before the program had any.
            let denied = said.contains("/agent-") && said.contains("Permission denied");
            let elsewhere = "set XDG_CACHE_HOME there to a directory from which programs can be executed: the one where \
                             the agent program is kept may be mounted `noexec`";
            match instead.or(denied.then_some(elsewhere)) {
                Some(instead) => failure.instead(line(instead)),
                None => failure,
            }
        }
        error => Unreached::new(format!(
            "{destination} cannot be used: {}; nothing was started",
            line(&error.to_string())
        )),
    }
}
