//! Runs every case, twice where it can, and reports.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use shieling_testkit::prerequisite;

use super::{Beside, Case, Fail, Field, Tools};

/// Who is nobody else, for the second run. The name is seen in a mount namespace of our own only.
pub(crate) const USER: u32 = 47_110;
/// The option of the second run, with its directory.
const AGAIN: &str = "--as-this-user-in";

/// The option of a process that a case starts and kills, with a mark and a directory.
pub(crate) const HOST: &str = "--host-to-be-killed";
/// The option of the process that has a mount namespace of its own, with its directory.
const INSIDE: &str = "--with-mounts-of-its-own-in";
/// The option of a host that is to be killed, with its workspace and a text.
pub(crate) const HOLD: &str = "--hold";

/// The directory of a run in which its cases lay the places that they are done with.
const DONE: &str = "done";

/// How many cases run at once.
const AT_ONCE: usize = 4;

#[derive(Default)]
struct Count {
    cases: usize,
    attempts: usize,
    controls: usize,
    failed: usize,
    skipped: usize,
}

/// The program.
pub(crate) fn main(classes: &'static [(&'static str, &'static [Case])]) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut filters = Vec::new();
    let mut again = None;
    let mut inside = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            INSIDE => inside = arguments.next().map(PathBuf::from),
            AGAIN => again = arguments.next().map(PathBuf::from),
            HOST => return be_host(&arguments.collect::<Vec<_>>()),
            HOLD => {
                let (Some(work), Some(text)) = (arguments.next(), arguments.next()) else {
                    return ExitCode::FAILURE;
                };
                super::place::hold(work.into(), &text);
                return ExitCode::SUCCESS;
            }
            "--list" => {
                for (class, cases) in classes {
                    for case in *cases {
                        println!("{class}: {}: test", case.name);
                    }
                }
                return ExitCode::SUCCESS;
            }
            // What the usual harness takes and this one has no use for.
            option if option.starts_with('-') => {}
            _ => filters.push(argument),
        }
    }
    let ok = match (again, inside) {
        (Some(base), _) => told(&run(classes, &filters, &base)),
        (None, Some(base)) => both(classes, &filters, base),
        (None, None) => outside(classes, &filters),
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does what a case wants to be done by a process that it can kill.
fn be_host(arguments: &[String]) -> ExitCode {
    let [mark, base] = arguments else {
        return ExitCode::FAILURE;
    };
    let base = Path::new(base);
    let tools = Tools {
        directory: base.to_path_buf(),
    };
    let runtime = runtime();
    match crate::endings::be_host(&Field::new(base, &tools, &runtime), mark) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Makes the directory and removes it. Whatever is mounted in it is mounted by another process, in a
/// namespace that this one never enters: a removal must not go through a mount to what was lent.
fn outside(classes: &'static [(&'static str, &'static [Case])], filters: &[String]) -> bool {
    let directory = tempfile::Builder::new()
        .prefix("escape-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("cargo's directory for tests can be written to");
    let real = fs::canonicalize(directory.path()).expect("it is there");
    if !rustix::process::geteuid().is_root() {
        println!("not root: every case runs once, as this user");
        return told(&while_removing(&[&real], || run(classes, filters, &real)));
    }
    let inside = while_removing(&[&real.join("root"), &real.join("user")], || {
        Command::new("/proc/self/exe")
            .arg(INSIDE)
            .arg(&real)
            .args(filters)
            .status()
    });
    inside.is_ok_and(|status| status.success())
}

/// Removes what is done with of these runs while they go on. They make 40,000 files, and to remove all at the end can take
/// as long as half of the cases.
fn while_removing<T>(runs: &[&Path], body: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for done in runs.iter().flat_map(|run| fs::read_dir(run.join(DONE))) {
                    // What cannot be removed now goes at the end.
                    done.flatten().for_each(|place| drop(fs::remove_dir_all(place.path())));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        // A panic too ends the thread, which would be waited for.
        let result = catch_unwind(AssertUnwindSafe(body));
        over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn both(classes: &'static [(&'static str, &'static [Case])], filters: &[String], mut base: PathBuf) -> bool {
    let mode = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
    mode(&base);
    for name in ["root", "user"] {
        fs::create_dir(base.join(name)).expect("made");
    }
    chown(base.join("user"), Some(USER), Some(USER)).expect("root may");
    namespace();
    // A place that ordinary users can reach, whatever stands above cargo's directory.
    if Path::new("/srv").is_dir() {
        mount_bind(&base, "/srv").expect("bound");
        // What is mounted in it reaches the namespaces that the jail's zygote holds ready, as on most
        // hosts, and nothing else: it is a group of its own. Shared from the root on, each mount in
        // it would stand in cargo's directory too.
        mount_change("/srv", MountPropagationFlags::SHARED).expect("root may");
        base = "/srv".into();
    }
    known_user(&base);
    own_devices(&base);
    // By its descriptor: an ordinary user may not reach it by its path.
    let program = fs::File::open("/proc/self/exe").expect("it runs");
    rustix::io::fcntl_setfd(&program, rustix::io::FdFlags::empty()).expect("set");
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&program));
    // What failed is shown once both have ended: the end of a long log is what is kept and looked at.
    let failed = base.join("failed");
    let second = Command::new(path)
        .arg(AGAIN)
        .arg(base.join("user"))
        .args(filters)
        .uid(USER)
        .gid(USER)
        .current_dir(base.join("user"))
        .stderr(fs::File::create(&failed).expect("made"))
        .spawn();
    // Both at once: most cases wait for processes.
    let as_root = run(classes, filters, &base.join("root"));
    let as_user = second.is_ok_and(|mut process| process.wait().is_ok_and(|status| status.success()));
    eprint!("{}", fs::read_to_string(&failed).unwrap_or_default());
    told(&as_root) && as_user
}

/// Whether nothing failed; what did is shown.
fn told(failures: &[String]) -> bool {
    for failure in failures {
        eprintln!("{failure}");
    }
    failures.is_empty()
}

/// Mounts from here on are seen by this process and its children alone.
#[expect(unsafe_code, reason = "the call is unsafe for what shares its files with others")]
fn namespace() {
    // SAFETY: this process has one thread and shares neither files nor file system with another.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.expect("root may");
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).expect("root may");
}

/// Gives the second user a name, here alone.
fn known_user(base: &Path) {
    for (file, entry) in [
        (
            "/etc/passwd",
            format!("escape:x:{USER}:{USER}:escape:/nonexistent:/bin/bash\n"),
        ),
        ("/etc/group", format!("escape:x:{USER}:\n")),
    ] {
        let text = fs::read_to_string(file).unwrap_or_default() + &entry;
        let own = base.join(Path::new(file).file_name().expect("a name"));
        fs::write(&own, text).expect("written");
        mount_bind(&own, file).expect("bound");
    }
}

/// Puts devices of our own in the place of the machine's: what a sandbox shows of them is bound from
/// here, and an attempt on their mode or owner that succeeds shall not be one on the machine.
fn own_devices(base: &Path) {
    let directory = base.join("devices");
    fs::create_dir(&directory).expect("made");
    rustix::mount::mount("none", &directory, "tmpfs", rustix::mount::MountFlags::empty(), None).expect("root may");
    for (name, minor) in [("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9)] {
        let own = directory.join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let kind = rustix::fs::FileType::CharacterDevice;
        let made = rustix::fs::mknodat(rustix::fs::CWD, &own, kind, mode, rustix::fs::makedev(1, minor));
        if made.is_ok() {
            fs::set_permissions(&own, fs::Permissions::from_mode(0o666)).expect("set");
            mount_bind(&own, Path::new("/dev").join(name)).expect("bound");
        }
    }
}

/// Runs the cases once, and gives what failed.
fn run(classes: &'static [(&'static str, &'static [Case])], filters: &[String], base: &Path) -> Vec<String> {
    let began = Instant::now();
    let user = rustix::process::geteuid().as_raw();
    let tools = match Tools::build(&base.join("tools")) {
        Ok(tools) => tools,
        Err(why) => {
            let why = format!("the helper programs cannot be built: {why}");
            if prerequisite::is_ci() {
                return vec![why];
            }
            println!("{why}");
            return Vec::new();
        }
    };
    let done = base.join(DONE);
    fs::create_dir_all(&done).expect("the base can be written to");
    let runtime = runtime();
    let wanted = |class: &str, case: &Case| {
        let full = format!("{class}: {}", case.name);
        filters.is_empty() || filters.iter().any(|filter| full.contains(filter.as_str()))
    };
    let all = classes
        .iter()
        .flat_map(|(class, cases)| cases.iter().map(move |case| (*class, case)))
        .filter(|(class, case)| wanted(class, case));
    let (alone, others): (Vec<_>, Vec<_>) = all.partition(|(_, case)| case.beside == Beside::Nothing);
    let (heavy, beside): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, case)| case.beside == Beside::Light);
    let counts = Mutex::new(
        classes
            .iter()
            .map(|(class, _)| (*class, Count::default()))
            .collect::<Vec<_>>(),
    );
    let failures = Mutex::new(Vec::new());
    let one = |(class, case): (&'static str, &'static Case)| {
        let field = Field::new(base, &tools, &runtime);
        let began = Instant::now();
        let result = match judge(&field, case) {
            // A process may end between two looks at it from outside, which tells nothing. Nothing else is tried again.
            Err(Fail::Vanished(why)) => {
                println!("again  {class}: {}: {why}", case.name);
                judge(&field, case)
            }
            result => result,
        };
        for place in std::mem::take(&mut *field.made.lock().expect("only pushed to")) {
            // What is in use still goes at the end.
            let _ = fs::rename(&place, done.join(place.file_name().unwrap_or_default()));
        }
        let mut counts = counts.lock().expect("no panic here");
        let (_, count) = counts.iter_mut().find(|(name, _)| *name == class).expect("listed");
        count.cases += 1;
        count.attempts += field.attempts.load(Ordering::Relaxed);
        count.controls += field.controls.load(Ordering::Relaxed);
        let ms = began.elapsed().as_millis();
        match result {
            Ok(()) => println!("ok     {class}: {} ({ms} ms)", case.name),
            Err(Fail::Skip(why)) if !prerequisite::is_ci() => {
                count.skipped += 1;
                println!("skip   {class}: {}: {why}", case.name);
            }
            Err(Fail::Skip(why) | Fail::Wrong(why) | Fail::Vanished(why)) => {
                count.failed += 1;
                println!("FAILED {class}: {}: {why}", case.name);
                failures
                    .lock()
                    .expect("no panic here")
                    .push(format!("as uid {user}: FAILED {class}: {}: {why}", case.name));
            }
        }
    };
    // From the end: the longest cases stand there, and one that begins last would be waited for.
    let queue = Mutex::new(beside);
    let next = || queue.lock().expect("no panic here").pop();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            heavy.into_iter().for_each(one);
            std::iter::from_fn(next).for_each(one);
        });
        for _ in 1..AT_ONCE {
            scope.spawn(|| std::iter::from_fn(next).for_each(one));
        }
    });
    alone.into_iter().for_each(one);
    report(user, &counts.lock().expect("no panic"), began);
    failures.into_inner().expect("no panic")
}

/// Runs a case and looks at what must not have changed.
fn judge(field: &Field<'_>, case: &Case) -> Result<(), Fail> {
    let result = catch_unwind(AssertUnwindSafe(|| (case.body)(field)));
    let result = result.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Fail::Wrong(format!("panicked: {}", text.unwrap_or_default())))
    });
    let watched = std::mem::take(&mut *field.watched.lock().expect("only pushed to"));
    watched.iter().try_for_each(super::place::Watched::unchanged)?;
    result
}

fn report(user: u32, counts: &[(&'static str, Count)], began: Instant) {
    let mut whole = Count::default();
    println!("\nas uid {user}:");
    for (class, count) in counts {
        println!(
            "  {class:<12} {:>4} cases {:>5} attempts {:>4} controls {:>3} failed {:>3} skipped",
            count.cases, count.attempts, count.controls, count.failed, count.skipped
        );
        whole.cases += count.cases;
        whole.attempts += count.attempts;
        whole.controls += count.controls;
        whole.failed += count.failed;
        whole.skipped += count.skipped;
    }
    println!(
        "  {:<12} {:>4} cases {:>5} attempts {:>4} controls {:>3} failed {:>3} skipped, {:.1} s\n",
        "in all",
        whole.cases,
        whole.attempts,
        whole.controls,
        whole.failed,
        whole.skipped,
        began.elapsed().as_secs_f64()
    );
}
