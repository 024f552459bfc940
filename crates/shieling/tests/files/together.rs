//! Several at once, and files that are not what they were.

use std::sync::Arc;

use shieling::files::{EditRequest, FilesError, ReadRequest, WriteRequest};
use shieling_testkit::Workspace;

use crate::place::{BOTH, content};

#[tokio::test(flavor = "multi_thread")]
async fn of_edits_at_once_none_is_lost() {
    const EDITS: usize = 20;
    for here in BOTH {
        let lines: String = (0..EDITS).map(|number| format!("line {number} old.\n")).collect();
        let workspace = Workspace::new().with("a", &lines);
        let shieling = Arc::new(here.open(&workspace));
        let mut edits = tokio::task::JoinSet::new();
        for number in 0..EDITS {
            let shieling = Arc::clone(&shieling);
            edits.spawn(async move {
                // Told that it never stood still, one tries again, as a model would.
                loop {
                    let asked = EditRequest::new("a", format!("line {number} old."), format!("line {number} new."));
                    match shieling.edit_file(asked).await {
                        Ok(_) => return,
                        Err(error) => assert!(error.to_string().contains("changed"), "{error}"),
                    }
                }
            });
        }
        edits.join_all().await;
        assert_eq!(content(&workspace, "a"), lines.replace("old", "new"), "{here:?}");
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
            // That its words are gone, or that the file kept changing while it tried.
            let told = matches!(
                lost,
                Err(FilesError::NoMatch { .. } | FilesError::File(shieling::environment::FileError::Changed(_)))
            );
            assert!(told, "{here:?}: {lost:?}");
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
