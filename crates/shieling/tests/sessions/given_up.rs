//! Calls given up at any moment, and what the next command then says: its own status and its own output,
//! in the same shell.
//!
//! In the full tests, 5,000 in each environment, while 4 threads keep the processors busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use shieling::outcome::{Outcome, Status};
use shieling::process::{End, Limits, run_to_end};
use shieling::session::SessionName;
use shieling_testkit::random::Random;
use shieling_testkit::{approved, extent};

use super::support::{In, Place, beside};

/// Rounds of the ordinary suite, in each environment.
const ROUNDS: usize = 150;
/// Sessions that are given commands at once.
const SESSIONS: usize = 3;
/// No command of this test takes as long by itself.
const LONG: Duration = Duration::from_secs(60);

/// Texts that do not end by themselves, or leave nothing behind if they do.
const GIVEN_UP: &[&str] = &[
    "sleep 50",
    "/bin/echo a; sleep 50; touch no",
    "yes | cat >/dev/null; touch no",
    "sleep 50 | sleep 50 | sleep 50 | cat",
    "while :; do /bin/true | cat | /bin/true; done",
    "while :; do echo loud | (read x; (:)); done",
    "while :; do :; done",
    "while :; do x=$(/bin/echo a); done",
    "while :; do x=$(/bin/echo a | cat | cat); done",
    "x=$(sleep 50; echo no); touch no",
    "(sleep 50); touch no",
    "(sleep 50 | cat) | (cat | sleep 50); touch no",
    "sleep 50 & wait",
    "sleep 50 & sleep 50 & sleep 50 | wait -n",
    "while :; do (sleep 50) & sleep 0.001; done",
    "for i in {1..40}; do sleep 50 & done; wait",
    "{ sleep 50; echo no; } & wait $!",
    "sleep 50 & disown; sleep 50 & disown -h; sleep 51",
    "f() { sleep 50 | cat >x; touch no; }; f 2>y",
    "f() { g | g; }; g() { /bin/true; sleep 50; }; f",
    "trap '/bin/true | cat' USR1; while :; do kill -USR1 $$; /bin/true; done",
    "trap ':' CHLD; while :; do /bin/true & /bin/true; done",
    "trap '/bin/true | cat' ERR; while :; do /bin/false; done >/dev/null",
    "trap '/bin/true' DEBUG; /bin/true; sleep 50",
    "trap '' TERM INT HUP; sleep 50",
    "(trap '' TERM INT; sleep 50); touch no",
    "read x < <(sleep 50); touch no",
    "cat <(sleep 50) <(sleep 50) >(cat) | cat",
    "while read l; do /bin/true; done < <(yes)",
    "coproc { sleep 50; }; read x <&${COPROC[0]}",
    "coproc cat; while :; do echo a >&${COPROC[1]}; read x <&${COPROC[0]}; done",
    "set -m; sleep 50 | cat; touch no",
    "set -m; while :; do /bin/true | /bin/true & wait; done",
    "set -m; while :; do x=$(/bin/echo a); (:) | (:); done",
    "set -o pipefail; while :; do /bin/false | /bin/true | cat; done",
    "shopt -s lastpipe; yes | while read l; do /bin/true; done",
    "setsid -f sleep 50; setsid sleep 50 | cat",
    "sh -c 'sleep 50 & sleep 50 & wait' | cat",
    "eval 'source /dev/stdin' <<< 'while :; do /bin/true | cat; done'",
    "source <(sleep 50); touch no",
    "time while :; do /bin/true; done",
    "! while :; do /bin/true; done",
    "select x in a b; do :; done < <(yes | head -c 1000000; sleep 50) >/dev/null 2>&1; sleep 50",
    "mapfile -c 1 -C /bin/true x < <(yes)",
    "until /bin/false | cat | /bin/false; do :; done",
    // These end by themselves, and nothing of them is left.
    ":",
    "/bin/true",
    "/bin/echo a | cat",
    "x=$(/bin/echo a | cat)",
    "sleep 0.001 & wait $!",
    "(:); (:) | (:)",
    "cat <(/bin/echo a) | cat",
    "set -m; /bin/true | cat",
];

/// Puts back what the texts above have set, and says which shell it is and how many descriptors it has open.
const PUT_BACK: &str = "trap - USR1 CHLD ERR DEBUG TERM INT HUP; set +m +o pipefail; shopt -u lastpipe extdebug; \
     kept=1; set -- /proc/$$/fd/*; echo $$ $#; set --";

/// What comes next, with its code and output. Each is to say nothing on stderr, but for the one whose child
/// is killed.
const NEXT: &[(&str, i32, &str)] = &[
    ("echo ok$kept", 0, "ok1\n"),
    ("(exit 7)", 7, ""),
    ("set +o pipefail; false | true", 0, ""),
    ("true | false; echo ${PIPESTATUS[*]}", 0, "0 1\n"),
    (KILLED, 137, ""),
    ("jobs", 0, ""),
    ("wait; echo $?", 0, "0\n"),
    ("wait -n; echo $?", 0, "127\n"),
    ("x=$!; echo ${x//[0-9]}", 0, "\n"),
    ("/bin/echo a | cat | cat", 0, "a\n"),
    ("x=$(/bin/echo a; exit 3); echo $x $?", 0, "a 3\n"),
    ("cat <(/bin/echo a)", 0, "a\n"),
    ("(exit 5) & wait $!", 5, ""),
    ("f() { return 4; }; f", 4, ""),
    ("read x <<< b; echo $x", 0, "b\n"),
    ("(jobs); echo ${#FUNCNAME[@]} $BASH_SUBSHELL", 0, "0 0\n"),
    (
        "coproc cat; echo a >&${COPROC[1]}; read x <&${COPROC[0]}; echo $x; exec {COPROC[1]}>&-; wait $COPROC_PID",
        0,
        "a\n",
    ),
];
const KILLED: &str = "sh -c 'kill -9 $$'; (exit $?)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_after_one_that_was_given_up_says_its_own_status_and_nothing_else() {
    let _beside = beside().await;
    // As root in both places together 10,000; what is different for an ordinary user shows in fewer.
    let full = if shieling_testkit::is_user() { 1_000 } else { 5_000 };
    let rounds = extent::rounds(ROUNDS, full);
    let _load = Load::of(extent::rounds(0, 4));
    let seed = extent::seed();
    for at in [In::Local, In::Sandbox] {
        let place = Arc::new(Place::new(at, None));
        let begun = Instant::now();
        let mut sessions = tokio::task::JoinSet::new();
        for session in 0..SESSIONS {
            let place = Arc::clone(&place);
            let random = Random::new(seed * 100 + session as u64);
            sessions.spawn(async move { one_session(&place, session, random, rounds.div_ceil(SESSIONS)).await });
        }
        let (mut wrong, mut given_up) = (Vec::new(), 0);
        for (count, said) in sessions.join_all().await {
            given_up += count;
            wrong.extend(said);
        }
        let place = Arc::into_inner(place).expect("its sessions have ended");
        place.close().await.expect("nothing is left");
        eprintln!("{at:?}: {rounds} rounds, {given_up} given up, in {:?}", begun.elapsed());
        assert!(
            wrong.is_empty(),
            "{at:?}: {} of {rounds} are wrong:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
        assert!(given_up * 3 > rounds, "{at:?}: {given_up} of {rounds}");
    }
}

#[tokio::test]
async fn and_as_an_ordinary_user_too() {
    let _beside = beside().await;
    shieling_testkit::again_as_user(&[
        "--exact",
        "sessions::given_up::the_command_after_one_that_was_given_up_says_its_own_status_and_nothing_else",
    ]);
}

/// Shells that are each given a command which is given up at its start, in each environment.
const STARTS: usize = 30;
/// A command that begins after it was given up has begun by then.
const BEGUN: Duration = Duration::from_secs(1);
/// What was begun has ended by then.
const GONE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_given_up_at_its_start_ends_without_a_further_command() {
    let _beside = beside().await;
    let mut random = Random::new(extent::seed());
    for at in [In::Local, In::Sandbox] {
        let place = Place::new(at, None);
        let first = approved(place.command(":"));
        let limits = Limits::of(first.request());
        let mut shells = Vec::new();
        for number in 0..STARTS {
            let mut shell = place.environment.open_shell(&first).await.expect("a shell");
            // For the others it is the first command of all.
            if number % 2 == 0 {
                let process = shell.run(":").await.expect("it is sent");
                assert_eq!(run_to_end(process, &limits, None, None).await.end, End::Exited(0));
            }
            shells.push(shell);
        }
        for (number, shell) in shells.iter_mut().enumerate() {
            let process = shell.run("sleep 1000").await.expect("it is sent");
            // Mostly before the shell has begun it.
            if number % 3 == 0 {
                tokio::time::sleep(Duration::from_micros(random.below(5_000) as u64)).await;
            }
            drop(process);
        }
        let given_up = Instant::now();
        let left = loop {
            let left: Vec<_> = shieling_testkit::leftovers(&place.marker)
                .into_iter()
                .filter(|pid| {
                    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == b"sleep\x001000\0")
                })
                .collect();
            let since = given_up.elapsed();
            if since > GONE || left.is_empty() && since > BEGUN {
                break left;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert_eq!(left, [0; 0], "{at:?}: of {STARTS}");
        for mut shell in shells {
            let process = shell.run("exit 7").await.expect("the shell has stayed");
            let end = run_to_end(process, &limits, None, None).await.end;
            assert_eq!(end, End::Exited(7), "{at:?}");
        }
        place.close().await.expect("nothing is left");
    }
}

/// How many were given up, and what was wrong.
async fn one_session(place: &Place, session: usize, mut random: Random, rounds: usize) -> (usize, Vec<String>) {
    let name: SessionName = format!("g{session}").parse().expect("a good name");
    let session = place.shieling.session(name);
    let run = async |text: &str, deadline| session.run(place.call(text, deadline)).await;
    let (mut given_up, mut wrong) = (0, Vec::new());
    run("kept=1; sleep 0 <(:) | cat; coproc :; wait", LONG).await;
    let mut before = run(PUT_BACK, LONG).await.stdout;
    for round in 0..rounds {
        let text = random.pick(GIVEN_UP);
        // From before anything runs to well into it; half of them within the first milliseconds.
        let after = Duration::from_micros(match random.below(6) {
            0 => 0,
            1 => random.below(400),
            2 | 3 => random.below(4_000),
            4 => random.below(15_000),
            _ => random.below(50_000),
        } as u64);
        // Dropped by its caller, or out of time.
        let ended = if random.once_in(3) {
            let deadline = after.max(Duration::from_micros(100));
            Some(run(text, deadline).await).filter(|outcome| outcome.status != Status::TimedOut)
        } else {
            tokio::time::timeout(after, run(text, LONG)).await.ok()
        };
        let ended = ended.map(|ended| ended.status);
        given_up += usize::from(ended.is_none());
        let (next, code, out) = random.pick(NEXT);
        let outcome = run(next, LONG).await;
        if let Some(why) = differs(&outcome, next, code, out) {
            wrong.push(format!(
                "round {round}, {text:?} given up after {after:?} ({ended:?}), then {next:?}: {why}: {outcome:?}"
            ));
        }
        let back = run(PUT_BACK, LONG).await;
        if let Some(why) = differs(&back, PUT_BACK, 0, &before) {
            let open = run("ls -l /proc/$$/fd", LONG).await.stdout;
            wrong.push(format!(
                "round {round}, {text:?} after {after:?} ({ended:?}), {next:?}, then put back: {why}: {before:?} {back:?} {open}"
            ));
            // Told once.
            before = back.stdout;
        }
        if wrong.len() > 20 {
            break;
        }
    }
    let left = run("ls no", LONG).await;
    if left.exit_code != Some(2) {
        wrong.push(format!("something ran on: {left:?}"));
    }
    (given_up, wrong)
}

fn differs(outcome: &Outcome, text: &str, code: i32, out: &str) -> Option<&'static str> {
    let said = outcome.stderr.as_str();
    let own = if text == KILLED {
        said.lines().count() == 1 && said.contains("Killed") && said.contains("sh -c 'kill -9 $$'")
    } else {
        said.is_empty()
    };
    if outcome.status != Status::Exited || outcome.exit_code != Some(code) {
        Some("another status")
    } else if outcome.stdout != out {
        Some("another output")
    } else if !own {
        Some("another stderr")
    } else if outcome.session_restarted {
        Some("another shell")
    } else {
        None
    }
}

/// Threads that keep the processors busy.
struct Load(Arc<AtomicBool>);

impl Load {
    fn of(threads: usize) -> Self {
        let goes_on = Arc::new(AtomicBool::new(true));
        for _ in 0..threads {
            let goes_on = Arc::clone(&goes_on);
            std::thread::spawn(move || {
                while goes_on.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(goes_on)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
