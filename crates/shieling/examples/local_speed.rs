//! What a command on this host costs over a bare `posix_spawn` of the same shell, and what its
//! output costs over `cat >/dev/null`. Run with `--release`; times are medians.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement prints, and starts a bare shell to compare with"
)]

use std::process::Stdio;
use std::time::{Duration, Instant};

use shieling::environment::Shell;
use shieling::process::{Jail, Limits, run_to_end};
use shieling::request::Command;

const FLOOD: &str = "head -c 200000000 /dev/zero";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let shell = Shell::find(None).expect("there is a shell");
    let jail = Jail::unconfined().await.expect("it starts");
    let command = |text: &str| {
        let path = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        Command::new(text, "/tmp").expect("a good command").with_variables(path)
    };
    let run = async |text: &str| {
        let command = command(text);
        let process = jail
            .spawn(&shell.plan(&command), shieling::process::Streams::Output)
            .await
            .expect("it starts");
        run_to_end(process, &Limits::of(&command), None, None).await
    };
    // `std` takes posix_spawn for this; output to pipes that are read to their end, as ours.
    let bare = || {
        let mut command = std::process::Command::new("/bin/bash");
        command
            .args(["--noprofile", "--norc", "-c", "true"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null());
        assert!(command.output().expect("it starts").status.success());
    };

    let rounds = 1_000;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    // In turns, so that both meet the same weather.
    for _ in 0..rounds {
        let begun = Instant::now();
        bare();
        theirs.push(begun.elapsed());
        let begun = Instant::now();
        let finished = run("true").await;
        ours.push(begun.elapsed());
        assert_eq!(finished.end.exit_code(), Some(0));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "`true`: {ours:?}, bare posix_spawn {theirs:?}, ratio {:.3}",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );

    let before = memory("VmRSS:");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..9 {
        let begun = Instant::now();
        let status = std::process::Command::new("/bin/bash")
            .args(["-c", &format!("{FLOOD} | cat >/dev/null")])
            .status()
            .expect("it starts");
        assert!(status.success());
        theirs.push(begun.elapsed());
        let begun = Instant::now();
        let finished = run(FLOOD).await;
        ours.push(begun.elapsed());
        assert_eq!(finished.stdout.total(), 200_000_000);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "200 MB: {ours:?}, `cat >/dev/null` {theirs:?}, ratio {:.3}",
        ours.as_secs_f64() / theirs.as_secs_f64()
    );
    println!("memory: {before} KiB before, {} KiB at most", memory("VmHWM:"));

    let begun = Instant::now();
    let finished = run("sleep 300 & echo started").await;
    println!(
        "`sleep 300 & echo started`: {:?}, {} ended",
        begun.elapsed(),
        finished.ended_processes
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let line = status
        .lines()
        .find(|line| line.starts_with(field))
        .expect("the kernel tells it");
    line.split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .expect("a number")
}
