//! The log as a file: one JSON object per line, each with the digest of the line before.
//!
//! The file is opened for appending only and created with mode 0600. Each append holds an exclusive
//! `flock`, so that several processes can share one log: the second one finds the file longer than
//! it left it, reads the last line anew and goes on from there.
//!
//! What it refuses: to go on after a last line that is torn or is no record, to write to a file that
//! others may write to, that is no longer at its path, or that has reached its bound. Each of these
//! means that a record would be lost or could not be trusted, and is for a person to look at.
#![expect(clippy::disallowed_methods, reason = "the audit log is one of the homes of std::fs")]

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::{Head, Record, Sink, line};
use crate::request::Digest;
use crate::units::ByteCount;

/// The longest line that is written and read. A command of 1 MiB in which each byte is a control
/// character takes six.
pub const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// How long to wait for another process that holds the lock. It needs it for one write.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// What an append survives once it has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of this and of every other process: the kernel has the line. A power cut may lose
    /// the last seconds, and the chain then ends earlier or with a torn line, which is noticed.
    #[default]
    Kernel,
    /// A power cut too: `fdatasync` after each line, some milliseconds on most disks.
    Disk,
}

/// How a log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// What an append survives; [`Durability::Kernel`] unless told otherwise.
    pub durability: Durability,
    /// The size beyond which nothing is appended and so nothing starts; 1 GiB unless told otherwise.
    pub bound: ByteCount,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            bound: ByteCount::mib(1_024),
        }
    }
}

/// A log in a file.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: std::fs::File,
    /// The length at which `head` was the last line.
    length: u64,
    head: Option<Head>,
}

impl File {
    /// Opens a log to be continued, or creates it.
    ///
    /// # Errors
    /// If it cannot be opened, is not a regular file, may be written to by others than its owner,
    /// or does not end in a whole record.
    ///
    /// # Platform notes
    /// Unix only. `flock` does nothing on some network file systems; keep the log on a local one.
    pub fn open(path: impl Into<PathBuf>, settings: Settings) -> io::Result<Self> {
        let path = path.into();
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            // Not through a link that somebody put there, and not waiting for a pipe's reader.
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path)
            .map_err(|error| told(&path, &error.to_string(), error.kind()))?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(told(&path, "it is not a regular file", io::ErrorKind::InvalidInput));
        }
        if found.mode() & 0o022 != 0 {
            let why = "others than its owner may write to it; take that away with `chmod go-w`";
            return Err(told(&path, why, io::ErrorKind::PermissionDenied));
        }
        let log = Self {
            path,
            settings,
            state: Mutex::new(State {
                file,
                length: 0,
                head: None,
            }),
        };
        {
            let mut state = log.state.lock().unwrap_or_else(PoisonError::into_inner);
            let _locked = log.lock(&state.file)?;
            log.catch_up(&mut state)?;
        }
        Ok(log)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last line that this process has seen; none in an empty log.
    pub fn head(&self) -> Option<Head> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).head
    }

    fn lock(&self, file: &std::fs::File) -> io::Result<Locked> {
        let begun = Instant::now();
        // A second descriptor of the same opening, so that the lock is one and the state stays free
        // to be changed.
        let file = file.try_clone()?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Locked(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < LOCK_WAIT => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let why = "another process has held its lock for 5 s";
                    return Err(told(&self.path, why, io::ErrorKind::TimedOut));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Brings `head` up to date with what other processes have appended.
    fn catch_up(&self, state: &mut State) -> io::Result<()> {
        let found = state.file.metadata()?;
        let at_path = std::fs::symlink_metadata(&self.path).ok();
        if at_path.is_none_or(|at_path| (at_path.dev(), at_path.ino()) != (found.dev(), found.ino())) {
            let why = "the log was moved or replaced while it was in use; start again to begin a new one";
            return Err(told(&self.path, why, io::ErrorKind::NotFound));
        }
        let length = found.len();
        if length < state.length {
            let why = "the log has become shorter while it was in use: records were removed";
            return Err(told(&self.path, why, io::ErrorKind::InvalidData));
        }
        if length > state.length || (length > 0 && state.head.is_none()) {
            state.head = Some(self.last_line(&state.file, length)?);
            state.length = length;
        }
        Ok(())
    }

    fn last_line(&self, file: &std::fs::File, length: u64) -> io::Result<Head> {
        let from = length.saturating_sub(MAX_LINE_BYTES + 1);
        // Mostly the last few KiB hold the last line; the rest is read only if they do not.
        let mut tail = read_from(file, length.saturating_sub(8 * 1024).max(from), length)?;
        if !tail[..tail.len() - 1].contains(&b'\n') {
            tail = read_from(file, from, length)?;
        }
        let Some(whole) = tail.strip_suffix(b"\n") else {
            let begins = length - (tail.len() - after_newline(&tail)) as u64;
            let why = format!(
                "its last line is torn: a write was interrupted. Keep a copy, look at what comes after \
                 byte {begins}, then cut it off with `truncate -s {begins}` or begin a new log"
            );
            return Err(told(&self.path, &why, io::ErrorKind::InvalidData));
        };
        let last = &whole[after_newline(whole)..];
        std::str::from_utf8(last)
            .ok()
            .filter(|last| line::is_intact(last))
            .and_then(|last| line::link(last).map(|link| line::head(last, link.seq)))
            .ok_or_else(|| {
                let why = "its last line is no whole record; `shieling log verify` shows where the log breaks";
                told(&self.path, why, io::ErrorKind::InvalidData)
            })
    }
}

impl Sink for File {
    fn append(&self, record: &Record) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _locked = self.lock(&state.file)?;
        self.catch_up(&mut state)?;
        let (seq, prev) = state
            .head
            .map_or((1, Digest([0; 32])), |head| (head.seq + 1, head.digest));
        let mut text = line::encode(record, seq, prev).map_err(io::Error::other)?;
        let head = line::head(&text, seq);
        text.push('\n');
        let grown = state.length + text.len() as u64;
        if text.len() as u64 > MAX_LINE_BYTES || grown > self.settings.bound.get() {
            let why = format!(
                "it would grow beyond its bound of {}; move it away and begin a new one",
                self.settings.bound
            );
            return Err(told(&self.path, &why, io::ErrorKind::StorageFull));
        }
        let written = state
            .file
            .write_all(text.as_bytes())
            .and_then(|()| match self.settings.durability {
                Durability::Kernel => Ok(()),
                Durability::Disk => state.file.sync_data(),
            });
        if let Err(error) = written {
            // A full disk may have taken half a line. Nobody else can have written behind it while
            // the lock is held, so the half can be taken back; if not, the next append reports it.
            drop(state.file.set_len(state.length));
            return Err(told(&self.path, &error.to_string(), error.kind()));
        }
        state.length = grown;
        state.head = Some(head);
        Ok(())
    }
}

/// The lock, until it is dropped.
struct Locked(std::fs::File);

impl Drop for Locked {
    fn drop(&mut self) {
        // The lock belongs to the opening, which the state keeps, so that closing does not free it.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

fn read_from(file: &std::fs::File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to - from).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

fn after_newline(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn told(path: &Path, why: &str, kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, format!("audit log `{}`: {why}", path.display()))
}
