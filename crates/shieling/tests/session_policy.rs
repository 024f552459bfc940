//! Policies in sessions of `local`: what an earlier, allowed command leaves in the shell must not make a later
//! text do what the policy forbids, and ordinary work in several steps must not be refused.
//!
//! Each case runs in a session of its own, in which nobody answers questions, so that each step is either
//! allowed by the policy alone or does not run.
#![expect(clippy::disallowed_methods, reason = "a test looks at its own workspace")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Local, Shell};
use shieling::outcome::{Outcome, Status};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling::session::{JobRequest, SessionName};
use shieling_testkit::Workspace;

/// What is in the file that is hidden.
const SECRET: &str = "hidden-7f3a";

mod session_policy {
    pub(crate) mod cases;
}
use session_policy::cases::{ATTACKS, BENIGN};

fn policy(name: &str) -> Policy {
    let open = Policy::open();
    match name {
        "readonly" => open.with_readonly(),
        "deny" => open.with_deny(&["rm", "git push"]).expect("entries"),
        "allow" => open
            .with_allow(&["ls", "cat", "echo", "cd", "grep", "git status"])
            .expect("entries"),
        "ignore" => open.with_ignore(&[".env", "/secret/key"]).expect("patterns"),
        other => panic!("no policy {other}"),
    }
}

fn workspace() -> Workspace {
    let workspace = Workspace::new()
        .with("keep", "kept\n")
        .with(".env", SECRET)
        .with("secret/key", SECRET)
        .with("README.md", "read me\n")
        .with("a/b/c/file", "deep\n")
        .with("src/lib.rs", "fn main() {}\n")
        .with_program("evil/ls", "#!/bin/sh\nrm -f keep\n")
        .with_program("evil/cat", "#!/bin/sh\nrm -f keep\n");
    symlink("a/b/c", workspace.path("link")).expect("a link");
    workspace
}

/// A session in a workspace, with a program `own` on the path that does what no policy here lets happen.
struct Steps {
    workspace: Workspace,
    tools: Workspace,
    shieling: Shieling,
}

impl Steps {
    fn under(name: &str) -> Self {
        let workspace = workspace();
        let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
        let shieling = Shieling::builder(Arc::new(Local::new(shell)), policy(name), workspace.root())
            .approval(Mode::OnAsk)
            .build()
            .expect("it serves no other policy");
        Self {
            workspace,
            tools: Workspace::new().with_program("own", "#!/bin/sh\nrm -f keep\n"),
            shieling,
        }
    }

    async fn run(&self, text: &str) -> Outcome {
        let root = self.workspace.root();
        let path = format!("/usr/local/bin:/usr/bin:/bin:{}", self.tools.root().display());
        let variables = BTreeMap::from([
            ("PATH".to_owned(), path),
            ("HOME".to_owned(), root.display().to_string()),
        ]);
        let command = Command::new(text, root)
            .expect("a command")
            .with_variables(variables)
            .with_deadline(Duration::from_secs(20))
            .expect("some time");
        self.shieling.session(SessionName::default()).run(command).await
    }
}

async fn steps(name: &str, texts: &[&str]) -> (Workspace, Vec<Outcome>) {
    let steps = Steps::under(name);
    let mut outcomes = Vec::new();
    for text in texts {
        outcomes.push(steps.run(text).await);
    }
    steps.shieling.close().await;
    (steps.workspace, outcomes)
}

fn said(outcomes: &[Outcome]) -> Vec<String> {
    let one = |outcome: &Outcome| {
        format!(
            "{:?} {} {}",
            outcome.status,
            outcome.stdout.trim_end(),
            outcome
                .denial
                .iter()
                .flat_map(|no| &no.reasons)
                .map(|why| format!("[{}: {}]", why.rule, why.because))
                .collect::<String>(),
        )
    };
    outcomes.iter().map(one).collect()
}

/// Whether something happened that no policy here lets happen.
fn harm(name: &str, workspace: &Workspace, outcomes: &[Outcome]) -> bool {
    let kept = fs::read_to_string(workspace.path("keep")).ok().as_deref() == Some("kept\n");
    let told = outcomes
        .iter()
        .any(|outcome| outcome.stdout.contains(SECRET) || outcome.stderr.contains(SECRET));
    match name {
        "ignore" => told,
        _ => !kept || workspace.path("new").exists(),
    }
}

#[tokio::test]
async fn no_state_of_a_session_carries_a_text_past_the_policy() {
    let mut through = Vec::new();
    for (name, texts) in ATTACKS {
        let (workspace, outcomes) = steps(name, texts).await;
        if harm(name, &workspace, &outcomes) {
            through.push(format!("{name}: {texts:?}\n      {}", said(&outcomes).join("\n      ")));
        }
        let refused = outcomes.iter().any(|outcome| outcome.denial.is_some());
        if std::env::var_os("SHIELING_TELL").is_some() {
            eprintln!(
                "{name} {texts:?} refused={refused}\n      {}",
                said(&outcomes).join("\n      ")
            );
        }
    }
    assert!(
        through.is_empty(),
        "{} of {} get through:\n{}",
        through.len(),
        ATTACKS.len(),
        through.join("\n")
    );
}

#[tokio::test]
async fn ordinary_work_in_steps_is_not_refused() {
    let mut refused = Vec::new();
    for (name, texts) in BENIGN {
        let (_workspace, outcomes) = steps(name, texts).await;
        if outcomes.iter().any(|outcome| outcome.status != Status::Exited) {
            refused.push(format!("{name}: {texts:?}\n      {}", said(&outcomes).join("\n      ")));
        }
    }
    assert!(
        refused.is_empty(),
        "{} of {} are refused:\n{}",
        refused.len(),
        BENIGN.len(),
        refused.join("\n")
    );
}

#[tokio::test]
async fn a_command_that_was_judged_by_a_function_does_not_run_in_a_shell_without_it() {
    let steps = Steps::under("readonly");
    let shell = steps.run("echo $$").await;
    let shell: i32 = shell.stdout.trim().parse().expect("the shell's number");
    assert_eq!(steps.run("own() { ls; }").await.status, Status::Exited);
    assert_eq!(steps.run("own").await.status, Status::Exited);

    let stat = format!("/proc/{shell}/stat");
    let shell = rustix::process::Pid::from_raw(shell).expect("a number");
    rustix::process::kill_process(shell, rustix::process::Signal::KILL).expect("it is ours");
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let outcome = steps.run("own").await;
    assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
    assert!(
        outcome
            .error
            .as_deref()
            .is_some_and(|error| error.contains("functions and aliases")),
        "{outcome:?}"
    );
    assert_eq!(steps.run("own").await.status, Status::NeedsApproval);
    assert_eq!(steps.run("ls").await.status, Status::Exited);
    assert!(steps.workspace.path("keep").exists());
    steps.shieling.close().await;
}

#[tokio::test]
async fn the_name_of_a_job_repeats_its_own_call_and_no_other() {
    let workspace = workspace();
    let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
    let shieling = Shieling::builder(Arc::new(Local::new(shell)), policy("deny"), workspace.root())
        .approval(Mode::OnAsk)
        .build()
        .expect("it serves no other policy");
    let call = |text: &str| {
        JobRequest::new(Command::new(text, workspace.root()).expect("a command"))
            .with_id("build".parse().expect("a name"))
    };
    let session = |name: &str| shieling.session(name.parse().expect("a name"));
    let first = session("main").run(call("echo built")).await;
    let again = session("main").run(call("echo built")).await;
    assert_eq!((first.stdout.as_str(), again.stdout.as_str()), ("built\n", "built\n"));
    for (text, other) in [
        ("rm keep", session("main").run(call("rm keep")).await),
        ("echo built", session("other").run(call("echo built")).await),
        ("echo built", shieling.run_job(call("echo built")).await),
    ] {
        assert_eq!((other.status, other.stdout.as_str()), (Status::Denied, ""), "{text}");
        let reason = &other.denial.expect("refused").reasons[0];
        assert!(reason.because.contains("it runs `echo built`"), "{reason:?}");
    }
    shieling.close().await;
}
