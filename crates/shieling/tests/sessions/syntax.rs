//! Texts that are none, or that are more than one thinks.

use std::borrow::Cow;

use super::support::{Case, case, run};

fn big(bytes: usize) -> Cow<'static, str> {
    format!("x='{}'; echo ${{#x}}", "y".repeat(bytes)).into()
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        // M5
        case("M5 a comment", [run("# just a comment"), run("\n\n# two\n  # three\n"), run("echo ok # c").out("ok\n")]),
        case("M5 a colon", [run(":"), run("{ :; }"), run("()").code(2).err("syntax error")]),
        // M6
        case("M6 an open subshell", [run("(echo abc").code(2).err("syntax error")]),
        case("M6 an open if", [run("if true; then echo").code(2).err("syntax error")]),
        case("M6 a brace too many", [run("echo a; }; echo INJ").code(2).err("syntax error").noisy()]),
        case("M6 a parenthesis too many", [run(")").code(2).err("syntax error")]),
        // M7
        case("M7 an open quote", [run("echo 'abc").code(2).err("unexpected EOF").within(1_000)]),
        case("M7 an open double quote", [run("echo \"abc").code(2).err("unexpected EOF").within(1_000)]),
        case("M7 an open backquote", [run("echo `abc").any_code().noisy().within(1_000)]),
        case("M7 an open substitution", [run("echo $(abc").code(2).noisy().within(1_000)]),
        case("open substitutions of every kind, again and again", (0..6).flat_map(|_| {
            ["echo $(abc", "echo $(if", "x=$(echo 'a)", "echo \"$(cat <<E", "echo $(case x in", "f() { echo $( ( ); }", "echo <(abc", "echo \"${x-$(\"", "a=($(abc"]
                .into_iter()
                .map(|text| run(text).any_code().noisy().within(1_000))
        }).chain([run("shopt expand_aliases; echo $(echo ok) `echo ok`; f() { echo \"$(echo \"$(echo in)\")\"; }; f").out("expand_aliases \ton\nok ok\nin\n"), run("echo $(echo ok) )").code(2).noisy()])),
        case("M7 an open expansion", [run("echo ${abc").any_code().noisy().within(1_000)]),
        case("M7 an open heredoc", [run("cat <<E\nline\n").out("line\n").err("here-document").within(1_000)]),
        case("M7 a heredoc without a line", [run("cat <<E").err("here-document").within(1_000)]),
        case("M7 a trailing backslash", [run("echo a \\").noisy().within(1_000)]),
        case("M7 an open function", [run("f() {").code(2).err("syntax error").within(1_000)]),
        case("M7 an open case", [run("case x in").code(2).err("syntax error").within(1_000)]),
        case("M7 an open arithmetic", [run("((1+").any_code().noisy().within(1_000), run("echo $((1+").any_code().noisy().within(1_000)]),
        case("M7 an open condition", [run("[[ a").code(2).err("unexpected").within(1_000)]),
        // In plain bash the first line runs. Here nothing of a text runs that could not be read whole.
        case("a text with an error does not run", [run("echo first\necho second )").code(2).out("").err("syntax error")]),
        case("errors of expansion", [
            run("echo ${x?}; echo no").any_code().err("parameter null or not set").noisy(),
            run("echo ${x!y}; echo no").any_code().err("bad substitution").noisy(),
            run("echo $((1/0)); echo no").any_code().err("division by 0").noisy(),
            run("echo $((1+*)); echo no").any_code().err("operand expected").noisy(),
            run("((1/0)); echo $?").has("1\n").err("division by 0"),
            run("let x=; echo $?").noisy(),
            run("a[=1; echo $?").any_code().noisy(),
            run("echo ok").out("ok\n"),
        ]),
        case("errors in a function give it up", [
            run("f() { g; echo no; }; g() { : ${zzz:?gone}; echo no; }; f; echo no").any_code().err("gone").out(""),
            run("echo ${#FUNCNAME[@]} ${FUNCNAME[0]-none}").out("0 none\n"),
            run("local x").code(1).err("can only be used in a function"),
            run("return 3").any_code().noisy(),
        ]),
        case("errors in loops and redirections give them up", [
            run("for i in 1 2; do while read x; do : ${zzz:?gone}; done <<<a >out; done").any_code().err("gone"),
            run("break; echo ok").noisy().has("ok\n"),
            run("read x; echo $?").out("1\n"),
        ]),
        case("assignments to readonly", [run("readonly r=1"), run("r=2; echo no").code(1).err("readonly"), run("f() { local r=3; }; f").any_code().err("readonly"), run("r=2 true").any_code().noisy(), run("for r in 1 2; do :; done").any_code().noisy(), run("echo ok $r").out("ok 1\n")]),
        case("recursion without an end", [run("FUNCNEST=100; f() { f; }; f").any_code().err("maximum function nesting"), run("echo ${#FUNCNAME[@]}").out("0\n"), run("unset FUNCNEST")]),
        case("eval in eval in eval", [run("x='echo deep'; for i in {1..200}; do x=\"eval ${x@Q}\"; [ ${#x} -gt 60000 ] && break; done; eval \"$x\"").noisy().any_code(), run("echo ok").out("ok\n")]),
        case("deep nesting", [run(format!("{}echo deep{}", "( ".repeat(60), " )".repeat(60))).out("deep\n"), run(format!("{}echo deep{}", "{ ".repeat(2000), "; }".repeat(2000))).noisy().any_code().perhaps_restarted()]),
        // M18
        case("M18 a text of 32 KiB and around", [run(big(32_700)).out("32700\n"), run(big(32_768)).out("32768\n"), run(big(33_000)).out("33000\n")]),
        case("M18 a text of 200 kB", [run(big(200_000)).out("200000\n"), run("echo ok").out("ok\n")]),
        case("M18 a text of 900 kB", [run(big(900_000)).out("900000\n"), run("echo ok").out("ok\n")]),
        case("many lines", [run("echo -n x\n".repeat(3_000)).out("x".repeat(3_000)), run("exit 3\n".repeat(5_000)).code(3).restarted()]),
        case("M18 a long text that defines a function", [run(format!("f() {{ : '{}'; echo long; }}", "y".repeat(100_000))), run("f").out("long\n"), run("echo ok").out("ok\n"), run("f").out("long\n")]),
        case("M18 a long text that leaves a trap and an alias", [run(format!("trap 'echo {}' USR2; alias long='echo {}'", "y".repeat(50_000), "z".repeat(50_000))), run("kill -USR2 $$; long").noisy().bytes(100_002), run("trap - USR2; unalias long")]),
        case("CRLF", [run("echo a\r\necho b\r").out("a\r\nb\r\n"), run("true\r").code(127).noisy()]),
        case("a BOM", [run("\u{feff}echo x").code(127).noisy()]),
        case("UTF-8", [run("echo 'žluťoučký 🐎 漢字'; ü=1").any_code().noisy().has("žluťoučký 🐎 漢字\n"), run("echo ${#TOLD}").out("8\n")]),
        case("control characters", [run("echo '\u{1}\u{2}\u{7f}\u{1b}[31m'").out("\u{1}\u{2}\u{7f}\u{1b}[31m\n"), run("echo $'\\x01\\x7f'").out("\u{1}\u{7f}\n")]),
        case("the status and its friends", [
            run("true a b c"),
            run("echo $_").out("c\n"),
            run("(exit 3) | (exit 4) | true"),
            run("echo ${PIPESTATUS[*]}").out("3 4 0\n"),
            run("(exit 42)").code(42),
            run("echo $?").out("42\n"),
            run("echo $LINENO\necho $LINENO").noisy(),
            run("echo \"$BASH_COMMAND\"").out("echo \"$BASH_COMMAND\"\n"),
            run("echo $0 $# $BASH_SUBSHELL ${FUNCNAME-none} $-").noisy(),
            run("sleep 0.01 & x=$!; wait $x; echo $?").out("0\n"),
            run("(exit 7) & wait $!").code(7),
            run("echo \"${BASH_EXECUTION_STRING-none}\"").out("none\n"),
        ]),
        case("LINENO begins with each command", [run("echo $LINENO").out("1\n"), run(":\n:\necho $LINENO").out("3\n"), run("nosuchcommand").code(127).err("line 1:"), run(":\n:\nnosuchcommand").code(127).err("line 3:")]),
        case("time and !", [run("time :").err("real"), run("! true").code(1), run("! false"), run("time").noisy(), run("time ! (exit 3)").noisy()]),
        case("options of set and shift", [run("set -- a b; shift"), run("echo $1 $#").out("b 1\n"), run("set --")]),
    ]
}
