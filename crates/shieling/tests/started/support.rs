//! A façade over an environment, and short ways to start things in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::approval::Mode;
use shieling::environment::{Environment, Local, Restrictions, Sandbox, Shell};
use shieling::outcome::Outcome;
use shieling::policy::Policy;
use shieling::process::{Received, Started};
use shieling::request::Command;
use shieling::{Builder, Shieling};
use shieling_testkit::{Marker, Workspace, leftovers};

/// For what comes at once on a machine with nothing else to do.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Where programs run.
#[derive(Debug, Clone, Copy)]
enum In {
    Local,
    Sandbox,
}

/// A place for one test.
pub(crate) struct At {
    pub(crate) shieling: Shieling,
    pub(crate) marker: Marker,
    pub(crate) workspace: Workspace,
}

/// Tries it in each environment that has processes.
pub(crate) async fn everywhere(test: impl AsyncFn(&At)) {
    everywhere_with(Policy::open, |builder| builder, test).await;
}

/// Tries it in each, under this policy, with the façade built so.
pub(crate) async fn everywhere_with(
    policy: impl Fn() -> Policy,
    built: impl Fn(Builder) -> Builder,
    test: impl AsyncFn(&At),
) {
    for place in [In::Local, In::Sandbox] {
        let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
        let workspace = Workspace::new();
        let environment: Arc<dyn Environment> = match place {
            In::Local => Arc::new(Local::new(shell)),
            In::Sandbox => {
                let restrictions = Restrictions::new(workspace.root(), shell.program());
                Arc::new(Sandbox::new(restrictions, shell))
            }
        };
        let builder = Shieling::builder(environment, policy(), workspace.root()).approval(Mode::OnAsk);
        let at = At {
            shieling: built(builder).build().expect("it serves no other policy"),
            marker: Marker::new(),
            workspace,
        };
        test(&at).await;
        at.shieling.close().await;
    }
}

impl At {
    pub(crate) fn command(&self, text: &str) -> Command {
        let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        Command::new(text, self.workspace.root())
            .expect("texts of ours are commands")
            .with_variables(BTreeMap::from([path, self.marker.variable()]))
            .with_grace(Duration::from_millis(200))
    }

    pub(crate) async fn start(&self, text: &str) -> Started {
        self.started(self.command(text)).await
    }

    pub(crate) async fn started(&self, command: Command) -> Started {
        let text = command.text().to_owned();
        let started = self.shieling.start(command).await;
        started.unwrap_or_else(|outcome| panic!("`{text}` does not start: {outcome:?}"))
    }

    pub(crate) async fn refused(&self, text: &str) -> Outcome {
        match self.shieling.start(self.command(text)).await {
            Ok(_) => panic!("`{text}` starts"),
            Err(outcome) => *outcome,
        }
    }

    /// Waits until none of its processes is left.
    pub(crate) async fn nobody_left(&self) {
        eventually("no process is left", || leftovers(&self.marker).is_empty()).await;
    }

    /// None is left at this moment.
    pub(crate) fn nobody_is_left(&self) {
        assert_eq!(leftovers(&self.marker), Vec::<u32>::new());
    }
}

/// Waits until something is so.
pub(crate) async fn eventually(what: &str, so: impl Fn() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < SOON, "not so within 20 s: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Receives so many bytes of standard output.
pub(crate) async fn receive(started: &Started, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < count {
        match started.recv(SOON).await {
            Received::Bytes(bytes) => all.extend(bytes),
            other => panic!("{other:?} after {} of {count} bytes", all.len()),
        }
    }
    all
}

/// Receives standard output to its end.
pub(crate) async fn receive_all(started: &Started) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match started.recv(SOON).await {
            Received::Bytes(bytes) => {
                assert!((1..=65_536).contains(&bytes.len()), "{} bytes at once", bytes.len());
                all.extend(bytes);
            }
            Received::End => return all,
            Received::TimedOut => panic!("no end after {} bytes", all.len()),
        }
    }
}
