//! The audit log in a file: one JSON object per line, each with the digest of the line before.
//!
//! The file is opened for appending only, and created with mode 0600. Each append holds an exclusive `flock`, so that
//! several processes can share a log: a process that finds the file longer than before reads the last line and
//! continues from it.
//!
//! A log with generations is rotated at its bound, under the same lock: `log` becomes `log.1`, `log.1` becomes
//! `log.2`, and the oldest file is removed. The chain continues: the first line of the new file has the next number,
//! and the digest of the last line of `log.1`. A process that waited for the lock then finds another file at the
//! path, whose lines follow those that it knows, and continues there.
//!
//! Appending fails if the last line is torn or not a record, or if the file can be written by others, has been moved,
//! or has reached its bound. In each of these cases a record would be lost or could not be trusted, and a person has
//! to investigate.
#![expect(clippy::disallowed_methods, reason = "the audit log is one of the homes of std::fs")]

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::{LogHead, Record, Sink, line};
use crate::request::Digest;
use crate::units::ByteCount;

/// The longest line. A command of 1 MiB in which every byte is a control character takes six.
pub const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// The longest wait for another process that holds the lock, which it does for one write.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The largest number of times that a rotated file is followed.
const FOLLOWED: u32 = 100;

/// What to do about a log that cannot be written.
const OTHERWISE: &str =
    "free space or give this user the right to write there, or record elsewhere with `--audit FILE`";

/// What an appended record survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of any process: the kernel has the line. A power failure may lose the last seconds; the chain then
    /// ends earlier or with a torn line, which is detected.
    #[default]
    Kernel,
    /// A power failure too: `fdatasync` after each line, which takes some milliseconds on most disks.
    Disk,
}

/// The settings of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    /// What an appended record survives (default: [`Durability::Kernel`]).
    pub durability: Durability,
    /// The size at which the log is rotated, or, without generations, nothing is appended and so nothing starts
    /// (default: 1 GiB).
    pub bound: ByteCount,
    /// The number of full files that are kept beside the current one, with the suffixes `.1`, `.2` and so on
    /// (default: 0, which means that files are never rotated or removed).
    pub generations: u32,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            bound: ByteCount::mib(1_024),
            generations: 0,
        }
    }
}

/// An audit log in a file.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    settings: LogSettings,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: std::fs::File,
    /// The length of the file at which `head` was the last line.
    length: u64,
    head: Option<LogHead>,
}

impl LogFile {
    /// Opens a log to be continued, or creates it.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a regular file, can be written by others than its owner, or does not end
    /// with a complete record.
    ///
    /// # Platform notes
    /// Unix only. `flock` has no effect on some network file systems; keep the log on a local one.
    pub fn open(path: impl Into<PathBuf>, settings: LogSettings) -> io::Result<Self> {
        let path = path.into();
        let log = Self {
            state: Mutex::new(State {
                file: opened(&path)?,
                length: 0,
                head: None,
            }),
            path,
            settings,
        };
        {
            let mut state = log.state.lock().unwrap_or_else(PoisonError::into_inner);
            let _locked = log.lock_current(&mut state)?;
            log.catch_up(&mut state)?;
        }
        Ok(log)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the last line that this process has seen; `None` in an empty log.
    pub fn head(&self) -> Option<LogHead> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).head
    }

    fn lock(&self, file: &std::fs::File) -> io::Result<Locked> {
        let begun = Instant::now();
        // A second descriptor of the same open file, which shares the lock and leaves the state mutable.
        let file = file.try_clone()?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Locked(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < LOCK_WAIT => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let why = "another process has held its lock for 5 s";
                    return Err(refusal(&self.path, why, io::ErrorKind::TimedOut));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Locks the file at the path, which another process may have rotated.
    fn lock_current(&self, state: &mut State) -> io::Result<Locked> {
        for _ in 0..=FOLLOWED {
            let locked = self.lock(&state.file)?;
            let found = state.file.metadata()?;
            let at_path = std::fs::symlink_metadata(&self.path).ok();
            if at_path.is_some_and(|at_path| (at_path.dev(), at_path.ino()) == (found.dev(), found.ino())) {
                return Ok(locked);
            }
            drop(locked);
            if self.settings.generations == 0 {
                break;
            }
            let next = opened(&self.path)?;
            // A file after a rotation continues the known lines; a log that was started afresh does not.
            let follows = match (first_number(&next)?, state.head) {
                (_, None) => true,
                (Some(first), Some(head)) => first > head.seq,
                // Nothing was written to it yet. The known head is then in the previous generation, or the one
                // before.
                (None, Some(head)) => self.last_before()?.is_some_and(|before| before.seq >= head.seq),
            };
            if !follows {
                break;
            }
            (state.file, state.length) = (next, 0);
        }
        let why = "the log was moved or replaced while it was in use; start again to begin a new one";
        Err(refusal(&self.path, why, io::ErrorKind::NotFound))
    }

    /// Returns the path of an older generation.
    fn generation(&self, number: u32) -> PathBuf {
        generation(&self.path, number)
    }

    /// Returns the last line of the newest older generation.
    fn last_before(&self) -> io::Result<Option<LogHead>> {
        match std::fs::File::open(self.generation(1)) {
            Ok(before) => {
                let length = before.metadata()?.len();
                (length > 0).then(|| self.last_line(&before, length)).transpose()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refusal(&self.path, &error.to_string(), error.kind())),
        }
    }

    /// Makes this file, whose lock is held, the newest older generation. The process that first locks the next file
    /// starts it, which may be another process, so the state is left unknown here.
    fn rotate(&self) -> io::Result<()> {
        let failed = |error: io::Error| {
            let why = format!("it is full and cannot be rotated: {error}; {OTHERWISE}");
            refusal(&self.path, &why, error.kind())
        };
        for number in (1..self.settings.generations).rev() {
            match std::fs::rename(self.generation(number), self.generation(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        std::fs::rename(&self.path, self.generation(1)).map_err(failed)
    }

    /// Updates `head` with the lines that other processes have appended.
    fn catch_up(&self, state: &mut State) -> io::Result<()> {
        let found = state.file.metadata()?;
        let length = found.len();
        if length < state.length {
            let why = "the log has become shorter while it was in use: records were removed";
            return Err(refusal(&self.path, why, io::ErrorKind::InvalidData));
        }
        if length > state.length || (length > 0 && state.head.is_none()) {
            state.head = Some(self.last_line(&state.file, length)?);
            state.length = length;
        }
        if length == 0 && self.settings.generations > 0 {
            // Rotated, with nothing written since: the last line is in the previous generation.
            if let Some(before) = self.last_before()? {
                state.head = Some(before);
            }
        }
        Ok(())
    }

    fn last_line(&self, file: &std::fs::File, length: u64) -> io::Result<LogHead> {
        let from = length.saturating_sub(MAX_LINE_BYTES + 1);
        // The last line is usually within the last few KiB; the rest is read only if it is not.
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
            return Err(refusal(&self.path, &why, io::ErrorKind::InvalidData));
        };
        let last = &whole[after_newline(whole)..];
        std::str::from_utf8(last)
            .ok()
            .filter(|last| line::is_intact(last))
            .and_then(|last| line::link(last).map(|link| line::head(last, link.seq)))
            .ok_or_else(|| {
                let why = "its last line is no whole record; `shieling log verify` shows where the log breaks";
                refusal(&self.path, why, io::ErrorKind::InvalidData)
            })
    }
}

impl Sink for LogFile {
    fn append(&self, record: &Record) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = self.settings.bound.get();
        let (locked, text, head) = loop {
            let locked = self.lock_current(&mut state)?;
            self.catch_up(&mut state)?;
            let (seq, prev) = state
                .head
                .map_or((1, Digest([0; 32])), |head| (head.seq + 1, head.digest));
            let mut text = line::encode(record, seq, prev).map_err(io::Error::other)?;
            let head = line::head(&text, seq);
            text.push('\n');
            let size = text.len() as u64;
            let full = state.length > 0 && state.length + size > bound && size <= bound;
            if self.settings.generations == 0 || !full {
                break (locked, text, head);
            }
            self.rotate()?;
        };
        let size = text.len() as u64;
        let grown = state.length + size;
        if size > MAX_LINE_BYTES || grown > bound {
            let why = format!(
                "it would grow beyond its bound of {}; move it away and begin a new one, or record elsewhere with \
                 `--audit FILE`",
                self.settings.bound
            );
            return Err(refusal(&self.path, &why, io::ErrorKind::StorageFull));
        }
        let written = state
            .file
            .write_all(text.as_bytes())
            .and_then(|()| match self.settings.durability {
                Durability::Kernel => Ok(()),
                Durability::Disk => state.file.sync_data(),
            });
        if let Err(error) = written {
            // A full disk may have accepted half a line. No other process can have written after it while the lock is
            // held, so it can be removed; if that fails, the next append reports it.
            drop(state.file.set_len(state.length));
            return Err(refusal(&self.path, &format!("{error}; {OTHERWISE}"), error.kind()));
        }
        state.length = grown;
        state.head = Some(head);
        drop(locked);
        Ok(())
    }
}

/// Opens or creates a log that is private to this user.
fn opened(path: &Path) -> io::Result<std::fs::File> {
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        // Does not follow a link, or block on a pipe without a reader.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| {
            refusal(
                path,
                &format!("{error}; record elsewhere with `--audit FILE`"),
                error.kind(),
            )
        })?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(refusal(path, "it is not a regular file", io::ErrorKind::InvalidInput));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        let why = "it belongs to another user, who could rewrite it; record elsewhere with `--audit FILE`";
        return Err(refusal(path, why, io::ErrorKind::PermissionDenied));
    }
    if found.mode() & 0o022 != 0 {
        let why = "others than its owner may write to it; take that away with `chmod go-w`";
        return Err(refusal(path, why, io::ErrorKind::PermissionDenied));
    }
    Ok(file)
}

/// Returns the path of an older generation of a log.
pub(super) fn generation(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// Returns the number of the first line; `None` if the log is empty or the line is not a record.
pub(super) fn first_number(file: &std::fs::File) -> io::Result<Option<u64>> {
    let length = file.metadata()?.len().min(MAX_LINE_BYTES);
    let mut some = 8 * 1024;
    loop {
        let text = read_from(file, 0, length.min(some))?;
        if let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let first = std::str::from_utf8(&text[..end]).ok();
            return Ok(first.and_then(line::link).map(|link| link.seq));
        }
        if some >= length {
            return Ok(None);
        }
        some *= 16;
    }
}

/// Holds the lock until it is dropped.
struct Locked(std::fs::File);

impl Drop for Locked {
    fn drop(&mut self) {
        // The lock belongs to the open file, which the state keeps, so closing the descriptor does not release it.
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

fn refusal(path: &Path, why: &str, kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, format!("audit log `{}`: {why}", path.display()))
}
