//! Another machine: reached before the plan is made, since what holds there decides what is asked and refused here.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use shieling::environment::{self, JailLimits};
use shieling_remote::agent::{Setup, Wanted};
use shieling_remote::ssh::{Destination, Ssh};
use shieling_remote::transport::{ConnectError, TransportError};
use shieling_remote::{LinkError, Remote, Surroundings, Timing};

use crate::config::Loaded;
use crate::options::{EnvironmentName, Isolation, Network};
use crate::plan;
use crate::words::Failure;

/// A machine that was reached. The last copy ends the link, and what runs there.
#[derive(Debug, Clone)]
pub(crate) struct Far {
    destination: Destination,
    remote: Arc<Remote>,
    limits: JailLimits,
}

impl Far {
    /// Reaches it, and has the environment opened there that these settings ask for.
    pub(crate) fn reach(destination: &Destination, loaded: &Loaded) -> Result<Self, Failure> {
        let setup = setup(loaded);
        let limits = setup.limits;
        let ssh = Ssh::new(destination.clone(), setup)
            .map_err(|error| Failure::new(format!("{destination} cannot be used: {error}; nothing was started")))?;
        let connecting = async { Remote::over(Arc::new(ssh), Timing::default()).await };
        // On a thread of its own: the caller may be in an event loop.
        let runtime = crate::run::runtime()?;
        let connected = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(connecting)).join());
        let connected = connected.map_err(|_| Failure::new("connecting was broken off; nothing was started"))?;
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
            return Err(Failure::new(format!(
                "there is no bash on {destination}: {found}; nothing was started"
            ))
            .with(
                "because",
                "the policy reads every command as bash does, and another shell would run another text",
            )
            .with("instead", "install bash there, or name it with `--shell /path/of/bash`"));
        }
        Ok(far)
    }

    /// What commands there run in.
    pub(crate) fn amounts_to(&self) -> EnvironmentName {
        match self.surroundings().unconfined {
            None => EnvironmentName::Sandbox,
            Some(_) => EnvironmentName::Local,
        }
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
        match self.amounts_to() {
            EnvironmentName::Sandbox => self.limits,
            _ => JailLimits::default(),
        }
    }

    /// Why nothing can start any more, if the link is over.
    pub(crate) fn lost(&self) -> Option<Failure> {
        let why = self.remote.end().filter(|why| *why != LinkError::Closed)?;
        Some(
            Failure::new(format!(
                "the link to {} is lost: {}",
                self.destination,
                crate::escape::line(&why.to_string())
            ))
            .with("because", "what ran there is ended by its own side of the link")
            .with("instead", "start again"),
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

/// What the agent program is told. Limits that nobody asked for are those of a sandbox here.
fn setup(loaded: &Loaded) -> Setup {
    let settings = &loaded.settings;
    let isolation = settings.isolation.unwrap_or(Isolation::Full);
    let defaults = plan::defaults(EnvironmentName::Sandbox, isolation);
    let network = settings
        .network
        .unwrap_or(plan::default_network(EnvironmentName::Sandbox, isolation));
    Setup {
        environment: Wanted::Auto,
        workspace: Some(loaded.workspace.clone()).filter(|workspace| !workspace.as_os_str().is_empty()),
        shell: settings.shell.clone(),
        programs: None,
        network: match network {
            Network::None => environment::Network::None,
            Network::Loopback => environment::Network::Loopback,
            Network::Host => environment::Network::Host,
        },
        isolation: match isolation {
            Isolation::Full => environment::Isolation::Full,
            Isolation::Landlock => environment::Isolation::Landlock,
        },
        limits: plan::jail_limits(
            settings.memory.or(defaults.memory),
            settings.pids.or(defaults.pids),
            settings.cpus,
        ),
        read: settings.read.clone(),
        write: settings.write.clone(),
        open_protected: settings.open_protected,
        allow_home: settings.allow_home,
        ..Setup::default()
    }
}

/// Why a machine could not be used, in words.
fn failed(destination: &Destination, error: &ConnectError) -> Failure {
    let line = |text: &str| crate::escape::line(text);
    match error {
        ConnectError::Transport(TransportError::Refused { what, instead }) => {
            let failure = Failure::new(format!("{}; nothing was started", line(what)));
            match instead {
                Some(instead) => failure.with("instead", line(instead)),
                None => failure,
            }
        }
        ConnectError::Transport(error) => {
            let mut text = error.to_string();
            if let Some(source) = std::error::Error::source(error) {
                text = format!("{text}: {source}");
            }
            let failure = Failure::new(format!(
                "{destination} cannot be reached: {}; nothing was started",
                line(&text)
            ));
            failure.with(
                "instead",
                "see whether `ssh` works there by itself, and is on PATH here",
            )
        }
        // The agent program has said why it does not serve.
        ConnectError::Link {
            why: LinkError::Ended | LinkError::Broken(_),
            said,
        } if !said.is_empty() => {
            let said = said.strip_prefix("shieling-agent: ").unwrap_or(said);
            Failure::new(format!(
                "{destination} cannot be used: {}; nothing was started",
                line(said)
            ))
        }
        error => Failure::new(format!(
            "{destination} cannot be used: {}; nothing was started",
            line(&error.to_string())
        )),
    }
}
