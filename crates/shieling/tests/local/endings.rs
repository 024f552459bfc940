//! How a command's end is told.

use std::time::{Duration, Instant};

use shieling::process::{End, Limits, run_to_end};
use shieling::units::ByteCount;

use super::support::{Mark, command, loud, plan, quiet, run, run_command, start};

#[tokio::test]
async fn every_end_has_its_code() {
    let _load = quiet().await;
    let cases = [
        ("true", End::Exited(0), Some(0)),
        ("exit 3", End::Exited(3), Some(3)),
        ("exit 255", End::Exited(255), Some(255)),
        ("no-such-program-here", End::Exited(127), Some(127)),
        ("/etc/passwd", End::Exited(126), Some(126)),
        ("kill -TERM $$", End::Signalled(15), Some(143)),
        ("kill -KILL $$", End::Signalled(9), Some(137)),
        ("kill -SEGV $$", End::Signalled(11), Some(139)),
        ("(kill -KILL $BASHPID); exit $?", End::Exited(137), Some(137)),
        ("if", End::Exited(2), Some(2)),
    ];
    for (text, end, code) in cases {
        let finished = run(text).await;
        assert_eq!((finished.end, finished.end.exit_code()), (end, code), "{text}");
        assert_eq!((finished.ended_processes, finished.survivors), (0, 0), "{text}");
    }
}

#[tokio::test]
async fn a_pipe_whose_reader_left_kills_its_writer_as_in_any_shell() {
    let _load = quiet().await;
    // The host ignores SIGPIPE, as Rust programs do; the command must not.
    let finished = run("set -o pipefail; yes | head -n 1").await;
    assert_eq!(finished.end, End::Exited(141));
    assert_eq!(finished.stdout.text(), "y\n");
}

#[tokio::test]
async fn duration_and_usage_are_measured() {
    let _load = quiet().await;
    let finished = run("sleep 0.2; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done").await;
    assert!(
        finished.duration >= Duration::from_millis(200),
        "{:?}",
        finished.duration
    );
    let usage = finished.usage.expect("it ended by itself");
    assert!(usage.user + usage.system > Duration::from_millis(2), "{usage:?}");
    assert!(usage.peak_memory > 1024 * 1024, "{usage:?}");
}

#[tokio::test]
async fn more_output_than_allowed_ends_the_command() {
    let _load = loud().await;
    let mark = Mark::new();
    let command = command(&format!("sleep {mark} & yes"));
    let limits = Limits {
        output: Some(ByteCount::mib(4)),
        ..Limits::of(&command)
    };
    let (process, _jail) = start(&plan(command.text())).await.expect("it starts");
    let finished = run_to_end(process, &limits, None, None).await;
    assert_eq!((finished.end, finished.survivors), (End::OutputLimit, 0));
    assert!(finished.stdout.total() > 4 << 20);
    // What it writes while it is being ended is read too, so that nothing blocks.
    assert!(finished.stdout.total() < 256 << 20);
    assert_eq!(mark.alive(), [] as [u32; 0]);
}

#[tokio::test]
async fn a_flood_does_not_delay_the_deadline() {
    let _load = loud().await;
    let command = command("yes & yes >&2")
        .with_deadline(Duration::from_millis(300))
        .expect("more than zero");
    let begun = Instant::now();
    let finished = run_command(&command).await;
    assert_eq!((finished.end, finished.survivors), (End::TimedOut, 0));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_largest_deadline_is_none() {
    let _load = quiet().await;
    let command = command("echo x")
        .with_deadline(Duration::MAX)
        .expect("more than zero")
        .with_grace(Duration::MAX);
    assert_eq!(run_command(&command).await.end, End::Exited(0));
}

#[tokio::test]
async fn a_file_larger_than_allowed_cannot_be_written() {
    let _load = quiet().await;
    let file = tempfile::NamedTempFile::new().expect("a file can be made");
    let text = format!("head -c 100000 /dev/zero > {}", file.path().display());
    let finished = run_command(&command(&text).with_file_size(Some(ByteCount::kib(16)))).await;
    assert_ne!(finished.end, End::Exited(0));
    assert_eq!(file.as_file().metadata().expect("it is there").len(), 16 * 1024);
}
