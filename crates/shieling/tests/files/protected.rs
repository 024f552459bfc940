//! What would run code as the user later, and Shieling's own files.

use std::path::PathBuf;

use shieling::approval::{Answer, Scope};
use shieling::files::{ListRequest, MoveRequest, ReadRequest, WriteRequest};
use shieling::outcome::{Layer, Status};
use shieling::policy::Policy;
use shieling_testkit::{ScriptedApprover, Workspace};

use crate::place::{BOTH, In, delete, is_not_found, refusal, text};

fn repository() -> Workspace {
    Workspace::new()
        .with(".git/HEAD", "ref: refs/heads/main\n")
        .with(".git/config", "[core]\n\tbare = false\n")
        .with(".git/objects/x", "")
        .with(".git/hooks/sample", "#!/bin/sh\n")
        .with("sub/.git/HEAD", "ref: refs/heads/main\n")
        .with("sub/.git/objects/x", "")
        .with("evil/pre-commit", "#!/bin/sh\n")
        .with(".envrc", "export A=1\n")
        .with("src/a", "old\n")
}

#[tokio::test]
async fn what_the_users_own_tools_run_is_not_changed_unasked() {
    for here in BOTH {
        let workspace = repository();
        let shieling = here.open(&workspace);
        let written = [
            ".git/hooks/pre-commit",
            ".git/config",
            ".git/hooks/sample",
            "./.git/../.git/hooks/pre-push",
            ".vscode/tasks.json",
            ".claude/settings.json",
            ".envrc",
        ];
        for path in written {
            let result = shieling.write_file(WriteRequest::new(path, "#!/bin/sh\nid\n")).await;
            assert!(result.is_err(), "{here:?} {path}: {result:?}");
            if here == In::Local {
                let (status, denial) = refusal(result);
                assert_eq!(
                    (status, denial.layer),
                    (Status::NeedsApproval, Layer::Environment),
                    "{path}"
                );
            }
        }
        for (from, to) in [(".git", "git"), (".git/hooks", "hooks"), ("evil", ".vscode")] {
            let result = shieling.move_file(MoveRequest::new(from, to)).await;
            assert!(result.is_err(), "{here:?} {from} to {to}: {result:?}");
        }
        for path in [".git", ".git/hooks", ".git/config"] {
            let result = shieling.delete_file(delete(path, true)).await;
            assert!(result.is_err(), "{here:?} {path}: {result:?}");
        }
        shieling
            .write_file(WriteRequest::new("src/a", "new\n"))
            .await
            .expect("a plain file");
        shieling
            .write_file(WriteRequest::new(".gitignore", "x\n"))
            .await
            .expect("settles what is ignored, runs nothing");
        assert!(!workspace.path(".git/hooks/pre-commit").exists());
        assert!(text(&shieling, ".git/config").await.is_ok(), "reading runs nothing");
    }
    // Where nothing is protected by mounts, a repository at any depth is asked about.
    let workspace = repository().with("a/b/c/.git/HEAD", "");
    let shieling = In::Local.open(&workspace);
    for path in ["sub/.git/hooks/pre-commit", "a/b/c/.git/config", "a/b/c/.GIT/hooks/x"] {
        let (status, _) = refusal(shieling.write_file(WriteRequest::new(path, "x")).await);
        assert_eq!(status, Status::NeedsApproval, "{path}");
    }
}

#[tokio::test]
async fn in_local_a_yes_makes_it() {
    let workspace = repository();
    let approver = ScriptedApprover::new([Answer::Yes(Scope::Once)]);
    let shieling = In::Local
        .builder(&workspace, Policy::open())
        .approver(approver.clone())
        .build()
        .expect("it serves no other policy");
    shieling
        .write_file(WriteRequest::new(".git/hooks/pre-commit", "#!/bin/sh\n"))
        .await
        .expect("yes");
    let because = approver.asked()[0].verdict.reasons[0].because.clone();
    assert!(because.contains("tools of the user run code from there"), "{because}");
}

#[tokio::test]
async fn shielings_own_files_are_not_there() {
    let workspace = Workspace::new().with("state/audit/log", "line\n").with("a", "old\n");
    let own: Vec<PathBuf> = vec![workspace.path("state")];
    std::fs::hard_link(workspace.path("state/audit/log"), workspace.path("other")).expect("another name");
    let shieling = In::Local
        .builder(&workspace, Policy::open())
        .own_files(own)
        .build()
        .expect("it serves no other policy");
    for path in ["state/audit/log", "state"] {
        let read = shieling.read_file(ReadRequest::new(path)).await;
        assert!(is_not_found(&read), "{path}: {read:?}");
    }
    assert!(text(&shieling, "other").await.is_err(), "by no other name either");
    let listed = shieling
        .list_files(ListRequest {
            path: ".".into(),
            limit: 10,
            after: None,
        })
        .await
        .expect("the workspace is there");
    assert!(!format!("{listed:?}").contains("state"), "{listed:?}");
    assert!(
        shieling
            .write_file(WriteRequest::new("state/audit/log", "forged\n"))
            .await
            .is_err()
    );
    assert!(shieling.write_file(WriteRequest::new("state/new", "x")).await.is_err());
    for result in [
        shieling.delete_file(delete("state", true)).await,
        shieling.move_file(MoveRequest::new("state", "b")).await,
        shieling.move_file(MoveRequest::new("a", "state/a")).await,
    ] {
        assert!(result.is_err(), "{result:?}");
    }
    assert_eq!(crate::place::content(&workspace, "state/audit/log"), "line\n");
}
