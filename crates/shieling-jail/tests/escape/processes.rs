//! Processes that a command must not reach: the host's, its supervisor, pid 1 and other commands'. Its
//! own it can.

mod settings;

use rustix::process::Signal;

use super::outside::{Above, Background, Canary, Mark, is_the_same, remember, signal};
use super::support::{Case, Checked, Field, case, check, line};

use settings::{limits, permissions, priorities, traced};

pub(crate) const CASES: &[Case] = &[
    case("its own child can be signalled, traced, read and changed", own_child),
    case("pid 1 cannot be reached in any way", init),
    case("the supervisor of a command cannot be reached in any way", supervisor),
    case(
        "the processes of another command cannot be reached in any way",
        other_command,
    ),
    case("processes of the host cannot be reached by their numbers", host),
    case(
        "the list of processes shows the sandbox's own and nothing of the host",
        list,
    ),
    case(
        "a signal to everybody reaches a command's own processes and nobody else",
        everybody,
    ),
    case("limits of the jail's own processes cannot be set", limits),
    case("priorities do not keep a command beyond its deadline", priorities),
    case("a tracer does not hide the end of a command", traced),
    case("settings that let others trace change nothing", permissions),
    case("shared memory and queues of the host's are not there", shared),
    case("the host's view of a command gives it nothing in return", host_view),
];

/// Every way must be refused, in whatever words.
fn all_refused(field: &Field<'_>, text: &str) -> Checked {
    let mut tried = 0;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (name, answer) = line.split_once(' ').unwrap_or((line, ""));
        tried += 1;
        field.attempted();
        let refused = ["EPERM", "EACCES", "ESRCH", "ENOENT", "EBADF"].contains(&answer);
        check(refused, || format!("ESCAPED: {name} answered {answer}"))?;
    }
    check(tried >= 35, || format!("only {tried} ways were tried: {text}"))
}

fn own_child(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let text = place.works(r#""$TOOLS/reach" child"#)?;
    for line in text.lines() {
        check(line.ends_with(" OK"), || format!("of an own child, {line}"))?;
        field.worked();
    }
    if field.needs("gdb").is_ok() {
        let gdb = "gdb -nx -q -batch -ex 'break main' -ex run -ex bt -ex 'info registers rip' -ex cont --args";
        // In a container's cgroup and without debug symbols it is slow, and works all the same.
        let said = place.works(&format!(r#"{gdb} "$TOOLS/eat" spin 1 2>&1"#))?;
        check(said.contains("exited normally"), || format!("gdb says {said}"))?;
    }
    if field.needs("strace").is_ok() {
        place.works("strace -f -o trace sh -c 'cat /dev/null | cat' && grep -q execve trace")?;
    }
    Ok(())
}

fn init(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    remember(&place)?;
    all_refused(field, &place.works(r#""$TOOLS/reach" 1"#)?)?;
    // It goes on serving.
    is_the_same(&place)
}

fn supervisor(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    remember(&place)?;
    let outcome = place.attempt(r#""$TOOLS/reach" $PPID; exit 7"#)?;
    check(outcome.exit_code == Some(7), || {
        format!("not told truly: {}", line(&outcome))
    })?;
    all_refused(field, &outcome.stdout)?;
    for signal in [
        "KILL", "STOP", "TERM", "INT", "HUP", "USR1", "ABRT", "CHLD", "PIPE", "SEGV", "RTMIN",
    ] {
        place.refused_with(&format!("kill -{signal} $PPID"), &["Operation not permitted"])?;
        place.refused_with(
            &format!("kill -{signal} -- -$PPID 1"),
            &["Operation not permitted", "No such process"],
        )?;
    }
    place
        .works("sleep 100 & kill -KILL $!; wait $!; [ $? = 137 ]")
        .map(drop)
}

fn other_command(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    remember(&place)?;
    let mark = Mark::new();
    let other = Background::start(field, &place, &format!("SECRET_OF_ANOTHER=1 exec sleep {mark}"))?;
    let main = mark.wait_for(1)?;
    let number = place.works(&format!(
        "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | grep -q '^sleep {mark}' && echo ${{p#/proc/}}; done; true"
    ))?;
    let number = number.trim();
    check(!number.is_empty(), || "the other command is not listed".to_owned())?;
    all_refused(field, &place.works(&format!(r#""$TOOLS/reach" {number}"#))?)?;
    place.refused_with(&format!("kill -KILL {number}"), &["Operation not permitted"])?;
    place.refused_with(&format!("cat /proc/{number}/environ"), &["Permission denied"])?;
    check(mark.alive() == main && other.runs(), || {
        "ESCAPED: the other command is gone".to_owned()
    })?;
    // And from outside it can be ended, by whoever runs it.
    let above = Above::of(main[0])?;
    signal(main[0], Signal::KILL)?;
    let outcome = other.end()?;
    check(outcome.signal == Some(9), || line(&outcome))?;
    check(above.init.lives(), || "the sandbox is gone".to_owned())?;
    is_the_same(&place)
}

fn host(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let mark = Mark::new();
    let mut canary = Canary::start(&mark)?;
    let own = std::process::id();
    for number in [canary.number(), own, std::os::unix::process::parent_id()] {
        all_refused(field, &place.works(&format!(r#""$TOOLS/reach" {number}"#))?)?;
        canary.is_well()?;
    }
    place.refused_with(&format!("kill -KILL {}", canary.number()), &["No such process"])?;
    place.refused(&format!("ls /proc/{}", canary.number()))?;
    place.attempt("for n in $(seq 1000 4000); do kill -STOP $n; done 2> /dev/null; true")?;
    canary.is_well()?;
    // A number given to the kernel in another way: that of a lock's owner, of a terminal's group.
    place
        .refused("flock /tmp/l true && grep -q POSIX /proc/locks && awk '{print $5}' /proc/locks | grep -qx 1000000")?;
    canary.is_well()
}

fn list(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let mark = Mark::new();
    let _canary = Canary::start(&mark)?;
    field.attempted();
    let text = place.works("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo; ls -d /proc/[0-9]* | wc -l")?;
    check(!text.contains(&mark.to_string()), || {
        "ESCAPED: a process of the host is listed".to_owned()
    })?;
    let count: usize = text
        .lines()
        .last()
        .and_then(|line| line.trim().parse().ok())
        .unwrap_or(usize::MAX);
    check(count <= 6, || format!("{count} processes are listed"))?;
    let listed = place.works("ps -e --no-headers")?;
    check(listed.lines().count() <= 8, || format!("`ps` lists {listed}"))?;
    // What of `/proc` tells of the machine, or could change it.
    for file in [
        "kcore",
        "kallsyms",
        "keys",
        "key-users",
        "timer_list",
        "sysrq-trigger",
        "slabinfo",
        "vmallocinfo",
    ] {
        place.refused(&format!(
            "[ -n \"$(head -c 100 /proc/{file} 2> /dev/null | tr -d '\\0')\" ]"
        ))?;
    }
    for file in [
        "sysrq-trigger",
        "sys/kernel/core_pattern",
        "sys/kernel/hostname",
        "sys/vm/drop_caches",
        "sys/kernel/modprobe",
        "self/oom_score_adj",
        "self/uid_map",
        "self/setgroups",
        "self/attr/current",
        "1/oom_score_adj",
        "acpi",
        "irq/default_smp_affinity",
    ] {
        place.refused(&format!("{{ echo 0 > /proc/{file}; }} 2> /dev/null"))?;
    }
    Ok(())
}

fn everybody(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    remember(&place)?;
    let (own, others, hosts) = (Mark::new(), Mark::new(), Mark::new());
    let other = Background::start(field, &place, &format!("sleep {others}; exit 3"))?;
    others.wait_for(1)?;
    let mut canary = Canary::start(&hosts)?;
    for signal in ["KILL", "STOP", "TERM"] {
        let text = format!("setsid sleep {own} & sleep 0.05; kill -{signal} -1; sleep 0.1; echo still here");
        let outcome = place.attempt(&text)?;
        check(outcome.survivors == 0, || line(&outcome))?;
        own.wait_for(0)?;
        canary.is_well()?;
        check(others.alive().len() == 1 && other.runs(), || {
            "ESCAPED: another command was ended".to_owned()
        })?;
    }
    let outcome = place.attempt("kill -KILL 0")?;
    check(outcome.signal == Some(9), || line(&outcome))?;
    check(other.runs(), || "ESCAPED: another command was ended".to_owned())?;
    other.drop_it();
    others.wait_for(0)?;
    is_the_same(&place)
}

/// What the host shows of a command, such as links of its own below `/proc`, leads nowhere else.
fn host_view(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    for path in [
        "/proc/1/root",
        "/proc/1/cwd",
        "/proc/1/fd",
        "/proc/1/environ",
        "/proc/1/maps",
        "/proc/1/mem",
        "/proc/1/exe",
        "/proc/$PPID/root",
        "/proc/$PPID/cwd",
        "/proc/$PPID/fd",
        "/proc/$PPID/environ",
        "/proc/$PPID/mem",
        "/proc/$PPID/exe",
    ] {
        place.refused_with(
            &format!("[ -L {path} ] && readlink {path} || head -c 1 {path} || ls {path}/0"),
            &["Permission denied"],
        )?;
    }
    // Nothing was left open that a command did not get.
    place.works("[ \"$(ls /proc/self/fd | tr '\\n' ' ')\" = '0 1 2 3 ' ]")?;
    place.refused("ls -l /proc/self/fd | grep -E 'socket|memfd|shieling|deleted'")?;
    place
        .works("[ \"$(readlink /proc/self/root)\" = / ] && [ \"$(readlink /proc/self/cwd)\" = \"$WORK\" ]")
        .map(drop)
}

/// System V segments and semaphores, by their numbers and keys.
fn shared(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    field.needs("ipcmk")?;
    let place = field.place().start()?;
    let host = |text: &str| place.host(text);
    let made = host("ipcmk -M 4096 -p 0666")?;
    let number = made.rsplit(' ').next().unwrap_or_default().trim().to_owned();
    let attach = format!(
        "python3 -c 'import ctypes, sys; shmat = ctypes.CDLL(None).shmat; shmat.restype = ctypes.c_long; sys.exit(shmat({number}, 0, 0) == -1)'"
    );
    let outside = host(&attach);
    let inside = place.refused(&attach);
    let listed = place.refused(&format!("ipcs -m | grep -w {number}"));
    host(&format!("ipcrm -m {number}"))?;
    outside?;
    inside?;
    listed?;
    place
        .works("id=$(ipcmk -M 4096 | grep -o '[0-9]*$') && ipcs -m | grep -qw $id && ipcrm -m $id")
        .map(drop)
}
