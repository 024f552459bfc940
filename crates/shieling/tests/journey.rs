//! The façade: one command's whole journey, what is recorded of it, and what happens when a stage
//! says no.
#![expect(clippy::disallowed_methods, reason = "a test looks at its own workspace")]

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use shieling::approval::{Answer, Mode, Scope};
use shieling::audit::{self, RecordKind};
use shieling::environment::{Local, Shell};
use shieling::outcome::{Layer, Outcome, Status};
use shieling::policy::{Decision, Policy};
use shieling::request::Command;
use shieling::{Builder, Shieling};
use shieling_testkit::{FailingSink, FakeClock, Marker, RecordingSink, ScriptedApprover, Workspace, leftovers};

fn builder(workspace: &Workspace, policy: Policy) -> Builder {
    let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
    Shieling::builder(Arc::new(Local::new(shell)), policy, workspace.root())
}

fn open(workspace: &Workspace) -> Builder {
    builder(workspace, Policy::open()).approval(Mode::OnAsk)
}

fn readonly(workspace: &Workspace) -> Builder {
    builder(workspace, Policy::open().with_readonly()).approval(Mode::OnAsk)
}

fn command(workspace: &Workspace, text: &str) -> Command {
    let path = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    Command::new(text, workspace.root())
        .expect("a command")
        .with_variables(path)
}

async fn run(shieling: &Shieling, workspace: &Workspace, text: &str) -> Outcome {
    shieling.run(command(workspace, text), None).await
}

#[tokio::test]
async fn a_command_that_is_allowed_runs_and_leaves_an_intent_and_an_outcome() {
    let (workspace, log) = (Workspace::new(), RecordingSink::new());
    let shieling = open(&workspace)
        .audit(log.clone())
        .build()
        .expect("it serves no other policy");
    let outcome = run(&shieling, &workspace, "echo out; echo err >&2; exit 3").await;
    assert_eq!(
        (outcome.status, outcome.exit_code),
        (Status::Exited, Some(3)),
        "{outcome:?}"
    );
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!(
        (outcome.environment.as_str(), outcome.cwd.as_path()),
        ("local", workspace.root())
    );
    assert_eq!((outcome.denial, outcome.error, outcome.survivors), (None, None, 0));

    let records = log.records();
    assert_eq!(log.kinds(), [RecordKind::Intent, RecordKind::Outcome]);
    assert_eq!(records[0].run, records[1].run);
    assert_eq!(records[0].outcome, None);
    let ended = records[1].outcome.as_ref().expect("an outcome");
    assert_eq!(
        (ended.status, ended.exit_code, ended.stdout_bytes),
        (Status::Exited, Some(3), 4)
    );
    assert_eq!(records[1].grant.as_ref().expect("whose yes").basis, "policy");
    assert!(records[0].monotonic_ms <= records[1].monotonic_ms);
}

#[tokio::test]
async fn ends_by_signals_and_at_the_deadline_are_told_as_the_contract_says() {
    let workspace = Workspace::new();
    let shieling = open(&workspace).build().expect("it serves no other policy");
    let killed = run(&shieling, &workspace, "kill -TERM $$").await;
    assert_eq!(
        (killed.status, killed.exit_code, killed.signal),
        (Status::Signalled, Some(143), Some(15))
    );
    let slow = command(&workspace, "echo kept; sleep 60")
        .with_deadline(Duration::from_millis(100))
        .expect("some time");
    let slow = shieling.run(slow, None).await;
    assert_eq!(
        (slow.status, slow.exit_code, slow.signal),
        (Status::TimedOut, Some(124), None)
    );
    assert_eq!(slow.stdout, "kept\n");
}

#[tokio::test]
async fn what_the_policy_denies_does_not_start_and_is_recorded() {
    let (workspace, log) = (Workspace::new().with("file", "content"), RecordingSink::new());
    let approver = ScriptedApprover::new([Answer::Yes(Scope::Once)]);
    let shieling = readonly(&workspace)
        .approver(approver.clone())
        .audit(log.clone())
        .build()
        .expect("it serves no other policy");
    let outcome = run(&shieling, &workspace, "rm file").await;
    assert_eq!((outcome.status, outcome.exit_code), (Status::Denied, None));
    let denial = outcome.denial.expect("denied");
    assert_eq!((denial.layer, denial.decision), (Layer::Policy, Decision::Deny));
    assert_eq!(denial.reasons[0].rule, "readonly");
    assert!(workspace.path("file").exists());
    assert!(approver.asked().is_empty(), "a denied command is not asked about");
    assert_eq!(log.kinds(), [RecordKind::Denied]);
    assert_eq!(
        log.records()[0].verdict.as_ref().expect("judged").decision,
        Decision::Deny
    );
}

#[tokio::test]
async fn a_yes_starts_the_command_and_stands_in_the_log_before_its_outcome() {
    let (workspace, log) = (Workspace::new().with("x.sh", "echo ran"), RecordingSink::new());
    let approver = ScriptedApprover::new([Answer::Yes(Scope::Once)]);
    let shieling = readonly(&workspace)
        .approver(approver)
        .audit(log.clone())
        .build()
        .expect("it serves no other policy");
    let outcome = run(&shieling, &workspace, "bash x.sh").await;
    assert_eq!(outcome.stdout, "ran\n", "{outcome:?}");
    assert_eq!(
        log.kinds(),
        [RecordKind::Intent, RecordKind::Approved, RecordKind::Outcome]
    );
    let grant = log.records()[1].grant.clone().expect("the yes");
    assert_eq!(grant.basis, "answer");
    assert_eq!(grant.files[0].path, workspace.path("x.sh").display().to_string());
}

#[tokio::test]
async fn no_yes_is_a_refusal_that_says_whether_somebody_said_no() {
    let workspace = Workspace::new();
    let cases = [
        (
            Mode::OnAsk,
            vec![Answer::No("not today".to_owned())],
            Status::Denied,
            Decision::Deny,
            "the approver said no: not today",
        ),
        (
            Mode::OnAsk,
            vec![],
            Status::NeedsApproval,
            Decision::Ask,
            "it needs a yes, and nobody answered",
        ),
        (
            Mode::Never,
            vec![],
            Status::NeedsApproval,
            Decision::Ask,
            "it needs a yes, and nobody is to be asked here",
        ),
    ];
    for (mode, answers, status, decision, because) in cases {
        let log = RecordingSink::new();
        let shieling = readonly(&workspace)
            .approval(mode)
            .approver(ScriptedApprover::new(answers))
            .audit(log.clone())
            .build()
            .expect("it serves no other policy");
        let outcome = run(&shieling, &workspace, "python3 -c 1").await;
        assert_eq!(outcome.status, status, "{because}");
        let denial = outcome.denial.expect("refused");
        assert_eq!(
            (denial.layer, denial.decision),
            (Layer::Approval, decision),
            "{because}"
        );
        assert_eq!(
            denial.reasons[0].rule, "readonly",
            "the policy's own reasons come first"
        );
        assert_eq!(denial.reasons.last().expect("a reason").because, because);
        assert_eq!(log.kinds(), [RecordKind::Intent, RecordKind::Denied]);
    }
}

#[tokio::test]
async fn a_script_that_is_changed_while_the_person_reads_it_is_asked_about_again() {
    let workspace = Arc::new(Workspace::new().with("x.sh", "echo harmless"));
    let answers = [
        Answer::Yes(Scope::Once),
        Answer::No("that is another script".to_owned()),
    ];
    let changing = workspace.clone();
    let approver = ScriptedApprover::with_meanwhile(answers, move || changing.write("x.sh", "echo evil"));
    let shieling = readonly(&workspace)
        .approver(approver.clone())
        .build()
        .expect("it serves no other policy");
    let outcome = run(&shieling, &workspace, "bash x.sh").await;
    assert_eq!(outcome.status, Status::Denied);
    assert_eq!(approver.asked()[1].changed, [workspace.path("x.sh")]);
}

#[tokio::test]
async fn where_nothing_is_enforced_every_command_is_asked_about_unless_told_otherwise() {
    let workspace = Workspace::new();
    let shieling = builder(&workspace, Policy::open())
        .build()
        .expect("it serves no other policy");
    let outcome = run(&shieling, &workspace, "true").await;
    assert_eq!(outcome.status, Status::NeedsApproval);
}

#[tokio::test]
async fn the_rate_limit_counts_refused_and_timed_out_commands_and_tells_the_wait() {
    let (workspace, log, clock) = (Workspace::new(), RecordingSink::new(), FakeClock::new());
    let limit = "3/10".parse().expect("a limit");
    let shieling = readonly(&workspace)
        .rate(limit)
        .clock(clock.clone())
        .audit(log.clone())
        .build()
        .expect("it serves no other policy");
    assert_eq!(run(&shieling, &workspace, "rm x").await.status, Status::Denied);
    let slow = command(&workspace, "sleep 9")
        .with_deadline(Duration::from_millis(20))
        .expect("some time");
    assert_eq!(shieling.run(slow, None).await.status, Status::TimedOut);
    assert_eq!(
        run(&shieling, &workspace, "python3 -c 1").await.status,
        Status::NeedsApproval
    );
    clock.advance(Duration::from_secs(4));
    let outcome = run(&shieling, &workspace, "true").await;
    assert_eq!(outcome.status, Status::RateLimited);
    let denial = outcome.denial.expect("too soon");
    assert_eq!((denial.layer, denial.retry_after_ms), (Layer::Rate, Some(6_000)));
    assert_eq!(denial.reasons[0].rule, "rate 3/10");
    assert_eq!(log.kinds().last(), Some(&RecordKind::Denied));
    clock.advance(Duration::from_secs(6));
    assert_eq!(run(&shieling, &workspace, "true").await.status, Status::Exited);
}

#[tokio::test]
async fn nothing_starts_if_the_log_takes_no_intent_or_no_yes() {
    for kind in [RecordKind::Intent, RecordKind::Approved] {
        let workspace = Workspace::new();
        let approver = ScriptedApprover::new([Answer::Yes(Scope::Once)]);
        let shieling = open(&workspace)
            .approval(Mode::Always)
            .approver(approver)
            .audit(Arc::new(FailingSink(kind)))
            .build()
            .expect("it serves no other policy");
        let outcome = run(&shieling, &workspace, "touch made").await;
        assert_eq!((outcome.status, outcome.exit_code), (Status::Failed, None));
        assert_eq!(outcome.error.as_deref(), Some("the disk is full"));
        assert!(!workspace.path("made").exists(), "{kind:?}");
    }
}

#[tokio::test]
async fn an_end_that_could_not_be_recorded_is_told_beside_the_true_outcome() {
    let workspace = Workspace::new();
    let shieling = open(&workspace)
        .audit(Arc::new(FailingSink(RecordKind::Outcome)))
        .build()
        .expect("it serves no other policy");
    let outcome = run(&shieling, &workspace, "exit 5").await;
    assert_eq!((outcome.status, outcome.exit_code), (Status::Exited, Some(5)));
    assert!(outcome.error.expect("told").contains("could not be recorded"));
    let shieling = readonly(&workspace)
        .audit(Arc::new(FailingSink(RecordKind::Denied)))
        .build()
        .expect("it serves no other policy");
    let outcome = run(&shieling, &workspace, "rm x").await;
    assert_eq!(outcome.status, Status::Denied);
    assert!(outcome.error.expect("told").contains("could not be recorded"));
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_failed_with_the_cause() {
    let (workspace, log) = (Workspace::new(), RecordingSink::new());
    let shieling = open(&workspace)
        .audit(log.clone())
        .build()
        .expect("it serves no other policy");
    let nowhere = Command::new("true", workspace.path("nowhere")).expect("a command");
    let outcome = shieling.run(nowhere, None).await;
    assert_eq!((outcome.status, outcome.exit_code), (Status::Failed, None));
    let error = outcome.error.expect("the cause");
    assert!(error.contains("nowhere") && error.contains("No such file"), "{error}");
    assert_eq!(log.kinds(), [RecordKind::Intent, RecordKind::Outcome]);
}

#[tokio::test]
async fn a_caller_who_goes_away_leaves_no_process_and_an_outcome_in_the_log() {
    let (workspace, log, marker) = (Workspace::new(), RecordingSink::new(), Marker::new());
    let shieling = open(&workspace)
        .audit(log.clone())
        .build()
        .expect("it serves no other policy");
    let (name, value) = marker.variable();
    let text = format!("export {name}={value}; touch started; setsid sleep 60 & sleep 60");
    let running = run(&shieling, &workspace, &text);
    let started = async {
        while !workspace.path("started").exists() || leftovers(&marker).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        outcome = running => panic!("it runs a minute: {outcome:?}"),
        () = started => {}
    }
    assert_eq!(log.kinds(), [RecordKind::Intent, RecordKind::Outcome]);
    let ended = log.records()[1].outcome.clone().expect("an outcome");
    assert_eq!(ended.status, Status::Lost);
    assert!(ended.error.expect("why").contains("the caller went away"));
    let started = std::time::Instant::now();
    while !leftovers(&marker).is_empty() {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "left behind: {:?}",
            leftovers(&marker)
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_caller_who_goes_away_during_the_question_starts_nothing_and_is_recorded() {
    struct Silent;
    impl shieling::approval::Approver for Silent {
        fn ask<'a>(&'a self, _: &'a shieling::approval::Question) -> shieling::approval::AnswerFuture<'a> {
            Box::pin(std::future::pending())
        }
    }
    let (workspace, log) = (Workspace::new(), RecordingSink::new());
    let shieling = open(&workspace)
        .approval(Mode::Always)
        .approver(Arc::new(Silent))
        .audit(log.clone())
        .build()
        .expect("it serves no other policy");
    let running = run(&shieling, &workspace, "touch made");
    tokio::time::timeout(Duration::from_millis(20), running)
        .await
        .expect_err("nobody answers");
    assert_eq!(log.kinds(), [RecordKind::Intent, RecordKind::Outcome]);
    assert_eq!(
        log.records()[1].outcome.as_ref().expect("an outcome").status,
        Status::Failed
    );
    assert!(!workspace.path("made").exists());
}

#[tokio::test]
async fn a_yes_that_comes_after_the_close_starts_nothing() {
    /// Says yes once all is closed.
    struct Late(tokio::sync::Notify, tokio::sync::Notify);
    impl shieling::approval::Approver for Late {
        fn ask<'a>(&'a self, _: &'a shieling::approval::Question) -> shieling::approval::AnswerFuture<'a> {
            Box::pin(async {
                self.0.notify_one();
                self.1.notified().await;
                shieling::approval::Answer::Yes(shieling::approval::Scope::Once)
            })
        }
    }
    let workspace = Workspace::new();
    let late = Arc::new(Late(tokio::sync::Notify::new(), tokio::sync::Notify::new()));
    let shieling = open(&workspace)
        .approval(Mode::Always)
        .approver(Arc::clone(&late) as Arc<dyn shieling::approval::Approver>)
        .build()
        .expect("it serves no other policy");
    let closing = async {
        late.0.notified().await;
        shieling.close().await;
        late.1.notify_one();
    };
    let (outcome, ()) = tokio::join!(run(&shieling, &workspace, "touch made"), closing);
    assert_eq!(outcome.status, Status::Denied, "{outcome:?}");
    assert_eq!(outcome.denial.expect("it says why").reasons[0].rule, "closed");
    assert!(!workspace.path("made").exists());
}

#[tokio::test]
async fn a_log_in_a_file_holds_every_run_of_many_at_once() {
    let (workspace, place) = (Workspace::new(), Workspace::new());
    let file = audit::LogFile::open(place.path("audit.jsonl"), audit::LogSettings::default()).expect("a new log");
    let shieling = open(&workspace)
        .audit(Arc::new(file))
        .build()
        .expect("it serves no other policy");
    let runs = (0..6)
        .map(|index| run(&shieling, &workspace, if index % 2 == 0 { "true" } else { "false" }))
        .collect::<Vec<_>>();
    for outcome in join(runs).await {
        assert_eq!(outcome.status, Status::Exited);
    }
    let summary = audit::verify(&place.path("audit.jsonl"), None).expect("whole");
    assert_eq!(summary.records, 12);
    let text = fs::read_to_string(place.path("audit.jsonl")).expect("the log");
    let mut runs: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["run"].to_string())
        .collect();
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), 6);
}

/// Drives all of them at once, to their ends.
async fn join<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(move |cx| {
        for (future, done) in running.iter_mut().filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(value) = future.as_mut().poll(cx) {
                *done = Some(value);
            }
        }
        if running.iter().all(|(_, done)| done.is_some()) {
            std::task::Poll::Ready(running.iter_mut().filter_map(|(_, done)| done.take()).collect())
        } else {
            std::task::Poll::Pending
        }
    })
    .await
}

#[test]
fn a_run_can_be_moved_to_another_thread() {
    fn is_send<T: Send>(_: T) {}
    let workspace = Workspace::new();
    let shieling = open(&workspace).build().expect("it serves no other policy");
    is_send(shieling.run(command(&workspace, "true"), None));
}
