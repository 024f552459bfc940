//! How things end: whatever a command leaves goes with it, and everything goes with the sandbox, its
//! pid 1, its monitor and its host, whichever ends first and however.

mod killed;

use std::time::{Duration, Instant};

use shieling::outcome::Status;

use super::outside::{Background, Mark, is_the_same, remember};
use super::support::{Case, Checked, Field, LONGEST, case, check, heavy, line, until, within};

pub(crate) use killed::be_host;
use killed::{host_killed, init_killed, monitor_killed, stopped, supervisor_killed};

pub(crate) const CASES: &[Case] = &[
    case("what gets away from its parents ends with its command", runaways),
    case(
        "what a deadline finds ends, whatever it ignores, blocks or stops",
        immune,
    ),
    case("zombies nobody waits for do not stay", zombies),
    case("a storm of forks ends at its deadline", storm),
    case("a dropped command ends, and others go on", dropped),
    case(
        "the end of a supervisor from outside ends its command alone",
        supervisor_killed,
    ),
    case(
        "the end of pid 1 from outside ends everything, and is told",
        init_killed,
    ),
    case("the end of the monitor ends everything", monitor_killed),
    case(
        "a stopped monitor, pid 1 or supervisor does not keep a sandbox",
        stopped,
    ),
    case("the end of the host by SIGKILL ends everything", host_killed),
    heavy("two hundred immune daemons end with their sandbox", daemons),
    case("nothing is left of twenty sandboxes that were dropped", leftovers),
];

fn runaways(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    remember(&place)?;
    let mark = Mark::new();
    let adopts = "python3 -c 'import ctypes, os; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\nif os.fork() == 0:\n if os.fork() == 0: os.setsid(); os.execvp(\"sleep\", [\"sleep\", \"MARK\"])'";
    for text in [
        adopts.replace("MARK", &mark.to_string()),
        format!("sleep {mark} &"),
        format!("(sleep {mark} &) &"),
        format!("setsid sleep {mark} &"),
        format!("(setsid setsid sleep {mark} &)"),
        format!("nohup sleep {mark} > /dev/null 2>&1 & disown"),
        format!("setsid bash -c 'trap \"\" TERM HUP INT QUIT; sleep {mark} & wait' &"),
        format!("sleep {mark} > /dev/null 2>&1 < /dev/null & kill -STOP $!"),
        format!("coproc sleep {mark}; disown -a"),
        format!("true > >(sleep {mark})"),
        format!("(cd /; umask 0; exec -a init setsid -f bash -c 'trap \"\" TERM; while :; do sleep {mark}; done') &"),
        format!("bash -c 'kill -KILL $$' & setsid -f nice -n 19 sleep {mark}"),
        format!("unset $(env | cut -d= -f1); /usr/bin/setsid -f /bin/sleep {mark}"),
    ] {
        within(Duration::from_secs(3), || {
            let outcome = place.attempt(&format!("{text}\nexit 6"))?;
            check(outcome.exit_code == Some(6) && outcome.survivors == 0, || {
                format!("`{text}`: {}", line(&outcome))
            })?;
            check(mark.alive().is_empty(), || {
                format!("ESCAPED: left by `{text}`: {:?}", mark.alive())
            })
        })?;
    }
    is_the_same(&place)?;
    // What it waits for is not cut short.
    place
        .works("(sleep 0.3; echo done > late) & wait; [ $(cat late) = done ]")
        .map(drop)
}

fn immune(field: &Field<'_>) -> Checked {
    let mut place = field.place().start()?;
    remember(&place)?;
    place.deadline = Duration::from_millis(500);
    let mark = Mark::new();
    let python = field.needs("python3").is_ok();
    let mut texts = vec![
        format!("trap '' TERM HUP INT; sleep {mark}; sleep {mark}"),
        format!("kill -STOP $$; sleep {mark}"),
        format!("setsid bash -c 'trap \"\" TERM; kill -STOP $$' & sleep {mark}"),
        format!("exec > /dev/null 2>&1; sleep {mark}"),
        format!("while :; do setsid -f sleep {mark}; sleep 0.02; done"),
    ];
    if python {
        texts.push(format!(
            "exec python3 -c 'import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); os.fork(); os.setsid() if os.getpid() != os.getpgrp() else 0; os.system(\"sleep {mark}\")'"
        ));
        // Its own death is what it would fork at.
        texts.push(format!(
            "exec python3 -c '
import os, signal, time
def again(*_):
    if os.fork() == 0: os.execvp(\"setsid\", [\"setsid\", \"sleep\", \"{mark}\"])
signal.signal(signal.SIGTERM, again)
while True: time.sleep(1)'"
        ));
        // Of a process in uninterruptible wait for its child, as `vfork` makes one.
        texts.push(format!(
            "exec python3 -c 'import subprocess; subprocess.run([\"sleep\", \"{mark}\"], close_fds=False)'"
        ));
    }
    for text in texts {
        // The grace is 5 s by default, of which nothing is left to those that ignore it.
        within(Duration::from_millis(500 + 5_000 + 1_000), || {
            let outcome = place.attempt(&text)?;
            check(outcome.status == Status::TimedOut && outcome.survivors == 0, || {
                format!("`{text}`: {}", line(&outcome))
            })?;
            check(mark.alive().is_empty(), || {
                format!("ESCAPED: left by `{text}`: {:?}", mark.alive())
            })
        })?;
    }
    place.deadline = LONGEST;
    is_the_same(&place)
}

fn zombies(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = field.place().start()?;
    remember(&place)?;
    for _ in 0..2 {
        let outcome = place.attempt(
            "python3 -c '
import os, time
for n in range(500):
    if os.fork() == 0: os._exit(0)
if os.fork() == 0:
    for n in range(200):
        if os.fork() == 0: os._exit(0)
    time.sleep(0.05)
os._exit(0)
'",
        )?;
        check(outcome.exit_code == Some(0) && outcome.survivors == 0, || {
            line(&outcome)
        })?;
    }
    is_the_same(&place)?;
    let left = place.works("ps -e --no-headers | wc -l")?;
    check(left.trim().parse::<u32>().is_ok_and(|left| left <= 8), || {
        format!("{left} are left")
    })
}

fn storm(field: &Field<'_>) -> Checked {
    let mut place = field.place().with(|asked| asked.limits.pids = Some(100)).start()?;
    remember(&place)?;
    place.deadline = Duration::from_millis(700);
    within(Duration::from_millis(700 + 5_000 + 1_000), || {
        // Bounded by the limit above and by one that a shell can set, should that one not hold.
        let outcome = place.attempt("ulimit -u 5000; f() { f | f & }; f; while :; do :; done 2> /dev/null")?;
        check(outcome.survivors == 0, || line(&outcome))
    })?;
    place.deadline = LONGEST;
    is_the_same(&place)
}

fn dropped(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    remember(&place)?;
    let (first, second) = (Mark::new(), Mark::new());
    let going = Background::start(
        field,
        &place,
        &format!("setsid -f sleep {first}; trap '' TERM; sleep {first}"),
    )?;
    let staying = Background::start(field, &place, &format!("sleep {second}; true"))?;
    first.wait_for(2)?;
    second.wait_for(1)?;
    field.attempted();
    going.drop_it();
    first.wait_for(0)?;
    check(second.alive().len() == 1 && staying.runs(), || {
        "the other one ended too".to_owned()
    })?;
    is_the_same(&place)?;
    staying.drop_it();
    second.wait_for(0).map(drop)
}

fn daemons(field: &Field<'_>) -> Checked {
    // 50 ms are the figure on a quiet machine; this one is not.
    let longest = Duration::from_millis(500);
    let took = until(|took| *took < longest, || end_of_daemons(field))?;
    check(took < longest, || format!("it took {took:?}"))
}

/// How long it takes to end a sandbox with them.
fn end_of_daemons(field: &Field<'_>) -> Checked<Duration> {
    let place = field.place().start()?;
    let mark = Mark::new();
    let running = Background::start(
        field,
        &place,
        &format!(
            "trap '' TERM HUP INT; for i in $(seq 200); do (setsid sleep {mark} > /dev/null 2>&1 &) ; done; sleep {mark}"
        ),
    )?;
    mark.wait_for(201)?;
    field.attempted();
    running.drop_it();
    let began = Instant::now();
    place.close();
    let took = began.elapsed();
    let left = mark.alive();
    check(left.is_empty(), || format!("ESCAPED: {} are left", left.len()))?;
    Ok(took)
}

fn leftovers(field: &Field<'_>) -> Checked {
    let mark = Mark::new();
    for _ in 0..20 {
        let place = field.place().start()?;
        let running = Background::start(field, &place, &format!("setsid -f sleep {mark}; sleep {mark}"))?;
        mark.wait_for(2)?;
        field.attempted();
        running.drop_it();
        drop(place);
        mark.wait_for(0)?;
    }
    Ok(())
}
