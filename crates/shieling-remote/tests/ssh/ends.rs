//! Ends that nobody ordered: of the agent program, of the client, of the connection. Each is told as `lost`, soon, and
//! nothing of the command stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shieling::outcome::Status;
use shieling_remote::agent::{Setup, Wanted};
use shieling_remote::{Remote, Timing};
use shieling_testkit::ssh::{Login, Server};
use shieling_testkit::{First, Marker};

use super::server::{is_there, over_ssh};
use crate::support::{command, facade, marked, nothing_left, soon};

/// The processes whose program is this file.
fn running(program: &Path) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").expect("it is mounted").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|number: &i32| std::fs::read_link(format!("/proc/{number}/exe")).is_ok_and(|link| link == program))
        .filter_map(Pid::from_raw)
        .collect()
}

/// The agent program as it was stored below this home.
fn agent(home: &Path) -> PathBuf {
    let mut stored = std::fs::read_dir(home.join(".cache/shieling")).expect("it was sent");
    stored.next().expect("it was sent").expect("ours").path()
}

/// Waits until nothing executes this program.
fn gone(program: &Path) {
    let until = Instant::now() + Duration::from_secs(5);
    while !running(program).is_empty() {
        assert!(Instant::now() < until, "it runs on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

async fn ends_with(kill: impl FnOnce(&Server, &Path)) {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let home = server.home(Login::User);
    // A client that tells its number.
    let client = server.at("client");
    let number = server.at("number");
    let text = format!("#!/bin/sh\necho $$ >{}\nexec ssh \"$@\"\n", number.display());
    std::fs::write(&client, text).expect("room");
    std::fs::set_permissions(&client, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    let setup = Setup {
        environment: Wanted::Local,
        ..Setup::default()
    };
    let ssh = over_ssh(&server, Login::User, setup, &[]).with_client(client);
    let remote = Remote::over(Arc::new(ssh), Timing::default())
        .await
        .expect("it is reached");
    let program = agent(&home);
    assert!(!running(&program).is_empty());
    let marker = Marker::new();
    let shieling = facade(remote, &home);
    let ready = home.join("ready");
    let text = "echo begun; (trap '' TERM HUP; setsid sleep 1000) & touch ready; sleep 1000";
    let (mut first, printed) = First::new();
    let asked = shieling.run(marked(command(text, &home), &marker), Some(&mut first));
    let killing = async {
        while !ready.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        printed.await.expect("it prints something");
        kill(&server, &program);
        Instant::now()
    };
    let (outcome, killed) = soon("an end", async { tokio::join!(asked, killing) }).await;
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (Status::Lost, "begun\n"),
        "{outcome:?}"
    );
    assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
    nothing_left(&marker);
    gone(&program);
    let next = soon("an answer", shieling.run(command("echo no", &home), None)).await;
    assert!(matches!(next.status, Status::Failed | Status::Lost), "{next:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_is_told_as_lost() {
    ends_with(|_, program| {
        for process in running(program) {
            let _ = kill_process(process, Signal::KILL);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_killed_is_told_as_lost() {
    ends_with(|server, _| {
        let number = std::fs::read_to_string(server.at("number")).expect("it told");
        let process = Pid::from_raw(number.trim().parse().expect("a number")).expect("a number");
        kill_process(process, Signal::KILL).expect("it runs");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_environment_that_is_dropped_or_closed_leaves_nothing_on_the_far_side() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let home = server.home(Login::User);
    for closes in [true, false] {
        let setup = Setup {
            environment: Wanted::Auto,
            workspace: Some(home.join("w")),
            ..Setup::default()
        };
        let _ = std::fs::create_dir(home.join("w"));
        Server::give(Login::User, &home.join("w"));
        let ssh = over_ssh(&server, Login::User, setup, &[]);
        let remote = Remote::over(Arc::new(ssh), Timing::default())
            .await
            .expect("it is reached");
        let program = agent(&home);
        let marker = Marker::new();
        let shieling = facade(remote, home.join("w"));
        let text = "setsid sleep 1000 & echo begun";
        let outcome = shieling
            .run(marked(command(text, &home.join("w")), &marker), None)
            .await;
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (Status::Exited, "begun\n"),
            "{outcome:?}"
        );
        if closes {
            soon("closing", shieling.environment().close()).await;
        }
        drop(shieling);
        nothing_left(&marker);
        gone(&program);
    }
}
