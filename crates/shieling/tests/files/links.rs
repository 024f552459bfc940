//! Secrets through links, and what leads out of the workspace.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use shieling::environment::Kind;
use shieling::files::{
    EditRequest, GlobRequest, GrepRequest, Include, MoveRequest, ReadRequest, StatRequest, WriteRequest,
};
use shieling::outcome::Status;
use shieling::policy::{Policy, RuleFile};
use shieling_testkit::Workspace;

use crate::place::{BOTH, In, content, delete, is_not_found, refusal, text};

fn hiding() -> Policy {
    Policy::open().with_ignore(&[".env", "keys/"]).expect("patterns")
}

#[tokio::test]
async fn a_look_at_a_link_tells_where_it_leads_and_what_is_there() {
    for here in BOTH {
        let workspace = Workspace::new().with("sub/t", "x\n");
        for (name, to) in [("one", "sub/t"), ("two", "sub"), ("three", "nowhere")] {
            symlink(to, workspace.path(name)).expect("a new link");
        }
        let shieling = here.open(&workspace);
        for (path, kind, target) in [
            ("one", Kind::File, Some("sub/t")),
            ("two", Kind::Directory, Some("sub")),
            ("three", Kind::Link, Some("nowhere")),
            ("sub/t", Kind::File, None),
            // A link on the way is none of the path itself.
            ("two/t", Kind::File, None),
        ] {
            let info = shieling.stat(StatRequest::new(path)).await.expect("it is there");
            let is = (info.kind, info.target.as_deref(), info.dangling);
            assert_eq!(is, (kind, target.map(Path::new), path == "three"), "{here:?} {path}");
        }
    }
}

#[tokio::test]
async fn a_link_to_a_hidden_file_leads_nowhere() {
    for here in BOTH {
        let workspace = Workspace::new().with(".env", "SECRET\n").with("keys/id", "SECRET\n");
        for (name, to) in [("one", ".env"), ("two", "keys/id"), ("three", "keys"), ("four", "one")] {
            symlink(to, workspace.path(name)).expect("a new link");
        }
        symlink(workspace.path(".env"), workspace.path("five")).expect("a new link");
        let shieling = here
            .builder(&workspace, hiding())
            .build()
            .expect("it serves no other policy");
        for path in ["one", "two", "three/id", "four", "five"] {
            let read = shieling.read_file(ReadRequest::new(path)).await;
            assert!(is_not_found(&read), "{here:?} {path}: {read:?}");
            for change in crate::place::changes(path).into_iter().take(3) {
                let changed = shieling.file(change.clone()).await;
                assert!(changed.is_err(), "{here:?} {path} {change:?}");
                assert!(!format!("{changed:?}").contains("SECRET"), "{changed:?}");
            }
        }
        let grep = GrepRequest {
            include: Include {
                ignored: true,
                dotfiles: true,
            },
            ..GrepRequest::new("SECRET")
        };
        let found = shieling.grep(grep).await.expect("a search");
        assert_eq!(found.hits, [], "{here:?}");
        assert_eq!(content(&workspace, ".env"), "SECRET\n");
    }
}

#[tokio::test]
async fn a_hidden_file_is_hidden_by_its_other_names_too() {
    for here in BOTH {
        let workspace = Workspace::new()
            .with(".env", "SECRET\n")
            .with("keys/deep/id", "SECRET\n")
            .with("plain", "public\n");
        fs::hard_link(workspace.path(".env"), workspace.path("notes")).expect("another name");
        fs::hard_link(workspace.path("keys/deep/id"), workspace.path("notes2")).expect("another name");
        fs::hard_link(workspace.path("plain"), workspace.path("plain2")).expect("another name");
        let shieling = here
            .builder(&workspace, hiding())
            .build()
            .expect("it serves no other policy");
        for path in ["notes", "notes2"] {
            let read = text(&shieling, path).await;
            assert!(read.is_err(), "{here:?} {path}: {read:?}");
            let edited = shieling.edit_file(EditRequest::new(path, "SECRE", "x")).await;
            assert!(
                edited.is_err() && !format!("{edited:?}").contains("SECRET"),
                "{here:?} {path}: {edited:?}"
            );
            if here == In::Local {
                let (status, denial) = refusal(read);
                assert_eq!((status, denial.reasons[0].rule.as_str()), (Status::Denied, "ignore"));
            }
        }
        assert_eq!(text(&shieling, "plain2").await.expect("nothing hides it"), "public\n");
    }
}

#[tokio::test]
async fn what_leads_out_of_the_workspace_is_refused_for_reading_and_for_changing() {
    for here in BOTH {
        let outside = Workspace::new().with("secret", "SECRET\n");
        let workspace = Workspace::new().with("a", "old\n");
        symlink(outside.path("secret"), workspace.path("file")).expect("a new link");
        symlink(outside.root(), workspace.path("directory")).expect("a new link");
        let shieling = here.open(&workspace);
        let absolute = outside.path("secret");
        for path in ["file", "directory/secret", absolute.to_str().expect("a plain path")] {
            let read = text(&shieling, path).await;
            assert!(
                (read.is_err() || here == In::Sandbox) && !format!("{read:?}").contains("SECRET"),
                "{here:?} {path}: {read:?}"
            );
            let written = shieling.write_file(WriteRequest::new(path, "changed")).await;
            assert!(written.is_err() || here == In::Sandbox, "{here:?} {path}: {written:?}");
            let edited = shieling.edit_file(EditRequest::new(path, "SECRET", "changed")).await;
            assert!(edited.is_err() || here == In::Sandbox, "{here:?} {path}: {edited:?}");
        }
        assert_eq!(content(&outside, "secret"), "SECRET\n", "{here:?}");
        for pattern in ["../*", "/etc/*", "directory/*"] {
            let found = shieling.glob(GlobRequest::new(pattern)).await;
            assert!(
                !format!("{found:?}").contains("secret"),
                "{here:?} {pattern}: {found:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_goes_with_a_directory_is_judged_with_it() {
    let rules = "[[rule]]\nid = \"locked\"\ndecision = \"deny\"\nwrites = [\"*.lock\", \"made/**\"]\n";
    let workspace = Workspace::new().with("src/deep/a.lock", "x").with("plain/a", "x");
    let policy = Policy::open().with_rules(RuleFile::parse("policy.toml", rules).expect("rules"));
    let shieling = In::Local
        .builder(&workspace, policy)
        .build()
        .expect("it serves no other policy");
    for result in [
        shieling.delete_file(delete("src", true)).await,
        shieling.move_file(MoveRequest::new("src", "elsewhere")).await,
        shieling.move_file(MoveRequest::new("plain", "made")).await,
    ] {
        let (status, denial) = refusal(result);
        assert_eq!(status, Status::Denied);
        assert!(denial.reasons[0].rule.contains("locked"), "{denial:?}");
    }
    shieling
        .move_file(MoveRequest::new("plain", "fine"))
        .await
        .expect("no rule is about it");
}
