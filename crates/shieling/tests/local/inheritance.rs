//! What a command gets of its host: nothing that was not meant for it.

use shieling::process::End;

use super::support::{command, run, run_command};

#[tokio::test]
async fn standard_input_is_at_its_end() {
    for text in [
        "cat",
        "read x || echo none >&2",
        "python3 -c 'import sys; sys.stdin.read()' || true",
    ] {
        let finished = run(text).await;
        assert_eq!(finished.end, End::Exited(0), "{text}");
        assert_eq!(finished.stdout.total(), 0, "{text}");
    }
}

#[tokio::test]
async fn no_descriptor_of_the_host_is_there() {
    use std::os::fd::AsRawFd as _;
    let open = std::fs::File::open("/dev/zero").expect("it is there");
    // A careless host: not close-on-exec.
    let careless = rustix::io::dup(&open).expect("it is open");
    assert!(careless.as_raw_fd() > 2);
    // `ls` itself has one more, for the directory that it lists.
    let finished = run("ls /proc/self/fd | wc -l; ls -l /proc/self/fd | grep -c zero").await;
    assert_eq!(finished.stdout.text(), "4\n0\n");
}

#[tokio::test]
async fn a_long_text_brings_no_descriptor_to_the_programs_it_starts() {
    let text = format!("ls /proc/self/fd | wc -l\n# {}", "x".repeat(200_000));
    assert_eq!(run(&text).await.stdout.text(), "4\n");
}

#[tokio::test]
async fn the_environment_is_the_one_that_was_built() {
    assert!(
        std::env::var("CARGO_MANIFEST_DIR").is_ok(),
        "the host of this test has more variables"
    );
    let finished = run_command(
        &command("env | grep -v '^_=' | cut -d= -f1 | sort").with_variables(
            [
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
                ("MINE".to_owned(), "a\nb=c".replace('\n', " ")),
            ]
            .into(),
        ),
    )
    .await;
    // bash itself adds these.
    assert_eq!(finished.stdout.text(), "MINE\nPATH\nPWD\nSHLVL\n");
}

#[tokio::test]
async fn signals_have_their_default_meaning() {
    let finished = run("grep -E '^Sig(Blk|Ign)' /proc/self/status").await;
    let text = finished.stdout.text();
    let sets: Vec<u64> = text
        .lines()
        .filter_map(|line| u64::from_str_radix(line.split('\t').nth(1)?, 16).ok())
        .collect();
    // glibc has posix_spawn ignore the two signals that it keeps for itself.
    let internal = 0b11 << 31;
    assert_eq!(
        sets.iter().map(|set| set & !internal).collect::<Vec<_>>(),
        [0, 0],
        "{text}"
    );
}

#[tokio::test]
async fn each_command_leads_a_session_without_a_terminal_and_dumps_no_core() {
    // The fourth field after the name is the session.
    let session = "read -r stat < /proc/$$/stat; set -- ${stat##*) }; echo $4";
    let text = format!("{session}; echo $$; ulimit -c; ( : < /dev/tty ) 2>/dev/null || echo no terminal");
    let finished = run(&text).await;
    let text = finished.stdout.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], lines[1]);
    assert_eq!(lines[2..], ["0", "no terminal"]);
}

#[tokio::test]
async fn the_host_is_not_changed() {
    let before = rustix::process::child_subreaper().expect("it can be asked");
    assert_eq!(run("true").await.end, End::Exited(0));
    assert_eq!(rustix::process::child_subreaper().expect("it can be asked"), before);
}
