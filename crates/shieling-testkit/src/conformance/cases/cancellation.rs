//! Dropping the future of a call leaves no process running.

use std::sync::Arc;
use std::time::Duration;

use shieling::environment::Ability;
use shieling::session::SessionName;

use crate::conformance::case::{Case, Checked, Need, check};
use crate::conformance::context::Context;
use crate::conformance::expect::same;

/// Starts a text, waits until it has created a file, and drops the call.
async fn given_up(context: &Context, text: &str, in_session: bool, begun: &str) -> Checked {
    let shieling = Arc::clone(&context.shieling);
    let (command, call) = (context.command(text), context.call(text));
    // In a task of its own, since it may hold what the commands that look for the file need.
    let running = tokio::spawn(async move {
        if in_session {
            shieling.session(SessionName::default()).run(call).await
        } else {
            shieling.run(command, None).await
        }
    });
    let begun = context.appears(begun).await;
    running.abort();
    match running.await {
        Err(ended) if ended.is_cancelled() => begun,
        other => same(
            "its end before it was given up",
            other.map(|outcome| outcome.status).ok(),
            None,
        ),
    }
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        check("a call that is given up ends its processes", |context| {
            Box::pin(async move {
                given_up(context, "sleep 50 & echo > begun; sleep 51", false, "begun").await?;
                context.nobody_left().await
            })
        })
        .needs([Need::Can(Ability::Processes)]),
        check("a call that is given up does not go on", |context| {
            Box::pin(async move {
                // A dropped call's processes end a moment later, which is longer on a busy machine.
                let text = "echo > begun; until [ -e go ]; do sleep 0.02; done; sleep 1; echo no > ended";
                given_up(context, text, false, "begun").await?;
                // A process that was left would write by then.
                same(
                    "what it made",
                    context.says("echo > go; sleep 1.5; ls").await?,
                    "begun\ngo\n",
                )
            })
        })
        .programs(&["sleep", "ls"]),
        check("a call that is given up in a session leaves the session", |context| {
            Box::pin(async move {
                same("prepared", context.shell("x=kept; cd d").await.exit_code, Some(0))?;
                given_up(context, "echo > begun; sleep 50; echo no > ended", true, "d/begun").await?;
                let next = context.shell("echo $x; pwd -P; ls").await;
                let expected = format!("kept\n{}/d\nbegun\nf\n", context.workspace().display());
                same("the next call", next.stdout, expected)
            })
        })
        .needs([Need::Can(Ability::Sessions)])
        .programs(&["sleep", "ls"])
        .file("d/f", ""),
        check("calls that are given up at any moment harm nobody", |context| {
            Box::pin(async move {
                for microseconds in [0, 100, 500, 2_000, 5_000, 20_000, 60_000] {
                    let call = context.shieling.run(context.command("sleep 50 & sleep 50"), None);
                    let after = Duration::from_micros(microseconds);
                    // The drop is intended.
                    let _ = tokio::time::timeout(after, call).await;
                    same("the next", context.says("echo next").await?, "next\n")?;
                }
                context.nobody_left().await
            })
        })
        .programs(&["sleep"]),
        check("a call that is given up harms no call beside it", |context| {
            Box::pin(async move {
                let shieling = Arc::clone(&context.shieling);
                let command = context.command("sleep 1; echo whole");
                let beside = tokio::spawn(async move { shieling.run(command, None).await });
                let call = context.shieling.run(context.command("sleep 50"), None);
                // As above.
                let _ = tokio::time::timeout(Duration::from_millis(200), call).await;
                let outcome = beside
                    .await
                    .map_err(|error| crate::conformance::CheckFailure::new("no panic", error.to_string()))?;
                same("what runs beside", outcome.stdout, "whole\n")
            })
        })
        .programs(&["sleep"]),
    ]
}
