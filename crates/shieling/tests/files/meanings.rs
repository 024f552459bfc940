//! What each part of a policy means for files.

use shieling::approval::{Answer, Mode, Question, Scope};
use shieling::files::{
    EditRequest, FileRequest, FilesError, GlobRequest, GrepRequest, Include, ListRequest, PatchRequest, ReadRequest,
    StatRequest, WriteRequest,
};
use shieling::outcome::{Layer, Status};
use shieling::policy::{Decision, Policy, RuleFile};
use shieling_testkit::{ScriptedApprover, Workspace};

use crate::place::{BOTH, In, changes, content, is_not_found, refusal, text};

/// Also what is ignored, and what begins with a dot.
const ALL: Include = Include {
    ignored: true,
    dotfiles: true,
};

fn grep(pattern: &str) -> GrepRequest {
    GrepRequest {
        literal: true,
        include: ALL,
        ..GrepRequest::new(pattern)
    }
}

/// Every way to look.
fn looks(path: &str) -> Vec<FileRequest> {
    vec![
        FileRequest::Read(ReadRequest::new(path)),
        FileRequest::Stat(StatRequest::new(path)),
        FileRequest::List(ListRequest::new(".")),
        FileRequest::Glob(GlobRequest {
            include: ALL,
            ..GlobRequest::new("**/*")
        }),
        FileRequest::Grep(grep("old")),
    ]
}

#[tokio::test]
async fn readonly_lets_everything_be_read_and_nothing_be_changed_in_any_environment() {
    for here in BOTH {
        let workspace = Workspace::new().with("a", "old\n");
        let shieling = here
            .builder(&workspace, Policy::open().with_readonly())
            .build()
            .expect("it serves no other policy");
        for look in looks("a") {
            let answer = shieling.file(look.clone()).await;
            assert!(answer.is_ok(), "{here:?} {look:?}: {answer:?}");
        }
        for change in changes("a") {
            let (status, denial) = refusal(shieling.file(change.clone()).await);
            assert_eq!(
                (status, denial.layer),
                (Status::Denied, Layer::Policy),
                "{here:?} {change:?}"
            );
            assert_eq!(denial.reasons[0].rule, "readonly");
            assert!(denial.reasons[0].instead.is_some(), "it says what to do instead");
        }
        assert_eq!(content(&workspace, "a"), "old\n");
    }
}

#[tokio::test]
async fn an_allow_list_lets_everything_be_read_and_asks_about_each_change() {
    for here in BOTH {
        let workspace = Workspace::new().with("a", "old\n");
        let policy = || Policy::open().with_allow(&["cat"]).expect("an entry");
        let shieling = here
            .builder(&workspace, policy())
            .build()
            .expect("it serves no other policy");
        for look in looks("a") {
            assert!(shieling.file(look).await.is_ok());
        }
        for change in changes("a") {
            let (status, denial) = refusal(shieling.file(change).await);
            assert_eq!((status, denial.decision), (Status::NeedsApproval, Decision::Ask));
            assert_eq!(denial.reasons[0].rule, "allow");
        }
        assert_eq!(content(&workspace, "a"), "old\n");

        let approver = ScriptedApprover::new([Answer::Yes(Scope::Once)]);
        let shieling = here
            .builder(&workspace, policy())
            .approver(approver)
            .build()
            .expect("it serves no other policy");
        shieling
            .write_file(WriteRequest::new("a", "new"))
            .await
            .expect("somebody said yes");
        assert_eq!(content(&workspace, "a"), "new");
    }
}

#[tokio::test]
async fn a_deny_list_is_about_commands() {
    for here in BOTH {
        let workspace = Workspace::new().with("a", "old\n");
        let policy = Policy::open().with_deny(&["rm", "tee"]).expect("entries");
        let shieling = here
            .builder(&workspace, policy)
            .build()
            .expect("it serves no other policy");
        shieling
            .write_file(WriteRequest::new("a", "new"))
            .await
            .expect("no entry names it");
        assert_eq!(content(&workspace, "a"), "new");
    }
}

#[tokio::test]
async fn what_is_hidden_is_not_there_to_read_and_is_not_changed_whether_it_is_there_or_not() {
    for here in BOTH {
        let workspace = Workspace::new()
            .with(".env", "SECRET=old\n")
            .with("keys/id", "SECRET")
            .with("a", "old\n");
        let policy = Policy::open()
            .with_ignore(&[".env", "keys/", "gone"])
            .expect("patterns");
        let shieling = here
            .builder(&workspace, policy)
            .build()
            .expect("it serves no other policy");
        for path in [".env", "./.env", "keys/id", "keys/../.env", "gone", ".ENV"] {
            let read = shieling.read_file(ReadRequest::new(path)).await;
            assert!(is_not_found(&read), "{here:?} {path}: {read:?}");
            let stat = shieling.stat(StatRequest::new(path)).await;
            assert!(is_not_found(&stat), "{here:?} {path}: {stat:?}");
        }
        // There and not there: the same words.
        for [there, missing] in [[".env", "gone"], ["keys/id", "keys/none"]] {
            for (one, other) in changes(there).into_iter().zip(changes(missing)) {
                let [one, other] = [shieling.file(one).await, shieling.file(other).await];
                let [one, other] = [(one, there), (other, missing)].map(|(result, path)| {
                    format!("{:?}", result.expect_err("it is hidden"))
                        .replace(path, "PATH")
                        .replace(&format!("{}", workspace.path(path).display()), "PATH")
                });
                let numbers = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
                assert_eq!(numbers(&one), numbers(&other), "{here:?}");
            }
        }
        for look in looks("a") {
            let answer = format!("{:?}", shieling.file(look).await.expect("the rest is there"));
            assert!(
                !answer.contains("SECRET") && !answer.contains(".env") && !answer.contains("keys"),
                "{answer}"
            );
        }
        assert_eq!(content(&workspace, ".env"), "SECRET=old\n");
        assert!(!workspace.path("gone").exists());
    }
}

#[tokio::test]
async fn rules_about_reading_refuse_by_name_and_a_search_leaves_such_files_out() {
    let rules = r#"
        [[rule]]
        id = "customers"
        decision = "deny"
        reads = "customers/"
        because = "names of people are in it"
        [[rule]]
        id = "salaries"
        decision = "ask"
        reads = "salaries"
        [[rule]]
        id = "lock"
        decision = "deny"
        writes = "*.lock"
    "#;
    for here in BOTH {
        let workspace = Workspace::new()
            .with("customers/list", "old Ann\n")
            .with("salaries", "old 1\n")
            .with("a.lock", "old\n")
            .with("b", "old\n");
        let policy = || Policy::open().with_rules(RuleFile::parse("policy.toml", rules).expect("rules"));
        let approver = ScriptedApprover::new([Answer::Yes(Scope::Once), Answer::No("private".to_owned())]);
        let shieling = here
            .builder(&workspace, policy())
            .approver(approver.clone())
            .build()
            .expect("it serves no other policy");

        let (status, denial) = refusal(text(&shieling, "customers/list").await);
        assert_eq!((status, denial.decision), (Status::Denied, Decision::Deny));
        assert_eq!(denial.reasons[0].because, "names of people are in it");
        assert!(denial.reasons[0].rule.contains("customers"));

        assert_eq!(approver.asked().len(), 0);
        let salaries = text(&shieling, "salaries").await.expect("the first answer is yes");
        assert!(salaries.contains("old 1"));
        let (status, _) = refusal(text(&shieling, "salaries").await);
        assert_eq!(status, Status::Denied);
        assert_eq!(approver.asked().len(), 2, "each read of it is asked about");

        let found = shieling.grep(grep("old")).await.expect("the rest may be searched");
        let mut hits: Vec<_> = found.hits.iter().map(|hit| hit.path.display().to_string()).collect();
        hits.sort();
        assert_eq!(hits, ["a.lock", "b"], "{here:?}");
        assert!(found.unreadable >= 2, "what was left out is counted: {found:?}");
        assert_eq!(approver.asked().len(), 2, "a search asks nobody");

        assert!(shieling.write_file(WriteRequest::new("b", "new")).await.is_ok());
        for change in changes("a.lock") {
            refusal(shieling.file(change).await);
        }
        assert_eq!(content(&workspace, "a.lock"), "old\n");
    }
}

#[tokio::test]
async fn what_would_show_a_content_that_may_not_be_read_is_refused_too() {
    let rules = "[[rule]]\nid = \"r\"\ndecision = \"deny\"\nreads = \"secret\"\n";
    let workspace = Workspace::new().with("secret", "old\n");
    let policy = Policy::open().with_rules(RuleFile::parse("policy.toml", rules).expect("rules"));
    let shieling = In::Local
        .builder(&workspace, policy)
        .approval(Mode::OnAsk)
        .build()
        .expect("it serves no other policy");
    let edited = shieling.edit_file(EditRequest::new("secret", "odl", "new")).await;
    let shown = format!("{edited:?}");
    assert!(
        edited.is_err() && !shown.contains("old"),
        "the nearest lines are a content: {shown}"
    );
    if let Ok(written) = shieling.write_file(WriteRequest::new("secret", "new\n")).await {
        assert_eq!(written.diff, None, "a diff holds what was there");
    }
}

#[tokio::test]
async fn why_a_change_does_not_fit_is_told_only_to_whoever_may_read_what_it_does_not_fit() {
    let rules = "[[rule]]\nid = \"r\"\ndecision = \"ask\"\nreads = \"salaries\"\n";
    let policy = || Policy::open().with_rules(RuleFile::parse("policy.toml", rules).expect("rules"));
    for here in BOTH {
        let workspace = Workspace::new().with("salaries", "Ann 90000\n");
        let guess = || EditRequest::new("salaries", "Ann 9000\n", "x");

        let approver = ScriptedApprover::new([Answer::No(String::new()), Answer::Yes(Scope::Once)]);
        let shieling = here
            .builder(&workspace, policy())
            .approver(approver.clone())
            .build()
            .expect("it serves no other policy");
        let refused = shieling.edit_file(guess()).await;
        let told = format!("{refused:?}");
        assert!(!told.contains("90000") && !told.contains("NoMatch"), "{told}");
        assert_eq!(refusal(refused).0, Status::Denied);
        let told = shieling.edit_file(guess()).await.expect_err("it does not fit");
        assert_eq!(told.code(), "no_match", "the second answer is yes: {told:?}");
        assert_eq!(approver.asked().len(), 2);

        let shieling = here
            .builder(&workspace, policy())
            .approval(Mode::Never)
            .build()
            .expect("it serves no other policy");
        let (misses, hits) = (guess(), EditRequest::new("salaries", "Ann 90000", "x"));
        assert_eq!(refusal(shieling.edit_file(misses).await).0, Status::NeedsApproval);
        assert_eq!(refusal(shieling.edit_file(hits).await).0, Status::NeedsApproval);
    }
}

#[tokio::test]
async fn nobody_is_asked_about_a_change_that_cannot_be_shown_whole() {
    let long = "a line that is written\n".repeat(4_000);
    for here in BOTH {
        let workspace = Workspace::new().with("a", "old\n");
        let approver = ScriptedApprover::new([Answer::Yes(Scope::Once)]);
        let shieling = here
            .builder(&workspace, Policy::open())
            .approval(Mode::Always)
            .approver(approver.clone())
            .build()
            .expect("it serves no other policy");
        let (status, denial) = refusal(shieling.write_file(WriteRequest::new("a", long.clone())).await);
        assert_eq!(status, Status::NeedsApproval);
        let told = denial.reasons.last().expect("a reason").because.clone();
        assert!(told.contains("too long to be shown whole (more than 32 KiB)"), "{told}");
        assert!(denial.is_for_length() && denial.layer == Layer::Approval);
        assert_eq!(
            (approver.asked().len(), content(&workspace, "a")),
            (0, "old\n".to_owned())
        );
        assert!(shieling.write_file(WriteRequest::new("a", "new\n")).await.is_ok());
        assert_eq!(approver.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_patch_of_many_files_is_shown_whole_or_asked_about_by_nobody() {
    let adding = |count: usize| {
        let one = |number: usize| format!("*** Add File: f{number}\n{}", "+a line of this file\n".repeat(450));
        let patch = format!(
            "*** Begin Patch\n{}*** End Patch\n",
            (0..count).map(one).collect::<String>()
        );
        PatchRequest::new(patch)
    };
    for here in BOTH {
        let workspace = Workspace::new();
        let approver = ScriptedApprover::new([Answer::Yes(Scope::Once)]);
        let shieling = here
            .builder(&workspace, Policy::open())
            .approval(Mode::Always)
            .approver(approver.clone())
            .build()
            .expect("it serves no other policy");
        let refused = shieling.apply_patch(adding(7)).await;
        assert!(refused.as_ref().is_err_and(FilesError::is_correctable), "{refused:?}");
        let (status, denial) = refusal(refused);
        assert_eq!((status, denial.layer), (Status::NeedsApproval, Layer::Approval));
        let reason = denial.reasons.last().expect("a reason");
        assert!(reason.because.contains("more than 64 KiB"), "{reason:?}");
        assert!(
            reason
                .instead
                .as_ref()
                .is_some_and(|instead| instead.contains("in several steps")),
            "{reason:?}"
        );
        assert!(approver.asked().is_empty() && !workspace.path("f0").exists());
        assert!(shieling.apply_patch(adding(6)).await.is_ok());
        let [question]: [Question; 1] = approver.asked().try_into().expect("one question");
        let change = question.change.expect("what changes");
        assert_eq!(change.matches("+a line of this file\n").count(), 6 * 450, "all of it");
    }
}
