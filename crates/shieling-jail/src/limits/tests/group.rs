//! Groups of this host's kernel, as root (or where they are delegated).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use shieling_jail::plan::{Isolation, Limits};
use shieling_testkit::prerequisite;

use super::{kills, python};
use crate::limits::group::{Version, Why};
use crate::limits::groups;
use crate::limits::{Enforcement, RESERVED, prepare};

const MIB: u64 = 1 << 20;

/// The limits, held by groups; nothing where this host has none for us.
fn held(limits: Limits) -> Option<Enforcement> {
    match prepare(&limits, Isolation::Landlock) {
        Ok(enforcement) => Some(enforcement),
        Err(refusal) => {
            prerequisite::skip(&refusal.doing);
            None
        }
    }
}

/// A process that runs its Python once it is told to go.
struct Waiting {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Waiting {
    fn new(code: &str) -> Self {
        let mut child = Command::new("/usr/bin/python3")
            .args([
                "-S",
                "-c",
                &format!("import os, signal, sys, time\nprint('here', flush=True)\nsys.stdin.readline()\n{code}"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("each test has looked for it");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut waiting = Self { child, output };
        assert_eq!(waiting.line(), "here");
        waiting
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn number(&self) -> i32 {
        self.child.id().cast_signed()
    }

    fn go(&mut self) {
        self.child
            .stdin
            .as_mut()
            .expect("it is piped")
            .write_all(b"go\n")
            .unwrap();
    }
}

/// Moves another process in, on either version.
pub(super) fn attach(enforcement: &Enforcement, process: i32) -> Result<(), Why> {
    enforcement
        .groups
        .made
        .iter()
        .try_for_each(|group| group.attach(process))
}

/// Removes the groups, and sees that they are gone.
fn remove(enforcement: Enforcement) {
    let directories: Vec<_> = enforcement
        .groups
        .made
        .iter()
        .map(|group| group.directory.clone())
        .collect();
    assert!(!directories.is_empty() && directories.iter().all(|directory| directory.is_dir()));
    enforcement.remove();
    for directory in directories {
        assert!(!directory.exists(), "{} is left", directory.display());
    }
}

#[test]
fn a_process_beyond_the_memory_is_killed_and_counted_and_its_neighbour_lives() {
    if !python() {
        return;
    }
    let limits = Limits {
        memory: Some(64 * MIB),
        ..Limits::default()
    };
    let Some(enforcement) = held(limits) else { return };
    assert_eq!(enforcement.held().effective, limits);
    let kills = kills(&enforcement);
    let mut process = Waiting::new(
        "for mib in (30, 200):\n\
         \x20   child = os.fork()\n\
         \x20   if child == 0:\n\
         \x20       room = b'x' * (mib << 20)\n\
         \x20       os._exit(0)\n\
         \x20   print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)",
    );
    attach(&enforcement, process.number()).unwrap();
    process.go();
    assert_eq!((process.line(), kills.count()), ("0".to_owned(), 0), "30 MiB fit");
    assert_eq!((process.line(), kills.count()), ("-9".to_owned(), 1), "200 MiB do not");
    assert!(process.child.wait().unwrap().success());
    remove(enforcement);
}

#[test]
fn tasks_beyond_the_limit_are_not_started() {
    if !python() {
        return;
    }
    let limits = Limits {
        pids: Some(20),
        ..Limits::default()
    };
    let Some(enforcement) = held(limits) else { return };
    let mut process = Waiting::new(
        "children = []\n\
         try:\n\
         \x20   while len(children) < 100:\n\
         \x20       child = os.fork()\n\
         \x20       if child == 0: time.sleep(60)\n\
         \x20       children.append(child)\n\
         except BlockingIOError: pass\n\
         print(len(children), flush=True)\n\
         for child in children: os.kill(child, 9), os.waitpid(child, 0)",
    );
    attach(&enforcement, process.number()).unwrap();
    process.go();
    // Itself and these: 20, and as many as pid 1 and a supervisor would be.
    assert_eq!(process.line(), (20 + RESERVED - 1).to_string());
    assert!(process.child.wait().unwrap().success());
    remove(enforcement);
}

#[test]
fn processor_time_is_shared_out() {
    if !python() {
        return;
    }
    let limits = Limits {
        cpu_thousandths: Some(200),
        ..Limits::default()
    };
    let Some(enforcement) = held(limits) else { return };
    let mut process = Waiting::new(
        "end = time.monotonic() + 1\n\
         before = time.process_time()\n\
         while time.monotonic() < end: pass\n\
         print(time.process_time() - before, flush=True)",
    );
    attach(&enforcement, process.number()).unwrap();
    process.go();
    let used: f64 = process.line().parse().unwrap();
    // A period more than its share, where the second begins and ends within one.
    assert!(used < 0.35, "{used} s of 1 s with a fifth of a processor");
    assert!(process.child.wait().unwrap().success());
    remove(enforcement);
}

#[test]
fn a_process_moves_itself_in_and_its_children_are_born_there() {
    if !python() {
        return;
    }
    let limits = Limits {
        memory: Some(4 << 30),
        pids: Some(4000),
        ..Limits::default()
    };
    let Some(enforcement) = held(limits) else { return };
    let v1 = enforcement
        .groups
        .made
        .iter()
        .filter(|group| group.version == Version::One);
    if v1.count() < enforcement.groups.made.len() {
        return prerequisite::skip("the controllers are in v2 here");
    }
    let paths: Vec<_> = enforcement
        .groups
        .made
        .iter()
        .map(|group| group.directory.join("tasks"))
        .collect();
    let mut process = Waiting::new(&format!(
        "for path in {paths:?}:\n\
         \x20   with open(path, 'wb', buffering=0) as entrance: entrance.write(b'0')\n\
         if os.fork() == 0:\n\
         \x20   print(open('/proc/self/cgroup').read().replace('\\n', ' '), flush=True)\n\
         \x20   os._exit(0)\n\
         os.wait()"
    ));
    process.go();
    let own = process.line();
    for group in &enforcement.groups.made {
        let name = group.directory.file_name().unwrap().to_str().unwrap();
        assert_eq!(own.matches(name).count(), enforcement.groups.made.len(), "{own}");
    }
    assert!(process.child.wait().unwrap().success());
    assert_eq!(enforcement.entrances().count(), paths.len());
    remove(enforcement);
}

#[test]
fn what_a_monitor_that_died_left_behind_goes_with_the_next_sandbox() {
    let limits = Limits {
        pids: Some(20),
        ..Limits::default()
    };
    let Some(enforcement) = held(limits) else { return };
    let beside = |name: &str| enforcement.groups.made[0].directory.with_file_name(name);
    let mut gone = Command::new("/bin/true").spawn().unwrap();
    gone.wait().unwrap();
    let own = groups::namespace().unwrap();
    let dead = beside(&format!("shieling-{}-{own}-left", gone.id()));
    let live = beside(&format!("shieling-{}-{own}-kept", std::process::id()));
    // Of a container with the same tree of groups, where the number may belong to a process that lives.
    let elsewhere = beside(&format!("shieling-{}-1{own}-kept", gone.id()));
    for group in [&dead, &live, &elsewhere] {
        fs::create_dir(group).unwrap();
    }
    remove(enforcement);
    let left = (dead.exists(), live.exists(), elsewhere.exists());
    fs::remove_dir(&live).unwrap();
    fs::remove_dir(&elsewhere).unwrap();
    assert_eq!(
        left,
        (false, true, true),
        "the dead monitor's is gone; ours and the other namespace's are not"
    );
}

#[test]
fn a_process_that_is_gone_cannot_be_attached() {
    let limits = Limits {
        pids: Some(20),
        ..Limits::default()
    };
    let Some(enforcement) = held(limits) else { return };
    let mut gone = Command::new("/bin/true").spawn().unwrap();
    gone.wait().unwrap();
    let refused = attach(&enforcement, gone.id().cast_signed()).unwrap_err();
    assert_eq!(refused.errno, libc::ESRCH, "{refused:?}");
    remove(enforcement);
}
