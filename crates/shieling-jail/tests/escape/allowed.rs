//! A list of allowed programs: nothing else is executed, by whatever name it goes; those of the list
//! work, with what they start themselves.

use super::support::{Case, Checked, Field, Place, case, check, line};

pub(crate) const CASES: &[Case] = &[
    case(
        "a program that is not on the list is not executed by its name or path",
        by_path,
    ),
    case("a copy of a program is not executed, wherever it is put", copied),
    case("a script is not executed by its first line", scripts),
    case("the loader starts no program that is not on the list", loaders),
    case("a program of many names in the workspace is not executed", many_names),
    case("a program that takes an allowed name is not executed", renamed),
    case("a program that a compiler of the list makes is not executed", compiled),
    case(
        "an interpreter of the list does not execute a program that it keeps in memory",
        in_memory,
    ),
    case("git of the list works with its helpers and starts nothing else", git),
    case("a compiler of the list compiles and links", compiler),
    case("a pipe of allowed programs works", pipes),
    case(
        "a program of the workspace on the list works and cannot be changed",
        own_program,
    ),
    case(
        "a program of the workspace that is a link to outside shows nothing of it",
        own_link,
    ),
    case(
        "a program of the workspace that names a key as its interpreter does not show it",
        own_interpreter,
    ),
    case(
        "a library of the workspace is not loaded into an allowed program",
        preloaded,
    ),
    case("an allow list under readonly holds as well", readonly),
];

/// The text must not execute what prints `RAN`.
fn must_not_run(place: &Place, text: &str) -> Checked {
    let outcome = place.attempt(text)?;
    check(!outcome.stdout.lines().any(|line| line.trim() == "RAN"), || {
        format!(
            "ESCAPED: `{text}` executed a program that is not on the list: {}",
            line(&outcome)
        )
    })
}

fn by_path(field: &Field) -> Checked {
    let place = field.place().file("own", "x").allow(&["cat"]).start()?;
    for text in [
        "python3 -c 'print(\"RAN\")'",
        "/usr/bin/python3 -c 'print(\"RAN\")'",
        "/usr/bin/perl -e 'print \"RAN\\n\"'",
        "/bin/busybox echo RAN",
        "/usr/bin/env echo RAN",
        "env echo RAN",
        "/usr/bin/../bin/env echo RAN",
        "/proc/self/root/usr/bin/env echo RAN",
        "\"$TOOLS/ran\"",
        "exec /usr/bin/printf 'RAN\\n'",
        "/usr/bin/awk 'BEGIN { print \"RAN\" }'",
        "for f in /usr/bin/* /usr/sbin/* /usr/libexec/* /usr/lib/*/bin/*; do case $f in */echo|*/printf) $f RAN;; esac; done",
        "command -p env echo RAN",
    ] {
        must_not_run(&place, text)?;
    }
    place.works("cat own && echo fine").map(drop)
}

fn copied(field: &Field) -> Checked {
    let tools = field.tools.directory.clone();
    let place = field
        .place()
        .host(&format!(
            "cp {}/ran ran && cp ran linked && ln -s ran link",
            tools.display()
        ))?
        .allow(&["cp", "chmod", "ln", "cat", "mv", "mkdir"])
        .start()?;
    must_not_run(&place, "./ran")?;
    must_not_run(&place, "./link")?;
    for directory in ["/tmp", "$HOME", "/dev/shm", "/run", "/var/tmp", ".", "$HOME/.local/bin"] {
        must_not_run(
            &place,
            &format!("mkdir -p {directory}; cp ran {directory}/copy; chmod 755 {directory}/copy; {directory}/copy"),
        )?;
        must_not_run(
            &place,
            &format!("cat ran > {directory}/other; chmod 755 {directory}/other; exec {directory}/other"),
        )?;
    }
    must_not_run(&place, "ln ran hard; ./hard")?;
    must_not_run(&place, "mv linked moved; ./moved")?;
    must_not_run(&place, "exec 7< ran; /proc/self/fd/7")?;
    must_not_run(&place, "cp \"$TOOLS/ran\" /tmp/x; /tmp/x")?;
    must_not_run(&place, "PATH=$WORK:$PATH; ran")?;
    place.works("cp ran again && cat again > /dev/null").map(drop)
}

fn scripts(field: &Field) -> Checked {
    let place = field
        .place()
        .file("script", "#!/bin/sh\necho RAN\n")
        .file("python", "#!/usr/bin/python3\nprint('RAN')\n")
        .file("plain", "echo fine\n")
        .host("chmod +x script python")?
        .allow(&["cat"])
        .start()?;
    // A file without a first line is read by the shell itself, which is on the list.
    must_not_run(&place, "exec ./script")?;
    must_not_run(&place, "exec ./python")?;
    must_not_run(&place, "./python")?;
    place.works(". ./plain | cat").map(drop)
}

fn loaders(field: &Field) -> Checked {
    let tools = field.tools.directory.clone();
    let place = field
        .place()
        .host(&format!("cp {}/ran ran && cp /usr/bin/env env", tools.display()))?
        .allow(&["cat", "cp"])
        .start()?;
    for loader in [
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-linux-aarch64.so.1",
        "/usr/lib64/ld-linux-x86-64.so.2",
    ] {
        must_not_run(&place, &format!("{loader} ./ran"))?;
        must_not_run(&place, &format!("{loader} ./env echo RAN"))?;
        must_not_run(&place, &format!("cp ran /tmp/ran; {loader} /tmp/ran"))?;
        must_not_run(&place, &format!("{loader} \"$TOOLS/ran\""))?;
        must_not_run(&place, &format!("{loader} --preload ./ran /bin/cat"))?;
        must_not_run(&place, &format!("{loader} /usr/bin/env echo RAN"))?;
    }
    place.works("cat ran > /dev/null").map(drop)
}

fn many_names(field: &Field) -> Checked {
    field.needs("busybox")?;
    let place = field
        .place()
        .host("cp \"$(command -v busybox)\" busybox && ln -s busybox echo && cp busybox cat && mkdir bin && cp busybox bin/git")?
        .allow(&["git", "cat"])
        .start()?;
    must_not_run(&place, "./busybox echo RAN")?;
    must_not_run(&place, "./echo RAN")?;
    must_not_run(&place, "PATH=. ; busybox echo RAN")?;
    must_not_run(&place, "PATH=bin; git echo RAN")?;
    place.works("cat busybox > /dev/null").map(drop)
}

fn renamed(field: &Field) -> Checked {
    let tools = field.tools.directory.clone();
    let place = field
        .place()
        .host(&format!(
            "mkdir bin && cp {}/ran bin/cat && cp bin/cat git",
            tools.display()
        ))?
        .allow(&["cat", "git", "cp"])
        .with(|restrictions| {
            restrictions.path = format!("{}/bin:{}", restrictions.workspace.display(), restrictions.path)
        })
        .start()?;
    must_not_run(&place, "PATH=$WORK/bin; cat")?;
    must_not_run(&place, "PATH=$WORK; git")?;
    must_not_run(&place, "$WORK/bin/cat")?;
    must_not_run(&place, "cp git /tmp/cat; PATH=/tmp; cat")?;
    must_not_run(&place, "hash -p ./git cat; cat")?;
    must_not_run(&place, "(exec -a cat ./git)")?;
    place.works("cat /etc/passwd && git --version").map(drop)
}

fn compiled(field: &Field) -> Checked {
    field.needs("gcc")?;
    let place = field
        .place()
        .file(
            "x.c",
            "#include <stdio.h>\nint main(void) { puts(\"RAN\"); return 0; }\n",
        )
        .allow(&["gcc", "cat"])
        .start()?;
    must_not_run(&place, "gcc -o x x.c && ./x")?;
    must_not_run(&place, "gcc -o /tmp/x x.c && /tmp/x")?;
    must_not_run(&place, "gcc -static -o \"$HOME/x\" x.c && \"$HOME/x\"")?;
    must_not_run(&place, "gcc -wrapper ./x,y x.c")?;
    must_not_run(&place, "gcc -B. -o as x.c; gcc -B. -c x.c")?;
    place.works("test -s x && cat x > /dev/null").map(drop)
}

/// It can do by itself whatever its language can; what it cannot is to become another program.
fn in_memory(field: &Field) -> Checked {
    let tools = field.tools.directory.clone();
    let place = field
        .place()
        .host(&format!("cp {}/ran ran", tools.display()))?
        .allow(&["/usr/bin/python3"])
        .start()?;
    must_not_run(
        &place,
        r#"/usr/bin/python3 -c '
import os
fd = os.memfd_create("x", 0)
os.write(fd, open("ran", "rb").read())
os.execve(fd, ["ran"], {})'"#,
    )?;
    must_not_run(
        &place,
        r#"/usr/bin/python3 -c 'import os; os.execve(os.open("ran", os.O_RDONLY), ["ran"], {})'"#,
    )?;
    place
        .works(r#"/usr/bin/python3 -c 'print(len(open("ran", "rb").read()))'"#)
        .map(drop)
}

fn git(field: &Field) -> Checked {
    let tools = field.tools.directory.clone();
    let place = field
        .place()
        .host(&format!(
            "git init -q . && echo a > a && git add a && git commit -qm a && git branch other && cp {}/ran evil",
            tools.display()
        ))?
        .allow(&["git"])
        .start()?;
    for text in [
        "git -c alias.x='!./evil' x",
        "git -c core.pager=./evil -p log",
        "git -c core.fsmonitor=./evil status",
        "git -c diff.external=./evil diff HEAD",
        "git -c core.editor=./evil commit --allow-empty",
        "git -c core.sshCommand=./evil ls-remote ssh://x/y",
        "git -c alias.x='!python3 -c \"print(1)\" && echo RAN' x",
        "git --exec-path=. evil",
        "git bisect start HEAD other; git bisect run ./evil",
        "git rebase -x ./evil HEAD~0",
    ] {
        must_not_run(&place, text)?;
    }
    place.works("echo b > b && git add b && git commit -qm b && git log --oneline && git diff HEAD~1 --stat")?;
    place.works("git checkout -q other && git merge -q - -m m; git stash list && git gc -q && git fsck")?;
    place
        .works("git clone -q . /tmp/clone && git -C /tmp/clone log --oneline")
        .map(drop)
}

fn compiler(field: &Field) -> Checked {
    field.needs("gcc")?;
    let place = field
        .place()
        .file(
            "x.c",
            "#include <math.h>\nint main(int n, char **v) { return sin(n) > 2; }\n",
        )
        .allow(&["gcc"])
        .start()?;
    must_not_run(&place, "python3 -c 'print(\"RAN\")'")?;
    place
        .works("gcc -O2 -g -o x x.c -lm && gcc -c x.c && gcc -S x.c && gcc -shared -fPIC -o x.so x.c")
        .map(drop)
}

fn pipes(field: &Field) -> Checked {
    let place = field
        .place()
        .file("x", "b\na\nb\n")
        .allow(&["sort", "uniq", "grep", "wc", "ls", "find", "xargs", "sed", "head"])
        .start()?;
    must_not_run(&place, "echo RAN | xargs env echo")?;
    must_not_run(&place, "find . -name x -exec env echo RAN ';'")?;
    must_not_run(
        &place,
        "echo x | sed 's/x/env echo RAN/e'; sed '1e /usr/bin/env echo RAN' x",
    )?;
    place
        .works("sort x | uniq -c | grep b | wc -l && find . -type f | xargs head -1 && sed -n 1p x")
        .map(drop)
}

fn own_program(field: &Field) -> Checked {
    let tools = field.tools.directory.clone();
    let place = field
        .place()
        .file("run.sh", "#!/bin/sh\necho fine\n")
        .host(&format!("chmod +x run.sh; cp {}/ran evil", tools.display()))?
        .allow(&["./run.sh", "cp", "mv", "ln", "rm"])
        .start()?;
    for text in [
        "cp -f evil run.sh; ./run.sh",
        "mv -f evil run.sh; ./run.sh",
        "ln -f evil run.sh; ./run.sh",
        "rm -f run.sh; cp evil run.sh; ./run.sh",
        "echo 'echo RAN' >> run.sh; ./run.sh",
    ] {
        must_not_run(&place, text)?;
    }
    place.works("./run.sh").map(drop)
}

fn own_link(field: &Field) -> Checked {
    let place = field
        .place()
        .file("other", "#!/bin/sh\necho fine\n")
        .host(r#"ln -s ../home/.ssh/id_ed25519 tool; ln -s ../home keys; chmod +x other"#)?
        .allow(&["./tool", "./keys/.npmrc", "./other", "cat"])
        .start()?;
    place.refused("cat tool")?;
    place.refused("cat keys/.npmrc")?;
    place.refused("cat \"$HOME/.ssh/id_ed25519\" \"$HOME/.npmrc\"")?;
    place.works("./other && cat other").map(drop)
}

fn own_interpreter(field: &Field) -> Checked {
    let making = field.place();
    let key = making.root.join("home/.ssh/id_ed25519");
    let place = making
        .file("tool", &format!("#!{}\n", key.display()))
        .file("other", "#!/bin/sh\necho fine\n")
        .host("chmod +x tool other")?
        .allow(&["./tool", "./other", "cat"])
        .start()?;
    place.refused("cat \"$HOME/.ssh/id_ed25519\"")?;
    place.works("./other").map(drop)
}

fn preloaded(field: &Field) -> Checked {
    field.needs("gcc")?;
    let place = field
        .place()
        .file(
            "x.c",
            "#include <unistd.h>\n__attribute__((constructor)) void f(void) { write(1, \"RAN\\n\", 4); }\n",
        )
        .host("gcc -shared -fPIC -o x.so x.c")?
        .allow(&["cat", "cp"])
        .start()?;
    must_not_run(&place, "LD_PRELOAD=$WORK/x.so cat /dev/null")?;
    must_not_run(&place, "cp x.so /tmp/x.so; LD_PRELOAD=/tmp/x.so cat /dev/null")?;
    must_not_run(&place, "cp x.so /tmp/libc.so.6; LD_LIBRARY_PATH=/tmp cat /dev/null")?;
    must_not_run(&place, "enable -f ./x.so x")?;
    place.works("cat x.c").map(drop)
}

fn readonly(field: &Field) -> Checked {
    let tools = field.tools.directory.clone();
    let place = field
        .place()
        .host(&format!("cp {}/ran ran", tools.display()))?
        .allow(&["cat", "cp"])
        .readonly()
        .start()?;
    must_not_run(&place, "./ran")?;
    must_not_run(&place, "cp ran /tmp/ran; /tmp/ran")?;
    must_not_run(&place, "env echo RAN")?;
    place.refused("cp ran other")?;
    place.works("cat ran > /tmp/copy").map(drop)
}
