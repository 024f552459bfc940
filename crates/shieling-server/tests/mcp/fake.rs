//! A core that remembers what it was asked, and answers by the first word of a command. It asks for
//! approval through the library's own approvals, so that those are tried as they are.

#[path = "fake_files.rs"]
pub(crate) mod files;

use std::collections::BTreeSet;
use std::future::pending;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shieling::approval::{ApprovalContext, Approvals, Mode, Refused};
use shieling::describe::{
    ApprovalSetting, CommandLimits, Description, EnvironmentInfo, Persistence, ShellInfo, ToolName,
};
use shieling::environment::{Ability, Capabilities, Later};
use shieling::files::{FileRequest, FileResponse, FilesError};
use shieling::outcome::{Confinement, Denial, Layer, Outcome, Status};
use shieling::output::SpillTo;
use shieling::policy::{Decision, Facts, Policy, Reason, Span};
use shieling::request::{Command, Digest, Request};
use shieling::session::{
    AskHumanResponse, JobError, JobId, JobInfo, JobInput, JobRequest, Listing, Progress, SessionInfo, SessionName,
    TerminalSize, ViewRequest, ViewResponse, WaitFor,
};
use shieling::units::SystemClock;
use shieling_server::{Core, Elicitation, Workplace};

pub(crate) struct Fake {
    pub(crate) approvals: Approvals,
    /// What was asked, in words.
    pub(crate) asked: Mutex<Vec<String>>,
    /// The commands that began, after all approvals.
    pub(crate) began: AtomicUsize,
    /// The commands whose future was dropped before their end.
    pub(crate) dropped: AtomicUsize,
    pub(crate) closed: AtomicUsize,
    /// What `slow` waits for.
    pub(crate) goes_on: tokio::sync::Notify,
    /// The content of the file that `run` runs.
    pub(crate) file: Mutex<String>,
    pub(crate) spill: Option<SpillTo>,
    pub(crate) broken: bool,
    pub(crate) abilities: BTreeSet<Ability>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self {
            approvals: Approvals::new(Mode::OnAsk, Arc::new(Elicitation), Arc::new(SystemClock)),
            asked: Mutex::default(),
            began: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            goes_on: tokio::sync::Notify::new(),
            file: Mutex::new("1".to_owned()),
            spill: Some(SpillTo::new("/nowhere")),
            broken: false,
            abilities: BTreeSet::from(Ability::ALL),
        }
    }

    pub(crate) fn workplace(self: &Arc<Self>) -> Workplace {
        let broken = self.broken;
        Workplace {
            core: self.clone(),
            template: Command::new("true", "/work").expect("it is one"),
            told: Box::new(|| Box::pin(async { told() })),
            tools: ToolName::defaults(),
            prepare: Box::new(move || {
                Box::pin(async move {
                    if broken {
                        Err("error: the sandbox cannot be started here\nfix      do this".to_owned())
                    } else {
                        Ok(())
                    }
                })
            }),
        }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("not poisoned"))
    }

    fn note(&self, what: String) {
        self.asked.lock().expect("not poisoned").push(what);
    }
}

pub(crate) fn told() -> shieling::EnvironmentFacts {
    shieling::EnvironmentFacts {
        shell: "/bin/bash".into(),
        network: "none".to_owned(),
        hosts: Vec::new(),
        persistence: Persistence::Session,
        policies: Vec::new(),
        memory: None,
        pids: None,
        rate: None,
        os_release: String::new(),
    }
}

pub(crate) fn basis() -> EnvironmentInfo {
    EnvironmentInfo {
        environment: "fake".to_owned(),
        os: "no system".to_owned(),
        kernel: "none".to_owned(),
        shell: ShellInfo {
            path: "/bin/bash".into(),
            version: "5".to_owned(),
        },
        cwd: "/work".into(),
        network: "none".to_owned(),
        hosts: Vec::new(),
        limits: CommandLimits {
            timeout: Duration::from_secs(60),
            output: shieling::units::ByteCount::kib(64),
            memory: None,
            pids: None,
            file_size: None,
            rate: None,
        },
        policies: Vec::new(),
        asking: ApprovalSetting::Policy,
        persistence: Persistence::Session,
        confinement: Confinement::default(),
        places: None,
    }
}

pub(crate) fn outcome(status: Status, stdout: &str) -> Outcome {
    Outcome {
        exit_code: (status == Status::Exited).then_some(0),
        stdout: stdout.to_owned(),
        stdout_bytes: stdout.len() as u64,
        duration_ms: 1.0,
        ..Outcome::blank(status, "/work", "fake")
    }
}

fn view(stdout: &str) -> ViewResponse {
    ViewResponse {
        outcome: Outcome {
            job: Some("j1".to_owned()),
            ..outcome(Status::Running, stdout)
        },
        cursor: 9,
        missed_bytes: 0,
        command: "serve".to_owned(),
        screen: None,
    }
}

/// Counts a future that was dropped before its end.
struct Watch<'a>(&'a AtomicUsize, bool);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Fake {
    async fn shell(&self, session: Option<SessionName>, background: bool, call: JobRequest) -> Outcome {
        let session = session.map(|name| name.to_string());
        let command = &call.command;
        self.note(format!(
            "shell {} in {:?} at {} for {} ms, then {:?}, background {}, terminal {:?}, id {:?}, kept {}",
            command.text(),
            session,
            command.cwd().display(),
            command.deadline().as_millis(),
            call.on_timeout,
            background,
            call.terminal,
            call.id.as_ref().map(ToString::to_string),
            command.output_kept(),
        ));
        let words: Vec<&str> = command.text().split(' ').collect();
        if matches!(words[0], "ask" | "run")
            && let Err(refused) = self.admit(command.clone(), command, session.as_deref()).await
        {
            return refused;
        }
        self.began.fetch_add(1, Ordering::SeqCst);
        let mut watch = Watch(&self.dropped, false);
        let done = match words[0] {
            "hang" => {
                if let Some(progress) = &call.progress {
                    let _ = progress.send(Progress {
                        bytes: 9,
                        line: "step \u{1b}[1m4".to_owned(),
                    });
                }
                pending().await
            }
            "slow" => {
                self.goes_on.notified().await;
                outcome(Status::Exited, "slowly\n")
            }
            "job" => Outcome {
                job: Some("j1".to_owned()),
                ..outcome(Status::Running, "so far\n")
            },
            "fail" => Outcome {
                exit_code: Some(3),
                stderr: "oops\n".to_owned(),
                ..outcome(Status::Exited, "")
            },
            "cut" => Outcome {
                truncated: true,
                output_id: Some("0123456789abcdef0123".to_owned()),
                ..outcome(Status::Exited, "a\n[...]\nb\n")
            },
            "broken" => outcome(Status::Failed, ""),
            "deny" => Outcome {
                denial: Some(denial(Decision::Deny, "no", Layer::Policy)),
                ..outcome(Status::Denied, "")
            },
            _ => outcome(Status::Exited, &format!("{}\n", command.text())),
        };
        watch.1 = true;
        done
    }

    /// Asks about a request, through the library's own approvals, as if the policy had read this command.
    async fn admit<R: Request>(&self, request: R, read: &Command, session: Option<&str>) -> Result<(), Outcome> {
        let policy = Policy::open();
        let mut verdict = policy.judge(read, &Facts::new(Path::new("/work"), Path::new("/work")));
        verdict.decision = Decision::Ask;
        verdict.reasons.push(Reason {
            decision: Decision::Ask,
            rule: "team.toml:1 careful".to_owned(),
            object: request.text().to_owned(),
            span: Some(Span::new(0, 3)),
            because: "somebody should look \u{202e}at it".to_owned(),
            instead: None,
        });
        let case = ApprovalContext {
            verdict: &verdict,
            policy: policy.digest(),
            environment: "fake",
            session,
        };
        let files = |_: &R| {
            let content = self.file.lock().expect("not poisoned").clone();
            vec![("/work/x.sh".into(), Digest::of(content.as_bytes()))]
        };
        match self.approvals.approve(request, &case, files).await {
            Ok(approved) => {
                drop(approved);
                Ok(())
            }
            Err(Refused::SaidNo { because }) => Err(Outcome {
                denial: Some(denial(Decision::Deny, &because, Layer::Approval)),
                ..outcome(Status::Denied, "")
            }),
            Err(no) => {
                let mut denial = denial(Decision::Ask, &no.to_string(), Layer::Approval);
                if let Refused::TooLong { .. } = no {
                    denial.reasons[0].rule = "approval length".to_owned();
                }
                Err(Outcome {
                    denial: Some(denial),
                    ..outcome(Status::NeedsApproval, "")
                })
            }
        }
    }
}

fn denial(decision: Decision, because: &str, layer: Layer) -> Denial {
    Denial {
        layer,
        decision,
        reasons: vec![Reason {
            decision,
            rule: "approval".to_owned(),
            object: "the whole command".to_owned(),
            span: None,
            because: because.to_owned(),
            instead: None,
        }],
        retry_after_ms: None,
    }
}

impl Core for Fake {
    fn run(&self, session: Option<SessionName>, request: JobRequest) -> Later<'_, Outcome> {
        Box::pin(self.shell(session, false, request))
    }

    fn start(&self, session: Option<SessionName>, request: JobRequest) -> Later<'_, Outcome> {
        Box::pin(self.shell(session, true, request))
    }

    fn view(&self, ask: ViewRequest) -> Later<'_, Result<ViewResponse, JobError>> {
        self.note(format!(
            "view {} from {:?} within {:?} until {:?}, screen {}",
            ask.job, ask.cursor, ask.wait, ask.until, ask.screen
        ));
        let seen = ViewResponse {
            missed_bytes: if ask.cursor == Some(1) { 5 } else { 0 },
            ..view("first line\nsecond line\n")
        };
        Box::pin(async move { known(&ask.job).map(|()| seen) })
    }

    fn write<'a>(
        &'a self,
        job: &'a JobId,
        input: JobInput,
        wait: Duration,
    ) -> Later<'a, Result<ViewResponse, JobError>> {
        self.note(format!(
            "write {:?} {:?} enter {} to {job} within {wait:?}",
            input.text, input.keys, input.enter
        ));
        Box::pin(async move {
            known(job)?;
            if input.text == "too late" {
                return Err(JobError::Ended {
                    job: job.clone(),
                    status: Status::TimedOut,
                });
            }
            if input.text == "rm -rf /" {
                return Err(JobError::Refused(Box::new(denial(
                    Decision::Ask,
                    "nobody answered",
                    Layer::Approval,
                ))));
            }
            Ok(view("echoed\n"))
        })
    }

    fn resize(&self, job: &JobId, size: TerminalSize) -> Result<(), JobError> {
        self.note(format!("resize {job} to {size:?}"));
        known(job)
    }

    fn kill<'a>(&'a self, job: &'a JobId) -> Later<'a, Result<ViewResponse, JobError>> {
        self.note(format!("kill {job}"));
        Box::pin(async move {
            known(job).map(|()| ViewResponse {
                outcome: Outcome {
                    signal: Some(15),
                    exit_code: Some(143),
                    ..outcome(Status::Signalled, "")
                },
                ..view("")
            })
        })
    }

    fn wait_for<'a>(
        &'a self,
        job: &'a JobId,
        what: WaitFor,
        budget: Duration,
    ) -> Later<'a, Result<(bool, ViewResponse), JobError>> {
        self.note(format!("wait for {what:?} of {job} within {budget:?}"));
        Box::pin(async move { known(job).map(|()| (what != WaitFor::Exit, view("ready\n"))) })
    }

    fn list(&self) -> Listing {
        Listing {
            sessions: vec![SessionInfo {
                session: "main".parse().expect("a name"),
                cwd: "/work".into(),
                job: None,
                restarts: 0,
                commands: 1,
                recording: None,
            }],
            jobs: vec![JobInfo {
                job: "j1".parse().expect("a name"),
                session: None,
                command: "serve".to_owned(),
                status: Status::Running,
                exit_code: Some(4),
                duration_ms: 1.0,
                output_bytes: 12,
                unseen_bytes: 0,
                terminal: false,
                person: false,
                recording: None,
            }],
        }
    }

    fn ask_human<'a>(
        &'a self,
        prompt: &'a str,
        job: Option<&'a JobId>,
    ) -> Later<'a, Result<AskHumanResponse, JobError>> {
        self.note(format!("ask {prompt:?} about {:?}", job.map(ToString::to_string)));
        Box::pin(async { Ok(AskHumanResponse::Nobody) })
    }

    fn describe<'a>(
        &'a self,
        _: &'a Command,
        _: shieling::EnvironmentFacts,
        _: &'a [ToolName],
    ) -> Later<'a, Description> {
        Box::pin(async { Description::new(basis(), Vec::new(), Vec::new()) })
    }

    fn file(&self, ask: FileRequest) -> Later<'_, Result<FileResponse, FilesError>> {
        Box::pin(self.done(ask))
    }

    fn capabilities(&self) -> Capabilities {
        files::capabilities(self.abilities.clone())
    }

    fn room(&self) -> Option<usize> {
        Some(7)
    }

    fn spill(&self) -> Option<&SpillTo> {
        self.spill.as_ref()
    }

    fn close(&self) -> Later<'_, ()> {
        self.closed.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {})
    }
}

fn known(job: &JobId) -> Result<(), JobError> {
    let one: JobId = "j1".parse().expect("a name");
    if *job == one {
        Ok(())
    } else {
        Err(JobError::Unknown {
            job: job.clone(),
            known: vec![one],
        })
    }
}
