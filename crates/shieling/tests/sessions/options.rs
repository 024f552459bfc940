//! Options and shopts of every kind, left set.

use super::support::{Case, case, run};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("noexec", [run("set -n; echo no"), run("echo ok").out("ok\n")]),
        case(
            "noexec by its long name, then unset",
            [run("set -o noexec"), run("set +o noexec; echo ok").out("ok\n")],
        ),
        // M12
        case(
            "M12 xtrace shows nothing of ours",
            [
                run("set -x").err_is(""),
                run("echo one").out("one\n").err_is("+ echo one\n"),
                run("false").code(1).err_is("+ false\n"),
                run("set +x").err_is("+ set +x\n"),
                run("echo two").out("two\n"),
            ],
        ),
        case(
            "M12 verbose shows nothing of ours",
            [run("set -v"), run("echo one").noisy(), run("set +v").noisy()],
        ),
        case(
            "xtrace with a PS4 that runs",
            [
                run("PS4='$(echo pwned >&2)+ '; set -x; :").err("pwned"),
                run("set +x; PS4='+ '").err("pwned"),
            ],
        ),
        case(
            "xtrace to a descriptor",
            [
                run("exec 7>trace; BASH_XTRACEFD=7; set -x; echo one").out("one\n"),
                run("set +x; unset BASH_XTRACEFD; grep -c 'echo one' trace").out("1\n"),
            ],
        ),
        case(
            "xtrace to a descriptor of ours",
            [
                run("BASH_XTRACEFD=4093; set -x; echo one; set +x")
                    .any_code()
                    .noisy()
                    .perhaps_restarted(),
                run("BASH_XTRACEFD=4092; set -x; echo one; set +x")
                    .any_code()
                    .noisy()
                    .perhaps_restarted(),
                run("BASH_XTRACEFD=4094; set -x; echo one; set +x")
                    .any_code()
                    .noisy()
                    .perhaps_restarted(),
                run("unset BASH_XTRACEFD; set +x")
                    .any_code()
                    .noisy()
                    .perhaps_restarted(),
                run("echo ok").out("ok\n"),
            ],
        )
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "posix",
            [
                run("set -o posix; echo ok").out("ok\n"),
                run("echo ok").out("ok\n"),
                run("set +o posix"),
            ],
        ),
        case(
            "posix and a special builtin that fails",
            [run("set -o posix; . /no/such/file; echo no")
                .code(1)
                .err("No such file")
                .restarted()],
        ),
        case(
            "posix and a bad assignment",
            [
                run("set -o posix; readonly r=1; r=2 :; echo no")
                    .any_code()
                    .err("readonly")
                    .perhaps_restarted(),
                run("set +o posix"),
            ],
        ),
        case(
            "noglob",
            [
                run("set -f; echo *").out("*\n"),
                run("echo *").out("*\n"),
                run("set +f"),
            ],
        ),
        case(
            "noclobber",
            [
                run("set -C; >f"),
                run("echo x >f").code(1).err("cannot overwrite"),
                run("set +C"),
            ],
        ),
        case(
            "allexport",
            [
                run("set -a; after=1"),
                run("env | grep ^after").out("after=1\n"),
                run("set +a"),
            ],
        ),
        case(
            "keyword, hashall, privileged",
            [
                run("set -k +h; set -p"),
                run("echo ok").out("ok\n"),
                run("set +k -h; set +p"),
            ],
        ),
        case(
            "onecmd",
            [
                run("set -t; echo one; echo two").any_code().noisy().perhaps_restarted(),
                run("set +t; echo ok").any_code().noisy().perhaps_restarted(),
            ],
        ),
        case(
            "monitor with jobs",
            [
                run("set -m; sleep 0.05 & wait; echo $?").has("0\n").noisy(),
                run("sleep 50").times_out(300).noisy(),
                run("sleep 50 | sleep 50").times_out(300).noisy(),
                run("set +m").noisy(),
            ],
        ),
        case(
            "monitor, a background job and fg",
            [
                run("set -m; sleep 50 & fg").times_out(400).noisy().perhaps_restarted(),
                run("set +m").noisy(),
            ],
        ),
        case(
            "monitor, and a stopped child",
            [
                run("set -m; sh -c 'kill -STOP $$'; echo $?").noisy().any_code(),
                run("jobs; kill -9 %1; wait; set +m").noisy().any_code(),
                run(":").noisy(),
            ],
        ),
        case(
            "history",
            [
                run("set -o history; echo one").out("one\n"),
                run("history; fc -l").any_code().noisy(),
                run("echo !! !1").noisy(),
                run("set +o history"),
            ],
        ),
        case(
            "histexpand",
            [
                run("set -H; set -o history; echo a!b").any_code().noisy(),
                run("echo ok").out("ok\n"),
                run("set +H +o history").any_code().noisy(),
            ],
        ),
        case(
            "restricted",
            [
                run("set -r; cd /").code(1).err("restricted"),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "restricted by its name",
            [run("set -o restricted; echo stays").any_code().noisy()],
        ),
        case(
            "functrace and errtrace",
            [
                run("set -ET; trap 'true' DEBUG ERR RETURN; f() { false; }; f").code(1),
                run("trap - DEBUG ERR RETURN; set +ET"),
            ],
        ),
        case(
            "errexit in conditions",
            [
                run("set -e; false || true; ! true; if false; then :; fi; echo here").out("here\n"),
                run("set +e"),
                run("false").code(1),
            ],
        ),
        case(
            "M4 errexit is left set",
            [
                run("set -e"),
                run("false; echo no").code(1),
                run("(exit 5); echo no").code(5),
                run("set +e"),
            ],
        ),
        case(
            "M4 nounset is left set",
            [
                run("set -u"),
                run("echo $nope").any_code().err("unbound").perhaps_restarted(),
                run("set +u"),
            ],
        )
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "pipefail",
            [
                run("set -o pipefail; false | true").code(1),
                run("false | true").code(1),
                run("set +o pipefail"),
            ],
        ),
        case(
            "lastpipe",
            [
                run("shopt -s lastpipe; echo x | read y; echo $y").out("x\n"),
                run("shopt -u lastpipe"),
            ],
        ),
        case(
            "expand_aliases off, extglob, failglob",
            [
                run("shopt -s extglob failglob globstar nullglob; shopt -u expand_aliases"),
                run("echo !(x)").any_code().noisy(),
                run("echo zz*").any_code().noisy(),
                run("shopt -u extglob failglob globstar nullglob; shopt -s expand_aliases"),
            ],
        ),
        case(
            "failglob gives up the command",
            [
                run("shopt -s failglob; echo zz*; echo after")
                    .any_code()
                    .err("no match"),
                run("echo ok").out("ok\n"),
                run("shopt -u failglob"),
            ],
        ),
        case(
            "inherit_errexit, checkjobs, huponexit, autocd",
            [
                run("shopt -s inherit_errexit checkjobs huponexit autocd"),
                run("sleep 50 & exit 3").any_code().noisy().perhaps_restarted(),
            ],
        )
        .changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case(
            "each shopt at once",
            [
                run("for o in $(shopt | cut -f1); do shopt -s \"$o\" 2>/dev/null; done; :")
                    .any_code()
                    .noisy(),
                run("echo ok").out("ok\n"),
                run("shopt -u extdebug"),
            ],
        )
        .changing(&["option"]),
        case(
            "each option off",
            [
                run("for o in $(set -o | cut -f1); do set +o $o; done 2>/dev/null")
                    .any_code()
                    .noisy(),
                run("echo ok").out("ok\n"),
            ],
        ),
        case(
            "interactive_comments off",
            [
                run("shopt -u interactive_comments; echo a # b").noisy().any_code(),
                run("shopt -s interactive_comments"),
            ],
        ),
        case(
            "compat levels",
            [
                run("shopt -s compat31; [[ a =~ 'a' ]]"),
                run("shopt -u compat31; BASH_COMPAT=4.2; echo ok").out("ok\n"),
                run("unset BASH_COMPAT"),
            ],
        ),
    ]
}
