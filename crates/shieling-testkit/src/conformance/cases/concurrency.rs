//! Concurrent calls.

use std::sync::Arc;

use shieling::Shieling;
use shieling::environment::Ability;
use shieling::files::WriteRequest;
use shieling::outcome::Outcome;
use shieling::policy::Policy;
use tokio::task::JoinSet;

use crate::conformance::CheckFailure;
use crate::conformance::case::{Case, Need, check, writes};
use crate::conformance::context::Context;
use crate::conformance::expect::{DescribeError as _, holds, same};

/// Returns the results of texts that run concurrently.
async fn together(context: &Context, texts: Vec<String>) -> Result<Vec<Outcome>, CheckFailure> {
    let mut tasks = JoinSet::new();
    for (number, text) in texts.into_iter().enumerate() {
        let (shieling, command) = (Arc::clone(&context.shieling), context.command(&text));
        tasks.spawn(async move { (number, shieling.run(command, None).await) });
    }
    let mut outcomes = Vec::new();
    while let Some(done) = tasks.join_next().await {
        outcomes.push(done.map_err(|error| CheckFailure::new("no panic", error.to_string()))?);
    }
    outcomes.sort_by_key(|(number, _)| *number);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        check(
            "twenty commands are the first at once, and each has its own output",
            |context| {
                Box::pin(async move {
                    let texts = (0..20).map(|number| format!("i=0; while [ $i -lt 50 ]; do echo {number}; echo e{number} >&2; i=$((i+1)); done; exit {number}")).collect();
                    for (number, outcome) in together(context, texts).await?.iter().enumerate() {
                        let code = i32::try_from(number).unwrap_or(-1);
                        let whole = outcome.stdout == format!("{number}\n").repeat(50)
                            && outcome.stderr == format!("e{number}\n").repeat(50);
                        holds(
                            &format!("50 lines of {number}, and {number}"),
                            whole && outcome.exit_code == Some(code),
                            &outcome.described(),
                        )?;
                    }
                    Ok(())
                })
            },
        ),
        check("twenty commands that leave processes behind leave none", |context| {
            Box::pin(async move {
                let texts = (0..20)
                    .map(|number| format!("(sh -c 'sleep 5{number}; :' &); sleep 60 & echo {number}"))
                    .collect();
                for outcome in together(context, texts).await? {
                    same("survivors", outcome.survivors, 0)?;
                }
                context.nobody_left().await
            })
        })
        .needs([Need::Can(Ability::Processes)]),
        check("commands that run at once run at once", |context| {
            Box::pin(async move {
                // Each waits for the others, so running them one after the other would take forever.
                let texts = (0..5)
                    .map(|number| {
                        format!(": > b{number}; while [ \"$(echo b*)\" != 'b0 b1 b2 b3 b4' ]; do sleep 0.02; done")
                    })
                    .collect();
                for outcome in together(context, texts).await? {
                    holds("each ends", outcome.exit_code == Some(0), &outcome.described())?;
                }
                Ok(())
            })
        })
        .needs([Need::Can(Ability::Jobs)])
        .programs(&["sleep"]),
        check("a command that ends ends no other", |context| {
            Box::pin(async move {
                let texts = vec![
                    "sleep 1; echo whole".to_owned(),
                    "exit 3".to_owned(),
                    "sleep 50 & kill -9 $$".to_owned(),
                ];
                let outcomes = together(context, texts).await?;
                same(
                    "the first",
                    outcomes.first().map(|outcome| outcome.stdout.clone()),
                    Some("whole\n".to_owned()),
                )
            })
        })
        .needs([Need::Can(Ability::Processes)]),
        check(
            "two façades over one environment do not disturb each other",
            |context| {
                Box::pin(async move {
                    let environment = Arc::clone(context.shieling.environment());
                    let other = Shieling::builder(environment, Policy::open(), context.workspace())
                        .approval(shieling::approval::Mode::Never)
                        .build()
                        .map_err(|error| CheckFailure::new("a second façade", error.to_string()))?;
                    let (one, two) = tokio::join!(
                        context.shieling.run(context.command("sleep 0.2; echo one"), None),
                        other.run(context.command("sleep 0.2; echo two"), None)
                    );
                    same(
                        "each",
                        (one.stdout, two.stdout),
                        ("one\n".to_owned(), "two\n".to_owned()),
                    )
                })
            },
        )
        .programs(&["sleep"]),
        writes(
            "ten files are the first to be written at once, and all are there",
            |context| {
                Box::pin(async move {
                    let mut tasks = JoinSet::new();
                    for number in 0..10 {
                        let shieling = Arc::clone(&context.shieling);
                        let ask = shieling::files::FileRequest::Write(WriteRequest::new(
                            format!("d/f{number}"),
                            format!("{number}"),
                        ));
                        tasks.spawn(async move { shieling.file(ask).await.err() });
                    }
                    let refused: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
                    holds("all are written", refused.is_empty(), &format!("{refused:?}"))?;
                    for number in 0..10 {
                        same(
                            "a text",
                            context.text(format!("d/f{number}")).await?,
                            number.to_string(),
                        )?;
                    }
                    Ok(())
                })
            },
        ),
        writes("a file that ten write at once is one of theirs, whole", |context| {
            Box::pin(async move {
                let mut tasks = JoinSet::new();
                for number in 0..10 {
                    let shieling = Arc::clone(&context.shieling);
                    let ask = shieling::files::FileRequest::Write(WriteRequest::new(
                        "f",
                        format!("{number}\n").repeat(5_000),
                    ));
                    tasks.spawn(async move { shieling.file(ask).await.is_ok() });
                }
                tasks.join_all().await;
                let text = context.text("f").await?;
                let first = text.lines().next().unwrap_or_default().to_owned();
                holds("one of theirs", text.lines().all(|line| line == first), &text)?;
                same("its size", context.read("f").await?.size, 10_000)?;
                same("what is there", context.names(".").await?, vec!["f".to_owned()])
            })
        }),
        writes("of ten who make the same new file one has made it", |context| {
            Box::pin(async move {
                let mut tasks = JoinSet::new();
                for number in 0..10 {
                    let shieling = Arc::clone(&context.shieling);
                    let ask = WriteRequest {
                        create_only: true,
                        ..WriteRequest::new("f", format!("{number}"))
                    };
                    tasks.spawn(async move { shieling.file(shieling::files::FileRequest::Write(ask)).await.is_ok() });
                }
                let made = tasks.join_all().await.into_iter().filter(|made| *made).count();
                same("who made it", made, 1)
            })
        }),
        writes(
            "of ten who change the same state of a file one has changed it",
            |context| {
                Box::pin(async move {
                    let state = context.read("f").await?.hash;
                    let mut tasks = JoinSet::new();
                    for number in 0..10 {
                        let shieling = Arc::clone(&context.shieling);
                        let ask = WriteRequest {
                            expect: Some(state.clone()),
                            ..WriteRequest::new("f", format!("by {number}\n"))
                        };
                        tasks.spawn(
                            async move { shieling.file(shieling::files::FileRequest::Write(ask)).await.is_ok() },
                        );
                    }
                    let changed = tasks.join_all().await.into_iter().filter(|changed| *changed).count();
                    same("who changed it", changed, 1)
                })
            },
        )
        .file("f", "old\n"),
    ]
}
