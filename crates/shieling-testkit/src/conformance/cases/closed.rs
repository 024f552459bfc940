//! An environment that is closed is closed: whoever still asks is told, and nothing starts.

use std::sync::Arc;
use std::time::Duration;

use shieling::environment::Ability;
use shieling::outcome::{Outcome, Status};

use crate::conformance::Wrong;
use crate::conformance::case::{Case, Checked, Need, check, look, writes};
use crate::conformance::expect::{Tells as _, holds, is_typed, refused, same};

/// Nothing was started, and it says why.
fn is_told(outcome: &Outcome) -> Checked {
    let told = match outcome.status {
        Status::Failed => outcome.error.is_some(),
        Status::Denied => outcome.denial.is_some(),
        _ => false,
    };
    holds(
        "`failed` with an error, or `denied` with a reason",
        told,
        &outcome.tells(),
    )
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        check("a command after the end is refused, and does not run", |at| {
            Box::pin(async move {
                at.run("true").await;
                at.shieling.close().await;
                is_told(&at.run("echo no > ran").await)
            })
        }),
        check("a session after the end is refused, and does not run", |at| {
            Box::pin(async move {
                at.shell("x=1").await;
                at.shieling.close().await;
                is_told(&at.shell("echo no > ran").await)?;
                same("sessions", at.shieling.list().sessions.len(), 0)
            })
        })
        .needs([Need::Can(Ability::Sessions)]),
        writes("file tools after the end are refused", |at| {
            Box::pin(async move {
                at.write("f", "x").await?;
                at.shieling.close().await;
                let read = at.read("f").await;
                refused("a read is refused", read, is_typed)?;
                let written = at.write("f", "y").await;
                refused("a write is refused", written, is_typed)
            })
        }),
        look("an environment that was never used can be closed", |at| {
            Box::pin(async move {
                at.shieling.close().await;
                at.nobody_left().await
            })
        }),
        look("the end may come twice, and at once", |at| {
            Box::pin(async move {
                at.run("true").await;
                tokio::join!(at.shieling.close(), at.shieling.close());
                at.shieling.close().await;
                at.nobody_left().await
            })
        }),
        check("the end comes to a job that runs", |at| {
            Box::pin(async move {
                let job = at.job("sleep 50 & sleep 51").await?;
                at.shieling.close().await;
                at.nobody_left().await?;
                let listed = at.shieling.list().jobs;
                let running = listed
                    .iter()
                    .any(|info| info.job == job && info.status == Status::Running);
                holds("it does not run any more", !running, &format!("{listed:?}"))
            })
        })
        .needs([Need::Can(Ability::Jobs)])
        .programs(&["sleep"]),
        check("whoever waits for a session's command is told of the end", |at| {
            Box::pin(async move {
                let (shieling, call) = (Arc::clone(&at.shieling), at.call("echo > begun; sleep 50"));
                let waiting = tokio::spawn(async move { shieling.shell(call).await });
                at.appears("begun").await?;
                at.shieling.close().await;
                let late = |_| Wrong::new("an answer", "none within 20 s");
                let outcome = tokio::time::timeout(Duration::from_secs(20), waiting)
                    .await
                    .map_err(late)?;
                let outcome = outcome.map_err(|error| Wrong::new("no panic", error.to_string()))?;
                holds("it does not run", outcome.status != Status::Running, &outcome.tells())?;
                same("survivors", outcome.survivors, 0)
            })
        })
        .needs([Need::Can(Ability::Sessions)])
        .programs(&["sleep", "cat"]),
    ]
}
