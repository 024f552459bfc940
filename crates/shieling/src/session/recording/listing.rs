//! What recordings there are. Reads only the beginning and the end of each, and nothing that is not ours.
#![expect(clippy::disallowed_methods, reason = "the directory of recordings is read here")]

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::RecordingId;
use super::files::{self, OURS};
use crate::units::ByteCount;

/// How much of its end is read to find its last event: one of pipes or a terminal is 64 KiB, escaped.
const END: u64 = 512 * 1024;

/// The most that are listed.
const MOST: usize = 10_000;

/// One recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its name.
    pub id: RecordingId,
    /// What was recorded: a command's text, or `session` and a name. It is a stranger's text.
    pub title: String,
    /// How long it is, in seconds: when its last event was; none if that cannot be told.
    pub seconds: Option<f64>,
    /// How large its file is.
    pub size: ByteCount,
    /// Whether it is being written.
    pub open: bool,
}

/// The recordings in a directory, newest first, at most 10,000 of them; none if there is no such directory.
///
/// # Errors
/// It cannot be read.
pub fn recorded(directory: &Path) -> io::Result<Vec<Recorded>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut ids: Vec<RecordingId> = names.filter_map(|name| files::id_of(name.to_str()?)).collect();
    // They begin with the time.
    ids.sort_by_cached_key(|id| std::cmp::Reverse(id.to_string()));
    let found = ids.into_iter().take(MOST);
    Ok(found.filter_map(|id| look(directory, id)).collect())
}

/// One of ours; nothing if it is none, or cannot be read.
fn look(directory: &Path, id: RecordingId) -> Option<Recorded> {
    let mut file = files::open_quietly(&directory.join(id.file_name())).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let header = files::header(&file)?;
    let open = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
    let title = header["title"].as_str().unwrap_or_default().to_owned();
    (header["version"] == 2 && header[OURS].is_object()).then(|| Recorded {
        id,
        title,
        seconds: last(&mut file, metadata.len()),
        size: ByteCount::bytes(metadata.len()),
        open,
    })
}

/// When its last whole event was; 0 if there is none.
fn last(file: &mut File, length: u64) -> Option<f64> {
    file.seek(SeekFrom::Start(length.saturating_sub(END))).ok()?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end).ok()?;
    let mut lines = end.rsplit(|&byte| byte == b'\n');
    let event = lines.find_map(|line| serde_json::from_slice::<(f64, String, String)>(line).ok());
    match event {
        Some((seconds, ..)) => Some(seconds),
        // All of it was read, and there is nothing but its header.
        None if length <= END => Some(0.0),
        None => None,
    }
}
