//! What is recorded of operations on files, as `shieling log` would find it.

use std::fmt::Write as _;
use std::sync::Arc;

use shieling::approval::{Answer, Mode, Scope};
use shieling::audit::{self, Record, RecordKind};
use shieling::files::{EditRequest, FilesError, MoveRequest, ReadRequest, StatRequest, WriteRequest};
use shieling::policy::Policy;
use shieling_testkit::{FailingSink, RecordingSink, ScriptedApprover, Workspace, normalised};

use crate::place::{BOTH, In, adding, content, delete, text};

/// The records, one a line, without what differs from run to run.
fn page(log: &RecordingSink, workspace: &Workspace) -> String {
    let mut page = String::new();
    for record in log.records() {
        let file = record.file.as_ref().expect("it is an operation on files");
        let Record { kind, command, .. } = &record;
        write!(page, "{kind:?} `{command}` {:?}", file.paths).expect("a string");
        if let Some(bytes) = file.bytes {
            write!(page, " {bytes} bytes").expect("a string");
        }
        if file.change_digest.is_some() {
            page.push_str(" with the digest of a change");
        }
        if let Some(grant) = &record.grant {
            write!(page, ", by {}", grant.basis).expect("a string");
        }
        if let Some(denial) = &record.denial {
            write!(page, ", refused by {:?}: {}", denial.layer, denial.reasons[0].because).expect("a string");
        }
        if let Some(outcome) = &record.outcome {
            write!(page, ", {}", outcome.status.name()).expect("a string");
            if let Some(error) = &outcome.error {
                write!(page, ": {error}").expect("a string");
            }
        }
        page.push('\n');
    }
    normalised(&page, &[(workspace.root(), "<workspace>")])
}

#[tokio::test]
async fn reads_leave_one_line_and_changes_an_intent_and_an_outcome() {
    for here in BOTH {
        let (workspace, log) = (Workspace::new().with("a", "old\n"), RecordingSink::new());
        let shieling = here
            .builder(&workspace, Policy::open())
            .audit(log.clone())
            .build()
            .expect("it serves no other policy");
        text(&shieling, "a").await.expect("it is there");
        text(&shieling, "none").await.expect_err("it is not there");
        shieling.stat(StatRequest::new(".")).await.expect("it is there");
        shieling
            .write_file(WriteRequest::new("sub/b", "12345"))
            .await
            .expect("writable");
        shieling
            .edit_file(EditRequest::new("a", "old", "older"))
            .await
            .expect("it is in there");
        shieling
            .edit_file(EditRequest::new("a", "young", "old"))
            .await
            .expect_err("it is not");
        shieling.apply_patch(adding("c")).await.expect("a patch");
        shieling
            .move_file(MoveRequest::new("c", "d"))
            .await
            .expect("it is there");
        shieling.delete_file(delete("d", false)).await.expect("it is there");
        shieling.delete_file(delete("sub", true)).await.expect("it is there");
        insta::allow_duplicates! {
            insta::assert_snapshot!(page(&log, &workspace), @r#"
            Outcome `read_file a` ["<workspace>/a"] 4 bytes, exited
            Outcome `read_file none` ["<workspace>/none"], failed: there is no `none`
            Outcome `stat .` ["<workspace>"], exited
            Intent `write_file sub/b` ["<workspace>/sub/b"] with the digest of a change
            Outcome `write_file sub/b` ["<workspace>/sub/b"] 5 bytes with the digest of a change, by policy, exited
            Intent `edit_file a` ["<workspace>/a"] with the digest of a change
            Outcome `edit_file a` ["<workspace>/a"] 6 bytes with the digest of a change, by policy, exited
            Outcome `edit_file a` ["<workspace>/a"], failed: the text to replace is not in `<workspace>/a`
            Intent `apply_patch c` ["<workspace>/c"] with the digest of a change
            Outcome `apply_patch c` ["<workspace>/c"] with the digest of a change, by policy, exited
            Intent `move_file c d` ["<workspace>/c", "<workspace>/d"] with the digest of a change
            Outcome `move_file c d` ["<workspace>/c", "<workspace>/d"] with the digest of a change, by policy, exited
            Intent `delete_file d` ["<workspace>/d"] with the digest of a change
            Outcome `delete_file d` ["<workspace>/d"] with the digest of a change, by policy, exited
            Intent `delete_file --recursive sub` ["<workspace>/sub", "<workspace>/sub/b"] with the digest of a change
            Outcome `delete_file --recursive sub` ["<workspace>/sub", "<workspace>/sub/b"] with the digest of a change, by policy, exited
            "#);
        }
        let records = log.records();
        let (intent, outcome) = (&records[3], &records[4]);
        assert_eq!(intent.run, outcome.run);
        assert_eq!(intent.command_digest, outcome.command_digest);
        let line = serde_json::to_string(&records).expect("records are JSON");
        assert!(
            !line.contains("older") && !line.contains("12345"),
            "no content is in the log"
        );
    }
}

#[tokio::test]
async fn a_refusal_and_a_yes_stand_in_the_log() {
    let (workspace, log) = (
        Workspace::new().with("a", "old\n").with(".env", "SECRET"),
        RecordingSink::new(),
    );
    let approver = ScriptedApprover::new([Answer::Yes(Scope::Once), Answer::No("not that".to_owned())]);
    let policy = Policy::open().with_ignore(&[".env"]).expect("a pattern");
    let shieling = In::Local
        .builder(&workspace, policy)
        .approval(Mode::Always)
        .approver(approver)
        .audit(log.clone())
        .build()
        .expect("it serves no other policy");
    shieling.write_file(WriteRequest::new("a", "new\n")).await.expect("yes");
    shieling
        .write_file(WriteRequest::new("a", "newer\n"))
        .await
        .expect_err("no");
    shieling
        .write_file(WriteRequest::new("a", "newest\n"))
        .await
        .expect_err("nobody");
    shieling
        .write_file(WriteRequest::new(".env", "x"))
        .await
        .expect_err("hidden");
    shieling.read_file(ReadRequest::new(".env")).await.expect_err("hidden");
    insta::assert_snapshot!(page(&log, &workspace), @r#"
    Intent `write_file a` ["<workspace>/a"] with the digest of a change
    Approved `write_file a` ["<workspace>/a"] with the digest of a change, by answer
    Outcome `write_file a` ["<workspace>/a"] 4 bytes with the digest of a change, by answer, exited
    Intent `write_file a` ["<workspace>/a"] with the digest of a change
    Denied `write_file a` ["<workspace>/a"] with the digest of a change, refused by Approval: the approver said no: not that
    Intent `write_file a` ["<workspace>/a"] with the digest of a change
    Denied `write_file a` ["<workspace>/a"] with the digest of a change, refused by Approval: it needs a yes, and nobody answered
    Denied `write_file .env` ["<workspace>/.env"], refused by Policy: this path is hidden
    Outcome `read_file .env` ["<workspace>/.env"], failed: there is no `.env`
    "#);
}

#[tokio::test]
async fn a_log_that_fails_stops_the_operation() {
    let workspace = Workspace::new().with("a", "old\n");
    let with = |kind| {
        In::Local
            .builder(&workspace, Policy::open())
            .audit(Arc::new(FailingSink(kind)))
            .build()
            .expect("it serves no other policy")
    };

    let read = text(&with(RecordKind::Outcome), "a").await;
    assert!(
        matches!(&read, Err(FilesError::Fault(why)) if why.contains("disk is full")),
        "{read:?}"
    );
    let written = with(RecordKind::Intent)
        .write_file(WriteRequest::new("a", "new\n"))
        .await;
    assert!(matches!(&written, Err(FilesError::Fault(_))), "{written:?}");
    assert_eq!(content(&workspace, "a"), "old\n");

    let written = with(RecordKind::Outcome)
        .write_file(WriteRequest::new("a", "new\n"))
        .await;
    assert!(
        matches!(&written, Err(FilesError::Fault(why)) if why.contains("was done")),
        "{written:?}"
    );
    assert_eq!(content(&workspace, "a"), "new\n");
}

#[tokio::test]
async fn a_log_of_operations_on_files_is_a_whole_chain() {
    let (workspace, place) = (
        Workspace::new().with("a", "old\n"),
        tempfile::tempdir().expect("a directory"),
    );
    let path = place.path().join("log");
    let log = audit::LogFile::open(&path, audit::LogSettings::default()).expect("a new log");
    let shieling = In::Local
        .builder(&workspace, Policy::open())
        .audit(Arc::new(log))
        .build()
        .expect("it serves no other policy");
    text(&shieling, "a").await.expect("it is there");
    shieling
        .write_file(WriteRequest::new("\u{1b}[2K\u{202e}x", "x"))
        .await
        .expect("any name will do");
    let summary = audit::verify(&path, None).expect("it is whole");
    assert_eq!(summary.records, 3);
    let lines = std::fs::read_to_string(&path).expect("ours");
    assert!(!lines.contains('\u{1b}') && !lines.contains('\u{202e}'));
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_a_true_record() {
    let (workspace, log) = (Workspace::new(), RecordingSink::new());
    let shieling = In::Local
        .builder(&workspace, Policy::open())
        .approval(Mode::Always)
        .approver(Arc::new(Silent))
        .audit(log.clone())
        .build()
        .expect("it serves no other policy");
    let waiting = shieling.write_file(WriteRequest::new("a", "new\n"));
    let waited = tokio::time::timeout(std::time::Duration::from_millis(300), waiting).await;
    assert!(waited.is_err(), "nobody answers");
    assert_eq!(log.kinds(), [RecordKind::Intent, RecordKind::Outcome]);
    let end = log.records()[1].outcome.clone().expect("an end");
    assert!(
        end.error
            .is_some_and(|error| error.contains("went away before it was started"))
    );
    assert!(!workspace.path("a").exists());
}

/// Somebody who never answers.
struct Silent;

impl shieling::approval::Approver for Silent {
    fn ask<'a>(&'a self, _: &'a shieling::approval::Question) -> shieling::approval::AnswerFuture<'a> {
        Box::pin(std::future::pending())
    }
}
