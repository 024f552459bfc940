//! Groups of this host's kernel, as root (or where they are delegated).

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use shieling_jail::plan::{Isolation, Limits};
use shieling_testkit::prerequisite;

use super::{kills, python};
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
    assert!(enforcement.urgent());
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
    enforcement.attach(process.number()).unwrap();
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
    enforcement.attach(process.number()).unwrap();
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
    enforcement.attach(process.number()).unwrap();
    process.go();
    let used: f64 = process.line().parse().unwrap();
    // A period more than its share, where the second begins and ends within one.
    assert!(used < 0.35, "{used} s of 1 s with a fifth of a processor");
    assert!(process.child.wait().unwrap().success());
    remove(enforcement);
}

#[test]
fn processes_that_are_forked_while_it_attaches_are_caught_too() {
    if !python() {
        return;
    }
    let limits = Limits {
        memory: Some(4 << 30),
        pids: Some(4000),
        ..Limits::default()
    };
    let Some(enforcement) = held(limits) else { return };
    assert!(!enforcement.urgent());
    // Daemons by a double fork, whose parents end at once, and so move to the subreaper.
    let mut process = Waiting::new(
        "import ctypes, threading\n\
         ctypes.CDLL(None).prctl(36, 1)\n\
         print('forking', flush=True)\n\
         def fork():\n\
         \x20   for _ in range(60):\n\
         \x20       child = os.fork()\n\
         \x20       if child == 0:\n\
         \x20           if os.fork() == 0: time.sleep(60)\n\
         \x20           os._exit(0)\n\
         \x20       time.sleep(0.0005)\n\
         threads = [threading.Thread(target=fork) for _ in range(3)]\n\
         for thread in threads: thread.start()\n\
         for thread in threads: thread.join()\n\
         print('forked', flush=True)\n\
         sys.stdin.readline()\n\
         for child in open('/proc/self/task/%d/children' % os.getpid()).read().split(): os.kill(int(child), 9)",
    );
    process.go();
    assert_eq!(process.line(), "forking");
    let forked = || {
        let children = fs::read_dir(format!("/proc/{}/task", process.number()))
            .unwrap()
            .flatten();
        let children = children.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
        children
            .map(|children| children.split_whitespace().count())
            .sum::<usize>()
    };
    while forked() < 10 {
        std::thread::yield_now();
    }
    let began = Instant::now();
    enforcement.attach(process.number()).unwrap();
    eprintln!("attached in {:?}", began.elapsed());
    assert_eq!(process.line(), "forked");
    // A second look, by the same way, at what is there now: every one of them is in the groups.
    let root = process.number();
    let counted = std::cell::Cell::new(0);
    crate::limits::attach::everyone(std::path::Path::new("/proc"), root, |member| {
        let own = fs::read_to_string(format!("/proc/{member}/cgroup")).unwrap_or_default();
        let alive = !fs::read(format!("/proc/{member}/cmdline"))
            .unwrap_or_default()
            .is_empty();
        if alive {
            for group in &enforcement.groups.made {
                let name = group.directory.file_name().unwrap().to_str().unwrap();
                assert!(own.contains(name), "{member} of {root} is outside of {name}:\n{own}");
            }
            counted.set(counted.get() + 1);
        }
        Ok(())
    })
    .unwrap();
    assert!(counted.get() > 180, "{} processes", counted.get());
    process.go();
    assert_eq!(process.child.wait().unwrap().signal(), None);
    remove(enforcement);
}

#[test]
fn what_a_keeper_that_died_left_behind_goes_with_the_next_sandbox() {
    let limits = Limits {
        pids: Some(20),
        ..Limits::default()
    };
    let Some(enforcement) = held(limits) else { return };
    let beside = |name: &str| enforcement.groups.made[0].directory.with_file_name(name);
    let mut gone = Command::new("/bin/true").spawn().unwrap();
    gone.wait().unwrap();
    let dead = beside(&format!("shieling-{}-left", gone.id()));
    let live = beside(&format!("shieling-{}-kept", std::process::id()));
    fs::create_dir(&dead).unwrap();
    fs::create_dir(&live).unwrap();
    remove(enforcement);
    let left = (dead.exists(), live.exists());
    fs::remove_dir(&live).unwrap();
    assert_eq!(left, (false, true), "the dead keeper's is gone, and ours is not");
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
    let refused = enforcement.attach(gone.id().cast_signed()).unwrap_err();
    assert_eq!(refused.errno, libc::ESRCH, "{refused:?}");
    remove(enforcement);
}
