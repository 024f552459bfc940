//! What is judged, approved and recorded.

use std::sync::Arc;

use shieling::audit::RecordKind;
use shieling::outcome::{Layer, Status};
use shieling::policy::Policy;
use shieling_testkit::{FailingSink, RecordingSink};

use crate::support::{eventually, everywhere_with, receive, receive_all};

fn records(sink: &Arc<RecordingSink>) -> Vec<(RecordKind, Option<Status>)> {
    let records = sink.records();
    records
        .iter()
        .map(|record| (record.kind, record.outcome.as_ref().map(|ended| ended.status)))
        .collect()
}

#[tokio::test]
async fn what_the_policy_denies_or_nobody_approves_does_not_start() {
    let policy = || Policy::open().with_deny(&["touch"]).expect("a prefix");
    let asks = |builder: shieling::Builder| builder.require_shell_approval(true);
    everywhere_with(
        policy,
        |builder| builder,
        async |at| {
            let outcome = at.refused("touch made").await;
            assert_eq!(outcome.status, Status::Denied);
            assert_eq!(outcome.denial.expect("why").layer, Layer::Policy);
            assert!(!at.workspace.path("made").exists());
        },
    )
    .await;
    everywhere_with(policy, asks, async |at| {
        let outcome = at.refused("echo x > made").await;
        assert_eq!(outcome.status, Status::NeedsApproval);
        assert!(!at.workspace.path("made").exists());
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_recorded_does_not_start() {
    let full = |builder: shieling::Builder| builder.audit(Arc::new(FailingSink(RecordKind::Intent)));
    everywhere_with(Policy::open, full, async |at| {
        let outcome = at.refused("echo x > made").await;
        assert_eq!(outcome.status, Status::Failed);
        assert!(!at.workspace.path("made").exists());
    })
    .await;
}

#[tokio::test]
async fn an_end_that_could_not_be_recorded_is_told() {
    let full = |builder: shieling::Builder| builder.audit(Arc::new(FailingSink(RecordKind::Outcome)));
    everywhere_with(Policy::open, full, async |at| {
        let outcome = at.start("exit 3").await.wait().await;
        assert_eq!(outcome.exit_code, Some(3));
        assert!(
            outcome
                .error
                .is_some_and(|error| error.contains("could not be recorded"))
        );
    })
    .await;
}

#[tokio::test]
async fn the_intent_is_recorded_before_and_the_end_once() {
    let sink = RecordingSink::new();
    let log = Arc::clone(&sink);
    let before = std::cell::Cell::new(0);
    let logged = |builder: shieling::Builder| builder.audit(log.clone());
    everywhere_with(Policy::open, logged, async |at| {
        let of_this = || records(&sink).split_off(before.get());
        let started = at.start("echo ok; read x; printf unread; exit 2").await;
        assert_eq!(of_this(), [(RecordKind::Intent, None)]);
        assert_eq!(receive(&started, 3).await, b"ok\n");
        started.send_eof().await;
        // Recorded when it comes, whoever asks.
        eventually("its end is recorded", || of_this().len() == 2).await;
        started.wait().await;
        started.kill().await;
        drop(started);
        assert_eq!(
            of_this(),
            [(RecordKind::Intent, None), (RecordKind::Outcome, Some(Status::Exited))]
        );
        let last = sink.records().pop().expect("just seen").outcome.expect("an outcome");
        assert_eq!((last.exit_code, last.stdout_bytes), (Some(2), 9));
        before.set(sink.records().len());
    })
    .await;
}

#[tokio::test]
async fn one_that_is_dropped_is_recorded_as_lost_and_one_that_had_ended_as_it_did() {
    let sink = RecordingSink::new();
    let log = Arc::clone(&sink);
    let logged = |builder: shieling::Builder| builder.audit(log.clone());
    everywhere_with(Policy::open, logged, async |at| {
        let before = sink.records().len();
        drop(at.start("sleep 1000").await);
        eventually("its end is recorded", || sink.records().len() == before + 2).await;
        assert_eq!(records(&sink)[before + 1], (RecordKind::Outcome, Some(Status::Lost)));
        at.nobody_left().await;

        let ended = at.start("echo unread; exit 1").await;
        eventually("its end is recorded", || sink.records().len() == before + 4).await;
        assert_eq!(receive_all(&ended).await, b"unread\n");
        drop(ended);
        drop(at.start("sleep 1000").await);
        eventually("the end of the next is recorded", || sink.records().len() >= before + 6).await;
        assert_eq!(sink.records().len(), before + 6, "and that of the first only once");
        assert_eq!(records(&sink)[before + 3], (RecordKind::Outcome, Some(Status::Exited)));
        at.nobody_left().await;
    })
    .await;
}
