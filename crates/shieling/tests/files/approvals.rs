//! Who is asked before files change, and what a yes covers.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shieling::approval::{Answer, ApproverFn, GrantLimits, Mode, Question, Scope};
use shieling::files::{EditRequest, ReadRequest, WriteRequest};
use shieling::outcome::{Layer, Status};
use shieling::policy::Policy;
use shieling::request::{Command, RequestKind};
use shieling_testkit::{ScriptedApprover, Workspace};

use crate::place::{BOTH, In, content, refusal, text};

fn limits() -> GrantLimits {
    GrantLimits {
        uses: NonZeroU32::new(100).expect("more than 0"),
        ..GrantLimits::default()
    }
}

fn yes() -> Answer {
    Answer::Yes(Scope::Once)
}

#[tokio::test]
async fn reading_asks_nobody_in_any_mode_and_writing_as_the_mode_says() {
    for here in BOTH {
        for (mode, questions, written) in [(Mode::Always, 1, true), (Mode::OnAsk, 0, true), (Mode::Never, 0, true)] {
            let workspace = Workspace::new().with("a", "old\n");
            let approver = ScriptedApprover::new([yes()]);
            let shieling = here
                .builder(&workspace, Policy::open())
                .approval(mode)
                .approver(approver.clone())
                .build()
                .expect("it serves no other policy");
            assert!(text(&shieling, "a").await.is_ok());
            assert!(approver.asked().is_empty());
            assert_eq!(
                shieling.write_file(WriteRequest::new("a", "new\n")).await.is_ok(),
                written,
                "{here:?} {mode:?}"
            );
            assert_eq!(approver.asked().len(), questions, "{here:?} {mode:?}");
        }
    }
}

#[tokio::test]
async fn whoever_is_asked_sees_the_operation_and_its_change() {
    let workspace = Workspace::new().with("src/a.txt", "one\ntwo\n");
    let approver = ScriptedApprover::new([yes()]);
    let shieling = In::Local
        .builder(&workspace, Policy::open())
        .approval(Mode::Always)
        .approver(approver.clone())
        .build()
        .expect("it serves no other policy");
    shieling
        .edit_file(EditRequest::new("src/a.txt", "two", "three"))
        .await
        .expect("yes");
    let question = &approver.asked()[0];
    assert_eq!(
        (question.kind, question.text.as_str()),
        (RequestKind::Files, "edit_file src/a.txt")
    );
    let change = question.change.as_deref().expect("a diff");
    assert!(change.contains("-two\n+three"), "{change}");
    assert_eq!(question.cwd, workspace.root());
}

#[tokio::test]
async fn required_approvals_ask_whatever_the_mode_and_nobody_there_is_a_no() {
    for mode in [Mode::Always, Mode::OnAsk, Mode::Never] {
        let workspace = Workspace::new().with("a", "old\n");
        let builder = || In::Local.builder(&workspace, Policy::open()).approval(mode);

        let shieling = builder()
            .require_write_approval(true)
            .build()
            .expect("it serves no other policy");
        let (status, denial) = refusal(shieling.write_file(WriteRequest::new("a", "new\n")).await);
        assert_eq!(
            (status, denial.layer),
            (Status::NeedsApproval, Layer::Approval),
            "{mode:?}"
        );
        assert_eq!(content(&workspace, "a"), "old\n");
        assert!(text(&shieling, "a").await.is_ok(), "reading is not writing");

        let shieling = builder()
            .require_shell_approval(true)
            .build()
            .expect("it serves no other policy");
        let command = Command::new("echo ran > a", workspace.root()).expect("a command");
        let outcome = shieling.run(command, None).await;
        assert_eq!(outcome.status, Status::NeedsApproval, "{mode:?}: {outcome:?}");
        assert_eq!(content(&workspace, "a"), "old\n");
    }
    let workspace = Workspace::new();
    let approver = ScriptedApprover::new([yes(), yes()]);
    let shieling = In::Local
        .builder(&workspace, Policy::open())
        .require_write_approval(true)
        .require_shell_approval(true)
        .approver(approver.clone())
        .build()
        .expect("it serves no other policy");
    shieling.write_file(WriteRequest::new("a", "new\n")).await.expect("yes");
    let command = Command::new("cat a", workspace.root()).expect("a command");
    assert_eq!(shieling.run(command, None).await.stdout, "new\n");
    assert_eq!(approver.asked().len(), 2);
    assert!(
        approver.asked()[0].verdict.reasons[0]
            .because
            .contains("every change of files")
    );
}

#[tokio::test]
async fn a_yes_to_a_command_covers_no_change_of_files_and_the_other_way_round() {
    let prefix = |words: &str| Scope::Prefix(words.split(' ').map(str::to_owned).collect(), limits());
    for scope in [
        Scope::Exact(limits()),
        Scope::Session(limits()),
        prefix("write_file"),
        prefix("write_file a"),
    ] {
        for files_first in [false, true] {
            let workspace = Workspace::new();
            let approver = ScriptedApprover::new([Answer::Yes(scope.clone())]);
            let shieling = In::Local
                .builder(&workspace, Policy::open())
                .approval(Mode::Always)
                .approver(approver.clone())
                .build()
                .expect("it serves no other policy");
            let command = || Command::new("write_file a", workspace.root()).expect("a command");
            let run = || shieling.run(command(), None);
            let write_it = || shieling.write_file(WriteRequest::new("a", "new\n"));
            if files_first {
                write_it().await.expect("yes");
                let outcome = run().await;
                assert_eq!(outcome.status, Status::NeedsApproval, "{scope:?}");
            } else {
                assert_eq!(run().await.exit_code, Some(127), "it ran, and there is no such program");
                let (status, _) = refusal(write_it().await);
                assert_eq!(status, Status::NeedsApproval, "{scope:?}");
                assert!(!workspace.path("a").exists());
            }
            assert_eq!(approver.asked().len(), 2, "{scope:?}");
        }
    }
}

#[tokio::test]
async fn how_far_a_yes_to_a_change_goes() {
    let cases = [
        // the yes, the same change again, another file, what is asked about by a rule besides
        (Scope::Once, false, false, false),
        (Scope::Exact(limits()), true, false, false),
        (
            Scope::Prefix(vec!["write_file".to_owned()], limits()),
            false,
            false,
            false,
        ),
        (Scope::Session(limits()), true, true, false),
    ];
    for (scope, again, another, protected) in cases {
        let workspace = Workspace::new().with(".git/HEAD", "ref: refs/heads/main\n");
        let approver = ScriptedApprover::new([Answer::Yes(scope.clone())]);
        let shieling = In::Local
            .builder(&workspace, Policy::open())
            .approval(Mode::Always)
            .approver(approver)
            .build()
            .expect("it serves no other policy");
        let make = async |path: &str| {
            std::fs::remove_file(workspace.path(path)).ok();
            shieling.write_file(WriteRequest::new(path, "x")).await.is_ok()
        };
        assert!(make("a").await, "{scope:?}");
        assert_eq!(make("a").await, again, "{scope:?}");
        assert_eq!(make("b").await, another, "{scope:?}");
        assert_eq!(make(".git/hooks/pre-commit").await, protected, "{scope:?}");
    }
}

#[tokio::test]
async fn another_content_is_another_question() {
    let workspace = Workspace::new();
    let approver = ScriptedApprover::new([Answer::Yes(Scope::Exact(limits()))]);
    let shieling = In::Local
        .builder(&workspace, Policy::open())
        .approval(Mode::Always)
        .approver(approver)
        .build()
        .expect("it serves no other policy");
    shieling.write_file(WriteRequest::new("a", "one")).await.expect("yes");
    std::fs::remove_file(workspace.path("a")).expect("it was made");
    shieling
        .write_file(WriteRequest::new("a", "one"))
        .await
        .expect("the same again");
    std::fs::remove_file(workspace.path("a")).expect("it was made");
    refusal(shieling.write_file(WriteRequest::new("a", "two")).await);
}

#[tokio::test]
async fn a_file_that_changed_between_question_and_yes_is_asked_about_again_three_times_at_most() {
    let workspace = Arc::new(Workspace::new().with("a", "old 0\n"));
    let (changed, count) = (Arc::clone(&workspace), std::sync::atomic::AtomicUsize::new(1));
    let approver = ScriptedApprover::with_meanwhile([yes(), yes(), yes(), yes()], move || {
        let round = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        changed.write("a", &format!("old {round}\n"));
    });
    let shieling = In::Local
        .builder(&workspace, Policy::open())
        .approval(Mode::Always)
        .approver(approver.clone())
        .build()
        .expect("it serves no other policy");
    let error = shieling
        .edit_file(EditRequest::new("a", "old", "new"))
        .await
        .expect_err("it never stood still");
    assert!(error.to_string().contains("changed"), "{error}");
    assert_eq!(approver.asked().len(), 3);
    assert_eq!(content(&workspace, "a"), "old 3\n", "nothing of ours was written");
    let shown: Vec<_> = approver
        .asked()
        .iter()
        .map(|question| question.change.clone().expect("a diff"))
        .collect();
    assert!(
        shown[1].contains("-old 1") && shown[2].contains("-old 2"),
        "each shows what is there: {shown:?}"
    );

    let once = Arc::new(Workspace::new().with("a", "old\n"));
    let (changed, first) = (Arc::clone(&once), std::sync::atomic::AtomicBool::new(true));
    let approver = ScriptedApprover::with_meanwhile([yes(), yes()], move || {
        if first.swap(false, std::sync::atomic::Ordering::Relaxed) {
            changed.write("a", "above\nold\n");
        }
    });
    let shieling = In::Local
        .builder(&once, Policy::open())
        .approval(Mode::Always)
        .approver(approver)
        .build()
        .expect("it serves no other policy");
    shieling
        .edit_file(EditRequest::new("a", "old", "new"))
        .await
        .expect("the second yes holds");
    assert_eq!(content(&once, "a"), "above\nnew\n");
}

#[tokio::test]
async fn a_rate_limit_counts_commands_only() {
    let workspace = Workspace::new().with("a", "old\n");
    let shieling = In::Local
        .builder(&workspace, Policy::open())
        .rate("1/60,1/600".parse().expect("a limit"))
        .build()
        .expect("it serves no other policy");
    for _ in 0..5 {
        shieling
            .read_file(ReadRequest::new("a"))
            .await
            .expect("no limit for files");
        shieling
            .write_file(WriteRequest::new("a", "new"))
            .await
            .expect("no limit for files");
    }
    let command = || Command::new("true", workspace.root()).expect("a command");
    assert_eq!(shieling.run(command(), None).await.status, Status::Exited);
    assert_eq!(shieling.run(command(), None).await.status, Status::RateLimited);
}

#[tokio::test]
async fn a_yes_covers_the_place_that_was_shown_and_not_where_its_directory_went_meanwhile() {
    for here in BOTH {
        for outside in [false, true] {
            for (kind, ask) in crate::place::changes("d/f").into_iter().enumerate() {
                let (workspace, other) = (Workspace::new().with("d/f", "old\n"), Workspace::new());
                let moved = if outside {
                    other.path("d")
                } else {
                    workspace.path("moved")
                };
                let from = workspace.path("d");
                let (to, asked) = (moved.clone(), Arc::new(AtomicUsize::new(0)));
                let counted = Arc::clone(&asked);
                let approver = Arc::new(ApproverFn(move |_: &Question| {
                    if counted.fetch_add(1, Ordering::Relaxed) == 0 {
                        std::fs::rename(&from, &to).expect("temporary directories are beside each other");
                    }
                    yes()
                }));
                let shieling = here.builder(&workspace, Policy::open()).approval(Mode::Always);
                let shieling = shieling.approver(approver).build().expect("it serves no other policy");
                let answer = shieling.file(ask).await;
                let label = format!("{here:?} {kind} outside: {outside}: {answer:?}");
                let content = std::fs::read_to_string(moved.join("f")).expect("it has moved along");
                assert_eq!(content, "old\n", "{label}");
                assert_eq!(std::fs::read_dir(&moved).expect("there").count(), 1, "{label}");
                // A whole file is written where it was to be, once that was asked about, too; whatever was
                // to happen to the one that is gone is told that it is.
                let written = std::fs::read_to_string(workspace.path("d/f")).ok();
                let expected = (kind == 0).then(|| "new\n".to_owned());
                assert_eq!(written, expected, "{label}");
                assert_eq!(answer.is_ok(), kind == 0, "{label}");
                assert_eq!(asked.load(Ordering::Relaxed), if kind == 0 { 2 } else { 1 }, "{label}");
                assert!(!workspace.path("elsewhere").exists(), "{label}");
            }
        }
    }
}
