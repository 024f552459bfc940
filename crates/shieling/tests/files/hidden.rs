//! Directories in which something is hidden: they stay, and what is hidden in them with them.

use std::path::Path;

use shieling::environment::FileError;
use shieling::files::{FilesError, ListRequest, MoveRequest, PatchRequest};
use shieling::policy::Policy;
use shieling_testkit::Workspace;

use crate::place::{BOTH, In, content, delete, text};

/// That it is refused as what stays, and says no more.
#[track_caller]
fn stays<T: std::fmt::Debug>(result: Result<T, FilesError>, directory: &Path, label: &str) {
    let Err(FilesError::File(FileError::Fixed(path))) = &result else {
        panic!("{label}: {result:?}");
    };
    assert_eq!(path, directory, "{label}");
    let told = result.expect_err("matched above").to_string();
    assert_eq!(
        told,
        format!(
            "`{}` cannot be moved or removed here: it, or something in it, is fixed in its place",
            directory.display()
        ),
        "{label}"
    );
}

#[tokio::test]
async fn a_directory_in_which_something_is_hidden_is_neither_moved_nor_removed() {
    let cases = [
        (".env", "config/.env"),
        ("config/.env", "config/.env"),
        (".env", "config/a/b/c/d/.env"),
        ("/config/a/b/.env", "config/a/b/.env"),
        ("keys/", "config/a/keys/deep/id"),
        ("config/**/*.pem", "config/a/b/x.pem"),
    ];
    for here in BOTH {
        for (pattern, secret) in cases {
            let workspace = Workspace::new()
                .with(secret, "SECRET\n")
                .with("config/code", "code\n")
                .with("plain/code", "code\n");
            let policy = Policy::open().with_ignore(&[pattern]).expect("a pattern");
            let shieling = here
                .builder(&workspace, policy)
                .build()
                .expect("it serves no other policy");
            let label = format!("{here:?} {pattern} {secret}");
            let directory = workspace.path("config");
            stays(
                shieling.move_file(MoveRequest::new("config", "open")).await,
                &directory,
                &label,
            );
            stays(
                shieling.move_file(MoveRequest::new("config", "plain")).await,
                &directory,
                &label,
            );
            stays(
                shieling.move_file(MoveRequest::new("./config/", "new/deep")).await,
                &directory,
                &label,
            );
            stays(shieling.delete_file(delete("config", true)).await, &directory, &label);
            assert_eq!(content(&workspace, secret), "SECRET\n", "{label}");
            assert_eq!(
                content(&workspace, "config/code"),
                "code\n",
                "nothing of it went: {label}"
            );
            assert!(
                !workspace.path("open").exists() && !workspace.path("new").exists(),
                "{label}"
            );
            // Its neighbours go.
            shieling
                .move_file(MoveRequest::new("config/code", "code"))
                .await
                .expect("a file beside it");
            shieling
                .move_file(MoveRequest::new("plain", "moved"))
                .await
                .expect("hides nothing");
            shieling
                .delete_file(delete("moved", true))
                .await
                .expect("hides nothing");
        }
    }
}

#[tokio::test]
async fn a_directory_that_looks_empty_stays_for_what_is_hidden_in_it() {
    for here in BOTH {
        let workspace = Workspace::new().with("config/.env", "SECRET\n");
        let policy = Policy::open().with_ignore(&[".env"]).expect("a pattern");
        let shieling = here
            .builder(&workspace, policy)
            .build()
            .expect("it serves no other policy");
        for recursive in [false, true] {
            let removed = shieling.delete_file(delete("config", recursive)).await;
            stays(removed, &workspace.path("config"), &format!("{here:?} {recursive}"));
        }
        assert_eq!(content(&workspace, "config/.env"), "SECRET\n");
    }
}

#[tokio::test]
async fn no_patch_moves_what_is_hidden_or_a_directory_with_it() {
    for here in BOTH {
        let workspace = Workspace::new()
            .with("config/.env", "SECRET\n")
            .with("config/code", "code\n");
        let policy = Policy::open().with_ignore(&["config/.env"]).expect("a pattern");
        let shieling = here
            .builder(&workspace, policy)
            .build()
            .expect("it serves no other policy");
        let renaming = |from: &str, to: &str| {
            [
                format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n"),
                format!(
                    "*** Begin Patch\n*** Update File: {from}\n*** Move to: {to}\n@@\n-SECRET\n+open\n*** End Patch\n"
                ),
            ]
        };
        let cases = [
            ("config/.env", "open"),
            ("config", "open"),
            ("config/../config/.env", "open"),
            ("config/code", "config/.env"),
        ];
        for (from, to) in cases {
            for patch in renaming(from, to) {
                let patched = shieling.apply_patch(PatchRequest::new(patch)).await;
                assert!(patched.is_err(), "{here:?} {from} {to}: {patched:?}");
                assert!(
                    !format!("{patched:?}").contains("SECRET"),
                    "{here:?} {from} {to}: {patched:?}"
                );
            }
        }
        assert_eq!(content(&workspace, "config/.env"), "SECRET\n", "{here:?}");
        assert_eq!(content(&workspace, "config/code"), "code\n", "{here:?}");
        assert!(!workspace.path("open").exists(), "{here:?}");
    }
}

#[tokio::test]
async fn another_case_of_a_hidden_name_is_as_hidden() {
    for here in BOTH {
        let workspace = Workspace::new()
            .with(".ENV", "SECRET\n")
            .with("Keys/ID", "SECRET\n")
            .with("config/.Env", "SECRET\n");
        let policy = Policy::open().with_ignore(&[".env", "keys/"]).expect("patterns");
        let shieling = here
            .builder(&workspace, policy)
            .build()
            .expect("it serves no other policy");
        for path in [".ENV", ".env", "Keys/ID", "config/.Env", "./Keys/../.ENV"] {
            let read = text(&shieling, path).await;
            assert!(read.is_err(), "{here:?} {path}: {read:?}");
        }
        stays(
            shieling.move_file(MoveRequest::new("config", "open")).await,
            &workspace.path("config"),
            &format!("{here:?}"),
        );
    }
}

#[tokio::test]
async fn a_repository_however_deep_is_asked_about_with_the_directory_that_holds_it() {
    let workspace = Workspace::new()
        .with("a/b/c/.git/hooks/pre-commit", "#!/bin/sh\n")
        .with("a/b/plain", "x")
        .with("d/e/.GIT/config", "x")
        .with("f/g/h", "x")
        .with("top/.envrc", "x");
    let shieling = In::Local.open(&workspace);
    for (from, to) in [
        ("a", "z"),
        ("a/b", "z"),
        ("a/b/c", "z"),
        ("d", "z"),
        ("top/.envrc", ".envrc"),
        ("f", "q/.git/f"),
    ] {
        let (status, denial) = crate::place::refusal(shieling.move_file(MoveRequest::new(from, to)).await);
        assert_eq!(status, shieling::outcome::Status::NeedsApproval, "{from}: {denial:?}");
        assert!(denial.reasons[0].because.contains("run code"), "{denial:?}");
        assert!(denial.reasons.len() <= 3, "one for each name is enough: {denial:?}");
    }
    for path in ["a", "a/b", "a/b/c", "d"] {
        let (status, _) = crate::place::refusal(shieling.delete_file(delete(path, true)).await);
        assert_eq!(status, shieling::outcome::Status::NeedsApproval, "{path}");
    }
    shieling
        .move_file(MoveRequest::new("f", "z"))
        .await
        .expect("nothing runs code from there");
    shieling
        .delete_file(delete("a/b/plain", false))
        .await
        .expect("a plain file");
    assert!(workspace.path("a/b/c/.git/hooks/pre-commit").exists());
}

#[tokio::test]
async fn a_directory_of_which_everything_is_hidden_is_missing_as_one_that_is_hidden_by_its_name() {
    for pattern in [
        "secrets/**",
        "secrets/*",
        "/secrets/**",
        "**/secrets/**",
        "secrets/",
        "SECRETS/*",
    ] {
        for here in BOTH {
            let workspace = Workspace::new()
                .with("secrets/key-name", "SECRET\n")
                .with("secrets/deep/key-name", "SECRET\n")
                .with("open/a", "a\n");
            let policy = Policy::open().with_ignore(&[pattern]).expect("a pattern");
            let shieling = here
                .builder(&workspace, policy)
                .build()
                .expect("it serves no other policy");
            let label = format!("{here:?} {pattern}");
            for ask in [ListRequest::new("secrets"), ListRequest::new("secrets/deep")] {
                let listed = shieling.list_files(ask).await;
                assert!(
                    matches!(&listed, Err(FilesError::File(FileError::NotFound(_)))),
                    "{label}: {listed:?}"
                );
            }
            let top = shieling.list_files(ListRequest::new(".")).await.expect("it is there");
            let top = format!("{top:?}");
            assert!(!top.contains("secrets") && top.contains("open"), "{label}: {top}");
        }
    }
}

#[tokio::test]
async fn a_directory_out_of_which_something_is_kept_is_listed_without_the_rest() {
    for here in BOTH {
        let workspace = Workspace::new()
            .with("secrets/key", "SECRET\n")
            .with("secrets/keep", "fine\n");
        let policy = Policy::open()
            .with_ignore(&["secrets/*", "!secrets/keep"])
            .expect("patterns");
        let shieling = here
            .builder(&workspace, policy)
            .build()
            .expect("it serves no other policy");
        let listed = shieling
            .list_files(ListRequest::new("secrets"))
            .await
            .expect("it is there");
        let listed = format!("{listed:?}");
        assert!(
            listed.contains("\"keep\"") && !listed.contains("\"key\""),
            "{here:?}: {listed}"
        );
        assert_eq!(text(&shieling, "secrets/keep").await.expect("it is kept"), "fine\n");
    }
}
