//! What a command sets of processes: limits, priorities, who may trace.

use std::time::Duration;

use shieling::outcome::Status;

use super::all_refused;
use crate::outside::{Mark, is_the_same, remember};
use crate::support::{Checked, Field, LONGEST, check, line, within};

/// `prlimit` asks for the same user only. A supervisor without descriptors could not look for what a
/// command leaves; one without processor time would be killed.
pub(super) fn limits(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    remember(&place)?;
    let mark = Mark::new();
    if field.needs("prlimit").is_ok() {
        for target in ["$PPID", "1"] {
            for limit in [
                "--nofile=0",
                "--cpu=0",
                "--as=0",
                "--fsize=0",
                "--nproc=0",
                "--core=0",
                "--nofile",
            ] {
                place.refused_with(&format!("prlimit --pid {target} {limit}"), &["Operation not permitted"])?;
            }
        }
        place.works("ulimit -n 20 && [ $(ulimit -n) = 20 ]")?;
        place.works("prlimit --nofile=20 true")?;
    }
    let outcome = place.attempt(&format!(
        "prlimit --pid $PPID --nofile=0; prlimit --pid 1 --nofile=0; (setsid sleep {mark} &); exit 5"
    ))?;
    check(outcome.exit_code == Some(5) && outcome.survivors == 0, || {
        line(&outcome)
    })?;
    mark.wait_for(0)?;
    is_the_same(&place)
}

pub(super) fn priorities(field: &Field<'_>) -> Checked {
    let mut place = field.place().start()?;
    remember(&place)?;
    place.works("nice -n 5 true && sleep 1 & renice -n 5 $! > /dev/null")?;
    for text in [
        "nice -n -5 true",
        "chrt -f 1 true",
        "chrt -r 1 true",
        "ionice -c 1 true",
    ] {
        // `nice` runs its program all the same, and says so.
        place.refused(&format!(
            "{{ {text} && [ $(nice -n -5 nice 2> /dev/null) -lt 0 ]; }} 2> /dev/null"
        ))?;
    }
    place.deadline = Duration::from_secs(1);
    let mark = Mark::new();
    // Of the jail's own processes none can be set, and of the command's own every one.
    for text in [
        "renice -n 19 1",
        "renice -n 19 $PPID",
        "renice -n 19 -u $(id -u)",
        "chrt -i -p 0 $PPID",
        "chrt -i -p 0 1",
        "taskset -p 1 $PPID",
        "ionice -c 3 -p $PPID",
    ] {
        place.refused_with(text, &["Operation not permitted"])?;
    }
    place.works("sleep 9 & taskset -p 1 $! && chrt -i -p 0 $! && ionice -c 3 -p $! && renice -n 9 $! && kill $!")?;
    let outcome = place.attempt(&format!(
        "renice -n 19 1 $PPID; chrt -i -p 0 $PPID; chrt -i -p 0 1; taskset -p 1 $PPID; ionice -c 3 -p $PPID 1; \
         for i in $(seq 20); do (trap '' TERM; while :; do :; done) & done; (trap '' TERM; setsid sleep {mark} &) ; wait"
    ))?;
    // Slowed down, the supervisor would not have ended them within its budget, and told of survivors.
    check(outcome.status == Status::TimedOut && outcome.survivors == 0, || {
        line(&outcome)
    })?;
    mark.wait_for(0)?;
    is_the_same(&place)
}

pub(super) fn traced(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = field.place().start()?;
    remember(&place)?;
    // An orphan, whose parent is the supervisor then, makes it its tracer and stops, again and again,
    // while the main process ends: neither end nor status must be lost among the stops.
    let text = r#"python3 - <<'END'
import ctypes, os, signal, time
libc = ctypes.CDLL(None)
for _ in range(8):
    if os.fork() == 0:
        if os.fork() == 0:
            while os.getppid() != int(os.environ["UP"]): time.sleep(0.001)
            libc.ptrace(0, 0, 0, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(100)
        os._exit(0)
    os.wait()
time.sleep(0.02)
os._exit(7)
END
exit $?"#;
    for _ in 0..10 {
        within(Duration::from_secs(5), || {
            let outcome = place.attempt(&format!("UP=$PPID; export UP; {text}"))?;
            check(outcome.exit_code == Some(7) && outcome.survivors == 0, || {
                line(&outcome)
            })
        })?;
    }
    // The main process itself: it stops for good, and the deadline ends it.
    let mut place = place;
    place.deadline = Duration::from_millis(500);
    let outcome = place.attempt(
        "exec python3 -c 'import ctypes, os; ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.kill(os.getpid(), 19); os._exit(0)'",
    )?;
    check(outcome.status == Status::TimedOut && outcome.survivors == 0, || {
        line(&outcome)
    })?;
    place.deadline = LONGEST;
    is_the_same(&place)
}

pub(super) fn permissions(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = field.place().start()?;
    // PR_SET_PTRACER to anybody, PR_SET_DUMPABLE, PR_SET_PDEATHSIG, PR_CAPBSET_DROP and the way back.
    place
        .attempt(
            "python3 -c '
import ctypes
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, -1, 0, 0, 0)
libc.prctl(4, 1, 0, 0, 0)
libc.prctl(1, 9, 0, 0, 0)
assert libc.prctl(38, 0, 0, 0, 0) == -1, \"no_new_privs was taken back\"
assert libc.prctl(22, 0, 0, 0, 0) == -1, \"the filter was taken back\"
assert libc.prctl(8, 0x2f, 0, 0, 0) == -1, \"securebits were set\"
assert libc.prctl(47, 2, 21, 0, 0) == -1, \"an ambient capability was raised\"
assert libc.prctl(35, 8, 3, 0, 0) == -1, \"the executable was replaced\"
print(\"held\")
' && exit 3",
        )
        .and_then(|outcome| check(outcome.exit_code == Some(3), || line(&outcome)))?;
    all_refused(field, &place.works(r#"(exec "$TOOLS/reach" $PPID)"#)?)?;
    // It dies with its parent, which was asked for, and not earlier or later.
    place.works("setpriv --pdeathsig KILL true")?;
    place.works("grep -q 'NoNewPrivs:.1' /proc/self/status").map(drop)
}
