//! What commands do in memory, and what they refuse.

use std::io::Write as _;
use std::time::Duration;

use shieling::environment::Environment as _;
use shieling::process::{End, SpawnError, Streams};
use shieling_memory::{Handler, Memory, ProgramCall, ProgramOutput};
use shieling_testkit::approved;

use super::support::{WORKSPACE, command, failing, memory, printed, run, run_command};

#[tokio::test]
async fn output_status_and_files_are_those_of_the_text() {
    let memory = memory();
    let ran = run(&memory, "echo out; echo err >&2; mkdir d; echo x > d/f; exit 3").await;
    assert_eq!(
        (ran.end, ran.stdout.text(), ran.stderr.text()),
        (End::Exited(3), "out\n".into(), "err\n".into())
    );
    assert_eq!(memory.read("d/f").expect("written"), b"x\n");
    for (text, code) in [
        ("true", 0),
        ("false", 1),
        ("exit 300", 44),
        ("(exit 255)", 255),
        ("sh -c 'exit 6'", 6),
        ("if then", 2),
    ] {
        assert_eq!(run(&memory, text).await.end, End::Exited(code), "{text}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_127_and_the_list_of_those_that_are() {
    let ran = run(&memory(), "curl http://localhost").await;
    assert_eq!(ran.end, End::Exited(127));
    let said = ran.stderr.text();
    assert!(
        said.contains("curl: command not found") && said.contains("it has: awk"),
        "{said}"
    );
    let handled = run(&memory(), "nosuch 2>/dev/null || echo without").await;
    assert_eq!((handled.end, handled.stderr.text().as_str()), (End::Exited(0), ""));
}

#[tokio::test]
async fn a_text_gets_the_variables_it_was_approved_with_and_no_other() {
    let said = printed(&memory(), "env | sort").await;
    assert_eq!(said, "HOME=/home/user\nLC_ALL=C.UTF-8\nPATH=/usr/bin:/bin\nPWD=/work\n");
}

#[tokio::test]
async fn an_expansion_that_fails_ends_a_text_as_it_ends_bash() {
    let cases = [
        ("set -u; echo $x; echo no", 127),
        ("echo ${x:?no}", 127),
        ("set -u; f() { echo $x; }; f", 127),
        ("eval 'echo ${x:?}'", 127),
        ("y=$(exit 1); set -u; echo $x", 127),
        ("set -eu; echo $x", 1),
        ("(set -u; echo $x); exit 1", 1),
        ("exit 1", 1),
        ("set -e; false", 1),
        ("set -u; true", 0),
        ("trap 'echo $?' EXIT; false; exit", 1),
        ("trap 'true' EXIT; exit 1", 1),
        ("trap '[ $? = 127 ] && exit 9' EXIT; echo ${x:?no}", 9),
        ("readonly r=1; r=2; echo no", 1),
        ("readonly r=1; f() { r=2; }; f; echo no", 1),
        ("readonly r=1; set -e; r=2; echo no", 1),
    ];
    for (text, code) in cases {
        assert_eq!(run(&memory(), text).await.end, End::Exited(code), "{text}");
    }
}

#[tokio::test]
async fn rm_removes_what_it_is_given_and_fails_where_it_cannot() {
    let memory = memory();
    let made = "mkdir -p d/e empty; touch d/e/f a b -- -c; ln -s d l; ";
    let cases = [
        ("rm a b; ls -A", 0, "-c\nd\nempty\nl\n"),
        ("rm -rv d/e", 0, "removed directory 'd/e'\n"),
        ("rm -d empty; rm -- -c; rm l; ls -A", 0, "a\nb\nd\n"),
        ("rm d", 1, ""),
        ("rm -f d", 1, ""),
        ("rm -d d", 1, ""),
        ("rm nothing", 1, ""),
        ("rm -f nothing nothing/x", 0, ""),
        ("rm -rf ..", 1, ""),
        ("rm -rf /", 1, ""),
        ("rm -x a", 1, ""),
        ("rm", 1, ""),
        ("rm -f", 0, ""),
        ("rm -i a", 1, ""),
        ("cd d; rm -rf ../d/e; ls", 0, ""),
    ];
    for (text, code, out) in cases {
        memory.restore(&super::support::memory().snapshot());
        assert_eq!(run(&memory, made).await.end, End::Exited(0));
        let ran = run(&memory, text).await;
        assert_eq!(
            (ran.end, ran.stdout.text().as_str()),
            (End::Exited(code), out),
            "{text}: {}",
            ran.stderr.text()
        );
    }
}

#[tokio::test]
async fn what_would_be_answered_wrongly_is_refused_in_words() {
    let memory = memory();
    let swap = run(&memory, "ls . 3>&1 1>&2 2>&3").await;
    assert_eq!(swap.end, End::Exited(125), "{swap:?}");
    assert_eq!(
        printed(&memory, "mkdir b a; touch a/1 b/2; ls b a").await,
        "a:\n1\n\nb:\n2\n"
    );
    assert_eq!(printed(&memory, "mkdir -p r; cd r; touch z y; ls z y").await, "y\nz\n");
}

#[tokio::test]
async fn input_is_what_was_given_and_nothing_otherwise() {
    let memory = memory();
    assert_eq!(printed(&memory, "cat; echo end").await, "end\n");
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(b"one\ntwo\n").expect("written");
    std::io::Seek::rewind(&mut file).expect("a file");
    let ran = run_command(&memory, command("read x; echo $x; tac"), Streams::Given(file.into())).await;
    assert_eq!(ran.stdout.text(), "one\ntwo\n");

    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    rustix::io::write(&write, b"typed\n").expect("room in a pipe");
    drop(write);
    let ran = run_command(&memory, command("tr a-z A-Z"), Streams::Given(read)).await;
    assert_eq!(ran.stdout.text(), "TYPED\n");
}

#[tokio::test]
async fn there_is_no_terminal_and_no_directory_that_is_not_there() {
    let memory = memory();
    let (_, end) = rustix::pipe::pipe().expect("a pipe");
    let refused = memory.spawn(approved(command("true")), Streams::Terminal(end)).await;
    assert!(matches!(refused, Err(SpawnError::NoTerminal { .. })));
    let elsewhere = shieling::request::Command::new("true", "/nowhere").expect("a command");
    let refused = memory.spawn(approved(elsewhere), Streams::Output).await;
    assert!(matches!(refused, Err(SpawnError::Directory { .. })));
}

#[tokio::test]
async fn a_text_is_broken_off_at_its_deadline_and_what_it_printed_is_kept() {
    let memory = memory();
    for text in [
        "echo a; sleep 100",
        "echo a; while :; do :; done",
        "echo a; sleep 99 & wait",
    ] {
        let command = command(text)
            .with_deadline(Duration::from_millis(400))
            .expect("more than zero");
        let ran = run_command(&memory, command, Streams::Output).await;
        assert_eq!((ran.end, ran.stdout.text().as_str()), (End::TimedOut, "a\n"), "{text}");
        assert_eq!(ran.survivors, 0, "{text}");
    }
    assert_eq!(printed(&memory, "echo still there").await, "still there\n");
}

#[tokio::test]
async fn closing_breaks_off_what_was_started_and_not_what_another_clone_started() {
    let memory = memory();
    let other = memory.clone();
    let (closed, kept, ()) = tokio::join!(
        run(&memory, "touch begun; sleep 100"),
        run(&other, "until [ -e closed ]; do sleep 0.02; done; echo b"),
        async {
            while memory.read("begun").is_err() {
                tokio::task::yield_now().await;
            }
            memory.close().await;
            memory.write("closed", b"").expect("a file");
        }
    );
    assert_eq!(closed.end, End::Signalled(15));
    assert_eq!((kept.end, kept.stdout.text().as_str()), (End::Exited(0), "b\n"));
}

#[tokio::test]
async fn commands_run_beside_each_other_on_the_same_files() {
    let memory = memory();
    let (writer, reader) = tokio::join!(
        run(&memory, "for i in 1 2 3; do echo $i >> log; sleep 0.05; done"),
        run(
            &memory,
            "until [ \"$(wc -l < log 2>/dev/null)\" = 3 ]; do sleep 0.02; done; cat log"
        ),
    );
    assert_eq!((writer.end, reader.stdout.text()), (End::Exited(0), "1\n2\n3\n".into()));
}

#[tokio::test]
async fn programs_can_be_rust_functions_and_others_can_be_answered_for() {
    let shout = async |call: ProgramCall| ProgramOutput::ok(format!("{}!\n", call.argv[1..].join(" ").to_uppercase()));
    let shout = move |call: ProgramCall| {
        let said = shout(call);
        Box::pin(said) as std::pin::Pin<Box<dyn Future<Output = ProgramOutput> + Send>>
    };
    let unknown = |call: ProgramCall| async move {
        ProgramOutput::failed(
            9,
            format!(
                "{} in {} got {}\n",
                call.argv.join(" "),
                call.cwd.display(),
                String::from_utf8_lossy(&call.input)
            ),
        )
    };
    let memory = Memory::builder(WORKSPACE)
        .program("shout", shout)
        .handler(Handler::Unknown(std::sync::Arc::new(unknown)))
        .build()
        .expect("a memory");
    assert_eq!(
        printed(&memory, "shout hello there | tr '!' '?'").await,
        "HELLO THERE?\n"
    );
    let ran = run(&memory, "printf data | git push; echo $?").await;
    assert_eq!(
        (ran.stdout.text(), ran.stderr.text()),
        ("9\n".into(), "git push in /work got data\n".into())
    );

    let whole = |call: ProgramCall| async move { ProgramOutput::ok(format!("asked: {}\n", call.argv[0])) };
    let memory = Memory::builder(WORKSPACE)
        .handler(Handler::Whole(std::sync::Arc::new(whole)))
        .build();
    let memory = memory.expect("a memory");
    assert_eq!(
        printed(&memory, "anything | at all").await,
        "asked: anything | at all\n"
    );
    assert!(matches!(
        memory.open_shell(&approved(command("true"))).await,
        Err(SpawnError::Session { .. })
    ));
}

#[tokio::test]
async fn word_splitting_survives_that_a_text_saves_and_restores_ifs() {
    let text = "old=$IFS; IFS=,; x='a,b'; for y in $x; do echo \"<$y>\"; done; IFS=$old; for y in $(echo '1 2'); do echo \"<$y>\"; done; echo ${#IFS}";
    assert_eq!(printed(&memory(), text).await, "<a>\n<b>\n<1>\n<2>\n3\n");
}

#[tokio::test]
async fn a_replacement_is_that_of_bash_or_refused() {
    let memory = memory();
    let refused = [
        r#"u=a/b/c; echo "${u//\//\\}""#,
        r#"u=a/b/c; echo "${u//\//\\/}""#,
        r#"p='C:\x'; echo "${p//\\//}""#,
        r#"p='C:\x'; x="a${p/\\/+}""#,
        r#"j='{"k":"v"}'; echo "${j//\"/\\\"}""#,
        r#"j='{"k":"v"}'; f() { echo "${j//'"'/x}"; }"#,
        r#"v=axb; echo "${v/x/<&>}""#,
        r#"v=axb; echo ${v/x/<&>}"#,
        r#"a=(ab cb); echo "${a[@]/b/<&>}""#,
        r#"a=(ab cb); echo "${a[@]//b/\\}""#,
        r#"v='a\b'; echo "${v%\\*}""#,
        r#"v='a#b'; echo "${v//#/x}""#,
        r#"eval 'v=axb; echo "${v/x/<&>}"'"#,
    ];
    for text in refused {
        let ran = run(&memory, text).await;
        assert!(
            matches!(ran.end, End::Exited(code) if code != 0),
            "{text}: {}",
            ran.stdout.text()
        );
        assert_eq!(ran.stdout.text(), "", "{text}");
        assert!(ran.stderr.text().contains("memory"), "{text}: {}", ran.stderr.text());
    }
    let same = [
        (r#"p='C:\x'; x=${p//\\//}; echo "$x""#, "C:/x\n"),
        (
            r#"j='{"k":"v"}'; x=${j//\"/\\\"}; echo "$x""#,
            "{\\\"k\\\":\\\"v\\\"}\n",
        ),
        (r#"v=axb; echo "${v/x/<\&>}" "${v/x/"&"}" ${v/x/\&}"#, "a<&>b a&b a&b\n"),
        (r#"v='a&b'; echo "${v//&/and}" "${v/\#/x}""#, "aandb a&b\n"),
        (r#"b='\'; v=a/b; echo "${v//\//$b}""#, "a\\b\n"),
        (
            r#"v='a b'; echo "${v// /%20}" "${v// /\ }" "${v:-\\}""#,
            "a%20b a b a b\n",
        ),
        (
            r#"v=a.b; echo "${v%.*}" "${v##*.}"; cat <<'E'
"${w//\\/x}"
E"#,
            "a b\n\"${w//\\\\/x}\"\n",
        ),
    ];
    for (text, out) in same {
        assert_eq!(printed(&memory, text).await, out, "{text}");
    }
}

#[tokio::test]
async fn sed_fails_where_it_would_cut_its_output() {
    let memory = memory();
    for text in [
        r"seq 2000 | sed -z ':a;s/\n/,/;ta' > x",
        r"yes a | head -3000 | tr -d '\n' | sed ':a;s/a/b/;ta' | wc -c > x; true",
    ] {
        let ran = run(&memory, text).await;
        assert_eq!(ran.end, End::Exited(125), "{text}");
        assert!(
            ran.stderr.text().contains("its output is cut"),
            "{text}: {}",
            ran.stderr.text()
        );
    }
    for (text, out) in [
        (r"seq 3 | sed ':a;N;$!ba;s/\n/,/g'", "1,2,3\n"),
        (
            r"seq 900 > f; sed ':a;N;$!ba;s/\n/,/g' f | tr , '\n' | tail -n 1",
            "900\n",
        ),
        (
            r"set -x; echo 1234567 | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta' 2> /dev/null",
            "1,234,567\n",
        ),
    ] {
        assert_eq!(printed(&memory, text).await, out, "{text}");
    }
}

#[tokio::test]
async fn conditions_and_streams_that_would_be_wrong_are_refused() {
    for text in [
        "[[ -o pipefail ]]",
        "[[ a == a && ! -o errexit ]]",
        "[[ -R x ]]",
        "[[ a -ef a ]]",
        "[ a -ef a ]",
        "f() { echo 1; }; export -f f; bash -c f",
        "echo a > f; tar cf t.tar f; tar -xvf t.tar | wc -l",
        "awk 'BEGIN { print substr(\"hello\", -1, 3) }'",
        "printf '\\x00' > f",
    ] {
        let ran = failing(&memory(), text).await;
        assert_eq!(ran.stdout.text(), "", "{text}");
        assert!(ran.stderr.text().contains("memory"), "{text}: {}", ran.stderr.text());
    }
    let text =
        "x=-o; [[ $x == -o && -n -R ]]; echo $?; echo a > f; tar cvf t.tar f | wc -l; tar xvf t.tar 2> /dev/null";
    assert_eq!(printed(&memory(), text).await, "0\n1\n");
}

#[tokio::test]
async fn a_refusal_says_nothing_of_hooks() {
    let memory = memory();
    for text in [
        "stat f",
        "umask 077",
        "x=$(umask 077 2>&1); echo \"$x\" >&2",
        "umask 077 2> f; cat f >&2",
    ] {
        let said = run(&memory, text).await.stderr.text();
        assert!(said.contains("refused by memory: see below.\n"), "{text}: {said}");
        assert!(
            said.contains("shieling: `memory` ") && !said.contains("hook"),
            "{text}: {said}"
        );
    }
}
