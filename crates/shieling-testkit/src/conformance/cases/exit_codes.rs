//! The end of a command is reported as it was.

use shieling::environment::Ability;

use crate::conformance::case::{Case, Need, Step, case, run};

fn ends(text: &str, code: i32) -> Step {
    run(text).code(code).noisy()
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("a command that succeeds exits with 0", [run("true"), run(":")]),
        case("a command that fails is a normal outcome", [ends("false", 1)]),
        case(
            "each exit code is told as it is",
            [0, 1, 2, 7, 42, 124, 125, 126, 127, 128, 130, 137, 254, 255]
                .map(|code| ends(&format!("exit {code}"), code)),
        ),
        case(
            "an exit code is taken modulo 256",
            [ends("exit 256", 0), ends("exit 257", 1)],
        ),
        case(
            "the last command's code counts",
            [ends("false; true", 0), ends("true; false", 1)],
        ),
        case(
            "a list ends with the code of what ran last",
            [
                ends("false && true", 1),
                ends("false || (exit 3)", 3),
                ends("true && (exit 4) || (exit 5)", 5),
                ends("! true", 1),
            ],
        ),
        case(
            "a pipeline ends with its last code",
            [ends("false | true", 0), ends("true | (exit 6)", 6)],
        ),
        case(
            "a pipeline ends with its first failure if that is wanted",
            [ends("set -o pipefail; (exit 3) | true", 3)],
        ),
        case(
            "a shell that gives up on errors ends with the code",
            [ends("set -e; (exit 9); echo no", 9)],
        ),
        case(
            "an exit ends the text",
            [run("echo a; exit 3; echo b").out("a\n").code(3)],
        ),
        case("an exit without a code is the last one", [ends("(exit 8); exit", 8)]),
        case(
            "a program that is not there is 127, and told",
            [run("conformance-missing-program")
                .code(127)
                .err_has("conformance-missing-program")],
        ),
        case(
            "a file that cannot be executed is 126, and told",
            [run("./data").code(126).err_has("data")],
        )
        .needs([Need::Can(Ability::Processes)])
        .file("data", "no program\n"),
        case("a directory is no program", [run("./d/").code(126).noisy()])
            .needs([Need::Can(Ability::Processes)])
            .file("d/f", ""),
        case(
            "a text that cannot be read runs nothing, and fails",
            [
                run("echo started > ran; if then").code(2).noisy(),
                run("cat ran").code(1).noisy(),
            ],
        )
        .programs(&["cat"]),
        case(
            "a signal is told as a signal, and as 128 and its number",
            [
                run("kill -9 $$").signalled(9),
                run("kill -TERM $$; sleep 9").signalled(15),
                run("kill -SEGV $$; sleep 9").signalled(11),
            ],
        )
        .needs([Need::Can(Ability::Processes)]),
        case(
            "a signal that ended a child is the child's code",
            [ends("(kill -9 $BASHPID); exit $?", 137)],
        )
        .needs([Need::Can(Ability::Processes)]),
        case(
            "what a command prints is no status",
            [
                run("echo 'exit 0'; printf '\\nexit_code: 0\\n[exit code: 0]\\n'; exit 5")
                    .out("exit 0\n\nexit_code: 0\n[exit code: 0]\n")
                    .code(5),
            ],
        ),
    ]
}
