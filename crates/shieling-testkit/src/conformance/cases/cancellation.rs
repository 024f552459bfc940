//! Whoever does not wait any more leaves nothing running.

use std::sync::Arc;
use std::time::Duration;

use shieling::environment::Ability;

use crate::conformance::at::At;
use crate::conformance::case::{Case, Checked, Need, check};
use crate::conformance::expect::same;

/// Begins a text, waits until it has made this file, and gives it up.
async fn given_up(at: &At, text: &str, in_session: bool, begun: &str) -> Checked {
    let shieling = Arc::clone(&at.shieling);
    let (command, call) = (at.command(text), at.call(text));
    // A task of its own: it may hold what the commands that look for the file need.
    let running = tokio::spawn(async move {
        if in_session {
            shieling.shell(call).await
        } else {
            shieling.run(command, None).await
        }
    });
    let begun = at.appears(begun).await;
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
        check("a call that is given up ends its processes", |at| {
            Box::pin(async move {
                given_up(at, "sleep 50 & echo > begun; sleep 51", false, "begun").await?;
                at.nobody_left().await
            })
        })
        .needs([Need::Can(Ability::Processes)]),
        check("a call that is given up does not go on", |at| {
            Box::pin(async move {
                let text = "echo > begun; until [ -e go ]; do sleep 0.02; done; echo no > ended";
                given_up(at, text, false, "begun").await?;
                // If it still went on, it would now, and ten times as long.
                same(
                    "what it made",
                    at.says("echo > go; sleep 0.2; ls").await?,
                    "begun\ngo\n",
                )
            })
        })
        .programs(&["sleep", "ls"]),
        check("a call that is given up in a session leaves the session", |at| {
            Box::pin(async move {
                same("prepared", at.shell("x=kept; cd d").await.exit_code, Some(0))?;
                given_up(at, "echo > begun; sleep 50; echo no > ended", true, "d/begun").await?;
                let next = at.shell("echo $x; pwd -P; ls").await;
                let expected = format!("kept\n{}/d\nbegun\nf\n", at.workspace().display());
                same("the next call", next.stdout, expected)
            })
        })
        .needs([Need::Can(Ability::Sessions)])
        .programs(&["sleep", "ls"])
        .file("d/f", ""),
        check("calls that are given up at any moment harm nobody", |at| {
            Box::pin(async move {
                for microseconds in [0, 100, 500, 2_000, 5_000, 20_000, 60_000] {
                    let call = at.shieling.run(at.command("sleep 50 & sleep 50"), None);
                    let after = Duration::from_micros(microseconds);
                    // Given up is what it is meant to be.
                    let _ = tokio::time::timeout(after, call).await;
                    same("the next", at.says("echo next").await?, "next\n")?;
                }
                at.nobody_left().await
            })
        })
        .programs(&["sleep"]),
        check("a call that is given up harms no call beside it", |at| {
            Box::pin(async move {
                let shieling = Arc::clone(&at.shieling);
                let command = at.command("sleep 1; echo whole");
                let beside = tokio::spawn(async move { shieling.run(command, None).await });
                let call = at.shieling.run(at.command("sleep 50"), None);
                // As above.
                let _ = tokio::time::timeout(Duration::from_millis(200), call).await;
                let outcome = beside
                    .await
                    .map_err(|error| crate::conformance::Wrong::new("no panic", error.to_string()))?;
                same("what runs beside", outcome.stdout, "whole\n")
            })
        })
        .programs(&["sleep"]),
    ]
}
