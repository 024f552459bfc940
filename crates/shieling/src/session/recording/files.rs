//! The directory of recordings. It is private and bounded, and foreign files in it are left alone.
//!
//! File names are generated and contain no text from outside. A file is only removed if its name has the full form of
//! a recording, its first line identifies it as a recording of ours, and it is not locked, that is, not being
//! written.
#![allow(
    clippy::disallowed_methods,
    reason = "recordings are made and removed here and nowhere else"
)]

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, OFlags, flock};
use serde_json::Value;

use serde::Serialize;

use crate::units::{ByteCount, rfc3339};

/// The header field that identifies a recording of ours.
pub(super) const OURS: &str = "shieling";

/// The longest header: title, terminal and shell of 1,000 characters each, at most 6 bytes per character.
const HEADER: u64 = 32 * 1024;

/// The least size that is granted to a recording: its header and its last mark.
const LEAST: u64 = 64 * 1024;

/// The steps in which a growing recording reserves space. Other processes see nothing but the length of its file.
const STEP: u64 = 64 * 1024;

/// The number of bytes reserved for the last mark.
pub(super) const LAST_MARK: u64 = 256;

/// The number of attempts to lock a file.
const LOOKS: usize = 1_000;

/// Where recordings are stored, and how much space they may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingSettings {
    /// The directory. It is created with mode 0700 if it does not exist.
    pub directory: PathBuf,
    /// The largest size of one recording (default: 16 MiB; at least 64 KiB). A longer one is cut off with a last
    /// mark.
    pub per_recording: ByteCount,
    /// The largest size of all recordings together (default: 256 MiB). Beyond it, the oldest finished ones are
    /// removed. A recording that is being written counts in steps of 64 KiB; if there is still no room, it is cut off
    /// with a last mark, possibly at its beginning.
    pub in_all: ByteCount,
}

impl RecordingSettings {
    /// Stores recordings in this directory, with the default bounds.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            per_recording: ByteCount::mib(16),
            in_all: ByteCount::mib(256),
        }
    }

    /// Returns the largest size of one recording, in bytes.
    pub(super) fn bound(&self) -> u64 {
        self.per_recording.get().max(LEAST)
    }
}

/// The id of a recording: its start time, and 80 random bits in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct RecordingId(String);

/// A text that is not the id of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("that is not the id of a recording, such as 20261121T070754Z-0123456789abcdef0123")]
pub struct RecordingIdError;

impl RecordingId {
    /// The form of an id: `0` stands for a decimal digit, `x` for a hexadecimal one.
    const FORM: &str = "00000000T000000Z-xxxxxxxxxxxxxxxxxxxx";

    fn new(now: SystemTime) -> io::Result<Self> {
        let mut bytes = [0_u8; 10];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let random: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let time: String = rfc3339(now)
            .chars()
            .take_while(|&c| c != '.')
            .filter(|c| !matches!(c, '-' | ':'))
            .collect();
        format!("{time}Z-{random}").parse().map_err(io::Error::other)
    }

    /// Returns the name of its file in the directory of recordings.
    pub fn file_name(&self) -> String {
        format!("{}.cast", self.0)
    }

    fn of_file(name: &str) -> Option<Self> {
        name.strip_suffix(".cast")?.parse().ok()
    }
}

impl fmt::Display for RecordingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RecordingId {
    type Err = RecordingIdError;

    fn from_str(text: &str) -> Result<Self, RecordingIdError> {
        let fits = |(form, byte): (u8, u8)| match form {
            b'0' => byte.is_ascii_digit(),
            b'x' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            exact => byte == exact,
        };
        if text.len() == Self::FORM.len() && Self::FORM.bytes().zip(text.bytes()).all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(RecordingIdError)
        }
    }
}

/// Returns the space that is reserved by a recording of `length` bytes that is being written, including its last
/// mark.
pub(super) fn taken(length: u64) -> u64 {
    length.saturating_add(LAST_MARK).div_ceil(STEP).saturating_mul(STEP)
}

/// Removes the oldest finished recordings until there is room for `bytes` more. Returns whether there is. Two
/// processes that check at the same time may both find the same room; the bound is then exceeded by what they asked
/// for.
pub(super) fn has_room(to: &RecordingSettings, bytes: u64) -> io::Result<bool> {
    match to.in_all.get().checked_sub(bytes) {
        Some(rest) => rotate(&to.directory, rest),
        None => Ok(false),
    }
}

/// Creates the file of a new recording in a directory that is [`private`]. The file is locked while it is open.
pub(super) fn create(to: &RecordingSettings, now: SystemTime) -> io::Result<(RecordingId, File)> {
    let id = RecordingId::new(now)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to.directory.join(id.file_name()))?;
    // Another process that makes room may hold the lock for an instant, and finds no header yet.
    for _ in 0..LOOKS {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            break;
        }
        std::thread::yield_now();
    }
    Ok((id, file))
}

/// Removes a recording whose header could not be written. If that fails too, an empty file is left.
pub(super) fn remove(to: &RecordingSettings, id: &RecordingId) {
    let _ = fs::remove_file(to.directory.join(id.file_name()));
}

/// Removes the oldest recordings until the rest takes at most `bound` bytes. Returns whether it does.
fn rotate(directory: &Path, bound: u64) -> io::Result<bool> {
    let (mut total, mut ended) = (0_u64, Vec::new());
    for entry in fs::read_dir(directory)?.flatten() {
        let Some(found) = ours(&entry.path(), &entry.file_name().to_string_lossy()) else {
            continue;
        };
        match found {
            FileState::Ended { age, length } => {
                total = total.saturating_add(length);
                ended.push((age, length, entry.path()));
            }
            FileState::Written { length } => total = total.saturating_add(taken(length)),
        }
    }
    ended.sort();
    for (_, length, path) in ended {
        if total <= bound {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total -= length;
        }
    }
    Ok(total <= bound)
}

/// The state of a recording of ours.
enum FileState {
    Ended { age: Option<SystemTime>, length: u64 },
    Written { length: u64 },
}

/// Checks whether a file is a recording of ours. Follows no link, never blocks, and reads no more than the header.
fn ours(path: &Path, name: &str) -> Option<FileState> {
    RecordingId::of_file(name)?;
    let file = open_quietly(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let length = metadata.len();
    if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
        return Some(FileState::Written { length });
    }
    let header = header(&file)?;
    let is_ours = header["version"] == 2 && header[OURS].is_object();
    is_ours.then(|| FileState::Ended {
        age: metadata.modified().ok(),
        length,
    })
}

/// Opens a file of any type for reading, without following a link or blocking.
pub(super) fn open_quietly(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Reads the first line of a recording, from the file's present offset.
pub(super) fn header(file: &File) -> Option<Value> {
    let mut start = Vec::new();
    file.take(HEADER).read_to_end(&mut start).ok()?;
    let line = start.split(|&byte| byte == b'\n').next()?;
    serde_json::from_slice(line).ok()
}

/// Returns the id of the recording with this file name, if it is one.
pub(super) fn id_of(name: &str) -> Option<RecordingId> {
    RecordingId::of_file(name)
}
