//! Long texts: each runs as `bash -c` runs it, with its status, its output and its messages.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::Shieling;
use shieling::approval::{Answer, ApproverFn, Mode, Question, Scope};
use shieling::environment::{Environment, Local, Restrictions, Sandbox, Shell};
use shieling::policy::Policy;
use shieling::session::{JobRequest, OnTimeout, SessionName};

use super::support::beside;

/// The longest text that the policy reads, in bytes.
const READ: usize = 256 * 1024;

/// `number` lines, each made from its number.
fn lines(number: usize, line: impl Fn(usize) -> String) -> String {
    (0..number).fold(String::new(), |mut text, at| {
        writeln!(text, "{}", line(at)).expect("a string takes it");
        text
    })
}

fn texts() -> Vec<(&'static str, String)> {
    let assignments = |number| lines(number, |at| format!("x{at}=$((x + {at})) # of many"));
    vec![
        (
            "5,000 commands",
            lines(5_000, |at| format!("echo line {at} >/dev/null")) + "echo $LINENO",
        ),
        ("5,000 assignments", assignments(5_000) + "echo $LINENO $x4999"),
        ("5,000 empty commands", ":\n".repeat(5_000) + "echo $LINENO"),
        ("5,000 comments", "# nothing\n".repeat(5_000) + "echo $LINENO"),
        (
            "5,000 commands in one line",
            "echo a >/dev/null; ".repeat(5_000) + "echo $LINENO",
        ),
        ("5,000 commands in a list", "true && ".repeat(5_000) + "echo end"),
        (
            "5,000 lines in a group",
            format!("{{\n{}}} | wc -l", "echo a\n".repeat(5_000)),
        ),
        (
            "5,000 lines in a function",
            format!("f() {{\n{}}}\nf | wc -l", "echo a\n".repeat(5_000)),
        ),
        (
            "1,700 functions",
            lines(1_700, |at| format!("f{at}() {{\n  echo {at}\n}}")) + "f1699",
        ),
        (
            "5,000 cases",
            format!(
                "case x in\n{}x) echo found $LINENO;;\nesac",
                lines(5_000, |at| format!("a{at}) echo {at};;"))
            ),
        ),
        (
            "an array of 5,000",
            format!("a=(\n{})\necho ${{#a[@]}} $LINENO", lines(5_000, |at| format!("v{at}"))),
        ),
        (
            "100 nested conditions",
            "if true; then\n".repeat(90) + "echo deep\n" + &"fi\n".repeat(90),
        ),
        (
            "300 substitutions",
            lines(300, |at| format!("x=$(echo {at})")) + "echo $x $LINENO",
        ),
        (
            "an error in line 4,000",
            ":\n".repeat(3_999) + "no-such-command\n" + &":\n".repeat(1_000),
        ),
        (
            "no bash from line 4,000 on",
            "x=1\n".repeat(3_999) + "echo (\n" + &":\n".repeat(1_000),
        ),
        (
            "an open quote in line 4,000",
            "x=1\n".repeat(3_999) + "echo 'open\n" + &":\n".repeat(1_000),
        ),
        (
            "an exit in line 4,000",
            ":\n".repeat(3_999) + "exit 7\n" + &"echo no\n".repeat(1_000),
        ),
        (
            "set -e in line 4,000",
            "set -e\n".to_owned() + &":\n".repeat(3_999) + "false\n" + &"echo no\n".repeat(1_000),
        ),
        ("32 KiB less one", ":\n".repeat(16_380) + "#####"),
        ("32 KiB", ":\n".repeat(16_381) + "######"),
        ("32 KiB and one", ":\n".repeat(16_381) + "#######"),
        ("64 KiB", ": ab\n".repeat(13_000) + "echo $LINENO"),
        (
            "a here-document of 200 kB",
            format!(
                "cat <<'E' | md5sum\n{}E\necho $LINENO",
                "a line of a document\n".repeat(10_000)
            ),
        ),
        (
            "a here-document of 200 kB that is expanded",
            format!(
                "v=value\ncat <<E | md5sum\n{}E\necho $LINENO",
                "a $v of it\n".repeat(18_000)
            ),
        ),
        (
            "a here-document of 900 kB",
            format!(
                "cat <<'E' | wc -c\n{}E\necho $LINENO",
                "a line of a document\n".repeat(43_000)
            ),
        ),
        (
            "a line of 500 kB",
            format!("x='{}'\necho ${{#x}} $LINENO", "a".repeat(500_000)),
        ),
        (
            "a word of 100 kB for a program",
            format!("/bin/echo {} | wc -c", "a".repeat(100_000)),
        ),
        (
            "a word that is too long for a program",
            format!("/bin/echo {} | wc -c", "a".repeat(200_000)),
        ),
        (
            "1 MiB less some",
            format!("x='{}'\necho ${{#x}}", "a".repeat(1_048_000)),
        ),
        (
            "20,000 lines",
            lines(20_000, |at| format!("x=$((x + {at}))")) + "echo $x $LINENO",
        ),
    ]
}

/// What there is to be compared of an end.
type Said = (Option<i32>, String, String);

/// As bash runs it alone: by `-c`, or what is too long for that, as a file.
fn alone(place: &std::path::Path, text: &str) -> Said {
    let mut bash = Command::new("bash");
    bash.env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(place)
        .stdin(Stdio::null());
    let file = place.join("text");
    let name = file.display().to_string();
    if text.len() < 100_000 {
        bash.args(["-c", text]);
    } else {
        std::fs::write(&file, text).expect("our own directory");
        bash.arg(&file);
    }
    let done = bash.output().expect("there is a bash");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    let said = text(done.stderr).replace(&name, "bash");
    // A file is read line by line, and named so: the words of an error are the same.
    (
        done.status.code(),
        text(done.stdout),
        said.replace("bash: -c: ", "bash: "),
    )
}

// Two tests, so that both run at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_text_runs_as_bash_runs_it() {
    all_run_as_in_bash(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_text_runs_in_a_sandbox_as_bash_runs_it() {
    all_run_as_in_bash(true).await;
}

async fn all_run_as_in_bash(sandboxed: bool) {
    let _beside = beside().await;
    let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
    let mut wrong = Vec::new();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let workspace = folder.path().canonicalize().expect("it is there");
    let environment: Arc<dyn Environment> = if sandboxed {
        let mut restrictions = Restrictions::new(&workspace, shell.program());
        restrictions.path = "/usr/bin:/bin".to_owned();
        Arc::new(Sandbox::new(restrictions, shell.clone()))
    } else {
        Arc::new(Local::new(shell.clone()))
    };
    let shieling = Shieling::builder(environment, Policy::open(), &workspace)
        .approval(Mode::OnAsk)
        // What is too long to be read is asked about, and nothing else.
        .approver(Arc::new(ApproverFn(|question: &Question| {
            match question.text.as_str() {
                text if text.len() > READ => Answer::Yes(Scope::Once),
                _ => Answer::No(String::new()),
            }
        })))
        .build()
        .expect("it serves no other policy");
    for (name, text) in texts() {
        let variables = [("PATH", "/usr/bin:/bin"), ("LC_ALL", "C.UTF-8")];
        let command = shieling::request::Command::new(text.as_str(), &workspace)
            .expect("a good command")
            .with_variables(
                variables
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
            )
            .with_deadline(Duration::from_secs(60))
            .expect("more than zero");
        let call = JobRequest::new(command).with_on_timeout(OnTimeout::Kill);
        let begun = Instant::now();
        let outcome = shieling.session(SessionName::default()).run(call).await;
        eprintln!("{name} (sandboxed: {sandboxed}): {:?}", begun.elapsed());
        let said = outcome.stderr.replace("bash: -c: ", "bash: ");
        let got = (outcome.exit_code, outcome.stdout.clone(), said);
        let want = alone(&workspace, &text);
        if got != want {
            wrong.push(format!(
                "{name} (sandboxed: {sandboxed}): {:?} is not {:?}; {:?} {:?} {:?}",
                short(&got),
                short(&want),
                outcome.status,
                outcome.error,
                outcome.denial
            ));
        }
    }
    shieling.close().await;
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn short((code, stdout, stderr): &Said) -> (Option<i32>, String, String) {
    let short = |text: &str| text.chars().take(300).collect();
    (*code, short(stdout), short(stderr))
}
