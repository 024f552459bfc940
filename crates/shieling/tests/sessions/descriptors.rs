//! Descriptors closed, moved, kept and forged. Ours stand near 1016.

use super::support::{Case, case, run};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        // M9
        case("M9 stdout goes to a file", [run("exec >f; echo hidden"), run("echo ok").out("ok\n"), run("cat f").out("hidden\n")]),
        case("M9 stdout is closed", [run("exec 1>&-; echo x").code(1).noisy(), run("echo ok").out("ok\n")]),
        case("M9 stdout and stderr are closed", [run("exec >&- 2>&-; echo x").code(1), run("echo ok; echo err >&2").out("ok\n").err_is("err\n")]),
        case("stdin is closed", [run("exec 0<&-; cat").any_code().noisy(), run("cat; echo ok").out("ok\n")]),
        case("stdin is a file", [run("echo line >f; exec 0<f; read x; echo $x").out("line\n"), run("read x; echo $?").out("1\n")]),
        case("stdin is a FIFO that nobody writes", [run("mkfifo p; exec 0<>p; read x").times_out(300), run("read x; echo $?").out("1\n")]),
        case("descriptor 3 is closed", [run("exec 3<&- 4<&-"), run("echo ok").out("ok\n")]),
        case("every descriptor to 1024 is closed", [
            run("for i in {3..1024}; do eval \"exec $i>&-\"; done 2>/dev/null").any_code().noisy(),
            run("echo ok").out("ok\n"),
        ]),
        case("every descriptor from 0 is closed", [
            run("for i in {0..300}; do eval \"exec $i>&-\"; done 2>/dev/null").any_code().noisy(),
            run("echo ok").out("ok\n"),
        ]),
        case("descriptors beyond 1024 are closed", [
            run("for i in {1025..1100}; do eval \"exec $i>&-\"; done 2>/dev/null").any_code().noisy(),
            run("echo ok").out("ok\n"),
        ]),
        case("every descriptor of ours is overwritten", [
            run("for i in {4000..4097}; do eval \"exec $i>/dev/null\"; done").any_code().noisy().perhaps_restarted(),
            run("echo ok").out("ok\n").perhaps_restarted(),
        ]).changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case("every descriptor of ours is read", [
            run("for i in {4088..4096}; do read -u $i -N 0 x; done 2>/dev/null; :").any_code().noisy().perhaps_restarted(),
            run("echo ok").out("ok\n").perhaps_restarted(),
        ]).changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case("stdout is kept in 3, and written to later", [
            run("exec 3>&1"),
            run("echo lost >&3").any_code().noisy(),
            run("echo ok").out("ok\n"),
            run("exec 3>&-"),
        ]),
        case("stdout is kept in 3 while it is read", [run("exec 3>&1; echo one >&3").out("one\n"), run("exec 3>&-; echo two").out("two\n")]),
        case("stderr is kept in 9, as bash and python do", [run("exec 9>&2"), run("echo two").out("two\n"), run("exec 9>&-")]),
        case("a variable for a descriptor", [run("exec {fd}>f; echo in >&$fd"), run("exec {fd}>&-; cat f").out("in\n")]),
        case("descriptors are not inherited", [
            run("python3 -c 'import os; print(sorted(int(f) for f in os.listdir(\"/proc/self/fd\"))[:-1])'").out("[0, 1, 2]\n"),
        ]),
        case("no descriptor of ours in a subshell's child", [run("(ls /proc/self/fd | wc -l)").out("4\n"), run("x=$(ls /proc/self/fd | wc -l); echo $x").out("4\n")]),
        case("a process substitution ends with its command", [
            run("set -- /proc/$$/fd/*; before=$#"),
            run("cat <(/bin/echo a) <(/bin/echo b)").out("a\nb\n"),
            run("set -- /proc/$$/fd/*; echo $(($# - before)); set --").out("0\n"),
            run("tee >(cat >f) <<< in >/dev/null"),
            run("wait $!; cat f").out("in\n"),
            run("f() { tee >(cat >g); }; f <<< in >/dev/null"),
            run("wait $!; cat g").out("in\n"),
            run("exec 3> >(cat >h); echo one >&3"),
            run("echo two >&3; exec 3>&-; wait $!; cat h").out("one\ntwo\n"),
            run("set -- /proc/$$/fd/*; echo $(($# - before)); set --").out("0\n"),
        ]),
        case("nothing leaks by a source that is given up", [
            run("set -- /proc/$$/fd/*; before=$#"),
            run("source <(sleep 50)").times_out(1_000),
            run(". /dev/stdin < <(. <(sleep 50); sleep 50)").times_out(1_000),
            run("set -- /proc/$$/fd/*; echo $(($# - before)); set --").out("0\n"),
            run("mkfifo p; exec 3<<<a 4<>f 5<>p {fd}<f 6<> <(:); sleep 50").times_out(1_000),
            run("read -u 3 x; echo $x; echo b >&4; echo c >&5; read -u 5 x; echo $x").out("a\nc\n"),
            run("read -u $fd x; echo $x; echo d >&6; read -u 6 x; echo $x").out("b\nd\n"),
            run("exec 3<&- 4<&- 5<&- 6<&- {fd}<&-"),
        ]),
        case("nothing leaks by failing commands", [
            run("set -- /proc/$$/fd/*; before=$#"),
            run("for i in {1..300}; do nosuch; ls /no >&7; cat </no/such; (exit 3); x=${y?}; done 2>/dev/null").any_code().noisy(),
            run("for i in {1..50}; do eval 'echo (' ; f() { cat </no; return 1; }; f >&2 2>/dev/null; done 2>/dev/null").any_code().noisy(),
            run("set -- /proc/$$/fd/*; echo $(($# - before)); set --").out("0\n"),
        ]),
        case("nothing leaks by commands that are given up", (0..20)
            .map(|_| run("f() { g >out; }; g() { x=${nope?no}; }; f 2>/dev/null").any_code().noisy())
            .chain([run("set -- /proc/$$/fd/*; [ $# -le 6 ] || ls -l /proc/$$/fd; set --")])),
        case("set -e in redirected functions, given up", [
            run("set -- /proc/$$/fd/*; before=$#; f() { { false; } >x 2>y; }; g() { f >z; }"),
            run("(set -e; g)").code(1),
            run("set -- /proc/$$/fd/*; echo $(($# - before)); set --").out("0\n"),
            run("echo ok").out("ok\n"),
        ]),
        case("a file that is too large", [run("ulimit -S -f 0; echo x >f").signalled(25), run("echo ok").out("ok\n")]),
        // M4
        case("M4 ulimit -f 0", [run("ulimit -f 0; echo >f").signalled(25), run("echo ok").out("ok\n"), run("trap '' XFSZ; ulimit -f 0; echo x >f; echo $?").out("1\n").err("too large"), run("echo ok").out("ok\n")]),
        case("ulimit -n 10", [run("ulimit -n 10"), run("echo ok").out("ok\n"), run("ls -d .").out(".\n")]),
        case("ulimit -n 4", [run("ulimit -n 4"), run("echo ok").any_code().noisy().perhaps_restarted(), run("echo ok").any_code().noisy().perhaps_restarted()]).changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case("ulimit -n 0 and 2", [
            run("ulimit -n 0; echo still").out("still\n").restarted(),
            run("echo ok").out("ok\n"),
            run("ulimit -n 2; (exit 3)").any_code().noisy().restarted(),
            run("echo ok").out("ok\n"),
        ]),
        case("ulimit -v small", [run("ulimit -v 8000"), run("ls -d .").any_code().noisy().perhaps_restarted(), run("echo ok").any_code().noisy().perhaps_restarted()]).changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case("ulimit -u 1", [run("ulimit -u 1"), run("ls -d .; :").any_code().noisy().within(25_000).perhaps_restarted(), run("echo ok").any_code().noisy()]),
        case("ulimit -t 1", [run("ulimit -t 1; while :; do :; done").any_code().noisy().perhaps_restarted().within(8_000).status(shieling::outcome::Status::Signalled)]),
        case("stty and tput", [run("stty -echo raw").code(1).err("nappropriate ioctl"), run("tput cols; reset").any_code().noisy(), run("echo ok").out("ok\n")]),
        case("/dev/tty", [run("echo x >/dev/tty").code(1).noisy(), run("read x </dev/tty").code(1).noisy()]),
        case("/dev/stdout and /dev/fd", [run("echo a >/dev/stdout; echo b >/dev/fd/1; echo c >/proc/self/fd/2").noisy()]),
        case("C20 M8 readers of the input", [
            run("cat"),
            run("read a").code(1),
            run("head -c 5"),
            run("python3 -"),
            run("select x in a b; do echo $x; done").any_code().noisy(),
            run("bash; sh; python3"),
            run("mapfile x; echo ${#x[@]}").out("0\n"),
            run("while read l; do echo $l; done"),
            run("ssh-keygen 2>/dev/null </dev/stdin").any_code().noisy(),
        ]),
    ]
}
