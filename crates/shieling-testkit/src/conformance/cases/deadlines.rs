//! Deadlines are kept, and the output up to then is returned.

use shieling::environment::Ability;
use shieling::outcome::Status;

use crate::conformance::case::{Case, Need, case, check, run, shell};
use crate::conformance::expect::{DescribeError as _, holds, same};

const PROCESSES: Need = Need::Can(Ability::Processes);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(
            "a command whose time is over is ended, with 124",
            [run("sleep 50").times_out(300)],
        )
        .programs(&["sleep"]),
        case(
            "what was written until then is kept",
            [run("echo first; sleep 50; echo no").times_out(1_000).out("first\n")],
        )
        .programs(&["sleep"]),
        check("both streams are kept", |context| {
            Box::pin(async move {
                let command = context.within("echo out; echo err >&2; sleep 50", 1_000);
                let outcome = context.shieling.run(command, None).await;
                same("the end", outcome.status, Status::TimedOut)?;
                holds(
                    "both",
                    outcome.stdout == "out\n" && outcome.stderr.contains("err"),
                    &outcome.described(),
                )
            })
        })
        .programs(&["sleep"]),
        case(
            "the rest of a list does not run",
            [
                run("sleep 50; echo no > no").times_out(300),
                run("sleep 50 || echo no > no").times_out(300),
                run("echo *").out("*\n"),
            ],
        )
        .programs(&["sleep"]),
        case(
            "a loop without an end has one",
            [run("while :; do :; done").times_out(300)],
        ),
        case(
            "output without an end has one",
            [run("while :; do echo x; done").times_out(300).noisy()],
        ),
        case(
            "a pipeline is ended as a whole",
            [run("sleep 50 | cat; echo no").times_out(300)],
        )
        .programs(&["sleep", "cat"]),
        case(
            "what ignores the polite signal is ended",
            [run("trap '' TERM INT HUP; while :; do sleep 1; done").times_out(500)],
        )
        .needs([PROCESSES]),
        case(
            "a child that holds the pipe does not hold the call",
            [
                run("setsid sleep 50 & echo started").out("started\n"),
                run("sleep 50 & sleep 50").times_out(300),
            ],
        )
        .needs([PROCESSES])
        .programs(&["setsid", "sleep"]),
        case(
            "the last words of a command that is ended are kept",
            [run("trap 'echo bye; exit' TERM; echo on; while :; do sleep 0.02; done")
                .times_out(800)
                .out("on\nbye\n")],
        )
        .needs([PROCESSES]),
        check("a call takes no longer than its time, and not less", |context| {
            Box::pin(async move {
                let outcome = context.shieling.run(context.within("sleep 50", 400), None).await;
                let took = outcome.duration_ms;
                holds(
                    "400 ms to 20 s",
                    (400.0..20_000.0).contains(&took),
                    &format!("{took} ms"),
                )
            })
        })
        .programs(&["sleep"]),
        case(
            "a deadline in a session keeps the session",
            [
                shell("x=kept; cd d"),
                shell("echo a; sleep 50; echo no").times_out(500).out("a\n"),
                shell("echo $x; pwd -P").out("kept\n{W}/d\n"),
            ],
        )
        .programs(&["sleep"])
        .file("d/f", ""),
        case(
            "a deadline that is not reached changes nothing",
            [run("echo quick; exit 3").out("quick\n").code(3)],
        ),
    ]
}
