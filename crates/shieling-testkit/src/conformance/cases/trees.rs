//! All processes of a command end with it, whatever they do to survive.

use shieling::environment::Ability;
use shieling::outcome::Status;

use crate::conformance::case::{Case, Check, Checked, Need, check};
use crate::conformance::context::Context;
use crate::conformance::expect::{DescribeError as _, holds, same};

/// Runs a text to its deadline, and checks that no process is left.
async fn ends(context: &Context, text: &str) -> Checked {
    let outcome = context.shieling.run(context.within(text, 600), None).await;
    holds(
        &format!("`{text}` times out"),
        outcome.status == Status::TimedOut,
        &outcome.described(),
    )?;
    same("survivors", outcome.survivors, 0)?;
    gone(context, text)
}

/// Runs a text to its end, and checks that no process is left.
async fn leaves_none(context: &Context, text: &str) -> Checked {
    let outcome = context.run(text).await;
    holds(
        &format!("`{text}` exits"),
        outcome.status == Status::Exited,
        &outcome.described(),
    )?;
    same("survivors", outcome.survivors, 0)?;
    gone(context, text)
}

/// Checks that no process is left, without waiting: the outcome has said so.
fn gone(context: &Context, text: &str) -> Checked {
    let left = context.left();
    holds(
        &format!("no process of `{text}`"),
        left.is_empty(),
        &format!("{left:?}"),
    )
}

/// Creates a case of processes.
fn tree(name: &'static str, what: Check) -> Case {
    check(name, what).needs([Need::Can(Ability::Processes)])
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        tree("children end at the deadline", |context| {
            Box::pin(ends(context, "sleep 50 & sleep 50 & wait"))
        }),
        tree("grandchildren end at the deadline", |context| {
            Box::pin(ends(context, "sh -c 'sh -c \"sleep 50; :\"; :'; :"))
        }),
        tree("a child in a session of its own ends at the deadline", |context| {
            Box::pin(ends(context, "setsid sh -c 'sleep 50; :' & sleep 50"))
        })
        .programs(&["setsid"]),
        tree("a child whose parent has ended ends at the deadline", |context| {
            Box::pin(ends(context, "(sh -c 'setsid sh -c \"sleep 50; :\" &' &); sleep 50"))
        })
        .programs(&["setsid"]),
        tree("a child that ignores signals ends at the deadline", |context| {
            Box::pin(ends(
                context,
                "(trap '' TERM INT HUP; while :; do sleep 1; done) & sleep 50",
            ))
        }),
        tree("a child that ignores hangups ends at the deadline", |context| {
            Box::pin(ends(context, "nohup sleep 50 >/dev/null 2>&1 & sleep 50"))
        })
        .programs(&["nohup"]),
        tree("a child that is stopped ends at the deadline", |context| {
            Box::pin(ends(context, "sh -c 'kill -STOP $$' & sleep 50"))
        }),
        tree("a child that forks as it is ended ends at the deadline", |context| {
            Box::pin(ends(
                context,
                "sh -c 'trap \"sleep 50 & sleep 50 &\" TERM; sleep 50 & wait'",
            ))
        }),
        tree("fifty children end at the deadline", |context| {
            Box::pin(ends(
                context,
                "for i in 1 2 3 4 5 6 7 8 9 10; do for j in 1 2 3 4 5; do sleep 50 & done; done; wait",
            ))
        }),
        tree("what a command leaves behind ends with it", |context| {
            Box::pin(leaves_none(context, "sleep 50 & echo ok"))
        }),
        tree("what hides from its group ends with the command", |context| {
            Box::pin(leaves_none(
                context,
                "setsid sh -c 'sleep 50; :' >/dev/null 2>&1 & sh -c 'setsid sleep 51 & :'",
            ))
        })
        .programs(&["setsid"]),
        tree("what is left is counted", |context| {
            Box::pin(async move {
                let outcome = context.run("sleep 50 & sleep 51 & echo ok").await;
                same("ended processes", (outcome.ended_processes, outcome.survivors), (2, 0))
            })
        }),
        tree("a command that leaves nothing is told to leave nothing", |context| {
            Box::pin(async move {
                let outcome = context.run("sleep 0.1 & wait; sh -c true").await;
                same("ended processes", (outcome.ended_processes, outcome.survivors), (0, 0))
            })
        }),
        tree(
            "what a session's command started ends at its deadline, and the shell stays",
            |context| {
                Box::pin(async move {
                    same("the shell", context.shell("x=kept").await.exit_code, Some(0))?;
                    let idle = context.left().len();
                    let mut call = context.call("(setsid sleep 50 &); (trap '' TERM; sleep 51); sleep 52");
                    call.command = context.within(call.command.text(), 600);
                    let outcome = context.session().run(call).await;
                    same("the end", (outcome.status, outcome.survivors), (Status::TimedOut, 0))?;
                    same("processes besides the shell", context.left().len(), idle)?;
                    let next = context.shell("echo $x").await;
                    same(
                        "the next",
                        (next.stdout, next.stderr, next.status, next.session_restarted),
                        ("kept\n".to_owned(), String::new(), Status::Exited, false),
                    )
                })
            },
        )
        .needs([Need::Can(Ability::Sessions)])
        .programs(&["setsid"]),
    ]
}
