//! What the processes of a sandbox have in memory, as its own `/proc` tells.
//!
//! Refuses to follow what a process has open to anything but memory: a file elsewhere may not answer.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Result;

/// How the link to a memory file begins, whatever its name.
const MEMORY_FILE: &str = "/memfd:";

/// The `/proc` of a sandbox.
#[derive(Debug)]
pub(super) struct Processes(OwnedFd);

/// One process.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) number: i32,
    pub(super) parent: i32,
    /// The name of its program, as the kernel keeps it.
    pub(super) name: [u8; 16],
    /// When it began, in the kernel's ticks: with its number, what it is and no other.
    pub(super) began: u64,
    /// Its directory in `/proc`; that of another thread if the first one has ended.
    place: String,
    /// Anonymous and swapped memory, shared pages in full.
    pub(super) own: u64,
    /// Shared memory that is mapped, of whatever kind.
    pub(super) shared: u64,
}

impl Processes {
    pub(super) fn open(proc: &Path) -> Result<Self> {
        Ok(Self(openat(
            CWD,
            proc,
            OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?))
    }

    /// All that have memory.
    pub(super) fn all(&self) -> Vec<Seen> {
        let numbers = self.names(".").into_iter().filter_map(|name| name.parse().ok());
        numbers.filter_map(|number| self.process(number)).collect()
    }

    fn process(&self, number: i32) -> Option<Seen> {
        let mut place = number.to_string();
        let mut status = self.read(&format!("{place}/status"))?;
        if kib(&status, "RssAnon:").is_none() && field(&status, "Threads:")? != "1" {
            // Its first thread has ended and others have not: they tell what it no longer can.
            let tasks = format!("{place}/task");
            (place, status) = self.names(&tasks).into_iter().find_map(|task| {
                let place = format!("{tasks}/{task}");
                let status = self.read(&format!("{place}/status"))?;
                kib(&status, "RssAnon:").is_some().then_some((place, status))
            })?;
        }
        Some(Seen {
            number,
            parent: field(&status, "PPid:")?.parse().ok()?,
            name: name_of(&status),
            began: self.began(number).unwrap_or(0),
            // Without memory it is dead.
            own: kib(&status, "RssAnon:")? + kib(&status, "VmSwap:").unwrap_or(0),
            shared: kib(&status, "RssShmem:").unwrap_or(0),
            place,
        })
    }

    /// When a process began.
    fn began(&self, number: i32) -> Option<u64> {
        let stat = self.read(&format!("{number}/stat"))?;
        // A name may hold anything, and is closed by the last parenthesis.
        stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
    }

    /// Whether a process is there that began then, and is not being killed.
    pub(super) fn lives(&self, number: i32, began: u64) -> bool {
        const KILLED: u64 = 1 << 8;
        let Some(status) = self.read(&format!("{number}/status")) else {
            return false;
        };
        let pending = |name| field(&status, name).and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let killed = ["SigPnd:", "ShdPnd:"]
            .into_iter()
            .filter_map(pending)
            .any(|mask| mask & KILLED != 0);
        let dead = matches!(field(&status, "State:"), Some("Z" | "X"));
        !killed && !dead && self.began(number) == Some(began)
    }

    /// The memory files that these have open: their size in memory, by their number.
    pub(super) fn memory_files(&self, seen: &[Seen]) -> BTreeMap<u64, u64> {
        let mut files = BTreeMap::new();
        for table in seen.iter().map(|process| format!("{}/fd", process.place)) {
            for link in self.names(&table).into_iter().map(|number| format!("{table}/{number}")) {
                let to = readlinkat(&self.0, &link, Vec::new()).unwrap_or_default();
                if to.as_bytes().starts_with(MEMORY_FILE.as_bytes())
                    && let Ok(file) = statat(&self.0, &link, AtFlags::empty())
                {
                    files.insert(file.st_ino, file.st_blocks.unsigned_abs() * 512);
                }
            }
        }
        files
    }

    /// The System V segments, mapped or not.
    pub(super) fn segments(&self) -> u64 {
        let text = self.read("sysvipc/shm").unwrap_or_default();
        // `key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap`
        let columns = text.lines().skip(1).flat_map(|line| line.split_whitespace().skip(14));
        columns.filter_map(|bytes| bytes.parse::<u64>().ok()).sum()
    }

    /// The proportional share of one process in what it maps, without what its file is counted for.
    pub(super) fn share(&self, process: &Seen, all: &[Seen], open: &BTreeMap<u64, u64>) -> u64 {
        // Between `vfork` and `exec` two processes have one memory, and each shows all of it.
        if all.iter().any(|one| one.number == process.parent) && same_memory(process.number, process.parent) {
            return 0;
        }
        // Unreadable if it keeps others from looking at it; then it counts in full.
        let rollup = self.read(&format!("{}/smaps_rollup", process.place));
        let own = rollup.and_then(|text| Some(kib(&text, "Pss_Anon:")? + kib(&text, "SwapPss:").unwrap_or(0)));
        let maps = || self.read(&format!("{}/smaps", process.place));
        let shared = (process.shared > 0).then(maps).flatten();
        own.unwrap_or(process.own) + shared.map_or(process.shared, |text| shared_without_file(&text, open))
    }

    /// What is in a directory; nothing if it is gone.
    fn names(&self, path: &str) -> Vec<String> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&self.0, path, flags, Mode::empty()).and_then(Dir::new);
        let entries = directory.into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    fn read(&self, path: &str) -> Option<String> {
        let file = openat(&self.0, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut bytes = Vec::with_capacity(4096);
        std::fs::File::from(file).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The name of a process, cut as the kernel cuts it.
fn name_of(status: &str) -> [u8; 16] {
    let name = status.lines().find_map(|line| line.strip_prefix("Name:")).unwrap_or("");
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(name.trim_start().bytes()) {
        *to = from;
    }
    bytes
}

/// The first word behind a name in one of the files of a process.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()
}

/// A number of KiB, in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    Some(field(text, name)?.parse::<u64>().ok()? * 1024)
}

/// The proportional share in memory that is shared and that no file which is open counts for.
fn shared_without_file(maps: &str, open: &BTreeMap<u64, u64>) -> u64 {
    let mut counts = false;
    let mut sum = 0;
    for line in maps.lines() {
        // `RANGE rw-s OFFSET DEVICE INODE PATH` begins a mapping; lines about it have a name and `:`.
        let mut words = line.split_whitespace();
        let head = words
            .nth(1)
            .is_some_and(|word| word.len() == 4 && word.ends_with(['s', 'p']));
        if head {
            let file = words.nth(2).and_then(|inode| inode.parse().ok()).unwrap_or(0);
            let path = words.next().unwrap_or("");
            counts = path == "/dev/zero" || path.starts_with(MEMORY_FILE) && !open.contains_key(&file);
        } else if counts && let Some(share) = kib(line, "Pss:") {
            sum += share;
        }
    }
    sum
}

/// Whether two processes have one memory; not, if the kernel does not tell.
#[allow(unsafe_code, reason = "kcmp has no safe signature elsewhere")]
fn same_memory(one: i32, other: i32) -> bool {
    const KCMP_VM: i32 = 1;
    // SAFETY: takes numbers only, and compares two things of the kernel's.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0 }
}
