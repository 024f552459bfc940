//! Limits are enforced.

use shieling::environment::{Ability, JailLimits, Limit};
use shieling::outcome::{Layer, Status};
use shieling::units::ByteCount;

use crate::conformance::case::{Case, Need, check};
use crate::conformance::expect::{DescribeError as _, holds, same};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        check("no file becomes larger than a command may write", |context| {
            Box::pin(async move {
                let command = context.command("cat big big big > f; echo after");
                let outcome = context
                    .shieling
                    .run(command.with_file_size(Some(ByteCount::mib(1))), None)
                    .await;
                let size: u64 = context.says("wc -c < f").await?.trim().parse().unwrap_or(u64::MAX);
                holds(
                    "1 MiB at most",
                    size <= 1 << 20,
                    &format!("{size} bytes, {}", outcome.described()),
                )
            })
        })
        .needs([Need::Limits(Limit::FileSize)])
        .programs(&["cat", "wc"])
        .file("big", "x".repeat(1_000_000)),
        check("a command may write as much as it may", |context| {
            Box::pin(async move {
                let command = context.command("cat big > f");
                let outcome = context
                    .shieling
                    .run(command.with_file_size(Some(ByteCount::mib(1))), None)
                    .await;
                same(
                    "the end",
                    (outcome.status, outcome.exit_code),
                    (Status::Exited, Some(0)),
                )
            })
        })
        .needs([Need::Limits(Limit::FileSize)])
        .programs(&["cat"])
        .file("big", "x".repeat(1_000_000)),
        check("too much memory ends a command, and is told as that", |context| {
            Box::pin(async move {
                let outcome = context.run("x=aaaaaaaa; while :; do x=$x$x; done").await;
                same("the end", outcome.status, Status::OutOfMemory)?;
                same("the next", context.says("echo next").await?, "next\n")
            })
        })
        .needs([Need::Limits(Limit::Memory)])
        .limited(JailLimits {
            memory: Some(128 << 20),
            ..JailLimits::default()
        }),
        check("no more processes than there may be", |context| {
            Box::pin(async move {
                let text = "sh -c 'i=0; while [ $i -lt 200 ]; do sleep 5 & i=$((i+1)); done; echo all'";
                let outcome = context.shieling.run(context.within(text, 10_000), None).await;
                holds("not all of them", !outcome.stdout.contains("all"), &outcome.described())?;
                same("survivors", outcome.survivors, 0)?;
                same("the next", context.says("echo next").await?, "next\n")
            })
        })
        .needs([Need::Limits(Limit::Pids)])
        .limited(JailLimits {
            pids: Some(40),
            ..JailLimits::default()
        })
        .programs(&["sleep"]),
        check(
            "more output than is allowed ends a command, and is told as that",
            |context| {
                Box::pin(async move {
                    let outcome = context
                        .run("while :; do echo 0123456789012345678901234567890123456789; done")
                        .await;
                    same("the end", outcome.status, Status::OutputLimit)?;
                    let little = outcome.stdout_bytes < 64 << 20;
                    holds(
                        "something, and not much more",
                        little && !outcome.stdout.is_empty(),
                        &outcome.stdout_bytes.to_string(),
                    )
                })
            },
        )
        .built(|builder| builder.output_limit(ByteCount::mib(1))),
        check(
            "more commands than are allowed are refused, with the time to wait",
            |context| {
                Box::pin(async move {
                    for _ in 0..2 {
                        same("the first two", context.run("true").await.status, Status::Exited)?;
                    }
                    let outcome = context.run("true").await;
                    same("the third", outcome.status, Status::RateLimited)?;
                    let told = outcome
                        .denial
                        .is_some_and(|denial| denial.layer == Layer::Rate && denial.retry_after_ms.is_some());
                    same("when to try again", told, true)
                })
            },
        )
        .built(|builder| builder.rate("2/3600,2/3600".parse().expect("a rate"))),
        check("many short commands leave nothing behind", |context| {
            Box::pin(async move {
                for _ in 0..40 {
                    same("the end", context.run("true").await.exit_code, Some(0))?;
                }
                context.nobody_left().await
            })
        }),
        check(
            "a text that is too long, empty or holds a NUL is no command",
            |context| {
                Box::pin(async move {
                    let build = |text: String| shieling::request::Command::new(text, context.workspace());
                    for text in [
                        String::new(),
                        "  \n".to_owned(),
                        "echo a\0b".to_owned(),
                        "x".repeat(2 << 20),
                    ] {
                        let shown: String = text.chars().take(10).collect();
                        holds(
                            &format!("{shown:?} is refused"),
                            build(text).is_err(),
                            "it is a command",
                        )?;
                    }
                    let none = context.command("true").with_deadline(std::time::Duration::ZERO);
                    holds("no time is refused", none.is_err(), "it is a command")
                })
            },
        )
        .needs([Need::Can(Ability::Commands)]),
    ]
}
