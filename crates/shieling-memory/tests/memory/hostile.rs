//! Texts that mean harm.

use std::time::Duration;

use shieling::environment::Environment as _;
use shieling::process::{End, Streams};
use shieling::units::ByteCount;
use shieling_memory::Memory;
use shieling_testkit::extent;

use super::support::{WORKSPACE, command, failing, finished, memory, printed, run, run_command, shell};

#[tokio::test]
async fn floods_bombs_and_endless_loops_end_in_bounds() {
    let memory = Memory::builder(WORKSPACE)
        .memory(ByteCount::mib(32))
        .build()
        .expect("a memory");
    let texts = [
        ":(){ :|:& };:",
        "f() { f; }; f",
        "while :; do :; done",
        "yes",
        "cat /dev/zero | cat",
        "x=a; while :; do x=$x$x; done",
        "a=(); while :; do a+=(xxxxxxxx); done",
        "echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} | wc -c",
        "printf '%0999999999d' 1 | wc -c",
        "yes | head -c 500000000 | wc -c",
        "while :; do echo x >> f; cat f f >> g; done",
        "echo $(echo $(echo $(yes)))",
        "awk 'BEGIN { while (1) x = x \"aaaaaaaaaa\" }'",
        "sed ':a;s/^/x/;ta' <<< y",
        "grep -E '(a+)+$' <<< aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
        "[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab =~ ^(a+)+$ ]]",
        "source /dev/stdin <<< 'while :; do :; done'",
        "trap 'sleep 99' TERM INT EXIT; sleep 99",
        "seq 1 1000000000 | tail -1",
        "for i in $(seq 1 10000000); do :; done",
        "sleep 99 & sleep 99 & exec sleep 99",
        "sort /dev/zero",
        "base64 /dev/zero | wc",
        "mkdir -p a/b; cd a; for i in 1 2 3 4; do ln -s .. l$i; ln -s ../.. b/m$i; done; ls -LR > /dev/null; cp -rL . /tmp/x",
        "yes > /dev/null",
        "seq inf > /dev/null",
        "yes > f",
        "x=$(yes)",
        "seq 1 -1 -inf | sort",
    ];
    for text in texts {
        let command = command(text)
            .with_deadline(Duration::from_millis(extent::rounds(400, 1_500)))
            .expect("more than zero");
        let ran = run_command(&memory, command, Streams::Output).await;
        assert!(ran.survivors == 0, "{text}: {ran:?}");
        assert!(ran.duration < Duration::from_secs(20), "{text} took {:?}", ran.duration);
        printed(&memory, "rm -f f g").await;
    }
    assert_eq!(printed(&memory, "echo alive").await, "alive\n");
}

#[tokio::test]
async fn large_output_flows_and_is_not_gathered() {
    let memory = memory();
    let text = "l=abcdefghijklmnopqrstuvwxyz; for ((i = 0; i < 20000; i++)); do echo $l; done";
    let ran = run(&memory, text).await;
    assert_eq!((ran.end, ran.stdout.total()), (End::Exited(0), 20_000 * 27));
    let long = [
        ("seq 100000 | tail -n 1", "100000\n"),
        ("yes | head -n 9000 | wc -l", "9000\n"),
        ("for i in {1..10000}; do :; done; echo $i", "10000\n"),
        ("bash -c 'printf \"%s\\n\" {00001..10000}' | tail -n 1", "10000\n"),
        (
            "seq 100000 > f; seq 100001 200000 >> f; wc -l < f; grep -c 9 f; sed -n '$p' f; awk 'END { print NR }' f; sort -rn f | head -n 1",
            "200000\n81902\n200000\n200000\n200000\n",
        ),
    ];
    for (text, out) in extent::share(long.into(), 3, |_| ()) {
        assert_eq!(printed(&memory, text).await, out, "{text}");
    }
    assert_eq!(
        printed(
            &memory,
            "yes | head -n 3; for i in {1..9999}; do :; done; n=0; while ((n < 20001)); do ((n++)); done; echo $n"
        )
        .await,
        "y\ny\ny\n20001\n"
    );
}

#[tokio::test]
async fn long_and_deep_texts_are_run_or_refused_in_words() {
    let memory = memory();
    let long = format!(": {}; echo end", "x".repeat(1_000_000));
    assert_eq!(printed(&memory, &long).await, "end\n");
    for text in [
        "(".repeat(5_000),
        "{ ".repeat(5_000),
        "$(".repeat(5_000),
        format!("echo {}1{}", "$((".repeat(300), "))".repeat(300)),
        "if true; then ".repeat(2_000),
    ] {
        let ran = run(&memory, &text).await;
        assert!(matches!(ran.end, End::Exited(code) if code != 0), "{:?}", ran.end);
        assert_ne!(ran.stderr.text(), "");
    }
    let deep = run(&memory, "f() { [ $1 = 0 ] || f $(($1 - 1)); }; f 100").await;
    assert_eq!(deep.end, End::Exited(125));
    assert!(deep.stderr.text().contains("depth"), "{}", deep.stderr.text());
    for text in ["for i in {1..10001}; do :; done; echo $i", "echo {1..200}{1..200}"] {
        let range = run(&memory, text).await;
        assert_eq!(
            (range.end, range.stdout.text().as_str()),
            (End::Exited(125), ""),
            "{text}"
        );
        assert!(range.stderr.text().contains("use `seq`"), "{}", range.stderr.text());
    }
}

#[tokio::test]
async fn nothing_of_the_host_is_there() {
    let memory = memory();
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let said = run(&memory, "cat /etc/passwd /etc/hostname /proc/self/environ /proc/1/cmdline /proc/version; hostname; uname -a; id; ls /root /home; env; set").await;
    let said = said.stdout.text();
    assert!(!said.contains("root:x:0:0"), "{said}");
    assert!(host.trim().is_empty() || !said.contains(host.trim()), "{said}");
    assert!(!said.contains("CARGO"), "{said}");
    for text in [
        "curl http://127.0.0.1",
        "wget -O- http://127.0.0.1",
        "exec 3<>/dev/tcp/127.0.0.1/80",
        "ssh localhost",
        "nc localhost 80",
        "kill -9 1",
        "python3 -c 1",
        "mount",
        "chroot /",
    ] {
        assert_ne!(run(&memory, text).await.end, End::Exited(0), "{text}");
    }
}

#[tokio::test]
async fn what_is_nested_without_an_end_ends_with_a_message_and_the_memory_lives() {
    let memory = memory();
    let deep = [
        "shopt -s expand_aliases; alias a=\"eval a\"\neval a",
        "x='eval \"$x\"'; eval \"$x\"",
        "x='eval \"$x\" || :; echo no'; eval \"$x\"",
        "eval \"$(printf 'command %.0s' $(seq 3000)) true\"",
        "eval \"$(printf 'builtin %.0s' $(seq 3000)) true\"",
        "eval \"$(printf 'nice %.0s' $(seq 1500)) true\"",
        "eval \"$(printf 'xargs %.0s' $(seq 1500)) true\"",
    ];
    for text in deep {
        let ran = run(&memory, text).await;
        assert_eq!((ran.end, ran.stdout.text().as_str()), (End::Exited(125), ""), "{text}");
        assert!(
            ran.stderr.text().contains("maximum depth of commands"),
            "{text}: {}",
            ran.stderr.text()
        );
    }
    let bounded = [
        "find . $(printf '! %.0s' $(seq 6400)) -name a",
        "find . $(printf -- '-name a -o %.0s' $(seq 6400)) -name a",
        "find . $(printf '( %.0s' $(seq 30000)) -name a $(printf ') %.0s' $(seq 30000))",
        "test $(printf '( %.0s' $(seq 30000)) a $(printf ') %.0s' $(seq 30000))",
        "expr $(printf '( %.0s' $(seq 30000)) 1 $(printf ') %.0s' $(seq 30000))",
        "eval \"$(printf 'time %.0s' $(seq 3000)) true\"",
        "alias t='time '",
        "printf 'time %.0s' $(seq 3000) > f; bash f",
        "printf 'time %.0s' $(seq 3000) > f; . ./f",
        "printf 'time %.0s' $(seq 3000) > f; chmod +x f; ./f",
        "awk \"BEGIN { x = $(printf '(%.0s' $(seq 30000))1$(printf ')%.0s' $(seq 30000)) }\"",
        "awk \"BEGIN { $(printf '{%.0s' $(seq 30000))$(printf '}%.0s' $(seq 30000)) }\"",
        "sed \"$(printf '{%.0s' $(seq 30000))\" < /dev/null",
        "x=$(printf '(%.0s' $(seq 30000))$(printf ')%.0s' $(seq 30000)); echo a | grep -E \"$x\"",
    ];
    for text in bounded {
        let ran = failing(&memory, text).await;
        assert_ne!(ran.stderr.text(), "", "{text}");
    }
    // They end somehow.
    for text in [
        "x=$(printf '(%.0s' $(seq 30000)); [[ a =~ $x ]]",
        "echo $(($(printf '(%.0s' $(seq 30000))1$(printf ')%.0s' $(seq 30000))))",
        "x=$(printf '{a,%.0s' $(seq 3000))$(printf '}%.0s' $(seq 3000)); eval \"echo $x\"",
        "x=1; for i in $(seq 3000); do x=\"a[$x]\"; done; echo $((x))",
        "a=a; echo $((a))",
        "declare -n r=r; echo $r",
        "trap 'false' ERR; trap 'eval false' DEBUG; false",
    ] {
        let _ = run(&memory, text).await;
    }
    let time = format!("{}true", "time ".repeat(3_000));
    assert!(memory.syntax_check(&command(&time)).await.is_none());
    assert_eq!(run(&memory, &time).await.end, End::Exited(125));
    assert_eq!(printed(&memory, "eval eval eval echo alive").await, "alive\n");

    let mut shell = shell(&memory).await;
    for (text, out) in [("x=1", ""), (deep[1], ""), ("echo $x", "1\n")] {
        let ran = finished(shell.run(text).await.expect("it starts"), Duration::from_secs(60)).await;
        assert_eq!(ran.stdout.text(), out, "{text}");
    }
}

#[tokio::test]
async fn a_command_that_nothing_could_interrupt_is_refused() {
    for text in [
        "awk 'BEGIN { while (1); }'",
        "timeout 1 awk 'BEGIN { for (;;) {} }'",
        "xxd -c 999999999 <<< a",
    ] {
        let ran = failing(&memory(), text).await;
        assert!(
            ran.stderr.text().contains("`memory` c"),
            "{text}: {}",
            ran.stderr.text()
        );
    }
}
