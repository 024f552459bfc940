//! Jobs through the façade: who may type, and what is recorded of it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::entry::blank;
use super::*;
use crate::approval::{Answer, ApprovalContext, Approved, ApproverFn, Question, Scope};
use crate::audit::{self, Record, RecordKind};
use crate::environment::{Capabilities, EnforceError, Enforced, Enforcement, Environment, Later, Local, Shell};
use crate::outcome::{Confinement, Layer, Status};
use crate::policy::Policy;
use crate::process::{Process, SpawnError, Streams};
use crate::session::{Claim, JobSetup};

const LONG: Duration = Duration::from_secs(10);

/// This host under another name, with what it is said to enforce.
struct Called {
    name: &'static str,
    local: Local,
    enforces: bool,
    enforced: Vec<String>,
}

impl Environment for Called {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        self.local.capabilities()
    }

    fn shares_network(&self) -> bool {
        let has_own = self.confinement().enforced.iter().any(|layer| layer == "network");
        self.name != "container" && !has_own
    }

    fn enforce(&self, _: &Enforcement) -> Result<Enforced, EnforceError> {
        Ok(Enforced {
            readonly: self.enforces,
            hidden: self.enforces,
            programs: self.enforces,
        })
    }

    fn confinement(&self) -> Confinement {
        Confinement {
            enforced: self.enforced.clone(),
            missing: Vec::new(),
        }
    }

    fn spawn(&self, command: Approved<Command>, streams: Streams) -> Later<'_, Result<Process, SpawnError>> {
        self.local.spawn(command, streams)
    }

    fn close(&self) -> Later<'_, ()> {
        self.local.close()
    }
}

fn called(name: &'static str, enforces: bool, enforced: &[&str]) -> Arc<Called> {
    Arc::new(Called {
        name,
        local: Local::new(Shell::find(None).expect("there is a shell on every host that runs tests")),
        enforces,
        enforced: enforced.iter().map(|layer| (*layer).to_owned()).collect(),
    })
}

fn local() -> Arc<Called> {
    called("local", false, &[])
}

/// What somebody was asked, in order.
type Asked = Arc<Mutex<Vec<Question>>>;

/// Somebody who answers so, and what they are asked.
fn answering(answer: Answer) -> (Arc<ApproverFn<impl Fn(&Question) -> Answer + Send + Sync>>, Asked) {
    let asked = Asked::default();
    let asking = Arc::clone(&asked);
    let approver = ApproverFn(move |question: &Question| {
        asking.lock().expect("nobody panics").push(question.clone());
        answer.clone()
    });
    (Arc::new(approver), asked)
}

fn texts(asked: &Asked) -> Vec<String> {
    let asked = asked.lock().expect("nobody panics");
    asked.iter().map(|question| question.text.clone()).collect()
}

/// Starts a text as a job, approved by nobody.
async fn start(shieling: &Shieling, text: &str) -> JobId {
    let path = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    let command = Command::new(text, "/tmp").expect("a command").with_variables(path);
    let approvals = crate::approval::Approvals::new(
        Mode::OnAsk,
        Arc::new(crate::approval::NoApprover),
        Arc::new(crate::units::SystemClock),
    );
    let verdict = Verdict {
        decision: Decision::Allow,
        reasons: Vec::new(),
        commands: Vec::new(),
        effects: Vec::new(),
    };
    let case = ApprovalContext {
        verdict: &verdict,
        policy: shieling.policy_digest,
        environment: "test",
        session: None,
    };
    let approved = approvals
        .approve(command.clone(), &case, |_| Vec::new())
        .await
        .expect("it is allowed");
    let mut process = shieling
        .environment
        .spawn(approved, Streams::Input)
        .await
        .expect("it starts");
    let Ok(Claim::Reserved(reservation)) = shieling.jobs.claim(None).await else {
        panic!("there is room");
    };
    let setup = JobSetup {
        id: reservation.id().clone(),
        session: None,
        blank: blank(&command, "local", Confinement::default(), Status::Running),
        kill_leftovers: true,
        terminal: None,
        stdin: process.take_input(),
        watcher: None,
        progress: None,
        output_limit: None,
        spill: None,
        at_end: Box::new(|_| ()),
        command,
    };
    let job = Job::start(process, setup);
    let id = reservation.id().clone();
    reservation.register(&job);
    id
}

fn line(text: &str) -> JobInput {
    JobInput {
        text: text.to_owned(),
        enter: true,
        ..JobInput::default()
    }
}

fn keys(keys: &[&str]) -> JobInput {
    JobInput {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        ..JobInput::default()
    }
}

const ECHO: &str = "while read -r x; do echo \"<$x>\"; done";

#[tokio::test]
async fn where_nothing_is_enforced_typing_is_asked_about_as_the_command_that_it_may_be() {
    let (approver, asked) = answering(Answer::Yes(Scope::Once));
    let shieling = Shieling::builder(local(), Policy::open(), "/tmp")
        .approver(approver)
        .build()
        .expect("it serves no other policy");
    let job = start(&shieling, ECHO).await;
    let view = shieling.write(&job, line("rm x"), LONG).await.expect("it was approved");
    assert_eq!(view.outcome.stdout, "<rm x>\n");
    // Letter by letter it is the same.
    shieling
        .write(&job, keys(&["r", "m", " ", "y", "Enter"]), LONG)
        .await
        .expect("it was approved");
    shieling.write(&job, line(""), LONG).await.expect("it was approved");
    assert_eq!(texts(&asked), ["rm x", "rm y\n# keys: Enter", "# keys: Enter"]);
    let question = asked.lock().expect("nobody panics")[0].clone();
    assert!(
        question.verdict.reasons.iter().any(|reason| reason.object == "job j1"),
        "{question:?}"
    );
    // What can only end something is not asked about: a kill is not, either.
    shieling
        .write(&job, keys(&["C-d"]), LONG)
        .await
        .expect("nobody is asked");
    assert_eq!(texts(&asked).len(), 3);
}

#[tokio::test]
async fn what_is_refused_is_not_typed() {
    let (approver, _) = answering(Answer::No("not this".to_owned()));
    let shieling = Shieling::builder(local(), Policy::open(), "/tmp")
        .approver(approver)
        .build()
        .expect("it serves no other policy");
    let job = start(&shieling, ECHO).await;
    let error = shieling
        .write(&job, line("no"), LONG)
        .await
        .expect_err("somebody said no");
    let JobError::Refused(denial) = error else {
        panic!("{error}")
    };
    assert_eq!((denial.layer, denial.decision), (Layer::Approval, Decision::Deny));
    let nobody = Shieling::builder(local(), Policy::open(), "/tmp")
        .build()
        .expect("it serves no other policy");
    let other = start(&nobody, ECHO).await;
    let error = nobody
        .write(&other, line("no"), LONG)
        .await
        .expect_err("nobody said yes");
    let JobError::Refused(denial) = error else {
        panic!("{error}")
    };
    assert_eq!((denial.layer, denial.decision), (Layer::Approval, Decision::Ask));
    for (shieling, job) in [(&shieling, &job), (&nobody, &other)] {
        let view = shieling.view(ViewRequest::new(job.clone())).await.expect("it is there");
        assert_eq!(
            (view.outcome.stdout.as_str(), view.outcome.status),
            ("", Status::Running)
        );
    }
}

#[tokio::test]
async fn typing_is_asked_about_unless_all_of_the_policy_is_enforced() {
    let readonly = || Policy::open().with_readonly();
    let deny = || Policy::open().with_deny(&["rm"]).expect("a list");
    let cases = [
        (local(), Policy::open(), Mode::OnAsk, "ls", 0),
        (local(), Policy::open(), Mode::Always, "ls", 1),
        (local(), readonly(), Mode::OnAsk, "ls", 1),
        (called("sandbox", true, &[]), readonly(), Mode::OnAsk, "touch x", 0),
        (called("sandbox", true, &[]), readonly(), Mode::Always, "ls", 1),
        (called("sandbox", true, &[]), deny(), Mode::OnAsk, "ls", 1),
    ];
    for (number, (environment, policy, mode, text, questions)) in cases.into_iter().enumerate() {
        let (approver, asked) = answering(Answer::Yes(Scope::Once));
        let shieling = Shieling::builder(environment, policy, "/tmp")
            .approver(approver)
            .approval(mode)
            .build()
            .expect("it serves no other policy");
        let job = start(&shieling, ECHO).await;
        let view = shieling.write(&job, line(text), LONG).await.expect("it is typed");
        assert_eq!(
            (view.outcome.stdout, texts(&asked).len()),
            (format!("<{text}>\n"), questions),
            "{number}"
        );
    }
    // What is known to break it is not even asked about.
    let (approver, asked) = answering(Answer::Yes(Scope::Once));
    let shieling = Shieling::builder(local(), deny(), "/tmp")
        .approver(approver)
        .build()
        .expect("it serves no other policy");
    let job = start(&shieling, ECHO).await;
    let error = shieling
        .write(&job, line("rm x"), LONG)
        .await
        .expect_err("it is denied");
    let JobError::Refused(denial) = error else {
        panic!("{error}")
    };
    assert_eq!((denial.layer, texts(&asked).len()), (Layer::Policy, 0));
}

#[tokio::test]
async fn what_is_typed_is_recorded_and_what_cannot_be_is_not_typed() {
    let records: Arc<Mutex<Vec<Record>>> = Arc::default();
    let broken = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (writing, failing) = (Arc::clone(&records), Arc::clone(&broken));
    let sink = audit::SinkFn(move |record: &Record| {
        if failing.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(io::Error::other("the disk is full"));
        }
        writing.lock().expect("nobody panics").push(record.clone());
        Ok(())
    });
    let shieling = Shieling::builder(local(), Policy::open(), "/tmp")
        .approval(Mode::OnAsk)
        .audit(Arc::new(sink))
        .build()
        .expect("it serves no other policy");
    let job = start(&shieling, ECHO).await;
    shieling.write(&job, line("hello"), LONG).await.expect("it is typed");
    let seen: Vec<_> = {
        let records = records.lock().expect("nobody panics");
        records
            .iter()
            .map(|record| (record.kind, record.command.clone()))
            .collect()
    };
    let told = "typed 5 bytes into job j1, then Enter".to_owned();
    assert_eq!(seen, [(RecordKind::Intent, told.clone()), (RecordKind::Outcome, told)]);
    let reason = records.lock().expect("nobody panics")[0]
        .verdict
        .clone()
        .expect("a verdict")
        .reasons;
    assert_eq!(
        (reason[0].rule.as_str(), reason[0].object.as_str()),
        ("typed", "job j1")
    );
    broken.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = shieling
        .write(&job, line("unseen"), LONG)
        .await
        .expect_err("it cannot be recorded");
    assert_eq!(
        error.to_string(),
        "it was not written, since it could not be recorded: the disk is full"
    );
    let view = shieling.view(ViewRequest::new(job)).await.expect("it is there");
    assert_eq!(view.outcome.stdout, "");
}

#[tokio::test]
async fn no_record_holds_what_is_typed_however_it_is_typed_and_answered() {
    let records: Arc<Mutex<Vec<Record>>> = Arc::default();
    let writing = Arc::clone(&records);
    let sink = Arc::new(audit::SinkFn(move |record: &Record| {
        writing.lock().expect("nobody panics").push(record.clone());
        Ok(())
    }));
    let secret = "rm ./hunter2";
    let letters: Vec<String> = secret.chars().map(String::from).collect();
    let inputs = [
        line(secret),
        line(secret),
        JobInput {
            keys: letters,
            ..JobInput::default()
        },
        keys(&["S-h", "M-u", "S-n", "KP2", "Up", "C-u"]),
        // It is no key, which is the error; nothing is typed.
        keys(&["hunter2"]),
    ];
    let answers = [Answer::Yes(Scope::Once), Answer::No("no hunting".to_owned())];
    let deny = Policy::open().with_deny(&["rm ./hunter2"]).expect("a list");
    for policy in [Policy::open(), Policy::open().with_readonly(), deny] {
        for answer in &answers {
            let (approver, asked) = answering(answer.clone());
            let shieling = Shieling::builder(local(), policy.clone(), "/tmp")
                .approver(approver)
                .audit(Arc::clone(&sink) as Arc<dyn audit::Sink>)
                .build()
                .expect("it serves no other policy");
            let job = start(&shieling, ECHO).await;
            for input in &inputs {
                // Refused or not: what is recorded is looked at.
                let _ = shieling.write(&job, input.clone(), Duration::ZERO).await;
            }
            for text in texts(&asked).iter().take(1) {
                assert!(text.contains("hunter2") || text.contains("keys"), "{text}");
            }
            shieling.close().await;
        }
    }
    let records = records.lock().expect("nobody panics");
    let kinds = [
        RecordKind::Intent,
        RecordKind::Approved,
        RecordKind::Denied,
        RecordKind::Outcome,
    ];
    assert!(
        kinds
            .iter()
            .all(|kind| records.iter().any(|record| record.kind == *kind))
    );
    for record in records.iter() {
        let text = serde_json::to_string(record).expect("JSON");
        let plain = crate::request::Digest::of(b"rm ./hunter2").to_string();
        for secret in ["hunt", "rm .", "S-h", "M-u", "KP2", plain.as_str()] {
            assert!(!text.replace("no hunting", "").contains(secret), "{secret}: {text}");
        }
        assert!(text.contains("\"typed\":{\"job\":\"j1\""), "{text}");
    }
    let page: std::collections::BTreeSet<&str> = records.iter().map(|record| record.command.as_str()).collect();
    let expected = [
        "typed 0 bytes into job j1",
        "typed 12 bytes into job j1",
        "typed 12 bytes into job j1, then Enter",
        "typed 4 bytes into job j1, then Up C-u",
    ];
    assert_eq!(page.into_iter().collect::<Vec<_>>(), expected);
    // The same text twice is not seen to be the same.
    let digests: std::collections::BTreeSet<String> = records
        .iter()
        .filter(|record| record.kind == RecordKind::Intent && record.command.ends_with("Enter"))
        .map(|record| record.command_digest.to_string())
        .collect();
    let runs: std::collections::BTreeSet<&str> = records
        .iter()
        .filter(|record| record.kind == RecordKind::Intent && record.command.ends_with("Enter"))
        .map(|record| record.run.as_str())
        .collect();
    assert!(digests.len() == runs.len() && runs.len() > 3, "{digests:?}");
}

#[tokio::test]
async fn a_port_is_waited_for_where_it_can_be_seen() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = WaitFor::Port(listener.local_addr().expect("it has one").port());
    for environment in [local(), called("sandbox", true, &["pid"])] {
        let shieling = Shieling::builder(environment, Policy::open(), "/tmp")
            .build()
            .expect("it serves no other policy");
        let job = start(&shieling, "read x").await;
        let (open, view) = shieling.wait_for(&job, port.clone(), LONG).await.expect("it is seen");
        assert!(open && view.outcome.status == Status::Running);
    }
    for environment in [
        called("sandbox", true, &["pid", "network"]),
        called("container", false, &[]),
    ] {
        let shieling = Shieling::builder(environment, Policy::open(), "/tmp")
            .build()
            .expect("it serves no other policy");
        let job = start(&shieling, "read x").await;
        let error = shieling
            .wait_for(&job, port.clone(), LONG)
            .await
            .expect_err("it is not seen");
        assert!(error.to_string().contains("wait for a pattern"), "{error}");
    }
}

#[tokio::test]
async fn jobs_are_listed_killed_and_closed() {
    let shieling = Shieling::builder(local(), Policy::open(), "/tmp")
        .build()
        .expect("it serves no other policy");
    let first = start(&shieling, "echo on; sleep 1000").await;
    let second = start(&shieling, "exit 3").await;
    let (ended, view) = shieling
        .wait_for(&second, WaitFor::Exit, LONG)
        .await
        .expect("it is there");
    assert_eq!((ended, view.outcome.exit_code), (true, Some(3)));
    let found = shieling
        .wait_for(&first, WaitFor::Pattern("^on$".to_owned()), LONG)
        .await;
    assert!(found.expect("it is there").0);
    let listed: Vec<_> = shieling
        .list()
        .jobs
        .into_iter()
        .map(|info| (info.job, info.status))
        .collect();
    assert_eq!(
        listed,
        [(first.clone(), Status::Running), (second.clone(), Status::Exited)]
    );
    let error = shieling
        .resize(&first, TerminalSize::default())
        .expect_err("it has no terminal");
    assert!(matches!(error, JobError::NoTerminal { .. }), "{error}");
    for _ in 0..2 {
        let view = shieling.kill(&first).await.expect("it is there");
        assert_eq!((view.outcome.signal, view.outcome.survivors), (Some(15), 0));
    }
    let unknown: JobId = "nope".parse().expect("a name");
    let error = shieling.kill(&unknown).await.expect_err("there is none");
    assert_eq!(error.to_string(), "there is no job `nope`; there are `j1`, `j2`");
    shieling.close().await;
    assert!(shieling.list().jobs.is_empty());
}

#[test]
fn what_is_typed_reads_as_the_command_that_it_may_be() {
    assert_eq!(as_text(&line("rm x")), "rm x");
    assert_eq!(as_text(&keys(&["Up\n rm x", "Enter"])), "# keys: Up\u{fffd} rm x Enter");
    assert_eq!(as_text(&line("a\0b")), "a\u{2400}b");
}
