//! Memory, in every form that it can be had.

use std::fs;

use shieling::outcome::{LimitedResource, Outcome, Status};
use shieling_jail::plan::Limits;

use super::{MIB, during, inside, limited, space, together};
use crate::outside::{is_the_same, remember};
use crate::support::{Checked, Field, Place, check, line};

pub(super) fn with_memory<'a>(field: &'a Field<'a>, mib: u64) -> Checked<Place<'a>> {
    limited(
        field,
        Limits {
            memory: Some(mib * MIB),
            ..Limits::default()
        },
    )
    .start()
}

/// Some of it was killed for memory, and the command says so if it was its main process. All of it fits
/// into the limit afterwards.
pub(super) fn exhausts(place: &Place<'_>, text: &str) -> Checked {
    let outcome = place.answer(text)?;
    check(outcome.status == Status::OutOfMemory, || {
        format!("`{text}` ended otherwise than by its memory: {}", line(&outcome))
    })?;
    check(outcome.survivors == 0, || line(&outcome))?;
    place.works("true").map(drop)
}

/// Where no supervisor waits beside a job, it is looked after all the same; and more jobs than one can be.
pub(super) fn memory_of_the_only_one(field: &Field<'_>) -> Checked {
    let limits = Limits {
        memory: Some(64 * MIB),
        ..Limits::default()
    };
    let place = field
        .place()
        .with(|asked| {
            asked.limits = limits;
            asked.once = true;
        })
        .start()?;
    exhausts(&place, r#"exec "$TOOLS/eat" memory 400"#)?;
    place.works(r#""$TOOLS/eat" memory 30"#)?;
    exhausts(&place, r#"exec "$TOOLS/eat" memory 400"#)?;
    field.worked();
    Ok(())
}

pub(super) fn memory_of_one(field: &Field<'_>) -> Checked {
    let place = with_memory(field, 64)?;
    exhausts(&place, r#"exec "$TOOLS/eat" memory 400"#)?;
    // A shell tells of its child.
    let outcome = place.attempt(r#""$TOOLS/eat" memory 400; code=$?; echo "$code"; exit $code"#)?;
    check(outcome.stdout.contains("137"), || line(&outcome))?;
    // Its neighbour: modest use, and an end by a signal that is none by memory.
    place.works(r#""$TOOLS/eat" memory 30"#)?;
    let outcome = place.run("kill -KILL $$")?;
    check(outcome.status == Status::Signalled, || line(&outcome))?;
    field.worked();
    Ok(())
}

pub(super) fn memory_of_many(field: &Field<'_>) -> Checked {
    let place = with_memory(field, 64)?;
    let space = space(&place)?;
    let text = r#"for i in 1 2 3 4 5 6 7 8; do "$TOOLS/eat" memory 24 & done; failed=0; for i in 1 2 3 4 5 6 7 8; do wait -n || failed=$((failed + 1)); done; echo $failed"#;
    let (outcome, peak) = during(|| memory_of(&inside(&space)), || place.attempt(text));
    let outcome = outcome?;
    let failed: u32 = outcome.stdout.trim().parse().unwrap_or(0);
    check(failed >= 3, || format!("{failed} of 8 were ended: {}", line(&outcome)))?;
    // Within a tenth, and what the shell and the jail themselves have. A watch, which is all that there is
    // without a group, ends what has too much and bounds no peak: it looks every 2 ms at best, and later on
    // a busy machine.
    let group = field.runtime.block_on(place.sandbox.start())?;
    let group = group.enforced.iter().any(|layer| layer == "cgroup.memory");
    check(!group || peak <= 64 * MIB * 11 / 10, || {
        format!("ESCAPED: {} MiB were used", peak / MIB)
    })?;
    place
        .works(r#"p=; for i in 1 2 3 4; do "$TOOLS/eat" memory 8 & p="$p $!"; done; for i in $p; do wait $i || exit 1; done"#)
        .map(drop)
}

pub(super) fn memory_shared(field: &Field<'_>) -> Checked {
    let place = with_memory(field, 64)?;
    for kind in ["shared", "shm"] {
        exhausts(&place, &format!(r#"exec "$TOOLS/eat" {kind} 300"#))?;
        place.works(&format!(r#""$TOOLS/eat" {kind} 20"#))?;
    }
    if field.needs("python3").is_ok() {
        exhausts(
            &place,
            "exec python3 -c 'import os, time\nf = os.memfd_create(\"m\")\nfor _ in range(300): os.write(f, bytes(1 << 20))\ntime.sleep(1)'",
        )?;
        place.works("python3 -c 'import os; os.write(os.memfd_create(\"m\"), bytes(8 << 20))'")?;
    }
    Ok(())
}

/// Memory that a process shares is given back late, after the kernel has counted it as dead: what asks for memory
/// meanwhile has the next one killed. That must be no process of ours, nor the shell of the session.
pub(super) fn shared_again_and_again(field: &Field<'_>) -> Checked {
    const PYTHON: &str =
        "exec python3 -S -c 'import mmap\nm = mmap.mmap(-1, 300 << 20)\nfor i in range(0, 300 << 20, 4096): m[i] = 1'";
    let place = with_memory(field, 64)?;
    remember(&place)?;
    let shell = place.in_session("kept=1; echo $$")?.stdout;
    field.attempted();
    let named = |outcome: &Outcome, program: &str| {
        let hit = outcome
            .limits_hit
            .iter()
            .find(|hit| hit.limit == LimitedResource::Memory);
        hit.is_some_and(|hit| hit.killed.iter().all(|killed| killed.name.starts_with(program)))
    };
    for round in 0..10 {
        for (text, program) in [
            (r#"exec "$TOOLS/eat" shared 300"#, "eat"),
            (r#"exec "$TOOLS/eat" shm 300"#, "eat"),
            (PYTHON, "python3"),
        ] {
            if program == "python3" && field.needs("python3").is_err() {
                continue;
            }
            let outcome = place.answer(text)?;
            check(
                outcome.status == Status::OutOfMemory && named(&outcome, program),
                || format!("round {round}, `{text}`: {} {:?}", line(&outcome), outcome.limits_hit),
            )?;
            let text = text.trim_start_matches("exec ");
            let outcome = place.in_session(&format!("{text}\necho $kept $$ $?"))?;
            let after = format!("1 {} 137", shell.trim());
            check(outcome.stdout.trim() == after && named(&outcome, program), || {
                format!("round {round}, session: {} {:?}", line(&outcome), outcome.limits_hit)
            })?;
        }
    }
    is_the_same(&place)?;
    field.worked();
    Ok(())
}

/// Files in memory stay when who wrote them is killed, and what follows has little room, or none. The sandbox is
/// still there, and says of each command how it ended.
pub(super) fn filled_for_good(field: &Field<'_>) -> Checked {
    let place = with_memory(field, 64)?;
    let outcome = place.answer("exec dd if=/dev/zero of=/dev/shm/large bs=1M count=300 2> /dev/null")?;
    field.attempted();
    check(outcome.status == Status::OutOfMemory, || line(&outcome))?;
    // In another sandbox there would be room.
    for _ in 0..20 {
        let outcome = place.answer("exec \"$TOOLS/eat\" memory 16")?;
        check(outcome.status == Status::OutOfMemory, || line(&outcome))?;
    }
    Ok(())
}

/// The kernel kills commands first: and they cannot say otherwise.
pub(super) fn killed_first(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let scores = place.works("cat /proc/self/oom_score_adj /proc/1/oom_score_adj")?;
    check(scores.split_whitespace().next() == Some("1000"), || scores.clone())?;
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    check(scores.split_whitespace().nth(1) == Some(own.trim()), || {
        format!("pid 1 has another score than we: {scores}")
    })?;
    for text in [
        "echo 0 > /proc/self/oom_score_adj",
        "echo 999 > /proc/$$/oom_score_adj",
        "echo 1000 > /proc/1/oom_score_adj",
        "echo 1000 > /proc/$PPID/oom_score_adj",
        "echo 15 > /proc/self/oom_adj",
    ] {
        place.refused(text)?;
    }
    Ok(())
}

pub(super) fn memory_in_files(field: &Field<'_>) -> Checked {
    for directory in ["/tmp", "/dev/shm", "$HOME"] {
        // One each: where the limit is watched, what lies there goes on counting, and nothing runs.
        let place = with_memory(field, 64)?;
        let outcome = place.attempt(&format!(
            "exec dd if=/dev/zero of={directory}/large bs=1M count=300 2> /dev/null"
        ))?;
        check(outcome.status == Status::OutOfMemory, || {
            format!("{directory}: {}", line(&outcome))
        })?;
    }
    let place = with_memory(field, 64)?;
    place.works(
        "dd if=/dev/zero of=/tmp/small bs=1M count=10 2> /dev/null && [ $(stat -c %s /tmp/small) = 10485760 ]",
    )?;
    // The workspace is on the disk, and as large as that.
    place
        .works("dd if=/dev/zero of=on-disk bs=1M count=100 2> /dev/null && rm on-disk")
        .map(drop)
}

/// What is sent and not received is the kernel's memory, which a group counts. A watch does not, as its
/// module says: an ordinary user without a group is bound by the number of open files alone.
pub(super) fn sent_and_not_received(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = with_memory(field, 64)?;
    let confinement = field.runtime.block_on(place.sandbox.start())?;
    if !confinement.enforced.iter().any(|layer| layer == "cgroup.memory") {
        // Said under a name of its own, since it is weaker.
        let weaker = confinement.enforced.iter().any(|layer| layer == "watch.memory");
        return check(weaker && !field.is_root(), || format!("{confinement:?}"));
    }
    let text = "exec python3 -c '
import socket
held, size = [], 0
while size < 300 << 20:
    a, b = socket.socketpair()
    a.setblocking(False)
    held.append((a, b))
    try:
        while True: size += a.send(bytes(65536))
    except BlockingIOError: print(size, flush=True)
'";
    let outcome = place.attempt(text)?;
    let held: u64 = outcome
        .stdout
        .lines()
        .last()
        .and_then(|line| line.parse().ok())
        .unwrap_or(0);
    check(outcome.status == Status::OutOfMemory && held < 70 * MIB, || {
        format!("ESCAPED: {} MiB were held: {}", held / MIB, line(&outcome))
    })?;
    place.works("true").map(drop)
}

/// All that these have together that is nobody else's, in bytes.
pub(super) fn memory_of(pids: &[i32]) -> u64 {
    together(pids, |pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
            .unwrap_or(0)
            << 10
    })
}
