//! Programs that are written to and read from while they run.

use std::time::Duration;

use shieling::environment::Ability;
use shieling::outcome::Status;
use shieling::process::{Received, SendError, Started};

use crate::conformance::CheckFailure;
use crate::conformance::case::{Case, Check, Need, check};
use crate::conformance::context::{BEYOND, Context};
use crate::conformance::expect::{DescribeError as _, holds, refused, same};

async fn start(context: &Context, text: &str) -> Result<Started, CheckFailure> {
    let started = context.shieling.start(context.command(text)).await;
    started.map_err(|outcome| CheckFailure::new(format!("`{text}` starts"), outcome.described()))
}

async fn send(started: &Started, bytes: &[u8]) -> Result<(), CheckFailure> {
    let sent = started.send(bytes).await;
    sent.map_err(|error| CheckFailure::new("it is sent", error.to_string()))
}

/// Reads standard output to its end.
async fn received(started: &Started) -> Result<Vec<u8>, CheckFailure> {
    let mut all = Vec::new();
    loop {
        match started.recv(BEYOND).await {
            Received::Bytes(bytes) => all.extend(bytes),
            Received::End => return Ok(all),
            Received::TimedOut => return Err(CheckFailure::new("an end", format!("none after {} bytes", all.len()))),
        }
    }
}

fn talk(name: &'static str, what: Check) -> Case {
    check(name, what).needs([Need::Can(Ability::Input)])
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        talk("what is sent is read line by line", |context| {
            Box::pin(async move {
                let started = start(context, "while read -r l; do echo \"[$l]\"; done").await?;
                send(&started, b"a\nb\n").await?;
                started.send_eof().await;
                same("received", received(&started).await?, b"[a]\n[b]\n")?;
                let outcome = started.wait().await;
                same("the end", (outcome.exit_code, outcome.stdout_bytes), (Some(0), 8))
            })
        }),
        talk("bytes that are no text go in and come out as they are", |context| {
            Box::pin(async move {
                let every: Vec<u8> = (0..=255).collect();
                let started = start(context, "cat").await?;
                send(&started, &every).await?;
                started.send_eof().await;
                same("received", received(&started).await?, every)
            })
        })
        .programs(&["cat"]),
        talk("an answer comes while the program goes on", |context| {
            Box::pin(async move {
                let started = start(context, "cat").await?;
                for text in ["one\n", "two\n"] {
                    send(&started, text.as_bytes()).await?;
                    same(
                        "received",
                        started.recv(BEYOND).await,
                        Received::Bytes(text.as_bytes().to_vec()),
                    )?;
                }
                same("its code while it runs", started.returncode(), None)
            })
        })
        .programs(&["cat"]),
        talk(
            "what comes too late for one receiver is there for the next",
            |context| {
                Box::pin(async move {
                    let started = start(context, "read x; echo \"$x\"").await?;
                    let early = started.recv(Duration::from_millis(30)).await;
                    same("before anything was sent", early, Received::TimedOut)?;
                    send(&started, b"it\n").await?;
                    same("received", received(&started).await?, b"it\n")
                })
            },
        ),
        talk("both streams of what is talked to are apart", |context| {
            Box::pin(async move {
                let started = start(context, "read x; echo out; echo err >&2").await?;
                send(&started, b"\n").await?;
                let err = started.recv_stderr(BEYOND).await;
                same("standard error", err, Received::Bytes(b"err\n".to_vec()))?;
                same("standard output", received(&started).await?, b"out\n")
            })
        }),
        talk("what nobody received is in the outcome", |context| {
            Box::pin(async move {
                let started = start(context, "read x; echo \"$x\"; exit 3").await?;
                send(&started, b"unread\n").await?;
                let outcome = started.wait().await;
                same("stdout", outcome.stdout.as_str(), "unread\n")?;
                same("codes", (outcome.exit_code, started.returncode()), (Some(3), Some(3)))
            })
        }),
        talk(
            "nothing can be sent after the end, and nothing to what has ended",
            |context| {
                Box::pin(async move {
                    let started = start(context, "read x; exit 0").await?;
                    started.send_eof().await;
                    started.send_eof().await;
                    refused("refused after the end of file", started.send(b"x").await, |error| {
                        *error == SendError::Closed
                    })?;
                    let ended = start(context, "exit 0").await?;
                    same("the end", ended.wait().await.exit_code, Some(0))?;
                    refused("refused by what has ended", ended.send(b"x").await, |error| {
                        matches!(error, SendError::NobodyReads { sent: 0 })
                    })
                })
            },
        ),
        talk(
            "what is talked to ends at its deadline though nobody looks",
            |context| {
                Box::pin(async move {
                    let command = context.within("read x; read y", 600);
                    let started = context.shieling.start(command).await;
                    let started = started.map_err(|outcome| CheckFailure::new("it starts", outcome.described()))?;
                    tokio::time::sleep(Duration::from_millis(900)).await;
                    let outcome = started.wait().await;
                    holds("timed out", outcome.status == Status::TimedOut, &outcome.described())?;
                    same("survivors", outcome.survivors, 0)
                })
            },
        ),
        talk("what is talked to is killed with all that it started", |context| {
            Box::pin(async move {
                let started = start(context, "sleep 50 & echo up; sleep 50").await?;
                let up = started.recv(BEYOND).await;
                same("received", up, Received::Bytes(b"up\n".to_vec()))?;
                same("survivors", started.kill().await.survivors, 0)?;
                same("left", context.left(), Vec::<u32>::new())
            })
        })
        .needs([Need::Can(Ability::Processes)]),
        talk("what is talked to ends when it is let go of", |context| {
            Box::pin(async move {
                let started = start(context, "sleep 50 & read x").await?;
                drop(started);
                context.nobody_left().await
            })
        }),
    ]
}
