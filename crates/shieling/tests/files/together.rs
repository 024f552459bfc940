//! Several at once, and files that are not what they were.

use std::sync::Arc;

use shieling::files::{EditRequest, FilesError, PatchRequest, ReadRequest, WriteRequest};
use shieling_testkit::Workspace;

use crate::place::{BOTH, content};

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_one_file_at_once_are_all_made() {
    const EDITS: usize = 40;
    for here in BOTH {
        let lines: String = (0..EDITS).map(|number| format!("line {number} old.\n")).collect();
        let workspace = Workspace::new().with("a", &lines);
        let shieling = Arc::new(here.open(&workspace));
        let mut edits = tokio::task::JoinSet::new();
        for number in 0..EDITS {
            let shieling = Arc::clone(&shieling);
            edits.spawn(async move {
                let (old, new) = (format!("line {number} old."), format!("line {number} new."));
                if number % 2 == 0 {
                    return shieling.edit_file(EditRequest::new("a", old, new)).await.map(drop);
                }
                let patch = format!("*** Begin Patch\n*** Update File: a\n@@\n-{old}\n+{new}\n*** End Patch\n");
                shieling.apply_patch(PatchRequest::new(patch)).await.map(drop)
            });
        }
        for made in edits.join_all().await {
            assert!(made.is_ok(), "{here:?}: {made:?}");
        }
        assert_eq!(content(&workspace, "a"), lines.replace("old", "new"), "{here:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_one_file_at_once_are_all_made() {
    for here in BOTH {
        let workspace = Workspace::new().with("a", "old\n");
        let shieling = Arc::new(here.open(&workspace));
        let mut writes = tokio::task::JoinSet::new();
        for number in 0..40 {
            let shieling = Arc::clone(&shieling);
            writes.spawn(async move { shieling.write_file(WriteRequest::new("a", format!("{number}\n"))).await });
        }
        for written in writes.join_all().await {
            assert!(written.is_ok(), "{here:?}: {written:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_at_once_share_the_directories_that_they_make() {
    for here in BOTH {
        let workspace = Workspace::new();
        let shieling = Arc::new(here.open(&workspace));
        for round in 0..100 {
            let mut writes = tokio::task::JoinSet::new();
            for number in 0..8 {
                let shieling = Arc::clone(&shieling);
                let path = format!("{round}/in/{number}");
                writes.spawn(async move { shieling.write_file(WriteRequest::new(path, "new\n")).await });
            }
            for written in writes.join_all().await {
                assert!(written.is_ok(), "{here:?}, round {round}: {written:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_edits_of_the_same_words_one_wins_and_the_other_is_told() {
    for here in BOTH {
        let workspace = Workspace::new().with("a", "old\n");
        let shieling = here.open(&workspace);
        for _ in 0..50 {
            workspace.write("a", "old\n");
            let (one, two) = tokio::join!(
                shieling.edit_file(EditRequest::new("a", "old", "first")),
                shieling.edit_file(EditRequest::new("a", "old", "second")),
            );
            assert!(one.is_ok() != two.is_ok(), "{here:?}: {one:?} {two:?}");
            let lost = if one.is_ok() { two } else { one };
            assert!(matches!(lost, Err(FilesError::NoMatch { .. })), "{here:?}: {lost:?}");
        }
    }
}

#[tokio::test]
async fn a_write_over_what_somebody_else_changed_is_refused_with_what_changed() {
    for here in BOTH {
        let workspace = Workspace::new().with("a", "one\ntwo\nthree\n");
        let shieling = here.open(&workspace);
        let read = shieling.read_file(ReadRequest::new("a")).await.expect("it is there");
        workspace.write("a", "one\n2\nthree\n");
        let stale = |mut asked: WriteRequest| {
            asked.expect = Some(read.hash.clone());
            asked
        };
        let written = shieling.write_file(stale(WriteRequest::new("a", "mine\n"))).await;
        match written {
            Err(FilesError::Stale { diff, .. }) => {
                let diff = diff.expect("what was read is remembered");
                assert!(diff.contains("-two\n+2\n"), "{here:?}: {diff}");
            }
            other => panic!("{here:?}: {other:?}"),
        }
        assert_eq!(content(&workspace, "a"), "one\n2\nthree\n");
        let edited = shieling
            .edit_file(EditRequest {
                expect: Some(read.hash.clone()),
                ..EditRequest::new("a", "three", "3")
            })
            .await;
        assert!(matches!(edited, Err(FilesError::Stale { .. })), "{here:?}: {edited:?}");
        shieling
            .edit_file(EditRequest::new("a", "three", "3"))
            .await
            .expect("without a hash it goes by what is there");
        assert_eq!(content(&workspace, "a"), "one\n2\n3\n");
    }
}
