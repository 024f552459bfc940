//! Names that mean something else than they did: variables, functions, aliases, builtins.

use super::support::{Case, case, run};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        // M10
        case("M10 printf, echo, read, builtin and command are functions", [
            run("printf() { :; }; echo() { :; }; read() { :; }; builtin() { :; }; command() { :; }; eval() { :; }; false").code(1),
            run("false").code(1),
            run("exit() { :; }; return() { :; }; set() { :; }; trap() { :; }; :"),
            run("\\unset -f printf echo read builtin command eval exit return set trap"),
            run("echo ok").out("ok\n"),
        ]),
        case("M10 aliases of everything", [
            run("alias printf='echo HIJACK;' echo='printf X' read=false if='echo no' cd=: eval=false true=false"),
            run(":"),
            run("\\unalias printf echo read if cd eval true"),
        ]),
        case("aliases of reserved words", [
            run("alias {='echo brace' }='echo' if=while do=done '!'=echo"),
            run("\\echo ok").out("ok\n"),
            run("\\unalias { } if do '!'"),
        ]),
        case("an alias that never ends", [run("alias loop='loop '"), run("loop").code(127).err("not found"), run("unalias loop")]),
        case("functions named like every builtin", [
            run("all=$(compgen -b); for b in $all; do case $b in eval) ;; *) eval \"function $b { /bin/true; }\";; esac; done 2>/dev/null").any_code().noisy(),
            run("echo no"),
            run("export -f enable builtin exec; false").noisy().any_code(),
            run("POSIXLY_CORRECT=1; \\unset -f $all; \\unset POSIXLY_CORRECT").any_code().noisy(),
        ]),
        case("a function with a slash", [run("function /bin/echo { :; }; /bin/echo hidden"), run("unset -f /bin/echo; /bin/echo ok").out("ok\n")]),
        case("functions that are exported", [run("f() { echo from f; }; export -f f; bash -c f").out("from f\n"), run("bash -c f").out("from f\n"), run("exit 1").code(1).restarted(), run("f").out("from f\n")]),
        case("enable -n of everything", [
            run("enable -n echo . exec exit eval trap kill cd export read"),
            run("exit 3").code(127).err("not found"),
            run("enable echo . exec exit eval trap kill cd export read; echo ok").out("ok\n"),
        ]),
        case("our builtin is nobody's", [
            run("shieling").code(127).err("not found"),
            run("builtin shieling").code(1).err("not a shell builtin"),
            run("enable -d shieling").any_code().noisy(),
            run("enable shieling; shieling").any_code().noisy(),
            run("enable -n shieling; enable -a | grep -c shieling").any_code().noisy(),
            run("command -v shieling; type shieling; help shieling").any_code().noisy(),
            run("echo ok").out("ok\n"),
        ]),
        case("enable -d of exec", [run("enable -d exec").any_code().noisy(), run("exec echo x").any_code().noisy().restarted()]),
        case("another builtin is loaded", [run("enable -f /no/such.so x").code(1).noisy(), run("echo ok").out("ok\n")]),
        case("readonly of everything", [
            run("readonly PATH PWD OLDPWD IFS SHELLOPTS BASHOPTS HOME PS4 OPTIND RANDOM TMOUT PPID EUID UID POSIXLY_CORRECT HISTFILE BASH_ENV BASHPID LINENO FUNCNAME").any_code().noisy(),
            run("cd ..").any_code().noisy(),
            run("set -f; set +f; shopt -s dotglob; f() { local IFS; }; f").any_code().noisy(),
            run("echo ok").out("ok\n"),
            run("cd sub 2>/dev/null").any_code(),
            run("cd $TOP/sub").any_code().noisy(),
        ]),
        case("readonly of bash's own arrays", [
            run("readonly FUNCNAME BASH_SOURCE BASH_LINENO BASH_COMMAND BASH_ARGV BASH_ARGC PIPESTATUS BASH_REMATCH").any_code().noisy(),
            run("f() { false | true; }; f; [[ a =~ a ]]; echo ok").any_code().noisy(),
            run("set -e; f() { false; }; f").any_code().noisy().perhaps_restarted(),
        ]).changing(&["shell", "umask", "trap", "function", "alias", "option"]),
        case("unset of bash's own", [
            run("unset FUNCNAME BASH_SOURCE BASH_LINENO BASH_COMMAND PIPESTATUS SHLVL PWD OLDPWD IFS PATH OPTIND PS4 _ BASH_ARGV RANDOM BASHPID LINENO DIRSTACK GROUPS HOME").any_code().noisy(),
            run("f() { echo in f; }; f").out("in f\n"),
            run("cd .; export PATH=/usr/bin:/bin; ls -d .").out(".\n"),
        ]),
        case("PWD lies", [run("PWD=/lie").cwd("{W}/sub"), run("cd ..").cwd("{W}"), run("cd sub").cwd("{W}/sub")]),
        case("PWD is a number", [run("declare -i PWD OLDPWD; cd ..").any_code().noisy().cwd("{W}"), run("declare +i PWD OLDPWD; cd sub").any_code().noisy()]),
        case("PATH is gone", [run("unset PATH; ls").code(127).noisy(), run("export PATH=/usr/bin:/bin; ls -d .").out(".\n")]),
        case("IFS of digits", [run("IFS=0123456789"), run("(exit 105); echo $?").noisy(), run("(exit 105)").code(105), run("unset IFS")]),
        case("IFS of letters and newlines", [run("IFS=$'abcdefghijklmnopqrstuvwxyz\\n /'"), run("x='a b'; echo \"$x\"").out("a b\n"), run("IFS=$' \\t\\n'")]),
        case("variables that bash runs", [
            run("export BASH_ENV=$PWD/env ENV=$PWD/env PROMPT_COMMAND='echo prompt' PS0='$(echo ps0 >&2)' PS1=x CDPATH=/ GLOBIGNORE=* TMOUT=1; echo 'echo from env' >env"),
            run("read x; echo ok").out("ok\n"),
            run("bash -c :").out("from env\n"),
            run("exit 3").code(3).restarted(),
            run("echo fresh").out("fresh\n"),
            run("unset BASH_ENV ENV PROMPT_COMMAND PS0 CDPATH GLOBIGNORE TMOUT"),
        ]),
        case("TMOUT of a second", [run("TMOUT=1"), run("sleep 1.3"), run("echo ok").out("ok\n"), run("unset TMOUT")]),
        case("a locale of nonsense", [run("export LC_ALL=nonsense LANG=x").noisy(), run("echo ok").noisy().has("ok\n"), run("export LC_ALL=C.UTF-8; unset LANG").noisy()]),
        case("variables for the loader", [run("export LD_PRELOAD=/no/such.so LD_LIBRARY_PATH=/nowhere; echo ok").noisy(), run("ls -d .").err("cannot be preloaded").has("."), run("exit 2").code(2).noisy().restarted(), run("echo ok").noisy().has("ok\n"), run("unset LD_PRELOAD LD_LIBRARY_PATH").noisy()]),
        case("SHELLOPTS and BASHOPTS are exported", [run("export SHELLOPTS BASHOPTS; set -f"), run("exit 1").code(1).restarted(), run("echo ok").noisy().has("ok\n"), run("set +f").noisy()]),
        case("exported xtrace", [run("set -x; export SHELLOPTS").noisy(), run("exit 1").any_code().noisy().restarted(), run("echo ok").noisy().has("ok\n"), run("set +x; export -n SHELLOPTS").noisy()]),
        case("exported noexec", [run("export SHELLOPTS; set -n"), run("echo ok").noisy(), run("kill -9 $$").any_code().noisy().signalled(9), run("echo ok").has("ok\n").noisy()]),
        case("functions that load a session are exported", [
            run("enable() { echo no; }; export() { echo no; }; builtin() { echo no; }; shieling() { echo no; }"),
            run("\\builtin true; declare -fx enable export builtin shieling; exit 3").code(3).noisy().restarted(),
            run("unset -f enable export builtin shieling").noisy().any_code(),
            run("echo ok").out("ok\n"),
        ]),
        case("names of ours in the environment", [
            run("export SHIELING=1 __rc=0 status=0 key=0000; (exit 3)").code(3),
            run("env | grep -ic 'shieling_[ks]'").code(1).out("0\n"),
        ]),
        case("hash -p", [run("hash -p /bin/false true; command true; hash -p /no/such ls; ls").any_code().noisy(), run("hash -r; ls -d .").out(".\n")]),
        case("namerefs and arrays of everything", [run("declare -n ref=ref").any_code().noisy(), run("declare -A map; map[x]=1; declare -a PIPESTATUS; declare -i i=1/0; echo after").any_code().noisy(), run("echo ${map[x]}").out("1\n")]),
        case("local at the top", [run("local x=1; echo $?").out("1\n").err("can only be used in a function")]),
        case("a variable of 1 MB", [run("big=$(head -c 1000000 /dev/zero | tr '\\0' x); echo ${#big}").out("1000000\n"), run("echo ${#big}").out("1000000\n"), run("unset big")]),
        case("an exported variable that no program can take", [
            run("export big=$(head -c 300000 /dev/zero | tr '\\0' x); ls").code(126).err("too long"),
            run("echo ${#big}").out("300000\n"),
            run("unset big; ls -d .").out(".\n"),
        ]),
        case("a thousand exported variables", [run("for i in {1..1000}; do export v$i=$i; done"), run("exit 2").code(2).restarted(), run("echo $v1 $v1000").out("1 1000\n")]),
        case("exported names that are no names", [run("env 'a b=1' 'x-y=2' 'f()=3' bash -c 'echo ok'").noisy().has("ok\n")]),
        case("exported newlines and bytes", [run("export NL=$'a\\nb=c' BYTES=$'\\xff\\xfe'; exit 2").code(2).restarted(), run("echo \"$NL\"").out("a\nb=c\n")]),
    ]
}
