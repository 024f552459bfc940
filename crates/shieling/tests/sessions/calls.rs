//! Calls at once, given up, interrupted, and very many of them.

use std::time::{Duration, Instant};

use shieling::outcome::Status;
use shieling::session::{JobId, JobInput, OnTimeout, ViewRequest, WaitFor};

use super::support::{In, Place, alone, beside};

const BOTH: [In; 2] = [In::Local, In::Sandbox];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_sessions_run_side_by_side_and_hear_only_themselves() {
    let _beside = beside().await;
    for at in BOTH {
        let place = Place::new(at, None);
        let calls = (0..8).map(|number| {
            // Each waits for all of them: one after the other they would wait for ever.
            let call = place.call(
                &format!(
                    "x={number}; : >begun$x; until [[ $(echo begun*) == *0*1*2*3*4*5*6*7 ]]; do sleep 0.01; done; \
                     for i in {{1..200}}; do echo $x; done"
                ),
                Duration::from_secs(30),
            );
            let name = format!("s{number}").parse().expect("a good name");
            let shieling = std::sync::Arc::clone(&place.shieling);
            tokio::spawn(async move { (number, shieling.session(name).run(call).await) })
        });
        for call in calls.collect::<Vec<_>>() {
            let (number, outcome) = call.await.expect("no panic");
            assert_eq!(outcome.stdout, format!("{number}\n").repeat(200));
        }
        place.close().await.expect("nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_one_session_take_turns_in_their_order() {
    let _beside = beside().await;
    for at in BOTH {
        let place = Place::new(at, None);
        place.shell("n=0").await;
        let session = place.session();
        let mut calls = Vec::new();
        for number in 0..6 {
            let call = place.call(
                &format!("n=$((n + 1)); sleep 0.05; echo $n {number}"),
                Duration::from_secs(60),
            );
            let mut call = Box::pin(session.run(call));
            // From its first step on it has its place in the queue.
            let first = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx))).await;
            assert!(first.is_pending());
            calls.push(call);
        }
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.stdout, format!("{} {number}\n", number + 1));
        }
        place.close().await.expect("nothing is left");
    }
}

/// M13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m13_a_call_that_is_given_up_leaves_nothing_for_the_next() {
    let _beside = beside().await;
    let texts = [
        "while :; do echo loud; done",
        "echo loud; sleep 50; echo no; touch no",
        "(trap '' TERM INT; echo loud; sleep 50); touch no",
        "read x < <(sleep 50); touch no",
        "yes | cat; touch no",
        "setsid -f sleep 50; x=$(sleep 51); touch no",
        "kill -STOP $BASHPID; sleep 50",
        "f() { echo loud >&2; sleep 50 >x; touch no; }; f 2>y",
    ];
    for at in BOTH {
        let place = Place::new(at, None);
        place.shell("kept=1 shell=$$").await;
        for (round, text) in texts.iter().cycle().take(24).enumerate() {
            let call = place.call(text, Duration::from_secs(20));
            // From before anything runs to well into it.
            let after = Duration::from_micros([0, 300, 900, 2_500, 9_000, 40_000][round % 6]);
            let _ = tokio::time::timeout(after, place.session().run(call)).await;
            let begun = Instant::now();
            let next = place.shell("echo \"next ${kept-new}\"").await;
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{text}: {:?}",
                begun.elapsed()
            );
            assert_eq!(
                (next.status, next.stderr.as_str()),
                (Status::Exited, ""),
                "{text} {next:?}"
            );
            let stopped = text.contains("STOP");
            assert!(
                next.stdout == "next 1\n" || stopped && next.stdout == "next new\n",
                "{round} {text} {:?}: {next:?}",
                begun.elapsed()
            );
            if stopped {
                place.shell("kept=1").await;
            }
        }
        let left = place
            .shell("ls no; pgrep -c -f 'sleep 5[01]$' >/dev/null && [ $$ -lt 100 ]")
            .await;
        assert_eq!(left.stdout, "", "{left:?}");
        place.close().await.expect("nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_goes_on_keeps_its_session_busy_until_c_c() {
    let _beside = beside().await;
    for at in BOTH {
        let place = Place::new(at, None);
        place.shell("kept=1").await;
        for text in [
            "echo begun; sleep 50; echo no",
            "echo begun; while :; do :; done",
            "echo begun; (trap '' TERM INT; sleep 50)",
            "echo begun; cat /dev/zero | cat >/dev/null",
        ] {
            let call = place
                .call(text, Duration::from_millis(200))
                .with_on_timeout(OnTimeout::Background);
            let running = place.session().run(call).await;
            assert_eq!((running.status, running.stdout.as_str()), (Status::Running, "begun\n"));
            let job: JobId = running.job.expect("it goes on").parse().expect("an id");
            let begun = Instant::now();
            let busy = place.shell("echo mine").await;
            assert_eq!((busy.status, busy.stdout.as_str()), (Status::Denied, ""), "{busy:?}");
            assert!(begun.elapsed() < Duration::from_secs(20));
            let keys = JobInput {
                keys: vec!["C-c".to_owned()],
                ..JobInput::default()
            };
            let written = place.shieling.write(&job, keys, Duration::from_millis(100)).await;
            written.expect("an interrupt needs no yes");
            let (over, _) = place
                .shieling
                .wait_for(&job, WaitFor::Exit, Duration::from_secs(3))
                .await
                .expect("the job is there");
            assert!(over, "{text}");
            let view = place
                .shieling
                .view(ViewRequest::new(job))
                .await
                .expect("the job is there");
            assert!(!view.outcome.stdout.contains("no"));
            let next = place.shell("echo \"next $kept\"").await;
            assert_eq!(next.stdout, "next 1\n", "{text}: {next:?}");
        }
        place.close().await.expect("nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_command_goes_on_as_a_job_if_its_request_says_so_and_no_other_does() {
    let _beside = beside().await;
    let place = Place::new(BOTH[0], None);
    let asked = |text: &str, rest, on_timeout| {
        let mut call = place.call(text, Duration::from_secs(30));
        call.background_when_silent = rest;
        call.on_timeout = on_timeout;
        call
    };
    let rest = Some(Duration::from_millis(300));
    let running = place
        .session()
        .run(asked("echo begun; sleep 50", rest, OnTimeout::Background))
        .await;
    assert_eq!((running.status, running.stdout.as_str()), (Status::Running, "begun\n"));
    let job: JobId = running.job.expect("it goes on").parse().expect("an id");
    place.shieling.kill(&job).await.expect("it is there");
    // Output is no rest, and neither is a request that ends its command.
    let steady = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done";
    for (text, rest, on_timeout) in [
        (steady, Some(Duration::from_secs(10)), OnTimeout::Background),
        ("sleep 0.6", rest, OnTimeout::Kill),
        ("sleep 0.6", None, OnTimeout::Background),
    ] {
        let outcome = place.session().run(asked(text, rest, on_timeout)).await;
        assert_eq!(outcome.status, Status::Exited, "{text}: {outcome:?}");
    }
    place.close().await.expect("nothing is left");
}

/// M14: what is left in the background is told as its own job, and nowhere else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m14_what_is_left_behind_is_a_job_with_its_own_output() {
    let _beside = beside().await;
    for at in BOTH {
        let place = Place::new(at, None);
        let first = place.shell("(sleep 0.3; echo late; echo later >&2) & echo now").await;
        assert_eq!(first.stdout, "now\n");
        let job: JobId = first.job.expect("something of it goes on").parse().expect("an id");
        assert_eq!(place.shell("sleep 0.6; echo mine").await.stdout, "mine\n");
        let mut ask = ViewRequest::new(job);
        ask.cursor = Some(0);
        let view = place.shieling.view(ask).await.expect("the job is there");
        assert_eq!(
            (view.outcome.stdout.as_str(), view.outcome.stderr.as_str()),
            ("now\nlate\n", "later\n")
        );
        place.close().await.expect("nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_on_in_copies_of_itself_ends_with_its_job_and_a_stopped_session_with_its_command() {
    let _beside = beside().await;
    for at in BOTH {
        let place = Place::new(at, None);
        let first = place.shell("h() { echo >>ticks; sleep 0.02; h & }; h & echo st").await;
        let job: JobId = first.job.expect("something of it goes on").parse().expect("an id");
        let killed = place.shieling.kill(&job).await.expect("the job is there");
        assert_eq!(killed.outcome.survivors, 0);
        let same = place
            .shell("a=$(wc -l <ticks); sleep 0.3; [ $a = $(wc -l <ticks) ]")
            .await;
        assert_eq!(same.exit_code, Some(0), "{at:?}: it goes on");
        // And a session that is stopped ends what it runs.
        let main = place.session();
        let stopping = async {
            while !place.workspace.join("begun").exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            main.stop().await
        };
        let (outcome, existed) = tokio::join!(place.shell("echo >begun; sleep 50"), stopping);
        assert!(existed && outcome.status != Status::Exited, "{outcome:?}");
        place.close().await.expect("nothing is left");
    }
}

/// M2, C4: nothing outlives the end of a session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m2_c4_the_end_of_a_session_is_the_end_of_its_daemons() {
    let _beside = beside().await;
    for at in BOTH {
        let place = Place::new(at, None);
        place.shell("nohup sleep 79 >/dev/null 2>&1 &").await;
        place.shell("setsid sleep 78 >/dev/null 2>&1 &").await;
        place
            .shell("(setsid sh -c 'trap \"\" TERM HUP INT; sleep 77 & sleep 76' >/dev/null 2>&1 &)")
            .await;
        place.close().await.expect("nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_ends_its_shell_tells_how_many_processes_went_with_it() {
    let _beside = beside().await;
    for at in BOTH {
        let place = Place::new(at, None);
        for (text, code) in [("exit 3", 3), ("false || exit", 1), ("set -e; exit 0", 0)] {
            place
                .shell("sleep 79 >/dev/null 2>&1 & sleep 78 >/dev/null 2>&1 &")
                .await;
            let outcome = place.shell(text).await;
            assert_eq!(
                (outcome.exit_code, outcome.ended_processes, outcome.survivors),
                (Some(code), 2, 0),
                "{text}: {outcome:?}"
            );
        }
        let outcome = place.shell("sleep 79 & exit 4").await;
        assert_eq!(
            (outcome.exit_code, outcome.ended_processes),
            (Some(4), 1),
            "{outcome:?}"
        );
        assert_eq!(place.shell("exit 5").await.ended_processes, 0);
        place.close().await.expect("nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_was_killed_between_two_commands_is_started_anew() {
    let _beside = beside().await;
    // In a sandbox, no session reaches the shell of another.
    let place = Place::new(In::Local, None);
    let shell = place.shell("mkdir d; cd d; export kept=1; echo $$").await.stdout;
    let shell = shell.trim();
    let text = format!("kill -9 {shell} && while kill -0 {shell} 2>/dev/null; do sleep 0.01; done");
    let other = place.shieling.session("other".parse().expect("a good name"));
    let killed = other.run(place.call(&text, Duration::from_secs(60))).await;
    assert_eq!(
        (killed.status, killed.exit_code),
        (Status::Exited, Some(0)),
        "{killed:?}"
    );
    let next = place.shell("echo $kept ${PWD##*/}").await;
    assert_eq!(next.stdout, "1 d\n", "{next:?}");
    assert!(next.status == Status::Exited && next.session_restarted, "{next:?}");
    place.close().await.expect("nothing is left");
}

/// M4: the race after an end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m4_a_call_right_after_an_end_finds_a_shell() {
    let _beside = beside().await;
    for at in BOTH {
        let place = Place::new(at, None);
        for end in [
            "kill -9 $$",
            "exit 3",
            "exec true",
            "(sleep 0.005; kill -9 $$) >/dev/null 2>&1 &",
        ]
        .iter()
        .cycle()
        .take(24)
        {
            place.shell(end).await;
            let next = place.shell("echo ok").await;
            let raced = end.ends_with('&') && next.status == Status::Signalled;
            assert!(next.stdout == "ok\n" || raced, "{end}: {next:?}");
        }
        place.close().await.expect("nothing is left");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_sessions_leave_no_descriptor_behind() {
    let _alone = alone().await;
    let open = || std::fs::read_dir("/proc/self/fd").expect("it is there").count();
    for at in BOTH {
        // What is opened once for all.
        let first = Place::new(at, None);
        first.shell(":").await;
        first.close().await.expect("nothing is left");
        let before = open();
        let place = Place::new(at, None);
        for number in 0..100 {
            let call = place.call(
                ["exit 3", "echo ok", "kill -9 $$", "(sleep 9 &)"][number % 4],
                Duration::from_secs(5),
            );
            let session = place
                .shieling
                .session(format!("s{number}").parse().expect("a good name"));
            session.run(call).await;
        }
        place.close().await.expect("nothing is left");
        let begun = Instant::now();
        while open() > before && begun.elapsed() < Duration::from_secs(20) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(open() <= before, "{at:?}: {before} before, {} after", open());
    }
}
