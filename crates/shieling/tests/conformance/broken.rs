//! Environments that are broken on purpose, and the cases that find it.

use std::future::pending;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use shieling::approval::Approved;
use shieling::environment::{
    Ability, AtEnd, Capabilities, EnforceError, Enforced, Enforcement, Environment, Files, JailLimits, Later, Limit,
    Local, Network,
};
use shieling::outcome::Confinement;
use shieling::process::{Process, SessionShell, SpawnError, Streams};
use shieling::request::Command;
use shieling_testkit::conformance::{EnvironmentFactory, Requirements, Suite, TestEnvironment, Unmet};
use shieling_testkit::{Marker, approved, leftovers};

use super::naive;
use super::support::Locals;

/// The variable that marks what a broken environment leaves behind, so that this test can end it.
const MARK: &str = "SHIELING_BROKEN_MARK";

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    Nothing,
    LosesErrors,
    MixesStreams,
    SwallowsCodes,
    TellsSignalsAsCodes,
    AddsNewlines,
    StartsElsewhere,
    LeaksVariables,
    DropsVariables,
    InheritsInput,
    LeavesChildren,
    IgnoresDirectories,
    ClaimsReadonly,
    ClaimsHiding,
    ClaimsNoNetwork,
    ClaimsMemory,
    DeniesTerminals,
    ClaimsTerminals,
    ClaimsSessions,
    ForgetsSessions,
    IgnoresFileSize,
    ChangesItsMind,
    NeverCloses,
    Naive,
}

/// A good environment with a flaw.
struct Broken {
    good: Local,
    flaw: Flaw,
    workspace: PathBuf,
    started: std::sync::atomic::AtomicBool,
    kept: std::sync::Mutex<Vec<OwnedFd>>,
}

impl Broken {
    /// The command, as this environment spoils it.
    fn spoilt(&self, command: Approved<Command>) -> Approved<Command> {
        let text = |before: &str| {
            let command = command.request();
            let mut variables = command.variables().clone();
            match self.flaw {
                Flaw::LeaksVariables => drop(variables.insert("API_KEY".to_owned(), "leaked".to_owned())),
                Flaw::DropsVariables => drop(variables.remove("CONFORMANCE")),
                _ => {}
            }
            let cwd = if self.flaw == Flaw::IgnoresDirectories {
                &self.workspace
            } else {
                command.cwd()
            };
            let spoilt = Command::new(format!("{before}{}", command.text()), cwd).expect("a good command");
            approved(
                spoilt
                    .with_variables(variables)
                    .with_file_size(command.file_size().filter(|_| self.flaw != Flaw::IgnoresFileSize)),
            )
        };
        match self.flaw {
            Flaw::LosesErrors => text("exec 2>/dev/null\n"),
            Flaw::MixesStreams => text("exec 2>&1\n"),
            Flaw::SwallowsCodes => text("trap 'exit 0' EXIT\n"),
            Flaw::TellsSignalsAsCodes => text("trap 'exit 143' TERM\n"),
            Flaw::AddsNewlines => text("trap echo EXIT\n"),
            Flaw::StartsElsewhere => text("cd /\n"),
            Flaw::LeaksVariables | Flaw::DropsVariables | Flaw::IgnoresDirectories | Flaw::IgnoresFileSize => text(""),
            _ => command,
        }
    }
}

impl Environment for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn capabilities(&self) -> Capabilities {
        let mut can = self.good.capabilities();
        match self.flaw {
            Flaw::ClaimsNoNetwork => drop(can.networks.insert(Network::None)),
            Flaw::ClaimsMemory => drop(can.limits.insert(Limit::Memory)),
            Flaw::DeniesTerminals => drop(can.abilities.remove(&Ability::Terminals)),
            Flaw::ChangesItsMind if self.started.load(std::sync::atomic::Ordering::Relaxed) => can.networks.clear(),
            _ => {}
        }
        can
    }

    fn enforce(&self, asked: &Enforcement) -> Result<Enforced, EnforceError> {
        let mut enforced = self.good.enforce(asked)?;
        match self.flaw {
            Flaw::ClaimsReadonly => enforced.readonly = true,
            Flaw::ClaimsHiding => enforced.hidden = true,
            _ => {}
        }
        Ok(enforced)
    }

    fn confinement(&self) -> Confinement {
        self.good.confinement()
    }

    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>> {
        self.started.store(true, std::sync::atomic::Ordering::Relaxed);
        Box::pin(async move {
            let command = self.spoilt(command);
            let streams = match (self.flaw, streams) {
                (Flaw::Naive, _) => return naive::spawn(command.request()),
                (Flaw::ClaimsTerminals, Streams::Terminal(_)) => Streams::Output,
                (Flaw::InheritsInput, Streams::Output) => {
                    let (theirs, ours) = rustix::pipe::pipe().expect("a pipe");
                    self.kept.lock().expect("nobody panics with it").push(ours);
                    Streams::Given(theirs)
                }
                (_, streams) => streams,
            };
            if self.flaw == Flaw::LeavesChildren {
                naive::spawn_silent("sleep 60", command.request());
            }
            self.good.spawn(command, streams).await
        })
    }

    fn open_shell<'a>(&'a self, first: &'a Approved<Command>) -> Later<'a, Result<Box<dyn SessionShell>, SpawnError>> {
        if self.flaw == Flaw::ClaimsSessions {
            return Box::pin(async {
                Err(SpawnError::Session {
                    why: "never".to_owned(),
                })
            });
        }
        self.good.open_shell(first)
    }

    fn shells(&self) -> usize {
        if self.flaw == Flaw::ForgetsSessions {
            1
        } else {
            self.good.shells()
        }
    }

    fn syntax_check<'a>(&'a self, command: &'a Command) -> Later<'a, Option<(i32, String)>> {
        self.good.syntax_check(command)
    }

    fn before<'a>(&'a self, next: &'a Approved<Command>) -> Later<'a, Result<Option<AtEnd>, SpawnError>> {
        self.good.before(next)
    }

    fn files(&self) -> Later<'_, Result<Arc<dyn Files>, SpawnError>> {
        self.good.files()
    }

    fn close(&self) -> Later<'_, ()> {
        if self.flaw == Flaw::NeverCloses {
            return Box::pin(pending());
        }
        self.good.close()
    }
}

/// Makes broken environments, and ends what they leave.
struct Breaker {
    flaw: Flaw,
    marker: Marker,
}

impl EnvironmentFactory for Breaker {
    fn name(&self) -> String {
        format!("broken: {:?}", self.flaw)
    }

    fn make<'a>(&'a self, wishes: &'a Requirements) -> Later<'a, Result<TestEnvironment, Unmet>> {
        Box::pin(async move {
            let mut wishes = wishes.clone();
            if matches!(self.flaw, Flaw::ClaimsNoNetwork | Flaw::ClaimsMemory) {
                (wishes.network, wishes.limits) = (None, JailLimits::default());
            }
            let flaw = self.flaw;
            let make = move |good, workspace: &Path| -> Arc<dyn Environment> {
                Arc::new(Broken {
                    good,
                    flaw,
                    workspace: workspace.to_path_buf(),
                    started: std::sync::atomic::AtomicBool::new(false),
                    kept: std::sync::Mutex::default(),
                })
            };
            let mut place = Locals::new("local", make).make(&wishes).await?;
            place.variables.insert(MARK.to_owned(), self.marker.text().to_owned());
            Ok(place)
        })
    }
}

impl Drop for Breaker {
    fn drop(&mut self) {
        for pid in leftovers(&self.marker) {
            if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
                // It may have ended by itself.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Each flaw, and cases that must find it.
const FOUND: &[(Flaw, &[&str])] = &[
    (
        Flaw::LosesErrors,
        &[
            "standard output and standard error are apart",
            "a program that is not there is 127, and told",
        ],
    ),
    (
        Flaw::MixesStreams,
        &[
            "standard output and standard error are apart",
            "what is written to standard error alone is there",
        ],
    ),
    (
        Flaw::SwallowsCodes,
        &[
            "each exit code is told as it is",
            "a text that cannot be read runs nothing, and fails",
        ],
    ),
    (
        Flaw::TellsSignalsAsCodes,
        &["a signal is told as a signal, and as 128 and its number"],
    ),
    (Flaw::AddsNewlines, &["no newline is added, and none is taken"]),
    (
        Flaw::StartsElsewhere,
        &["a command starts in the workspace, whose path has no link in it"],
    ),
    (
        Flaw::IgnoresDirectories,
        &[
            "a command starts in the directory that it is given",
            "a directory that is not there is told, and nothing runs elsewhere",
        ],
    ),
    (
        Flaw::LeaksVariables,
        &["a command has no variable that it is not given"],
    ),
    (Flaw::DropsVariables, &["a command has the variables that it is given"]),
    (
        Flaw::InheritsInput,
        &[
            "a builtin that reads is at the end of the input",
            "a program that reads is at the end of the input",
        ],
    ),
    (
        Flaw::LeavesChildren,
        &[
            "children end at the deadline",
            "a call that is given up ends its processes",
            "many short commands leave nothing behind",
        ],
    ),
    (
        Flaw::ClaimsReadonly,
        &["a program that changes something changes nothing, where that is declared"],
    ),
    (
        Flaw::ClaimsHiding,
        &["a command that walks the tree finds nothing of what is hidden"],
    ),
    (
        Flaw::ClaimsNoNetwork,
        &["without a network nothing of this host is reached"],
    ),
    (Flaw::ClaimsMemory, &["limits that are not declared are refused"]),
    (Flaw::DeniesTerminals, &["terminals are as declared"]),
    (Flaw::ClaimsTerminals, &["terminals are as declared"]),
    (
        Flaw::ClaimsSessions,
        &[
            "sessions are as declared",
            "an environment without sessions says so itself",
            "variables stay",
        ],
    ),
    (Flaw::ForgetsSessions, &["sessions are apart"]),
    (
        Flaw::IgnoresFileSize,
        &["no file becomes larger than a command may write"],
    ),
    (
        Flaw::ChangesItsMind,
        &["an environment says what it can the same way each time"],
    ),
    (
        Flaw::NeverCloses,
        &[
            "a command that succeeds exits with 0",
            "the end may come twice, and at once",
        ],
    ),
    (
        Flaw::Naive,
        &[
            "a child in a session of its own ends at the deadline",
            "what hides from its group ends with the command",
            "what is left is counted",
            "a call that is given up does not go on",
            "a call that is given up ends its processes",
            "twenty commands that leave processes behind leave none",
            "terminals are as declared",
        ],
    ),
];

async fn failures(flaw: Flaw, cases: &[&str]) -> Vec<String> {
    let maker = Arc::new(Breaker {
        flaw,
        marker: Marker::new(),
    });
    let suite = cases.iter().fold(Suite::new(), |suite, case| suite.only(*case));
    let report = suite.timeout(Duration::from_secs(6)).run(maker).await;
    assert!(report.lines().len() >= cases.len(), "{report}");
    report.failed().map(|(line, _)| line.name.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_flaw_is_found_by_the_cases_that_are_about_it() {
    let room = Arc::new(tokio::sync::Semaphore::new(4));
    let mut tasks = tokio::task::JoinSet::new();
    for (flaw, cases) in FOUND {
        let room = Arc::clone(&room);
        tasks.spawn(async move {
            let _turn = room.acquire_owned().await;
            (flaw, cases, failures(*flaw, cases).await)
        });
    }
    let mut missed = Vec::new();
    for (flaw, cases, found) in tasks.join_all().await {
        let unseen = cases.iter().filter(|case| !found.iter().any(|name| name == *case));
        missed.extend(unseen.map(|case| format!("{flaw:?} passes `{case}`")));
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The same wrapper without a flaw: it is the flaw that is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_flaw_the_same_cases_hold() {
    let mut cases: Vec<_> = FOUND.iter().flat_map(|(_, cases)| cases.iter().copied()).collect();
    cases.sort_unstable();
    cases.dedup();
    let maker = Arc::new(Breaker {
        flaw: Flaw::Nothing,
        marker: Marker::new(),
    });
    let suite = cases.iter().fold(Suite::new(), |suite, case| suite.only(*case));
    let report = suite.run(maker).await;
    report.assert_passed();
}
