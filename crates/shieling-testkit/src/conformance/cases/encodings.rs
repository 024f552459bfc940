//! Text and binary data in files.

use crate::conformance::case::{Case, case, run};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(
            "text of every script arrives",
            [run("printf 'ä €\\n日本語 🦀 العربية\\n'")
                .out("ä €\n日本語 🦀 العربية\n")
                .bytes(37, 0)],
        ),
        case(
            "bytes that are no UTF-8 are replaced, and the rest stays",
            [run("printf 'a\\377b\\376c'; printf '\\200' >&2")
                .out("a\u{fffd}b\u{fffd}c")
                .err("\u{fffd}")
                .bytes(5, 1)],
        ),
        case(
            "a character that is cut off is replaced",
            [run("printf 'a\\303'").out("a\u{fffd}")],
        ),
        case(
            "a character that arrives in parts is one",
            [run("printf '\\303'; sleep 0.1; printf '\\244\\342'; sleep 0.1; printf '\\202\\254'").out("ä€")],
        )
        .programs(&["sleep"]),
        case(
            "half of a surrogate pair is no character",
            [run("printf '\\355\\240\\200x'").out("\u{fffd}\u{fffd}\u{fffd}x")],
        ),
        case("a NUL is kept", [run("printf 'a\\0b\\0'").out("a\0b\0").bytes(4, 0)]),
        case(
            "a byte-order mark is kept",
            [run("printf '\\357\\273\\277x'").out("\u{feff}x").bytes(4, 0)],
        ),
        case(
            "ends of lines are kept",
            [run("printf 'a\\r\\nb\\rc\\n'").out("a\r\nb\rc\n")],
        ),
        case(
            "escape sequences are kept",
            [run("printf '\\033[31mred\\033[0m\\007'").out("\u{1b}[31mred\u{1b}[0m\u{7}")],
        ),
        case(
            "UTF-16 is bytes that are counted",
            [run("printf '\\377\\376a\\0'").out("\u{fffd}\u{fffd}a\0").bytes(4, 0)],
        ),
        case(
            "text of the command reaches programs as it is",
            [run("printf '%s|' 'ü' '日本' '🦀' | od -An -tx1 | tr -d ' \\n'").out("c3bc7ce697a5e69cac7cf09fa6807c")],
        )
        .programs(&["od", "tr"]),
        case(
            "names of files can be any text",
            [run("touch 'ü x' '日本' $'a\\nb'; for f in *; do printf '[%s]' \"$f\"; done").out("[a\nb][ü x][日本]")],
        )
        .programs(&["touch"]),
    ]
}
