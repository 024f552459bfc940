//! What is kept of a command's output.

use std::time::Duration;

use shieling::output::{SpillTo, Stream, Tee, read_spilled};
use shieling::process::{End, Limits, run_to_end};
use shieling::units::ByteCount;

use super::support::{command, loud, plan, quiet, run, run_command, start};

#[tokio::test]
async fn both_streams_are_kept_apart_and_whole() {
    let _load = quiet().await;
    let finished = run("echo out; echo err >&2; printf 'a\\r\\nb\\rc'").await;
    assert_eq!(finished.stdout.text(), "out\na\r\nb\rc");
    assert_eq!(finished.stderr.text(), "err\n");
    assert!(!finished.stdout.truncated());
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let _load = quiet().await;
    let finished = run("printf 'a\\377\\376b\\0c'").await;
    assert_eq!(finished.stdout.text(), "a\u{fffd}\u{fffd}b\0c");
    assert_eq!(finished.stdout.total(), 6);
}

#[tokio::test]
async fn a_flood_keeps_its_head_and_tail_in_bounded_memory_and_stderr_is_not_lost() {
    let _load = loud().await;
    let before = resident();
    let finished = run("echo first; echo warning >&2; head -c 500000000 /dev/zero | tr '\\0' x; echo; echo last").await;
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout.total(), 500_000_000 + 6 + 1 + 5);
    assert_eq!(finished.stderr.text(), "warning\n");
    let text = finished.stdout.text();
    assert!(text.starts_with("first\nxxx"));
    assert!(text.ends_with("xxx\nlast\n"));
    assert!(
        text.contains("\n[... 499,934,476 bytes left out ...]\n"),
        "{}",
        &text[32_700..32_900]
    );
    // Other tests run beside this one in the same process; 500 MB would show all the same.
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown}");
}

/// Bytes of memory in use.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("proc is mounted");
    statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .expect("it holds numbers")
        * 4096
}

#[tokio::test]
async fn the_last_output_of_a_pipeline_is_never_lost() {
    let _load = quiet().await;
    for _ in 0..50 {
        let finished = run("seq 1 30000 | tac | tac; echo end >&2").await;
        assert!(finished.stdout.text().ends_with("\n29999\n30000\n"));
        assert_eq!(finished.stderr.text(), "end\n");
    }
}

#[tokio::test]
async fn a_tee_gets_every_byte_and_the_file_all_of_them() {
    let _load = quiet().await;
    #[derive(Default)]
    struct Collect([Vec<u8>; 2]);
    impl Tee for Collect {
        fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
            self.0[stream as usize].extend_from_slice(bytes);
        }
    }
    let outside = tempfile::tempdir().expect("a directory can be made");
    let spill = SpillTo::new(outside.path().join("outputs"));
    let command = command("seq 1 20000; echo err >&2")
        .with_output_kept(ByteCount::kib(1))
        .expect("more than zero");
    let (process, _jail) = start(&plan(command.text())).await.expect("it starts");
    let mut tee = Collect::default();
    let finished = run_to_end(process, &Limits::of(&command), Some(&spill), Some(&mut tee)).await;
    let expected: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    assert!(tee.0[0] == expected.as_bytes());
    assert_eq!(tee.0[1], b"err\n");
    assert!(finished.stdout.truncated() && !finished.stderr.truncated());
    let id = finished
        .spilled
        .and_then(|spilled| spilled.id)
        .expect("it was too long")
        .to_string();
    let chunk = read_spilled(&spill.directory, &id, Stream::Stdout, 0, ByteCount::mib(1)).expect("it is there");
    assert!(chunk.end && chunk.bytes == expected.as_bytes());
    let chunk = read_spilled(&spill.directory, &id, Stream::Stderr, 0, ByteCount::mib(1)).expect("it is there");
    assert_eq!(chunk.bytes, b"err\n");
}

#[tokio::test]
async fn output_is_drained_while_the_command_is_being_ended() {
    let _load = quiet().await;
    // Its last words are larger than a pipe; nobody reading them would block it past its grace.
    let text = "trap 'seq 1 40000; exit' TERM; echo ready; while :; do sleep 0.01; done";
    let command = command(text)
        .with_deadline(Duration::from_millis(300))
        .expect("more than zero");
    let finished = run_command(&command).await;
    assert_eq!(finished.end, End::TimedOut);
    assert!(
        finished.stdout.text().ends_with("\n40000\n"),
        "{}",
        finished.stdout.total()
    );
}
