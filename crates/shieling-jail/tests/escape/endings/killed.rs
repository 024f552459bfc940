//! What happens once somebody outside ends, or stops, a part of the jail or its host.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use shieling::outcome::{Outcome, Status};

use crate::outside::{self, Above, Background, Mark, Pinned, groups, is_the_same, remember, signal};
use crate::support::{Checked, Field, check, line, suite, wrong};

pub(super) fn supervisor_killed(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    remember(&place)?;
    let (mark, other) = (Mark::new(), Mark::new());
    let staying = Background::start(field, &place, &format!("sleep {other}; true"))?;
    let running = Background::start(
        field,
        &place,
        &format!("setsid -f sleep {mark}; trap '' TERM; sleep {mark}; true"),
    )?;
    // Both have to sleep: `setsid` has the mark too, ends at once, and then has no parent to be found by.
    let main = mark.wait_for_sleepers(2)?;
    other.wait_for(1)?;
    // The shell whose child one of them is.
    let shell = main
        .iter()
        .filter_map(|&pid| outside::parent(pid))
        .find(|&pid| std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"bash\n"));
    let Some(shell) = shell else {
        return wrong("the shell was not found");
    };
    let above = Above::of(shell)?;
    field.attempted();
    signal(above.supervisor.pid, Signal::KILL)?;
    let outcome = running.end()?;
    // Nobody has seen its end, and nobody says so.
    check(outcome.status == Status::Lost, || line(&outcome))?;
    mark.wait_for(0)?;
    check(other.alive().len() == 1 && staying.runs(), || {
        "another command was ended".to_owned()
    })?;
    is_the_same(&place)?;
    staying.drop_it();
    Ok(())
}

pub(super) fn init_killed(field: &Field<'_>) -> Checked {
    let place = field
        .place()
        .with(|asked| asked.limits.memory = Some(256 << 20))
        .start()?;
    let mark = Mark::new();
    let running = Background::start(field, &place, &format!("setsid -f sleep {mark}; exec sleep {mark}"))?;
    let above = above_of_exec(&mark)?;
    field.attempted();
    signal(above.init.pid, Signal::KILL)?;
    is_lost_or_seen(&running.end()?)?;
    mark.wait_for(0)?;
    above.are_gone()?;
    // The monitor is left, and clears up.
    let name = format!("shieling-{}-", above.monitor.pid);
    let left: Vec<String> = groups().into_iter().filter(|group| group.contains(&name)).collect();
    check(left.is_empty(), || format!("control groups are left: {left:?}"))?;
    // A new one takes its place.
    place.works("true").map(drop)
}

pub(super) fn monitor_killed(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let mark = Mark::new();
    let running = Background::start(field, &place, &format!("setsid -f sleep {mark}; exec sleep {mark}"))?;
    let above = above_of_exec(&mark)?;
    field.attempted();
    signal(above.monitor.pid, Signal::KILL)?;
    is_lost_or_seen(&running.end()?)?;
    mark.wait_for(0)?;
    above.are_gone()?;
    place.works("true").map(drop)
}

/// The end of a command whose jail was killed. The kernel kills all that is in there, in an order of its own: a
/// supervisor that is reached later than its command has seen that end, and that nothing is left, and says so.
fn is_lost_or_seen(outcome: &Outcome) -> Checked {
    let was_seen = outcome.status == Status::Signalled && outcome.exit_code == Some(137) && outcome.survivors == 0;
    check(outcome.status == Status::Lost || was_seen, || line(outcome))
}

/// The jail's processes above the one of two sleepers that its command has become.
pub(super) fn above_of_exec(mark: &Mark) -> Checked<Above> {
    // The older is the main process; the other is a child of the supervisor only once it is an orphan. Both
    // have to sleep: `setsid` and what it forks have the mark too, and above them stands the command.
    let mut pids: Vec<Pinned> = mark
        .wait_for_sleepers(2)?
        .into_iter()
        .map(Pinned::new)
        .collect::<Checked<_>>()?;
    pids.sort_by_key(Pinned::age);
    Above::of(pids.first().map_or(0, |main| main.pid))
}

pub(super) fn stopped(field: &Field<'_>) -> Checked {
    for which in 0..3 {
        let place = field.place().start()?;
        let mark = Mark::new();
        let running = Background::start(field, &place, &format!("setsid -f sleep {mark}; exec sleep {mark}"))?;
        let above = above_of_exec(&mark)?;
        let victim = [&above.supervisor, &above.init, &above.monitor][which];
        field.attempted();
        signal(victim.pid, Signal::STOP)?;
        // A supervisor is told to go on by pid 1, perhaps before anybody has seen it stopped.
        if *victim != above.supervisor {
            victim.is_stopped()?;
        }
        running.drop_it();
        place.close();
        mark.wait_for(0)?;
        above.are_gone()?;
    }
    Ok(())
}

/// What the other process of [`host_killed`] does: a sandbox with two commands, until it is killed.
pub(crate) fn be_host(field: &Field<'_>, mark: &str) -> Checked {
    let place = field
        .place()
        .with(|asked| asked.limits.memory = Some(256 << 20))
        .start()?;
    place
        .run(&format!("setsid -f sleep {mark}; trap '' TERM; sleep {mark}"))
        .map(drop)
}

pub(super) fn host_killed(field: &Field<'_>) -> Checked {
    for signal_name in [Signal::KILL, Signal::TERM, Signal::ABORT] {
        let mark = Mark::new();
        let base = field.base.join(format!("host-{mark}"));
        std::fs::create_dir(&base)?;
        let mut host = Command::new("/proc/self/exe")
            .args([suite::HOST, &mark.to_string()])
            .arg(&base)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let own = host.id().cast_signed();
        let inside = mark.wait_for_sleepers(2)?;
        let jail = ancestors(&inside, own)?;
        check(jail.len() >= 3, || format!("only {jail:?} was found of the jail"))?;
        let work = base.join("place-0/work");
        let names = || std::fs::read_dir(&work).map_or(0, Iterator::count);
        check(names() == 0, || format!("{} names of ours are there", names()))?;
        field.attempted();
        signal(own, signal_name)?;
        host.wait()?;
        mark.wait_for(0)?;
        jail.iter().try_for_each(Pinned::is_gone)?;
        let ours = |group: &String| jail.iter().any(|one| group.contains(&format!("shieling-{}-", one.pid)));
        let left: Vec<String> = groups().into_iter().filter(ours).collect();
        check(left.is_empty(), || format!("control groups are left: {left:?}"))?;
        check(names() == 0, || "names of ours are left".to_owned())?;
    }
    Ok(())
}

/// All processes of the jail above these, which are those up to the monitor.
pub(super) fn ancestors(inside: &[i32], host: i32) -> Checked<Vec<Pinned>> {
    let mut found = Vec::new();
    for &pid in inside {
        let mut at = pid;
        while let Some(up) = outside::parent(at).filter(|&up| up > 1 && up != host && is_ours(up)) {
            let up = Pinned::new(up)?;
            at = up.pid;
            if !found.contains(&up) {
                found.push(up);
            }
        }
    }
    Ok(found)
}

/// Whether this is a process of the jail, or a shell in it.
pub(super) fn is_ours(pid: i32) -> bool {
    let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    read("cmdline").starts_with(b"shieling-jail")
        || ["bash\n", "setsid\n"]
            .iter()
            .any(|name| read("comm") == name.as_bytes())
}
