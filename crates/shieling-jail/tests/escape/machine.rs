//! What belongs to the machine: set-uid programs, devices, control groups, inherited descriptors, and
//! core dumps.

use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;

use super::support::{Case, Checked, Field, alone, case, check};

pub(crate) const CASES: &[Case] = &[
    case("a set-uid program gives nobody's rights", set_uid),
    case("a set-uid copy in the workspace gives nobody's rights", set_uid_copy),
    case("programs that live by set-uid gain nothing", su),
    case("no capability is held or can be had", capabilities),
    case("devices cannot be made", made_devices),
    case(
        "a device that the user has made in the workspace cannot be opened",
        users_devices,
    ),
    case("only the harmless devices can be opened", open_devices),
    case(
        "nothing of the host's control groups is there or can be mounted",
        control_groups,
    ),
    case("a command has three descriptors and no more", descriptors),
    alone(
        "descriptors that the host left open do not reach a command",
        many_descriptors,
    ),
    alone(
        "a directory of the host that is left open does not reach a command",
        open_directory,
    ),
    case("a long command brings its text and nothing else", long_command),
    case(
        "the text of a long command cannot be changed while it is read",
        sealed_text,
    ),
    case("a crash leaves no core dump, and no limit lets it", core_dumps),
    case("a terminal of the host is not there", terminals),
];

const STATUS: &str = "grep -E '^(Uid|Gid|CapEff|CapPrm|CapInh|CapAmb|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status";

fn set_uid(field: &Field) -> Checked {
    let place = field.place().start()?;
    let own = place.works(STATUS)?;
    // Those of the system: each runs, if at all, with our own rights.
    for program in [
        "/usr/bin/su",
        "/usr/bin/passwd",
        "/usr/bin/mount",
        "/usr/bin/newgrp",
        "/usr/bin/chsh",
        "/usr/bin/umount",
    ] {
        let inside = place.attempt(&format!(
            "test -u {program} && echo set-uid; \"$TOOLS/files\" stat {program}"
        ))?;
        let _ = inside;
        place.attempt(&format!("{program} --version < /dev/null"))?;
    }
    check(place.works(STATUS)? == own, || "rights changed".to_owned())?;
    place
        .works("findmnt -no OPTIONS -T /usr/bin/su | grep -qw nosuid")
        .map(drop)
}

fn set_uid_copy(field: &Field) -> Checked {
    let place = field.place().start()?;
    fs::copy("/usr/bin/id", place.work().join("id"))?;
    let copy = place.work().join("id");
    if field.is_root() {
        std::os::unix::fs::chown(&copy, Some(12), Some(12))?;
    }
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o6755))?;
    let plain = place.works("id -u; id -g")?;
    field.attempted();
    let set = place.works("./id -u; ./id -g")?;
    check(plain == set, || format!("ESCAPED: it is {set} in the place of {plain}"))?;
    place.refused_with(
        "cp /usr/bin/id /tmp/id && chmod 6755 /tmp/id",
        &["Operation not permitted"],
    )
}

fn su(field: &Field) -> Checked {
    let place = field.place().start()?;
    for text in [
        "su nobody -s /bin/sh -c id < /dev/null",
        "python3 -c 'import os; os.setresuid(1, 1, 1)'",
        "setpriv --regid=1 --clear-groups id || exit 1",
        "chroot --userspec=1:1 / id",
        "newgrp daemon < /dev/null | grep daemon",
        "python3 -c 'import os; os.setuid(1)'",
        "python3 -c 'import os; os.setgroups([0, 1])'",
        "python3 -c 'import os; os.setresgid(1, 1, 1)'",
        "chown 1:1 /tmp",
        "nice -n -5 true 2>&1 | grep -i 'cannot\\|denied' && exit 1",
    ] {
        place.refused(text)?;
    }
    place.works("id && nice -n 5 true").map(drop)
}

fn capabilities(field: &Field) -> Checked {
    let place = field.place().start()?;
    let status = place.works(STATUS)?;
    for name in ["CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd"] {
        field.attempted();
        check(status.contains(&format!("{name}:\t0000000000000000")), || {
            format!("{name}: {status}")
        })?;
    }
    check(
        status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"),
        || status.clone(),
    )?;
    place.refused("setpriv --inh-caps=+sys_admin --ambient-caps=+sys_admin true || exit 1")?;
    place.refused("setpriv --bounding-set=+all grep -q 'CapBnd:.*f' /proc/self/status || exit 1")?;
    place.works("setpriv --no-new-privs true").map(drop)
}

fn made_devices(field: &Field) -> Checked {
    let place = field.place().start()?;
    for directory in ["\"$WORK\"", "/tmp", "\"$HOME\"", "/dev/shm", "/run", "/dev"] {
        for call in ["mkchar", "mkblock"] {
            let says = &["EACCES", "EPERM", "EROFS"];
            place.refused_with(&format!("\"$TOOLS/files\" {call} {directory}/device"), says)?;
        }
    }
    place
        .works("\"$TOOLS/files\" mkfifo /tmp/fifo && \"$TOOLS/files\" mknod /tmp/file")
        .map(drop)
}

fn users_devices(field: &Field) -> Checked {
    if !field.is_root() {
        // Only root can make one; the other of the two runs does it.
        return Ok(());
    }
    let place = field
        .place()
        .host("mknod null c 1 3; mknod zero c 1 5; mknod disk b 7 0; chmod 666 null zero disk")?
        .start()?;
    for text in [
        "echo x > null",
        "head -c 1 zero",
        "head -c 1 disk",
        "cp -a zero /tmp/zero && head -c 1 /tmp/zero",
        "mv zero other && head -c 1 other",
    ] {
        place.refused(text)?;
    }
    place
        .works("echo x > /dev/null && head -c 1 /dev/zero > /dev/null")
        .map(drop)
}

fn open_devices(field: &Field) -> Checked {
    let place = field.place().start()?;
    place.refused("for d in /dev/* /dev/pts/*; do test -b \"$d\" && exit 0; done; exit 1")?;
    place.refused("rm /dev/null")?;
    place.refused("mv /dev/null /dev/other")?;
    for call in ["chmod", "fchmodat2", "fchmod", "chown", "utimens", "setxattr", "unlink"] {
        for device in ["null", "zero", "urandom"] {
            let says = &["EROFS", "EPERM", "EACCES"];
            place.refused_with(&format!("\"$TOOLS/files\" {call} /dev/{device}"), says)?;
        }
    }
    place.refused("ln -s /tmp /dev/own")?;
    place.refused("echo x > /dev/full")?;
    place
        .works(
            "for d in null zero random urandom; do head -c 1 /dev/$d > /dev/null || exit 1; done; echo x > /dev/shm/x",
        )
        .map(drop)
}

fn control_groups(field: &Field) -> Checked {
    let place = field.place().start()?;
    for text in [
        "ls /sys/fs/cgroup",
        "echo $$ > /sys/fs/cgroup/cgroup.procs",
        "mkdir /tmp/c && mount -t cgroup2 none /tmp/c",
        "mount -t cgroup -o memory none /tmp",
        "grep -w cgroup /proc/self/mounts",
        "ls -d /proc/[0-9]*/root/sys/fs/cgroup",
        "grep -v ':/$' /proc/self/cgroup | grep -v ':/\\.\\.'; grep -c . /proc/self/cgroup | grep -q '^0$'",
        "unshare -C true",
    ] {
        place.refused(text)?;
    }
    place.works("cat /proc/self/cgroup > /dev/null").map(drop)
}

/// The numbers of the descriptors of a program that is started; the listing has one of its own.
const OPEN: &str = r#"python3 -c 'import os; print(sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1])'"#;

fn descriptors(field: &Field) -> Checked {
    let place = field.place().start()?;
    let open = place.works(OPEN)?;
    field.attempted();
    check(open.trim() == "[0, 1, 2]", || format!("more than three: {open}"))?;
    let shell = place.works("for f in /proc/$$/fd/*; do echo -n \"${f##*/} \"; done")?;
    check(
        shell
            .split_whitespace()
            .all(|number| ["0", "1", "2", "255", "3"].contains(&number)),
        || format!("the shell has more: {shell}"),
    )?;
    place.refused("read -r x")?;
    place.refused("echo x >&3")?;
    let first = place.works("readlink /proc/self/fd/0")?;
    check(first.trim() == "/dev/null", || format!("standard input is {first}"))?;
    place
        .works("echo x >&2; exec 7>/tmp/x; echo y >&7; cat /tmp/x")
        .map(drop)
}

/// A descriptor that is handed on by every exec.
fn left_open(path: &std::path::Path) -> Checked<OwnedFd> {
    let file: OwnedFd = fs::File::open(path)?.into();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
    Ok(file)
}

fn many_descriptors(field: &Field) -> Checked {
    let making = field.place();
    let secret = making.root.join("outside/secret");
    let before: Vec<OwnedFd> = (0..100).map(|_| left_open(&secret)).collect::<Checked<_>>()?;
    let place = making.start()?;
    field.attempted();
    let open = place.works(OPEN)?;
    check(open.trim() == "[0, 1, 2]", || format!("ESCAPED: {open}"))?;
    let after: Vec<OwnedFd> = (0..100).map(|_| left_open(&secret)).collect::<Checked<_>>()?;
    let open = place.works(OPEN)?;
    check(open.trim() == "[0, 1, 2]", || format!("ESCAPED: {open}"))?;
    let numbers: Vec<String> = before
        .iter()
        .chain(&after)
        .map(|fd| fd.as_raw_fd().to_string())
        .collect();
    place.refused(&format!(
        "for n in {}; do cat /proc/self/fd/$n && exit 0; cat <&$n && exit 0; done 2>/dev/null; exit 1",
        numbers.join(" ")
    ))?;
    // Neither pid 1 nor a supervisor holds them.
    place.refused("cat /proc/1/fd/* /proc/$PPID/fd/*").map(drop)
}

fn open_directory(field: &Field) -> Checked {
    let making = field.place().file("own", "mine");
    let outside = left_open(&making.root.join("outside"))?;
    let place = making.start()?;
    let number = outside.as_raw_fd();
    place.refused(&format!("cat /proc/self/fd/{number}/secret"))?;
    place.refused(&format!("cd /proc/self/fd/{number} && cat secret"))?;
    // A directory that was left open as the working directory of the host is not ours either.
    place.refused("cat /proc/self/cwd/../outside/secret")?;
    place.refused("for n in $(seq 3 300); do cat /proc/self/fd/$n/secret && exit 0; done 2>/dev/null; exit 1")?;
    place.works("exec 9< . && cat /proc/self/fd/9/own").map(drop)
}

fn long_command(field: &Field) -> Checked {
    let place = field.place().start()?;
    let long = format!(
        "{}\n",
        ": yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n".repeat(2_000)
    );
    let open = place.works(&format!("{long}{OPEN}"))?;
    field.attempted();
    check(open.trim() == "[0, 1, 2]", || {
        format!("the text's own descriptor stays open: {open}")
    })?;
    place
        .refused(&format!("{long}readlink /proc/self/fd/* | grep memfd"))
        .map(drop)
}

/// Tries to change every file in memory that this process or its parent has open.
const REWRITE: &str = r#"python3 -c '
import fcntl, mmap, os
met = 0
for pid in (os.getpid(), os.getppid()):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            if "memfd:" not in os.readlink(path): continue
            file = os.open(path, os.O_RDWR)
        except OSError as error: continue
        met += 1
        size = os.fstat(file).st_size
        for attempt in (
            lambda: os.pwrite(file, b"echo changed; exit #" + b"y" * 100, size // 2),
            lambda: os.ftruncate(file, size // 2),
            lambda: os.ftruncate(file, size + 1),
            lambda: os.posix_fallocate(file, 0, size + 4096),
            lambda: mmap.mmap(file, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
            lambda: fcntl.fcntl(file, 1033, 1),
        ):
            try: attempt(); print("a file in memory was changed")
            except OSError: pass
print("met", met)
'
"#;

fn sealed_text(field: &Field) -> Checked {
    field.needs("python3")?;
    let padding = ": yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n".repeat(2_000);
    // A shell that reads its text while it runs it, and one that has read it before.
    for (shell, met) in [("/bin/sh", "met 1"), ("/bin/bash", "met 0")] {
        if shell == "/bin/sh" {
            let shell = fs::canonicalize(shell)?;
            if shell.file_name().is_some_and(|name| name == "bash") {
                continue;
            }
        }
        let place = field.place().with(|asked| asked.shell = shell.into()).start()?;
        field.attempted();
        let said = place.works(&format!("{REWRITE}\n{padding}\necho as it was judged\n"))?;
        check(said.trim() == format!("{met}\nas it was judged"), || {
            format!("the text of a command in `{shell}` was changed: {said}")
        })?;
    }
    Ok(())
}

fn core_dumps(field: &Field) -> Checked {
    let place = field.place().start()?;
    let limit = place.works(
        "ulimit -Hc; ulimit -Sc; python3 -c 'import resource; print(resource.getrlimit(resource.RLIMIT_CORE))'",
    )?;
    check(limit.contains("(1, 1)") || limit.contains("(0, 0)"), || {
        format!("dumps are possible: {limit}")
    })?;
    place.refused("ulimit -c unlimited")?;
    place.refused("python3 -c 'import resource; resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))'")?;
    for text in [
        "cd /tmp && sh -c 'kill -SEGV $$'",
        "sh -c 'kill -ABRT $$'",
        "python3 -c 'import ctypes; ctypes.string_at(0)'",
        "sh -c 'kill -QUIT $$'",
    ] {
        place.refused(text)?;
    }
    // A program on the host that collects them writes elsewhere; what it is given is nothing at all.
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern")?;
    if pattern.trim().starts_with('/') {
        let directory = std::path::Path::new(pattern.trim())
            .parent()
            .expect("absolute")
            .to_path_buf();
        check(
            fs::read_dir(directory).map_or(true, |mut list| list.next().is_none()),
            || pattern.clone(),
        )?;
    }
    let left = place.works("find \"$WORK\" /tmp \"$HOME\" -name 'core*' | wc -l")?;
    check(left.trim() == "0", || format!("{left} core dumps"))
}

fn terminals(field: &Field) -> Checked {
    let place = field.place().start()?;
    place.refused("echo x > /dev/tty")?;
    place.refused("ls /dev/pts | grep -v ptmx | grep .")?;
    place.refused("tty")?;
    place
        .works("python3 -c 'import pty, os; m, s = pty.openpty(); os.write(s, b\"x\"); print(os.ttyname(s))'")
        .map(drop)
}
