//! A workspace that cannot be changed: by any call, by git, by build tools, by another mount of it.

use super::support::{Case, Checked, Field, case};
use super::writes::{each_call, fill};

pub(crate) const CASES: &[Case] = &[
    case("every call that changes a file fails in a readonly workspace", calls),
    case("no program changes a readonly workspace", programs),
    case("git reads a readonly repository and writes nothing to it", git),
    case("python and compilers build elsewhere from a readonly workspace", builds),
    case(
        "a readonly workspace is not mounted again, uncovered or left for a copy of it",
        mounts,
    ),
    case("a readonly workspace is not changed by another way to it", ways),
    case(
        "code that a readonly repository's settings start changes nothing",
        settings,
    ),
    case(
        "a link out of /tmp or into it does not open a readonly workspace",
        links,
    ),
];

fn calls(field: &Field) -> Checked {
    let making = field.place();
    fill(&making.work().join("files"))?;
    let place = making.readonly().start()?;
    place.works(r#"cp -a files /tmp/files"#)?;
    let says = &["EROFS", "EACCES", "EXDEV"];
    each_call(&place, "\"$WORK/files\"", says, "/tmp/files", false)
}

fn programs(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").file("d/x", "x").readonly().start()?;
    for text in [
        "echo x > own",
        "echo x > new",
        "rm own",
        "rm -rf d",
        "mv own other",
        "mkdir new",
        "touch own",
        "chmod 600 own",
        "ln own other",
        "ln -s own other",
        "sed -i s/m/x/ own",
        "dd if=/dev/zero of=own count=1 conv=notrunc status=none",
        "truncate -s 0 own",
        "python3 -c 'open(\"own\", \"a\").write(\"x\")'",
        "perl -e 'open(F, \">>\", \"own\") or exit 1'",
        "mkfifo new",
        "patch own < /dev/null; echo x >> own",
    ] {
        place.refused(text)?;
    }
    place
        .works("cat own && cp own /tmp/own && sed -i s/m/x/ /tmp/own && grep -c . own d/x")
        .map(drop)
}

fn git(field: &Field) -> Checked {
    let place = field
        .place()
        .host("git init -q . && echo a > a && git add a && git commit -qm a && echo b >> a && git branch other")?
        .readonly()
        .start()?;
    for text in [
        "git add a",
        "git commit -qam b",
        "git stash -q",
        "git checkout -q other",
        "git branch new",
        "git tag new",
        "git config x.y z",
        "git reset -q --hard",
        "git gc -q",
        "git worktree add -q /tmp/tree",
    ] {
        place.refused(text)?;
    }
    place.works("git status --short && git log --oneline && git diff --stat && git blame a")?;
    place
        .works("git clone -q . /tmp/clone && cd /tmp/clone && git checkout -qb new && git commit -q --allow-empty -m x")
        .map(drop)
}

fn builds(field: &Field) -> Checked {
    let place = field
        .place()
        .file("x.c", "int main(void) { return 0; }\n")
        .file("mod.py", "value = 1\n")
        .file("Makefile", "x: x.c\n\tgcc -o x x.c\n")
        .readonly()
        .start()?;
    place.refused("gcc -o x x.c")?;
    place.refused("make x")?;
    place.refused("python3 -m compileall -q .")?;
    place.works("python3 -c 'import mod; assert mod.value == 1'")?;
    place.works("gcc -o /tmp/x x.c && /tmp/x")?;
    place.works("cp -r . /tmp/build && make -C /tmp/build x").map(drop)
}

fn mounts(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").readonly().start()?;
    for text in [
        r#"mount -o remount,rw "$WORK""#,
        r#"mount -o remount,rw,bind "$WORK""#,
        r#"umount "$WORK""#,
        r#"umount -l "$WORK""#,
        r#"mount --bind "$WORK" /tmp"#,
        r#"unshare -Urm sh -c 'mount -o remount,rw,bind "$WORK" && echo x > "$WORK/own"'"#,
        r#"nsenter -t 1 -m touch "$WORK/new""#,
    ] {
        place.refused(text)?;
    }
    place.works("cat own").map(drop)
}

fn ways(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").readonly().start()?;
    for text in [
        r#"echo x > "/proc/self/root$WORK/own""#,
        "echo x > /proc/self/cwd/own",
        r#"echo x > "/proc/1/root$WORK/own""#,
        "exec 7< own; echo x > /proc/self/fd/7",
        "exec 7< .; echo x > /proc/self/fd/7/new",
        "exec 7<> own",
        r#"for p in /proc/[0-9]*; do echo x > "$p/cwd/own" && exit 0; done 2>/dev/null; exit 1"#,
    ] {
        place.refused(text)?;
    }
    place.works("exec 7< own; cat /proc/self/fd/7").map(drop)
}

fn settings(field: &Field) -> Checked {
    let place = field
        .place()
        .host(
            r#"git init -q . && echo a > a && git add a && git commit -qm a && echo b > b
               printf '#!/bin/sh\necho RAN >> "$WORK/a"; echo x > "$WORK/ran"; echo x > "$OUT/canary"; echo x > "$HOME/.bashrc"\n' > evil && chmod +x evil
               git config core.fsmonitor "$WORK/evil"; git config core.pager "$WORK/evil"; git config diff.external "$WORK/evil"; git config alias.x "!$WORK/evil""#,
        )?
        .readonly()
        .start()?;
    place.attempt("git status")?;
    place.attempt("git diff")?;
    place.attempt("git x")?;
    place.attempt("git -p log")?;
    place.works("git -c core.fsmonitor=false log --oneline").map(drop)
}

fn links(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").readonly().start()?;
    place.refused("ln own /tmp/own")?;
    place.refused(r#"ln -s "$WORK/own" /tmp/link && echo x > /tmp/link"#)?;
    place.refused(r#"ln -s "$WORK" /tmp/directory && echo x > /tmp/directory/new"#)?;
    place.refused_with(
        r#"echo x > /tmp/x; "$TOOLS/files" rename /tmp/x "$WORK/own""#,
        &["EXDEV", "EROFS", "EACCES"],
    )?;
    place
        .works(r#"ln -s "$WORK/own" /tmp/reading && cat /tmp/reading"#)
        .map(drop)
}
