//! Attempts to speak for the shell: lookalikes on every way there is.

use super::support::{Case, case, run};

/// A report as the shell would send it, but for the key.
const REPORT: &str =
    "b'\\0'*16 + (1).to_bytes(8,'little') + (0).to_bytes(4,'little') + b'\\3\\0' + b'\\0'*10 + b'/lie'";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("a report is printed", [
            run(format!("python3 -c \"import sys; sys.stdout.buffer.write({REPORT})\"; false")).code(1).noisy(),
            run("false").code(1),
        ]),
        case("a report is written to our descriptors by builtins", [
            run("for i in {1016..1023} {4088..4096}; do printf '\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\3\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0/lie' >&$i; done 2>/dev/null; (exit 3)").code(3).noisy(),
            run("(exit 4)").code(4),
            run("pwd").out("{W}/sub\n").cwd("{W}/sub"),
        ]),
        case("a report is written to our descriptors by children", [
            run(format!("python3 -c \"\nimport os\nfor i in range(3, 4100):\n    try: os.write(i, {REPORT})\n    except OSError: pass\n\"; (exit 3)")).code(3),
        ]),
        case("a report is written to our descriptors in /proc", [
            run("for i in /proc/$$/fd/*; do printf 'forged' >$i; done 2>/dev/null; (exit 3)").code(3).noisy(),
            run("for i in /proc/$$/fd/40*; do timeout 1 cat $i; done >/dev/null 2>&1; (exit 3)").code(3),
            run("echo ok").out("ok\n"),
        ]),
        case("a child takes our descriptors from a subshell", [
            run("(for i in {1016..1023} {4088..4096}; do printf x >&$i; done) 2>/dev/null; (exit 3)").code(3).noisy(),
            run("(read -t 0.2 -u 4092 x; echo \"$x\" | head -c 5) 2>/dev/null; (exit 3)").code(3).noisy(),
            run("echo ok").out("ok\n"),
        ]),
        case("a subshell that reads for the shell", [
            run("(for i in {1016..1023} {4088..4096}; do timeout 5 cat <&$i & done) >/dev/null 2>&1"),
            run("echo ok").out("ok\n"),
            run("(while :; do read -t 1 -u 4092 x || break; done) >/dev/null 2>&1 & :").noisy(),
            run("echo ok").out("ok\n"),
            run("(exit 5)").code(5),
        ]),
        case("a text like ours", [
            run("echo shieling 0; echo '$?=0'; (exit 6)").code(6).noisy(),
            run("printf '\\1\\2\\3\\4'; (exit 6)").code(6).noisy(),
        ]),
        case("memory is searched for the key", [
            run("python3 -c \"\nimport os\ntry:\n    open(f'/proc/{os.getppid()}/mem','rb').read(1)\nexcept OSError: pass\n\"; (exit 6)").code(6),
        ]),
        case("a fork that exits as the shell would", [run("(exit 0) & wait; sh -c 'exit 0' & (exit 6)").code(6), run("(exec true); (exit 5)").code(5)]),
        case("a subshell is no shell", [run("(trap 'exit 9' EXIT; kill -9 $BASHPID); echo $?").has("137\n").noisy(), run("(ulimit -n 4; exit 3)").code(3), run("x=$( (exit 3) ); echo $?").out("3\n")]),
        case("a bash in the session", [run("bash -c 'exit 3'").code(3), run("bash -c 'kill -9 $$'; echo $?").has("137\n").noisy(), run("bash <<<'cd /; X=2; exit 4'").code(4)]),
        case("the number of the last command", [run("echo $(( $(cat /proc/$$/stat | wc -c) > 0 ))").out("1\n"), run("(exit 255)").code(255), run("(exit 124)").code(124), run("(exit 126)").code(126), run("(exit 125)").code(125), run("(exit 137)").code(137)]),
    ]
}
