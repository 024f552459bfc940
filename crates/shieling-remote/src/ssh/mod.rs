//! The transport to another machine: over the user's own OpenSSH client, whose settings, agent, jump hosts and shared
//! connections hold.
//!
//! ```text
//! ssh ─► login shell ─► sh: is the agent program there, and is its digest right?
//!          no:  "upload" ─► its bytes, as many as were said ─► checked, then renamed to its name
//!          yes: "start"  ─► exec: from here on the stream is the protocol
//! ```
//!
//! Nothing is ever asked on a terminal, and no host key is accepted: what `ssh` would ask about is an error that says
//! what to run.

mod client;
mod destination;
mod jump;
mod script;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use shieling::environment::Later;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::agent::{NoProgram, Program, Setup};
use crate::transport::{Connection, Transport, TransportError};

pub use self::client::client_version;
use self::client::{Client, ClientEnd};
pub use self::destination::{Destination, DestinationError};
use self::jump::{Hop, Trusting};
use self::script::Answer;

/// How long it may take until the far side says its first word: connecting, and whatever a hardware key waits for.
const REACHING: Duration = Duration::from_secs(60);
/// How long the link may take no byte of the agent program.
const STALLING: Duration = Duration::from_secs(30);
/// How long the far side may take to check the agent program.
const CHECKING: Duration = Duration::from_secs(60);
/// How much a login shell may print before the script's own words.
const MOST_NOISE: usize = 64 * 1024;
/// How many characters of it are told where nothing else says why the command has ended.
const MOST_TOLD: usize = 400;

/// A place that is reached by `ssh`.
#[derive(Debug, Clone)]
pub struct Ssh {
    destination: Destination,
    setup: Setup,
    client: PathBuf,
    options: Vec<OsString>,
    program: Program,
}

impl Ssh {
    /// The machine behind `ssh`, found on the caller's `PATH`. A workspace of the destination wins over that of the
    /// setup.
    ///
    /// # Errors
    /// [`NoProgram`]: there is no agent program to send.
    pub fn new(destination: Destination, setup: Setup) -> Result<Self, NoProgram> {
        let workspace = destination.directory().map(PathBuf::from).or(setup.workspace);
        Ok(Self {
            destination,
            setup: Setup { workspace, ..setup },
            client: PathBuf::from("ssh"),
            options: Vec::new(),
            program: Program::carried()?,
        })
    }

    /// With this client.
    #[must_use]
    pub fn with_client(self, client: impl Into<PathBuf>) -> Self {
        let client = client.into();
        Self { client, ..self }
    }

    /// With further options for the client, such as `-F FILE`. What this transport sets itself wins.
    #[must_use]
    pub fn with_options(self, options: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            options: options.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// With this agent program.
    #[must_use]
    pub fn with_program(self, program: Program) -> Self {
        Self { program, ..self }
    }

    /// The words of the client.
    fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["-T".into()];
        for option in [
            // Nothing is asked: whoever has a terminal here is asked other things.
            "BatchMode=yes",
            // Also where the user's settings accept what was never seen, or has changed.
            "StrictHostKeyChecking=yes",
            "VerifyHostKeyDNS=no",
            "NoHostAuthenticationForLocalhost=no",
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "RemoteCommand=none",
            "LogLevel=ERROR",
        ] {
            words.extend(["-o".into(), option.into()]);
        }
        words.extend(self.options.iter().cloned());
        if let Some(port) = self.destination.port() {
            words.extend(["-p".into(), port.to_string().into()]);
        }
        if let Some(user) = self.destination.user() {
            words.extend(["-l".into(), user.into()]);
        }
        words.extend(["--".into(), self.destination.host().into()]);
        words.push(script::command(self.program.digest(), self.program.size(), &self.setup).into());
        words
    }

    /// Refuses a jump by a host whose key would be accepted unseen.
    async fn are_jumps_known(&self) -> Result<(), TransportError> {
        let late = |after: Duration| TransportError::TimedOut {
            what: "reading the client's settings".to_owned(),
            after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
        };
        let (client, options) = (self.client.clone(), self.options.clone());
        let to = Hop {
            user: self.destination.user().map(str::to_owned),
            host: self.destination.host().to_owned(),
            port: self.destination.port(),
        };
        // It may execute what the user's settings name.
        let looking = tokio::task::spawn_blocking(move || {
            jump::trusting(&to, |hop| client::settings(&client, &hop.arguments(&options)))
        });
        let found = timeout(REACHING, looking).await.map_err(|_| late(REACHING))?;
        let Ok(Some(Trusting {
            hop,
            setting,
            value,
            instead,
        })) = found
        else {
            return Ok(());
        };
        Err(TransportError::Refused {
            what: format!(
                "{} is reached by way of `{hop}`, whose key would be accepted unseen: the settings of `ssh` for it have \
                 `{setting} {value}`",
                self.destination
            ),
            instead: Some(format!(
                "set `{setting} {instead}` for `{hop}`, and run `ssh {hop} true` in a terminal once"
            )),
        })
    }

    async fn open(&self) -> Result<Connection, TransportError> {
        self.are_jumps_known().await?;
        let mut client =
            Client::start(&self.client, self.arguments()).map_err(|source| TransportError::NotStarted {
                what: format!("`{}` cannot be started", self.client.display()),
                source,
            })?;
        match self.greet(&mut client).await {
            Ok(()) => Ok(client.connection()),
            Err(Failed::Late { what, after }) => {
                let said = client.kill();
                Err(TransportError::TimedOut {
                    what: match said.as_str() {
                        "" => what.to_owned(),
                        said => format!("{what} (`ssh` said: {said})"),
                    },
                    after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                })
            }
            Err(Failed::Refused(answer, printed)) => {
                let mut end = client.end().await;
                if end.said.is_empty() {
                    // `nologin` and its like tell there why nothing runs.
                    end.said = String::from_utf8_lossy(&printed)
                        .trim()
                        .chars()
                        .take(MOST_TOLD)
                        .collect();
                }
                Err(self.refused(answer, &end))
            }
            Err(Failed::Noise) => {
                let _ = client.kill();
                Err(TransportError::Refused {
                    what: format!(
                        "the login shell of {} prints more than {MOST_NOISE} bytes before it runs a command",
                        self.destination
                    ),
                    instead: Some("have its start-up files print nothing where there is no terminal".to_owned()),
                })
            }
        }
    }

    /// Follows the script until the agent program is about to start.
    async fn greet(&self, client: &mut Client) -> Result<(), Failed> {
        let late = |what, after| move |_| Failed::Late { what, after };
        let first = timeout(REACHING, self.answer(client)).await;
        match first.map_err(late("connecting", REACHING))?? {
            Answer::Start => return Ok(()),
            Answer::Upload => {}
            other => return Err(Failed::Refused(Some(other), Vec::new())),
        }
        for piece in self.program.bytes().chunks(64 * 1024) {
            let written = timeout(STALLING, client.stream().write_all(piece)).await;
            if written.map_err(late("sending the agent program", STALLING))?.is_err() {
                break;
            }
        }
        let second = timeout(CHECKING, self.answer(client)).await;
        match second.map_err(late("checking the agent program", CHECKING))?? {
            Answer::Start => Ok(()),
            other => Err(Failed::Refused(Some(other), Vec::new())),
        }
    }

    /// The script's next word, behind whatever the login shell prints. Reads no byte beyond its line.
    async fn answer(&self, client: &mut Client) -> Result<Answer, Failed> {
        let (mut line, mut read, mut noise) = (Vec::new(), 0, Vec::new());
        loop {
            let byte = match client.stream().read_u8().await {
                Ok(byte) => byte,
                Err(_) => {
                    noise.extend(line);
                    return Err(Failed::Refused(None, noise));
                }
            };
            read += 1;
            if byte == b'\n' {
                if let Some(answer) = Answer::read(&line, self.program.digest()) {
                    return Ok(answer);
                }
                noise.append(&mut line);
                noise.push(b'\n');
            } else {
                line.push(byte);
            }
            if read > MOST_NOISE {
                return Err(Failed::Noise);
            }
        }
    }

    /// What is said where the script, or what leads to it, has refused.
    fn refused(&self, answer: Option<Answer>, end: &ClientEnd) -> TransportError {
        let (to, said) = (&self.destination, end.said.as_str());
        let because = |said: &str| match said {
            "" => String::new(),
            said => format!(": {said}"),
        };
        let (what, instead) = match answer {
            Some(answer) => {
                let (what, instead) = answer.words(&to.to_string());
                (format!("{what}{}", because(said)), Some(instead))
            }
            // The client's own failures have this status.
            None if end.status == Some(255) => (format!("{to} cannot be reached{}", because(said)), {
                Some(self.advice(said))
            }),
            None => (
                format!(
                    "the command on {to} ended before it began ({}){}",
                    end.status
                        .map_or_else(|| "by a signal".to_owned(), |code| format!("status {code}")),
                    because(said)
                ),
                Some(format!("see whether `{} true` works and prints nothing", to.command())),
            ),
        };
        TransportError::Refused { what, instead }
    }

    /// What can be done where the client has failed, by what it says.
    fn advice(&self, said: &str) -> String {
        let command = self.destination.command();
        if said.contains("HOST IDENTIFICATION HAS CHANGED") {
            "its host key is another one than before: find out why before you do anything; if that is right, remove \
             the old one with `ssh-keygen -R`"
                .to_owned()
        } else if said.contains("Host key verification failed") || said.contains("host key is known") {
            format!("run `{command} true` in a terminal once, and compare the key that it shows before you say yes")
        } else if said.contains("Permission denied") || said.contains("Too many authentication failures") {
            format!(
                "`{command} true` has to work without a question: load a key with `ssh-add`, and see whether the \
                 user is right"
            )
        } else {
            format!("see whether `{command} true` works")
        }
    }
}

impl Transport for Ssh {
    fn name(&self) -> &str {
        "ssh"
    }

    fn connect(&self) -> Later<'_, Result<Connection, TransportError>> {
        Box::pin(self.open())
    }
}

/// Why the agent program does not start.
enum Failed {
    /// Something took too long.
    Late { what: &'static str, after: Duration },
    /// The script said so, or ended; with what was printed before its words.
    Refused(Option<Answer>, Vec<u8>),
    /// The login shell prints without an end.
    Noise,
}
