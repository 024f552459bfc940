//! Many at once.

use std::sync::Arc;

use shieling::Shieling;
use shieling::environment::Ability;
use shieling::files::WriteAsk;
use shieling::outcome::Outcome;
use shieling::policy::Policy;
use tokio::task::JoinSet;

use crate::conformance::Wrong;
use crate::conformance::at::At;
use crate::conformance::case::{Case, Need, check, writes};
use crate::conformance::expect::{Tells as _, holds, same};

/// What each of these texts comes to, run at once.
async fn together(at: &At, texts: Vec<String>) -> Result<Vec<Outcome>, Wrong> {
    let mut tasks = JoinSet::new();
    for (number, text) in texts.into_iter().enumerate() {
        let (shieling, command) = (Arc::clone(&at.shieling), at.command(&text));
        tasks.spawn(async move { (number, shieling.run(command, None).await) });
    }
    let mut outcomes = Vec::new();
    while let Some(done) = tasks.join_next().await {
        outcomes.push(done.map_err(|error| Wrong::new("no panic", error.to_string()))?);
    }
    outcomes.sort_by_key(|(number, _)| *number);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        check(
            "twenty commands are the first at once, and each has its own output",
            |at| {
                Box::pin(async move {
                    let texts = (0..20).map(|number| format!("i=0; while [ $i -lt 50 ]; do echo {number}; echo e{number} >&2; i=$((i+1)); done; exit {number}")).collect();
                    for (number, outcome) in together(at, texts).await?.iter().enumerate() {
                        let code = i32::try_from(number).unwrap_or(-1);
                        let whole = outcome.stdout == format!("{number}\n").repeat(50)
                            && outcome.stderr == format!("e{number}\n").repeat(50);
                        holds(
                            &format!("50 lines of {number}, and {number}"),
                            whole && outcome.exit_code == Some(code),
                            &outcome.tells(),
                        )?;
                    }
                    Ok(())
                })
            },
        ),
        check("twenty commands that leave processes behind leave none", |at| {
            Box::pin(async move {
                let texts = (0..20)
                    .map(|number| format!("(sh -c 'sleep 5{number}; :' &); sleep 60 & echo {number}"))
                    .collect();
                for outcome in together(at, texts).await? {
                    same("survivors", outcome.survivors, 0)?;
                }
                at.nobody_left().await
            })
        })
        .needs([Need::Can(Ability::Processes)]),
        check("commands that run at once run at once", |at| {
            Box::pin(async move {
                // Each waits for the others: one after the other they would wait for ever.
                let texts = (0..5)
                    .map(|number| {
                        format!(": > b{number}; while [ \"$(echo b*)\" != 'b0 b1 b2 b3 b4' ]; do sleep 0.02; done")
                    })
                    .collect();
                for outcome in together(at, texts).await? {
                    holds("each ends", outcome.exit_code == Some(0), &outcome.tells())?;
                }
                Ok(())
            })
        })
        .needs([Need::Can(Ability::Jobs)])
        .programs(&["sleep"]),
        check("a command that ends ends no other", |at| {
            Box::pin(async move {
                let texts = vec![
                    "sleep 1; echo whole".to_owned(),
                    "exit 3".to_owned(),
                    "sleep 50 & kill -9 $$".to_owned(),
                ];
                let outcomes = together(at, texts).await?;
                same(
                    "the first",
                    outcomes.first().map(|outcome| outcome.stdout.clone()),
                    Some("whole\n".to_owned()),
                )
            })
        })
        .needs([Need::Can(Ability::Processes)]),
        check("two façades over one environment do not disturb each other", |at| {
            Box::pin(async move {
                let environment = Arc::clone(at.shieling.environment());
                let other = Shieling::builder(environment, Policy::open(), at.workspace())
                    .approval(shieling::approval::Mode::Never)
                    .build()
                    .map_err(|error| Wrong::new("a second façade", error.to_string()))?;
                let (one, two) = tokio::join!(
                    at.shieling.run(at.command("sleep 0.2; echo one"), None),
                    other.run(at.command("sleep 0.2; echo two"), None)
                );
                same(
                    "each",
                    (one.stdout, two.stdout),
                    ("one\n".to_owned(), "two\n".to_owned()),
                )
            })
        })
        .programs(&["sleep"]),
        writes(
            "ten files are the first to be written at once, and all are there",
            |at| {
                Box::pin(async move {
                    let mut tasks = JoinSet::new();
                    for number in 0..10 {
                        let shieling = Arc::clone(&at.shieling);
                        let ask =
                            shieling::files::FileAsk::Write(WriteAsk::new(format!("d/f{number}"), format!("{number}")));
                        tasks.spawn(async move { shieling.file(ask).await.err() });
                    }
                    let refused: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
                    holds("all are written", refused.is_empty(), &format!("{refused:?}"))?;
                    for number in 0..10 {
                        same("a text", at.text(format!("d/f{number}")).await?, number.to_string())?;
                    }
                    Ok(())
                })
            },
        ),
        writes("a file that ten write at once is one of theirs, whole", |at| {
            Box::pin(async move {
                let mut tasks = JoinSet::new();
                for number in 0..10 {
                    let shieling = Arc::clone(&at.shieling);
                    let ask = shieling::files::FileAsk::Write(WriteAsk::new("f", format!("{number}\n").repeat(5_000)));
                    tasks.spawn(async move { shieling.file(ask).await.is_ok() });
                }
                tasks.join_all().await;
                let text = at.text("f").await?;
                let first = text.lines().next().unwrap_or_default().to_owned();
                holds("one of theirs", text.lines().all(|line| line == first), &text)?;
                same("its size", at.read("f").await?.size, 10_000)?;
                same("what is there", at.names(".").await?, vec!["f".to_owned()])
            })
        }),
        writes("of ten who make the same new file one has made it", |at| {
            Box::pin(async move {
                let mut tasks = JoinSet::new();
                for number in 0..10 {
                    let shieling = Arc::clone(&at.shieling);
                    let ask = WriteAsk {
                        create_only: true,
                        ..WriteAsk::new("f", format!("{number}"))
                    };
                    tasks.spawn(async move { shieling.file(shieling::files::FileAsk::Write(ask)).await.is_ok() });
                }
                let made = tasks.join_all().await.into_iter().filter(|made| *made).count();
                same("who made it", made, 1)
            })
        }),
        writes("of ten who change the same state of a file one has changed it", |at| {
            Box::pin(async move {
                let state = at.read("f").await?.hash;
                let mut tasks = JoinSet::new();
                for number in 0..10 {
                    let shieling = Arc::clone(&at.shieling);
                    let ask = WriteAsk {
                        expect: Some(state.clone()),
                        ..WriteAsk::new("f", format!("by {number}\n"))
                    };
                    tasks.spawn(async move { shieling.file(shieling::files::FileAsk::Write(ask)).await.is_ok() });
                }
                let changed = tasks.join_all().await.into_iter().filter(|changed| *changed).count();
                same("who changed it", changed, 1)
            })
        })
        .file("f", "old\n"),
    ]
}
