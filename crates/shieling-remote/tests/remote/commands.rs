//! Commands behind a stream: what they print, what they read, how they end, and that one holds up no other.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use shieling::environment::{Environment as _, Links};
use shieling::outcome::Status;
use shieling::process::{End, Limits, Process, Streams, run_to_end};
use shieling::session::{JobRequest, Pty, TerminalSize};
use shieling::units::ByteCount;
use shieling_remote::{Remote, Timing};
use shieling_testkit::{First, Marker, approved};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::support::{Far, behind, command, facade, local, marked, memory, nothing_left, soon};

const HERE: &str = "/tmp";

async fn locally() -> (Remote, Far) {
    behind(local(Path::new(HERE)), Timing::default()).await
}

async fn start(remote: &Remote, text: &str, streams: Streams) -> Process {
    let command = command(text, Path::new(HERE));
    soon("starting", remote.spawn(approved(command), streams))
        .await
        .expect("it starts")
}

async fn run(remote: &Remote, text: &str) -> (End, String) {
    let process = start(remote, text, Streams::Output).await;
    let limits = Limits::of(&command(text, Path::new(HERE)));
    let finished = soon(text, run_to_end(process, &limits, None, None)).await;
    (finished.end, finished.stdout.text() + &finished.stderr.text())
}

#[tokio::test]
async fn a_command_prints_and_ends_as_it_does_without_the_link() {
    let (remote, _far) = locally().await;
    let printed = run(&remote, "pwd; echo $PATH; echo error >&2; exit 7").await;
    assert_eq!(
        printed,
        (End::Exited(7), "/tmp\n/usr/local/bin:/usr/bin:/bin\nerror\n".to_owned())
    );
    assert_eq!(run(&remote, "kill -KILL $$").await.0, End::Signalled(9));
    let (remote, _far) = behind(memory(), Timing::default()).await;
    let wrong = remote
        .spawn(approved(command("true", Path::new("/none"))), Streams::Output)
        .await;
    let said = wrong.expect_err("there is no such directory").to_string();
    assert_eq!(said, "cannot enter the working directory `/none`");
    let shieling = facade(remote, "/work");
    let outcome = shieling
        .run(command("echo hi > f; cat f; exit 3", Path::new("/work")), None)
        .await;
    assert_eq!((outcome.exit_code, outcome.stdout.as_str()), (Some(3), "hi\n"));
}

#[tokio::test]
async fn ten_megabytes_of_input_come_back_from_cat() {
    let (remote, _far) = locally().await;
    let sent: Vec<u8> = (0..10_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut streams = start(&remote, "cat", Streams::Input).await.into_streams();
    let mut input = streams.input.take().expect("an input");
    let writing = async {
        input.write_all(&sent).await.expect("it is read");
        drop(input);
    };
    let mut back = Vec::new();
    let both = async { tokio::join!(writing, streams.stdout.read_to_end(&mut back)) };
    soon("cat", both).await.1.expect("it is read");
    assert!(back == sent, "{} bytes came back", back.len());
}

#[tokio::test]
async fn an_input_that_was_there_before_is_read_to_its_end() {
    let (remote, _far) = locally().await;
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&vec![b'x'; 3_000_000]).expect("room");
    std::io::Seek::rewind(&mut file).expect("ours");
    let (read, write) = std::io::pipe().expect("a pipe");
    let writing = std::thread::spawn(move || {
        let mut write = write;
        write.write_all(&vec![b'y'; 1_000_000]).expect("it is read");
    });
    for (given, count) in [(OwnedFd::from(file), "3000000\n"), (OwnedFd::from(read), "1000000\n")] {
        let process = start(&remote, "wc -c", Streams::Given(given)).await;
        let limits = Limits::of(&command("wc", Path::new(HERE)));
        let finished = soon("wc", run_to_end(process, &limits, None, None)).await;
        assert_eq!(finished.stdout.text(), count);
    }
    writing.join().expect("no panic");
    // A command that reads nothing ends all the same, though its input never does.
    let (read, _write) = std::io::pipe().expect("a pipe");
    let process = start(&remote, "true", Streams::Given(read.into())).await;
    let limits = Limits::of(&command("true", Path::new(HERE)));
    assert_eq!(
        soon("true", run_to_end(process, &limits, None, None)).await.end,
        End::Exited(0)
    );
}

#[tokio::test]
async fn a_flood_that_nobody_reads_and_one_that_somebody_does_hold_up_no_small_command() {
    let (remote, _far) = locally().await;
    let _unread = start(&remote, "exec cat /dev/zero", Streams::Output).await;
    let mut read = start(&remote, "exec cat /dev/zero", Streams::Output)
        .await
        .into_streams();
    let reading = async {
        let mut buffer = vec![0; 256 * 1024];
        while read.stdout.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
    };
    let small = async {
        let begun = Instant::now();
        for number in 0..20 {
            let printed = run(&remote, &format!("echo {number}")).await;
            assert_eq!(printed, (End::Exited(0), format!("{number}\n")));
        }
        begun.elapsed()
    };
    let took = tokio::select! {
        () = reading => panic!("it never ends"),
        took = small => took,
    };
    assert!(took < Duration::from_secs(10), "{took:?} for 20 commands");
}

#[tokio::test]
async fn a_slow_reader_holds_its_command_up_and_gets_all_of_it() {
    let (remote, _far) = locally().await;
    let mut streams = start(&remote, "exec head -c 50000000 /dev/zero", Streams::Output)
        .await
        .into_streams();
    let mut control = streams.control;
    let ended = std::future::poll_fn(|cx| control.poll_event(cx));
    let early = tokio::time::timeout(Duration::from_millis(500), ended).await;
    assert!(early.is_err(), "nobody reads, and it has ended: {early:?}");
    let (mut total, mut buffer) = (0, vec![0; 100_000]);
    loop {
        match soon("reading", streams.stdout.read(&mut buffer))
            .await
            .expect("it is read")
        {
            0 => break,
            count => total += count,
        }
    }
    assert_eq!(total, 50_000_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_short_commands_and_sixty_four_at_once_each_have_their_own_output() {
    let (remote, _far) = behind(memory(), Timing::default()).await;
    let shieling = facade(remote, "/work");
    for number in 0..1_000 {
        let text = format!("echo {number}");
        let outcome = soon(&text, shieling.run(command(&text, Path::new("/work")), None)).await;
        assert_eq!(outcome.stdout, format!("{number}\n"), "{outcome:?}");
    }
    let (remote, _far) = locally().await;
    let shieling = Arc::new(facade(remote, HERE));
    let mut running = tokio::task::JoinSet::new();
    for number in 0..64 {
        let shieling = Arc::clone(&shieling);
        running.spawn(async move {
            let text = format!("sleep 0.2; seq {number} | wc -l");
            let outcome = shieling.run(command(&text, Path::new(HERE)), None).await;
            assert_eq!(outcome.stdout, format!("{number}\n"), "{outcome:?}");
        });
    }
    let all = async {
        while let Some(ran) = running.join_next().await {
            ran.expect("it ran");
        }
    };
    soon("64 at once", all).await;
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_leaves_nothing() {
    let (remote, _far) = locally().await;
    let marker = Marker::new();
    for polls in 0..40 {
        let command = marked(command("exec sleep 1000", Path::new(HERE)), &marker);
        let mut starting = remote.spawn(approved(command), Streams::Output);
        for _ in 0..=polls / 10 {
            let max_silence = Duration::from_micros(polls * 100);
            if let Ok(started) = tokio::time::timeout(max_silence, &mut starting).await {
                drop(started);
                break;
            }
        }
    }
    nothing_left(&marker);
    assert_eq!(run(&remote, "echo on").await.1, "on\n");
}

#[tokio::test]
async fn dropping_the_environment_and_its_processes_ends_the_link_and_all_that_ran() {
    let (remote, far) = locally().await;
    let marker = Marker::new();
    let command = marked(
        command("sleep 1000 & setsid sleep 1000 & wait", Path::new(HERE)),
        &marker,
    );
    let process = remote
        .spawn(approved(command), Streams::Output)
        .await
        .expect("it starts");
    drop(remote);
    assert!(
        !shieling_testkit::leftovers(&marker).is_empty(),
        "its process keeps the link"
    );
    drop(process);
    assert_eq!(far.end(), shieling_remote::LinkError::Ended);
    nothing_left(&marker);
}

#[tokio::test]
async fn a_link_that_is_cut_loses_a_command_within_a_bounded_time_with_what_it_printed() {
    let (remote, far) = locally().await;
    let marker = Marker::new();
    let command = marked(command("echo before; exec sleep 1000", Path::new(HERE)), &marker);
    let process = remote
        .spawn(approved(command.clone()), Streams::Output)
        .await
        .expect("it starts");
    let (mut first, printed) = First::new();
    let cutting = async {
        printed.await.expect("it prints something");
        far.cut();
    };
    let limits = Limits::of(&command);
    let (finished, ()) = soon("a cut", async {
        tokio::join!(run_to_end(process, &limits, None, Some(&mut first)), cutting)
    })
    .await;
    assert_eq!((finished.end, finished.stdout.text().as_str()), (End::Lost, "before\n"));
    nothing_left(&marker);
    let again = remote.spawn(approved(command), Streams::Output).await;
    let said = again.expect_err("the link is over").to_string();
    assert!(said.starts_with("`local` cannot be reached: "), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_keeps_what_it_knows_and_a_terminal_its_size() {
    let (remote, _far) = locally().await;
    let shieling = facade(remote, HERE);
    let session = shieling.session("one".parse().expect("a name"));
    let command = |text: &str| command(text, Path::new(HERE));
    let outcome = soon("cd", session.run(command("cd /usr; export A=b; f() { echo $A; }"))).await;
    assert_eq!(
        (outcome.status, outcome.cwd.as_path()),
        (Status::Exited, Path::new("/usr")),
        "{outcome:?}"
    );
    let outcome = soon("f", session.run(command("pwd; f; exit 4"))).await;
    assert_eq!((outcome.exit_code, outcome.stdout.as_str()), (Some(4), "/usr\nb\n"));
    assert!(outcome.session_restarted);
    let sized = JobRequest::new(command("stty size; test -t 0 && echo a terminal"))
        .with_terminal(TerminalSize { rows: 33, columns: 101 });
    let outcome = soon("stty", shieling.run_job(sized)).await;
    assert!(
        outcome.stdout.contains("33 101") && outcome.stdout.contains("a terminal"),
        "{outcome:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_shell_takes_with_it_at_its_end_is_told_with_that_end() {
    let (remote, _far) = locally().await;
    let shieling = facade(remote, HERE);
    let session = shieling.session("one".parse().expect("a name"));
    for round in 0..30 {
        let outcome = soon("exit", session.run(command("sleep 1000 & exit 4", Path::new(HERE)))).await;
        let told = (
            outcome.exit_code,
            outcome.ended_processes,
            outcome.survivors,
            outcome.job,
        );
        assert_eq!(told, (Some(4), 1, 0, None), "round {round}");
    }
}

#[tokio::test]
async fn what_is_kept_of_a_large_output_is_bounded_and_counted() {
    let (remote, _far) = locally().await;
    let text = "head -c 200000000 /dev/zero";
    let process = start(&remote, text, Streams::Output).await;
    let limits = Limits {
        keep: ByteCount::kib(64),
        ..Limits::of(&command(text, Path::new(HERE)))
    };
    let begun = Instant::now();
    let finished = soon("head", run_to_end(process, &limits, None, None)).await;
    let took = begun.elapsed();
    assert_eq!((finished.end, finished.stdout.total()), (End::Exited(0), 200_000_000));
    eprintln!("{:.0} MB/s", 200.0 / took.as_secs_f64());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_whose_process_is_dropped_comes_to_its_end_at_both_sides() {
    let (remote, _far) = locally().await;
    let marker = Marker::new();
    let Pty { ours, theirs } = Pty::open(TerminalSize { rows: 24, columns: 80 }).expect("a terminal");
    let sleeping = marked(command("echo here; exec sleep 100", Path::new(HERE)), &marker);
    let starting = remote.spawn(approved(sleeping), Streams::Terminal(theirs));
    let process = soon("starting", starting).await.expect("it starts");
    let reading = tokio::task::spawn_blocking(move || {
        let (mut terminal, mut all) = (File::from(ours), Vec::new());
        // `EIO` is the kernel's word for: nobody has the other end open.
        let _ = terminal.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    });
    drop(process);
    // What it had printed may have arrived or not.
    soon("reading the terminal", reading).await.expect("no panic");
    nothing_left(&marker);
    assert_eq!(run(&remote, "echo on").await, (End::Exited(0), "on\n".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_that_others_read_too_holds_nothing_up() {
    let (remote, _far) = locally().await;
    let (read, mut write) = std::io::pipe().expect("a pipe");
    // A description of its own, so that its flag is not the other's.
    let path = format!("/proc/self/fd/{}", read.as_raw_fd());
    let thief = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).expect("ours");
    let watched = read.try_clone().expect("a copy");
    let reader = start(&remote, "exec cat", Streams::Given(read.into())).await;
    let over = Arc::new(AtomicBool::new(false));
    let stealing = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let mut stolen = 0;
            while !over.load(Ordering::Relaxed) {
                stolen += rustix::io::read(&thief, &mut [0; 1]).unwrap_or(0);
            }
            stolen
        }
    });
    for _ in 0..shieling_testkit::extent::rounds(300, 3_000) {
        write.write_all(b"x").expect("it is read");
        let until = Instant::now() + Duration::from_secs(30);
        while rustix::io::ioctl_fionread(&watched).expect("a pipe") > 0 {
            assert!(Instant::now() < until, "nobody reads it");
            std::thread::yield_now();
        }
        // The thread that carries the link is asked, and answers.
        let looking = tokio::task::spawn_blocking({
            let files = soon("files", remote.files()).await.expect("it has files");
            move || files.node(Path::new(HERE), Links::Follow).map(drop)
        });
        soon("an answer", looking)
            .await
            .expect("no panic")
            .expect("it is there");
    }
    over.store(true, Ordering::Relaxed);
    eprintln!("{} bytes were read by the other", stealing.join().expect("no panic"));
    drop(reader);
}
