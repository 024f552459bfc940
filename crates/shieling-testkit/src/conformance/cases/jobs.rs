//! Background jobs.

use std::time::Duration;

use shieling::environment::Ability;
use shieling::outcome::Status;
use shieling::session::{JobError, JobId, JobInput, TerminalSize, Until, ViewRequest, WaitFor};

use crate::conformance::case::{Case, Check, Need, check};
use crate::conformance::context::Context;
use crate::conformance::expect::{DescribeError as _, holds, refused, same};

/// The timeout for events.
const SOON: Duration = Duration::from_secs(20);

fn jobs(name: &'static str, what: Check) -> Case {
    check(name, what).needs([Need::Can(Ability::Jobs), Need::Can(Ability::Sessions)])
}

fn typed(text: &str) -> JobInput {
    JobInput {
        text: text.to_owned(),
        keys: Vec::new(),
        enter: true,
    }
}

fn nothing() -> JobId {
    "nothing".parse().expect("a good name")
}

/// Waits until a job has no more output.
async fn ended(context: &Context, text: &str) -> Result<JobId, crate::conformance::CheckFailure> {
    let job = context.job(text).await?;
    context.shieling.wait_for(&job, WaitFor::Exit, SOON).await?;
    Ok(job)
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        jobs(
            "a job is told to run while it does, and how it ended afterwards",
            |context| {
                Box::pin(async move {
                    let job = context.job("sleep 0.3; echo done; exit 4").await?;
                    let view = context.shieling.peek(ViewRequest::new(job.clone())).await?;
                    same("at first", view.outcome.status, Status::Running)?;
                    let (over, view) = context.shieling.wait_for(&job, WaitFor::Exit, SOON).await?;
                    same("it ends", over, true)?;
                    same(
                        "how",
                        (view.outcome.status, view.outcome.exit_code),
                        (Status::Exited, Some(4)),
                    )?;
                    same("what it said", view.outcome.stdout, "done\n")
                })
            },
        )
        .programs(&["sleep"]),
        jobs("a view shows what is new, once", |context| {
            Box::pin(async move {
                let job = ended(context, "echo out; echo err >&2").await?;
                let first = context
                    .shieling
                    .view(ViewRequest {
                        cursor: Some(0),
                        ..ViewRequest::new(job.clone())
                    })
                    .await?;
                same(
                    "from the start",
                    (first.outcome.stdout, first.outcome.stderr),
                    ("out\n".to_owned(), "err\n".to_owned()),
                )?;
                let next = context.shieling.view(ViewRequest::new(job)).await?;
                same(
                    "new",
                    (next.outcome.stdout, next.outcome.stderr),
                    (String::new(), String::new()),
                )
            })
        }),
        jobs(
            "a view from a cursor shows the same again, and leads to the end",
            |context| {
                Box::pin(async move {
                    let job = ended(context, "seq 1 1000").await?;
                    let mut whole = String::new();
                    let mut from = 0;
                    for _ in 0..100 {
                        let ask = ViewRequest {
                            cursor: Some(from),
                            ..ViewRequest::new(job.clone())
                        };
                        let (view, again) = (
                            context.shieling.view(ask.clone()).await?,
                            context.shieling.view(ask).await?,
                        );
                        same("the same again", &view.outcome.stdout, &again.outcome.stdout)?;
                        if view.cursor == from {
                            break;
                        }
                        from = view.cursor;
                        whole.push_str(&view.outcome.stdout);
                    }
                    let lines: String = (1..=1000).map(|number| format!("{number}\n")).collect();
                    holds("all of it", whole == lines, &format!("{} bytes", whole.len()))
                })
            },
        )
        .programs(&["seq"]),
        jobs("a view waits for output, and no longer than it is told to", |context| {
            Box::pin(async move {
                let job = context.job("sleep 0.5; echo came; sleep 50").await?;
                let ask = ViewRequest {
                    wait: SOON,
                    until: Until::Quiet,
                    ..ViewRequest::new(job.clone())
                };
                same("what came", context.shieling.view(ask).await?.outcome.stdout, "came\n")?;
                let ask = ViewRequest {
                    wait: Duration::from_millis(200),
                    until: Until::Exit,
                    ..ViewRequest::new(job)
                };
                same(
                    "still",
                    context.shieling.view(ask).await?.outcome.status,
                    Status::Running,
                )
            })
        })
        .programs(&["sleep"]),
        jobs("what is written to a job is what it reads", |context| {
            Box::pin(async move {
                let job = context.job("while read -r line; do echo \"[$line]\"; done").await?;
                let view = context.shieling.write(&job, typed("a  \\b ü"), SOON).await?;
                same("its answer", view.outcome.stdout, "[a  \\b ü]\n")?;
                let view = context.shieling.write(&job, typed("again"), SOON).await?;
                same("its next answer", view.outcome.stdout, "[again]\n")
            })
        })
        .needs([Need::Can(Ability::Input)]),
        jobs("a job that is killed is over, with all that it started", |context| {
            Box::pin(async move {
                let job = context.job("sleep 50 & (setsid sleep 51 &); echo on; sleep 52").await?;
                context
                    .shieling
                    .wait_for(&job, WaitFor::Pattern("on".to_owned()), SOON)
                    .await?;
                let view = context.shieling.kill(&job).await?;
                holds(
                    "it does not run",
                    view.outcome.status != Status::Running,
                    &view.outcome.described(),
                )?;
                same("survivors", view.outcome.survivors, 0)?;
                same("processes", context.left(), Vec::<u32>::new())
            })
        })
        .programs(&["sleep"]),
        jobs(
            "a job that is killed twice is told to have ended as it did",
            |context| {
                Box::pin(async move {
                    let job = ended(context, "exit 6").await?;
                    for _ in 0..2 {
                        let view = context.shieling.kill(&job).await?;
                        same(
                            "how",
                            (view.outcome.status, view.outcome.exit_code),
                            (Status::Exited, Some(6)),
                        )?;
                    }
                    Ok(())
                })
            },
        ),
        jobs("jobs are listed, oldest first", |context| {
            Box::pin(async move {
                let (first, second) = (ended(context, "echo 1").await?, context.job("sleep 50").await?);
                let jobs = context.shieling.list().jobs;
                let listed: Vec<_> = jobs.iter().map(|job| (job.job.clone(), job.status)).collect();
                same(
                    "the list",
                    listed,
                    vec![(first, Status::Exited), (second, Status::Running)],
                )
            })
        })
        .programs(&["sleep"]),
        jobs(
            "a job that there is not is told, with those that there are",
            |context| {
                Box::pin(async move {
                    let job = ended(context, "echo 1").await?;
                    let known =
                        |error: &JobError| matches!(error, JobError::Unknown { known, .. } if *known == [job.clone()]);
                    refused(
                        "`Unknown` of a view",
                        context.shieling.view(ViewRequest::new(nothing())).await,
                        known,
                    )?;
                    refused("`Unknown` of a kill", context.shieling.kill(&nothing()).await, known)?;
                    refused(
                        "`Unknown` of a write",
                        context.shieling.write(&nothing(), typed("x"), SOON).await,
                        known,
                    )
                })
            },
        ),
        jobs("nothing is written to a job that has ended", |context| {
            Box::pin(async move {
                let job = ended(context, "exit 2").await?;
                let written = context.shieling.write(&job, typed("x"), SOON).await;
                refused("`Ended`", written, |error| matches!(error, JobError::Ended { .. }))
            })
        }),
        jobs(
            "a command whose time is over goes on as a job, if that is wanted",
            |context| {
                Box::pin(async move {
                    let call = context.within("echo a; sleep 3; echo b", 400);
                    let outcome = context.session().run(call).await;
                    same(
                        "so far",
                        (outcome.status, outcome.stdout.as_str()),
                        (Status::Running, "a\n"),
                    )?;
                    let job: JobId = outcome
                        .job
                        .as_deref()
                        .and_then(|job| job.parse().ok())
                        .unwrap_or_else(nothing);
                    let (over, view) = context.shieling.wait_for(&job, WaitFor::Exit, SOON).await?;
                    same("it ends", (over, view.outcome.stdout), (true, "b\n".to_owned()))
                })
            },
        )
        .programs(&["sleep"]),
        jobs("a pattern in the output is waited for", |context| {
            Box::pin(async move {
                let job = context.job("sleep 0.2; echo listening on 80; sleep 50").await?;
                let (came, _) = context
                    .shieling
                    .wait_for(&job, WaitFor::Pattern(r"on \d+".to_owned()), SOON)
                    .await?;
                same("it came", came, true)?;
                let bad = context
                    .shieling
                    .wait_for(&job, WaitFor::Pattern("(".to_owned()), SOON)
                    .await;
                refused("`Pattern`", bad, |error| matches!(error, JobError::Pattern(_)))
            })
        })
        .programs(&["sleep"]),
        jobs("a call with the name of a job starts nothing again", |context| {
            Box::pin(async move {
                let name: JobId = "mine".parse().expect("a good name");
                let call = || context.call("echo x >> made; sleep 50").with_id(name.clone());
                let job = context.started(call()).await?;
                same("its name", job.to_string(), "mine")?;
                same("once more", context.started(call()).await?, job)?;
                context.appears("made").await?;
                same("what it made", context.says("cat made").await?, "x\n")
            })
        })
        .programs(&["sleep", "cat"]),
        jobs("a job starts where its session stands", |context| {
            Box::pin(async move {
                context.shell("cd d; export V=value").await;
                let started = context.session().start(context.call("pwd -P; echo $V")).await;
                let job = Context::job_of(&started)?;
                let (_, view) = context.shieling.wait_for(&job, WaitFor::Exit, SOON).await?;
                same(
                    "where and with what",
                    view.outcome.stdout,
                    format!("{}\nvalue\n", context.path("d").display()),
                )
            })
        })
        .file("d/f", ""),
        jobs("a job on a terminal has one, of its size", |context| {
            Box::pin(async move {
                let call = context
                    .call("test -t 0 && test -t 1 && stty size; sleep 50")
                    .with_terminal(TerminalSize { rows: 7, columns: 33 });
                let job = context.started(call).await?;
                let (came, view) = context
                    .shieling
                    .wait_for(&job, WaitFor::Pattern("7 33".to_owned()), SOON)
                    .await?;
                holds("`7 33`", came, &view.outcome.described())
            })
        })
        .needs([Need::Can(Ability::Terminals)])
        .programs(&["stty", "sleep"]),
        jobs("keys reach a program on a terminal", |context| {
            Box::pin(async move {
                let call = context
                    .call("echo ready; sleep 50; echo no")
                    .with_terminal(TerminalSize::default());
                let job = context.started(call).await?;
                context
                    .shieling
                    .wait_for(&job, WaitFor::Pattern("ready".to_owned()), SOON)
                    .await?;
                let keys = JobInput {
                    keys: vec!["C-c".to_owned()],
                    ..JobInput::default()
                };
                context.shieling.write(&job, keys, Duration::from_millis(100)).await?;
                let (over, view) = context.shieling.wait_for(&job, WaitFor::Exit, SOON).await?;
                same("it ends", over, true)?;
                same("by its signal", view.outcome.exit_code, Some(130))
            })
        })
        .needs([Need::Can(Ability::Terminals)])
        .programs(&["sleep"]),
        jobs("the screen of a terminal is what a person would see", |context| {
            Box::pin(async move {
                let call = context
                    .call("printf 'one\\ntwo\\033[1;1HONE'; sleep 50")
                    .with_terminal(TerminalSize::default());
                let job = context.started(call).await?;
                context
                    .shieling
                    .wait_for(&job, WaitFor::Pattern("ONE".to_owned()), SOON)
                    .await?;
                let view = context
                    .shieling
                    .view(ViewRequest {
                        screen: true,
                        ..ViewRequest::new(job)
                    })
                    .await?;
                let text = view.screen.map(|screen| screen.text).unwrap_or_default();
                holds("`ONE` above `two`", text.starts_with("ONE\ntwo"), &format!("{text:?}"))
            })
        })
        .needs([Need::Can(Ability::Terminals)])
        .programs(&["sleep"]),
    ]
}
