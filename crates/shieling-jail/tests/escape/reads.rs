//! Reading what lies outside: by its path, by ways round its path, and by what the host keeps open.

use std::fs;
use std::os::unix::net::UnixListener;

use super::support::{Case, Checked, Field, KEYS, Place, case, check, wrong};

pub(crate) const CASES: &[Case] = &[
    case("a file outside is not there by its absolute path", absolute),
    case("a file outside is not there by `..`", parents),
    case("the root of no process is another root", roots),
    case("the directory of no process leads outside", directories),
    case(
        "what a command's supervisor and pid 1 hold open cannot be listed or read",
        holders,
    ),
    case("the user's links to outside lead nowhere", links_of_the_user),
    case("a command's own links to outside lead nowhere", own_links),
    case("a copy that follows links copies nothing of outside", copies),
    case("no hard link is made of a file outside", hard_links),
    case("nothing of the old root can be mounted or uncovered", mounts),
    case("the host's keys and password hashes are not there", host_secrets),
    case("the keys in the user's home are not there", keys),
    case(
        "a toolchain on the PATH is shown without its credentials",
        toolchain_credentials,
    ),
    case("the homes of others are not there", other_homes),
    case("the host's /tmp and /var/tmp are not there", host_temporaries),
    case(
        "the host's logs, state and sockets in /var and /run are not there",
        host_state,
    ),
    case("a socket of the host outside cannot be connected to", host_sockets),
    case(
        "the library's memory, descriptors and variables cannot be reached",
        library,
    ),
    case(
        "no variable of the host reaches a command or can be read of another",
        variables,
    ),
    case("disks, memory and kernel devices are not there", devices),
    case("of /sys only the processors are shown", sys),
    case("the kernel's log, keys and memory cannot be read", kernel),
    case("only processes of the sandbox are listed", processes),
    case(
        "a directory that may be read is read-only, and its neighbours are not there",
        only_what_is_shown,
    ),
    case("git opens no repository outside", git),
    case("a file outside is not opened by its handle", handles),
    case("two sandboxes do not see each other's /tmp and home", two_sandboxes),
];

fn absolute(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").start()?;
    place.refused(r#"cat "$OUT/secret""#)?;
    place.refused_with(r#""$TOOLS/files" read "$OUT/secret""#, &["ENOENT"])?;
    place.refused_with(r#""$TOOLS/files" stat "$OUT""#, &["ENOENT"])?;
    place.refused(r#"python3 -c 'import os; print(open(os.environ["OUT"] + "/secret").read())'"#)?;
    place.works(r#""$TOOLS/files" read "$WORK/own""#)?;
    place
        .works(r#"python3 -c 'import os; print(open(os.environ["WORK"] + "/own").read())'"#)
        .map(drop)
}

fn parents(field: &Field) -> Checked {
    let place = field.place().file("deep/own", "mine").start()?;
    place.refused("cat ../outside/secret")?;
    place.refused(r#"cat "$WORK/deep/../../outside/secret""#)?;
    place.refused("cd .. && ls outside")?;
    place.refused("cd -P /proc/self/cwd/.. && cat outside/secret")?;
    let seen = place.works("ls ..")?;
    check(
        seen.split_whitespace().all(|name| name == "work" || name == "home"),
        || format!("beside the workspace stands: {seen}"),
    )?;
    place.works("cat deep/../../work/deep/own").map(drop)
}

fn roots(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").start()?;
    place.refused(r#"cat "/proc/self/root$OUT/secret""#)?;
    place.refused(r#"cat "/proc/1/root$OUT/secret""#)?;
    place.refused(r#"cat "/proc/$PPID/root$OUT/secret""#)?;
    place.refused(r#"cat "/proc/self/task/$$/root/proc/1/root$OUT/secret""#)?;
    place.refused(r#"for p in /proc/[0-9]*; do cat "$p/root$OUT/secret" && exit 0; done; exit 1"#)?;
    place.works(r#"cat "/proc/self/root$WORK/own""#).map(drop)
}

fn directories(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").start()?;
    place.refused(r#"for p in /proc/[0-9]*; do cat "$p/cwd/../outside/secret" && exit 0; done; exit 1"#)?;
    place.refused(r#"for p in 1 $PPID; do ls "/proc/$p/cwd" && exit 0; done; exit 1"#)?;
    place.works("cat /proc/self/cwd/own").map(drop)
}

fn holders(field: &Field) -> Checked {
    let place = field.place().start()?;
    for process in ["1", "$PPID"] {
        // To root the numbers are listed; what they are is not told, and they are not opened.
        for text in [
            "readlink /proc/@/fd/*",
            "cat /proc/@/fd/*",
            "ls /proc/@/fd/*/",
            "ls /proc/@/map_files/",
        ] {
            place.refused(&text.replace('@', process))?;
        }
        for file in ["environ", "mem", "maps", "exe", "auxv", "stack", "io"] {
            place.refused(&format!("head -c 1 /proc/{process}/{file} | grep -q ."))?;
        }
    }
    place.works("ls /proc/self/fd/")?;
    place.works("head -c 1 /proc/self/environ | grep -q .").map(drop)
}

fn links_of_the_user(field: &Field) -> Checked {
    let place = field
        .place()
        .file("own", "mine")
        .host(r#"ln -s "$OUT/secret" absolute; ln -s ../outside/secret relative; ln -s ../outside outside; ln -s / root; ln -s own inside"#)?
        .start()?;
    for path in [
        "absolute",
        "relative",
        "outside/secret",
        "root/$OUT/secret",
        "root/etc/shadow",
    ] {
        place.refused(&format!("cat {path}"))?;
    }
    place.works("cat inside").map(drop)
}

fn own_links(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").start()?;
    place.refused(r#"ln -s "$OUT/secret" a && cat a"#)?;
    place.refused(r#"ln -s ../outside/secret b && cat b"#)?;
    place.refused(r#"ln -s "/proc/self/root$OUT" c && cat c/secret"#)?;
    place.refused(r#"ln -s "/proc/1/root$OUT/secret" d && cat d"#)?;
    place.works("ln -s own e && cat e").map(drop)
}

fn copies(field: &Field) -> Checked {
    let place = field
        .place()
        .file("own", "mine")
        .host(r#"ln -s "$OUT" out; ln -s own inside"#)?
        .start()?;
    place.refused(r#"cp -rL out copy && grep -r . copy"#)?;
    place.attempt(r#"tar chf all.tar . 2>/dev/null; grep -a SECRET- all.tar"#)?;
    place.attempt(r#"find -L . -type f -exec cat {} +"#)?;
    place.works("cp -L inside copied && grep -q mine copied").map(drop)
}

fn hard_links(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").start()?;
    place.refused(r#"ln "$OUT/secret" a && cat a"#)?;
    place.refused_with(r#""$TOOLS/files" link "$WORK/b" "$OUT/secret""#, &["ENOENT"])?;
    // Not across mounts either, where the source can be seen.
    place.refused_with(
        r#""$TOOLS/files" link "$WORK/c" /usr/bin/env"#,
        &["EXDEV", "EPERM", "EACCES"],
    )?;
    place.refused_with(
        r#""$TOOLS/files" link-follow "$WORK/d" /proc/self/exe"#,
        &["EXDEV", "EPERM", "EACCES"],
    )?;
    place.works("ln own e && cat e").map(drop)
}

fn mounts(field: &Field) -> Checked {
    let place = field.place().file("own", "mine").start()?;
    for text in [
        r"mount --bind / /tmp",
        r"mount -t tmpfs none /tmp",
        r"mount -t proc none /tmp",
        r"umount -l /",
        r#"umount -l "$HOME""#,
        r"umount /proc",
        r#"unshare -Urm sh -c 'umount -l /; cat "$OUT/secret"'"#,
        r"nsenter -t 1 -m ls /",
        r"chroot / true",
        r"mkdir -p /tmp/a && pivot_root /tmp /tmp/a",
    ] {
        place.refused(text)?;
    }
    place.works("cat own && findmnt / >/dev/null").map(drop)
}

fn host_secrets(field: &Field) -> Checked {
    let place = field.place().start()?;
    for path in [
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/shadow-",
        "/etc/sudoers",
        "/etc/ssh/ssh_host_ed25519_key",
        "/etc/ssl/private",
        "/etc/machine-id",
        "/etc/krb5.keytab",
        "/etc/docker",
        "/etc/kubernetes",
    ] {
        place.refused_with(&format!("\"$TOOLS/files\" stat {path}"), &["ENOENT"])?;
    }
    let shown = place.works("cat /etc/passwd")?;
    check(shown.lines().count() <= 3, || {
        format!("the host's users are told: {shown}")
    })?;
    place.works("getent passwd \"$(id -u)\"").map(drop)
}

fn keys(field: &Field) -> Checked {
    let place = field.place().start()?;
    for key in KEYS {
        place.refused_with(&format!("\"$TOOLS/files\" read \"$HOME/{key}\""), &["ENOENT"])?;
    }
    place
        .works(r#"test -z "$(ls -A "$HOME")" && echo own > "$HOME/.npmrc" && cat "$HOME/.npmrc""#)
        .map(drop)
}

fn toolchain_credentials(field: &Field) -> Checked {
    let making = field.place();
    let home = making.root.join("home");
    let place = making
        .host(
            r#"h=../home; for d in .cargo .rustup/toolchains/x .nvm/versions/node/v1 .local go; do mkdir -p $h/$d/bin; printf '#!/bin/sh\necho RAN' > $h/$d/bin/tool; chmod +x $h/$d/bin/tool; done
               mkdir -p $h/.nvm/versions/node/v1/etc $h/.local/share/uv/credentials; for f in .nvm/versions/node/v1/etc/npmrc .local/share/uv/credentials/x .local/share/keyring; do cp $h/.npmrc $h/$f; done"#,
        )?
        .with(|restrictions| {
            restrictions.path = [".cargo/bin", ".nvm/versions/node/v1/bin", ".local/bin", "go/bin"]
                .iter()
                .map(|path| home.join(path).display().to_string())
                .collect::<Vec<_>>()
                .join(":");
        })
        .start()?;
    for path in [
        ".cargo/credentials.toml",
        ".nvm/versions/node/v1/etc/npmrc",
        ".local/share/uv/credentials/x",
        ".local/share/keyring",
        ".ssh/id_ed25519",
    ] {
        place.refused_with(&format!("\"$TOOLS/files\" read \"$HOME/{path}\""), &["ENOENT"])?;
    }
    place.refused_with(r#""$TOOLS/files" create "$HOME/.cargo/bin/evil""#, &["EROFS"])?;
    for tool in [".cargo/bin/tool", ".nvm/versions/node/v1/bin/tool", ".local/bin/tool"] {
        place.works(&format!("\"$HOME/{tool}\""))?;
    }
    Ok(())
}

fn other_homes(field: &Field) -> Checked {
    let place = field.place().start()?;
    place.refused("ls -A /root | grep .")?;
    place.refused("ls -A /home/*/ | grep .")?;
    place.refused("ls -A /mnt /media /opt /boot /lost+found 2>/dev/null | grep -v :$ | grep .")?;
    place.works("cd && pwd").map(drop)
}

fn host_temporaries(field: &Field) -> Checked {
    let place = field.place().start()?;
    let mut files = Vec::new();
    for directory in ["/tmp", "/var/tmp", "/dev/shm"] {
        if let Ok(file) = tempfile::NamedTempFile::new_in(directory) {
            fs::write(file.path(), place.secret())?;
            let path = file.path().display().to_string();
            place.refused_with(&format!("\"$TOOLS/files\" read {path}"), &["ENOENT"])?;
            place.works(&format!("echo x > {path}"))?;
            check(fs::read_to_string(file.path())? == place.secret(), || {
                format!("ESCAPED: {path} of the host was written to")
            })?;
            files.push(file);
        }
    }
    check(!files.is_empty(), || "no host directory could be written to".to_owned())?;
    place.works("ls -A /tmp && echo a > /tmp/b && cat /tmp/b").map(drop)
}

fn host_state(field: &Field) -> Checked {
    let place = field.place().start()?;
    for path in [
        "/var/log",
        "/var/lib/systemd",
        "/var/run/docker.sock",
        "/run/systemd",
        "/run/user",
        "/run/dbus/system_bus_socket",
        "/run/containerd",
        "/run/lock",
        "/var/cache/apt",
        "/var/cache/debconf",
        "/var/spool",
        "/var/mail",
    ] {
        place.refused_with(&format!("\"$TOOLS/files\" stat {path}"), &["ENOENT"])?;
    }
    place.works(r#"test -z "$(ls -A /run)""#).map(drop)
}

fn host_sockets(field: &Field) -> Checked {
    let making = field.place();
    let _listener = UnixListener::bind(making.root.join("outside/s"))?;
    let place = making.start()?;
    place.refused_with(r#""$TOOLS/files" connect "$OUT/s""#, &["ENOENT"])?;
    place.refused_with(r#"cd /tmp && "$TOOLS/files" connect ../$OUT/s"#, &["ENOENT"])?;
    place.works(r#"cd "$WORK" && "$TOOLS/files" socket s"#).map(drop)
}

fn library(field: &Field) -> Checked {
    let place = field.place().start()?;
    let host = std::process::id();
    for file in ["mem", "environ", "maps", "fd", "root", "cwd", "exe", "status"] {
        place.refused(&format!("ls /proc/{host}/{file}"))?;
    }
    place.refused(&format!("kill -0 {host}"))?;
    // What the library keeps in memory files has no name in there.
    place.refused("ls -l /proc/*/fd/ 2>/dev/null | grep -E 'memfd:(plan|request|shieling)'")?;
    place.works("ls /proc/$$/status").map(drop)
}

fn variables(field: &Field) -> Checked {
    let place = field.place().start()?;
    check(std::env::var_os("CARGO_PKG_NAME").is_some() || !field.is_root(), || {
        "run it with cargo, whose variables are looked for".to_owned()
    })?;
    place.refused("env | grep ^CARGO_ | grep -vx CARGO_NET_RETRY=0")?;
    place
        .refused("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep ^CARGO_ | grep -vx CARGO_NET_RETRY=0")?;
    place.works("env | grep ^WORK=").map(drop)
}

fn devices(field: &Field) -> Checked {
    let place = field.place().start()?;
    for name in [
        "mem",
        "kmem",
        "port",
        "kmsg",
        "vda",
        "sda",
        "nvme0n1",
        "loop0",
        "loop-control",
        "fuse",
        "kvm",
        "net/tun",
        "mapper/control",
        "console",
        "tty0",
        "hpet",
        "vhost-net",
        "vsock",
        "dri",
        "snd",
        "input",
        "uinput",
        "bus/usb",
        "autofs",
        "userfaultfd",
        "rtc0",
        "cpu_dma_latency",
        "initctl",
        "log",
    ] {
        place.refused_with(&format!("\"$TOOLS/files\" read /dev/{name}"), &["ENOENT"])?;
    }
    let seen = place.works("ls /dev")?;
    let known = [
        "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero",
    ];
    check(seen.split_whitespace().all(|name| known.contains(&name)), || {
        format!("more devices than thought: {seen}")
    })?;
    place
        .works("echo x > /dev/null && head -c 9 /dev/urandom | wc -c | grep -q 9")
        .map(drop)
}

fn sys(field: &Field) -> Checked {
    let place = field.place().start()?;
    for path in [
        "/sys/kernel",
        "/sys/fs",
        "/sys/class",
        "/sys/block",
        "/sys/firmware",
        "/sys/module",
        "/sys/power",
        "/sys/bus",
        "/sys/kernel/security",
        "/sys/kernel/debug",
        "/sys/fs/cgroup",
        "/sys/devices/virtual",
        "/sys/devices/system/node",
    ] {
        place.refused_with(&format!("\"$TOOLS/files\" stat {path}"), &["ENOENT"])?;
    }
    place.refused("echo 0 > /sys/devices/system/cpu/cpu1/online")?;
    place.works("cat /sys/devices/system/cpu/online && nproc").map(drop)
}

fn kernel(field: &Field) -> Checked {
    let place = field.place().start()?;
    place.refused("dmesg")?;
    for name in [
        "kmsg",
        "kcore",
        "keys",
        "key-users",
        "timer_list",
        "sysrq-trigger",
        "slabinfo",
        "iomem",
    ] {
        // Some are not there, some closed, and some are empty.
        place.refused(&format!("timeout 2 head -c 1 /proc/{name} | grep -q '[^0]'"))?;
    }
    place.refused("grep -v '^0* ' /proc/kallsyms | grep .")?;
    place
        .works("grep -q MemTotal /proc/meminfo && cat /proc/uptime")
        .map(drop)
}

fn processes(field: &Field) -> Checked {
    let place = field.place().start()?;
    let seen = place.works("ls -d /proc/[0-9]*")?;
    check(seen.lines().count() <= 5, || {
        format!("more processes than its own: {seen}")
    })?;
    // The pattern is none of its own text.
    place.refused("grep -l -e '[e]scape-[0-9a-f]' -e '[-]-as-this' /proc/[0-9]*/cmdline")?;
    place.works("sleep 5 & test -d /proc/$! && kill $!").map(drop)
}

fn only_what_is_shown(field: &Field) -> Checked {
    let making = field.place();
    let outside = making.root.join("outside");
    fs::create_dir(outside.join("shown"))?;
    fs::write(outside.join("shown/file"), "shown")?;
    std::os::unix::fs::symlink("../secret", outside.join("shown/link"))?;
    let shown = outside.join("shown");
    let place = making.with(|restrictions| restrictions.read.push(shown)).start()?;
    place.refused(r#"cat "$OUT/secret""#)?;
    place.refused(r#"cat "$OUT/shown/../secret""#)?;
    place.refused(r#"cat "$OUT/shown/link""#)?;
    place.refused(r#"echo x > "$OUT/shown/file""#)?;
    place.refused(r#"echo x > "$OUT/new""#)?;
    let seen = place.works(r#"ls "$OUT""#)?;
    check(seen.trim() == "shown", || format!("beside it stands: {seen}"))?;
    place.works(r#"cat "$OUT/shown/file""#).map(drop)
}

fn git(field: &Field) -> Checked {
    let place = field
        .place()
        .host(
            r#"git init -q ../outside/repo && cd ../outside/repo && cp ../secret file && git add file && git commit -qm x
               cd "$WORK" && git init -q . && echo mine > own && git add own && git commit -qm own && git config core.fsmonitor false"#,
        )?
        .start()?;
    place.refused(r#"git -C "$OUT/repo" show HEAD:file"#)?;
    place.refused(r#"git clone -q "$OUT/repo" clone && cat clone/file"#)?;
    place.refused(r#"git --git-dir="$OUT/repo/.git" cat-file -p HEAD:file"#)?;
    place.refused(
        r#"echo "$OUT/repo/.git/objects" > .git/objects/info/alternates; git --git-dir=.git fetch -q "$OUT/repo""#,
    )?;
    place.refused(r#"git hash-object -w "$OUT/secret""#)?;
    place.refused(r#"git diff --no-index /dev/null "$OUT/secret" | grep ^+"#)?;
    place.works("git show HEAD:own && git status --short").map(drop)
}

fn handles(field: &Field) -> Checked {
    let making = field.place();
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(making.root.join("outside/secret"))?);
    let place = making.file("own", "mine").start()?;
    place.refused_with(&format!("\"$TOOLS/files\" handle \"$WORK\" {inode}"), &["EPERM"])?;
    place.works("cat own").map(drop)
}

fn two_sandboxes(field: &Field) -> Checked {
    let one = field.place().start()?;
    let other = Place::beside(&one)?;
    one.works(r#"echo one > /tmp/x; echo one > "$HOME/x"; echo one > /dev/shm/x; echo one > shared"#)?;
    for path in ["/tmp/x", "\"$HOME/x\"", "/dev/shm/x"] {
        other.refused(&format!("cat {path}"))?;
    }
    match other.works("cat shared")?.trim() {
        "one" => Ok(()),
        text => wrong(format!("the workspace is not shared: {text}")),
    }
}
