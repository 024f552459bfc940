use std::time::Duration;

use shieling::outcome::{Denial, HeldBack, KilledProcess, Layer, LimitHit, LimitedResource, Status};
use shieling::policy::{Decision, Reason, Span};
use shieling::session::{AskHumanResponse, JobInfo, Listing, Screen, SessionInfo, SessionName, TerminalSize};

use super::*;
use crate::dialect::Dialect;
use crate::toolset::Offered;

fn of(status: Status) -> Outcome {
    Outcome {
        stdout: "out\n".to_owned(),
        stdout_bytes: 4,
        duration_ms: 1_234.0,
        session: Some("main".to_owned()),
        ..Outcome::blank(status, "/work/app", "sandbox")
    }
}

fn exited(code: i32, stdout: &str, stderr: &str) -> Outcome {
    Outcome {
        exit_code: Some(code),
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
        ..of(Status::Exited)
    }
}

fn refused(status: Status, layer: Layer, instead: Option<&str>) -> Outcome {
    Outcome {
        stdout: String::new(),
        denial: Some(Denial {
            layer,
            decision: Decision::Ask,
            reasons: vec![Reason {
                decision: Decision::Ask,
                rule: "team.toml:14 no-force".to_owned(),
                object: "git push --force \u{1b}[2K".to_owned(),
                span: Some(Span::new(0, 3)),
                because: "rewrites a shared branch".to_owned(),
                instead: instead.map(str::to_owned),
            }],
            retry_after_ms: (layer == Layer::Rate).then_some(2_500),
        }),
        ..of(status)
    }
}

fn busy() -> Outcome {
    let mut outcome = refused(Status::Denied, Layer::Environment, Some("the library's words"));
    for reason in outcome.denial.iter_mut().flat_map(|denial| &mut denial.reasons) {
        reason.rule = "session".to_owned();
        reason.object = "j3".to_owned();
        reason.because = "session `main` is busy: job `j3` runs `sleep 9` in it".to_owned();
    }
    outcome
}

/// Every status, and what else an outcome can say.
fn all() -> Vec<(&'static str, Outcome)> {
    let job = Some("j7".to_owned());
    vec![
        ("success", exited(0, "out\n", "")),
        ("success in silence", exited(0, "", "")),
        ("both streams", exited(0, "out", "a warning\n")),
        (
            "colours and a progress bar",
            exited(0, "\u{1b}[31mred\u{1b}[0m\n10%\r100%\n", ""),
        ),
        ("failure", exited(2, "out\n", "no such file\n")),
        ("failure in silence", exited(1, "", "")),
        (
            "signalled",
            Outcome {
                exit_code: Some(139),
                signal: Some(11),
                ..of(Status::Signalled)
            },
        ),
        (
            "timed out",
            Outcome {
                exit_code: Some(124),
                ended_processes: 2,
                ..of(Status::TimedOut)
            },
        ),
        ("out of memory", of(Status::OutOfMemory)),
        ("too much output", of(Status::OutputLimit)),
        (
            "still running",
            Outcome {
                job: job.clone(),
                ..of(Status::Running)
            },
        ),
        (
            "lost",
            Outcome {
                error: Some("the socket was closed".to_owned()),
                survivors: 1,
                ..of(Status::Lost)
            },
        ),
        (
            "failed",
            Outcome {
                stdout: String::new(),
                error: Some("no sandbox\nbecause  none".to_owned()),
                ..of(Status::Failed)
            },
        ),
        (
            "denied",
            refused(Status::Denied, Layer::Policy, Some("git push --force-with-lease")),
        ),
        ("refused by a person", refused(Status::Denied, Layer::Approval, None)),
        (
            "needs approval",
            refused(Status::NeedsApproval, Layer::Approval, Some("ask somebody")),
        ),
        ("busy", busy()),
        (
            "timed out, and its session with it",
            Outcome {
                exit_code: Some(124),
                ended_processes: 1,
                session_restarted: true,
                ..of(Status::TimedOut)
            },
        ),
        ("rate limited", refused(Status::RateLimited, Layer::Rate, None)),
        (
            "cut",
            Outcome {
                truncated: true,
                stdout_bytes: 5_000_000,
                output_id: Some("0123456789abcdef0123".to_owned()),
                ..exited(0, "a\n[... 4,999,996 bytes ...]\nb\n", "")
            },
        ),
        (
            "restarted",
            Outcome {
                session_restarted: true,
                ..exited(3, "", "")
            },
        ),
        (
            "left behind",
            Outcome {
                ended_processes: 1,
                survivors: 1,
                ..exited(0, "out\n", "")
            },
        ),
    ]
}

fn spoken_by(dialect: &str) -> CallContext {
    CallContext {
        offered: Offered::all(Dialect::named(dialect).expect("there is such a dialect")),
        workspace: "/work/app".into(),
        command: "git push --force".to_owned(),
        allowed: Duration::from_millis(1_000),
        job: "j7".to_owned(),
        alias: Some("build".to_owned()),
        background: false,
        own: false,
        more: None,
    }
}

fn outcomes(dialect: &str) -> String {
    let context = spoken_by(dialect);
    let told = all()
        .into_iter()
        .map(|(name, one)| format!("── {name}\n{}\n", outcome(&one, &context)));
    told.collect()
}

#[test]
fn what_was_held_back_is_told_in_every_voice() {
    let mut held = exited(0, "out\n", "");
    held.add_held_back(vec![HeldBack::new(
        ".vscode\u{1b}[2K",
        "it was not there",
        "it was moved to `.vscode.held-back`",
    )]);
    for dialect in ["default", "codex", "claude", "camel", "pydantic"] {
        let context = spoken_by(dialect);
        let view = ViewResponse {
            outcome: held.clone(),
            cursor: 40,
            missed_bytes: 0,
            command: "make serve".to_owned(),
            screen: None,
        };
        for text in [
            outcome(&held, &context),
            self::view(&view, &context),
            killed(&view, &context),
        ] {
            let told = text.lines().last().unwrap_or_default();
            assert!(
                told.starts_with("[held back: `.vscode") && told.contains("it was moved to `.vscode.held-back`"),
                "{dialect}: {text}"
            );
            assert!(!text.contains('\u{1b}'), "{dialect}: {text:?}");
        }
    }
}

fn views(dialect: &str) -> String {
    let context = spoken_by(dialect);
    let view = |outcome: Outcome| ViewResponse {
        outcome: Outcome {
            job: Some("j7".to_owned()),
            ..outcome
        },
        cursor: 40,
        missed_bytes: 0,
        command: "make serve".to_owned(),
        screen: None,
    };
    let running = |text: &str| Outcome {
        stdout: text.to_owned(),
        ..of(Status::Running)
    };
    let screen = Screen {
        size: TerminalSize::default(),
        text: "~\n~\nNORMAL\n\n".to_owned(),
        cursor: Some((0, 4)),
        alternate: true,
        title: "vim".to_owned(),
    };
    let mut text = String::new();
    for (name, one) in [
        ("running, with news", view(running("listening\n"))),
        ("running, silent", view(running(""))),
        (
            "older output is gone",
            ViewResponse {
                missed_bytes: 5_000,
                ..view(running("on\n"))
            },
        ),
        (
            "older output is kept as a whole",
            ViewResponse {
                missed_bytes: 5_000,
                ..view(Outcome {
                    output_id: Some("7f3c".to_owned()),
                    truncated: true,
                    ..running("on\n")
                })
            },
        ),
        (
            "much new output",
            view(Outcome {
                output_id: Some("7f3c".to_owned()),
                truncated: true,
                ..running("first\n[... 70000 bytes left out ...]\nlast\n")
            }),
        ),
        (
            "a screen",
            ViewResponse {
                screen: Some(screen),
                ..view(running("\u{1b}[H"))
            },
        ),
        ("ended", view(exited(0, "done\n", ""))),
        ("failed", view(exited(2, "", "oops\n"))),
        (
            "killed",
            view(Outcome {
                signal: Some(15),
                exit_code: Some(143),
                ..of(Status::Signalled)
            }),
        ),
    ] {
        text.push_str(&format!("── {name}\n{}\n", self::view(&one, &context)));
    }
    text.push_str(&format!(
        "── written, silent\n{}\n",
        written(&view(running("")), &context)
    ));
    let survived = view(Outcome {
        survivors: 2,
        signal: Some(9),
        ..of(Status::Signalled)
    });
    text.push_str(&format!("── shell_kill\n{}\n", killed(&survived, &context)));
    let kept = view(Outcome {
        signal: Some(15),
        output_id: Some("7f3c".to_owned()),
        ..of(Status::Signalled)
    });
    text.push_str(&format!(
        "── shell_kill, much was written before\n{}\n",
        killed(&kept, &context)
    ));
    text
}

#[test]
fn every_outcome_reads_as_its_dialect_has_it() {
    for dialect in Dialect::names() {
        insta::assert_snapshot!(format!("outcomes-{dialect}"), outcomes(dialect));
    }
}

#[test]
fn every_view_reads_as_its_dialect_has_it() {
    for dialect in ["default", "codex", "claude", "camel"] {
        insta::assert_snapshot!(format!("views-{dialect}"), views(dialect));
    }
}

#[test]
fn lists_and_answers_read_so() {
    let listed = Listing {
        sessions: vec![SessionInfo {
            session: SessionName::default(),
            cwd: "/work/app".into(),
            job: "j7".parse().ok(),
            restarts: 0,
            commands: 4,
            recording: None,
        }],
        jobs: vec![JobInfo {
            job: "j7".parse().expect("a name"),
            session: None,
            command: "make\nserve".to_owned(),
            status: Status::Running,
            exit_code: None,
            duration_ms: 3.0,
            output_bytes: 10,
            unseen_bytes: 4,
            terminal: false,
            person: false,
            recording: None,
        }],
    };
    let none = Listing {
        sessions: Vec::new(),
        jobs: Vec::new(),
    };
    let answers = [
        AskHumanResponse::Answer {
            text: "use port 81".to_owned(),
        },
        AskHumanResponse::TookOver {
            changed: vec!["it stands in /srv now".to_owned()],
        },
        AskHumanResponse::TookOver { changed: Vec::new() },
        AskHumanResponse::Declined,
        AskHumanResponse::Nobody,
    ];
    let answers: Vec<String> = answers.iter().map(answer).collect();
    let text = format!(
        "{}\n──\n{}\n──\n{}",
        listing(&listed),
        listing(&none),
        answers.join("\n")
    );
    insta::assert_snapshot!("lists", text);
}

#[test]
fn what_goes_on_is_typed_into_only_where_that_reaches_it() {
    let running = |session: Option<&str>, own: bool, dialect: &str| {
        let context = CallContext {
            own,
            ..spoken_by(dialect)
        };
        let shown = Outcome {
            job: Some("j7".to_owned()),
            session: session.map(str::to_owned),
            ..of(Status::Running)
        };
        plain::outcome(&shown, &context)
    };
    let typed = running(Some("main"), true, "default");
    assert!(typed.contains("`shell_write` types into it"), "{typed}");
    let in_session = running(Some("main"), false, "default");
    assert!(
        in_session.contains("`shell_write` with the key `C-c` breaks it off") && !in_session.contains("types"),
        "{in_session}"
    );
    let fresh = running(None, false, "default");
    assert!(
        !fresh.contains("shell_write") && fresh.contains("`shell_kill` ends it"),
        "{fresh}"
    );
    let without_keys = running(Some("main"), false, "codex");
    assert!(!without_keys.contains("write_stdin"), "{without_keys}");
}

#[test]
fn a_busy_session_names_the_tools_of_the_dialect_and_no_others() {
    for dialect in Dialect::names() {
        let said = outcome(&busy(), &spoken_by(dialect));
        assert!(
            said.starts_with("busy: ") && said.contains("nothing was started"),
            "{said}"
        );
        assert_eq!(said.contains("`shell_kill`"), dialect == "default", "{dialect}: {said}");
        assert!(!said.contains("the library's words"), "{said}");
    }
    let said = outcome(&busy(), &spoken_by("claude"));
    assert!(
        said.contains("`BashOutput`") && said.contains("`KillShell`") && !said.contains("`session`"),
        "{said}"
    );
}

#[test]
fn a_process_of_its_own_that_timed_out_says_nothing_of_a_session() {
    let context = CallContext {
        own: true,
        ..spoken_by("default")
    };
    let said = outcome(&of(Status::TimedOut), &context);
    assert!(said.contains("timed out") && !said.contains("session"), "{said}");
}

#[test]
fn a_limit_that_was_reached_is_told_in_every_voice_and_forges_no_line() {
    let hit = LimitHit {
        limit: LimitedResource::Memory,
        bound: 1 << 30,
        peak: Some(1 << 30),
        times: Some(1),
        killed: vec![KilledProcess {
            pid: 305,
            name: "java]\n[fine".to_owned(),
            bytes: 900 << 20,
        }],
        instead: "--memory 2GiB".to_owned(),
    };
    let pids = LimitHit {
        limit: LimitedResource::Pids,
        bound: 512,
        peak: None,
        times: None,
        killed: Vec::new(),
        instead: "--pids 1024".to_owned(),
    };
    let large = LimitHit {
        limit: LimitedResource::FileSize,
        bound: 3 << 20,
        instead: "--file-size 6MiB".to_owned(),
        ..pids.clone()
    };
    let done = Outcome {
        exit_code: Some(0),
        limits_hit: vec![hit, pids, large],
        ..of(Status::Exited)
    };
    for dialect in ["default", "codex", "claude", "camel", "pydantic"] {
        let said = outcome(&done, &spoken_by(dialect));
        for told in [
            "1 GiB",
            "java",
            "(pid 305)",
            "`--memory 2GiB`",
            "512",
            "`--pids 1024`",
            "3 MiB",
            "`--file-size 6MiB`",
        ] {
            assert!(said.contains(told), "{dialect}: {told}: {said}");
        }
        assert!(!said.contains("\n[fine"), "{dialect}: {said}");
    }
}
