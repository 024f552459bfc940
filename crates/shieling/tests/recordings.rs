//! What is recorded of sessions and jobs, seen from outside: files that other players play.
#![expect(clippy::disallowed_methods, reason = "tests read the files that were recorded")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shieling::Shieling;
use shieling::approval::{Answer, ApproverFn, Mode, Question, Scope};
use shieling::environment::{Local, Shell};
use shieling::outcome::{Outcome, Status};
use shieling::policy::{Policy, RuleFile};
use shieling::request::Command;
use shieling::session::{
    Human, HumanQuestion, HumanReply, JobInput, JobRequest, RecordingId, RecordingSettings, ReplyFuture, SessionName,
    TerminalSize, ViewRequest, WaitFor, list_recordings,
};
use shieling::units::ByteCount;

/// Has an answer to everything.
struct Person;

impl Human for Person {
    fn ask<'a>(&'a self, _: HumanQuestion) -> ReplyFuture<'a> {
        Box::pin(std::future::ready(HumanReply::Answer("blue".to_owned())))
    }
}

struct Place {
    place: tempfile::TempDir,
    shieling: Shieling,
}

impl Place {
    fn new(bounds: impl FnOnce(RecordingSettings) -> RecordingSettings) -> Self {
        let place = tempfile::tempdir().expect("a directory can be made");
        let local = Arc::new(Local::new(Shell::find(None).expect("there is a bash")));
        let rules = "[[rule]]\nid = \"no\"\ndecision = \"deny\"\ncommand = \"rm\"\nbecause = \"it removes\"\n\
                     [[rule]]\nid = \"ask\"\ndecision = \"ask\"\ncommand = \"touch\"\nbecause = \"it makes\"\n";
        let policy = Policy::open().with_rules(RuleFile::parse("rules.toml", rules).expect("rules"));
        let shieling = Shieling::builder(local, policy, place.path())
            .approval(Mode::OnAsk)
            .approver(Arc::new(ApproverFn(|_: &Question| Answer::Yes(Scope::Once))))
            .human(Arc::new(Person))
            .recordings(bounds(RecordingSettings::new(place.path().join("recordings"))))
            .build()
            .expect("it serves no other policy");
        Self { place, shieling }
    }

    fn call(&self, text: &str) -> JobRequest {
        let path = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
        let command = Command::new(text, self.place.path())
            .expect("a command")
            .with_variables(path);
        JobRequest::new(command)
    }

    async fn run(&self, text: &str) -> Outcome {
        self.shieling.session(SessionName::default()).run(self.call(text)).await
    }

    /// The recording's events, without their times.
    fn events(&self, outcome: &Outcome) -> Vec<(String, String)> {
        let id = outcome.recording.as_ref().expect("it is recorded");
        read(&self.place.path().join("recordings"), id)
    }
}

fn read(directory: &Path, id: &str) -> Vec<(String, String)> {
    let id: RecordingId = id.parse().expect("an id");
    let text = std::fs::read_to_string(directory.join(id.file_name())).expect("it can be read");
    let mut lines = text.lines();
    let header: serde_json::Value = serde_json::from_str(lines.next().expect("a header")).expect("JSON");
    assert_eq!(header["version"], 2);
    let mut before = 0.0;
    let event = |line: &str| {
        let (time, kind, text): (f64, String, String) = serde_json::from_str(line).expect("an event");
        assert!(time >= before, "{line}");
        before = time;
        (kind, text)
    };
    lines.map(event).collect()
}

fn marks(events: &[(String, String)]) -> Vec<&str> {
    let marks = events.iter().filter(|(kind, _)| kind == "m");
    marks.map(|(_, text)| text.as_str()).collect()
}

fn printed(events: &[(String, String)]) -> String {
    let output = events.iter().filter(|(kind, _)| kind == "o");
    output.map(|(_, text)| text.as_str()).collect()
}

#[tokio::test]
async fn a_session_is_one_recording_of_all_its_commands_and_of_those_refused() {
    let place = Place::new(|to| to);
    let first = place.run("echo one; echo two >&2").await;
    let denied = place.run("rm -r x").await;
    let asked = place.run("touch new; exit 3").await;
    let after = place.run("echo three").await;
    assert_eq!(denied.status, Status::Denied);
    for other in [&denied, &asked, &after] {
        assert_eq!(other.recording, first.recording, "{other:?}");
    }
    let events = place.events(&first);
    assert_eq!(
        marks(&events),
        [
            "command: echo one; echo two >&2",
            "approved: policy",
            "ended: exited 0",
            "command: rm -r x",
            "denied: it removes",
            "command: touch new; exit 3",
            "approved: answer",
            "ended: exited 3",
            "command: echo three",
            "approved: policy",
            "ended: exited 0",
        ]
    );
    let printed = printed(&events);
    assert!(
        printed.contains("one\r\n") && printed.ends_with("three\r\n"),
        "{printed:?}"
    );
    let sessions = place.shieling.list().sessions;
    assert_eq!(sessions[0].recording.as_ref().map(ToString::to_string), first.recording);
    let listed = list_recordings(&place.place.path().join("recordings")).expect("it can be read");
    assert_eq!(
        (listed.len(), listed[0].title.as_str(), listed[0].open),
        (1, "session main", true)
    );
    place.shieling.close().await;
}

#[tokio::test]
async fn jobs_of_their_own_and_single_commands_have_recordings_of_their_own() {
    let place = Place::new(|to| to);
    let (shieling, call) = (&place.shieling, place.call("echo ready; read -r word; echo got $word"));
    let session = shieling.session(SessionName::default());
    let piped = session.start(call).await;
    let call = place.call("stty -echo; echo 'password: '; read -r word; stty size");
    let terminal = session
        .start(call.with_terminal(TerminalSize { rows: 7, columns: 40 }))
        .await;
    let single = shieling.run(place.call("echo alone").command, None).await;

    let jobs = shieling.list().jobs;
    for (job, outcome) in jobs.iter().zip([&piped, &terminal]) {
        assert_eq!(
            job.recording.as_ref().map(ToString::to_string),
            outcome.recording,
            "{job:?}"
        );
        // What is typed before `stty -echo` ran would be echoed.
        let started = WaitFor::Pattern("ready|password".to_owned());
        let (ready, _) = shieling
            .wait_for(&job.job, started, Duration::from_secs(10))
            .await
            .expect("it is there");
        assert!(ready);
        let word = JobInput {
            text: "hunter2".to_owned(),
            enter: true,
            ..JobInput::default()
        };
        let typed = shieling.write(&job.job, word, Duration::from_secs(5)).await;
        typed.expect("it reads");
        shieling
            .ask_human("which colour?", Some(&job.job))
            .await
            .expect("it is there");
        let (ended, _) = shieling
            .wait_for(&job.job, WaitFor::Exit, Duration::from_secs(10))
            .await
            .expect("it is there");
        assert!(ended);
        assert_eq!(
            shieling
                .view(ViewRequest::new(job.job.clone()))
                .await
                .expect("a view")
                .outcome
                .recording,
            outcome.recording
        );
    }
    let events = place.events(&piped);
    assert_eq!(
        marks(&events)[..2],
        ["command: echo ready; read -r word; echo got $word", "approved: policy"]
    );
    for mark in [
        "approved",
        "input: 7 bytes",
        "asked a person: which colour?",
        "a person answered",
        "ended: exited 0",
    ] {
        assert!(marks(&events).contains(&mark), "{mark}: {events:?}");
    }
    assert_eq!(printed(&events), "ready\r\ngot hunter2\r\n");
    let events = place.events(&terminal);
    assert!(
        printed(&events).ends_with("7 40\r\n") && !format!("{events:?}").contains("hunter2"),
        "{events:?}"
    );
    let events = place.events(&single);
    assert_eq!(
        (marks(&events), printed(&events).as_str()),
        (
            vec!["command: echo alone", "approved: policy", "ended: exited 0"],
            "alone\r\n"
        )
    );

    let listed = list_recordings(&place.place.path().join("recordings")).expect("it can be read");
    assert_eq!(listed.len(), 3);
    for one in listed {
        assert!(!one.open || one.title != "echo alone", "{one:?}");
        assert!(
            one.seconds.is_some_and(|seconds| (0.0..60.0).contains(&seconds)) && one.size.get() > 100,
            "{one:?}"
        );
    }
    shieling.close().await;
}

#[tokio::test]
async fn a_recording_is_cut_off_at_its_bound_and_what_has_no_room_runs_all_the_same() {
    let place = Place::new(|to| RecordingSettings {
        per_recording: ByteCount::kib(64),
        in_all: ByteCount::kib(100),
        ..to
    });
    let outcome = place.run("seq 100000").await;
    assert_eq!((outcome.exit_code, outcome.stdout_bytes), (Some(0), 588_895));
    let events = place.events(&outcome);
    let (kind, last) = events.last().expect("there are some");
    assert_eq!(
        (kind.as_str(), last.as_str()),
        ("m", "cut off: a recording takes at most 64 KiB")
    );
    let listed = list_recordings(&place.place.path().join("recordings")).expect("it can be read");
    assert!(listed[0].size <= ByteCount::kib(64), "{listed:?}");

    place.shieling.close().await;

    // The first session takes all the room that there is.
    let place = Place::new(|to| RecordingSettings {
        per_recording: ByteCount::kib(64),
        in_all: ByteCount::kib(100),
        ..to
    });
    assert_eq!(place.run("echo one").await.exit_code, Some(0));
    for number in 0..40 {
        let session = place.shieling.session(format!("s{number}").parse().expect("a name"));
        let outcome = session.run(place.call("echo $PPID")).await;
        assert_eq!(
            (outcome.status, outcome.error.as_deref()),
            (Status::Exited, None),
            "{number}"
        );
        let events = place.events(&outcome);
        assert!(
            events.len() == 1 && events[0].1.contains("all recordings together take at most 100 KiB"),
            "{events:?}"
        );
    }
    place.shieling.close().await;
}

#[test]
fn what_is_not_ours_is_not_listed() {
    let place = tempfile::tempdir().expect("a directory can be made");
    let path = |name: &str| place.path().join(name);
    let ours = "{\"version\": 2, \"width\": 80, \"height\": 24, \"title\": \"mine\", \"shieling\": {}}\n";
    let older = "20261121T070754Z-0123456789abcdef0123.cast";
    std::fs::write(
        path(older),
        format!("{ours}[0.5, \"o\", \"x\"]\n[1.25, \"o\", \"y\"]\n[2.0, \"o\", \"cut o"),
    )
    .expect("written");
    std::fs::write(path("20261122T070754Z-0123456789abcdef0123.cast"), ours).expect("written");
    std::fs::write(path("20261123T070754Z-0123456789abcdef0123.cast"), "{\"version\": 2}\n").expect("written");
    std::fs::write(path("other.cast"), ours).expect("written");
    std::os::unix::fs::symlink(path(older), path("20261124T070754Z-0123456789abcdef0123.cast")).expect("linked");
    let listed = list_recordings(place.path()).expect("it can be read");
    let told = listed.iter().map(|one| (one.id.to_string(), one.seconds, one.open));
    let told: Vec<_> = told
        .map(|(id, seconds, open)| (id[..8].to_owned(), seconds, open))
        .collect();
    let expected = [("20261122", 0.0), ("20261121", 1.25)];
    assert_eq!(
        told,
        expected.map(|(day, seconds)| (day.to_owned(), Some(seconds), false))
    );
    assert_eq!(list_recordings(&path("nowhere")).expect("nothing is no error"), []);
}
