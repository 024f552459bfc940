//! An ordinary user, who may make no group: each test starts this binary once more, as pid 1 of
//! namespaces of its own, and there the ignored test beside it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use shieling_jail::plan::{Isolation, Limits};
use shieling_testkit::prerequisite;

use super::{kills, python};
use crate::limits::watch::pause;
use crate::limits::{Eye, Journal, RESERVED, prepare};

const MIB: u64 = 1 << 20;
const NOBODY: &str = "65534";
/// A private `/tmp` in memory, then the binary, as pid 1, with no capability any more.
const INSIDE: &str = "mount -t tmpfs -o size=256m tmpfs /tmp && \
    exec setpriv --ambient-caps=-all --inh-caps=-all \"$0\" \"$@\"";

/// Runs an ignored test of this file as pid 1; nothing where there are no such namespaces.
fn as_pid_one(user: &str, test: &str) -> Option<Output> {
    let namespaces = [
        "--user",
        "--map-current-user",
        "--keep-caps",
        "--mount",
        "--mount-proc",
        "--ipc",
        "--pid",
        "--fork",
        "--kill-child",
    ];
    let enter = |program: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", user, "--regid", user, "--clear-groups", "unshare"]);
        command.args(namespaces).args(program).env("RUST_BACKTRACE", "0");
        command.output()
    };
    match enter(&["true"]) {
        Ok(output) if output.status.success() => {}
        other => {
            prerequisite::skip(format_args!("namespaces for user {user} from root: {other:?}"));
            return None;
        }
    }
    let copy = copied(test);
    let binary = copy.to_str().expect("it is plain text");
    let output = enter(&[
        "sh",
        "-c",
        INSIDE,
        binary,
        &inside(test),
        "--exact",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    fs::remove_file(&copy).unwrap();
    Some(output.unwrap())
}

/// This binary where any user can execute it: the build's directory may be private, or in `/tmp`.
fn copied(test: &str) -> PathBuf {
    let copy = PathBuf::from(format!("/var/tmp/shieling-limits-{}-{test}", std::process::id()));
    // By another process: a program cannot be executed while it is open for writing, and what other tests fork at that
    // moment would inherit the descriptor.
    let program = std::env::current_exe().unwrap();
    let copied = Command::new("cp").arg(program).arg(&copy).status().unwrap();
    assert!(copied.success(), "there is no room for a copy");
    copy
}

/// The whole name of a test of this file.
fn inside(test: &str) -> String {
    format!(
        "{}::{test}",
        module_path!().split_once("::").expect("it is in a crate").1
    )
}

/// Passes if the test inside did, which has to be there.
fn passes_inside(test: &str) {
    let Some(output) = as_pid_one(NOBODY, test) else { return };
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    eprintln!("{text}");
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Python two below pid 1, as a command is: its parent stands for the supervisor.
fn command(code: &str) -> Child {
    let code = format!("import os, sys, time, mmap\n{code}");
    Command::new("/usr/bin/python3")
        .args(["-S", "-c", "import subprocess, sys\nsys.exit(subprocess.run(['/usr/bin/python3', '-S', '-c', sys.argv[1]]).returncode & 255)", &code])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn in_a_user_namespace_exactly_so_many_tasks_can_be() {
    if !python() {
        return;
    }
    passes_inside("inside_tasks");
}

#[test]
#[ignore = "run by `in_a_user_namespace_exactly_so_many_tasks_can_be`, as pid 1"]
fn inside_tasks() {
    assert_eq!(std::process::id(), 1);
    let limits = Limits {
        pids: Some(20),
        open_files: Some(100),
        ..Limits::default()
    };
    let enforcement = prepare(&limits, Isolation::Full).unwrap();
    assert_eq!(
        enforcement.enforced(),
        ["rlimit.pids", "rlimit.open_files", "rlimit.core"]
    );
    let before = fs::read_dir("/proc/self/task").unwrap().count();
    enforcement.held().apply().unwrap();
    assert_eq!(enforcement.held().effective, limits);
    let mut child = command(
        "import resource\n\
         children = []\n\
         try:\n\
         \x20   while len(children) < 100:\n\
         \x20       child = os.fork()\n\
         \x20       if child == 0: time.sleep(60)\n\
         \x20       children.append(child)\n\
         except BlockingIOError: pass\n\
         limits = [resource.getrlimit(one) for one in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE)]\n\
         print(len(children) + 1, *limits, resource.getrlimit(resource.RLIMIT_CORE)[1] <= 1)\n\
         for child in children: os.kill(child, 9), os.waitpid(child, 0)",
    );
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(child.wait().unwrap().success());
    // Besides: `unshare`, which waits in the user namespace; the harness, for pid 1, with a thread more
    // than that has; Python's parent, for a supervisor.
    let most = 20 + RESERVED as usize - 1 - before - 1;
    assert_eq!(line.trim(), format!("{most} (23, 23) (100, 100) True"));
}

#[test]
fn for_root_without_a_group_the_tasks_are_refused_and_not_left_unlimited() {
    let Some(output) = as_pid_one("0", "inside_root") else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "run by `for_root_without_a_group_the_tasks_are_refused_and_not_left_unlimited`, as pid 1"]
fn inside_root() {
    assert_eq!(std::process::id(), 1);
    let refused = crate::limits::resources::limit_tasks(22).unwrap_err();
    assert!(refused.to_string().contains("does not bind"), "{refused}");
    assert!(crate::limits::resources::may_be_root(Path::new("/")));
}

/// A group of v1 for each of these, in which the user may make others.
struct Delegated(Vec<PathBuf>);

impl Delegated {
    fn new(user: u32) -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut made = Self(Vec::new());
        for controller in ["memory", "pids"] {
            let path = own
                .lines()
                .find_map(|line| line.split_once(&format!(":{controller}:/")));
            let (_, path) = path.ok_or_else(|| format!("no {controller} in control groups of v1"))?;
            let name = format!("delegated-{}", std::process::id());
            let group = Path::new("/sys/fs/cgroup").join(controller).join(path).join(name);
            fs::create_dir(&group).map_err(|error| format!("{}: {error}", group.display()))?;
            made.0.push(group.clone());
            let files = ["", "cgroup.procs"].map(|file| group.join(file));
            for file in files {
                std::os::unix::fs::chown(&file, Some(user), Some(user)).map_err(|error| error.to_string())?;
            }
        }
        Ok(made)
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        for group in &self.0 {
            let _ = fs::remove_dir(group);
        }
    }
}

#[test]
fn an_ordinary_user_uses_groups_of_v1_that_are_delegated() {
    if !python() {
        return;
    }
    let delegated = match Delegated::new(65534) {
        Ok(delegated) => delegated,
        Err(why) => return prerequisite::skip(&why),
    };
    let copy = copied("delegated");
    let enter: String = delegated
        .0
        .iter()
        .map(|group| format!("echo $$ > {}/cgroup.procs && ", group.display()))
        .collect();
    let output = Command::new("sh")
        .args([
            "-c",
            &format!("{enter}exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups \"$0\" \"$@\""),
        ])
        .arg(&copy)
        .args([&inside("inside_delegated"), "--exact", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    fs::remove_file(&copy).unwrap();
    let text = format!("{output:?}");
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    let left = delegated.0.iter().map(|group| {
        fs::read_dir(group)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().path().is_dir())
            .count()
    });
    assert_eq!(left.sum::<usize>(), 0, "its own groups are gone");
}

#[test]
#[ignore = "run by `an_ordinary_user_uses_groups_of_v1_that_are_delegated`, as that user in these groups"]
fn inside_delegated() {
    assert_eq!(rustix::process::geteuid().as_raw(), 65534);
    let limits = Limits {
        memory: Some(64 * MIB),
        pids: Some(20),
        ..Limits::default()
    };
    // Without namespaces there is nothing to fall back on.
    let enforcement = prepare(&limits, Isolation::Landlock).unwrap();
    assert_eq!(enforcement.held().effective, limits);
    let mut child = Command::new("/usr/bin/python3")
        .args(["-S", "-c", "import sys\nsys.stdin.read()\nroom = b'x' * (200 << 20)"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    super::group::attach(&enforcement, child.id().cast_signed()).unwrap();
    drop(child.stdin.take());
    let status = child.wait().unwrap();
    assert_eq!(
        (
            std::os::unix::process::ExitStatusExt::signal(&status),
            kills(&enforcement).count()
        ),
        (Some(9), 1)
    );
    enforcement.remove();
}

#[test]
fn memory_is_watched_where_there_is_no_group() {
    if !python() {
        return;
    }
    passes_inside("inside_memory");
}

#[test]
#[ignore = "run by `memory_is_watched_where_there_is_no_group`, as pid 1"]
fn inside_memory() {
    assert_eq!(std::process::id(), 1);
    let limits = Limits {
        memory: Some(64 * MIB),
        ..Limits::default()
    };
    let enforcement = prepare(&limits, Isolation::Full).unwrap();
    assert_eq!(enforcement.enforced(), ["watch.memory", "rlimit.core"]);
    let held = enforcement.held();
    let kills = held.kills(&[]).unwrap();
    let watch = || {
        let journal = Journal::new().unwrap();
        held.eye(
            Some(Path::new("/proc")),
            &[PathBuf::from("/tmp")],
            &kills,
            &[],
            &journal,
        )
        .unwrap()
        .unwrap()
    };
    assert_eq!(watch().tick(), Duration::MAX, "nobody is there");

    // A child of pid 1 is a supervisor.
    let mut supervisor = Command::new("/usr/bin/python3")
        .args([
            "-S",
            "-c",
            "import sys\nroom = b'x' * (100 << 20)\nprint(flush=True)\nsys.stdin.read()",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(supervisor.stdout.take().unwrap())
        .read_line(&mut String::new())
        .unwrap();
    let mut spares = watch();
    assert_eq!(
        spares.tick(),
        Duration::from_millis(250),
        "too much, and nobody to kill"
    );
    spares.tick();
    drop(supervisor.stdin.take());
    assert!(supervisor.wait().unwrap().success(), "and yet it lives");
    assert_eq!(kills.count(), 0);

    for (what, code, killed) in CASES {
        // How far a process comes depends on what else this machine does: the best of a few.
        let mut least = u64::MAX;
        for _ in 0..4 {
            let before = kills.count();
            let (status, most) = run(watch(), code);
            let killed_now = kills.count() - before;
            eprintln!("{what}: killed {killed_now}, reached {} MiB", most / MIB);
            assert_eq!(killed_now, u64::from(*killed), "{what}");
            assert_eq!(status, if *killed { Some(247) } else { Some(0) }, "{what}: 247 is -9");
            least = least.min(most);
            if least < 80 * MIB {
                break;
            }
        }
        assert!(least < 80 * MIB, "{what}: 25 % more than allowed at most, not {least}");
    }
}

#[test]
fn the_less_room_is_left_the_sooner_it_looks_again() {
    let ms = Duration::from_millis;
    let cases = [
        (4 << 30, ms(0), ms(250)),
        (400_000_000, ms(1), ms(100)),
        (400_000_000, ms(40), ms(120)),
        (0, ms(0), ms(2)),
        (0, ms(5), ms(15)),
    ];
    for (room, looking, expected) in cases {
        assert_eq!(pause(room, looking), expected, "{room} bytes, {looking:?}");
    }
}

/// What is run, what it does, and whether it is too much. Each writes how far it came to `/tmp/reached`.
const CASES: &[(&str, &str, bool)] = &[
    (
        "20 MiB of its own",
        "room = mmap.mmap(-1, 20 << 20, flags=mmap.MAP_PRIVATE)\nfill(room, 20)",
        false,
    ),
    (
        "400 MiB of its own",
        "room = mmap.mmap(-1, 400 << 20, flags=mmap.MAP_PRIVATE)\nfill(room, 400)",
        true,
    ),
    (
        "400 MiB shared without a file",
        "room = mmap.mmap(-1, 400 << 20)\nfill(room, 400)",
        true,
    ),
    (
        "400 MiB in a memory file that nobody maps",
        "room = open(os.memfd_create('x'), 'wb', buffering=0)\nfill(room, 400)",
        true,
    ),
    (
        "400 MiB in a memory file that is mapped and closed",
        "file = os.memfd_create('x')\n\
         os.ftruncate(file, 400 << 20)\n\
         import ctypes\n\
         libc = ctypes.CDLL(None, use_errno=True)\n\
         libc.mmap.restype = ctypes.c_void_p\n\
         libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n\
         at = libc.mmap(None, 400 << 20, 3, 1, file, 0)\n\
         os.close(file)\n\
         class Room:\n\
         \x20   done = 0\n\
         \x20   def write(self, block): ctypes.memmove(at + self.done, block, len(block)); self.done += len(block)\n\
         fill(Room(), 400)",
        true,
    ),
    (
        "200 MiB in a private directory in memory",
        "room = open('/tmp/room', 'wb', buffering=0)\nos.unlink('/tmp/room')\nfill(room, 200)",
        true,
    ),
    (
        "25 MiB that five processes share",
        "room = bytearray(b'x') * (25 << 20)\n\
         for _ in range(4):\n\
         \x20   if os.fork() == 0: time.sleep(0.5), os._exit(0)\n\
         for _ in range(4): os.wait()",
        false,
    ),
    (
        "35 MiB of a process that stands between vfork and exec",
        "os.mkfifo('/tmp/fifo')\n\
         if os.fork() == 0: time.sleep(0.5), open('/tmp/fifo', 'w').close(), os._exit(0)\n\
         room = bytearray(b'x') * (35 << 20)\n\
         wait = (os.POSIX_SPAWN_OPEN, 0, '/tmp/fifo', os.O_RDONLY, 0)\n\
         os.posix_spawn('/bin/true', ['true'], {}, file_actions=[wait])\n\
         os.wait(), os.wait()",
        false,
    ),
    (
        "a memory file that is mapped counts once",
        "file = os.memfd_create('x')\n\
         os.ftruncate(file, 40 << 20)\n\
         room = mmap.mmap(file, 40 << 20)\n\
         fill(room, 40)\n\
         time.sleep(0.3)",
        false,
    ),
    (
        "400 MiB of a thread whose process's first thread has ended",
        "import ctypes, threading\n\
         room = mmap.mmap(-1, 400 << 20, flags=mmap.MAP_PRIVATE)\n\
         def late():\n\
         \x20   time.sleep(0.1)\n\
         \x20   fill(room, 400)\n\
         \x20   os._exit(0)\n\
         threading.Thread(target=late).start()\n\
         ctypes.CDLL(None).syscall(60, 0)",
        true,
    ),
];

/// Fills by the MiB and writes down how many, in memory that outlives it.
const FILL: &str = "with open('/tmp/reached', 'r+b') as file: reached = mmap.mmap(file.fileno(), 8)\n\
    block = b'x' * (1 << 20)\n\
    def fill(room, mib):\n\
    \x20   for done in range(mib):\n\
    \x20       room.write(block)\n\
    \x20       reached[:] = (done + 1).to_bytes(8, 'little')\n";

/// Watches until the command has ended: its status, and how many bytes it had filled.
fn run(mut watch: Eye, code: &str) -> (Option<i32>, u64) {
    fs::write("/tmp/reached", [0; 8]).unwrap();
    let mut child = command(&format!("{FILL}{code}"));
    let (mut looks, mut looking) = (0_u32, Duration::ZERO);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let began = Instant::now();
        let pause = watch.tick();
        looking += began.elapsed();
        looks += 1;
        std::thread::sleep(pause.min(Duration::from_secs(1)));
    };
    eprintln!("{looks} looks of {:?}", looking / looks);
    let reached = fs::read("/tmp/reached").unwrap().try_into().unwrap();
    (status.code(), u64::from_le_bytes(reached) * MIB)
}
