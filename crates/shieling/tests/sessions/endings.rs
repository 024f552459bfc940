//! What ends the shell, in every form, and what only seems to.

use super::support::{Case, case, run};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        // C5, M4
        case(
            "C5 M4 exit with a status",
            [run("echo before; exit 7; echo after")
                .code(7)
                .out("before\n")
                .restarted()],
        ),
        case(
            "an exit with a variable that is no text",
            [
                run("export ODD=$'a\\xff' EVEN=kept; exit 3")
                    .code(3)
                    .restarted()
                    .error("no `ODD`, which is not UTF-8"),
                run("echo ${ODD-none} $EVEN; unset EVEN").out("none kept\n"),
            ],
        ),
        case(
            "an exit with a variable that no program can be given",
            [
                run("export HUGE=$(printf %0200000d 0) EVEN=kept; exit 3")
                    .code(3)
                    .restarted()
                    .error("no `HUGE`, which is not UTF-8 or too large"),
                run("echo ${#HUGE} $EVEN; unset EVEN").out("0 kept\n"),
            ],
        ),
        case("C5 false is 1", [run("false").code(1), run("echo $?").out("1\n")]),
        case(
            "C5 M4 kill -9 of the shell",
            [run("echo before; kill -9 $$").signalled(9).out("before\n")],
        ),
        case("kill of the shell by SIGTERM", [run("kill $$; sleep 5").signalled(15)]),
        case(
            "kill of the shell by SIGHUP",
            [run("kill -HUP $$; sleep 5").signalled(1)],
        ),
        case(
            "kill of the shell by SIGSEGV",
            [run("kill -SEGV $$; sleep 5").signalled(11)],
        ),
        case(
            "kill of the shell by SIGPIPE",
            [run("kill -PIPE $$; sleep 5").signalled(13)],
        ),
        case(
            "kill of the shell by SIGINT",
            [
                run("kill -INT $$; echo goes on").signalled(2),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "kill of the shell by SIGQUIT",
            [run("kill -QUIT $$; echo goes on").out("goes on\n")],
        ),
        case(
            "kill of the shell's group",
            [run("kill -TERM 0; sleep 5").signalled(15)],
        ),
        case("kill -9 of the shell's group", [run("kill -9 0; sleep 5").signalled(9)]),
        case(
            "kill -9 of all",
            [run("sleep 50 & kill -9 -1; kill -9 $$").signalled(9)],
        )
        .sandboxed(),
        case(
            "kill of the shell from a child",
            [run("(kill -9 $$); sleep 5").signalled(9)],
        ),
        case(
            "kill of the shell by what an earlier command has left",
            [
                run("(until [[ -e go ]]; do sleep 0.01; done; kill -9 $$) >/dev/null 2>&1 &"),
                run("touch go; sleep 50; echo never").signalled(9),
            ],
        ),
        case(
            "kill of the shell by what it does not know any more",
            [
                run("(until [[ -e go ]]; do sleep 0.01; done; kill -9 $$) >/dev/null 2>&1 & disown"),
                run("setsid -f sleep 0.01; read -t 0.05 x < <(sleep 1)")
                    .any_code()
                    .noisy(),
                run("touch go; sleep 50; echo never").signalled(9),
            ],
        ),
        case(
            "stop of the shell",
            [run("kill -STOP $$; echo goes on").times_out(400).perhaps_restarted()],
        ),
        case(
            "suspend",
            [run("suspend").any_code().noisy(), run("echo ok").out("ok\n")],
        ),
        case(
            "suspend -f",
            [run("suspend -f; echo goes on").times_out(400).perhaps_restarted()],
        ),
        case("logout", [run("logout").code(1).err("not login shell")]),
        case(
            "exit from a function",
            [run("f() { exit 9; }; f; echo no").code(9).restarted()],
        ),
        case("exit from a subshell", [run("(exit 9); echo $?").out("9\n")]),
        case("exit from a substitution", [run("x=$(exit 9); echo $?").out("9\n")]),
        case(
            "exit from a pipeline",
            [run("exit 9 | exit 8; echo ${PIPESTATUS[*]}").out("9 8\n")],
        ),
        case(
            "exit from a sourced file",
            [run("echo 'exit 9' >f; . ./f; echo no").code(9).restarted()],
        ),
        case(
            "exit from eval in eval",
            [run("eval 'eval \"exit 9\"'; echo no").code(9).restarted()],
        ),
        case(
            "exit from a trap",
            [run("trap 'exit 9' USR2; kill -USR2 $$; echo no")
                .code(9)
                .out("")
                .restarted()],
        ),
        case("exit without a status", [run("false; exit").code(1).restarted()]),
        case(
            "exit of what is no number",
            [run("exit nonsense")
                .any_code()
                .err("numeric argument")
                .perhaps_restarted()],
        ),
        case(
            "exit with too many arguments",
            [run("exit 1 2; echo $?")
                .err("too many arguments")
                .any_code()
                .noisy()
                .perhaps_restarted()],
        ),
        case("exit of 256 and more", [run("exit 259").code(3).restarted()]),
        case(
            "exit with a trap on it",
            [run("trap 'echo bye' EXIT; exit 4").code(4).out("bye\n").restarted()],
        ),
        case(
            "exit with a trap that exits",
            [run("trap 'exit 5' EXIT; exit 4").code(5).restarted()],
        ),
        case(
            "exit with a trap that hangs",
            [run("trap 'while :; do :; done' EXIT; exit 4")
                .times_out(500)
                .perhaps_restarted()],
        ),
        case("exit with jobs", [run("sleep 50 & exit 4").code(4).restarted()]),
        case(
            "exit in a moved directory",
            [
                run("mkdir deep; cd deep; export MORE=1; exit 4")
                    .code(4)
                    .restarted()
                    .cwd("{W}/sub/deep"),
                run("echo $MORE").out("1\n"),
            ],
        )
        .standing("{W}/sub/deep"),
        case(
            "exec of a program",
            [run("echo before; exec echo instead")
                .out("before\ninstead\n")
                .restarted()],
        ),
        case(
            "exec of a program that fails",
            [run("exec sh -c 'exit 6'").code(6).restarted()],
        ),
        case(
            "exec of one that hangs",
            [run("exec sleep 50").times_out(400).restarted()],
        ),
        case(
            "exec of one with a name",
            [run("exec -a other sh -c 'echo $0'").out("other\n").restarted()],
        ),
        case(
            "exec with nothing but options",
            [run("exec -c -l -a x; echo stays").noisy(), run("echo ok").out("ok\n")],
        ),
        case(
            "exec of what is missing",
            [run("exec missing-program; echo no")
                .code(127)
                .err("not found")
                .restarted()],
        ),
        case(
            "exec of what is missing with execfail",
            [run("shopt -s execfail; exec missing-program; echo stays $?")
                .out("stays 127\n")
                .err("not found")],
        ),
        case(
            "exec of a directory",
            [run("exec /; echo no").code(126).err("directory").restarted()],
        ),
        case(
            "exec of a broken script",
            [run("printf '#!/no/such\\n' >s; chmod +x s; exec ./s")
                .any_code()
                .noisy()
                .restarted()],
        ),
        case(
            "exec of a script without an interpreter",
            [run("echo 'echo script; exit 4' >s; chmod +x s; exec ./s")
                .code(4)
                .out("script\n")
                .restarted()],
        ),
        case(
            "exec moves what it leaves behind",
            [
                run("mkdir deep; cd deep; export MORE=1; exec true")
                    .restarted()
                    .cwd("{W}/sub/deep"),
                run("echo $MORE").out("1\n"),
                run("cd .."),
            ],
        ),
        case(
            "exec in a subshell",
            [run("(exec echo sub); echo stays").out("sub\nstays\n")],
        ),
        case(
            "exec of bash itself",
            [run("exec bash -c 'cd /; export NEW=1; exit 2'")
                .code(2)
                .restarted()
                .cwd("{W}/sub")],
        ),
        case(
            "exec by command and builtin",
            [
                run("command exec sh -c 'exit 3'").code(3).restarted(),
                run("builtin exec sh -c 'exit 4'").code(4).restarted(),
            ],
        ),
        case("exec of exit's lookalike", [run("exec -- true").restarted()]),
        case(
            "exit in a loop's condition",
            [run("while exit 3; do :; done").code(3).restarted()],
        ),
        case(
            "return at the top",
            [
                run("return 5; echo goes on").any_code().noisy(),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "break and continue at the top",
            [
                run("break; continue 3; echo goes on").noisy(),
                run("echo ok").out("ok\n"),
            ],
        ),
        // M4
        case("M4 errexit", [run("set -e; false; echo no").code(1), run("set +e")]),
        case(
            "M4 nounset",
            [
                run("set -u; echo $NOPE; echo no").code(1).err("NOPE: unbound variable"),
                run("set +u"),
            ],
        ),
        case(
            "M4 set -euo pipefail in a function",
            [
                run("set -euo pipefail; f() { local x; false | true; echo no; }; f").code(1),
                run("set +euo pipefail; echo ${#FUNCNAME[@]}").out("0\n"),
            ],
        ),
        case("an exit every time", (0..12).map(|_| run("exit 1").code(1).restarted())),
        case(
            "an own crash",
            [run("f() { f; }; ulimit -s 512; f")
                .status(shieling::outcome::Status::Signalled)
                .noisy()
                .restarted()
                .within(20_000)],
        ),
        case("a signal without a name", [run("kill -40 $$; sleep 5").signalled(40)]),
    ]
}
