//! The directory of recordings: private, bounded, and with files of others in it left alone.
//!
//! Names are made here and from nothing that anybody sent. A file is only removed if its name has the
//! whole form of ours *and* its first line says that we wrote it, and never while it is being written,
//! which a lock on it tells.
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

use super::LAST_MARK;
use crate::units::{ByteCount, rfc3339};

/// The field of the header that says that a recording is one of ours.
pub(super) const OURS: &str = "shieling";

/// The longest header: a title, a terminal and a shell of 1,000 characters, each of at most 6 bytes.
const HEADER: u64 = 32 * 1024;

/// The least that a recording is given: its header, and its last mark.
const LEAST: u64 = 64 * 1024;

/// In what steps one that is being written takes its room. Whoever looks on from another process knows
/// of it by nothing but its length.
const STEP: u64 = 64 * 1024;

/// How often a lock is tried.
const LOOKS: usize = 1_000;

/// Where recordings go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordTo {
    /// The directory; made with mode 0700 if it is not there.
    pub directory: PathBuf,
    /// How much one may take (default 16 MiB, at least 64 KiB); a last mark says where it was cut off.
    pub per_recording: ByteCount,
    /// How much all of them may take before the oldest that are finished go (default 256 MiB). One that
    /// is being written counts in steps of 64 KiB; if there is still no room, the one that needs it is
    /// cut off with a last mark, be it at its beginning.
    pub in_all: ByteCount,
}

impl RecordTo {
    /// That directory, with the default bounds.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            per_recording: ByteCount::mib(16),
            in_all: ByteCount::mib(256),
        }
    }

    /// How much one takes at most, in bytes.
    pub(super) fn bound(&self) -> u64 {
        self.per_recording.get().max(LEAST)
    }
}

/// The name of a recording: when it began, and 80 random bits in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct RecordingId(String);

/// What is not the name of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("that is not the id of a recording, such as 20261121T070754Z-0123456789abcdef0123")]
pub struct RecordingIdError;

impl RecordingId {
    /// The form: digits as `0`, hexadecimal digits as `x`.
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

    /// The name of its file in the directory of recordings.
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

/// The room that is taken by one of `length` bytes that is being written, its last mark included.
pub(super) fn taken(length: u64) -> u64 {
    length.saturating_add(LAST_MARK).div_ceil(STEP).saturating_mul(STEP)
}

/// Whether there is room for so many bytes more, for which the oldest finished recordings go. Two that
/// look at the same moment may find the same room: it is exceeded by what they have asked for.
pub(super) fn has_room(to: &RecordTo, bytes: u64) -> io::Result<bool> {
    match to.in_all.get().checked_sub(bytes) {
        Some(rest) => rotate(&to.directory, rest),
        None => Ok(false),
    }
}

/// The file of a new recording in a directory that is [`private`], which is locked as long as it is open.
pub(super) fn create(to: &RecordTo, now: SystemTime) -> io::Result<(RecordingId, File)> {
    let id = RecordingId::new(now)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to.directory.join(id.file_name()))?;
    // Whoever makes room at this moment looks at it for an instant, and finds no header yet.
    for _ in 0..LOOKS {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            break;
        }
        std::thread::yield_now();
    }
    Ok((id, file))
}

/// Removes one that was begun and could not be written. If that fails too, it stays, empty.
pub(super) fn remove(to: &RecordTo, id: &RecordingId) {
    let _ = fs::remove_file(to.directory.join(id.file_name()));
}

/// Removes the oldest recordings until the rest take no more than `bound` bytes; whether they do.
fn rotate(directory: &Path, bound: u64) -> io::Result<bool> {
    let (mut total, mut ended) = (0_u64, Vec::new());
    for entry in fs::read_dir(directory)?.flatten() {
        let Some(found) = ours(&entry.path(), &entry.file_name().to_string_lossy()) else {
            continue;
        };
        match found {
            Found::Ended { age, length } => {
                total = total.saturating_add(length);
                ended.push((age, length, entry.path()));
            }
            Found::Written { length } => total = total.saturating_add(taken(length)),
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

/// A recording of ours.
enum Found {
    Ended { age: Option<SystemTime>, length: u64 },
    Written { length: u64 },
}

/// What a file is, if it is one of ours. Nothing is followed, waited for, or read beyond its header.
fn ours(path: &Path, name: &str) -> Option<Found> {
    RecordingId::of_file(name)?;
    let file = open_quietly(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let length = metadata.len();
    if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
        return Some(Found::Written { length });
    }
    let header = header(&file)?;
    let is_ours = header["version"] == 2 && header[OURS].is_object();
    is_ours.then(|| Found::Ended {
        age: metadata.modified().ok(),
        length,
    })
}

/// Opens a file for reading that may be anything: no link is followed, nothing waited for.
pub(super) fn open_quietly(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// The first line of a recording. Reads on from where the file stands.
pub(super) fn header(file: &File) -> Option<Value> {
    let mut start = Vec::new();
    file.take(HEADER).read_to_end(&mut start).ok()?;
    let line = start.split(|&byte| byte == b'\n').next()?;
    serde_json::from_slice(line).ok()
}

/// The recording whose file has this name, if one can have it.
pub(super) fn id_of(name: &str) -> Option<RecordingId> {
    RecordingId::of_file(name)
}
