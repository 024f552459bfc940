//! Running a text of the corpora: in a sandbox, always, with nobody who reads or judges it first.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use shieling::environment::{Environment as _, Restrictions, Sandbox, Shell};
use shieling::policy::Policy;
use shieling::process::{End, Finished, Limits, run_to_end};
use shieling::request::Command;
use shieling::units::ByteCount;
use shieling_testkit::{Marker, approved};

use crate::place::{DATES, Place};

/// How long a text has.
const DEADLINE: Duration = Duration::from_secs(3);

/// What a text wrote, and what it left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) output: Vec<u8>,
    /// Whether it came to its own end, with whatever status or signal.
    pub(crate) ended_itself: bool,
    pub(crate) survivors: u32,
}

/// A sandbox at a place, and the variables that its commands have.
pub(crate) struct Cell {
    sandbox: Sandbox,
    runtime: tokio::runtime::Runtime,
    variables: BTreeMap<String, String>,
    marker: Marker,
    workspace: PathBuf,
}

impl Cell {
    /// One without network and home, with 256 MiB and 64 processes, that enforces what of the policy can be.
    pub(crate) fn new(place: &Place, set: &[(&str, &str)], policy: &Policy) -> Self {
        let workspace = place.workspace();
        let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
        let path = format!(
            "{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            place.tools().display()
        );
        let mut restrictions = Restrictions::new(&workspace, shell.program());
        restrictions.path.clone_from(&path);
        restrictions.home = Some(place.home());
        restrictions.read = vec![place.tools()];
        restrictions.limits.memory = Some(256 << 20);
        restrictions.limits.pids = Some(64);
        // What is protected is another matter: here a workspace is writable as a whole, or not at all.
        restrictions.open_protected = true;
        let sandbox = Sandbox::new(restrictions, shell);
        let asked = shieling::enforcement_of(policy, &workspace);
        sandbox.enforce(&asked).expect("it serves no other policy");
        let marker = Marker::new();
        let home = place.home().display().to_string();
        let marks = workspace.display().to_string();
        let own = [
            ("PATH", path.as_str()),
            ("HOME", &home),
            ("MARKS", &marks),
            ("TERM", "dumb"),
            ("LC_ALL", "C.UTF-8"),
        ];
        let variables = own.iter().chain(&DATES).chain(set);
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self {
            variables: variables.chain([marker.variable()]).collect(),
            sandbox,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            marker,
            workspace,
        }
    }

    /// Runs a text.
    ///
    /// # Errors
    /// Why it is no command at all, or could not be started.
    pub(crate) fn run(&self, text: &str) -> Result<Ran, String> {
        let command = Command::new(text, &self.workspace)
            .map_err(|error| error.to_string())?
            .with_variables(self.variables.clone())
            .with_grace(Duration::from_millis(50))
            .with_file_size(Some(ByteCount::mib(16)))
            .with_output_kept(ByteCount::mib(1))
            .and_then(|command| command.with_deadline(DEADLINE))
            .map_err(|error| error.to_string())?;
        let limits = Limits::of(&command);
        let finished: Finished = self.runtime.block_on(async {
            let process = self
                .sandbox
                .spawn(approved(command), shieling::process::Streams::Output)
                .await
                .map_err(|error| {
                    let mut text = error.to_string();
                    let mut cause = std::error::Error::source(&error);
                    while let Some(deeper) = cause {
                        text = format!("{text}: {deeper}");
                        cause = deeper.source();
                    }
                    text
                })?;
            Ok::<_, String>(run_to_end(process, &limits, None, None).await)
        })?;
        let output = format!("{}\n--\n{}", finished.stdout.text(), finished.stderr.text());
        Ok(Ran {
            // Each sandbox has a mark of its own, which a text may print.
            output: output.replace(self.marker.text(), "MARK").into_bytes(),
            ended_itself: matches!(finished.end, End::Exited(_) | End::Signalled(_)),
            survivors: finished.survivors,
        })
    }

    /// Ends the sandbox; the processes of it that are left.
    pub(crate) fn close(self) -> Vec<u32> {
        self.runtime.block_on(self.sandbox.close());
        shieling_testkit::leftovers(&self.marker)
    }
}
