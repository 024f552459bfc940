//! Whatever a command leaves in a workspace, in any mode, nothing of it runs in the hands of the user once its outcome was
//! given, and ordinary work reaches the workspace without an option.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::json;
use shieling_testkit::{extent, prerequisite};

use crate::attacks::{Attack, CONTROLS, Place, Shown, attacks, each, share, tell_missing_tools};
use crate::mcp::Server;
use crate::support::Shieling;

/// Runs a script of an agent's in the workspace of a place.
fn agent(place: &Place, mode: &str, script: &str) -> Output {
    let mut command = shieling(place, "exec", mode);
    command
        .args(["--", script])
        .output()
        .expect("the binary was built by cargo")
}

/// A command of Shieling's for the workspace of a place.
pub(crate) fn shieling(place: &Place, what: &str, mode: &str) -> Command {
    let path = place.path();
    let variable = |name: &str, value: &str| format!("{name}={value}");
    // By its descriptor: an ordinary user may not reach it by its path.
    let mut command = place.command(program());
    command
        .args([what, "--changes", mode, "--workspace"])
        .arg(path.join("work"));
    for seen in ["payload", "origin.git", "of-lib"] {
        command.arg("--read").arg(path.join(seen));
    }
    for (name, value) in [
        ("T", path.clone()),
        ("W", path.join("work")),
        ("P", path.join("payload")),
    ] {
        command.arg("--set-env").arg(variable(name, &value.to_string_lossy()));
    }
    command
        .arg("--set-env")
        .arg(variable("C", crate::attacks::CRATE))
        .args(["--set-env", "EDITOR=true"])
        .current_dir(path.join("work"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", path.join("home"))
        .env("XDG_STATE_HOME", path.join("state"));
    command
}

/// The program, by a descriptor that all processes of this one have.
pub(crate) fn program() -> &'static str {
    static PROGRAM: OnceLock<(File, String)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let program = File::open(env!("CARGO_BIN_EXE_shieling")).expect("the binary was built by cargo");
        rustix::io::fcntl_setfd(&program, rustix::io::FdFlags::empty()).expect("set");
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());
        (program, path)
    });
    path
}

fn said(output: &Output) -> String {
    format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))
}

/// All modes, or the one that `SHIELING_CHANGES` names.
fn modes() -> Vec<String> {
    match std::env::var("SHIELING_CHANGES") {
        Ok(mode) => vec![mode],
        Err(_) => ["direct", "commit", "review", "discard"].map(str::to_owned).to_vec(),
    }
}

/// The modes in which attacks are tried beside a job, or by one.
fn beside_a_job() -> Vec<String> {
    let modes = modes();
    modes.into_iter().filter(|mode| mode != "discard").collect()
}

/// What an ordinary user can do, too, who has no toolchain of Rust's: it is in a home.
fn attacks_for_all() -> Vec<Attack> {
    let is_for_all = |attack: &Attack| !is_of_a_home(attack) && !attack.script.starts_with("$C");
    attacks().into_iter().filter(is_for_all).collect()
}

fn is_of_a_home(attack: &Attack) -> bool {
    // A home as workspace is refused without an option of its own.
    matches!(attack.shown, Shown::By(command) if command.starts_with("HOME=$W"))
}

#[test]
fn nothing_that_a_command_leaves_runs_in_the_hands_of_the_user() {
    tell_missing_tools();
    let attacks: Vec<Attack> = attacks().into_iter().filter(|attack| !is_of_a_home(attack)).collect();
    none_runs(&share(attacks, 29), &modes(), Place::new);
}

#[test]
fn nothing_that_a_command_of_an_ordinary_user_leaves_runs_in_their_hands() {
    // Without root, the tests above are theirs.
    if !rustix::process::geteuid().is_root() || !prerequisite::has(&["setpriv"]) {
        return;
    }
    let modes: Vec<String> = modes().into_iter().take(extent::rounds(2, 4)).collect();
    none_runs(&share(attacks_for_all(), 97), &modes, Place::of_user);
}

fn none_runs(attacks: &[Attack], modes: &[String], make: impl Fn() -> Place + Sync) {
    for mode in modes {
        let wrong = each(attacks, |attack| {
            let place = make();
            let output = agent(&place, mode, &attack.script);
            place.forget();
            if place.use_all_tools(attack) {
                return Some(format!("it ran ({})", said(&output)));
            }
            // The bits are refused to the command itself.
            let is_refused = attack.name.starts_with("set-");
            let is_told = said(&output).contains("held     ") || mode == "discard" || is_refused;
            (!is_told).then(|| format!("nothing was held back ({})", said(&output)))
        });
        none_wrong(mode, &wrong, attacks.len());
    }
}

#[test]
fn nothing_that_a_command_leaves_beside_a_job_runs_in_the_hands_of_the_user() {
    let attacks: Vec<Attack> = attacks().into_iter().filter(|attack| !is_of_a_home(attack)).collect();
    let third: Vec<Attack> = attacks.into_iter().skip(1).step_by(3).collect();
    for mode in beside_a_job() {
        let third = share(third.clone(), if mode == "direct" { 11 } else { 31 });
        none_runs_beside_a_job(&third, &mode, Place::new);
    }
}

#[test]
fn nothing_that_a_command_of_an_ordinary_user_leaves_beside_a_job_runs_in_their_hands() {
    if !rustix::process::geteuid().is_root() || !prerequisite::has(&["setpriv"]) {
        return;
    }
    let third: Vec<Attack> = attacks_for_all().into_iter().skip(2).step_by(3).collect();
    for mode in beside_a_job() {
        none_runs_beside_a_job(&share(third.clone(), 47), &mode, Place::of_user);
    }
}

fn none_runs_beside_a_job(attacks: &[Attack], mode: &str, make: impl Fn() -> Place + Sync) {
    let wrong = each(attacks, |attack| {
        let place = make();
        let mut server = Server::start_by(Shieling::in_workspace(), shieling(&place, "mcp", mode), json!({}));
        let text = "while :; do date >served; sleep 0.02; done";
        let (_, job) = server.shell(json!({"command": text, "background": true}));
        let (said, outcome) = server.shell(json!({"command": attack.script}));
        place.forget();
        let has_run = place.use_all_tools(attack);
        let held = outcome["changes"]["held_back"].as_array().map_or(0, Vec::len);
        server.tool("shell_kill", json!({"job": job["job"]}));
        server.end();
        if has_run {
            return Some(format!("it ran ({said})"));
        }
        let is_refused = attack.name.starts_with("set-");
        let is_later = is_refused || mode == "direct" && attack.name.starts_with("named pipe");
        (held == 0 && !is_later).then(|| format!("nothing was held back ({said})"))
    });
    none_wrong(mode, &wrong, attacks.len());
}

/// What SECURITY.md says can fire while a job runs in `direct`.
fn listed() -> BTreeSet<&'static str> {
    let text = include_str!("../../../../SECURITY.md");
    let (_, rest) = text.split_once(LISTED).expect("there is a list");
    let list = rest.split("\n\n").nth(1).expect("after its heading");
    let names = list.lines().filter_map(|line| line.strip_prefix("- `"));
    names.filter_map(|line| line.split('`').next()).collect()
}

/// What stands before that list.
const LISTED: &str = "can fire while the job runs";

/// The last thing that a job makes: it is taken back in `direct`, and what was made before it is judged by then. Of what is judged
/// in one look, the first in order is taken back last.
const LAST: &str = "!/.vscode/tasks.json";

/// Has a job attack, and then run on. Says whether something ran in the hands of the user while it did, and fails if
/// something did later.
fn attack_by_a_job(place: &Place, mode: &str, attack: &Attack) -> Result<bool, String> {
    let mut server = Server::start_by(Shieling::in_workspace(), shieling(place, "mcp", mode), json!({}));
    let text = format!(
        "({}\n)\nmkdir -p $W/!/.vscode; printf '{{' >$W/{LAST}; echo attacked; sleep 1000",
        attack.script
    );
    let (_, job) = server.shell(json!({"command": text, "background": true}));
    let (said, _) = server.tool(
        "shell_wait",
        json!({"job": job["job"], "pattern": "attacked", "timeout_ms": 60_000}),
    );
    // The word itself may have come with the answer to the first call.
    if !said.contains("the pattern came") {
        return Err(format!("the job did not come so far: {said}"));
    }
    let began = Instant::now();
    while place.path().join("work").join(LAST).exists() {
        if began.elapsed() > Duration::from_secs(60) {
            return Err("nothing is taken back".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    place.forget();
    let has_run = place.use_all_tools(attack);
    server.tool("shell_kill", json!({"job": job["job"]}));
    place.forget();
    let later = place.use_all_tools(attack);
    server.end();
    match later {
        true => Err("it ran after the end of the job was told".to_owned()),
        false => Ok(has_run),
    }
}

fn attacks_of_jobs(attacks: &[Attack], mode: &str, listed: &BTreeSet<&str>, make: impl Fn() -> Place + Sync) {
    let wrong = each(attacks, |attack| {
        let is_listed = mode == "direct" && listed.contains(&*attack.name);
        match attack_by_a_job(&make(), mode, attack) {
            Ok(has_run) if has_run == is_listed => None,
            Ok(true) => Some("it ran while the job did, which SECURITY.md does not list".to_owned()),
            Ok(false) => Some("it did not run, and SECURITY.md lists it".to_owned()),
            Err(why) => Some(why),
        }
    });
    none_wrong(mode, &wrong, attacks.len());
}

/// Fails with what is wrong in this mode, of so many.
fn none_wrong(mode: &str, wrong: &[String], of: usize) {
    assert!(
        wrong.is_empty(),
        "{mode}: {} of {of}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A share of these, and all that are listed.
fn share_and_listed(attacks: Vec<Attack>, listed: &BTreeSet<&str>, of: usize) -> Vec<Attack> {
    let (known, others): (Vec<Attack>, Vec<Attack>) =
        attacks.into_iter().partition(|attack| listed.contains(&*attack.name));
    known.into_iter().chain(share(others, of)).collect()
}

#[test]
fn what_fires_while_a_job_runs_is_listed_one_by_one_and_nothing_fires_later() {
    let listed = listed();
    let all = attacks();
    let is_unknown = |name: &&&str| all.iter().all(|attack| attack.name != **name);
    let unknown = listed.iter().find(is_unknown);
    assert!(
        unknown.is_none() || std::env::var_os("SHIELING_ATTACKS").is_some(),
        "SECURITY.md lists `{unknown:?}`, which is no attack of this suite"
    );
    let all: Vec<Attack> = all.into_iter().filter(|attack| !is_of_a_home(attack)).collect();
    for mode in beside_a_job() {
        let some = match &*mode {
            "direct" => share_and_listed(all.clone(), &listed, 37),
            _ => share(all.clone(), 67),
        };
        attacks_of_jobs(&some, &mode, &listed, Place::new);
    }
}

#[test]
fn what_fires_while_a_job_of_an_ordinary_user_runs_is_listed_as_well() {
    if !rustix::process::geteuid().is_root() || !prerequisite::has(&["setpriv"]) {
        return;
    }
    let listed = listed();
    for mode in beside_a_job() {
        let some = match &*mode {
            "direct" => share_and_listed(attacks_for_all(), &listed, 101),
            _ => share(attacks_for_all(), 151),
        };
        attacks_of_jobs(&some, &mode, &listed, Place::of_user);
    }
}

#[test]
fn ordinary_work_needs_no_option() {
    let controls = share(CONTROLS.to_vec(), 7);
    let modes = ["direct", "commit"];
    let wrong: Vec<String> = controls
        .iter()
        .flat_map(|control| modes.iter().filter_map(|mode| wrong_of(mode, control)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        controls.len(),
        wrong.join("\n")
    );
}

/// What an overlay cannot do without privileges, and what git says of it: a directory of the workspace is not renamed in
/// one step (`mv` copies it), and a hard link to a file of the workspace has a number of its own.
const UNABLE: &[(&str, &str)] = &[
    ("git clone -q nested copy", "hardlink different from source"),
    ("submodule --quiet add", "hardlink different from source"),
    ("git mv src source", "Invalid cross-device link"),
];

fn wrong_of(mode: &str, control: &str) -> Option<String> {
    let place = Place::new();
    let output = agent(&place, mode, &format!("set -e; {control}"));
    let mut unable = UNABLE.iter().filter(|_| mode == "commit");
    if let Some((_, why)) = unable.find(|(part, _)| control.contains(part)) {
        let is_known = !output.status.success() && said(&output).contains(why);
        return (!is_known).then(|| format!("{control}: it is listed as what fails with `{why}`: {}", said(&output)));
    }
    if !output.status.success() || said(&output).contains("held     ") {
        return Some(format!("{mode}: {control}: {}", said(&output)));
    }
    let look = "test ! -e .git || git fsck --no-progress; test ! -e .git || git status";
    let (is_fine, why) = place.run("work", "", look);
    (!is_fine).then(|| format!("{mode}: {control}: afterwards {why}"))
}
