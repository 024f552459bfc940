//! Writing what lies outside: by every call that changes a file, and by the programs that make them.

use std::fs;
use std::path::Path;

use super::support::{Case, Checked, Field, Place, case, check, wrong};

pub(crate) const CASES: &[Case] = &[
    case("every call that changes a file finds nothing outside", absent),
    case(
        "every call that changes a file fails where reading is all that is allowed",
        shown,
    ),
    case("every call that changes a file fails on the system's files", system),
    case("no redirection and no program writes outside", programs),
    case("no link is written through to outside", links),
    case(
        "nothing is moved out of the workspace, and nothing into it from outside",
        moves,
    ),
    case(
        "the root and the directories above the workspace cannot be written to",
        above,
    ),
    case("the kernel's settings in /proc cannot be changed", proc_files),
    case(
        "what is written to /tmp, /dev/shm, /run and the home stays inside",
        private,
    ),
    case("a hostile archive writes nothing outside", archives),
    case("git pushes to no repository outside", git),
    case("a read-only mount is not made writable again", remount),
];

/// A call, and its arguments: `@` is the directory that it is tried in. Each has files of its own.
pub(crate) const CALLS: &[(&str, &str)] = &[
    ("write", "@/file"),
    ("append", "@/file"),
    ("create", "@/new1"),
    ("creat", "@/new2"),
    ("open-truncate", "@/file"),
    ("read-truncate", "@/file"),
    ("truncate", "@/file"),
    ("ftruncate", "@/file"),
    ("fallocate", "@/file"),
    ("mmap", "@/file"),
    ("proc", "@/file"),
    ("copy", "@/file @/other"),
    ("mkdir", "@/new3"),
    ("rmdir", "@/empty"),
    ("mknod", "@/new4"),
    ("mkfifo", "@/new5"),
    ("chmod", "@/file"),
    ("fchmodat2", "@/file"),
    ("fchmod", "@/file"),
    ("chown", "@/file"),
    ("lchown", "@/link"),
    ("utimens", "@/file"),
    ("touch", "@/file"),
    ("setxattr", "@/file"),
    ("removexattr", "@/attribute"),
    ("socket", "@/new6"),
    ("symlink", "@/new7 nowhere"),
    ("link", "@/new8 @/file"),
    ("link-follow", "@/new9 @/file"),
    ("rename", "@/moved1 @/new10"),
    ("noreplace", "@/moved2 @/new11"),
    ("exchange", "@/other @/file"),
    ("tmpfile", "@ @/new12"),
    ("unlink", "@/removed"),
];

/// Fills a directory with what the calls are tried on. Whether it takes attributes.
pub(crate) fn fill(directory: &Path) -> Checked<bool> {
    fs::create_dir_all(directory.join("empty"))?;
    for name in ["file", "other", "attribute", "moved1", "moved2", "removed"] {
        fs::write(directory.join(name), "some text\n")?;
    }
    std::os::unix::fs::symlink("file", directory.join("link"))?;
    Ok(rustix::fs::setxattr(
        directory.join("attribute"),
        "user.escape",
        b"x",
        rustix::fs::XattrFlags::empty(),
    )
    .is_ok())
}

/// Tries each call in `there`, where it must be refused with one of these, and in `here`, where it
/// must work.
pub(crate) fn each_call(place: &Place, there: &str, says: &[&str], here: &str, attributes: bool) -> Checked {
    let mut failed = Vec::new();
    for (call, arguments) in CALLS {
        let text = |directory: &str| {
            let arguments = arguments.replace('@', directory);
            // A socket's path is short, so all are relative to where they are tried.
            format!("cd \"$(dirname {directory}/x)\" 2>/dev/null; \"$TOOLS/files\" {call} {arguments}")
        };
        let tried = place.refused_with(&text(there), says);
        let worked = if call.ends_with("xattr") && !attributes {
            Ok(())
        } else {
            place.works(&text(here)).map(drop)
        };
        for result in [tried, worked] {
            if let Err(error) = result {
                failed.push(format!("{call}: {error:?}"));
            }
        }
    }
    check(failed.is_empty(), || failed.join("\n    "))
}

fn absent(field: &Field) -> Checked {
    let making = field.place();
    fill(&making.root.join("outside/files"))?;
    let attributes = fill(&making.work().join("files"))?;
    let place = making.start()?;
    each_call(&place, "\"$OUT/files\"", &["ENOENT"], "\"$WORK/files\"", attributes)
}

fn shown(field: &Field) -> Checked {
    let making = field.place();
    let files = making.root.join("outside/files");
    fill(&files)?;
    let attributes = fill(&making.work().join("files"))?;
    let place = making.with(|restrictions| restrictions.read.push(files)).start()?;
    let says = &["EROFS", "EACCES", "EXDEV"];
    each_call(&place, "\"$OUT/files\"", says, "\"$WORK/files\"", attributes)?;
    place.works(r#"cat "$OUT/files/file""#).map(drop)
}

fn system(field: &Field) -> Checked {
    let making = field.place();
    fill(&making.work().join("files"))?;
    let place = making.start()?;
    for file in ["/usr/bin/env", "/etc/passwd", "/usr/lib/os-release", "/etc/hosts"] {
        for call in [
            "write",
            "append",
            "truncate",
            "open-truncate",
            "fallocate",
            "mmap",
            "proc",
            "unlink",
            "chmod",
            "fchmodat2",
            "chown",
            "utimens",
            "setxattr",
        ] {
            let says = &["EROFS", "EACCES", "EPERM"];
            place.refused_with(&format!("\"$TOOLS/files\" {call} {file}"), says)?;
        }
    }
    for directory in [
        "/usr/bin",
        "/usr/local/bin",
        "/etc",
        "/etc/ld.so.conf.d",
        "/dev",
        "/proc",
        "/sys",
        "/",
    ] {
        place.refused(&format!("\"$TOOLS/files\" create {directory}/escape"))?;
    }
    place.works("\"$TOOLS/files\" create \"$WORK/new\"").map(drop)
}

fn programs(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").start()?;
    for text in [
        r#"echo x > "$OUT/canary""#,
        r#"echo x >> "$OUT/canary""#,
        r#"echo x | tee "$OUT/canary""#,
        r#"cp own "$OUT/canary""#,
        r#"mv own "$OUT/canary""#,
        r#"dd if=own of="$OUT/canary" status=none"#,
        r#"sed -i s/S/x/ "$OUT/canary""#,
        r#"rm -r "$OUT/canary""#,
        r#"touch "$OUT/new""#,
        r#"install own "$OUT/new""#,
        r#"truncate -s 0 "$OUT/canary""#,
        r#"chmod 777 "$OUT/canary""#,
        r#"ln -sf own "$OUT/canary""#,
        r#"python3 -c 'import os; open(os.environ["OUT"] + "/canary", "w")'"#,
        r#"perl -e 'open(F, ">", "$ENV{OUT}/canary") or exit 1'"#,
        r#"sort -o "$OUT/canary" own"#,
        r#"tar cf "$OUT/new.tar" own"#,
        r#"split own "$OUT/x""#,
        r#"gcc -x c /dev/null -c -o "$OUT/x.o""#,
    ] {
        place.refused(text)?;
    }
    place
        .works(r#"cp own copy && sed -i s/mine/yours/ copy && sort -o copy copy && tar cf new.tar copy && rm copy"#)?;
    place.works(r#"gcc -x c /dev/null -c -o x.o"#).map(drop)
}

fn links(field: &Field) -> Checked {
    let place = field
        .place()
        .host(r#"ln -s "$OUT/canary" absolute; ln -s ../outside/canary relative; ln -s ../outside out; ln -s "$OUT/new" new; ln -s own inside"#)?
        .start()?;
    for text in [
        "echo x > absolute",
        "echo x > relative",
        "echo x > new",
        "echo x > out/canary",
        "echo x > out/new",
        "chmod 777 absolute",
        "touch relative",
        r#"ln -s "$OUT/canary" mine && echo x > mine"#,
        r#"ln -s "/proc/self/root$OUT/canary" root && echo x > root"#,
        "cp /etc/hosts relative",
    ] {
        place.refused(text)?;
    }
    place.works("echo x > inside && cat own").map(drop)
}

fn moves(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").start()?;
    place.refused(r#"mv own "$OUT/own""#)?;
    place.refused("mv own ../own")?;
    place.refused_with(
        r#""$TOOLS/files" rename "$WORK" "$WORK/../moved""#,
        &["EBUSY", "EROFS", "EXDEV", "EACCES"],
    )?;
    place.refused_with(
        r#""$TOOLS/files" exchange "$WORK" "$HOME""#,
        &["EBUSY", "EROFS", "EXDEV", "EACCES"],
    )?;
    place.refused_with(r#""$TOOLS/files" rename "$OUT/canary" "$WORK/canary""#, &["ENOENT"])?;
    place.refused("rm -rf \"$WORK\"")?;
    check(place.work().is_dir(), || "the workspace is gone".to_owned())?;
    place
        .works("echo x > a && mv a b && mkdir d && mv b d/b && mv d e && cat e/b")
        .map(drop)
}

fn above(field: &Field) -> Checked {
    let place = field.place().start()?;
    for text in [
        "mkdir /x",
        "touch ../x",
        "touch /home/x",
        "ln -s / /x",
        "rmdir ../home",
        "mkdir /mnt/x",
        "chmod 777 /",
    ] {
        place.refused(text)?;
    }
    place.works("mkdir x && rmdir x").map(drop)
}

fn proc_files(field: &Field) -> Checked {
    let place = field.place().start()?;
    let before = fs::read_to_string("/proc/sys/kernel/core_pattern")?;
    for path in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/ns_last_pid",
        "/proc/sys/kernel/yama/ptrace_scope",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/fs/binfmt_misc/register",
        "/proc/sys/net/ipv4/ip_forward",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sysrq-trigger",
        "/proc/self/uid_map",
        "/proc/self/oom_score_adj",
        "/proc/1/oom_score_adj",
        "/proc/self/mem",
        "/proc/self/clear_refs",
        "/proc/self/attr/current",
        "/proc/irq/default_smp_affinity",
        "/proc/mtrr",
        "/proc/acpi/wakeup",
    ] {
        place.refused(&format!("sh -c 'echo 1 > {path}'"))?;
    }
    check(fs::read_to_string("/proc/sys/kernel/core_pattern")? == before, || {
        "ESCAPED: core_pattern changed".to_owned()
    })?;
    place
        .works("cat /proc/sys/kernel/hostname /proc/self/status >/dev/null")
        .map(drop)
}

fn private(field: &Field) -> Checked {
    let place = field.place().start()?;
    let name = format!(
        "escape-private-{}-{}",
        std::process::id(),
        place
            .root
            .file_name()
            .map_or("x".into(), |n| n.to_string_lossy().into_owned())
    );
    for directory in ["/tmp", "/var/tmp", "/dev/shm", "\"$HOME\""] {
        place.works(&format!("echo x > {directory}/{name} && cat {directory}/{name}"))?;
    }
    for directory in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
        check(!Path::new(directory).join(&name).exists(), || {
            format!("ESCAPED: {directory}/{name} is on the host")
        })?;
        field.attempted();
    }
    // And nothing of it is there in the next one.
    place.close();
    place
        .refused(&format!(
            "ls /tmp/{name} /var/tmp/{name} /dev/shm/{name} \"$HOME/{name}\" | grep ."
        ))
        .map(drop)
}

fn archives(field: &Field) -> Checked {
    let place = field
        .place()
        .host(
            r#"python3 - <<'P'
import io, os, tarfile, zipfile
def add(t, name, text=b"x", link=None):
    i = tarfile.TarInfo(name)
    if link: i.type, i.linkname = tarfile.SYMTYPE, link
    else: i.size = len(text)
    t.addfile(i, None if link else io.BytesIO(text))
with tarfile.open("evil.tar", "w") as t:
    add(t, "good")
    add(t, "../outside/canary"); add(t, os.environ["OUT"] + "/canary")
    add(t, "link", link="../outside"); add(t, "link/canary")
with zipfile.ZipFile("evil.zip", "w") as z:
    z.writestr("../outside/canary", "x")
P"#,
        )?
        .start()?;
    place.attempt("tar xPf evil.tar")?;
    place.attempt("tar xf evil.tar --overwrite")?;
    place.attempt("python3 -c 'import tarfile; tarfile.open(\"evil.tar\").extractall(\".\")'")?;
    place.attempt("python3 -c 'import zipfile; open(zipfile.ZipFile(\"evil.zip\").namelist()[0], \"w\")'")?;
    place.works("tar xf evil.tar good && cat good").map(drop)
}

fn git(field: &Field) -> Checked {
    let place = field
        .place()
        .host(
            r#"git init -q --bare ../outside/bare && git init -q . && git init -q --bare bare
               echo a > a && git add a && git commit -qm a && git remote add out "$OUT/bare" && git remote add in bare"#,
        )?
        .start()?;
    place.refused("git push -q out HEAD")?;
    place.refused(r#"git init -q "$OUT/new""#)?;
    place.refused(r#"git worktree add -q "$OUT/tree""#)?;
    place.refused(r#"git archive -o "$OUT/x.tar" HEAD"#)?;
    place.refused(r#"git bundle create -q "$OUT/x.bundle" HEAD"#)?;
    place
        .works("git push -q in HEAD && git archive -o x.tar HEAD")
        .map(drop)
}

fn remount(field: &Field) -> Checked {
    let place = field.place().start()?;
    for text in [
        "mount -o remount,rw /usr",
        "mount -o remount,rw,bind /usr",
        "mount -o remount,rw /",
        "umount /usr",
        "unshare -Urm mount -o remount,rw,bind /usr",
    ] {
        place.refused(text)?;
    }
    match place.attempt("touch /usr/escape")?.exit_code {
        Some(0) => wrong("ESCAPED: /usr was written to"),
        _ => place.works("mount | grep -q ' /usr '").map(drop),
    }
}
