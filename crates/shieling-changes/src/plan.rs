//! A file of records, written once and read in both directions, so that a plan takes no memory.
//!
//! ```text
//! record: length (u32, little endian), bytes, length
//! ```

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::directory::Directory;
use crate::error::{ChangesError, While as _};
use crate::header::path_bytes;
use crate::node::{Identity, Node, Time};

/// The name of the plan in a set.
pub(crate) const PLAN: &str = "plan";

/// The longest record, in bytes: a path and what is known of it.
const LONGEST: u32 = 64 * 1024;

/// One step of a commit. Each can be done and taken back, and shows by the state of the files whether it is done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Step {
    /// A node goes from the layer to the workspace, and what is there goes to the layer.
    Put {
        #[serde(with = "path_bytes")]
        path: PathBuf,
        new: Node,
        old: Option<Node>,
    },
    /// A node goes from the workspace to the set's directory of removed ones, under a number.
    Remove {
        #[serde(with = "path_bytes")]
        path: PathBuf,
        old: Node,
        number: u64,
    },
    /// A directory gets another mode.
    SetMode {
        #[serde(with = "path_bytes")]
        path: PathBuf,
        node: Identity,
        old: u32,
        new: u32,
    },
    /// A file gets other times (last read, last modified).
    SetTimes {
        #[serde(with = "path_bytes")]
        path: PathBuf,
        node: Identity,
        old: (Time, Time),
        new: (Time, Time),
    },
    /// Nothing: a directory that lies in one which is put.
    Holds { node: Identity },
}

/// Writes records.
#[derive(Debug)]
pub(crate) struct Writer(BufWriter<File>);

impl Writer {
    /// Begins a new file.
    pub(crate) fn create(directory: &Directory, name: &str) -> Result<Self, ChangesError> {
        directory.unlink_if_there(name).doing("remove", name)?;
        let file = directory.create(name).doing("create", name)?;
        Ok(Self(BufWriter::with_capacity(64 * 1024, file)))
    }

    /// Goes on with a file, or begins it.
    pub(crate) fn append(directory: &Directory, name: &str) -> Result<Self, ChangesError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR).doing("open", name)?;
        Ok(Self(BufWriter::with_capacity(64 * 1024, File::from(file))))
    }

    pub(crate) fn write<T: Serialize>(&mut self, record: &T) -> Result<(), ChangesError> {
        let bytes = postcard::to_allocvec(record).expect("plain data can always be encoded");
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        let written = [&length[..], &bytes, &length]
            .into_iter()
            .try_for_each(|part| self.0.write_all(part));
        written.doing("write", PLAN)
    }

    pub(crate) fn finish(mut self) -> Result<(), ChangesError> {
        self.0.flush().doing("write", PLAN)
    }
}

/// Reads records.
pub(crate) struct Reader {
    file: File,
    /// Where the next record begins, and where the last one ended.
    at: u64,
    end: u64,
    /// What was read of the file, and where that begins.
    buffer: Vec<u8>,
    start: u64,
}

impl Reader {
    /// Opens a file, if it is there. A record that is cut off at its end, by the end of its writer, is not there.
    pub(crate) fn open(directory: &Directory, name: &str) -> Result<Option<Self>, ChangesError> {
        let file = match directory.read(name) {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno).doing("open", name),
        };
        let end = file.metadata().doing("look at", name)?.len();
        Ok(Some(Self {
            file,
            at: 0,
            end,
            buffer: Vec::new(),
            start: 0,
        }))
    }

    /// Reads the next record.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ChangesError> {
        if self.end - self.at < 4 {
            return Ok(None);
        }
        let length = self.length_at(self.at)?;
        if self.at + u64::from(length) + 8 > self.end {
            return Ok(None);
        }
        let record = self.record(self.at + 4, length)?;
        self.at += u64::from(length) + 8;
        Ok(Some(record))
    }

    /// Goes to the end.
    pub(crate) fn seek_end(&mut self) {
        self.at = self.end;
    }

    /// Reads the record before.
    pub(crate) fn previous<T: DeserializeOwned>(&mut self) -> Result<Option<T>, ChangesError> {
        if self.at < 8 {
            return Ok(None);
        }
        let length = self.length_at(self.at - 4)?;
        let Some(begin) = self.at.checked_sub(u64::from(length) + 8) else {
            return Err(io::Error::from(io::ErrorKind::InvalidData)).doing("read", PLAN);
        };
        let record = self.record(begin + 4, length)?;
        self.at = begin;
        Ok(Some(record))
    }

    fn length_at(&mut self, at: u64) -> Result<u32, ChangesError> {
        let bytes: [u8; 4] = self.bytes(at, 4)?.try_into().unwrap_or_default();
        let length = u32::from_le_bytes(bytes);
        if length > LONGEST {
            return Err(io::Error::from(io::ErrorKind::InvalidData)).doing("read", PLAN);
        }
        Ok(length)
    }

    fn record<T: DeserializeOwned>(&mut self, at: u64, length: u32) -> Result<T, ChangesError> {
        postcard::from_bytes(self.bytes(at, length as usize)?)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
            .doing("read", PLAN)
    }

    fn bytes(&mut self, at: u64, count: usize) -> Result<&[u8], ChangesError> {
        let within = |start: u64, buffer: &[u8]| at >= start && at + count as u64 <= start + buffer.len() as u64;
        if !within(self.start, &self.buffer) {
            // Around the place, since it is read in both directions.
            self.start = at.saturating_sub(u64::from(LONGEST));
            self.file.seek(SeekFrom::Start(self.start)).doing("read", PLAN)?;
            self.buffer.clear();
            let room = u64::from(LONGEST) * 4;
            (&self.file)
                .take(room)
                .read_to_end(&mut self.buffer)
                .doing("read", PLAN)?;
        }
        let offset = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        let bytes = self.buffer.get(offset..).and_then(|bytes| bytes.get(..count));
        bytes
            .ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))
            .doing("read", PLAN)
    }
}
