//! A closed environment starts nothing, and every call reports that it is closed.

use std::sync::Arc;
use std::time::Duration;

use shieling::environment::Ability;
use shieling::outcome::{Outcome, Status};
use shieling::session::SessionName;

use crate::conformance::CheckFailure;
use crate::conformance::case::{Case, Checked, Need, check, look, writes};
use crate::conformance::expect::{DescribeError as _, holds, is_typed, refused, same};

/// Checks that nothing was started, and that the outcome says why.
fn is_told(outcome: &Outcome) -> Checked {
    let told = match outcome.status {
        Status::Failed => outcome.error.is_some(),
        Status::Denied => outcome.denial.is_some(),
        _ => false,
    };
    holds(
        "`failed` with an error, or `denied` with a reason",
        told,
        &outcome.described(),
    )
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        check("a command after the end is refused, and does not run", |context| {
            Box::pin(async move {
                context.run("true").await;
                context.shieling.close().await;
                is_told(&context.run("echo no > ran").await)
            })
        }),
        check("a session after the end is refused, and does not run", |context| {
            Box::pin(async move {
                context.shell("x=1").await;
                context.shieling.close().await;
                is_told(&context.shell("echo no > ran").await)?;
                same("sessions", context.shieling.list().sessions.len(), 0)
            })
        })
        .needs([Need::Can(Ability::Sessions)]),
        writes("file tools after the end are refused", |context| {
            Box::pin(async move {
                context.write("f", "x").await?;
                context.shieling.close().await;
                let read = context.read("f").await;
                refused("a read is refused", read, is_typed)?;
                let written = context.write("f", "y").await;
                refused("a write is refused", written, is_typed)
            })
        }),
        look("an environment that was never used can be closed", |context| {
            Box::pin(async move {
                context.shieling.close().await;
                context.nobody_left().await
            })
        }),
        look("the end may come twice, and at once", |context| {
            Box::pin(async move {
                context.run("true").await;
                tokio::join!(context.shieling.close(), context.shieling.close());
                context.shieling.close().await;
                context.nobody_left().await
            })
        }),
        check("the end comes to a job that runs", |context| {
            Box::pin(async move {
                let job = context.job("sleep 50 & sleep 51").await?;
                context.shieling.close().await;
                context.nobody_left().await?;
                let listed = context.shieling.list().jobs;
                let running = listed
                    .iter()
                    .any(|info| info.job == job && info.status == Status::Running);
                holds("it does not run any more", !running, &format!("{listed:?}"))
            })
        })
        .needs([Need::Can(Ability::Jobs)])
        .programs(&["sleep"]),
        check("whoever waits for a session's command is told of the end", |context| {
            Box::pin(async move {
                let (shieling, call) = (Arc::clone(&context.shieling), context.call("echo > begun; sleep 50"));
                let waiting = tokio::spawn(async move { shieling.session(SessionName::default()).run(call).await });
                context.appears("begun").await?;
                context.shieling.close().await;
                let late = |_| CheckFailure::new("an answer", "none within 20 s");
                let outcome = tokio::time::timeout(Duration::from_secs(20), waiting)
                    .await
                    .map_err(late)?;
                let outcome = outcome.map_err(|error| CheckFailure::new("no panic", error.to_string()))?;
                holds(
                    "it does not run",
                    outcome.status != Status::Running,
                    &outcome.described(),
                )?;
                same("survivors", outcome.survivors, 0)
            })
        })
        .needs([Need::Can(Ability::Sessions)])
        .programs(&["sleep", "cat"]),
    ]
}
