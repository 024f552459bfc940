//! Output of every kind, and whose it is.

use super::support::{Case, case, run};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(
            "no newline at the end",
            [
                run("printf abc").out("abc"),
                run("printf def").out("def"),
                run("printf '\\n\\n'").out("\n\n"),
            ],
        ),
        case(
            "C6 C7 bytes that are no text",
            [
                run("printf 'a\\xff\\xfeb'").out("a\u{fffd}\u{fffd}b"),
                run("head -c 5000 /dev/urandom").noisy().bytes(5_000),
            ],
        ),
        case(
            "NUL",
            [
                run("printf 'a\\0b'").out("a\0b"),
                run("head -c 100000 /dev/zero").noisy().bytes(100_000),
            ],
        ),
        // M17
        case(
            "M17 300 KB",
            [
                run("seq 1 50000").noisy().bytes(288_894).has("50000\n"),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "C10 M16 200 MB",
            [
                run("head -c 200M /dev/zero").noisy().bytes(200 << 20).within(20_000),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "M16 100 MB to stderr",
            [run("head -c 100M /dev/zero >&2; echo x")
                .noisy()
                .out("x\n")
                .within(20_000)],
        ),
        case(
            "C8 C9 many lines, the newest kept",
            [run("seq 1 100000").has("\n100000\n").noisy()],
        ),
        case(
            "output without an end",
            [run("yes").times_out(400).noisy(), run("echo ok").out("ok\n")],
        ),
        case(
            "output of a builtin without an end",
            [
                run("while :; do echo y; done").times_out(400).noisy(),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "output without an end that nobody stops",
            [
                run("trap '' TERM PIPE INT; yes").times_out(400).noisy(),
                run("echo ok").out("ok\n"),
                run("trap - TERM PIPE INT"),
            ],
        ),
        case(
            "stdout and stderr are told apart",
            [run("echo out; echo err >&2; echo out >&1; echo err >&2")
                .out("out\nout\n")
                .err_is("err\nerr\n")],
        ),
        // C14
        case(
            "C14 words of other tools",
            [
                run("echo '--- SESSION TERMINATED ---'; echo 'Error: No session found'; echo '[No new output]'")
                    .noisy()
                    .has("TERMINATED"),
                run("echo ok").out("ok\n"),
            ],
        ),
        // M14
        case(
            "M14 a background job that prints later",
            [
                run("(sleep 0.3; echo late; echo late >&2) & echo now").out("now\n"),
                run("sleep 0.6; echo mine").out("mine\n"),
                run("echo ok").out("ok\n"),
            ],
        ),
        // M15
        case(
            "M15 a background job that floods",
            [
                run("(timeout 1 yes) & echo now").has("now\n").noisy(),
                run("sleep 0.5; echo mine").out("mine\n"),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "M14 many that print later",
            [
                run("for i in {1..20}; do (sleep 0.$((i % 5)); echo late $i) & done; echo now")
                    .noisy()
                    .has("now\n"),
                run("sleep 0.7; echo mine").out("mine\n"),
            ],
        ),
        case(
            "a daemon forked twice",
            [
                run("(setsid sh -c 'sleep 0.3; echo late; sleep 60' &) ; echo now").out("now\n"),
                run("sleep 0.5; echo mine").out("mine\n"),
            ],
        ),
        case(
            "nohup",
            [
                run("nohup sleep 60 >/dev/null 2>&1 & echo now").out("now\n"),
                run("echo mine").out("mine\n"),
            ],
        ),
        case(
            "a coprocess",
            [
                run("coproc cat; echo now").noisy().has("now\n"),
                run("echo to >&${COPROC[1]}; read -t 2 x <&${COPROC[0]}; echo $x").out("to\n"),
                run("kill %?cat 2>/dev/null || kill $COPROC_PID; wait 2>/dev/null")
                    .any_code()
                    .noisy(),
            ],
        ),
        case(
            "a substitution left running",
            [
                run("cat <(echo a; sleep 60 >&-) >/dev/null & echo now").out("now\n"),
                run("echo > >(sleep 0.3; echo late); echo mine").noisy().has("mine\n"),
                run("sleep 0.5; echo ok").out("ok\n"),
            ],
        ),
        case(
            "a pipe to what does not read",
            [
                run("yes | head -1").out("y\n"),
                run("yes | true; echo ${PIPESTATUS[*]}").out("141 0\n"),
            ],
        ),
        case(
            "wait for all",
            [run("sleep 0.2 & sleep 0.1 & wait; echo $?").out("0\n")],
        ),
        case(
            "wait -n",
            [run("(sleep 0.1; exit 4) & sleep 60 & wait -n; echo $?; kill $!")
                .out("4\n")
                .any_code()],
        ),
        case(
            "wait for a job of a command before",
            [
                run("(sleep 0.3; exit 5) >/dev/null 2>&1 &"),
                run("wait $!; echo $?").out("5\n"),
            ],
        ),
        case(
            "disown",
            [run("sleep 60 >/dev/null 2>&1 & disown -a; jobs"), run("jobs")],
        ),
        case(
            "jobs are told",
            [
                run("sleep 60 >/dev/null 2>&1 &"),
                run("jobs").has("sleep 60"),
                run("kill %1; wait %1").any_code().noisy(),
                run("jobs").noisy(),
            ],
        ),
        case(
            "a pattern of a large width",
            [run("printf %1000000d 1").noisy().bytes(1_000_000)],
        ),
        case(
            "terminal escapes",
            [
                run("printf '\\e]0;title\\a\\e[2J\\ec'").out("\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}c"),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "a terminated child is told",
            [
                run("sh -c 'kill -TERM $$'").any_code().noisy(),
                run("echo ok").out("ok\n"),
            ],
        ),
    ]
}
