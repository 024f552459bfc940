//! Standard input is empty.

use shieling::environment::Ability;

use crate::conformance::case::{Case, Need, case, run, shell};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(
            "a builtin that reads is at the end of the input",
            [run("read x || echo eof").out("eof\n")],
        ),
        case(
            "a program that reads is at the end of the input",
            [run("cat; echo after").out("after\n")],
        )
        .programs(&["cat"]),
        case("a reader of bytes gets none", [run("wc -c | tr -d ' '").out("0\n")]).programs(&["wc", "tr"]),
        case(
            "a reader in a session is at the end of the input",
            [
                shell("read x || echo eof; cat").out("eof\n"),
                shell("echo next").out("next\n"),
            ],
        )
        .programs(&["cat"]),
        case(
            "nobody reads the text of the next command",
            [shell("cat; cat -").noisy(), shell("echo untouched").out("untouched\n")],
        )
        .programs(&["cat"]),
        case(
            "a text can bring its own input",
            [run("printf 'a\\nb\\n' | while read l; do echo \"[$l]\"; done").out("[a]\n[b]\n")],
        ),
        case("standard input is no terminal", [run("test -t 0").code(1)]).needs([Need::Can(Ability::Processes)]),
    ]
}
