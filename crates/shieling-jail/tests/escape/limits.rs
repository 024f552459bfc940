//! What a command uses up: memory, tasks, processor time, files, disk, output. Each limit holds over all
//! processes of a sandbox, is told apart from other ends, and lets modest use be.

mod files;
mod memory;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shieling_jail::plan::Limits;

use super::outside::{Above, Background, Mark, groups, processes};
use super::support::{
    Case, Checked, Field, LONGEST, Making, Place, alone, check, heavy, line, skip, until, within, wrong,
};

use files::{disk, file_size, flood, inodes, open_files};
use memory::{
    filled_for_good, killed_first, memory_in_files, memory_of_many, memory_of_one, memory_of_the_only_one,
    memory_shared, sent_and_not_received, shared_again_and_again,
};

pub(crate) const CASES: &[Case] = &[
    heavy(
        "one process gets no more memory than the limit, and its end says so",
        memory_of_one,
    ),
    heavy(
        "the one command that is expected gets no more memory",
        memory_of_the_only_one,
    ),
    heavy("many processes get no more memory together", memory_of_many),
    heavy("shared memory counts, in every form", memory_shared),
    heavy(
        "shared memory that is given back late takes nothing of ours and no session along",
        shared_again_and_again,
    ),
    heavy(
        "memory that is filled for good is told of each command",
        filled_for_good,
    ),
    heavy("commands are killed first, and cannot take it back", killed_first),
    heavy("files in memory count", memory_in_files),
    heavy("never more tasks than the limit are alive, whatever forks", tasks),
    heavy("a small share of the processors is not exceeded", processor),
    heavy(
        "a limit that cannot be held is refused, with the reason",
        cannot_be_held,
    ),
    heavy("a file is not written beyond its limit", file_size),
    heavy("no more files are open than the limit", open_files),
    heavy(
        "private directories are full at their size, and the host's disk is untouched",
        disk,
    ),
    heavy("private directories are full at their number of files", inodes),
    heavy("what is sent and not received counts as memory", sent_and_not_received),
    alone("a flood of output is bounded, and its producer goes on", flood),
    heavy(
        "of control groups only its own can be seen, and none be left or changed",
        control_groups,
    ),
    heavy("language runtimes find the limit on memory", runtimes),
    heavy(
        "the first command is in its control groups from its first instruction on, however much they give",
        first_command,
    ),
];

const MIB: u64 = 1 << 20;

fn limited<'a>(field: &'a Field<'a>, limits: Limits) -> Making<'a> {
    field.place().with(|asked| asked.limits = limits)
}

fn tasks(field: &Field<'_>) -> Checked {
    let making = limited(
        field,
        Limits {
            pids: Some(64),
            ..Limits::default()
        },
    );
    let mut place = making.start()?;
    let limits = field.runtime.block_on(async {
        place.sandbox.start().await?;
        Ok::<_, super::support::Fail>(place.sandbox.limits().await)
    })?;
    check(limits.pids == Some(64), || format!("{limits:?}"))?;
    let space = space(&place)?;
    for text in [
        r#""$TOOLS/eat" forks 300"#,
        r#""$TOOLS/eat" threads 300"#,
        "f() { f | f & }; f; sleep 1",
        "while :; do setsid -f sleep 5; done 2> /dev/null",
        "for i in $(seq 200); do sleep 5 & done",
    ] {
        place.deadline = Duration::from_millis(1_500);
        // On a busy machine a text may get nowhere before its deadline.
        let tried = |(_, peak): &(_, u64)| *peak >= 40;
        let (outcome, peak) = until(tried, || {
            within(Duration::from_millis(1_500 + 5_000 + 1_000), || {
                let (outcome, peak) = during(|| tasks_of(&inside(&space)), || place.attempt(text));
                check(peak <= 64, || format!("ESCAPED: `{text}` had {peak} tasks"))?;
                Ok((outcome?, peak))
            })
        })?;
        check(peak >= 40, || {
            format!("`{text}` was not seen to try: {peak} tasks, {}", line(&outcome))
        })?;
        check(outcome.survivors == 0, || format!("`{text}`: {}", line(&outcome)))?;
        let cleared = Instant::now();
        while tasks_of(&inside(&space)) > 0 {
            check(cleared.elapsed() < LONGEST, || format!("`{text}` is still there"))?;
            std::thread::sleep(Duration::from_millis(5));
        }
        place.deadline = LONGEST;
        place.works("for i in 1 2 3 4 5 6 7 8; do true & done; wait; echo | cat | cat | cat")?;
    }
    Ok(())
}

fn processor(field: &Field<'_>) -> Checked {
    let limits = Limits {
        cpu_thousandths: Some(200),
        ..Limits::default()
    };
    let place = limited(field, limits).start()?;
    match field.runtime.block_on(place.sandbox.start()) {
        Ok(_) => {}
        Err(error) if field.is_root() => return wrong(error),
        // Refused, as the case below has it.
        Err(_) => return Ok(()),
    }
    field.attempted();
    // On a busy machine it may not even get its share.
    let used = until(
        |used| *used >= 200,
        || {
            let used = place.works(r#"for i in 1 2; do "$TOOLS/eat" spin 2000 & done; wait"#)?;
            let used: u64 = used.lines().filter_map(|line| line.trim().parse::<u64>().ok()).sum();
            check(used <= 700, || format!("ESCAPED: {used} ms of the processors in 2 s"))?;
            Ok(used)
        },
    )?;
    check(used >= 200, || format!("only {used} ms in 2 s, of 400"))
}

fn cannot_be_held(field: &Field<'_>) -> Checked {
    let refused = |limits: Limits, says: &[&str]| -> Checked {
        field.attempted();
        let place = limited(field, limits).start()?;
        match field.runtime.block_on(place.sandbox.start()) {
            Ok(confinement) => wrong(format!("{limits:?} was taken: {confinement:?}")),
            Err(error) => {
                let text = error.to_string();
                check(says.iter().any(|says| text.contains(says)), || {
                    format!("refused as `{text}`")
                })
            }
        }
    };
    refused(
        Limits {
            open_files: Some(10),
            ..Limits::default()
        },
        &["open files"],
    )?;
    if !field.is_root() {
        refused(
            Limits {
                cpu_thousandths: Some(200),
                ..Limits::default()
            },
            &["processor time"],
        )?;
    }
    // What holds it is told, for each limit and user.
    let place = limited(
        field,
        Limits {
            memory: Some(512 * MIB),
            pids: Some(100),
            open_files: Some(256),
            cpu_thousandths: None,
        },
    )
    .start()?;
    let confinement = field.runtime.block_on(place.sandbox.start())?;
    let names = ["memory", "pids", "open_files", "core"];
    for name in names {
        check(
            confinement
                .enforced
                .iter()
                .any(|layer| layer.ends_with(&format!(".{name}"))),
            || format!("nothing holds {name}: {confinement:?}"),
        )?;
    }
    place.works("true").map(drop)
}

fn control_groups(field: &Field<'_>) -> Checked {
    let place = limited(
        field,
        Limits {
            memory: Some(256 * MIB),
            pids: Some(200),
            ..Limits::default()
        },
    )
    .start()?;
    for text in [
        "mkdir /sys/fs/cgroup/x",
        "echo $$ > /sys/fs/cgroup/cgroup.procs",
        // No group below its own, nothing of one that is not, and no other file system.
        "find /sys/fs -mindepth 3 -type d 2> /dev/null | grep -v '/cgroup/[^/]*$' | grep .",
        "find /sys/fs/cgroup/unlimited -mindepth 1 | grep .",
        "find / -name release_agent 2> /dev/null | grep .",
        "find / -xdev -name cgroup.procs 2> /dev/null | grep .",
        "find /sys/fs/cgroup -writable -type f 2> /dev/null | xargs -r -n 1 tee < /dev/null 2>&1 | grep -v 'Read-only file system' | grep .",
        "for f in $(find /sys/fs/cgroup -name tasks -o -name cgroup.procs -o -name 'memory.*limit*' -o -name '*.max'); do echo 0 > $f && exit 0; done 2> /dev/null; false",
        "for d in $(find /sys/fs/cgroup -type d); do mkdir $d/x && exit 0; done 2> /dev/null; false",
        "for d in $(find /sys/fs/cgroup -type d); do umount -l $d && exit 0; mount -o remount,bind,rw $d && exit 0; done 2> /dev/null; false",
        "grep -v ':/$' /proc/self/cgroup",
        "grep -E ' - cgroup2? ' /proc/self/mountinfo | grep -v -E '^[0-9]+ [0-9]+ [0-9:]+ / /sys/fs/cgroup[^ ]* ro,'",
        "ls -a /sys/fs | grep -v -x -e . -e .. -e cgroup",
        "unshare -C true",
        "unshare -Ur true",
    ] {
        place.refused(text)?;
    }
    // By the monitor's number in their names: those of other sandboxes come and go, and what a monitor that was
    // killed leaves stays until the next one comes.
    let mark = Mark::new();
    let running = Background::start(field, &place, &format!("exec sleep {mark}"))?;
    let main = mark.wait_for_sleepers(1)?;
    let monitor = Above::of(main.first().copied().unwrap_or(0))?.monitor.pid;
    let ours = || -> Vec<String> {
        let name = format!("/shieling-{monitor}-");
        groups().into_iter().filter(|group| group.contains(&name)).collect()
    };
    let made = ours();
    running.drop_it();
    place.close();
    // What this one made is gone.
    let begun = Instant::now();
    while !ours().is_empty() {
        check(begun.elapsed() < LONGEST, || {
            format!("control groups are left: {:?}", ours())
        })?;
        std::thread::sleep(Duration::from_millis(20));
    }
    if field.is_root() && made.is_empty() {
        return skip("no control group can be made here, even by root");
    }
    Ok(())
}

/// Bounds that a command would take long to reach hold for it as soon as narrow ones do.
fn first_command(field: &Field<'_>) -> Checked {
    let limits = Limits {
        memory: Some(8 << 30),
        pids: Some(4000),
        ..Limits::default()
    };
    for _ in 0..10 {
        let place = limited(field, limits).start()?;
        field.attempted();
        let confinement = field.runtime.block_on(place.sandbox.start())?;
        // As the shell's own first act, with no process in between. What it sees begins with its groups.
        let own = place.run("printf '%s\\n' \"$(< /proc/self/cgroup)\"")?.stdout;
        check(own.lines().all(|line| line.ends_with(":/")), || {
            format!("ESCAPED: outside of its groups:\n{own}")
        })?;
        if confinement.enforced.iter().any(|enforced| enforced == "cgroup.memory") {
            let limit = place.works(
                "cat /sys/fs/cgroup/memory*/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2> /dev/null || true",
            )?;
            check(limit.trim() == (8_u64 << 30).to_string(), || {
                format!("ESCAPED: another group is seen: {limit}")
            })?;
        }
        place.close();
    }
    field.worked();
    Ok(())
}

/// Where a group holds the limit. Elsewhere there is nothing that they could read.
fn runtimes(field: &Field<'_>) -> Checked {
    let place = memory::with_memory(field, 1024)?;
    let confinement = field.runtime.block_on(place.sandbox.start())?;
    if !confinement.enforced.iter().any(|layer| layer == "cgroup.memory") {
        return place.refused("[ -e /sys/fs/cgroup ]").map(drop);
    }
    check(!confinement.missing.iter().any(|layer| layer == "cgroup.view"), || {
        format!("{confinement:?}")
    })?;
    if field.needs("java").is_ok() {
        let heap = place.works("java -XX:+PrintFlagsFinal -version 2> /dev/null | grep -w MaxHeapSize")?;
        let bytes = heap.split_whitespace().find_map(|word| word.parse::<u64>().ok());
        check(bytes == Some(256 * MIB), || heap.clone())?;
    }
    if field.needs("node").is_ok() {
        let known = place.works("node -p 'process.constrainedMemory?.() ?? 1073741824'")?;
        check(known.trim() == (1_u64 << 30).to_string(), || known.clone())?;
    }
    // With a share of the processors, the group for it is seen too.
    let place = limited(
        field,
        Limits {
            memory: Some(1 << 30),
            cpu_thousandths: Some(1500),
            ..Limits::default()
        },
    )
    .start()?;
    let share = place.works("cat /sys/fs/cgroup/cpu*/cpu.cfs_quota_us /sys/fs/cgroup/cpu.max 2> /dev/null || true")?;
    check(share.trim().starts_with("150000"), || share.clone())
}

/// The name of a sandbox's pid namespace.
fn space(place: &Place<'_>) -> Checked<String> {
    Ok(place.run("readlink /proc/self/ns/pid")?.stdout.trim().to_owned())
}

/// The host's numbers of the processes in a pid namespace; for an ordinary user, those of commands only.
fn inside(space: &str) -> Vec<i32> {
    let is_there = |pid: &i32| fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|link| link.as_os_str() == space);
    processes().filter(is_there).collect()
}

/// What these have together at one moment, at least. They are looked at one after the other, and on a busy machine
/// one has ended and given its share to the next before that is looked at: of two looks at each the lower counts.
fn together(pids: &[i32], of: impl Fn(i32) -> u64) -> u64 {
    let first: Vec<u64> = pids.iter().map(|&pid| of(pid)).collect();
    pids.iter().zip(first).map(|(&pid, first)| first.min(of(pid))).sum()
}

/// Living processes and their threads, without the jail's own.
fn tasks_of(pids: &[i32]) -> u64 {
    together(pids, |pid| match super::outside::state(pid) {
        None | Some('Z' | 'X') => 0,
        _ if fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|text| text.starts_with(b"shieling-jail")) => 0,
        Some(_) => fs::read_dir(format!("/proc/{pid}/task")).map_or(0, |tasks| tasks.count() as u64),
    })
}

/// Does something, and says the most that something else was meanwhile.
fn during<T>(look: impl Fn() -> u64 + Sync, act: impl FnOnce() -> T) -> (T, u64) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::Relaxed) {
                most = most.max(look());
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let done = act();
        over.store(true, Ordering::Relaxed);
        (done, looking.join().unwrap_or(u64::MAX))
    })
}
