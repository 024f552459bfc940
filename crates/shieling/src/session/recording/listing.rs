//! Lists recordings. Reads only the beginning and the end of each, and only recordings of ours.
#![expect(clippy::disallowed_methods, reason = "the directory of recordings is read here")]

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::RecordingId;
use super::files::{self, OURS};
use crate::units::ByteCount;

/// The number of bytes at the end of a file that are searched for the last event. One event is at most 64 KiB,
/// escaped.
const END: u64 = 512 * 1024;

/// The largest number of recordings in a listing.
const MOST: usize = 10_000;

/// A recording in a listing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RecordingInfo {
    /// Its id.
    pub id: RecordingId,
    /// What was recorded: the text of a command, or `session` and a name. The text is untrusted.
    pub title: String,
    /// The time of its last event in seconds; `None` if there is none that can be read.
    pub seconds: Option<f64>,
    /// The size of its file.
    pub size: ByteCount,
    /// Whether it is being written.
    pub open: bool,
}

/// Lists the recordings in a directory, newest first, at most 10,000. Returns none if the directory does not exist.
///
/// # Errors
/// If the directory cannot be read.
pub fn list_recordings(directory: &Path) -> io::Result<Vec<RecordingInfo>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut ids: Vec<RecordingId> = names.filter_map(|name| files::id_of(name.to_str()?)).collect();
    // Ids begin with the time.
    ids.sort_by_cached_key(|id| std::cmp::Reverse(id.to_string()));
    let found = ids.into_iter().take(MOST);
    Ok(found.filter_map(|id| read_entry(directory, id)).collect())
}

/// Reads the entry of one recording; `None` if it is not one of ours or cannot be read.
fn read_entry(directory: &Path, id: RecordingId) -> Option<RecordingInfo> {
    let mut file = files::open_quietly(&directory.join(id.file_name())).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return None;
    }
    let header = files::header(&file)?;
    let open = flock(&file, FlockOperation::NonBlockingLockShared).is_err();
    let title = header["title"].as_str().unwrap_or_default().to_owned();
    (header["version"] == 2 && header[OURS].is_object()).then(|| RecordingInfo {
        id,
        title,
        seconds: last(&mut file, metadata.len()),
        size: ByteCount::bytes(metadata.len()),
        open,
    })
}

/// Returns the time of the last complete event; 0 if there is none.
fn last(file: &mut File, length: u64) -> Option<f64> {
    file.seek(SeekFrom::Start(length.saturating_sub(END))).ok()?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end).ok()?;
    let mut lines = end.rsplit(|&byte| byte == b'\n');
    let event = lines.find_map(|line| serde_json::from_slice::<(f64, String, String)>(line).ok());
    match event {
        Some((seconds, ..)) => Some(seconds),
        // The whole file was read, and holds only the header.
        None if length <= END => Some(0.0),
        None => None,
    }
}
