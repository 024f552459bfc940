//! Directories that go, change and deceive; files that ought to be ours.

use super::support::{Case, case, run};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        // M19
        case("M19 a deleted directory", [
            run("mkdir gone; cd gone; rmdir ../gone").noisy().error("in a directory that was removed"),
            run("echo ok").out("ok\n").error("`cd` to another one"),
            run("cd $TOP/sub").noisy(),
        ]),
        case("M19 a deleted directory, and an exit", [
            run("mkdir gone; cd gone; rmdir ../gone").noisy(),
            run("exit 3").code(3).noisy().restarted(),
            run("cd $TOP/sub").noisy(),
        ]),
        case("a directory that became a file", [
            run("mkdir d; cd d; rmdir ../d; echo x >../d").noisy(),
            run("exit 3").code(3).noisy().restarted(),
            run("cd $TOP/sub").noisy().perhaps_restarted(),
        ]),
        case("a directory that became a link", [
            run("mkdir d; cd d; rmdir ../d; ln -s / ../d").noisy(),
            run("echo ok").out("ok\n"),
            run("exit 3").code(3).noisy().restarted(),
            run("pwd -P").noisy().any_code(),
            run("cd $TOP/sub").noisy().perhaps_restarted(),
        ]),
        case("a directory that nobody may enter", [run("mkdir d; cd d; chmod 0 .; ls").any_code().noisy(), run("chmod 700 .").any_code().noisy(), run("cd ..").noisy()]),
        case("a directory with a newline", [run("mkdir $'a\\nb'; cd $'a\\nb'; exit 2").code(2).restarted().cwd("{W}/sub/a\nb"), run("cd ..")]),
        case("a directory by a link", [run("ln -s sub ../link; cd ../link"), run("cd $TOP/sub")]),
        case("a very deep directory", [
            run("for i in {1..60}; do mkdir dddddddddddddddddddddddddddddddddddddddd; cd dddddddddddddddddddddddddddddddddddddddd; done").noisy(),
            run("echo ok").out("ok\n"),
            run("cd $TOP/sub"),
        ]),
        case("a directory deeper than a path", [
            run("n=$(printf 'd%.0s' {1..250}); for i in {1..20}; do mkdir $n; cd $n; done 2>/dev/null").noisy().any_code(),
            run("echo ok").out("ok\n"),
            run("exit 3").code(3).noisy().restarted(),
            run("cd $TOP/sub").noisy().perhaps_restarted(),
        ]),
        case("cd of every kind", [run("cd /; cd -").out("{W}/sub\n").cwd("{W}/sub"), run("cd nowhere").code(1).err("No such file"), run("cd ''"), run("pushd ..; popd").noisy(), run("cd a b").code(1).noisy()]),
        case("cd by a function", [run("cd() { builtin cd \"$@\" && echo moved; }; cd ..").out("moved\n").cwd("{W}"), run("unset -f cd; cd sub")]),
        case("umask 777", [run("umask 777; echo x >f"), run("echo ok").out("ok\n"), run("umask 027")]),
        case("a mask that stays", [run("umask 077"), run("touch f; stat -c %a f").out("600\n"), run("umask 027")]),
        case("state lives on", [
            run("v=1; a=(1 2 3); declare -A m=([k]=v); f() { echo f $1; }; alias al='echo al'"),
            run("echo $v ${a[2]} ${m[k]}; f x").out("1 3 v\nf x\n"),
            run("al").out("al\n"),
            run("set -- p q"),
            run("echo $2; OPTIND=5").out("q\n"),
            run("echo $OPTIND").out("5\n"),
        ]),
        case("the exported live on behind an exit", [run("export E=1; plain=2; unset TOLD; export TOLD=exported; declare -x F='a b'"), run("exit 1").code(1).restarted(), run("echo $E ${plain-none} $F").out("1 none a b\n")]),
        case("what was unset stays unset behind an exit", [run("export E=1"), run("unset E; exit 1").code(1).restarted(), run("echo ${E-none}").out("none\n")]),
        case("a level of shells", [run("echo $SHLVL >l"), run("exit 1").code(1).restarted(), run("echo $SHLVL | cmp - l")]),
        case("programs that are not there", [run("nosuch").code(127).err("command not found"), run("./nosuch").code(127).noisy(), run("/").code(126).noisy(), run("printf x >n; ./n").code(126).noisy()]),
        case("a command for what is not found", [run("command_not_found_handle() { echo handled; return 4; }; nosuch").code(4).out("handled\n"), run("unset -f command_not_found_handle")]),
        case("files like ours", [run("ls /proc/$$/exe /proc/$$/maps >/dev/null; ls -l /proc/$$/fd >/dev/null; cat /proc/$$/environ >/dev/null"), run("echo ok").out("ok\n")]),
        case("the workspace is gone", [run("cd /; rm -rf $TOP/sub; rmdir $TOP 2>/dev/null; :").noisy().any_code(), run("echo ok").out("ok\n"), run("mkdir -p $TOP/sub; cd $TOP/sub").noisy()]),
    ]
}
