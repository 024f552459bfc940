//! Traps that stay, exit, loop, change what is told, or listen to the signal that is ours.

use super::support::{Case, case, run};

/// What is told of a DEBUG trap that lets nothing run.
const REMOVED: &str = "DEBUG trap was removed";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(
            "a DEBUG trap that prints",
            [
                run("trap 'echo \"[$BASH_COMMAND]\"' DEBUG; echo one").out("[echo one]\none\n"),
                run("echo two").out("[echo two]\ntwo\n"),
                run("trap - DEBUG").out("[trap - DEBUG]\n"),
            ],
        ),
        // M11
        case(
            "M11 a DEBUG trap that forges",
            [
                run("trap 'case \"$BASH_COMMAND\" in printf*) rc=0;; esac; __af_rc=0; status=0; read x' DEBUG; false")
                    .code(1),
                run("false").code(1),
                run("trap - DEBUG"),
            ],
        ),
        case(
            "a DEBUG trap with extdebug that says 1",
            [
                run("shopt -s extdebug; trap '[[ $BASH_COMMAND != echo* ]]' DEBUG; echo skipped; :").any_code(),
                run("echo skipped too").any_code().noisy(),
                run("trap - DEBUG; shopt -u extdebug"),
            ],
        ),
        case(
            "a DEBUG trap with extdebug that says 2",
            [
                run("shopt -s extdebug; trap 'case $BASH_COMMAND in echo*) (exit 2);; esac' DEBUG; echo x")
                    .any_code()
                    .noisy(),
                run("trap - DEBUG; shopt -u extdebug"),
            ],
        ),
        case(
            "a DEBUG trap that exits",
            [run("trap 'exit 3' DEBUG; echo no").code(3).restarted()],
        ),
        case(
            "a DEBUG trap that loops costs one command",
            [
                run("trap ': > $TOP/there; while :; do :; done' DEBUG; echo no")
                    .times_out(400)
                    .seen()
                    .error(REMOVED),
                run("echo ok").out("ok\n"),
                run("trap -p DEBUG"),
            ],
        ),
        case(
            "a DEBUG trap that waits costs one command",
            [
                run("trap ': > $TOP/there; sleep 50' DEBUG; /bin/echo no")
                    .times_out(400)
                    .seen()
                    .error(REMOVED),
                run("trap ': > $TOP/there; read x < <(sleep 50)' DEBUG; /bin/echo no")
                    .times_out(400)
                    .seen()
                    .error(REMOVED),
                run("trap ': > $TOP/there; x=$(sleep 50 | cat)' DEBUG; /bin/echo no")
                    .times_out(400)
                    .seen()
                    .error(REMOVED),
                run("set -T; f() { :; }; trap ': > $TOP/there; f; while :; do f; done' DEBUG; f")
                    .times_out(400)
                    .seen()
                    .error(REMOVED),
                run("set +T; echo ok").out("ok\n"),
            ],
        ),
        case(
            "a DEBUG trap that another trap keeps from its end",
            [
                run("trap ': > $TOP/there; while :; do :; done' USR2; trap 'kill -USR2 $$' DEBUG; echo no")
                    .times_out(400)
                    .seen()
                    .error(REMOVED),
                run("trap - USR2; echo ok").out("ok\n"),
            ],
        ),
        case(
            "a DEBUG trap that forks itself",
            [
                run("shopt -s extdebug; trap ': > $TOP/there; (exit 2)' DEBUG; echo no")
                    .times_out(400)
                    .seen()
                    // Each fork runs the trap, until there is no room for another.
                    .noisy()
                    .error(REMOVED),
                run("shopt -u extdebug; echo ok").out("ok\n"),
            ],
        ),
        case(
            "a DEBUG trap that lets nothing run costs one command",
            [
                run("shopt -s extdebug; trap 'let 0' DEBUG; echo no").error(REMOVED),
                run("echo ok; trap -p DEBUG").out("ok\n"),
                run("set -T; trap 'return 2' DEBUG; echo no").noisy().error(REMOVED),
                run("f() { echo ran; }; f").out("ran\n"),
                run("trap 'sh -c \"exit 2\"' DEBUG; f; eval f; . /dev/stdin <<< f").error(REMOVED),
                run("f; set +T; shopt -u extdebug").out("ran\n"),
            ],
        ),
        case(
            "a DEBUG trap that keeps itself",
            [
                run("shopt -s extdebug; trap '[[ $BASH_COMMAND != *DEBUG* ]]' DEBUG").error(REMOVED),
                run("echo ok; shopt -u extdebug").out("ok\n"),
            ],
        ),
        case(
            "a DEBUG trap that decides and lets itself be removed stays",
            [
                run("shopt -s extdebug; trap '[[ $BASH_COMMAND != rm* ]]' DEBUG"),
                run("rm -rf /nonexistent; echo ok").out("ok\n"),
                run("trap -p DEBUG").out("trap -- '[[ $BASH_COMMAND != rm* ]]' DEBUG\n"),
                run("trap - DEBUG; shopt -u extdebug"),
            ],
        ),
        case(
            "a DEBUG trap that is not running stays when a command is ended",
            [
                run("trap ':' DEBUG; : > $TOP/there; sleep 50").times_out(400).seen(),
                run("trap -p DEBUG; trap - DEBUG").out("trap -- ':' DEBUG\n"),
            ],
        ),
        case(
            "a DEBUG trap that decides and starts a program stays when a command is ended",
            [
                run("shopt -s extdebug; trap '[[ $(/bin/echo a) ]]' DEBUG; : > $TOP/there; sleep 50")
                    .times_out(2_000)
                    .seen(),
                run("trap -p DEBUG").out("trap -- '[[ $(/bin/echo a) ]]' DEBUG\n"),
                run("trap - DEBUG; shopt -u extdebug"),
            ],
        ),
        case(
            "an ERR, RETURN or CHLD trap that loops costs one command",
            [
                run("trap 'while :; do :; done' ERR; false").times_out(400),
                run("trap - ERR"),
                run("set -T; trap 'while :; do :; done' RETURN; f() { :; }; f").times_out(400),
                run("trap - RETURN; set +T"),
                run("trap 'while :; do :; done' CHLD; /bin/true; /bin/true; :").times_out(400),
                run("trap - CHLD; /bin/echo ok").out("ok\n"),
            ],
        ),
        case(
            "a trap works after one that was given up",
            [
                run("set -E; trap 'echo err; while [[ $loop ]]; do :; done' ERR; loop=1; false")
                    .times_out(400)
                    .noisy(),
                run("loop=; false").code(1).out("err\n"),
                run("trap - ERR; set +E; unset loop"),
            ],
        ),
        case(
            "an EXIT trap that loops",
            [
                run("trap 'while :; do :; done' EXIT; exit 3")
                    .times_out(400)
                    .perhaps_restarted(),
                run("echo ok").out("ok\n").perhaps_restarted(),
            ],
        )
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "no program begins after a command was ended in a trap",
            [
                run("trap 'sleep 50' ERR; false; /bin/echo no; (echo no); x=$(echo no >&2); echo no | cat")
                    .times_out(400),
                run("trap 'sleep 50' USR2; kill -USR2 $$; /bin/echo no; cat <(echo no)").times_out(400),
                run("set -T; f() { :; }; trap 'sleep 50' RETURN; f; /bin/echo no").times_out(400),
                run("trap - ERR USR2 RETURN; set +T"),
            ],
        ),
        case(
            "PROMPT_COMMAND",
            [
                run("PROMPT_COMMAND='echo no; while :; do :; done'; echo ok").out("ok\n"),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "an ERR trap",
            [
                run("trap 'echo failed $?' ERR; false").code(1).out("failed 1\n"),
                run("(exit 4)").code(4).out("failed 4\n"),
                run("trap - ERR"),
            ],
        ),
        case(
            "an ERR trap that exits",
            [run("trap 'exit 6' ERR; false; echo no").code(6).restarted()],
        ),
        case(
            "a RETURN trap",
            [
                run("set -T; trap 'echo returned' RETURN; f() { :; }; f").out("returned\n"),
                run("f").out("returned\n"),
                run("trap - RETURN; set +T").noisy(),
            ],
        ),
        case(
            "an EXIT trap waits for the end",
            [
                run("trap 'echo left' EXIT"),
                run("echo no").out("no\n"),
                run("exit 2").code(2).out("left\n").restarted(),
                run("echo gone").out("gone\n"),
            ],
        ),
        case(
            "an EXIT trap in a subshell",
            [run("(trap 'echo sub' EXIT; exit 3)").code(3).out("sub\n")],
        ),
        case(
            "an EXIT trap that kills",
            [run("trap 'kill -9 $$' EXIT; exit 2").signalled(9)],
        ),
        case(
            "an EXIT trap that becomes a program",
            [run("trap 'exec echo became' EXIT; exit 2")
                .any_code()
                .out("became\n")
                .restarted()],
        ),
        case(
            "signals that are ignored, and a timeout",
            [
                run("trap '' INT TERM HUP QUIT ALRM PIPE"),
                run("sleep 50").times_out(300),
                run("while :; do :; done").times_out(300),
            ],
        ),
        case(
            "signals that are caught, and a timeout",
            [
                run("trap 'echo caught' INT TERM HUP 34 64; sleep 50")
                    .times_out(300)
                    .noisy(),
                run("trap - INT TERM HUP 34 64"),
            ],
        ),
        case(
            "all signals ignored, and a builtin that loops",
            [
                run("for s in {1..31} {34..64}; do trap '' $s; done 2>/dev/null; while :; do :; done")
                    .times_out(300)
                    .perhaps_restarted(),
            ],
        )
        .changing(&["trap"]),
        case(
            "our signal is ignored",
            [
                run("trap '' 59; while :; do :; done")
                    .times_out(300)
                    .perhaps_restarted(),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "our signal is ignored by an earlier command",
            [
                run("trap '' 59"),
                run("while :; do :; done").times_out(300),
                run("trap 'echo mine' 59"),
                run("while :; do :; done").times_out(300),
                run("trap - 59"),
                run("while :; do :; done").times_out(300),
            ],
        ),
        case(
            "our signal is caught",
            [
                run("trap 'echo mine' 59; kill -59 $$; echo after").any_code().noisy(),
                run("sleep 50").times_out(300).noisy().perhaps_restarted(),
                run("while :; do :; done").times_out(300).noisy().perhaps_restarted(),
            ],
        ),
        case(
            "our signal is caught and reset",
            [
                run("trap 'echo mine' 59; trap - 59"),
                run("while :; do :; done").times_out(300).perhaps_restarted(),
            ],
        ),
        case(
            "our signal is sent by a command",
            [
                run("kill -59 $$; echo broken off").any_code().noisy(),
                run("echo ok").out("ok\n"),
                run("(sleep 0.2; kill -59 $$) & sleep 0.6; echo no").any_code().noisy(),
            ],
        ),
        case(
            "our signal is sent between two commands",
            [
                run("(sleep 0.1; kill -59 $$) >/dev/null 2>&1 & disown")
                    .any_code()
                    .noisy(),
                // On a busy machine it comes while one of these runs, which it then ends.
                run("sleep 0.01").any_code().noisy(),
                run("echo ok").any_code().noisy(),
                run("sleep 0.3; echo ok").noisy().any_code(),
            ],
        ),
        case(
            "a flood of our signal",
            [
                run("(for i in {1..3000}; do kill -59 $$; done) >/dev/null 2>&1 & disown")
                    .any_code()
                    .noisy(),
                run("sleep 0.2; :").any_code().noisy(),
                run("sleep 2; :").any_code().noisy(),
                run("sleep 0.2; echo ok").any_code().noisy(),
            ],
        ),
        case(
            "a trap that loops",
            [
                run("trap 'while :; do :; done' USR2; kill -USR2 $$; echo no").times_out(300),
                run("trap - USR2"),
            ],
        ),
        case(
            "a trap that sends itself",
            [run("trap 'kill -USR2 $$' USR2; kill -USR2 $$; sleep 1")
                .any_code()
                .noisy()
                .within(4_000)
                .status(shieling::outcome::Status::Signalled)
                .restarted()],
        ),
        case(
            "a CHLD trap",
            [
                run("set -m; trap 'echo child' CHLD; sleep 0.01; sleep 0.01").noisy(),
                run("trap - CHLD; set +m").noisy(),
            ],
        ),
        case(
            "a trap on what a child ends by",
            [run("sh -c 'kill -9 $$'; echo $?").has("137").noisy()],
        ),
        case(
            "trap is redefined",
            [
                run("trap() { echo mine; }; exit() { echo mine; }; kill() { :; }; exit 3").out("mine\n"),
                run("unset -f trap exit kill"),
            ],
        ),
        case(
            "a trap on 0 set many times",
            (0..5).map(|_| run("trap 'echo bye' 0")).chain([run("trap - 0")]),
        ),
        case(
            "what a trap leaves in the status",
            [run("trap 'false' USR2; kill -USR2 $$; echo $?").out("0\n"), run("true")],
        ),
    ]
}
