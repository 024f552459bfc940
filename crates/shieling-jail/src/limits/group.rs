//! One control group: its limits, written and read back; what is in it; its end.
//!
//! Refuses to make files: a control file that is not there is an error, so that a directory that is no
//! control group is never taken for one.

#![expect(clippy::disallowed_methods, reason = "a control group is a directory")]

use std::fs;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a group may stay busy after its last process was reaped.
const BUSY: Duration = Duration::from_millis(500);

/// What a group can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    Memory,
    Pids,
    Cpu,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// One group, made by us.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) directory: PathBuf,
    pub(super) version: Version,
    /// Which of the controllers that were wanted limit what is in it.
    pub(super) controllers: Vec<Controller>,
}

/// Why something could not be done.
#[derive(Debug, Clone)]
pub(super) struct Why {
    /// What was tried, where, and what was met.
    pub(super) what: String,
    /// The kernel's answer; 0 if it was not asked.
    pub(super) errno: i32,
}

impl Controller {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

impl Why {
    pub(super) fn none(what: String) -> Self {
        Self { what, errno: 0 }
    }

    pub(super) fn at(doing: &str, path: &Path, error: &io::Error) -> Self {
        Self {
            what: format!("{doing} `{}`: {error}", path.display()),
            errno: error.raw_os_error().unwrap_or(0),
        }
    }
}

impl Group {
    /// The limit in bytes that the kernel took, and whether swap counts in it.
    pub(super) fn limit_memory(&self, bytes: u64) -> Result<(u64, bool), Why> {
        let (limit, swap, with_swap) = match self.version {
            Version::One => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
            Version::Two => ("memory.max", "memory.swap.max", 0),
        };
        let taken = self.number(limit, bytes)?;
        if self.version == Version::Two {
            // One process is killed, not all: the shell that reports it should live.
            self.write("memory.oom.group", "0")?;
        }
        match self.number(swap, with_swap) {
            Ok(_) => Ok((taken, true)),
            // The kernel keeps no account of swap (`swapaccount=0`).
            Err(why) if why.errno == libc::ENOENT => Ok((taken, false)),
            Err(why) => Err(why),
        }
    }

    /// The number of tasks that the kernel took.
    pub(super) fn limit_pids(&self, tasks: u64) -> Result<u64, Why> {
        self.number("pids.max", tasks)
    }

    /// The thousandths of a processor that the kernel took.
    pub(super) fn limit_cpu(&self, thousandths: u64) -> Result<u64, Why> {
        // A quota is at least 1 ms, a period at most 1 s: a small share needs the long period.
        let period: u64 = if thousandths < 10 { 1_000_000 } else { 100_000 };
        let quota = thousandths.saturating_mul(period / 1000);
        let (taken, of) = match self.version {
            Version::One => {
                let of = self.number("cpu.cfs_period_us", period)?;
                (self.number("cpu.cfs_quota_us", quota)?, of)
            }
            Version::Two => {
                self.write("cpu.max", &format!("{quota} {period}"))?;
                let text = self.read("cpu.max")?;
                let mut parts = text.split_whitespace().map(str::parse);
                match (parts.next(), parts.next()) {
                    (Some(Ok(taken)), Some(Ok(of))) => (taken, of),
                    _ => return Err(self.unexpected("cpu.max", &text)),
                }
            }
        };
        match (taken * 1000).checked_div(of) {
            Some(share) if share <= thousandths => Ok(share),
            _ => Err(Why::none(format!(
                "`{}` took {taken} of {of} µs",
                self.directory.display()
            ))),
        }
    }

    /// The file in which the kernel counts the processes that it killed for memory.
    pub(super) fn kills(&self) -> Result<fs::File, Why> {
        let path = self.directory.join(match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        });
        fs::File::open(&path).map_err(|error| Why::at("to open", &path, &error))
    }

    /// The file with the most bytes that it has had, if the kernel keeps that.
    pub(super) fn peak(&self) -> Option<fs::File> {
        self.open(match self.version {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        })
    }

    /// The file that tells its kinds of memory.
    pub(super) fn kinds(&self) -> Option<fs::File> {
        self.open("memory.stat")
    }

    /// The file that counts the tasks that were refused to it.
    pub(super) fn refusals(&self) -> Option<fs::File> {
        self.open("pids.events")
    }

    fn open(&self, file: &str) -> Option<fs::File> {
        fs::File::open(self.directory.join(file)).ok()
    }

    /// Moves another process in, with all its threads. The kernel waits for all processors meanwhile, which
    /// takes 5 to 15 ms on an idle machine.
    pub(super) fn attach(&self, process: i32) -> Result<(), Why> {
        self.write("cgroup.procs", &process.to_string())
    }

    /// The file by which a process of one thread moves itself in, which no lock of the kernel delays (5.5);
    /// none on v2, which has such a file for threads of one process only.
    pub(super) fn entrance(&self) -> Result<Option<fs::File>, Why> {
        if self.version == Version::Two {
            return Ok(None);
        }
        let path = self.directory.join("tasks");
        let file = fs::OpenOptions::new().write(true).open(&path);
        file.map(Some).map_err(|error| Why::at("to open", &path, &error))
    }

    /// The file by which a process of one thread moves itself back to where the sandbox was made, and so out of
    /// this group, where the group limits nothing but memory; none on v2, and where that is not allowed.
    pub(super) fn exit(&self) -> Option<fs::File> {
        if self.version == Version::Two || self.controllers != [Controller::Memory] {
            return None;
        }
        let path = self.directory.parent()?.join("tasks");
        fs::OpenOptions::new().write(true).open(path).ok()
    }

    /// The group itself, for a process to be cloned into; none on v1, which cannot do that.
    pub(super) fn birthplace(&self) -> Option<OwnedFd> {
        let directory = || fs::File::open(&self.directory).ok().map(OwnedFd::from);
        (self.version == Version::Two).then(directory).flatten()
    }

    /// Removes it. Everything in it is dead; the kernel may need a moment to see it.
    pub(super) fn remove(&self) {
        let deadline = Instant::now() + BUSY;
        let mut pause = Duration::from_micros(200);
        while let Err(error) = fs::remove_dir(&self.directory) {
            if error.kind() != io::ErrorKind::ResourceBusy || Instant::now() > deadline {
                break;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Writes a limit and reads it back: at most what was asked, since the kernel rounds to pages.
    fn number(&self, file: &str, value: u64) -> Result<u64, Why> {
        self.write(file, &value.to_string())?;
        let text = self.read(file)?;
        match text.trim().parse() {
            Ok(taken) if taken <= value => Ok(taken),
            _ => Err(self.unexpected(file, &text)),
        }
    }

    fn unexpected(&self, file: &str, text: &str) -> Why {
        let path = self.directory.join(file);
        Why::none(format!(
            "`{}` reads `{}` after it was written",
            path.display(),
            text.trim()
        ))
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Why> {
        write(&self.directory.join(file), text)
    }

    fn read(&self, file: &str) -> Result<String, Why> {
        let path = self.directory.join(file);
        fs::read_to_string(&path).map_err(|error| Why::at("to read", &path, &error))
    }
}

/// Never makes the file, and writes once: the kernel takes each write as a whole.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Why> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Why::at(&format!("to write `{text}` to"), path, &error))
}
