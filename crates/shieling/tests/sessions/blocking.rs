//! Everything a command can be stuck in when its time is over: it ends, and the shell stays.

use shieling::outcome::Status;

use super::support::{Case, case, run};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        // M3
        case(
            "M3 a timeout keeps the state",
            [
                run("X=1; cd ..; sleep 30; echo no").times_out(300).cwd("{W}"),
                run("echo $X").out("1\n"),
                run("cd sub"),
            ],
        ),
        case(
            "the rest of a list does not run",
            [
                run("sleep 30; touch no").times_out(300),
                run("sleep 30 || touch no").times_out(300),
                run("sleep 30 && touch no").times_out(300),
                run("if sleep 30; then :; else touch no; fi").times_out(300),
                run("while ! sleep 30; do touch no; done").times_out(300),
                run("f() { sleep 30; touch no; }; f; touch no").times_out(300),
                run("ls no").code(2).noisy(),
            ],
        ),
        case(
            "what was written is kept",
            [run("echo first; echo err >&2; sleep 30")
                .times_out(300)
                .out("first\n")
                .err("err\n")],
        ),
        case("a loop of builtins", [run("while :; do :; done").times_out(300)]),
        case(
            "a loop in a function in eval",
            [
                run("f() { eval 'for ((;;)); do x=$((x+1)); done'; }; f").times_out(300),
                run("echo ${#FUNCNAME[@]}").out("0\n"),
            ],
        ),
        case(
            "a loop of programs",
            [run("while :; do /bin/true; done").times_out(300)],
        ),
        case(
            "a loop of subshells",
            [run("while :; do (:); x=$(:); done").times_out(300)],
        ),
        case(
            "a loop of substitutions",
            [run("while :; do echo <(:) >/dev/null; done").times_out(300).noisy()],
        ),
        case("wait", [run("sleep 30 & wait").times_out(300)]),
        case(
            "read of a FIFO",
            [
                run("mkfifo p; exec 8<>p; read x <&8; echo no").times_out(300),
                run("exec 8>&-"),
            ],
        ),
        case(
            "read of a FIFO with a timeout",
            [run("mkfifo p; read -t 30 x <>p; echo no").times_out(300)],
        ),
        case(
            "open of a FIFO to read",
            [run("mkfifo p; read x <p; echo no").times_out(300)],
        ),
        case(
            "open of a FIFO to write",
            [run("mkfifo p; echo x >p; echo no").times_out(300)],
        ),
        case(
            "open of a FIFO in a child",
            [run("mkfifo p; cat p; echo no").times_out(300)],
        ),
        case("exec of a FIFO", [run("mkfifo p; exec 7<p; echo no").times_out(300)]),
        case("source of a FIFO", [run("mkfifo p; . ./p; echo no").times_out(300)]),
        case("a substitution", [run("x=$(sleep 30); echo no").times_out(300)]),
        case(
            "a substitution of builtins",
            [run("x=$(while :; do :; done); echo no").times_out(300)],
        ),
        case("a pipeline", [run("sleep 30 | sleep 30 | cat; echo no").times_out(300)]),
        case(
            "a pipeline of builtins",
            [run("while :; do echo x; done | while read l; do :; done; echo no").times_out(300)],
        ),
        case("a subshell", [run("(sleep 30; echo no); echo no").times_out(300)]),
        case(
            "a group in the background, waited for",
            [run("{ sleep 30; echo no; } & wait $!; echo no").times_out(300)],
        ),
        // M22
        case(
            "M22 a child that ignores signals",
            [
                run("(trap '' INT TERM HUP; sleep 30); echo no").times_out(300),
                run("sh -c 'trap \"\" TERM; while :; do sleep 1; done'; echo no").times_out(300),
            ],
        ),
        case(
            "M22 one that catches them and goes on",
            [
                run("sh -c 'trap \"echo no thanks\" TERM INT; while :; do sleep 0.05; done'")
                    .times_out(300)
                    .noisy(),
            ],
        ),
        // M2
        case(
            "M2 a child in a session of its own",
            [
                run("setsid sleep 30; echo no").times_out(300),
                run("setsid -w sleep 30; echo no").times_out(300),
            ],
        ),
        case(
            "M2 a child that is left behind ends with the call",
            [
                run("setsid -f sleep 30; sleep 31").times_out(300),
                run("pgrep -f '^sleep 30' -c | head -1").noisy().any_code(),
            ],
        ),
        case(
            "a stopped child",
            [run("sh -c 'kill -STOP $$'; echo no").times_out(300).noisy()],
        ),
        case(
            "a child that forks as it dies",
            [run("sh -c 'trap \"sleep 30 & sleep 30\" TERM; sleep 30 & wait'").times_out(300)],
        ),
        case(
            "sleeping builtins of the kernel",
            [
                run("flock f sleep 30").times_out(300),
                run("timeout 30 sleep 30").times_out(300),
                run("exec 5>f; flock 5; (flock f true)").noisy().times_out(300),
                run("exec 5>&-"),
            ],
        ),
        case(
            "a brace bomb",
            [run("echo {1..10000}{1..10000} >/dev/null")
                .within(500)
                .status(Status::TimedOut)
                .perhaps_restarted()
                .noisy()],
        )
        .memory(512 << 20)
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "a regex that never ends",
            [run("s=$(printf 'a%.0s' {1..40000}); [[ $s =~ ^(a*)*(a|aa)+b$ ]]")
                .any_code()
                .noisy()],
        )
        .memory(512 << 20)
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "arithmetic that never ends",
            [run("((x=0)); for ((;;x++)); do ((y=x**2)); done").times_out(300)],
        ),
        case(
            "a pattern that takes long",
            [
                run("s=$(printf 'a%.0s' {1..3000}); shopt -s extglob; [[ $s == +(+(a)|b)c ]]")
                    .any_code()
                    .noisy()
                    .within(500)
                    .perhaps_restarted()
                    .status(Status::TimedOut),
            ],
        )
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "a printf that takes long",
            [run("printf '%500000000d' 1 >/dev/null")
                .any_code()
                .noisy()
                .perhaps_restarted()
                .within(6_000)],
        )
        .sandboxed(),
        case(
            "memory without an end",
            [run("x=a; while :; do x=$x$x; done")
                .any_code()
                .noisy()
                .within(15_000)
                .status(Status::OutOfMemory)
                .restarted()],
        )
        .memory(128 << 20),
        case(
            "memory without an end in a child",
            [run("python3 -c 'x = bytearray(1 << 30)'; echo after $?")
                .any_code()
                .noisy()
                .within(15_000)
                .perhaps_restarted()],
        )
        .memory(128 << 20),
        case(
            "select",
            [run("select x in a b; do break; done </dev/zero")
                .any_code()
                .noisy()
                .within(400)
                .perhaps_restarted()
                .status(Status::TimedOut)],
        )
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "reading without an end",
            [run("read x </dev/zero").times_out(400).noisy().perhaps_restarted()],
        )
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "mapfile without an end",
            [run("mapfile x < <(yes)").times_out(400).noisy().perhaps_restarted()],
        )
        .memory(512 << 20)
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "a coprocess that is waited for",
            [run("coproc sleep 30; wait").times_out(300).noisy()],
        ),
        case(
            "a timeout under errexit",
            [run("set -e; sleep 30; echo no").times_out(300).err(""), run("set +e")],
        ),
        case(
            "a timeout under traps",
            [
                run("trap 'echo err' ERR; trap 'echo dbg >/dev/null' DEBUG; sleep 30; echo no")
                    .times_out(300)
                    .noisy(),
                run("trap - ERR DEBUG").noisy(),
            ],
        ),
        case(
            "a timeout in redirections",
            [
                run("f() { sleep 30 >x 2>y; }; { f 2>z; } >w 5>v").times_out(300),
                run("echo ok; echo err >&2").out("ok\n").err_is("err\n"),
                run("echo ${#FUNCNAME[@]}").out("0\n"),
            ],
        ),
        case(
            "timeouts one after another",
            (0..6).map(|_| run("sleep 30").times_out(80)),
        ),
        case(
            "nothing leaks by timeouts",
            [
                run("set -- /proc/$$/fd/*; before=$#"),
                run("f() { sleep 30 >x 2>y; }; { f 2>z; } >w 5>v").times_out(200),
                run("cat <(sleep 30) | cat 4>q").times_out(200),
                run("exec 6>k; mkfifo p; read x <p").times_out(200),
                run("exec 6>&-; set -- /proc/$$/fd/*; echo $(($# - before)); set --").out("0\n"),
            ],
        ),
        // M1
        case(
            "M1 a background child does not hold the call",
            [
                run("sleep 82 & echo started").out("started\n").within(20_000),
                run("(setsid sleep 83 &); echo hi").out("hi\n").within(20_000),
            ],
        ),
        case(
            "a sleep of the future",
            [
                run("sleep infinity").times_out(300),
                run("read -t 99999 x < <(sleep 99)").times_out(300),
            ],
        ),
    ]
}
